"""`turnout knowledge build --model`: opens the target, and says how it went."""

from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING

import typer

from turnout.cli import buying, exits, output, progress

if TYPE_CHECKING:
    from turnout.knowledge.building import Built
    from turnout.knowledge.extraction.asked import Asking, ByModel
    from turnout.upstream.buying.budget import Limits
    from turnout.upstream.models import Models


@contextmanager
def extractor(
    file: Path, name: str, kept: Path, limits: "Limits", asking: "Asking", told: progress.Told
) -> "Iterator[ByModel]":
    """The extractor that asks a target of a configuration, with its journal open."""
    from turnout.gateway.config import load
    from turnout.gateway.facts import rates_of
    from turnout.gateway.tables import nearest
    from turnout.knowledge.extraction.asked import ByModel
    from turnout.knowledge.extraction.journal import FORM
    from turnout.pricing import Prices
    from turnout.routing.core import TargetName
    from turnout.upstream.buying.calling import open_models
    from turnout.upstream.buying.identity import revision
    from turnout.upstream.buying.journal import Journal

    config, prices, target_name = load(file, None), Prices.load(), TargetName(name)
    target = config.targets.get(target_name)
    if target is None:
        raise exits.CommandError(f"{file} has no target {name!r}", step=nearest(name, list(config.targets), "targets"))
    rates = rates_of(target, config, prices)
    if limits.usd is not None and rates is None:
        raise exits.CommandError(
            f"--max-usd cannot hold: no price is known for {name}",
            step=f"state `price` in [targets.{name}], or limit tokens",
        )
    keys = buying.keys(config, [target.upstream])

    def opened() -> "Models":
        return open_models({target_name: target}, config.upstreams, keys, prices, asking.at_once)

    journal = Journal.open(kept, FORM)
    try:
        with ByModel(
            target_name,
            revision(target, config.upstreams[target.upstream]),
            opened,
            journal,
            limits,
            asking,
            rates,
            [key for key in keys.values() if key],
            lambda what, done, of, usd: told(what, done, of, output.usd(usd)),
        ) as by_model:
            yield by_model
    except KeyboardInterrupt:
        output.say(f"interrupted; {kept} keeps what was bought, the same command goes on")
        raise
    finally:
        journal.close()


def end(by_model: "ByModel", built: "Built", kept: Path) -> None:
    """Say what it used. Ends the command otherwise than well where documents were not asked about."""
    from turnout.knowledge.extraction.asked import NOT_ASKED

    budget = by_model.budget
    used = f"{output.count(budget.calls, 'call')}, {budget.tokens} tokens, {output.usd(budget.usd)}"
    output.say(f"{used} in all; every call is in {kept}")
    if by_model.unreadable:
        output.say(f"{output.count(by_model.unreadable, 'piece')} left out, whose replies could not be read")
    missing = built.bad.get(NOT_ASKED, 0)
    if by_model.left_out:
        step = "the same command asks again for what is missing; a server without structured output wants --structured text"
        raise exits.CommandError(f"gave no replies: {by_model.left_out}", exits.UPSTREAM, step)
    if missing:
        why = f"another call might exceed the limit on {by_model.stopped}" if by_model.stopped else "calls failed"
        output.say(f"{output.count(missing, 'document')} not extracted: {why}; the same command goes on")
        raise typer.Exit(exits.FOUND)
