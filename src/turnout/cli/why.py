"""`turnout why`: one turn explained: signals, rule, score, options and their prices, calls, memory, losses."""

from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer
from msgspec import Struct

from turnout.cli import options, output
from turnout.cli.cache import words
from turnout.cli.chained import TOLD, chained
from turnout.cli.records import Records
from turnout.cli.saving import Saving, saving
from turnout.cli.versions import kept, summary

if TYPE_CHECKING:
    from rich.tree import Tree

    from turnout.gateway.config import Config
    from turnout.ledger.trace import Call, TurnRecord
    from turnout.routing.stage.explain import Explained


_OF_VERSION = ("made_at", "made_by", "came_from", "note", "evidence")
_NOTHING: tuple[Any, ...] = (0, False, "", None, [], {})


class Option(Struct, frozen=True):
    """What serving a turn's tokens by a target costs, USD, at today's prices. `as_cached`: with the cache reads and writes
    that were reported. `cold`: with nothing in the cache and nothing written. None = unpriced."""

    target: str
    model: str
    served: bool
    as_cached: float | None
    cold: float | None
    note: str = ""


def why(
    turn: Annotated[str, typer.Argument(help="Turn id (response header x-turnout-turn), or `last`.")] = "last",
    ledger: options.Ledger = "",
    url: options.Gateway = "",
    key_env: options.KeyEnv = "",
    config: Annotated[
        Path | None, typer.Option(metavar="FILE", help="Configuration, for the prices of the other options.")
    ] = None,
    as_json: options.AsJson = False,
) -> None:
    """Explain a recorded turn.

    What was seen, what decided, what each option would have cost, and what happened."""
    record = Records(ledger, url, key_env).one(turn)
    loaded = options.configuration(config)
    prices, apart = _options(record, loaded), _apart(record, loaded)
    saved = saving(record, prices, loaded)
    version = kept(loaded, record.route, record.policy)
    if as_json:
        told = {name: getattr(version, name) for name in _OF_VERSION} if version is not None else None
        output.emit({**explained(record, prices, apart, saved), "version": told})
        return
    from rich.markup import escape

    tree = _tree(record, prices, apart, saved)
    if version is not None:
        tree.add(escape(f"version by {version.made_by} of {version.made_at:%Y-%m-%d}: {summary(version.evidence)}"))
    output.console().print(tree)


def explained(
    record: "TurnRecord", prices: list[Option], apart: "Explained | None" = None, saved: Saving | None = None
) -> dict[str, Any]:
    """The explanation as one object: the names `turnout route` uses, then prices, memory, calls and the rest."""
    import msgspec

    found: dict[str, Any] = msgspec.to_builtins(record)
    reasons = record.why
    for body in ("request", "response"):
        found.pop(body, None)
    return {
        "turn": record.id,
        "target": record.target,
        "source": reasons.source if reasons else None,
        "score": reasons.score if reasons else None,
        "confidence": reasons.confidence if reasons else None,
        "threshold": reasons.threshold if reasons else None,
        "signals": output.whole(record.signals),
        "why": msgspec.to_builtins(reasons),
        "explained": msgspec.to_builtins(apart),
        "prices": [msgspec.to_builtins(option) for option in prices],
        "saving": msgspec.to_builtins(saved),
        "memory": found.pop("memory", {}),
        "calls": found.pop("calls", []),
        "cache": output.whole(record.cache),
        **{key: value for key, value in found.items() if key not in ("why", "signals", "target", "cache")},
    }


def _apart(record: "TurnRecord", config: "Config | None") -> "Explained | None":
    """The decision taken apart; with what each option costs where the configuration is at hand."""
    from turnout.gateway.facts import facts
    from turnout.routing.stage.explain import explain

    if record.why is None:
        return None
    return explain(record.why, record.signals, record.memory, facts(config) if config else None, record.at)


def _options(record: "TurnRecord", config: "Config | None") -> list[Option]:
    """The targets of the turn's route, and what the served call's tokens cost at each."""
    import msgspec

    from turnout.gateway.facts import rates_of
    from turnout.pricing import Prices, cost

    served = next((call for call in record.calls if call.served), None)
    usage = served.usage if served is not None and served.usage is not None else record.usage
    route = config.routes.get(record.route) if config is not None else None
    if config is None or route is None:
        return []
    prices = Prices.load()
    plain = usage and msgspec.structs.replace(
        usage,
        input_tokens=usage.prompt_tokens,
        cache_read_tokens=None,
        cache_write_tokens=None,
        cache_write_1h_tokens=None,
    )
    found = []
    for name in dict.fromkeys((*route.answering, route.falls_to)):
        target = config.targets[name]
        rates = rates_of(target, config, prices)
        cached = cost(usage, rates)
        found.append(Option(name, target.model, name == record.target, cached.usd, cost(plain, rates).usd, cached.note))
    return found


def _tree(
    record: "TurnRecord", prices: list[Option], apart: "Explained | None" = None, saved: Saving | None = None
) -> "Tree":
    from rich.markup import escape
    from rich.tree import Tree

    who = escape(record.asked_for or record.route or "no route")
    if record.target:
        who += f" -> [bold]{escape(record.target)}[/] ({escape(record.model)})"
    tree = Tree(f"turn {record.id}   {who}   {record.ended}")
    if record.error or record.error_message:
        tree.add(escape(f"error {record.error} {record.status}: {record.error_message}"))
    reasons = record.why
    if reasons is not None:
        decided = tree.add(f"[bold]{escape(reasons.sentence)}[/]")
        by = f"decided by {reasons.source}" + (f" at {escape(reasons.place)}" if reasons.place else "")
        by += f", rule {escape(reasons.rule)}" if reasons.rule else ""
        decided.add(by + (", for want of evidence" if reasons.abstained else ""))
        if reasons.score is not None or reasons.confidence is not None:
            decided.add(_scores(reasons.score, reasons.confidence, reasons.threshold))
        values = reasons.values
        if reasons.consensus and "hops" in values:
            chained(decided, values, reasons.consensus)
            values = {name: value for name, value in values.items() if name not in TOLD}
        seen = [f"{name} {_short(value)}" for name, value in values.items() if value not in _NOTHING]
        absent = [name for name, value in values.items() if value in _NOTHING]
        if seen:
            decided.add(escape("seen: " + ", ".join(seen)))
        if absent:
            decided.add(escape("not seen: " + ", ".join(absent)))
        if apart is not None:
            _told_apart(decided, apart)
        if record.propensity != 1.0:
            decided.add(f"drawn with probability {record.propensity:g}")
    _signals(tree, record)
    if prices:
        branch = tree.add("options, at the tokens of this turn")
        for option in prices:
            mark = "*" if option.served else " "
            branch.add(
                f"{mark} {escape(option.target)} ({escape(option.model)}): "
                f"{output.usd(option.as_cached, option.note)} as cached, {output.usd(option.cold, option.note)} uncached"
            )
        if saved is not None:
            branch.add(escape(saved.sentence))
    _calls(tree, record)
    _lookups(tree, record)
    _cache(tree, record)
    _handover(tree, record)
    for label, lines in (
        ("memory read", [f"{name}: {_short(state)}" for name, state in record.memory.items()]),
        ("remembered", [_short(event) for event in record.remembered]),
        (f"lost in translation: {record.drops}", [_drop(drop) for drop in record.drop_report]),
    ):
        if lines:
            branch = tree.add(label)
            for line in lines:
                branch.add(escape(line))
    lane = " / ".join(part for part in (record.tenant, record.session, record.agent) if part)
    whose = f"lane {lane} (by {record.rung})" if lane else "no lane"
    tree.add(escape(f"{whose}, {record.agent_program or 'unknown client'} {record.agent_kind}"))
    formats = f"{record.format} -> {record.upstream_format}" if record.upstream_format else f"{record.format}"
    policy = f"policy {record.policy}, router {record.router}, " if record.policy else ""
    tree.add(escape(policy + formats))
    return tree


def _told_apart(tree: "Tree", apart: "Explained") -> None:
    """The sum, the rules, the price and what would have changed it, as branches."""
    from rich.markup import escape

    weighed = [term for term in apart.terms if term.value]
    total = tree.add(
        f"evidence {apart.evidence:+.3f} units; score = tanh({apart.gain:g} x {apart.evidence:+.3f}) / "
        f"tanh({apart.gain:g} x {apart.limit:g}) = {apart.score:+.3f}; needs {_needs(apart)}"
    )
    for term in weighed:
        note = "  (another sign that nothing moves weighs more)" if term.outdone else ""
        line = total.add(
            escape(
                f"{term.signal} {term.value:g}: share {term.share:.2f} x weight {term.weight:g} = {term.product:+.3f}{note}"
            )
        )
        for origin in term.seen:
            line.add(escape(_origin(origin)))
    for rule in apart.rules:
        if rule.held:
            line = tree.add(escape(f"rule {rule.rule} holds: {rule.signal} {rule.value:g} >= {rule.fires_from:g}"))
            for origin in rule.seen:
                line.add(escape(_origin(origin)))
    for option in apart.options:
        cost = output.usd(option.usd, "unpriced")
        tokens = "" if option.warm_tokens is None else f", {option.warm_tokens} tokens warm, {option.cold_tokens} cold"
        tree.add(escape(f"option {option.tier} {option.target}: {cost}{tokens}"))
    price = apart.price
    if price is not None and price.cost_usd is not None:
        worth = f", worth up to ${max(apart.evidence, 0) * price.unit_usd:.4f}" if price.to == "capable" else ""
        tree.add(
            f"going to the {price.to} tier: ${price.cost_usd:.4f}{worth} (prefix {price.prefix_tokens} tokens, "
            f"{price.go_held:.0f} warm there; refill ${price.refill_usd:.4f}, running ${price.running_usd:.4f}, "
            f"return ${price.return_usd:.4f}, over {price.turns:.1f} turns)"
        )
    if apart.changes:
        changes = tree.add("what would have changed it, the smallest change first")
        shown = [change for at, change in enumerate(apart.changes) if at < 5 or change.input == "threshold"]
        for change in shown:
            rule_of = f", {change.rule}" if change.rule else ""
            changes.add(
                escape(f"{change.input} {change.now:g} -> {change.then:.4g}: {change.tier} ({change.source}{rule_of})")
            )


def _needs(apart: "Explained") -> str:
    needs = (f"{tier} {'out of reach' if units is None else f'{units:+.3f}'}" for tier, units in apart.needs.items())
    return ", ".join(needs)


def _origin(origin: Any) -> str:
    what = " ".join(part for part in (origin.tool, origin.target, origin.status) if part) or "the message itself"
    return f"message {origin.message}: {what}" + (f": {origin.text}" if origin.text else "")


def _scores(score: float | None, confidence: float | None, threshold: float | None) -> str:
    parts = []
    if score is not None:
        side = "no side" if score == 0 else "capable side" if score > 0 else "efficient side"
        parts.append(f"score {score:+.3f} ({side})")
    if confidence is not None:
        against = "" if threshold is None else f" {'>=' if confidence >= threshold else '<'} threshold {threshold:g}"
        parts.append(f"confidence {confidence:.3f}{against}")
    elif threshold is not None:
        parts.append(f"threshold {threshold:g}")
    return ", ".join(parts)


def _signals(tree: "Tree", record: "TurnRecord") -> None:
    from rich.markup import escape

    signals = record.signals
    if signals is None:
        return
    shown = signals.observations[-8:]
    more = len(signals.observations) - len(shown)
    head = f"signals: depth {signals.depth}, {signals.results} results" + (", compacted" if signals.compacted else "")
    branch = tree.add(head + (f"; {more} earlier observations left out" if more else ""))
    for seen in shown:
        parts = [seen.tool, seen.kind, seen.status]
        if seen.error_class != "none":
            parts.append(f"{seen.error_class} {seen.error_kind}".strip())
        if seen.tests_passed is not None:
            parts.append("tests passed" if seen.tests_passed else "tests failed")
        line = ", ".join(parts) + f" (by {seen.evidence})"
        branch.add(escape(line + (f": {seen.evidence_text}" if seen.evidence_text else "")))


def _calls(tree: "Tree", record: "TurnRecord") -> None:
    from rich.markup import escape

    total = output.usd(record.cost_usd, record.cost_note)
    branch = tree.add(f"calls: {len(record.calls)}, {total}, {output.duration(record.total_s)} in all")
    for call in record.calls:
        parts = [f"{call.purpose} {call.target} ({call.model})", output.usd(call.cost_usd, call.cost_note)]
        if call.usage is not None:
            usage = call.usage
            parts.append(f"{usage.prompt_tokens} in ({usage.cache_read_tokens or 0} cached), {usage.output_tokens} out")
        if call.first_byte_s is not None:
            parts.append(f"first byte after {output.duration(call.first_byte_s - call.started_s)}")
        if call.ended_s is not None:
            parts.append(f"over after {output.duration(call.ended_s - call.started_s)}")
        if call.retries:
            parts.append(f"{call.retries} retries")
        parts.append(_became(call))
        branch.add(escape(", ".join(parts)))


def _lookups(tree: "Tree", record: "TurnRecord") -> None:
    from rich.markup import escape

    if not record.lookups:
        return
    branch = tree.add(escape(f"looked up in {record.lookups[0].knowledge}: {len(record.lookups)} times"))
    for one in record.lookups:
        query = one.query or "(not kept)"
        came = f"failed ({one.failure.kind})" if one.failure else f"{len(one.ids)} facts: {', '.join(one.ids[:10])}"
        branch.add(escape(f"{query}, after {output.duration(one.seconds)}: {came}"))


def _became(call: "Call") -> str:
    """What came of a call."""
    if call.unheard in ("breaker", "budget"):
        return f"not made ({call.unheard})"
    if call.unheard:
        return f"no verdict ({call.unheard})"
    return call.error or ("served" if call.served else "not served")


def _cache(tree: "Tree", record: "TurnRecord") -> None:
    use = record.cache
    if use is None:
        return
    branch = tree.add(f"prompt cache of {use.target}: {use.prompt_tokens} tokens in the prompt")
    for name, predicted, reported in (
        ("read", use.predicted_read, use.reported_read),
        ("written", use.predicted_write, use.reported_write),
    ):
        branch.add(f"{name}: {predicted} predicted, {'not' if reported is None else reported} reported")
    if use.broke:
        branch.add(f"broken: {words(use)}")
    elif use.cause == "first":
        branch.add("nothing was warm yet")
    if use.idle_s is not None:
        branch.add(f"last used {output.duration(use.idle_s)} before")
    if use.bias is not None:
        branch.add(f"predicted costs of prompts are {use.bias:+.1%} off over the newest turns")


def _handover(tree: "Tree", record: "TurnRecord") -> None:
    """The note that the target was given, each line with the messages it rests on."""
    from rich.markup import escape

    note = record.handover
    if note is None:
        return
    branch = tree.add("handed over with a note; messages it rests on are in brackets")
    for line in note.lines:
        branch.add(escape(f"{line.about} {list(line.messages)}: {line.text or 'what was said is not kept'}"))
    if note.left_out:
        branch.add(f"left out for brevity: {note.left_out}")


def _drop(drop: Any) -> str:
    """A loss as people read it: the field, what became of it, and why."""
    if isinstance(drop, dict) and "path" in drop:
        return f"{drop['path']} {drop.get('how', 'dropped')}: {drop.get('why', '')}".rstrip(": ")
    return _short(drop)


def _short(value: Any) -> str:
    import msgspec

    if isinstance(value, float):
        return f"{value:.4g}"
    text = value if isinstance(value, str) else msgspec.json.encode(value, enc_hook=str).decode()
    return text if len(text) <= 200 else text[:199] + "…"
