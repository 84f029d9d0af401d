"""Where the tasks of a trial come from, what commands are filled with, and the order of runs."""

from collections import Counter
from pathlib import Path

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from turnout.errors import ClientError
from turnout.evaluate.trials.filling import check, fill
from turnout.evaluate.trials.plan import planned
from turnout.evaluate.trials.tasks import Task, tasks, variable


def test_a_file_a_folder_and_a_number_name_tasks(tmp_path: Path):
    file = tmp_path / "tasks.jsonl"
    file.write_text('{"id": "a", "prompt": "do it", "category": "fix"}\n\n{"task_id": 2, "files": ["x"]}\n')
    first, second = tasks(str(file))
    assert (first.id, first.category, first.fields["prompt"]) == ("a", "fix", "do it")
    assert (second.id, second.category, second.texts()) == ("2", "", {"files": '["x"]'})
    folder = tmp_path / "folder"
    (folder / "one").mkdir(parents=True)
    (folder / ".hidden").touch()
    assert tasks(str(folder)) == (Task("one", {"path": str(folder / "one")}),)
    assert [task.id for task in tasks("3")] == ["1", "2", "3"]


@pytest.mark.parametrize(
    ("text", "said"),
    [
        ('{"id": "a"}\n{"id": "b"', r"tasks.jsonl:2: .*expected an object such as"),
        ('{"prompt": "x"}\n', r"tasks.jsonl:1: `id` is missing"),
        ("[1]\n", r"tasks.jsonl:1: not an object"),
        ('{"id": "a"}\n{"id": "a"}\n', "the id a is there twice"),
        ("\n", "there are no tasks"),
    ],
)
def test_a_bad_file_of_tasks_is_told_with_its_line(tmp_path: Path, text: str, said: str):
    (tmp_path / "tasks.jsonl").write_text(text)
    with pytest.raises(ClientError, match=said):
        tasks(str(tmp_path / "tasks.jsonl"))


@pytest.mark.parametrize("source", ["0", "100001", "nowhere", ""])
def test_what_names_no_tasks_is_refused(source: str):
    with pytest.raises(ClientError, match="--tasks"):
        tasks(source)


def test_only_names_that_are_known_are_filled_in():
    assert fill('{id} ${id} {"a": 1} {x} {}', {"id": "7"}) == '7 ${id} {"a": 1} {x} {}'
    some = [Task("1", {"prompt": "p"}), Task("2", {"prompt": "q", "repo": "r"})]
    assert check(["{prompt}", "awk {print}", "{id}"], some) == ["print"]
    with pytest.raises(ClientError, match=r"has \{repo\}, but 1 of 2 tasks have no such field, as 1"):
        check(["{repo}"], some)
    assert variable("base commit") == "TURNOUT_TASK_BASE_COMMIT"


@settings(max_examples=20)
@given(st.integers(0, 50), st.integers(1, 8), st.integers(1, 3), st.sampled_from([("a",), ("a", "b"), ("a", "b", "c")]))
def test_every_run_is_planned_once_with_one_seed_for_all_arms(
    seed: int, count: int, trials: int, arms: tuple[str, ...]
):
    some = [Task(str(n)) for n in range(count)]
    runs = planned(arms, some, trials, seed)
    assert Counter(run.key for run in runs) == Counter(
        (arm, task.id, trial) for arm in arms for task in some for trial in range(1, trials + 1)
    )
    blocks = [runs[at : at + len(arms)] for at in range(0, len(runs), len(arms))]
    assert all(len({(run.task.id, run.trial, run.seed) for run in block}) == 1 for block in blocks)
    assert len({block[0].seed for block in blocks}) == len(blocks)
    assert runs == planned(arms, some, trials, seed)


def test_no_arm_is_favoured_by_the_order():
    first = Counter(run.arm for run in planned(("a", "b", "c"), [Task(str(n)) for n in range(300)], 1, 5)[::3])
    assert min(first.values()) > 70
