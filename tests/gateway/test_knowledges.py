"""Knowledge that a configuration names: missing, damaged, behind a URL, changed under a running gateway."""

import importlib.util
import json
import subprocess
import sys
import threading
from pathlib import Path
from typing import Any

import pytest
import uvicorn
from tests.gateway.escalating import post
from tests.gateway.retrieving import ANSWER, Policy, answer, body_of, query, retrieving, toml
from tests.gateway.test_collaboration import text_in
from tests.recorded import ROOT

from turnout.errors import ConfigError
from turnout.gateway import versions
from turnout.gateway.checking import check
from turnout.gateway.config import load
from turnout.gateway.opened import Gateway
from turnout.gateway.routes import table_of
from turnout.gateway.serve import bind
from turnout.gateway.tables import Finding
from turnout.knowledge import open_knowledge
from turnout.knowledge.building import Options, build
from turnout.knowledge.passage import Passage
from turnout.knowledge.service import application
from turnout.knowledge.statement import Document
from turnout.routing import Retrieval

DON = Passage("p2", "Doncaster", "Doncaster lies on the River Don.")
CREWE = Passage("p4", "Crewe", "Crewe is a railway town.")
FIXED = Options(embedder="hashed")


@pytest.fixture(scope="module")
def policy() -> Policy:
    made = Policy("openai_chat", ())
    made.server.close()
    return made


def findings(policy: Policy, folder: Path, knowledge: str, **fields: Any) -> list[Finding]:
    _, found = check(toml(policy, knowledge, **fields), str(folder / "turnout.toml"), {})
    return [one for one in found if one.key.startswith("routes.r")]


def error_of(policy: Policy, folder: Path, knowledge: str) -> Finding:
    (error,) = findings(policy, folder, knowledge)
    assert (error.severity, error.key) == ("error", "routes.r.knowledge")
    assert error.line is not None
    assert toml(policy, knowledge).splitlines()[error.line - 1].startswith("knowledge = ")
    return error


def test_a_folder_that_holds_no_knowledge_is_named_with_what_to_do(policy: Policy, tmp_path: Path) -> None:
    missing = error_of(policy, tmp_path, "facts")
    assert missing.message == f"no such folder: {tmp_path / 'facts'}"
    assert "turnout knowledge build" in missing.hint
    (tmp_path / "facts").mkdir()
    assert "turnout knowledge build" in error_of(policy, tmp_path, "facts").message
    (tmp_path / "facts" / "manifest.json").write_text("{")
    assert "build it again" in error_of(policy, tmp_path, "facts").message


@pytest.mark.parametrize(
    "url", ["http:///facts", "http://[::1", "http://h:port", "https://me:secret@h", "http://h/?key=secret"]
)
def test_a_url_that_names_no_service_is_told_without_what_it_holds(policy: Policy, tmp_path: Path, url: str) -> None:
    error = error_of(policy, tmp_path, url)
    assert error.message == "not the URL of a knowledge service"
    assert "secret" not in str(error)


def test_a_service_is_asked_as_a_folder_is_and_may_be_away(tmp_path: Path) -> None:
    build([Document(DON), Document(CREWE)], tmp_path / "facts", FIXED)
    listening = bind("127.0.0.1", 0)
    service = uvicorn.Server(
        uvicorn.Config(application(open_knowledge(str(tmp_path / "facts")), {}), log_level="error")
    )
    thread = threading.Thread(target=service.run, kwargs={"sockets": [listening]}, daemon=True)
    thread.start()
    texts = (query("Which river runs through Doncaster?"), answer(ANSWER))
    url = f"http://127.0.0.1:{listening.getsockname()[1]}"
    with retrieving(tmp_path, url, *texts) as (gateway, _):
        _, headers, data = post(gateway, "openai_chat", body_of("openai_chat"))
        assert headers["x-turnout-retrieval"] == "answered"
        assert text_in("openai_chat", data).startswith(f"{ANSWER} [1]\n\n[1] p2: ")
        service.should_exit = True
        thread.join(10)
        listening.close()
        _, headers, _ = post(gateway, "openai_chat", body_of("openai_chat"))
        assert headers["x-turnout-retrieval"] == "unsearched"
        (one,) = gateway.settled()[0].lookups
        assert one.failure is not None
        assert one.failure.kind == "unavailable"


def test_a_damaged_file_is_found_before_anything_is_served(policy: Policy, tmp_path: Path) -> None:
    build([Document(DON)], tmp_path / "facts", FIXED)
    (tmp_path / "turnout.toml").write_text(toml(policy, "facts"))
    config = load(tmp_path / "turnout.toml", {})
    for file in (tmp_path / "facts").iterdir():
        if file.is_file() and file.name != "manifest.json":
            file.write_bytes(b"not what was written")
    with pytest.raises(ConfigError, match=r"turnout\.toml:\d+: routes\.r\.knowledge: .*build") as raised:
        Gateway.open(config, {})
    assert raised.value.key == "routes.r.knowledge"


def test_an_extra_that_is_missing_is_said_in_a_line(
    policy: Policy, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    build([Document(DON)], tmp_path / "facts", FIXED)
    found = importlib.util.find_spec
    monkeypatch.setattr(
        importlib.util, "find_spec", lambda name, *more: None if name == "numpy" else found(name, *more)
    )
    error = error_of(policy, tmp_path, "facts")
    assert error.message.endswith("pip install 'turnout[knowledge]'")
    assert "\n" not in error.message


def test_a_router_may_not_stand_where_its_answers_would_be_lost(policy: Policy, tmp_path: Path) -> None:
    build([Document(DON)], tmp_path / "facts", FIXED)
    inner = toml(policy, "facts").replace(
        'type = "retrieval"', 'type = "affinity"\n[routes.r.router]\ntype = "retrieval"'
    )
    _, found = check(inner, str(tmp_path / "turnout.toml"), {})
    assert any("may not stand inside" in one.message for one in found)


def test_a_version_of_the_route_looks_up_in_the_same_folder(policy: Policy, tmp_path: Path) -> None:
    build([Document(DON)], tmp_path / "facts", FIXED)
    file = tmp_path / "turnout.toml"
    file.write_text(toml(policy, "facts"))
    config = load(file, None)
    version = versions.version(config, "r", {**table_of(config.routes["r"]), "max_turns": 9})
    versions.folder_of(config).add(version)
    file.write_text(toml(policy, "facts") + f'[shadows.s]\nroute = "r"\npolicy = "{version.digest[:6]}"\n')
    shadow = load(file, None).shadows["s"]
    assert isinstance(shadow.by.router, Retrieval)
    assert (shadow.by.policy, shadow.by.router.max_turns) == (version.digest, 9)
    assert shadow.by.router.rests_on != ""


def test_what_it_knows_is_part_of_the_policy_and_taken_over_by_a_reload(tmp_path: Path) -> None:
    folder = tmp_path / "facts"
    build([Document(CREWE)], folder, FIXED)
    texts = (query("Which river runs through Doncaster?"), answer(ANSWER))
    with retrieving(tmp_path, "facts", *texts, capture="signals") as (gateway, _):
        before = gateway.gateway
        _, headers, _ = post(gateway, "openai_chat", body_of("openai_chat"))
        assert headers["x-turnout-retrieval"] == "unsupported"
        assert gateway.reload()
        kept = gateway.gateway.library.shelves["facts"].knowledge
        assert kept is before.library.shelves["facts"].knowledge
        build([Document(DON)], folder, FIXED)
        assert gateway.reload()
        assert gateway.gateway.library.shelves["facts"].knowledge is not kept
        _, again, data = post(gateway, "openai_chat", body_of("openai_chat"))
        assert again["x-turnout-retrieval"] == "answered"
        assert text_in("openai_chat", data).startswith(f"{ANSWER} [1]\n\n[1] p2: ")
        assert again["x-turnout-policy"] != headers["x-turnout-policy"]


def test_a_gateway_without_such_a_route_loads_nothing_for_it(tmp_path: Path) -> None:
    text = '[upstreams.u]\nformat = "openai_chat"\nscript = "replies.jsonl"\n[targets.t]\nupstream = "u"\nmodel = "m"\n'
    (tmp_path / "replies.jsonl").write_text(json.dumps({"text": "hi"}) + "\n")
    (tmp_path / "turnout.toml").write_text(text + '[routes.r]\ntype = "passthrough"\ntarget = "t"\n')
    code = (
        "import sys, asyncio\nfrom pathlib import Path\nfrom turnout.gateway.config import load\n"
        "from turnout.gateway.opened import Gateway\n"
        f"config = load(Path({str(tmp_path / 'turnout.toml')!r}), {{}})\n"
        "async def opened():\n    await Gateway.open(config, {}).close()\n"
        "asyncio.run(opened())\n"
        "print(*(m for m in ('numpy', 'faiss', 'bm25s', 'torch', 'turnout.knowledge.search') if m in sys.modules))"
    )
    ran = subprocess.run(
        [sys.executable, "-c", code],
        env={"PYTHONPATH": str(ROOT / "src"), "HOME": str(tmp_path)},
        cwd=tmp_path,
        capture_output=True,
        text=True,
        check=True,
    )
    assert ran.stdout.strip() == ""
