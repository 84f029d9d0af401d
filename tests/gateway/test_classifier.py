"""A classifier served: verdicts, pins, judges that fail, and what the records say of it all."""

import concurrent.futures
import itertools
import json
import time
import urllib.request
from collections.abc import Iterator
from typing import Any

import pytest
from tests.replays import replayed
from tests.running import Running, running, script

JSON = dict[str, Any]
REMINDER = "<system-reminder>The todo list is empty; do not mention this.</system-reminder>"
numbers = itertools.count()


def verdict(p: float, rule: str, boundary: str) -> str:
    return json.dumps({"crux": "it", "primary_rule": rule, "capability_boundary": boundary, "p_solve": p})


JUDGE = [
    {"contains": "judge is down", "status": 500, "error": "broken"},
    {"contains": "judge is busy", "status": 429, "error": "slow down"},
    {"contains": "judge is slow", "text": verdict(0.9, "SUP-1", "supported"), "delay_s": 5},
    {"contains": "judge rambles", "text": "Well, it depends. {"},
    {"contains": "judge contradicts", "text": verdict(0.9, "SUP-1", "unsupported")},
    {"contains": "take your time", "text": verdict(0.9, "SUP-1", "supported"), "delay_s": 0.8},
    {"contains": "hard", "text": verdict(0.3, "LIM-1", "unsupported")},
    {"text": verdict(0.9, "SUP-1", "supported")},
]
SORTER = [{"contains": "poem", "text": '{"kind": "poem"}'}, {"text": '{"kind": "code"}'}]
TOML = "".join(
    f'[upstreams.{name}]\nformat = "{form}"\nscript = "{name}.jsonl"\nmax_retries = 0\n'
    f'[targets.{name}]\nupstream = "{name}"\nmodel = "{name}"\nprice = {{ input = {price}, output = {price} }}\n'
    for name, form, price in (
        ("small", "anthropic_messages", 1),
        ("large", "anthropic_messages", 10),
        ("judge", "openai_chat", 0.5),
        ("sorter", "openai_responses", 0.5),
    )
)
TOML += """
[routes.coder]
type = "classifier"
judge = "judge"
efficient = "small"
capable = "large"
[routes.coder.judging]
within_s = 1.5
[routes.sorted]
type = "classifier"
judge = "sorter"
trigger = "every_request"
schema = '{"type": "object", "properties": {"kind": {"type": "string"}}, "required": ["kind"]}'
choice = "/kind"
default = "large"
[routes.sorted.targets]
code = "small"
[routes.sorted.judging]
prompt = "Is it code or a poem?"
output = "json_object"
[routes.staged]
type = "stage"
efficient = "small"
capable = "large"
undecided = { type = "classifier", judge = "judge", efficient = "small", capable = "large" }
"""


@pytest.fixture(scope="module")
def gateway(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Running]:
    folder = tmp_path_factory.mktemp("classifier")
    for name in ("small", "large"):
        script(folder, f"{name}.jsonl", {"text": f"I am {name}."})
    script(folder, "judge.jsonl", *JUDGE)
    script(folder, "sorter.jsonl", *SORTER)
    with running(TOML, folder, capture="full") as served:
        yield served
        replayed(served)


@pytest.fixture(autouse=True)
def _well(gateway: Running) -> None:
    """Judges that failed in one test are asked in the next."""
    for model in gateway.gateway.judges.models:
        model.health.succeeded()


class Client:
    """A session of Claude Code's kind."""

    def __init__(self, gateway: Running, model: str = "coder", agent: str = "") -> None:
        self.gateway = gateway
        self.model = model
        self.headers = {"content-type": "application/json", "x-claude-code-session-id": f"s{next(numbers)}"}
        if agent:
            self.headers["x-claude-code-agent-id"] = agent
        self.messages: list[JSON] = []

    def say(self, text: str) -> JSON:
        return self.send([{"type": "text", "text": text}])

    def result(self, text: str, failed: bool = False) -> JSON:
        """The turn after a tool's result."""
        given = {"command": "python x.py"}
        use = {"type": "tool_use", "id": f"toolu_{len(self.messages)}", "name": "Bash", "input": given}
        self.messages[-1] = {"role": "assistant", "content": [use]}
        return self.send([{"type": "tool_result", "tool_use_id": use["id"], "content": text, "is_error": failed}])

    def send(self, content: list[JSON]) -> JSON:
        self.messages.append({"role": "user", "content": content})
        tool = {"name": "Bash", "input_schema": {"type": "object", "properties": {}}}
        body = {"model": self.model, "max_tokens": 50, "messages": self.messages, "tools": [tool]}
        request = urllib.request.Request(self.gateway.url + "/v1/messages", json.dumps(body).encode(), self.headers)
        with urllib.request.urlopen(request, timeout=20) as response:
            text = json.loads(response.read())["content"][0]["text"]
            headers = {name.lower(): value for name, value in response.headers.items()}
        self.messages.append({"role": "assistant", "content": text})
        return {"text": text, "source": headers["x-turnout-source"], "turn": headers["x-turnout-turn"]}


def record(gateway: Running, answer: JSON) -> Any:
    gateway.settled()
    return next(turn for turn in gateway.turns() if turn.id == answer["turn"])


def test_the_verdict_is_asked_for_once_a_task_and_charged(gateway: Running) -> None:
    client = Client(gateway)
    first = client.say("An easy thing.")
    assert (first["text"], first["source"]) == ("I am small.", "classifier")
    turn = record(gateway, first)
    assert [(call.purpose, call.target, call.served) for call in turn.calls] == [
        ("judge", "judge", False),
        ("answer", "small", True),
    ]
    assert all(call.cost_usd and call.usage and call.ended_s for call in turn.calls)
    assert turn.cost_usd == pytest.approx(sum(call.cost_usd for call in turn.calls))
    assert (turn.why.rule, turn.why.confidence, turn.why.threshold) == ("SUP-1", 0.9, 0.5)

    again = client.result("a b c")
    assert (again["text"], again["source"]) == ("I am small.", "pin")
    assert [call.purpose for call in record(gateway, again).calls] == ["answer"]

    hard = client.say("Now a hard thing.")
    assert (hard["text"], hard["source"]) == ("I am large.", "classifier")
    assert client.result("d")["source"] == "pin"


def test_a_reminder_is_no_new_task(gateway: Running) -> None:
    client = Client(gateway)
    assert client.say("An easy thing.")["source"] == "classifier"
    assert client.say(REMINDER)["source"] == "pin"
    assert client.say(f"{REMINDER}\nA hard thing.")["text"] == "I am large."


FAILURES = [
    ("The judge is down.", "upstream_5xx"),
    ("The judge is busy.", "rate_limit"),
    ("The judge is slow.", "timeout"),
    ("The judge rambles.", "parse_error"),
    ("The judge contradicts itself.", "invalid_response"),
]


@pytest.mark.parametrize(("text", "reason"), FAILURES)
def test_a_judge_that_fails_costs_its_time_and_nothing_else(gateway: Running, text: str, reason: str) -> None:
    client = Client(gateway)
    began = time.monotonic()
    answer = client.say(text)
    assert time.monotonic() - began < 4.5  # the judge's limit is 1.5 s
    assert (answer["text"], answer["source"]) == ("I am large.", "default")
    turn = record(gateway, answer)
    assert (turn.why.values["judge_failure"], turn.why.abstained) == (reason, True)
    assert [call.unheard for call in turn.calls] == [reason, ""]
    assert turn.remembered == ()


def test_a_verdict_is_asked_for_again_after_an_outage(gateway: Running) -> None:
    client = Client(gateway)
    assert client.say("The judge rambles.")["source"] == "default"
    client.messages[0]["content"][0]["text"] = "An easy thing."
    again = client.result("a")
    assert (again["text"], again["source"]) == ("I am small.", "classifier")


def test_children_are_judged_apart_and_at_once(gateway: Running) -> None:
    def child(number: int) -> JSON:
        client = Client(gateway, agent=f"a{number}")
        client.headers["x-claude-code-session-id"] = "family"
        return client.say(f"Take part {number}: " + ("hard" if number % 2 else "easy") + ", take your time")

    began = time.monotonic()
    with concurrent.futures.ThreadPoolExecutor(6) as pool:
        answers = list(pool.map(child, range(0, 12, 2)))
    assert time.monotonic() - began < 6 * 0.8  # one after another they would take this long at least
    assert {answer["source"] for answer in answers} == {"classifier"}
    parent = Client(gateway)
    parent.headers["x-claude-code-session-id"] = "family"
    assert parent.say("A hard thing.")["text"] == "I am large."


def test_a_question_of_ones_own(gateway: Running) -> None:
    client = Client(gateway, "sorted")
    code = client.say("Sort a list.")
    assert (code["text"], code["source"]) == ("I am small.", "classifier")
    poem = client.say("Now a poem.")
    assert (poem["text"], poem["source"]) == ("I am large.", "default")
    why = record(gateway, poem).why
    assert (why.rule, why.abstained) == ("unknown_choice", True)


def test_the_decision_alone_says_that_it_would_ask(gateway: Running) -> None:
    body = {"format": "anthropic_messages", "request": {"model": "coder", "messages": [], "max_tokens": 5}}
    body["request"]["messages"] = [{"role": "user", "content": "An easy thing."}]  # type: ignore[index]
    request = urllib.request.Request(
        gateway.url + "/v1/route", json.dumps(body).encode(), {"content-type": "application/json"}
    )
    with urllib.request.urlopen(request, timeout=20) as response:
        answer = json.loads(response.read())
    assert answer["target"] is None
    assert answer["needs"] == [{"target": "judge", "purpose": "judge"}]


def test_inside_stage_it_decides_what_the_signals_leave_open(gateway: Running) -> None:
    client = Client(gateway, "staged")
    easy = client.say("An easy thing.")
    assert (easy["text"], easy["source"]) == ("I am small.", "classifier")
    assert client.result("a b c")["source"] == "pin"
    why = record(gateway, easy).why
    assert (why.place, why.values["undecided"]) == ("undecided", "efficient")
    failed = "Traceback (most recent call last):\nValueError: bad value"
    for _ in range(2):
        answer = client.result(failed, True)
    assert (answer["text"], answer["source"]) == ("I am large.", "override")
    assert [call.purpose for call in record(gateway, answer).calls] == ["answer"]
    with urllib.request.urlopen(f"{gateway.url}/v1/turns/{easy['turn']}", timeout=20) as response:
        explained = json.loads(response.read())["explained"]
    assert (explained["same"], explained["source"], explained["tier"]) == (True, "classifier", "efficient")


def test_inside_stage_a_judge_that_fails_leaves_it_to_the_picker(gateway: Running) -> None:
    answer = Client(gateway, "staged").say("The judge rambles.")
    assert (answer["text"], answer["source"]) == ("I am small.", "default")
