"""`turnout route`: what a route of a configuration decides for recorded conversations, without calling any model."""

import time
from collections.abc import Mapping
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from turnout.cli import options, output

if TYPE_CHECKING:
    from turnout.evaluate.recordings import Recorded
    from turnout.gateway.routes import Route
    from turnout.routing.core import TargetFacts, TargetName
    from turnout.signals import Vocabulary


def route(
    config: Annotated[Path, typer.Argument(metavar="CONFIG", help="Configuration file.")],
    name: Annotated[str, typer.Argument(metavar="ROUTE", help="Route to ask.")],
    file: Annotated[
        Path, typer.Argument(metavar="FILE.jsonl", help="Conversations, one JSON object a line; - is stdin.")
    ],
    table: Annotated[bool, typer.Option("--table", help="Print a table for people instead of JSON lines.")] = False,
    as_json: options.AsJson = False,
) -> None:
    """Show what a route decides for recordings.

    One JSON line per conversation: the signals at its end and the decision for its next turn. No model is called.

    A router that would ask models first says which in `needs`, and its target is null. Headers of a line name its lane.
    """
    from turnout.cli.serve import require_route
    from turnout.evaluate.recordings import conversations
    from turnout.gateway.config import load
    from turnout.gateway.facts import facts
    from turnout.signals import Vocabulary

    loaded = load(config, None)
    chosen = loaded.by_model()[require_route(loaded.by_model(), name)]
    known = facts(loaded)
    vocabulary = Vocabulary(loaded.signals)
    rows = (decided(recorded, chosen, known, loaded.server.deadline_s, vocabulary) for recorded in conversations(file))
    if table and not as_json:
        _table(rows)
        return
    for row in rows:
        output.emit(row)


def decided(
    recorded: "Recorded",
    route: "Route",
    targets: "Mapping[TargetName, TargetFacts]",
    deadline_s: float,
    vocabulary: "Vocabulary | None" = None,
) -> dict[str, Any]:
    """The decision for the next turn of a conversation, as printed."""
    import msgspec

    from turnout.routing.core import Turn
    from turnout.routing.stage.explain import explain
    from turnout.sessions.identity import identify
    from turnout.signals import BUILT_IN, observe
    from turnout.steps import Run

    headers = {
        name.encode("latin-1", "replace"): value.encode("latin-1", "replace")
        for name, value in recorded.headers.items()
    }
    lane, agent = identify(headers, recorded.conversation, recorded.settings)
    seen = observe(recorded.conversation, vocabulary or BUILT_IN, lane.agent)
    turn = Turn(
        id=f"line-{recorded.line}",
        lane=lane,
        conversation=recorded.conversation,
        settings=recorded.settings,
        signals=seen,
        targets=targets,
        now=time.time(),
        deadline_s=deadline_s,
        asked_for=route.name,
        agent=agent,
    )
    undecided = {"target": None, "source": None, "score": None, "confidence": None, "threshold": None}
    row: dict[str, Any] = {"conversation": recorded.line, **undecided, "signals": output.whole(seen), "needs": []}
    try:
        run: Run[Any, Any, Any] = Run(route.router.route(turn))
    except Exception as error:  # a router that raises decides nothing; live, the turn goes to the route's last resort
        fault = f"{type(error).__name__}: {error}"
        return {**row, "target": route.falls_to, "source": "fault", "why": {"source": "fault", "sentence": fault}}
    if not run.done:
        needs = [{"target": call.target, "purpose": call.purpose} for call in run.pending]
        run.close()
        asked = ", ".join(f"{need['purpose']} from {need['target']}" for need in needs)
        return {**row, "why": {"sentence": f"would first ask: {asked}"}, "needs": needs}
    reasons = run.result.why
    explained = explain(reasons, seen, turn.memory, targets, turn.now)
    return {
        **row,
        "target": run.result.target,
        "source": reasons.source,
        "score": reasons.score,
        "confidence": reasons.confidence,
        "threshold": reasons.threshold,
        "why": msgspec.to_builtins(reasons),
        **({"explained": msgspec.to_builtins(explained)} if explained else {}),
    }


def _table(rows: Any) -> None:
    table = output.table("line", "target", "decided by", "score", "confidence", "why")
    for row in rows:
        numbers = (
            "" if row[key] is None else f"{row[key]:{form}}" for key, form in (("score", "+.3f"), ("confidence", ".3f"))
        )
        sentence = row["why"].get("sentence", "")
        table.row(str(row["conversation"]), row["target"] or "?", row["source"] or "", *numbers, sentence)
    table.print()
