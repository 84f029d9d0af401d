"""The stage router's decisions in plain words."""

from turnout.routing.stage.choice import Choice
from turnout.routing.stage.price import Quote
from turnout.routing.stage.score import Case
from turnout.signals import Progress, Signals

KINDS: dict[str, str] = {
    "test_failure": "tests failed",
    "test_error": "the test run broke",
    "timeout": "timed out",
    "download_timeout": "a download was cut off by a time-out",
    "command_not_found": "command not found",
    "missing_module": "a module is missing",
    "syntax": "syntax error",
    "assertion": "an assertion failed",
    "connection_refused": "connection refused",
    "permission_denied": "permission denied",
    "patch": "a patch did not apply",
    "merge": "a merge or push was refused",
    "compile": "the build failed",
    "panic": "the program panicked",
    "crash": "the program crashed",
    "killed": "the program was killed",
    "usage": "wrong usage",
    "no_such_file": "a file is missing",
    "http_error": "an HTTP error",
    "lint": "lint errors",
    "exception": "an exception",
    "edit_failed": "an edit failed",
    "exit_nonzero": "it failed",
    "tool_error": "the tool failed",
    "ci_failure": "checks failed",
    "oom": "out of memory",
    "disk_full": "the disk is full",
    "unreachable": "the network is unreachable",
    "provider": "the provider failed",
    "environment": "the environment is broken",
    "aborted": "the call was aborted",
    "waiting": "still waiting in vain",
}
"""What an error kind says to people."""

TIMES = {1: "once", 2: "twice", 3: "three times", 4: "four times", 5: "five times"}


def sentence(
    choice: Choice, seen: Progress, signals: Signals, case: Case, picker: str, quote: Quote | None = None
) -> str:
    """Why the chosen tier serves, for people. `quote`: of the change that was considered."""
    source, rule = choice.source, choice.rule
    if source == "price" and quote is not None:
        return f"{_told(seen, signals, case)}: {_not_worth(quote, choice.evidence)}"
    if rule == "cool_off":
        told = _told(seen, signals, case)
        return f"{told}: the work has just come down, and for {_turns(case.cool)} only a rule takes it up again"
    if source == "hold":
        return f"the capable tier is held for {case.hold} more turn{'s' if case.hold > 1 else ''} after an escalation"
    if rule == "compaction":
        return "the history was just replaced by a summary"
    if rule == "critical_error":
        return f"{_culprit(seen)}: {KINDS.get(seen.kind, seen.kind)}; this is no ordinary failure"
    if rule == "repeated_failure":
        return f"{_culprit(seen)} failed the same way {_times(seen.repeated)} and nothing has cleared it"
    if rule == "relapse":
        return f"{_culprit(seen)} failed ({KINDS.get(seen.kind, seen.kind)}) right after the work had come down again"
    if source == "signals" and choice.tier == "capable":
        return _troubles(seen, signals, case)
    if source == "signals":
        return _successes(seen)
    if not seen.results and not seen.complaint:
        return f"no tool results since the user's last turn; the picker is {picker}"
    return f"{_told(seen, signals, case)}: not enough to decide; the picker is {picker}"


def _not_worth(quote: Quote, evidence: float) -> str:
    if quote.cost_usd is None:
        return f"going to the {quote.to} tier has no known price, so the work stays"
    if quote.to == "efficient":
        return (
            f"going down would cost ${quote.cost_usd:.4f} more than staying over about {quote.turns:.0f} turns, "
            f"so the work stays"
        )
    worth = max(evidence, 0.0) * quote.unit_usd
    return f"reading {quote.prefix_tokens} tokens anew costs ${quote.cost_usd:.4f}, the evidence is worth ${worth:.4f}"


def _told(seen: Progress, signals: Signals, case: Case) -> str:
    bad = seen.severity or seen.spinning or seen.exploring or seen.stall or seen.complaint or case.repeated_calls
    return _troubles(seen, signals, case) if bad else _successes(seen)


def _turns(count: int) -> str:
    return "one more turn" if count == 1 else f"{count} more turns"


def _times(count: int) -> str:
    return TIMES.get(count, f"{count} times")


def _culprit(seen: Progress) -> str:
    return seen.culprit or "a tool"


def _window(seen: Progress) -> str:
    return "in the last result" if seen.results == 1 else f"in the last {seen.results} results"


def _troubles(seen: Progress, signals: Signals, case: Case) -> str:
    said = []
    if seen.complaint >= 0.5:
        said.append("the user says that it is still wrong")
    if seen.severity:
        what = KINDS.get(seen.kind, seen.kind)
        if seen.failures > 1:
            said.append(f"{seen.failures} failures {_window(seen)}, the worst from {_culprit(seen)} ({what})")
        else:
            said.append(f"{_culprit(seen)} failed once {_window(seen)} ({what})")
    if seen.trend < 0:
        said.append("more tests fail than before")
    if seen.spinning >= 0.5:
        said.append(f"nothing new lately, after {signals.depth} turns")
    elif case.repeated_calls > 1:
        said.append(f"the same call gave the same outcome {_times(case.repeated_calls)}")
    elif seen.exploring >= 0.5:
        said.append(f"still looking around after {signals.depth} turns and a failure")
    elif seen.stall >= 0.5:
        said.append(f"nothing has moved for long, after {signals.depth} turns")
    return ", and ".join(said) or f"nothing telling {_window(seen)}"


def _successes(seen: Progress) -> str:
    said = []
    if seen.production:
        said.append(f"changes went through {_window(seen)}")
    if seen.tests_passed:
        said.append("the newest test run passed")
    if seen.trend > 0:
        said.append("fewer tests fail than before")
    return " and ".join(said) or f"nothing telling {_window(seen)}"
