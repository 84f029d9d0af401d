"""A collaboration route over five models that write and vote as a test says: the pool of the worked example."""

import json
import re
import threading
import time
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from pathlib import Path
from types import MappingProxyType
from typing import Any

from tests.e2e.vendors import Play
from tests.gateway.escalating import said
from tests.played import Played, Seen, Step
from tests.replays import replayed
from tests.running import Running, running

JSON = dict[str, Any]
MODELS = ("M1", "M2", "M3", "M4", "M5")
RECEIVED = {"M1": 8.25, "M2": 7.0, "M3": 6.25, "M4": 5.25, "M5": 6.0}
VOTERS = {"M1": ["M2"], "M2": ["M1"], "M3": ["M1", "M2"], "M4": ["M1", "M2"], "M5": ["M1", "M2"]}
_MARKED = re.compile(r"(=== [0-9a-f]{16} ===)\n(.*?)\n\1", re.DOTALL)


def graph(**changes: Any) -> JSON:
    """The graph file of the worked example at d1 = d2 = 50."""
    return {
        "models": list(MODELS),
        "scores": {one: {} for one in MODELS},
        "given": {"M1": 5.0, "M2": 6.0, "M3": 7.75, "M4": 8.5, "M5": 5.5},
        "received": RECEIVED,
        "category": {"M1": "LH", "M2": "LH", "M3": "HH", "M4": "HL", "M5": "LL"},
        "C": ["M1", "M2"],
        "C_prime": ["M5"],
        "C_i": VOTERS,
        "C_prime_i": {**{one: ["M5"] for one in MODELS}, "M5": []},
        "manifest": {"made_at": time.strftime("%Y-%m-%dT%H:%M:%SZ", time.gmtime())},
        **changes,
    }


def opinion(approve: bool, reason: str = "the sum is wrong") -> Play:
    """A voter's answer."""
    return Play(json.dumps({"reason": reason, "severity": "major", "approve": approve}), prompt=300, output=30)


def words_of(body: JSON) -> str:
    """All that a request says, whatever its format."""
    texts: list[str] = []

    def walk(value: Any) -> None:
        if isinstance(value, str):
            texts.append(value)
        elif isinstance(value, dict):
            for item in value.values():
                walk(item)
        elif isinstance(value, list):
            for item in value:
                walk(item)

    walk({key: body.get(key) for key in ("system", "instructions", "messages", "input")})
    return "\n".join(texts)


class Panel:
    """The models' server. `votes(voter, response)`: the play or steps of a vote; `writes(author, draft)`: those of an answer,
    `draft` being what it is to improve, "" for a first one. `did`: (model, what it was asked for), in order."""

    def __init__(self, form: str) -> None:
        self.form = form
        self.did: list[tuple[str, str]] = []
        self.bodies: list[JSON] = []
        self.closed: dict[str, float] = {}
        self.votes: Callable[[str, str], Play | list[Step]] = lambda voter, response: opinion(True)
        self.writes: Callable[[str, str], Play | list[Step]] = lambda author, draft: Play(f"{author} says 42.")
        self._lock = threading.Lock()
        self.server = Played(self._play)

    def _play(self, seen: Seen, number: int) -> list[Step]:
        body = json.loads(seen.body)
        model, words = body["model"], words_of(body)
        votes = "You are one of several experts" in words
        found = _MARKED.search(words)
        shown = found[2] if found else ""
        with self._lock:
            self.did.append((model, "vote" if votes else "refine" if found else "draft"))
            self.bodies.append(body)
        play = self.votes(model, shown) if votes else self.writes(model, shown)
        return said(play, self.form, body) if isinstance(play, Play) else play

    def asked(self, purpose: str) -> list[str]:
        """Which models were asked for this, in order of their names."""
        return sorted(model for model, what in self.did if what == purpose)


def toml(panel: Panel, per_target: Mapping[str, str] = MappingProxyType({}), **fields: Any) -> str:
    """The configuration of the route `r`. `per_target`: more lines of a model's target."""
    parts = [f'[upstreams.u]\nformat = "{panel.form}"\nbase_url = "{panel.server.url}"\nmax_retries = 0\n']
    for name in MODELS:
        price = "price = { input = 1.0, output = 2.0, cache_read = 0.0, cache_write = 1.0 }"
        parts.append(f'[targets.t{name}]\nupstream = "u"\nmodel = "{name}"\n{price}\n{per_target.get(name, "")}\n')
    nested = {key: value for key, value in fields.items() if isinstance(value, dict)}
    own = "".join(f"{key} = {json.dumps(value)}\n" for key, value in fields.items() if key not in nested)
    parts.append(f'[routes.r]\ntype = "collaboration"\ngraph = "graph.json"\n{own}')
    nested.setdefault("models", {name: f"t{name}" for name in MODELS})
    for key, value in nested.items():
        parts.append(f"[routes.r.{key}]\n" + "".join(f"{k} = {json.dumps(v)}\n" for k, v in value.items()))
    return "".join(parts)


@contextmanager
def collaborating(
    folder: Path, form: str = "openai_chat", server: str = "", file: JSON | None = None, **fields: Any
) -> Iterator[tuple[Running, Panel]]:
    """The route served, and its models. In the end every turn is decided again from what was recorded of it."""
    panel = Panel(form)
    (folder / "graph.json").write_text(json.dumps(file or graph()))
    with panel.server, running(server + toml(panel, **fields), folder, capture="full") as gateway:
        yield gateway, panel
        replayed(gateway)
