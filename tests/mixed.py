"""Mixed load on a gateway with scripted models: every dialect on every kind of route at once, with faults and hang-ups."""

import http.client
import json
import random
import threading
from pathlib import Path
from typing import Any

from tests.running import Running, script

JSON = dict[str, Any]
PATHS = {"chat": "/v1/chat/completions", "messages": "/v1/messages", "responses": "/v1/responses"}
FORMATS = {"chat": "openai_chat", "messages": "anthropic_messages", "responses": "openai_responses"}
RESULTS = (
    "FAILED tests/test_a.py::test_a - AssertionError: 1 != 2\n==== 1 failed, 2 passed in 0.12s ====",
    "==== 3 passed in 0.12s ====",
    "bash: frobnicate: command not found",
    "the file has been updated",
    "Traceback (most recent call last):\nValueError: bad token",
)
VERDICT = {"crux": "it", "primary_rule": "LIM-1", "capability_boundary": "unsupported", "p_solve": 0.9}
UPSTREAMS = "".join(
    f"""
[upstreams.{name}]
format = "{FORMATS[form]}"
script = "{name}.jsonl"
max_retries = 0
[targets.{name}]
upstream = "{name}"
model = "model-{name}"
price = {{ input = {price}, output = {5 * price}, cache_read = {price / 10} }}
"""
    for name, form, price in (
        ("small", "chat", 1.0),
        ("large", "messages", 10.0),
        ("other", "responses", 3.0),
        ("judge", "chat", 0.5),
        ("poor-judge", "chat", 0.5),
        ("sorter", "chat", 0.5),
        ("reviewer", "messages", 5.0),
    )
)
ROUTES = """
[routes.staged]
type = "stage"
efficient = "small"
capable = "large"
threshold = 0.3
capable_fallbacks = ["other"]
efficient_fallbacks = ["other"]
[routes.asking]
type = "stage"
efficient = "small"
capable = "large"
[routes.asking.undecided]
type = "classifier"
efficient = "small"
capable = "large"
judge = "sorter"
[routes.escalating]
type = "escalation"
weak = "small"
strong = "large"
judge = "judge"
strong_fallbacks = ["other"]
[routes.sorted]
type = "classifier"
efficient = "small"
capable = "large"
judge = "sorter"
fallbacks = ["other"]
[routes.advised]
type = "advisor"
executor = "small"
advisor = "reviewer"
[routes.pinned]
type = "affinity"
until = "user_turn"
[routes.pinned.router]
type = "random"
targets = ["small", "large", "other"]
[routes.mixed]
type = "composite"
[[routes.mixed.routers]]
router = "large"
name = "helpers"
agents = ["subagent"]
[[routes.mixed.routers]]
router = { type = "classifier", efficient = "small", capable = "large", judge = "sorter", trigger = "new_session" }
user_turn = true
[[routes.mixed.routers]]
router = { type = "stage", efficient = "small", capable = "large" }
[routes.trial]
type = "canary"
share = 0.5
candidate = { type = "stage", efficient = "small", capable = "large", threshold = 0.2 }
incumbent = { type = "escalation", weak = "small", strong = "large", judge = "poor-judge" }
[routes.drawn]
type = "random"
targets = ["small", "large", "other"]
weights = [3, 2, 1]
[routes.family]
type = "stage"
efficient = "small"
capable = "large"
subagents = "other"
background = "small"
[routes.fixed]
type = "passthrough"
target = "small"
fallbacks = ["large"]
"""
NAMES = tuple(
    line[len("[routes.") : -1] for line in ROUTES.splitlines() if line.startswith("[routes.") and line.count(".") == 1
)


def scripts(folder: Path) -> None:
    """Write what the models say: most of the time they answer."""
    broken: list[JSON] = [
        {"contains": "refuse", "status": 500, "error": "broken"},
        {"contains": "cut", "text": "I am cut off in the middle of this.", "cut_after": 3},
        {"contains": "wait", "text": "I took my time.", "delay_s": 0.7},
    ]
    for name in ("small", "large", "other"):
        refusing = [] if name == "other" else broken
        script(
            folder, f"{name}.jsonl", *refusing, {"contains": "test_a", "text": "All done."}, {"text": f"I am {name}."}
        )
    votes: list[JSON] = [
        {"contains": "1 failed", "text": '{"reason": "a loop", "escalate": true}'},
        {"text": '{"reason": "it gets on", "escalate": false}'},
    ]
    script(folder, "judge.jsonl", {"contains": "bad token", "text": "I cannot say."}, *votes)
    down: JSON = {"contains": "not found", "status": 500, "error": "the judge is down"}
    script(folder, "poor-judge.jsonl", down, {"contains": "bad token", "text": "I cannot say."}, *votes)
    script(folder, "sorter.jsonl", {"contains": "not good", "text": "hm"}, {"text": json.dumps(VERDICT)})
    script(folder, "reviewer.jsonl", {"contains": "1 failed", "text": "REDO\nMend it."}, {"text": "APPROVE"})


class Agent:
    """One client at a time: sessions of several turns, each on one route in one dialect. `sent`: turns. `gone`: it hung up on the
    last one, which ends the session: what a turn remembers that overlaps the next one is a matter of chance."""

    def __init__(self, gateway: Running, number: int, turns: int, names: tuple[str, ...] = NAMES) -> None:
        self.gateway = gateway
        self.number = number
        self.turns = turns
        self.names = names
        self.dice = random.Random(number)
        self.sent = 0
        self.gone = False

    def run(self) -> None:
        """Send all turns."""
        session = 0
        self.stuck()
        while self.sent < self.turns:
            self.session(f"{self.number}-{session}", self.names[(self.number + session) % len(self.names)])
            session += 1

    def stuck(self) -> None:
        """A session whose tests go on failing, so that two votes in a row are sure."""
        said = Said("chat", f"stuck-{self.number}")
        for _ in range(4):
            said.work(RESULTS[0])
            self.turn("escalating", said, {"x-turnout-session": f"stuck-{self.number}"})

    def session(self, name: str, route: str) -> None:
        dialect = self.dice.choice(tuple(PATHS))
        said = Said(dialect, name)
        headers = self.headers(name, route)
        before = ""
        for step in range(self.dice.randint(2, 9)):
            draw = self.dice.random()
            before = self.turn(route, said, headers, before if dialect == "responses" and draw < 0.3 else "")
            if draw < 0.1 and not self.gone:
                self.turn(route, said, headers)  # sent again
            if self.gone:
                return
            if draw > 0.9 and step > 1:
                said.back()
            word = self.dice.choice(("", "", "", "", "", "", "", "", "refuse", "refuse", "cut", "cut", "wait"))
            if self.dice.random() < 0.75:
                said.work(f"{self.dice.choice(RESULTS)} {word}")
            else:
                said.ask(f"that is not good yet, look again ({step}) {word}")

    def headers(self, name: str, route: str) -> dict[str, str]:
        delegates = route in ("family", "mixed")
        kind = 1 if delegates else self.dice.randrange(5)
        child = self.dice.random() < (0.6 if delegates else 0.3)
        if kind == 0:
            return {}
        if kind == 1:
            return {"x-claude-code-session-id": name, **({"x-claude-code-agent-id": "child-1"} if child else {})}
        return {"x-turnout-session": name, **({"x-turnout-agent": "helper"} if child else {})}

    def turn(self, route: str, said: "Said", headers: dict[str, str], before: str = "") -> str:
        """Send one turn; the id of a response that can be continued."""
        stream = self.dice.random() < 0.5
        body = {"model": route, "stream": stream, **said.body(before)}
        if self.dice.random() < 0.02:
            body["model"] = "no-such-route"
        if self.dice.random() < 0.02:
            body[said.key] = "?" if said.dialect != "responses" else 17
        self.sent += 1
        self.gone = False
        connection = http.client.HTTPConnection(self.gateway.url.removeprefix("http://"), timeout=30)
        connection.request(
            "POST", PATHS[said.dialect], json.dumps(body), {"content-type": "application/json", **headers}
        )
        try:
            if self.dice.random() < (0.8 if said.slow else 0.03):
                self.gone = True
                threading.Event().wait(self.dice.random() * 0.05)
                return ""
            response = connection.getresponse()
            answer = response.read()
        except (http.client.HTTPException, OSError):
            return ""
        finally:
            connection.close()
        whole = response.status == 200 and said.dialect == "responses" and not stream
        return str(json.loads(answer)["id"]) if whole else ""


class Said:
    """A conversation in one dialect. `new`: where what was said after the last turn begins."""

    def __init__(self, dialect: str, name: str) -> None:
        self.dialect = dialect
        self.key = "input" if dialect == "responses" else "messages"
        self.items: list[JSON] = [{"role": "user", "content": f"make the tests of {name} pass"}]
        self.calls = 0
        self.new = 0

    def body(self, before: str = "") -> JSON:
        """The request's conversation; `before` continues that response."""
        items = self.items[self.new :] if before else self.items
        self.new = len(self.items)
        more: JSON = {"max_tokens": 100} if self.dialect == "messages" else {}
        if before:
            # Calls and their results are items of the conversation, whichever response they follow.
            more["previous_response_id"] = before
            items = [item for item in items if item.get("role") == "user"] or [{"role": "user", "content": "go on"}]
        return {self.key: items, **more}

    @property
    def slow(self) -> bool:
        """Whether the models take their time over what was said last."""
        return "wait" in json.dumps(self.items[-1])

    def work(self, result: str) -> None:
        """The agent called a tool."""
        self.calls += 1
        name, call, arguments = "Bash", f"c{self.calls}", {"command": f"pytest tests/test_{self.calls % 2}.py"}
        if self.dialect == "chat":
            function = {"name": name, "arguments": json.dumps(arguments)}
            made = [
                {
                    "role": "assistant",
                    "content": None,
                    "tool_calls": [{"id": call, "type": "function", "function": function}],
                }
            ]
            self.items += [*made, {"role": "tool", "tool_call_id": call, "content": result}]
        elif self.dialect == "messages":
            use = {"type": "tool_use", "id": call, "name": name, "input": arguments}
            found = {"type": "tool_result", "tool_use_id": call, "content": result}
            self.items += [{"role": "assistant", "content": [use]}, {"role": "user", "content": [found]}]
        else:
            made = [{"type": "function_call", "call_id": call, "name": name, "arguments": json.dumps(arguments)}]
            self.items += [*made, {"type": "function_call_output", "call_id": call, "output": result}]

    def ask(self, text: str) -> None:
        """The agent stopped, and the user says something."""
        self.items += [{"role": "assistant", "content": "Done."}, {"role": "user", "content": text}]

    def back(self) -> None:
        """The user takes the newest step back."""
        if len(self.items) > 3:
            del self.items[-2:]
        self.new = min(self.new, len(self.items) - 1)


def load(gateway: Running, clients: int, turns: int, names: tuple[str, ...] = NAMES) -> int:
    """Send so many turns from each of so many clients at once; how many were sent."""
    agents = [Agent(gateway, number, turns, names) for number in range(clients)]
    threads = [threading.Thread(target=agent.run) for agent in agents]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    return sum(agent.sent for agent in agents)
