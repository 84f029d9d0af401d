"""The report of training: what is read from folders, that figures are those of the rows, and that nothing is loaded."""

from pathlib import Path

import msgspec
import pytest
from tests.pages.opened import Opened

from turnout.errors import ClientError
from turnout.train.bench import WORLDS, Job, Outcome
from turnout.train.credit import Route
from turnout.train.evaluation import Scored
from turnout.train.report import html
from turnout.train.report_plots import parts
from turnout.train.results import Run, read

STEP = {"step_time": 3.0, "seconds/rollout": 2.0, "seconds/retrieval": 0.5, "path/p": 0.4, "reward": 1.0}


def scores(right: int, of: int, route: Route) -> tuple[Scored, ...]:
    return tuple(
        Scored(
            f"q{n} </script>", "a", float(n < right), float(n < right), 0.1 * (n % 5), 0.25 * (n % 5), 0.0, 2, 3, route
        )
        for n in range(of)
    )


def steps(count: int, **more: float) -> bytes:
    rows = [{"step": n + 1, **STEP, "route/faithful_success": n / count, **more} for n in range(count)]
    return b"".join(msgspec.json.encode(row) + b"\n" for row in [*rows, {"step": count, "train_runtime": 9.0}])


@pytest.fixture
def bench(tmp_path: Path) -> Path:
    """A benchmark of two arms, and a metrics line that was cut."""
    folder = tmp_path / "bench"
    for arm, right, route in (("full", 18, Route.FAITHFUL), ("grpo", 4, Route.SHORTCUT)):
        job = Job(arm, 0, "main")
        (folder / job.name).mkdir(parents=True)
        outcome = Outcome(job, {world: scores(right, 20, route) for world in WORLDS}, 12.0, {})
        (folder / f"{job.name}.json").write_bytes(msgspec.json.encode(outcome))
        (folder / job.name / "metrics.jsonl").write_bytes(steps(6) + b'{"step":7,')
    (folder / "settings.json").write_text('{"other": 1}')
    return folder


def test_the_page_of_a_benchmark_shows_its_rows_and_loads_nothing(bench: Path) -> None:
    found = read([bench])
    assert [(run.name, len(run.steps)) for run in found.runs] == [("main-full-0", 6), ("main-grpo-0", 6)]
    assert len(found.notes) == 2
    page = Opened(html(found))
    assert page.reaches_out() == []
    assert page.text.count("<svg") == 5
    rows = page.shown_by("scores", group="main", arm="full", world="held_out")
    (line,) = [one for one in found.lines if (one.arm, one.world) == ("full", "held_out")]
    assert line.f1.value == sum(row["f1"] for row in rows) / len(rows) == 0.9
    assert len(page.shown_by("scores", group="main", arm="grpo", world="held_out", route="shortcut_success")) == 20
    assert [row["step"] for row in page.rows("steps") if row["run"] == "main-grpo-0"] == [1, 2, 3, 4, 5, 6]
    assert "On held-out questions PathRouter has F1 90.0 %" in page.text
    assert 'class="verdict good"' in page.text
    assert html(found) == page.text


def test_scores_that_were_kept_twice_count_once_and_questions_are_no_scores(tmp_path: Path) -> None:
    kept = [
        {"model": "runs/a/model", "data": "dev.jsonl", "arm": "agent", **msgspec.to_builtins(one)}
        for one in (*scores(1, 4, Route.FAITHFUL), *scores(3, 4, Route.FAITHFUL))
    ]
    (tmp_path / "scores.jsonl").write_bytes(b"".join(msgspec.json.encode(row) + b"\n" for row in kept))
    (tmp_path / "train.jsonl").write_text('{"question": "Where?"}\n')
    found = read([tmp_path])
    (line,) = found.lines
    assert (line.setting, line.world, line.arm, line.f1.value) == ("model", "dev.jsonl", "agent", 0.75)
    assert read([tmp_path / "scores.jsonl"]).rows == found.rows
    assert Opened(html(found)).text.count("<svg") == 2


def test_a_run_alone_has_curves_and_no_means(tmp_path: Path) -> None:
    (tmp_path / "metrics.jsonl").write_bytes(steps(3, **{"teacher/kl_query": 0.2, "teacher/lambda": 0.1}))
    text = html(read([tmp_path]))
    assert text.count("<svg") == 4
    assert "No answers were scored here" in text


def test_the_parts_of_a_step_add_up_to_it() -> None:
    took = parts(Run("r", ({**STEP, "step": 1, "seconds/teacher": 0.25}, {**STEP, "step": 2})))
    assert sum(took.values()) == pytest.approx(3.0)
    assert (took["model"], took["retrieval"], took["teacher"]) == (1.5, 0.5, 0.125)


def test_a_folder_without_results_is_named(tmp_path: Path, bench: Path) -> None:
    (tmp_path / "empty").mkdir()
    with pytest.raises(ClientError, match="empty holds no results"):
        read([bench, tmp_path / "empty"])
    with pytest.raises(ClientError, match="nowhere does not exist"):
        read([tmp_path / "nowhere"])
