"""Draw the tool results and the 8-call windows that are labelled by hand.

    python benchmarks/labels/sample.py OUT_DIR

Writes ``sample.jsonl`` and ``sample_windows.jsonl``: references into the recorded collections, in shuffled order and
without the stratum a row was drawn for, so that a labeller cannot guess from it. ``sample_strata.json`` keeps the
strata apart. The words below only find candidates; what a row is, is decided by reading it. Every stratum is drawn at
random from its candidates with the seed below, but for four windows picked by hand; the strata named "random" are drawn
without any condition. Rows labelled before are left out.

The recordings are looked for in the folder named by TURNOUT_SHARED, else in ``shared`` beside the repository.
"""

import gzip
import json
import os
import random
import re
import sys
from collections import Counter, defaultdict
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

SEED = 20250817
WINDOW = 8
TWICE_RESULTS = 160
TWICE_WINDOWS = 61
SECOND_DRAW = 56
THIRD_DRAW = 44
FOURTH_DRAW = 34
# Picked while reading the recordings, not drawn: background jobs polled without result; (row, number of the first call).
PICKED = ((42, 2), (42, 10), (42, 18), (79, 16))
SESSIONS = "sessions_coding_agents"
GEMINI = "traj_miniswe_gemini3pro_swebench_verified"
SONNET = "traj_miniswe_sonnet4_terminal_bench"
COLLECTIONS = (
    SESSIONS,
    "traj_ljoukov_agent_bench",
    GEMINI,
    SONNET,
    "traj_sweagent_lm32b_swebench_verified",
    "traj_taubench_gpt4o_airline",
)
SHARED = Path(os.environ.get("TURNOUT_SHARED") or Path(__file__).resolve().parents[2].parent / "shared")

KILLED = re.compile(r"timed\s?out\s?and\s?has\s?been\s?killed|timed out after", re.I)
NETWORK_WORK = re.compile(
    r"\bpip3?\b|conda|apt-get|\bapt\b|npm i|curl|wget|huggingface|requests|urllib|download|load_dataset|mteb|from_pretrained",
    re.I,
)
ENVIRONMENT = re.compile(
    r"Temporary failure in name|Name or service not known|Connection ?(refused|reset|timed out|aborted|broken|Error)"
    r"|No space left|execution aborted|overloaded|Service Unavailable|Bad Gateway|Read timed out|Max retries|bad interpreter"
    r"|Bus error|Segmentation fault|core dumped|Cannot allocate memory|Internal ?Server ?Error|sandbox denied"
    r"|stream (error|disconnected)"
    r"|tool call failed|Missing dependency|Could not get lock|dpkg: error|cannot open shared object",
    re.I,
)
TEST_COMMAND = re.compile(r"pytest|py\.test|runtests|unittest|bin/test|\btest|jest|mocha|check", re.I)
GREEN = re.compile(r"\bpassed\b|^OK\b|\bOK\b|\[OK\]|# pass|✓|✅|success", re.I | re.M)
RED = re.compile(r"\d+ (failed|errors?)\b|^FAILED|Traceback", re.I | re.M)
RUNNERS = (
    ("django", re.compile(r"runtests")),
    ("vitest or node", re.compile(r"npm |vitest|node ")),
    ("sympy", re.compile(r"bin/test")),
    ("pytest", re.compile(r"pytest|py\.test")),
    ("script", re.compile(r"\.py|\.sh|/tests?/")),
)
BAD_WORDS = re.compile(
    r"Traceback|\bError\b|\w+Error\b|FAILED|\bfailed\b|not found|No such file|Exception|❌|cannot|invalid", re.I
)
NEGATIVE = re.compile(
    r"No such file|no tests ran|Ran 0 tests|too long|truncated|No (files|matches) found|not found|pending"
    r"|collected 0 items|nothing to commit|<output>\s*</output>",
    re.I,
)
READING = re.compile(
    r"^\W*(command\W+)?(\[?\W*bash\W+-lc\W+)?(cat|sed -n|nl|grep|rg|head|tail|git (log|diff|show))\b|view|file_?path|pattern",
    re.I,
)


@dataclass(frozen=True)
class Result:
    """One tool result with what the search for candidates looks at."""

    file: str
    row: int
    message_index: int
    harness: str
    call: str
    text: str
    failed: bool | None

    @property
    def key(self) -> tuple[str, int, int]:
        return (self.file, self.row, self.message_index)


Recordings = dict[tuple[str, int], list[Result]]
DrawnWindow = tuple[str, int, list[Result]]


def recorded(name: str) -> Iterator[dict[str, Any]]:
    """Rows of one recorded collection."""
    with gzip.open(SHARED / "data" / "traces" / f"{name}.jsonl.gz", "rt", encoding="utf-8") as lines:
        yield from map(json.loads, lines)


def labelled(name: str) -> list[dict[str, Any]]:
    """Rows of one label file of the shared data."""
    text = (SHARED / "data" / "traces" / f"{name}.jsonl").read_text(encoding="utf-8")
    return [json.loads(line) for line in text.splitlines()]


def results_of(file: str, row: int, record: dict[str, Any]) -> list[Result]:
    """Tool results of one recording, in order, each with the arguments of its call."""
    calls: dict[str, str] = {}
    found = []
    for index, message in enumerate(record["messages"]):
        for call in message.get("tool_calls") or ():
            calls[call["id"]] = call["function"]["arguments"]
        if message["role"] != "tool":
            continue
        content = message.get("content")
        text = content if isinstance(content, str) else json.dumps(content, ensure_ascii=False)
        code, flag = message.get("returncode"), message.get("is_error")
        failed = None if code is None and flag is None else bool(flag) or code not in (None, 0)
        call_text = calls.get(message.get("tool_call_id", ""), "")
        found.append(Result(file, row, index, record.get("harness") or "", call_text, text, failed))
    return found


def test_runner(result: Result) -> str:
    """Which runner a result looks like; empty when it does not look like a green test run."""
    if not TEST_COMMAND.search(result.call) or RED.search(result.text) or not GREEN.search(result.text):
        return ""
    return next((name for name, pattern in RUNNERS if pattern.search(result.call)), "")


def take(
    rng: random.Random, pool: list[Result], count: int, taken: set[tuple[str, int, int]], per_row: int
) -> list[Result]:
    """Draw `count` results, at most `per_row` from one recording; adds them to `taken`."""
    pool = [result for result in pool if result.key not in taken]
    rng.shuffle(pool)
    rows: Counter[tuple[str, int]] = Counter()
    drawn: list[Result] = []
    for result in pool:
        place = (result.file, result.row)
        if len(drawn) < count and rows[place] < per_row:
            rows[place] += 1
            drawn.append(result)
            taken.add(result.key)
    return drawn


def draw_results(rng: random.Random, every: list[Result]) -> list[tuple[str, Result]]:
    """The stratified sample of tool results, as (stratum, result)."""
    taken = {(r["file"], r["row"], r["message_index"]) for r in labelled("labels_tool_results")}
    drawn: list[tuple[str, Result]] = []

    def add(stratum: str, count: int, wanted: Callable[[Result], object], per_row: int = 3) -> None:
        pool = [result for result in every if wanted(result)]
        drawn.extend((stratum, result) for result in take(rng, pool, count, taken, per_row))

    add("killed while downloading", 42, lambda r: KILLED.search(r.text) and NETWORK_WORK.search(r.call + r.text))
    add("environment words", 20, lambda r: r.file != GEMINI and ENVIRONMENT.search(r.text[:600] + r.text[-600:]))
    add("environment words, gemini", 3, lambda r: r.file == GEMINI and r.failed and ENVIRONMENT.search(r.text), 1)
    for runner, count in (("django", 16), ("vitest or node", 14), ("sympy", 6), ("pytest", 26), ("script", 14)):
        add(
            f"green tests: {runner}",
            count,
            lambda r, runner=runner: test_runner(r) == runner,
            1 if runner != "vitest or node" else 10,
        )
    add("killed, other", 8, lambda r: KILLED.search(r.text) and not NETWORK_WORK.search(r.call + r.text), 1)
    add(
        "bad words without failure flag",
        26,
        lambda r: not r.failed and BAD_WORDS.search(r.text) and not READING.search(r.call),
    )
    add("failure flag", 30, lambda r: r.failed, 4)
    add(
        "error words in what was read",
        22,
        lambda r: not r.failed and BAD_WORDS.search(r.text) and READING.search(r.call),
    )
    add("negative but harmless words", 18, lambda r: NEGATIVE.search(r.text[:400]), 2)
    for file, harness, count in (
        (GEMINI, "", 22),
        (SONNET, "", 14),
        ("traj_taubench_gpt4o_airline", "", 16),
        ("traj_sweagent_lm32b_swebench_verified", "", 7),
        ("traj_ljoukov_agent_bench", "", 4),
        (SESSIONS, "Claude Code", 9),
        (SESSIONS, "opencode", 8),
        (SESSIONS, "Codex", 9),
        (SESSIONS, "aider", 8),
    ):
        add(f"random: {harness or file}", count, lambda r, f=file, h=harness: r.file == f and h in r.harness, 9)
    return drawn


def outcome(result: Result) -> str:
    """The output without harness tags and blank space; empty when there is none to compare."""
    bare = re.sub(r"</?(returncode|output|warning)>|\s+", "", result.text)
    return bare[:400] if len(bare) > 20 else ""


def said_before(window: list[Result], earlier: list[Result]) -> int:
    """How many results of a window have an output, or a call, that occurred shortly before."""
    seen: set[str] = set()
    for result in earlier:
        seen |= {outcome(result), "call " + result.call}
    again = 0
    for result in window:
        marks = {outcome(result), "call " + result.call} - {"", "call "}
        again += bool(marks & seen)
        seen |= marks
    return again


def bad(result: Result) -> bool:
    """Failed by flag, killed, or refused by a business tool."""
    return bool(result.failed or KILLED.search(result.text) or result.text.startswith("Error"))


def draw_windows(rng: random.Random, recordings: Recordings) -> list[DrawnWindow]:
    """Windows of consecutive tool results, none overlapping, as (stratum, number of its first call, results)."""
    used: defaultdict[tuple[str, int], set[int]] = defaultdict(set)
    for label in labelled("labels_windows"):
        used[label["file"], label["row"]].update(label["message_indices"])
    windows = [
        (start, rs[start : start + WINDOW], said_before(rs[start : start + WINDOW], rs[max(0, start - WINDOW) : start]))
        for rs in recordings.values()
        for start in range(len(rs) - WINDOW + 1)
    ]
    strata: tuple[tuple[str, int, int, Callable[[list[Result], int], bool]], ...] = (
        ("said before in most of it", 36, 5, lambda w, again: again >= 4),
        ("said before in some of it", 16, 2, lambda w, again: again == 3),
        ("mostly failing", 42, 4, lambda w, again: sum(map(bad, w)) >= 4),
        ("random", 28, 1, lambda w, again: True),
    )
    drawn = []
    for stratum, count, per_row, wanted in strata:
        pool = [w for w in windows if wanted(w[1], w[2])]
        rng.shuffle(pool)
        files: Counter[str] = Counter()
        rows: Counter[tuple[str, int]] = Counter()
        for start, window, _ in pool:
            place = (window[0].file, window[0].row)
            indices = {result.message_index for result in window}
            # Half at most from one collection: most recordings come from one of them.
            if (
                sum(files.values()) >= count
                or files[place[0]] >= count // 2
                or rows[place] >= per_row
                or indices & used[place]
            ):
                continue
            files[place[0]] += 1
            rows[place] += 1
            used[place] |= indices
            drawn.append((stratum, start, window))
    return drawn


def loosely(result: Result) -> str:
    """The end of the output without numbers and blank space; its place when there is hardly any output."""
    bare = re.sub(r"</?(returncode|output|warning)>|[\s\d]+", "", result.text)
    return bare[-300:] if len(bare) > 15 else str(result.message_index)


def draw_more_windows(
    rng: random.Random, recordings: Recordings, first: list[DrawnWindow], stratum: str, count: int, least: int
) -> list[DrawnWindow]:
    """Draw again, since too few of the first windows spin: at most two results shared with another window.

    Its candidates: `least` results that say much the same as one before them, `least` refusals of a business tool, or
    `least + 1` failed results.
    """
    taken = [(w[0].file, w[0].row, {r.message_index for r in w}) for _, _, w in first]
    taken += [(r["file"], r["row"], set(r["message_indices"])) for r in labelled("labels_windows")]
    pool = []
    for place, results in recordings.items():
        for start in range(len(results) - WINDOW + 1):
            window = results[start : start + WINDOW]
            same = WINDOW - len(set(map(loosely, window)))
            refused = sum(r.text.startswith("Error") or r.text == "[]" for r in window)
            enough = same >= least or refused >= least or sum(map(bad, window)) > least
            if "aider" not in window[0].harness and enough:
                pool.append((place, start, window))
    rng.shuffle(pool)
    rows: Counter[tuple[str, int]] = Counter()
    drawn: list[DrawnWindow] = []
    for place, start, window in pool:
        indices = {r.message_index for r in window}
        shared = max((len(indices & other) for file, row, other in taken if (file, row) == place), default=0)
        if len(drawn) < count and rows[place] < 5 and shared <= 2:
            rows[place] += 1
            taken.append((*place, indices))
            drawn.append((stratum, start, window))
    return drawn


def draw_circling_windows(rng: random.Random, recordings: Recordings, earlier: list[DrawnWindow]) -> list[DrawnWindow]:
    """A last draw: windows half of which was said or done in the 24 calls before, or within them."""
    taken = [(w[0].file, w[0].row, {r.message_index for r in w}) for _, _, w in earlier]
    taken += [(r["file"], r["row"], set(r["message_indices"])) for r in labelled("labels_windows")]
    pool = [
        (place, start)
        for place, results in recordings.items()
        for start in range(len(results) - WINDOW + 1)
        if "aider" not in results[0].harness
        and said_before(results[start : start + WINDOW], results[max(0, start - 3 * WINDOW) : start]) >= WINDOW // 2
    ]
    rng.shuffle(pool)
    drawn: list[DrawnWindow] = []
    for place, start in pool:
        window = recordings[place][start : start + WINDOW]
        indices = {r.message_index for r in window}
        shared = max((len(indices & other) for file, row, other in taken if (file, row) == place), default=0)
        if len(drawn) < FOURTH_DRAW and shared <= 3:
            taken.append((*place, indices))
            drawn.append(("fourth draw", start, window))
    return drawn


def main(out: Path) -> None:
    """Draw both samples and write them into `out`."""
    recordings: Recordings = {
        (file, row): results_of(file, row, record) for file in COLLECTIONS for row, record in enumerate(recorded(file))
    }
    results = draw_results(random.Random(SEED), [r for rs in recordings.values() for r in rs])
    windows = draw_windows(random.Random(SEED + 1), recordings)
    random.Random(SEED + 2).shuffle(results)
    random.Random(SEED + 3).shuffle(windows)
    windows += draw_more_windows(random.Random(SEED + 4), recordings, windows, "second draw", SECOND_DRAW, 3)
    windows += draw_more_windows(random.Random(SEED + 5), recordings, windows, "third draw", THIRD_DRAW, 2)
    windows += draw_circling_windows(random.Random(SEED + 6), recordings, windows)
    windows += [("picked", start, recordings[SONNET, row][start : start + WINDOW]) for row, start in PICKED]
    strata = {f"L{number:03d}": stratum for number, (stratum, _) in enumerate(results)}
    strata |= {f"LW{number:03d}": stratum for number, (stratum, _, _) in enumerate(windows)}
    rows = [
        {"id": f"L{n:03d}", "file": r.file, "row": r.row, "message_index": r.message_index, "twice": n < TWICE_RESULTS}
        for n, (_, r) in enumerate(results)
    ]
    window_rows = [
        {
            "id": f"LW{n:03d}",
            "file": w[0].file,
            "row": w[0].row,
            "first_call": start,
            "message_indices": [r.message_index for r in w],
            "first_message_index": w[0].message_index,
            "last_message_index": w[-1].message_index,
            "twice": n < TWICE_WINDOWS,
        }
        for n, (_, start, w) in enumerate(windows)
    ]
    for name, lines in (("sample.jsonl", rows), ("sample_windows.jsonl", window_rows)):
        (out / name).write_text("".join(json.dumps(line) + "\n" for line in lines), encoding="utf-8")
    (out / "sample_strata.json").write_text(json.dumps(strata, indent=0) + "\n", encoding="utf-8")


if __name__ == "__main__":
    main(Path(sys.argv[1]))
