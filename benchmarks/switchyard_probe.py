"""Asks nemo-switchyard what it makes of tool results. Runs in its own virtual environment; JSON lines in, JSON lines out.

    W/sy/bin/python benchmarks/switchyard_probe.py < questions > answers

Its stage router runs in this process and is asked for decisions only; no model is called. It tells no signals, so they are
read off its decisions:

- *severity* of one result: the decision for a conversation that holds nothing but that call and its result, threshold 0. The
  score is tanh(5 * 0.1 * (severity / 0.7 + stalls - production)); with one call stalls are 0 and production is 0 or 1, so
  that each severity has scores of its own. A critical one shows as an override.
- *tests passed*: after a critical failure the router holds the capable model; with a window of one result, the next turn
  leaves the hold exactly when that result says that tests passed and nothing in it failed.
- *repeated*: an override that no critical result explains, in a window as long as the labelled one. *Spinning*: the same
  calls with empty results score as stalled, and still do so when a write is added, which among reads it would not.

Questions: `{"ask": "result", "call": {"name", "arguments"} | null, "text", "is_error"}`, `{"ask": "window", "messages",
"indices"}`, `{"ask": "decisions", "messages", "at": [...], "session": true | false}`; messages are in OpenAI chat form, tool
rows with `is_error`. They are given in the neutral form that its Messages decoder makes, the only one with failure flags.
"""

import asyncio
import itertools
import json
import math
import os
import sys
from typing import Any

from switchyard.libsy import Step, algorithms

MODELS = {"any": ["capable", "efficient"], "capable": ["capable"], "efficient": ["efficient"]}
SCORES = {
    (production, severity): math.tanh(0.5 * (severity / 0.7 - production))
    for production in (0, 1)
    for severity in (0.0, 0.3, 0.7)
    if production or severity
}
"""Scores by production and severity; nothing at all has none and is decided by nobody. A change of files that fails hard comes
out near 0, and is decided by its score."""
STALLED = math.tanh(0.5)
QUIET = "done"
SESSIONS = itertools.count()
FAILED = ({"name": "bash", "arguments": '{"command": "make"}'}, "out of memory", None)


def router(**fields: Any) -> Any:
    """A stage router with the defaults of its configuration file, but for `fields`."""
    return algorithms.stage_router(**{"picker": "efficient_first", "confidence_threshold": 0.5, **fields})


DEFAULT = router()
ANY_EVIDENCE = router(confidence_threshold=0.0)
ONE_RESULT = router(recent_window=1)


async def decide(algorithm: Any, messages: list[Any], session: str = "") -> tuple[str, str, float]:
    """Tier, who decided it, and the score in [-1, 1] where there is one."""
    headers = {"x-switchyard-session-id": session} if session else None
    async for step in algorithm.run_stream({"messages": messages}, MODELS, headers=headers):
        if isinstance(step, Step.Done):
            tier = step.outcome.selected_model_ids[0]
            evidence = step.outcome.metadata.evidence or {}
            confidence = evidence.get("confidence") or 0.0
            return tier, evidence.get("source", ""), confidence if tier == "capable" else -confidence
    raise RuntimeError("the router gave no decision")


def neutral(messages: list[dict[str, Any]]) -> list[dict[str, Any]]:
    """Chat messages in Switchyard's neutral form; results of one turn stand in one message, as in Messages."""
    made: list[dict[str, Any]] = []
    for number, message in enumerate(messages):
        if message["role"] in ("system", "developer"):
            continue
        content = message.get("content")
        text = content if isinstance(content, str) else json.dumps(content) if content else ""
        if message["role"] != "tool":
            blocks: list[Any] = [said(text)] if text else []
            for call in message.get("tool_calls") or []:
                blocks.append(asked(call["id"], call["function"]["name"], call["function"]["arguments"] or ""))
            made.append({"role": message["role"], "content": blocks})
            continue
        block = answered(message.get("tool_call_id") or "", text, message.get("is_error"))
        if number and messages[number - 1]["role"] == "tool" and made:
            made[-1]["content"].append(block)
        else:
            made.append({"role": "user", "content": [block]})
    return made


def said(text: str) -> dict[str, Any]:
    return {"type": "text", "text": text}


def asked(number: str, name: str, arguments: str) -> dict[str, Any]:
    return {"type": "tool_call", "id": number, "name": name, "arguments": arguments}


def answered(number: str, text: str, is_error: bool | None) -> dict[str, Any]:
    flag = {} if is_error is None else {"is_error": is_error}
    return {"type": "tool_result", "tool_call_id": number, "content": [said(text)], **flag}


def story(*exchanges: tuple[dict[str, Any] | None, str, bool | None]) -> list[dict[str, Any]]:
    """A task, then calls with their results."""
    made = [{"role": "user", "content": [said("Please do the task.")]}]
    for number, (call, text, is_error) in enumerate(exchanges):
        if call is not None:
            made.append({"role": "assistant", "content": [asked(f"c{number}", call["name"], call["arguments"])]})
        made.append({"role": "user", "content": [answered(f"c{number}", text, is_error)]})
    return made


async def of_result(question: dict[str, Any]) -> dict[str, Any]:
    exchange = (question["call"], question["text"], question.get("is_error"))
    return {"severity": await severity(exchange), "tests_passed": await tests_passed(exchange)}


async def severity(exchange: tuple[dict[str, Any] | None, str, bool | None]) -> float:
    _, source, score = await decide(ANY_EVIDENCE, story(exchange))
    if source == "override":
        return 1.0
    if source == "fall_open":
        return 0.0
    (_, level), distance = min(((key, abs(value - score)) for key, value in SCORES.items()), key=lambda x: x[1])
    if distance > 1e-6:
        raise RuntimeError(f"a score of {score} is none of one result's; the formula is another one")
    return level


async def tests_passed(exchange: tuple[dict[str, Any] | None, str, bool | None]) -> bool:
    session = f"tests-{next(SESSIONS)}"
    armed = await decide(ONE_RESULT, story(FAILED), session)
    if armed[1] != "override":
        raise RuntimeError("a critical failure did not override; the hold cannot be read")
    _, source, _ = await decide(ONE_RESULT, story(FAILED, exchange), session)
    return source != "capable_hold"


async def of_window(question: dict[str, Any]) -> dict[str, Any]:
    messages, indices = question["messages"], question["indices"]
    upto = messages[: indices[-1] + 1]
    levels = [await severity(exchange_at(messages, index)) for index in indices]
    _, source, _ = await decide(router(recent_window=len(indices)), neutral(upto))
    repeated = source == "override" and max(levels) < 1.0
    quiet = [m | {"content": QUIET, "is_error": None} if m["role"] == "tool" else m for m in upto]
    _, _, score = await decide(router(recent_window=len(indices), confidence_threshold=0.0), neutral(quiet))
    stalled = abs(score - STALLED) < 1e-6
    wrote = [*neutral(quiet), *story(({"name": "write_file", "arguments": '{"path": "x"}'}, QUIET, None))[1:]]
    _, _, score = await decide(router(recent_window=len(indices) + 1, confidence_threshold=0.0), wrote)
    return {"repeated": repeated, "spinning": stalled and abs(score + STALLED) < 1e-6, "stalled": stalled}


def exchange_at(messages: list[dict[str, Any]], index: int) -> tuple[dict[str, Any] | None, str, bool | None]:
    """The call and result at message `index`."""
    row = messages[index]
    content = row.get("content")
    text = content if isinstance(content, str) else json.dumps(content) if content else ""
    for message in reversed(messages[:index]):
        for call in message.get("tool_calls") or []:
            if call["id"] == row.get("tool_call_id"):
                return call["function"] | {"arguments": call["function"]["arguments"] or ""}, text, row.get("is_error")
    return None, text, row.get("is_error")


async def of_decisions(question: dict[str, Any]) -> dict[str, Any]:
    """Decisions at the given messages; in a session, all turns before are decided too, in order."""
    messages, wanted = question["messages"], set(question["at"])
    session = f"replay-{next(SESSIONS)}" if question["session"] else ""
    turns = sorted(wanted | set(question["turns"])) if session else sorted(wanted)
    found = {}
    for at in turns:
        tier, source, score = await decide(DEFAULT, neutral(messages[: at + 1]), session)
        if at in wanted:
            found[at] = {"tier": tier, "source": source, "score": score}
            if not session:  # the score is told only where it decides, which at threshold 0 it always does
                found[at]["score"] = (await decide(ANY_EVIDENCE, neutral(messages[: at + 1])))[2]
    return {"decisions": found}


ANSWERS = {"result": of_result, "window": of_window, "decisions": of_decisions}


async def main() -> None:
    for line in sys.stdin:
        question = json.loads(line)
        print(json.dumps(await ANSWERS[question["ask"]](question)), flush=True)


if __name__ == "__main__":
    asyncio.run(main())
    # All answers are out. Threads of the package's native runtime may take the process down while the interpreter ends.
    os._exit(0)
