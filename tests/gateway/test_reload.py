"""A change of files is served at once by new turns and by no running one; a wrong one by none."""

import asyncio
import http.client
import json
import os
import pty
import re
import signal
import subprocess
import sys
import threading
import time
from collections import defaultdict
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from tests.faulty import FaultyUpstream
from tests.running import Running, running, script
from tests.served import BODIES, SRC, Served, served

from turnout.gateway.config import load
from turnout.gateway.versions import folder_of, table_of, version

CHAT = "/v1/chat/completions"
SCRIPTED = """
[upstreams.u]
format = "openai_chat"
script = "replies.jsonl"
[targets.small]
upstream = "u"
model = "small"
[targets.large]
upstream = "u"
model = "large"
[routes.coder]
type = "passthrough"
target = "small"
[server]
reload_every_s = 0.1
"""


def promote(file: Path, route: str, **changed: Any) -> str:
    """A version with some keys changed, served from the next reload on; its digest."""
    config = load(file, None)
    made = version(config, route, {**table_of(config.routes[route]), **changed})
    folder = folder_of(config)
    folder.promote(made, folder.add(made))
    return made.digest


def ready(gateway: Served) -> dict[str, Any]:
    connection = gateway.connect()
    connection.request("GET", "/ready")
    body: dict[str, Any] = json.loads(connection.getresponse().read())
    connection.close()
    return body


def until(gateway: Served, holds: Callable[[dict[str, Any]], bool]) -> dict[str, Any]:
    """The state of readiness once it is as wanted."""
    limit = time.monotonic() + 15
    while not holds(body := ready(gateway)):
        assert time.monotonic() < limit, body
        time.sleep(0.02)
    return body


class Load(threading.Thread):
    """A client that asks and asks, streamed every other time. `seen`: when each turn began and ended, and by what policy."""

    def __init__(self, gateway: Served) -> None:
        super().__init__(daemon=True)
        self.gateway = gateway
        self.stop = False
        self.seen: list[tuple[float, float, str]] = []
        self.wrong: list[Any] = []

    def run(self) -> None:
        paths = list(BODIES)
        while not self.stop:
            began = time.monotonic()
            stream = len(self.seen) % 2 == 0
            status, headers, data = self.gateway.ask(paths[len(self.seen) % 3], "coder", stream)
            if status != 200 or b"done" not in data:
                self.wrong.append((status, data))
            self.seen.append((began, time.monotonic(), headers.get("x-turnout-policy", "")))


def test_reload_under_load_fails_no_turn_and_mixes_no_two(tmp_path: Path) -> None:
    script(tmp_path, "replies.jsonl", {"text": "step by step it is done", "gap_s": 0.02})
    file = tmp_path / "turnout.toml"
    with served(SCRIPTED, tmp_path) as gateway:
        own = until(gateway, lambda body: True)["policies"]["coder"]["digest"]
        clients = [Load(gateway) for _ in range(4)]
        for client in clients:
            client.start()
        digests, spans = [own], [(0.0, 0.0)]
        for step in range(6):
            began = time.monotonic()
            if step % 3 == 2:
                folder_of(load(file, None)).rollback("coder", to_own=True)
                expected = own
            else:
                expected = promote(file, "coder", target=("large", "small")[step % 3], strict=True)
            if step % 2:
                gateway.process.send_signal(signal.SIGHUP)
            until(gateway, lambda body, expected=expected: body["policies"]["coder"]["digest"] == expected)  # type: ignore[misc]
            digests.append(expected)
            spans.append((began, time.monotonic()))
            # Something wrong now and then: nobody may notice.
            if step == 3:
                text = file.read_text()
                file.write_text(text.replace('"passthrough"', '"passthru"'))
                body = until(gateway, lambda body: bool(body["configuration"]["error"]))
                assert body["ready"] is True
                assert body["policies"]["coder"]["digest"] == expected
                assert f"{file}:12: routes.coder.type: unknown type 'passthru'" in body["configuration"]["error"]
                file.write_text(text)
                until(gateway, lambda body: not body["configuration"]["error"])
        for client in clients:
            client.stop = True
        for client in clients:
            client.join(20)
        assert [client.wrong for client in clients] == [[], [], [], []]
        turns = [turn for client in clients for turn in client.seen]
        for began, ended, digest in turns:
            # Asked for before the turn was over, and not known to be replaced when it began.
            replaced = [served_at for _, served_at in spans[1:]] + [ended]
            could = {digests[i] for i, (asked, _) in enumerate(spans) if asked <= ended and replaced[i] >= began}
            assert digest in could
        assert len({digest for _, _, digest in turns}) == 3
        gateway.stop()
        recorded = gateway.turns()
        assert len(recorded) == len(turns)
        by_digest: dict[str, set[str]] = defaultdict(set)
        for record in recorded.values():
            by_digest[record.policy].add(record.target)
        assert {digest: len(targets) for digest, targets in by_digest.items()} == dict.fromkeys(set(digests), 1)
        assert "not reloaded, the configuration before stays" in gateway.log()
        assert f"route coder is decided by {digests[1]}, before by {own}" in gateway.log()


def test_a_stream_that_runs_ends_on_what_it_began_with(tmp_path: Path) -> None:
    with FaultyUpstream() as upstream:
        text = SCRIPTED.replace('script = "replies.jsonl"', f'base_url = "{upstream.url}"').replace(
            '"small"', '"silent-1"'
        )
        text = text.replace("[targets.silent-1]", "[targets.slow]").replace('target = "silent-1"', 'target = "slow"')
        text = text.replace("[targets.small]", "[targets.slow]").replace('model = "large"', 'model = "ok"')
        with served(text, tmp_path) as gateway:
            file = tmp_path / "turnout.toml"
            own = ready(gateway)["policies"]["coder"]["digest"]
            running_turn = gateway.begin(CHAT, "coder", stream=True)
            gateway.wait_for_turns(1)
            # The target that serves it is gone with the reload.
            after = file.read_text().replace('target = "slow"', 'target = "large"')
            after = re.sub(r"\[targets\.slow\].*?(?=\[targets)", "", after, flags=re.S)
            file.write_text(after)
            gateway.process.send_signal(signal.SIGHUP)
            body = until(gateway, lambda body: body["policies"]["coder"]["digest"] != own)
            status, headers, _ = gateway.ask(CHAT, "coder")
            assert (status, headers["x-turnout-target"]) == (200, "large")
            assert headers["x-turnout-policy"] == body["policies"]["coder"]["digest"]
            response = running_turn.getresponse()
            assert response.getheader("x-turnout-policy") == own
            assert response.getheader("x-turnout-target") == "slow"
            assert response.read().endswith(b"data: [DONE]\n\n")
            gateway.stop()
            assert sorted((t.policy, t.target, t.ended) for t in gateway.turns().values()) == sorted(
                [(own, "slow", "ok"), (headers["x-turnout-policy"], "large", "ok")]
            )


_ATTACHED = "import fcntl, os, sys, termios; fcntl.ioctl(0, termios.TIOCSCTTY, 0); os.execv(sys.argv[1], sys.argv[1:])"
"""A command with the terminal that is its stdin."""


@pytest.mark.parametrize("ignored", [False, True])
def test_a_closed_terminal_ends_the_gateway_unless_it_is_to_outlive_it(tmp_path: Path, ignored: bool) -> None:
    script(tmp_path, "replies.jsonl", {"text": "hi"})
    (tmp_path / "turnout.toml").write_text(SCRIPTED.replace("0.1", "0") + '[ledger]\nurl = "sqlite:///:memory:"\n')
    master, slave = pty.openpty()
    command = [sys.executable, "-m", "turnout.gateway", str(tmp_path / "turnout.toml"), "127.0.0.1", "0"]
    if ignored:
        command = [sys.executable, "-c", _IGNORING, *command]
    errors = (tmp_path / "stderr").open("wb")
    environment = {**os.environ, "PYTHONPATH": str(SRC)}
    process = subprocess.Popen(
        [sys.executable, "-c", _ATTACHED, *command],
        stdin=slave,
        stdout=errors,
        stderr=errors,
        env=environment,
        start_new_session=True,
    )
    os.close(slave)
    errors.close()
    try:
        _wait_for("turnout: serving", tmp_path / "stderr", process)
        (tmp_path / "turnout.toml").write_text("wrong")
        os.close(master)
        if ignored:
            _wait_for("not reloaded", tmp_path / "stderr", process)
            process.terminate()
        assert process.wait(20) == 0, (tmp_path / "stderr").read_text()
        assert ("not reloaded" in (tmp_path / "stderr").read_text()) is ignored
    finally:
        if process.poll() is None:
            process.kill()


_IGNORING = "import os, signal, sys; signal.signal(signal.SIGHUP, signal.SIG_IGN); os.execv(sys.argv[1], sys.argv[1:])"


def _wait_for(words: str, log: Path, process: "subprocess.Popen[bytes]") -> None:
    limit = time.monotonic() + 20
    while words not in log.read_text():
        assert process.poll() is None, log.read_text()
        assert time.monotonic() < limit
        time.sleep(0.02)


HTTP = """
[upstreams.a]
format = "openai_chat"
base_url = "{a}"
max_retries = 0
[upstreams.b]
format = "openai_chat"
base_url = "{b}"
max_retries = 0
[targets.one]
upstream = "a"
model = "ok"
[targets.two]
upstream = "b"
model = "ok"
[routes.first]
type = "passthrough"
target = "one"
[routes.second]
type = "passthrough"
target = "two"
"""


def ask(gateway: Running, model: str, **headers: str) -> tuple[int, str]:
    connection = http.client.HTTPConnection(gateway.url.removeprefix("http://"), timeout=30)
    try:
        body = json.dumps({"model": model, "messages": [{"role": "user", "content": "hi"}]})
        connection.request("POST", CHAT, body, {"content-type": "application/json", **headers})
        response = connection.getresponse()
        return response.status, response.read().decode()
    finally:
        connection.close()


def change(gateway: Running, folder: Path, *pairs: tuple[str, str]) -> bool:
    """Edit the file and reload."""
    file = folder / "turnout.toml"
    text = file.read_text()
    for old, new in pairs:
        assert old in text
        text = text.replace(old, new)
    file.write_text(text)
    return gateway.reload()


def test_what_is_known_of_targets_that_stay_is_kept_and_what_goes_is_closed(tmp_path: Path) -> None:
    with FaultyUpstream() as a, FaultyUpstream() as b, running(HTTP.format(a=a.url, b=b.url), tmp_path) as gateway:
        assert ask(gateway, "first")[0] == ask(gateway, "second")[0] == 200
        before = gateway.gateway
        client = before.models["one"].transport  # type: ignore[index]
        assert client.connections == 2  # type: ignore[attr-defined]
        before.models["one"].health.failures = 4  # type: ignore[index]
        gone = HTTP[HTTP.index("[upstreams.b]") : HTTP.index("[targets.one]")].format(b=b.url)
        two = HTTP[HTTP.index("[targets.two]") : HTTP.index("[routes.first]")]
        second = HTTP[HTTP.index("[routes.second]") :]
        assert change(
            gateway, tmp_path, (gone, ""), (two, '[targets.three]\nupstream = "a"\nmodel = "ok"\n'), (second, "\n")
        )
        after = gateway.gateway
        assert after is not before
        assert after.models["one"].transport is client  # type: ignore[index]
        assert client.connections == 1  # type: ignore[attr-defined]
        assert after.models["one"].health.failures == 4  # type: ignore[index]
        assert (after.sessions, after.ledger, after.metrics) == (before.sessions, before.ledger, before.metrics)
        status, said = ask(gateway, "second")
        assert status == 404
        assert "no route or alias is called 'second'" in said
        assert change(gateway, tmp_path, ('model = "ok"', 'model = "ok#other"'))
        assert gateway.gateway.models["one"].health.failures == 0  # type: ignore[index]
        assert ask(gateway, "first")[0] == 200


@pytest.mark.parametrize(
    ("old", "new", "key"),
    [
        ('capture = "signals"', 'capture = "full"', "ledger.capture"),
        ("flush_interval_s = 0.05", "flush_interval_s = 0.06", "ledger.flush_interval_s"),
        ("[ledger]", "[sessions]\nttl_s = 5.0\n[ledger]", "sessions.ttl_s"),
        (
            "[ledger]",
            "[server]\nshutdown_s = 5.0\nlog_level = 'error'\n[ledger]",
            "server.log_level, server.shutdown_s",
        ),
    ],
)
def test_what_takes_a_restart_is_refused_by_its_key(tmp_path: Path, old: str, new: str, key: str) -> None:
    script(tmp_path, "replies.jsonl", {"text": "hi"})
    with running(SCRIPTED.replace("[server]\nreload_every_s = 0.1\n", ""), tmp_path) as gateway:
        before = gateway.gateway
        assert change(gateway, tmp_path, (old, new), ('target = "small"', 'target = "large"')) is False
        assert gateway.gateway is before
        reloads = before.metrics.reloads
        assert reloads.error.startswith(f"{tmp_path / 'turnout.toml'}: {key}: is changed by a restart only")
        assert (reloads.done, reloads.failed) == (0, 1)
        text = before.metrics.render().decode()
        assert 'turnout_reloads_total{result="refused"} 1.0' in text
        assert "turnout_reload_ok 0.0" in text
        assert change(gateway, tmp_path, (new, old))
        assert (reloads.error, reloads.done) == ("", 1)
        assert ask(gateway, "coder")[0] == 200
        assert gateway.settled()[0].target == "large"


def test_limits_keys_and_budgets_are_taken_over_and_money_stays_spent(tmp_path: Path) -> None:
    with FaultyUpstream() as a, FaultyUpstream() as b:
        toml = HTTP.format(a=a.url, b=b.url) + "judge_usd_per_day = 5.0\n"
        with running(toml, tmp_path, env={"KEY": "secret-of-web"}) as gateway:
            budget = gateway.gateway.judges.budgets["second"]
            assert budget.refuses(time.time()) == ""
            budget.settle(0.0, 4.0)
            slots = gateway.gateway.judges.slots
            assert ask(gateway, "first")[0] == 200
            tenants = '[server]\nrequire_keys = true\n[server.tenants.web]\nkey_env = "KEY"\n[ledger]'
            assert change(gateway, tmp_path, ("[ledger]", tenants), ("per_day = 5.0", "per_day = 3.0"))
            assert ask(gateway, "first")[0] == 401
            assert ask(gateway, "first", authorization="Bearer secret-of-web")[0] == 200
            assert gateway.gateway.judges.budgets["second"] is budget
            assert "have cost $4.0000 of $3" in budget.refuses(time.time())
            assert gateway.gateway.judges.slots == slots


def test_files_are_looked_at_only_while_they_change(tmp_path: Path) -> None:
    script(tmp_path, "replies.jsonl", {"text": "hi"})
    with running(SCRIPTED.replace("0.1", "0"), tmp_path) as gateway:

        def look() -> None:
            asyncio.run_coroutine_threadsafe(gateway.live.look(), gateway.loop).result(20)

        reloads = gateway.gateway.metrics.reloads
        look()
        assert (reloads.done, reloads.failed) == (0, 0)
        digest = promote(tmp_path / "turnout.toml", "coder", target="large")
        look()
        look()
        assert (reloads.done, reloads.failed) == (1, 0)
        assert gateway.gateway.config.routes["coder"].policy == digest
        path = tmp_path / "policies" / f"coder-{digest}.toml"
        good = path.read_text()
        path.write_text(good.replace("large", "small"))
        look()
        look()
        assert (reloads.done, reloads.failed) == (1, 1)
        assert "was changed after it was promoted for route coder" in reloads.error
        assert gateway.gateway.config.routes["coder"].policy == digest
        path.write_text(good)
        look()
        assert (reloads.done, reloads.error) == (2, "")


def test_canaries_that_stay_keep_what_they_have_seen(tmp_path: Path) -> None:
    script(tmp_path, "replies.jsonl", {"text": "hi"})
    canary = 'type = "canary"\nname = "trial"\nshare = 0.5\nincumbent = "large"\ncandidate = "small"\n'
    toml = SCRIPTED.replace('type = "passthrough"\ntarget = "small"\n', canary)
    with running(toml, tmp_path) as gateway:
        reading = gateway.gateway.canaries._readings[0]
        assert change(gateway, tmp_path, ("reload_every_s = 0.1", "reload_every_s = 5"))
        assert gateway.gateway.canaries._readings == [reading]
        assert change(gateway, tmp_path, ("share = 0.5", "share = 0.4"))
        assert [one.watch.canary.share for one in gateway.gateway.canaries._readings] == [0.4]
        assert change(gateway, tmp_path, (canary.replace("0.5", "0.4"), 'type = "passthrough"\ntarget = "small"\n'))
        assert gateway.gateway.canaries._readings == []
