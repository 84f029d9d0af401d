"""The recorded collections: every row and every model's message is read."""

import gzip
import os
from pathlib import Path

import pytest
from tests.evaluate.importers.ledgers import imported, turns
from tests.recorded import needs_recordings, rows, shared

from turnout.ledger.store import Ledger

pytestmark = needs_recordings

TRAJECTORIES = (
    "sessions_coding_agents",
    "traj_ljoukov_agent_bench",
    "traj_sweagent_lm32b_swebench_verified",
    "traj_taubench_gpt4o_airline",
    "traj_miniswe_sonnet4_terminal_bench",
)
TABLES = ("outcomes_swebench_pro_sweagent", "outcomes_terminal_bench_core_0_1_1", "router_bfcl_2024_08_11")


def path(name: str) -> Path:
    folder = shared()
    assert folder is not None
    return folder / "data" / "traces" / f"{name}.jsonl.gz"


@pytest.mark.parametrize("name", TRAJECTORIES)
def test_every_reply_is_a_turn(name: str, tmp_path: Path) -> None:
    report = imported(path(name), tmp_path / "a.db")
    expected = sum(m["role"] == "assistant" for row in rows(f"traces/{name}.jsonl.gz") for m in row["messages"])
    assert report.turns == report.new_turns == expected
    assert report.skipped == {}


@pytest.mark.parametrize("name", TABLES)
def test_every_row_is_an_outcome(name: str, tmp_path: Path) -> None:
    recorded = rows(f"traces/{name}.jsonl.gz")
    report = imported(path(name), tmp_path / "a.db")
    assert report.new_outcomes == len(recorded)
    store = Ledger.read(f"sqlite:///{tmp_path}/a.db")
    with store.task_outcomes() as found:
        outcomes = [one.outcome for one in found]
    store.close()
    for key, ours in (
        ("success", "success"),
        ("cost_usd", "cost_usd"),
        ("tokens_in", "input_tokens"),
        ("steps", "steps"),
    ):
        assert [getattr(o, ours) for o in outcomes] == [row.get(key) for row in recorded]
    assert [(o.task, o.model, o.trial) for o in outcomes] == [
        (row.get("task_id") or row["query_id"], row["model"], str(row["trial"]) if row.get("trial") is not None else "")
        for row in recorded
    ]


def test_costs_of_calls_add_up_to_what_their_task_cost(tmp_path: Path) -> None:
    name = "traj_miniswe_gemini3pro_swebench_verified"
    with gzip.open(path(name), "rb") as file:
        (tmp_path / "some.jsonl").write_bytes(b"".join(line for line, _ in zip(file, range(12), strict=False)))
    imported(tmp_path / "some.jsonl", tmp_path / "a.db")
    spent: dict[str, float] = {}
    for turn in turns(tmp_path / "a.db"):
        spent[turn.session] = spent.get(turn.session, 0.0) + (turn.cost_usd or 0.0)
    store = Ledger.read(f"sqlite:///{tmp_path}/a.db")
    with store.task_outcomes() as found:
        for one in found:
            assert one.outcome.cost_usd == pytest.approx(spent[one.outcome.session], abs=2e-3)
    store.close()


@pytest.mark.skipif(not os.environ.get("CI"), reason="reads ten thousand turns; CI does")
def test_the_largest_collection_is_read_whole(tmp_path: Path) -> None:
    name = "traj_miniswe_gemini3pro_swebench_verified"
    assert imported(path(name), tmp_path / "a.db").turns == 10_115
