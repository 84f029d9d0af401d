"""A turn is freed the moment it is over, however it ended: nothing of it waits for the garbage collector."""

import gc
import http.client
import json
import time
from collections.abc import Iterator

import pytest
from tests.faulty import FaultyUpstream
from tests.running import Running, running

from turnout.gateway.serving import Serving

KINDS = """ok reset nothing stall-head stall-body cut cut-length html half-event utf8 empty s429-forever s500 s400 s401
overflow overflow-stream slow error-late json-stream begun""".split()  # noqa: SIM905 - reads better than 21 quoted words
PARTS = ("drafts", "judges", "takes-over", "advises", "classifies")
ASKING = """
[routes."{name}-drafts"]
type = "escalation"
weak = "{name}"
strong = "fine"
judge = "vote"
confirmations = 1
[routes."{name}-judges"]
type = "escalation"
weak = "fine"
strong = "fine"
judge = "{name}"
confirmations = 1
[routes."{name}-takes-over"]
type = "escalation"
weak = "fine"
strong = "{name}"
judge = "vote"
confirmations = 1
[routes."{name}-advises"]
type = "advisor"
executor = "fine"
advisor = "{name}"
min_tool_results = 0
[routes."{name}-classifies"]
type = "classifier"
judge = "{name}"
efficient = "fine"
capable = "fine"
"""
"""Routes that hold replies back and ask models about them, a target of one name in every part."""
PATHS = ("/v1/chat/completions", "/v1/messages", "/v1/responses")


@pytest.fixture(scope="module")
def gateway(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Running]:
    with FaultyUpstream() as upstream:
        at = f'format = "openai_chat"\nbase_url = "{upstream.url}"\nmax_retries = 1\n'
        toml = f"[upstreams.u]\n{at}first_byte_s = 0.3\nidle_s = 0.3\n[upstreams.patient]\n{at}"
        toml += "[server]\nkeepalive_after_s = 1.0\ndeadline_s = 1.5\n"
        toml += '[targets.fine]\nupstream = "u"\nmodel = "ok"\n'
        for kind in KINDS:
            toml += f'[targets.{kind}]\nupstream = "u"\nmodel = "{kind}"\n'
            toml += f'[routes.{kind}]\ntype = "passthrough"\ntarget = "{kind}"\n'
            toml += f'[routes.{kind}-then-ok]\ntype = "passthrough"\ntarget = "{kind}"\nfallbacks = ["fine"]\n'
            toml += ASKING.format(name=kind)
        toml += ASKING.format(name="late")
        toml += '[targets.vote]\nupstream = "u"\nmodel = "vote"\n'
        toml += '[targets.late]\nupstream = "patient"\nmodel = "stall-body"\n'
        toml += '[routes.late]\ntype = "passthrough"\ntarget = "late"\n'
        with running(toml, tmp_path_factory.mktemp("circles"), capture="full") as served:
            yield served


@pytest.fixture(autouse=True)
def _uncollected() -> Iterator[None]:
    gc.collect()
    gc.disable()
    yield
    gc.enable()


def ask(gateway: Running, path: str, route: str, stream: bool, hang_up: bool = False) -> None:
    connection = http.client.HTTPConnection(gateway.url.removeprefix("http://"), timeout=20)
    said = [{"role": "user", "content": f"hello {time.time()}"}]
    body = {"model": route, "stream": stream, ("input" if "responses" in path else "messages"): said}
    if "/messages" in path:
        body["max_tokens"] = 10
    connection.request("POST", path, json.dumps(body), {"content-type": "application/json"})
    if hang_up:
        time.sleep(0.2)
    else:
        connection.getresponse().read()
    connection.close()


def left(gateway: Running) -> list[tuple[str, str, int]]:
    """The turns that are still in memory once none is in flight."""
    gateway.settled()
    until = time.monotonic() + 2
    while found := [(o.ended, o.error, o.status) for o in gc.get_objects() if type(o) is Serving]:
        if time.monotonic() > until:
            break
        time.sleep(0.01)  # the last task of a turn is done a moment after its record
    return found


@pytest.mark.parametrize("kind", KINDS)
def test_no_turn_is_left(gateway: Running, kind: str) -> None:
    for route in (kind, f"{kind}-then-ok"):
        for path in PATHS:
            for stream in (False, True):
                ask(gateway, path, route, stream)
    assert left(gateway) == []


@pytest.mark.parametrize("part", PARTS)
@pytest.mark.parametrize("kind", KINDS)
def test_no_turn_is_left_that_asked_models_about_itself(gateway: Running, kind: str, part: str) -> None:
    for path, stream in zip(PATHS, (False, True, True), strict=True):
        ask(gateway, path, f"{kind}-{part}", stream)
    assert left(gateway) == []


@pytest.mark.parametrize("hang_up", [True, False])
@pytest.mark.parametrize("route", ["late", *(f"late-{part}" for part in PARTS)])
def test_no_turn_is_left_that_was_given_up(gateway: Running, route: str, hang_up: bool) -> None:
    # Waiting for the deadline takes its time: once in each way will do.
    for path in PATHS if hang_up or route == "late" else PATHS[:1]:
        for stream in (False, True):
            ask(gateway, path, route, stream, hang_up)
    assert left(gateway) == []
    if hang_up:
        assert "client_gone" in {turn.ended for turn in gateway.turns()[:6]}
