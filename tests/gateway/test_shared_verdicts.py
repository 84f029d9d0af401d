"""Two gateways on one Redis server share what nested routers keep: verdicts and budgets hold wherever a lane's turns go."""

import json
import random
import urllib.request
from concurrent.futures import ThreadPoolExecutor
from contextlib import ExitStack
from pathlib import Path
from typing import Any

from tests.running import Running, running, script

JSON = dict[str, Any]
LANES, TURNS = 24, 5


def verdict(p: float) -> str:
    said = {"crux": "it", "primary_rule": "SUP-1", "capability_boundary": "supported", "p_solve": p}
    return json.dumps(said)


TOML = "".join(
    f'[upstreams.{name}]\nformat = "openai_chat"\nscript = "{name}.jsonl"\n'
    f'[targets.{name}]\nupstream = "{name}"\nmodel = "{name}"\n'
    for name in ("small", "large", "judge", "reviewer")
)
TOML += """
[routes.coder]
type = "advisor"
advisor = "reviewer"
[routes.coder.executor]
type = "composite"
[[routes.coder.executor.routers]]
name = "verdict"
router = { type = "classifier", judge = "judge", efficient = "small", capable = "large" }
[[routes.coder.executor.routers]]
router = "large"
[sessions]
url_env = "SESSIONS_URL"
within_s = 20
"""


def turn(gateway: Running, lane: int, messages: list[JSON]) -> tuple[str, str, str]:
    """Target, source and turn id."""
    headers = {"content-type": "application/json", "x-turnout-session": f"s{lane}", "x-turnout-agent": f"a{lane % 3}"}
    data = json.dumps({"model": "coder", "messages": messages}).encode()
    request = urllib.request.Request(f"{gateway.url}/v1/chat/completions", data, headers)
    with urllib.request.urlopen(request, timeout=30) as response:
        response.read()
        found = response.headers
        return found["x-turnout-target"], found["x-turnout-source"], found["x-turnout-turn"]


def conversation(lane: int, steps: int) -> list[JSON]:
    """A hard task in odd lanes, an easy one in even ones, and so many results."""
    said: list[JSON] = [{"role": "user", "content": f"{'hard' if lane % 2 else 'easy'} task {lane}"}]
    for number in range(steps):
        function = {"name": "Bash", "arguments": json.dumps({"command": f"ls {number}"})}
        call = {"id": f"c{number}", "type": "function", "function": function}
        said.append({"role": "assistant", "tool_calls": [call]})
        said.append({"role": "tool", "tool_call_id": f"c{number}", "content": f"file {number}"})
    return said


def test_lanes_keep_verdicts_and_budgets_over_both(redis_url: str, tmp_path: Path) -> None:
    with ExitStack() as stack:
        gateways = []
        for name in ("one", "two"):
            (tmp_path / name).mkdir()
            for model in ("small", "large"):
                script(tmp_path / name, f"{model}.jsonl", {"text": f"{model} is done."})
            hard = {"contains": "hard", "text": verdict(0.1)}
            script(tmp_path / name, "judge.jsonl", hard, {"text": verdict(0.9)})
            script(tmp_path / name, "reviewer.jsonl", {"text": "APPROVE"})
            gateways.append(stack.enter_context(running(TOML, tmp_path / name, env={"SESSIONS_URL": redis_url})))
        shuffled = random.Random(7)

        def play(lane: int) -> list[tuple[str, str, str]]:
            return [turn(shuffled.choice(gateways), lane, conversation(lane, steps)) for steps in range(TURNS)]

        with ThreadPoolExecutor(8) as pool:
            played = list(pool.map(play, range(LANES)))
        for gateway in gateways:
            gateway.settled()
        assert all(gateway.turns() for gateway in gateways)
        records = {record.id: record for gateway in gateways for record in gateway.turns()}

    for lane, turns in enumerate(played):
        expected = "large" if lane % 2 else "small"
        assert [target for target, _, _ in turns] == [expected] * TURNS
        # The first turn holds no result, the second is reviewed, and the budget is spent for the others.
        assert [source for _, source, _ in turns] == ["classifier", "advisor", "pin", "pin", "pin"]
        purposes = [[call.purpose for call in records[turn_id].calls] for _, _, turn_id in turns]
        assert purposes == [["judge", "answer"], ["draft", "advisor"], ["answer"], ["answer"], ["answer"]]
        places = [records[turn_id].why.place for _, _, turn_id in turns]  # type: ignore[union-attr]
        assert places == ["executor/verdict", "", "executor/verdict", "executor/verdict", "executor/verdict"]
    assert len(records) == LANES * TURNS
