"""Trajectories of benchmark harnesses: mini-swe-agent (`.traj.json`), SWE-agent (`.traj`) and tau-bench results."""

import re
from collections.abc import Iterator
from pathlib import Path
from typing import Any

from turnout.evaluate.importers.blocks import chat_message, flat
from turnout.evaluate.importers.events import Ended, Event, Replied, Said, Told, Who, assistant, call, result
from turnout.evaluate.importers.source import Record, Source
from turnout.evaluate.importers.values import count, items, json_text, moment, name_of, number, table, text, truth
from turnout.ledger.outcome import Outcome
from turnout.wire.chat.usage import read_usage

_BLOCK = re.compile(r"```(?:bash|sh|mswea_bash_command)\n(.*?)\n?```", re.DOTALL)
_CODE = re.compile(r"<returncode>(-?\d+)</returncode>")


def looks_mini(value: dict[str, Any]) -> bool:
    """Whether an object is a trajectory of mini-swe-agent."""
    info = value.get("info")
    known = text(value.get("trajectory_format")).startswith("mini-swe-agent") or (
        isinstance(info, dict) and ("model_stats" in info or "mini_version" in info)
    )
    return known and isinstance(value.get("messages"), list)


def looks_swe(value: dict[str, Any]) -> bool:
    """Whether an object is a trajectory of SWE-agent."""
    steps = value.get("trajectory")
    return isinstance(steps, list) and (not steps or "action" in table(steps[0]))


def looks_tau(value: dict[str, Any]) -> bool:
    """Whether an object is a result of tau-bench, or the results of tau2-bench."""
    if isinstance(value.get("traj"), list) and "task_id" in value:
        return True
    return isinstance(value.get("simulations"), list)


def read_mini(source: Source) -> Iterator[Event]:
    """The events of mini-swe-agent's trajectories."""
    yield from source.each(looks_mini, lambda record: _of_mini(source, record))


def _of_mini(source: Source, record: Record) -> Iterator[Event]:
    row = record.value
    if not looks_mini(row):
        source.skip(record.line, "no trajectory", ", ".join(list(row)[:8]))
        return
    info = table(row.get("info"))
    stats, config = table(info.get("model_stats")), table(table(info.get("config")).get("model"))
    task = text(row.get("instance_id")) or _named(source.path)
    model = text(config.get("model_name"))
    who = Who(f"{task}/{record.digest[:8]}", program="mini-swe-agent", format="openai_chat")
    yield from _mini(source, record, who, model)
    yield _told(record, who, task, model, info, stats)
    yield Ended(who.session)


def _mini(source: Source, record: Record, who: Who, model: str) -> Iterator[Event]:
    """Messages hold commands in text or as tool calls; the observation that follows a command is its result."""
    open_call = ""
    n = 0
    for index, one in enumerate(record.value["messages"]):
        message, extra = chat_message(one), table(table(one).get("extra"))
        if message is None:
            if table(one).get("role") == "exit":
                continue
            source.tally.records += 1
            source.skip(record.line, "a message of no known kind", f"messages[{index}]")
            continue
        if message["role"] == "assistant":
            n += 1
            if not message.get("tool_calls") and (commands := _BLOCK.findall(message["content"])):
                message["tool_calls"] = [call(f"call_{n}", "bash", json_text({"command": commands[-1]}))]
            calls = message.get("tool_calls") or []
            open_call = calls[0]["id"] if len(calls) == 1 else ""
            response = table(extra.get("response"))
            began, ended = moment(response.get("created")), moment(extra.get("timestamp"))
            took = max(ended - began, 0.0) if began is not None and ended is not None else 0.0
            at = began or ended or moment(table(one).get("timestamp"))
            usage = read_usage(response.get("usage"))
            cost = number(extra.get("cost")) or None  # 0 where it knows no price
            yield Replied(
                who, message, f"{record.digest}:{n}", at, took, text(response.get("model")) or model, usage, cost
            )
        elif message["role"] == "user" and open_call:
            yield Said(who, _observed(open_call, message["content"], extra))
            open_call = ""
        else:
            if message["role"] == "tool":
                code = extra.get("returncode")
                if isinstance(code, int) and not isinstance(code, bool):
                    message["returncode"] = code
                open_call = ""
            yield Said(who, message)


def _observed(call_id: str, content: str, extra: dict[str, Any]) -> dict[str, Any]:
    stated = _CODE.search(content[:200])
    code = extra.get("returncode", int(stated[1]) if stated else None)
    known = isinstance(code, int) and not isinstance(code, bool)
    return result(call_id, content, name="bash", returncode=code if known else None)


def read_swe(source: Source) -> Iterator[Event]:
    """The events of SWE-agent's trajectories."""
    yield from source.each(looks_swe, lambda record: _of_swe(source, record))


def _of_swe(source: Source, record: Record) -> Iterator[Event]:
    row = record.value
    if not looks_swe(row):
        source.skip(record.line, "no trajectory", ", ".join(list(row)[:8]))
        return
    info = table(row.get("info"))
    model = _replayed_model(row.get("replay_config"))
    task = text(row.get("instance_id")) or _named(source.path)
    who = Who(f"{task}/{record.digest[:8]}", program="swe-agent", format="openai_chat")
    first = table((row["trajectory"] or [{}])[0])
    for one in items(row.get("history"))[:2] or items(first.get("query"))[:2]:
        head = chat_message(one)
        if head is not None and head["role"] in ("system", "user"):
            yield Said(who, head)
    for n, step in enumerate(row["trajectory"], 1):
        yield from _step(source, record, who, table(step), n, model)
    yield _told(record, who, task, model, info, table(info.get("model_stats")))
    yield Ended(who.session)


def _step(source: Source, record: Record, who: Who, step: dict[str, Any], n: int, model: str) -> Iterator[Event]:
    action = text(step.get("action"))
    if not action and not text(step.get("response")) and not text(step.get("thought")):
        source.tally.records += 1
        source.skip(record.line, "a step without an action", f"trajectory[{n - 1}]")
        return
    said = text(step.get("thought")) or text(step.get("response"))
    calls = [call(f"call_{n}", *_command(step, action))] if action.strip() else []
    yield Replied(who, assistant(said, calls), f"{record.digest}:{n}", model=model)
    if calls and step.get("observation") is not None:
        yield Said(who, result(f"call_{n}", flat(step.get("observation"))))


def _command(step: dict[str, Any], action: str) -> tuple[str, str]:
    """Tool and arguments of an action; the editor is a tool of its own."""
    calls = [table(one) for one in items(step.get("tool_calls"))]
    function = table(calls[0].get("function")) if len(calls) == 1 else {}
    if text(function.get("name")):
        return text(function.get("name")), json_text(function.get("arguments") or "")
    return "bash", json_text({"command": action.strip()})


def _replayed_model(config: Any) -> str:
    import msgspec

    if isinstance(config, str):
        try:
            config = msgspec.json.decode(config)
        except msgspec.DecodeError:
            return ""
    return text(table(table(table(config).get("agent")).get("model")).get("name"))


def _told(record: Record, who: Who, task: str, model: str, info: dict[str, Any], stats: dict[str, Any]) -> Told:
    cost = number(stats.get("instance_cost"))
    return Told(
        name_of(who.session, record.digest),
        Outcome(
            session=who.session,
            success=truth(info.get("resolved")),
            note=text(info.get("exit_status")),
            task=task,
            model=model,
            harness=who.program,
            cost_usd=cost or None,  # both write 0 where they know no price
            cost_source="recorded by the harness" if cost else "",
            steps=count(stats.get("api_calls")),
            input_tokens=count(stats.get("tokens_sent")),
            output_tokens=count(stats.get("tokens_received")),
        ),
    )


def _named(path: Path) -> str:
    """The task that a trajectory's file is named after."""
    return path.name.removesuffix(".gz").removesuffix(".json").removesuffix(".traj") or path.name


def read_tau(source: Source) -> Iterator[Event]:
    """The events of tau-bench's results: one simulated conversation each, success where the reward is whole."""
    yield from source.each(looks_tau, lambda record: _of_tau(source, record))


def _of_tau(source: Source, record: Record) -> Iterator[Event]:
    row = record.value
    if isinstance(row.get("simulations"), list):
        info = table(table(row.get("info")).get("agent_info"))
        for index, one in enumerate(row["simulations"]):
            yield from _simulation(
                source, record, table(one), items(table(one).get("messages")), text(info.get("llm")), index
            )
    elif isinstance(row.get("traj"), list):
        yield from _simulation(source, record, row, row["traj"], "", 0)
    else:
        source.skip(record.line, "no trajectory", ", ".join(list(row)[:8]))


def _simulation(
    source: Source, record: Record, row: dict[str, Any], found: list[Any], model: str, index: int
) -> Iterator[Event]:
    task, trial = text(row.get("task_id")), text(row.get("trial"))
    digest = name_of(record.digest, str(index))
    who = Who(f"{task}/{trial or '0'}/{digest[:8]}", program="tau-bench", format="openai_chat")
    n = 0
    for place, one in enumerate(found):
        message = chat_message(one)
        if message is None:
            source.tally.records += 1
            source.skip(record.line, "a message of no known kind", f"messages[{place}]")
        elif message["role"] != "assistant":
            if message["role"] == "tool" and table(one).get("error") is True:
                message["is_error"] = True
            if not message.get("tool_call_id"):
                message["tool_call_id"] = text(table(one).get("id"))
            yield Said(who, message)
        else:
            n += 1
            fields = table(one)
            usage = read_usage(fields.get("usage"))
            at = moment(fields.get("timestamp"))
            yield Replied(who, message, f"{digest}:{n}", at, 0.0, model, usage, number(fields.get("cost")))
    reward = number(row.get("reward"))
    reward = number(table(row.get("reward_info")).get("reward")) if reward is None else reward
    cost = number(row.get("agent_cost"))
    yield Told(
        name_of(who.session, digest),
        Outcome(
            session=who.session,
            success=None if reward is None else reward >= 1 - 1e-6,
            metrics={} if reward is None else {"reward": reward},
            note=text(row.get("termination_reason")),
            task=task,
            model=model,
            harness="tau-bench",
            trial=trial,
            cost_usd=cost,
            cost_source="" if cost is None else "recorded by the harness",
            steps=n,
        ),
    )
    yield Ended(who.session)
