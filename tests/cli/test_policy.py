"""`turnout policy`: versions found by digest or file, checked before they are served, and always a way back."""

import json
from pathlib import Path
from typing import Any

import pytest

from turnout.cli.app import run
from turnout.gateway.config import load
from turnout.policies.file import read, text_of
from turnout.policies.folder import Folder
from turnout.policies.policy import Evidence, Figure, Policy

CONFIG = """
[upstreams.u]
format = "openai_chat"
base_url = "http://127.0.0.1:9/v1"
[targets.small]
upstream = "u"
model = "vendor-small"
[targets.large]
upstream = "u"
model = "vendor-large"
[routes.coder]
type = "stage"
efficient = "small"
capable = "large"
[routes.helper]
type = "passthrough"
target = "small"
"""
STAGE = {"type": "stage", "efficient": "small", "capable": "large"}
EVIDENCE = Evidence("runs", rows=10, holds=True, metrics={"success": Figure(0.5, 0.4, 0.6, 10)})


@pytest.fixture
def here(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A folder with a configuration, which commands run in."""
    monkeypatch.chdir(tmp_path)
    Path("turnout.toml").write_text(CONFIG)
    return tmp_path


def drafted(name: str, evidence: Evidence | None = EVIDENCE, route: str = "coder", **changed: Any) -> str:
    """A policy file as a person writes it."""
    Path(name).write_text(text_of(Policy(route, {**STAGE, **changed}, evidence=evidence)))
    return name


def told(capsys: pytest.CaptureFixture[str], *arguments: str) -> Any:
    """What a command prints as JSON."""
    assert run(["policy", *arguments, "--json"]) == 0, capsys.readouterr().err
    return json.loads(capsys.readouterr().out)


def refused(capsys: pytest.CaptureFixture[str], code: int, *arguments: str) -> str:
    """What a command that is refused says."""
    assert run(["policy", *arguments]) == code
    caught = capsys.readouterr()
    assert caught.out == ""
    return caught.err


def served() -> str:
    return load("turnout.toml", None).routes["coder"].policy


def test_promote_by_file_and_by_digest_and_back_again(here: Path, capsys: pytest.CaptureFixture[str]) -> None:
    own = served()
    first = told(capsys, "promote", "coder", drafted("a.toml", threshold=0.3), "--reason", "because")
    assert (first["changed"], first["digest"], first["before"], first["reason"]) == (True, served(), "", "because")
    second = told(capsys, "promote", "coder", drafted("b.toml", threshold=0.7))
    assert (second["before"], second["digest"]) == (first["digest"], served())
    assert told(capsys, "promote", "coder", second["digest"][:5])["changed"] is False
    assert told(capsys, "rollback", "coder")["digest"] == first["digest"] == served()
    again = told(capsys, "promote", "coder", second["digest"][:5])
    assert (again["changed"], served()) == (True, second["digest"])
    assert len(list(Path("policies").glob("coder-*.toml"))) == 2
    assert told(capsys, "rollback", "coder")["digest"] == first["digest"]
    back = told(capsys, "rollback", "coder", "--reason", "enough")
    assert (back["digest"], back["before"], served()) == ("", first["digest"], own)
    said = refused(capsys, 2, "rollback", "coder")
    assert "served by the configuration's own table; there is nothing to roll back" in said
    history = told(capsys, "list", "--history")
    assert [one["action"] for one in history] == ["promote"] * 2 + ["rollback", "promote"] + ["rollback"] * 2
    assert [one["reason"] for one in history] == ["because", "", "", "", "", "enough"]
    assert all(one["by"] for one in history)


def test_list_says_what_is_served_and_why(here: Path, capsys: pytest.CaptureFixture[str]) -> None:
    made = told(capsys, "promote", "coder", drafted("a.toml", threshold=0.3), "--reason", "because")
    coder, helper = told(capsys, "list")["routes"]
    assert (coder["served"], [one["served"] for one in coder["versions"]]) == (made["digest"], [True, False])
    version = coder["versions"][0]
    assert (version["policy"]["made_by"], version["reason"], version["since"]) == ("hand", "because", made["at"])
    assert version["policy"]["evidence"]["metrics"]["success"]["low"] == 0.4
    assert (helper["route"], [one["served"] for one in helper["versions"]]) == ("helper", [True])
    assert run(["policy", "list", "coder"]) == 0
    assert "runs; 10 rows; success 0.5 [0.4 0.6]" in capsys.readouterr().out
    assert "helper" not in json.dumps(told(capsys, "list", "coder"))


def test_diff_compares_effective_tables_and_figures_of_the_same_rows(
    here: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    own = served()
    assert told(capsys, "diff", "coder", drafted("same.toml", threshold=0.5))["keys"] == []
    before = {"success": Figure(0.45, 0.3, 0.5, 10)}
    better = Evidence("runs", holds=True, metrics=EVIDENCE.metrics, before=before)
    Path("a.toml").write_text(text_of(Policy("coder", {**STAGE, "threshold": 0.3}, came_from=own, evidence=better)))
    found = told(capsys, "diff", "coder", "a.toml")
    assert found["keys"] == [{"key": "router.threshold", "before": 0.5, "after": 0.3}]
    assert found["metrics"][0]["same_rows"] is True
    assert (found["metrics"][0]["before"]["value"], found["metrics"][0]["after"]["value"]) == (0.45, 0.5)
    told(capsys, "promote", "coder", "a.toml")
    back = told(capsys, "diff", "coder", "configuration")
    assert (back["before"], back["after"]) == (served(), own)
    assert back["keys"] == [{"key": "router.threshold", "before": 0.3, "after": 0.5}]


@pytest.mark.parametrize(
    ("old", "new", "says"),
    [
        ('efficient = "small"', 'efficient = "smal"', "router.efficient: unknown target `smal`"),
        ("threshold = 0.3", "treshold = 0.3", "did you mean `threshold`?"),
        ("threshold = 0.3", 'aliases = ["x"]', "`aliases` is not versioned; it belongs to [routes.coder]"),
        ('route = "coder"', 'route = "helper"', "a version of route `helper`, not of `coder`"),
        ('route = "coder"', "route = 3", "expected `str`, got `int`"),
    ],
)
def test_a_version_that_does_not_fit_changes_nothing(
    here: Path, capsys: pytest.CaptureFixture[str], old: str, new: str, says: str
) -> None:
    own = served()
    text = Path(drafted("a.toml", threshold=0.3)).read_text()
    assert old in text
    Path("a.toml").write_text(text.replace(old, new))
    assert says in refused(capsys, 2, "promote", "coder", "a.toml", "--force")
    assert served() == own
    assert not Path("policies").exists()


def test_what_has_no_evidence_for_it_takes_force(here: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert "has no evidence" in refused(capsys, 2, "promote", "coder", drafted("a.toml", None, threshold=0.3))
    against = Evidence("runs", constraint="tasks lost at most 0.05", holds=False)
    said = refused(capsys, 2, "promote", "coder", drafted("b.toml", against, threshold=0.4))
    assert "tasks lost at most 0.05 does not hold" in said
    assert told(capsys, "promote", "coder", "a.toml", "--force")["forced"] is True
    assert told(capsys, "list", "--history")[0]["forced"] is True


def test_evidence_about_other_models_is_none(here: Path, capsys: pytest.CaptureFixture[str]) -> None:
    made = told(capsys, "promote", "coder", drafted("a.toml", threshold=0.3))
    told(capsys, "rollback", "coder")
    Path("turnout.toml").write_text(CONFIG.replace("vendor-small", "vendor-tiny"))
    said = refused(capsys, 2, "promote", "coder", made["digest"])
    assert "`small` stood for `vendor-small`, and is `vendor-tiny` now" in said
    forced = told(capsys, "promote", "coder", made["digest"], "--force")
    assert forced["digest"] == served() != made["digest"]
    kept = read(Path("policies") / forced["file"])
    assert (kept.evidence, kept.came_from, kept.models["small"].model) == (None, made["digest"], "vendor-tiny")


def test_the_way_back_leads_past_a_damaged_file(here: Path, capsys: pytest.CaptureFixture[str]) -> None:
    own = served()
    first = told(capsys, "promote", "coder", drafted("a.toml", threshold=0.3))
    told(capsys, "promote", "coder", drafted("b.toml", threshold=0.4))
    file = Path("policies") / first["file"]
    file.write_text(file.read_text() + "# edited\n")
    assert "was changed after it was promoted" in refused(capsys, 2, "rollback", "coder")
    assert told(capsys, "rollback", "coder", "--to-configuration")["digest"] == ""
    assert served() == own
    told(capsys, "promote", "coder", "b.toml")
    (Path("policies") / Folder(Path("policies")).promoted()["coder"].file).unlink()
    assert run(["policy", "list"]) == 0
    assert "is promoted, and its file is gone or wrong" in capsys.readouterr().err
    assert run(["check"]) == 2
    assert "is promoted for route coder and cannot be read" in capsys.readouterr().out
    assert run(["policy", "rollback", "coder"]) == 0
    assert run(["check"]) == 0


def test_what_is_not_there_is_named_with_what_is(here: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert "has no route `codr`; did you mean `coder`" in refused(capsys, 4, "show", "codr")
    assert "has no version `ff`; there is only the configuration's own" in refused(capsys, 4, "diff", "coder", "ff")
    assert "nowhere.toml: no such file" in refused(capsys, 2, "promote", "coder", "nowhere.toml")
    said = refused(capsys, 2, "promote", "coder", "configuration")
    assert "turnout policy rollback coder --to-configuration" in said


def test_show_prints_a_policy_file(here: Path, capsys: pytest.CaptureFixture[str]) -> None:
    made = told(capsys, "promote", "coder", drafted("a.toml", threshold=0.3))
    assert run(["policy", "show", "coder"]) == 0
    shown = capsys.readouterr().out
    Path("shown.toml").write_text(shown)
    assert read(Path("shown.toml")) == read(Path("policies") / made["file"])
    assert "served since" in shown.splitlines()[0]
    whole = told(capsys, "show", "coder", "configuration")
    assert (whole["served"], whole["made_at"], whole["router"]["threshold"]) == (False, None, 0.5)
