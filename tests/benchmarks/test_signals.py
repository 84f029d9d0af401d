"""The benchmark of signals: draws, verdicts and rates, what contenders are asked, tables and the plot."""

import gzip
import json
import os
import sys
from pathlib import Path
from typing import Any

import pytest

BENCHMARKS = Path(__file__).resolve().parents[2] / "benchmarks"
sys.path.append(str(BENCHMARKS))

import signals_contenders  # noqa: E402
import signals_sample  # noqa: E402
from signals_sample import Verdict  # noqa: E402

import signals  # noqa: E402
from turnout.evaluate.labels import labelled  # noqa: E402
from turnout.statistics.shares import wilson  # noqa: E402

TRACEBACK = "Traceback (most recent call last):\nValueError: bad value"


def call(number: int, command: str) -> dict[str, Any]:
    function = {"name": "bash", "arguments": json.dumps({"command": command})}
    asked = {"id": f"c{number}", "type": "function", "function": function}
    return {"role": "assistant", "content": f"Try {number}.", "tool_calls": [asked]}


def result(number: int, text: str, **known: object) -> dict[str, Any]:
    return {"role": "tool", "tool_call_id": f"c{number}", "content": text, **known}


FAILING = [
    {"role": "system", "content": "Be brief."},
    {"role": "user", "content": "Make it work."},
    *(row for i in range(4) for row in (call(i, "python x.py"), result(i, TRACEBACK, is_error=True))),
]
WORKING = [{"role": "user", "content": "Look."}, call(1, "ls"), result(1, "a.py", is_error=False)]


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    text = "".join(json.dumps({"messages": messages}) + "\n" for messages in (FAILING, WORKING))
    (tmp_path / "sessions.jsonl.gz").write_bytes(gzip.compress(text.encode()))
    return tmp_path


def label_file(folder: Path) -> Path:
    rows: list[dict[str, Any]] = [
        {"file": "sessions", "row": 0, "message_index": 3, "error_class": "capability", "split": "first"},
        {"file": "sessions", "row": 0, "message_index": 9, "error_class": "capability", "split": "second"},
        {"file": "sessions", "row": 1, "message_index": 2, "error_class": "none", "split": "second"},
        {"file": "sessions", "row": 0, "message_indices": [3, 5, 7, 9], "repeated": True, "split": "second"},
    ]
    file = folder / "labels.jsonl"
    file.write_text("".join(json.dumps(row) + "\n" for row in rows))
    return file


ALL = [("sessions", 0, 3), ("sessions", 0, 5), ("sessions", 0, 7), ("sessions", 0, 9), ("sessions", 1, 2)]


def test_only_results_that_nobody_judged_are_drawn(folder: Path) -> None:
    judged = signals_sample.labelled_places([label_file(folder), folder / "absent.jsonl"])
    assert judged == frozenset([ALL[0], ALL[3], ALL[4]])
    assert signals_sample.population(folder, ["sessions"]) == ALL
    assert signals_sample.drawn(ALL, judged, 5, 1) == ALL[1:3]


def test_a_seed_draws_the_same_results_and_another_seed_others() -> None:
    places = [("f", 0, i) for i in range(1000)]
    first = signals_sample.drawn(places, frozenset(), 30, 1)
    assert first == signals_sample.drawn(places, frozenset(), 30, 1) == sorted(set(first))
    assert len(first) == 30
    assert first != signals_sample.drawn(places, frozenset(), 30, 2)
    assert signals_sample.drawn(places, frozenset(), 5000, 1) == places


def test_more_labels_replace_only_what_they_label() -> None:
    places = [("f", 0, i) for i in range(1000)]
    before = signals_sample.drawn(places, frozenset(), 30, 1)
    after = signals_sample.drawn(places, frozenset(before[:3]), 30, 1)
    assert set(before[3:]) <= set(after)
    assert len(after) == 30
    assert not set(before[:3]) & set(after)


def test_rates_are_those_counted_by_hand(folder: Path) -> None:
    sample = list(signals_sample.observed(folder, ALL))
    assert [one.seen.error_class for _, one in sample] == ["capability"] * 4 + ["none"]
    found = {
        place: Verdict(*place, verdict)  # type: ignore[arg-type]
        for place, verdict in zip(ALL, ["right", "false_alarm", "right", "unread", "missed"], strict=True)
    }
    told = signals_sample.figures(sample, found)
    assert (told["drawn"], told["alarms"]) == (5, 4)
    assert told["of_alarms"] == {"right": 2, "false_alarm": 1, "unclear": 0, "unread": 1}
    assert told["false_alarms_of_drawn"]["value"] == pytest.approx(1 / 5)
    rate = told["false_alarms_of_alarms_read"]
    assert (rate["hits"], rate["of"]) == (1, 3)
    assert (rate["low"], rate["high"]) == pytest.approx(wilson(1, 3))
    assert told["missed"] == ["sessions:1:2"]
    assert "Traceback" not in json.dumps(told)


def test_a_draft_asks_for_every_alarm_and_keeps_what_was_read(folder: Path) -> None:
    sample = list(signals_sample.observed(folder, ALL))
    file = folder / "verdicts" / "v.jsonl"
    assert signals_sample.verdicts(file) == {}
    read = {ALL[1]: Verdict(*ALL[1], "false_alarm", "the user asked for it")}
    signals_sample.keep(file, signals_sample.draft(sample, read))
    kept = signals_sample.verdicts(file)
    assert sorted(kept) == ALL[:4]
    assert kept[ALL[1]].note == "the user asked for it"
    assert kept[ALL[0]].verdict == "unread"
    assert "Traceback" not in file.read_text()


def test_a_result_is_shown_with_call_excerpt_and_evidence(folder: Path) -> None:
    ((_, one),) = signals_sample.observed(folder, ALL[:1])
    shown = signals_sample.show(7, one, None, 900)
    for part in (
        "7. sessions:0:3",
        "python x.py",
        "| ValueError: bad value",
        "by flag",
        "unread",
        "before    Try 0.",
        "next      Try 1.",
    ):
        assert part in shown
    assert "characters ..." in signals_sample.show(7, one, None, 20)


def test_a_terminal_session_gives_verdicts(folder: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    ((place, one),) = signals_sample.observed(folder, ALL[:1])
    answers = iter(["x", "f it was asked for", "q"])
    monkeypatch.setattr("builtins.input", lambda _: next(answers))
    assert signals_sample.ask(1, one, place, 900) == Verdict(*place, "false_alarm", "it was asked for")
    assert signals_sample.ask(1, one, place, 900) is None


def test_turnout_decides_alone_and_in_session(folder: Path) -> None:
    said = signals_contenders.turnout(labelled(label_file(folder)))
    assert [one.error_class for one in said.results] == ["capability", "capability", "none"]
    # The fourth failure of one kind calls for the capable model and a good result does not, whatever is remembered.
    assert said.alone[1:] == said.session[1:] == (True, False)
    # A lower threshold never takes the capable model away, and the default is one of those asked for.
    for up, alone in zip(said.curve, said.alone, strict=True):
        assert list(up) == sorted(up, reverse=True)
        assert up[signals_contenders.THRESHOLDS.index(0.5)] == alone
    assert len(said.windows) == 1


def test_the_turns_of_a_session_are_those_after_which_a_model_was_asked(folder: Path) -> None:
    one = labelled(label_file(folder)).results[1]
    assert signals_contenders.turns_before(one.conversation, 9) == [1, 3, 5, 7]
    rows = signals_contenders.chat_rows(one.conversation)
    assert [row["role"] for row in rows] == [row["role"] for row in FAILING]
    assert rows[2]["tool_calls"][0]["function"] == FAILING[2]["tool_calls"][0]["function"]  # type: ignore[index]
    assert (rows[3]["content"], rows[3]["is_error"]) == (TRACEBACK, True)


def report(folder: Path) -> dict[str, Any]:
    return signals.report([("small", labelled(label_file(folder))), ("again", labelled(label_file(folder)))], None)


def test_the_table_holds_every_question_with_counts(folder: Path) -> None:
    told = report(folder)
    text = signals.markdown(told)
    assert "| capability or critical | precision | 1.00 [0.34 1.00] 2/2 | 0.93 |" in text
    assert "| capable model, no memory | where needed | " in text
    assert "|  | elsewhere | 0.00 [0.00 0.79] 0/1 |  |" in text
    assert "| capability or critical, precision | 1.00 [0.34 1.00] | 1.00 [0.34 1.00] | 0.93 |" in text
    assert text.count("**small**") == text.count("**again**") == 1
    assert json.loads(json.dumps(told))["sets"][0]["agreement"]["Turnout"]["confusion"]["capability"]["capability"] == 2
    assert "ValueError" not in json.dumps(told)


def test_the_plot_is_drawn(folder: Path) -> None:
    pytest.importorskip("matplotlib")
    from signals_plot import plot

    made = plot(report(folder), signals.WANTED, folder / "out")
    assert [path.name for path in made] == ["signals.svg", "signals.png", "decisions.svg", "decisions.png"]
    assert "<svg" in made[0].read_text("utf-8")
    assert made[3].read_bytes().startswith(b"\x89PNG")


@pytest.fixture
def recordings(folder: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A folder as the benchmark expects it: the collections, the shared labels, and labels of our own in two halves."""
    for name in signals_sample.COLLECTIONS:
        (folder / f"{name}.jsonl.gz").write_bytes(gzip.compress(b""))
    (folder / "sessions.jsonl.gz").rename(folder / "sessions_coding_agents.jsonl.gz")
    lines = label_file(folder).read_text().replace('"sessions"', '"sessions_coding_agents"').splitlines(keepends=True)
    ours = folder / "ours"
    ours.mkdir()
    for place, names in ((folder, signals.SHARED), (ours, signals.OURS)):
        for name, part in zip(names, (lines[:3], lines[3:]), strict=True):
            (place / name).write_text("".join(part))
    monkeypatch.setattr(signals, "LABELS", ours)
    return folder


def ran(monkeypatch: pytest.MonkeyPatch, *arguments: object) -> int:
    monkeypatch.setattr(sys, "argv", ["signals.py", *map(str, arguments)])
    return int(signals.main())


def test_a_run_reports_each_set_and_each_half_by_itself(
    recordings: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    pytest.importorskip("matplotlib")
    assert ran(monkeypatch, recordings, "--out", recordings / "out") == 0
    out = capsys.readouterr().out
    for part in ("**shared**: 3 results, 1 windows", "**new, first half**: 1 results", "half (unseen)**: 2 results"):
        assert part in out
    made = {path.name for path in (recordings / "out").iterdir()}
    assert made == {"signals.json", "signals.png", "signals.svg", "decisions.png", "decisions.svg"}
    assert [one["results"] for one in json.loads((recordings / "out" / "signals.json").read_text())["sets"]] == [
        3,
        1,
        2,
    ]


def test_a_draw_is_read_and_counted_from_a_file(
    recordings: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    file = recordings / "verdicts.jsonl"
    assert ran(monkeypatch, recordings, "--sample", 9, "--verdicts", file, "--draft", "--out", recordings) == 0
    assert "2 others drawn with seed 1" in capsys.readouterr().out
    assert [one.message_index for one in signals_sample.verdicts(file).values()] == [5, 7]
    file.write_text(file.read_text().replace("unread", "false_alarm", 1).replace("unread", "right"))
    assert ran(monkeypatch, recordings, "--sample", 9, "--verdicts", file, "--out", recordings) == 0
    out = capsys.readouterr().out
    assert "false alarms: 50.00% of the results" in out
    assert "still unread" not in out
    assert "ValueError" in out
    kept = (recordings / "false_alarms.json").read_text()
    assert json.loads(kept)["of_alarms"] == {"right": 1, "false_alarm": 1, "unclear": 0, "unread": 0}
    assert "ValueError" not in kept


def test_what_is_not_there_is_said(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    assert ran(monkeypatch, tmp_path) == 2
    assert "labels_tool_results.jsonl" in capsys.readouterr().err


@pytest.mark.skipif("TURNOUT_SWITCHYARD" not in os.environ, reason="TURNOUT_SWITCHYARD names no environment with it")
def test_switchyard_is_read_off_its_decisions(folder: Path) -> None:
    venv = Path(os.environ["TURNOUT_SWITCHYARD"])
    cases = [
        ("bash", "fine", None, 0.0, False),
        ("bash", "exit code 1", None, 0.3, False),
        ("bash", "ValueError: bad value", None, 0.7, False),
        ("bash", "fine", True, 0.7, False),
        ("bash", "out of memory", None, 1.0, False),
        ("write_file", "fine", None, 0.0, False),
        ("write_file", "exit code 1", None, 0.3, False),
        ("write_file", "ValueError: bad value", None, 0.7, False),
        ("bash", "3 passed in 0.1s", None, 0.0, True),
        ("bash", "1 failed, 3 passed in 0.1s", None, 0.0, False),
    ]
    asked = [
        {"ask": "result", "call": {"name": name, "arguments": "{}"}, "text": text, "is_error": flag}
        for name, text, flag, *_ in cases
    ]
    told = signals_contenders.probe(venv, asked)
    assert [(one["severity"], one["tests_passed"]) for one in told] == [case[3:] for case in cases]
    said = signals_contenders.switchyard(labelled(label_file(folder)), venv)
    assert [one.error_class for one in said.results] == ["capability", "capability", "none"]
    assert said.alone == (False, True, False)
    assert said.windows[0].repeated
    assert [up[signals_contenders.THRESHOLDS.index(0.5)] for up in said.curve] == list(said.alone)
    assert said.curve[0][0]
