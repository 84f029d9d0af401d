"""Every format: told from its content, and read into the turns and outcomes it holds."""

import gzip
import json
from pathlib import Path

import pytest
from tests.evaluate.importers.ledgers import content, imported, turns
from tests.evaluate.importers.samples import CSV, SAMPLES, Sample, claude_code, codex, lines, table, tau_bench, written

from turnout.conversation import Usage
from turnout.evaluate.importers.formats import BY_NAME, detect
from turnout.evaluate.importers.source import Source
from turnout.ledger.store import Ledger

each = pytest.mark.parametrize("sample", SAMPLES, ids=lambda sample: f"{sample.format}-{sample.name}")


@each
def test_the_format_is_told_from_the_content(sample: Sample, tmp_path: Path) -> None:
    path = tmp_path / "anything"
    path.write_bytes(sample.data)
    importer = detect(Source(path))
    assert importer is not None
    assert importer.name == sample.format


@each
def test_every_turn_and_outcome_is_read(sample: Sample, tmp_path: Path) -> None:
    report = imported(written(tmp_path, sample), tmp_path / "a.db")
    assert (report.turns, report.outcomes) == (sample.turns, sample.outcomes)
    assert (report.new_turns, report.new_outcomes) == (sample.turns, sample.outcomes)
    assert report.skipped == {}
    assert len(turns(tmp_path / "a.db")) == sample.turns


@each
def test_the_same_file_twice_adds_nothing(sample: Sample, tmp_path: Path) -> None:
    imported(written(tmp_path, sample), tmp_path / "a.db")
    before = content(tmp_path / "a.db")
    again = imported(written(tmp_path, sample), tmp_path / "a.db")  # written anew, so it is read anew
    assert again.status == "imported"
    assert (again.new_turns, again.new_outcomes) == (0, 0)
    assert imported(tmp_path / sample.name, tmp_path / "a.db").status == "imported before"
    assert content(tmp_path / "a.db") == before


@each
def test_what_is_compressed_or_utf_16_reads_the_same(sample: Sample, tmp_path: Path) -> None:
    plain = written(tmp_path, sample)
    imported(plain, tmp_path / "plain.db")
    expected = [(t.id, t.signals, t.usage) for t in turns(tmp_path / "plain.db")]
    for name, data in (("gz", gzip.compress(sample.data)), ("utf16", sample.data.decode().encode("utf-16"))):
        path = tmp_path / name / sample.name
        path.parent.mkdir()
        path.write_bytes(data)
        report = imported(path, tmp_path / f"{name}.db")
        assert (report.turns, report.outcomes, report.skipped) == (sample.turns, sample.outcomes, {})
        assert [(t.id, t.signals, t.usage) for t in turns(tmp_path / f"{name}.db")] == expected


@each
def test_a_turn_sees_what_came_before_it_and_nothing_after(sample: Sample, tmp_path: Path) -> None:
    imported(written(tmp_path, sample), tmp_path / "a.db")
    lanes: dict[tuple[str, str], int] = {}
    for turn in turns(tmp_path / "a.db"):
        signals = turn.signals
        assert signals is not None
        before = lanes.get((turn.session, turn.agent), 0)
        assert signals.results >= before
        lanes[turn.session, turn.agent] = signals.results


def test_claude_code_lines_of_one_message_are_one_turn(tmp_path: Path) -> None:
    path = tmp_path / "log.jsonl"
    path.write_bytes(lines(claude_code(1, 2)))
    imported(path, tmp_path / "a.db")
    first, second = turns(tmp_path / "a.db")
    assert first.usage == Usage(5, 100, 1000)
    assert (first.stop, first.agent_program, first.format) == ("tool_calls", "claude-code", "anthropic_messages")
    assert first.at == 1_772_359_200.0
    assert first.total_s == 4.0
    assert second.signals is not None
    assert [(o.kind, o.status) for o in second.signals.observations] == [("test", "failed")]
    # 5 input, 1000 read, 100 output at the prices of that date
    assert first.cost_usd == pytest.approx((5 * 3 + 1000 * 0.3 + 100 * 15) / 1e6)


def test_claude_code_results_between_the_lines_of_a_message_belong_behind_it(tmp_path: Path) -> None:
    first, second, answer = claude_code(1, 1)[2:]
    two = json.loads(json.dumps(second))
    two["message"]["content"][0]["id"] = "toolu_b"
    behind = json.loads(json.dumps(answer))
    behind["message"]["content"][0]["tool_use_id"] = "toolu_b"
    path = tmp_path / "log.jsonl"
    path.write_bytes(lines([*claude_code(1, 1)[:2], first, second, answer, two, behind]))
    assert imported(path, tmp_path / "a.db").turns == 1


def test_claude_code_sidechains_are_lanes_of_their_own(tmp_path: Path) -> None:
    rows = claude_code(1, 2)
    child = [
        {**row, "isSidechain": True, "agentId": "a1"} for row in json.loads(json.dumps(rows)) if "sessionId" in row
    ]
    for row in child:
        if row["type"] == "assistant":
            row["message"]["id"] = f"child-{row['message']['id']}"
    path = tmp_path / "log.jsonl"
    path.write_bytes(lines(row for pair in zip(rows[1:], child, strict=True) for row in pair))
    imported(path, tmp_path / "a.db")
    assert [(t.agent, t.agent_kind) for t in turns(tmp_path / "a.db")] == [("", "main")] * 2 + [("a1", "subagent")] * 2


def test_claude_code_sessions_that_were_resumed_are_not_charged_twice(tmp_path: Path) -> None:
    rows = claude_code(1, 4)
    (tmp_path / "first.jsonl").write_bytes(lines(rows[:8]))
    resumed = [{**row, "sessionId": "session-resumed"} if "sessionId" in row else row for row in rows]
    (tmp_path / "second.jsonl").write_bytes(lines(resumed))
    assert imported(tmp_path / "first.jsonl", tmp_path / "a.db").new_turns == 2
    second = imported(tmp_path / "second.jsonl", tmp_path / "a.db")
    assert (second.turns, second.new_turns) == (4, 2)


def test_codex_counts_each_call_once(tmp_path: Path) -> None:
    path = tmp_path / "rollout-x.jsonl"
    path.write_bytes(lines(codex(2)))
    imported(path, tmp_path / "a.db")
    found = turns(tmp_path / "a.db")
    assert [t.usage for t in found] == [Usage(400, 20, 600, None, None, 8), Usage(400, 40, 600, None, None, 8), None]
    assert {(t.session, t.model, t.agent_program) for t in found} == {("rollout-1", "gpt-5.1-codex", "codex")}
    assert found[2].cost_usd is None
    assert found[2].cost_note.startswith("unknown")


def test_codex_turns_that_begin_alike_are_all_kept(tmp_path: Path) -> None:
    said = {"type": "message", "role": "assistant", "content": [{"type": "output_text", "text": "Next."}]}
    asked = {"type": "message", "role": "user", "content": [{"type": "input_text", "text": "Go on."}]}
    start = {"id": "old-rollout", "timestamp": "2025-09-01T10:00:00Z", "instructions": None}
    path = tmp_path / "rollout-old.jsonl"
    path.write_bytes(lines([start, *([asked, said, {"record_type": "state"}] * 3)]))
    assert imported(path, tmp_path / "a.db").new_turns == 3
    assert {t.session for t in turns(tmp_path / "a.db")} == {"old-rollout"}


def test_opencode_prices_what_opencode_does_not(tmp_path: Path) -> None:
    first, second = (turns_of("opencode", tmp_path)[i] for i in (0, 1))
    assert (first.cost_usd, first.cost_note) == (0.002, "as recorded")
    assert second.cost_usd == pytest.approx((900 + 50 * 5 + 100 * 0.1) / 1e6)
    assert second.signals is not None
    assert second.signals.observations[0].status == "failed"


def test_mini_swe_agent_commands_and_exit_codes(tmp_path: Path) -> None:
    first, second = turns_of("mini-swe-agent", tmp_path)
    assert first.usage == Usage(1000, 60, 200)
    assert (second.cost_usd, second.at, second.total_s) == (0.02, 1_772_000_010, 2.5)
    assert second.signals is not None
    assert second.signals.observations[0].exit_code == 2


def test_outcomes_name_the_session_of_their_turns(tmp_path: Path) -> None:
    for sample in SAMPLES:
        if sample.turns and sample.outcomes:
            path = tmp_path / sample.format
            path.mkdir()
            imported(written(path, sample), path / "a.db")
            store = Ledger.read(f"sqlite:///{path / 'a.db'}")
            sessions = {t.session for t in turns(path / "a.db")}
            with store.task_outcomes() as found:
                assert {one.outcome.session for one in found} == sessions
            store.close()


def test_tau_bench_succeeds_where_the_reward_is_whole(tmp_path: Path) -> None:
    path = tmp_path / "a.json"
    path.write_text(json.dumps(tau_bench(3)), "utf-8")
    imported(path, tmp_path / "a.db")
    store = Ledger.read(f"sqlite:///{tmp_path / 'a.db'}")
    with store.task_outcomes() as found:
        assert [(o.outcome.task, o.outcome.success) for o in found] == [("0", False), ("1", True), ("2", False)]
    store.close()


def test_a_table_of_csv_keeps_quoted_lines_and_empty_fields(tmp_path: Path) -> None:
    path = tmp_path / "a.csv"
    path.write_text(CSV, "utf-8")
    imported(path, tmp_path / "a.db")
    store = Ledger.read(f"sqlite:///{tmp_path / 'a.db'}")
    with store.task_outcomes() as found:
        rows = [(o.outcome.task, o.outcome.success, o.outcome.cost_usd, o.outcome.steps) for o in found]
    assert rows == [("t1", True, 0.1, 3), ("t2", False, None, 4), ("t3", True, 0.5, 2)]
    store.close()


def test_equal_rows_of_a_table_both_happened(tmp_path: Path) -> None:
    path = tmp_path / "a.jsonl"
    path.write_bytes(lines(table(2)) * 2)
    assert imported(path, tmp_path / "a.db").new_outcomes == 4


def test_one_row_may_tell_of_several_models(tmp_path: Path) -> None:
    path = tmp_path / "a.jsonl"
    path.write_bytes(lines([{"query_id": "q1", "success": {"small": False, "large": True}}]))
    imported(path, tmp_path / "a.db")
    store = Ledger.read(f"sqlite:///{tmp_path / 'a.db'}")
    with store.task_outcomes() as found:
        assert [(o.outcome.model, o.outcome.success) for o in found] == [("small", False), ("large", True)]
    store.close()


def test_parquet_reads_as_json_lines_do(tmp_path: Path) -> None:
    polars = pytest.importorskip("polars", reason="polars is not installed (extra `report`)")
    (tmp_path / "a.jsonl").write_bytes(lines(table(5)))
    polars.read_ndjson(tmp_path / "a.jsonl").write_parquet(tmp_path / "a.parquet")
    found = []
    for name in ("a.jsonl", "a.parquet"):
        assert imported(tmp_path / name, tmp_path / f"{name}.db").outcomes == 5
        store = Ledger.read(f"sqlite:///{tmp_path / name}.db")
        with store.task_outcomes() as rows:
            found.append([row.outcome for row in rows])
        store.close()
    assert found[0] == found[1]


def test_a_format_can_be_named(tmp_path: Path) -> None:
    path = tmp_path / "a.jsonl"
    path.write_bytes(lines(table(3)))
    assert imported(path, tmp_path / "a.db", format="openai-chat").skipped == {"no list of messages": 3}
    assert set(BY_NAME) >= {sample.format for sample in SAMPLES}


def test_a_file_of_no_known_format_is_said(tmp_path: Path) -> None:
    path = tmp_path / "a.json"
    path.write_text('{"a": 1}', "utf-8")
    assert imported(path, tmp_path / "a.db").status == "format not known"


def turns_of(format: str, folder: Path) -> list:  # type: ignore[type-arg]
    """The turns of the first sample of a format."""
    sample = next(sample for sample in SAMPLES if sample.format == format)
    imported(written(folder, sample), folder / "a.db")
    return turns(folder / "a.db")
