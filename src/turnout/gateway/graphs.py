"""The collaboration graphs that routes name: read from their files when a configuration is, and what is doubtful about them."""

from collections.abc import Mapping
from datetime import UTC, datetime
from typing import Any

from turnout.errors import ConfigError
from turnout.gateway import lines
from turnout.gateway.nested import nested
from turnout.gateway.tables import Tables
from turnout.routing.collaboration.graph import Reviewed, read
from turnout.routing.collaboration.router import Collaboration
from turnout.routing.core import TargetName
from turnout.upstream.target import Target


def bind_graphs(router: Any, path: lines.Path, tables: Tables) -> bool:
    """Read the graph of every collaboration router in `router`. False where one cannot be used, which is noted."""
    routers = [(where, one) for where, one in nested(router, path) if isinstance(one, Collaboration)]
    bound = [_bind(one, (*where, "graph"), tables) for where, one in routers]
    return all(bound)


def _bind(router: Collaboration, path: lines.Path, tables: Tables) -> bool:
    file = tables.folder / router.graph
    try:
        graph = read(file.read_bytes(), str(file))
    except FileNotFoundError:
        hint = "the path starts at the configuration's folder; `turnout peers graph SCORES --out FILE` writes one"
        tables.note(path, f"no such file: {file}", hint)
    except OSError as error:
        tables.note(path, f"cannot be read: {error.strerror}: {file}")
    except ConfigError as error:
        tables.note(path, f"{error.file}: {f'{error.key}: ' if error.key else ''}{error.message}")
    else:
        router.bind(graph)
        known = [model for model in router.models if model in graph.models and model not in graph.excluded]
        if not known:
            names = ", ".join(graph.models)
            message = f"none of `models` may vote by the graph {file}"
            tables.note((*path[:-1], "models"), message, f"its models: {names}")
        return bool(known)
    return False


def graph_concerns(
    router: Collaboration, targets: Mapping[TargetName, Target], now: float
) -> list[tuple[str, str, str]]:
    """What an operator should know of a graph at `now` (Unix seconds): field, message and hint."""
    graph, found = router.relations, []
    age = graph.age_days(datetime.fromtimestamp(now, UTC))
    hint = "review the models again (`turnout peers review`)"
    match graph.staleness(datetime.fromtimestamp(now, UTC)):
        case "stale":
            found.append(("graph", f"the graph is {age:.0f} days old: models may be others by now", hint))
        case "expired":
            found.append(
                ("graph", f"the graph is {age:.0f} days old, more than it may be: nobody is asked to vote", hint)
            )
    behind = {
        name: Reviewed(name, targets[target].model) for name, target in router.models.items() if target in targets
    }
    if changed := graph.changed(behind):
        found.append(
            ("models", f"{', '.join(changed)}: another model stands there than the one that was reviewed", hint)
        )
    return found
