"""An advisor gate served: held-back turns, calls charged, concurrent turns, hang-ups."""

import concurrent.futures
import http.client
import itertools
import json
import time
import urllib.error
import urllib.request
from collections.abc import Iterator
from typing import Any

import pytest
from tests.replays import replayed
from tests.running import Running, running, script

JSON = dict[str, Any]
numbers = itertools.count()

EXECUTOR = [
    {"contains": "held back", "text": "Now the tests pass."},
    {"contains": "say nothing", "text": ""},
    {"text": "All done."},
]
ADVISOR = [
    {"contains": "slowly", "text": "APPROVE", "delay_s": 0.7},
    {"contains": "wrongly", "text": "REDO\nRun the tests and mend what fails."},
    {"contains": "say nothing", "text": "REDO\nSay something."},
    {"text": "APPROVE\nFine."},
]
TOML = "".join(
    f'[upstreams.{name}]\nformat = "{form}"\nscript = "{name}.jsonl"\nmax_retries = 0\n'
    f'[targets.{name}]\nupstream = "{name}"\nmodel = "{name}"\nprice = {{ input = {price}, output = {price} }}\n'
    for name, form, price in (
        ("executor", "anthropic_messages", 1),
        ("advisor", "openai_chat", 10),
        ("broken", "openai_chat", 10),
    )
)
TOML += """
[routes.coder]
type = "advisor"
executor = "executor"
advisor = "advisor"
[routes.failing]
type = "advisor"
executor = "executor"
advisor = "broken"
[routes.cautious]
type = "advisor"
executor = "executor"
advisor = "broken"
fail_open = false
"""


@pytest.fixture(scope="module")
def gateway(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Running]:
    folder = tmp_path_factory.mktemp("advisor")
    script(folder, "executor.jsonl", *EXECUTOR)
    script(folder, "advisor.jsonl", *ADVISOR)
    script(folder, "broken.jsonl", {"status": 500, "error": "broken"})
    with running(TOML, folder, capture="full") as served:
        yield served
        replayed(served)


def messages(task: str, steps: int = 1) -> list[JSON]:
    """A task in which so many calls have been made."""
    said: list[JSON] = [{"role": "user", "content": task}]
    for number in range(steps):
        use = {"type": "tool_use", "id": f"toolu_{number}", "name": "Bash", "input": {"command": f"ls {number}"}}
        said.append({"role": "assistant", "content": [use]})
        result = {"type": "tool_result", "tool_use_id": use["id"], "content": f"result of {task}"}
        said.append({"role": "user", "content": [result]})
    return said


def body_of(said: list[JSON], model: str, stream: bool = False) -> bytes:
    tool = {"name": "Bash", "input_schema": {"type": "object", "properties": {}}}
    more = {"max_tokens": 50, "tools": [tool], "stream": stream}
    return json.dumps({"model": model, "messages": said, **more}).encode()


def send(gateway: Running, said: list[JSON], session: str, model: str = "coder", stream: bool = False) -> JSON:
    headers = {"content-type": "application/json", "x-claude-code-session-id": session}
    request = urllib.request.Request(gateway.url + "/v1/messages", body_of(said, model, stream), headers)
    with urllib.request.urlopen(request, timeout=20) as response:
        data = response.read()
        found = {name.lower(): value for name, value in response.headers.items()}
    if stream:
        events = [json.loads(line[6:]) for line in data.decode().splitlines() if line.startswith("data: ")]
        text = "".join(event["delta"].get("text", "") for event in events if event["type"] == "content_block_delta")
    else:
        text = "".join(part["text"] for part in json.loads(data)["content"])
    return {"text": text, "source": found["x-turnout-source"], "turn": found["x-turnout-turn"]}


def record(gateway: Running, answer: JSON) -> Any:
    gateway.settled()
    return next(turn for turn in gateway.turns() if turn.id == answer["turn"])


def session() -> str:
    return f"s{next(numbers)}"


@pytest.mark.parametrize("stream", [False, True])
def test_an_approved_turn_is_played_as_it_came(gateway: Running, stream: bool) -> None:
    answer = send(gateway, messages("A task."), session(), stream=stream)
    assert (answer["text"], answer["source"]) == ("All done.", "advisor")
    turn = record(gateway, answer)
    assert turn.why.rule == "approved"
    assert [(call.purpose, call.target, call.served) for call in turn.calls] == [
        ("draft", "executor", True),
        ("advisor", "advisor", False),
    ]
    assert all(call.cost_usd and call.usage and call.ended_s for call in turn.calls)
    assert turn.cost_usd == pytest.approx(sum(call.cost_usd for call in turn.calls))


@pytest.mark.parametrize("stream", [False, True])
def test_a_turn_that_is_held_back_is_done_again_and_all_is_charged(gateway: Running, stream: bool) -> None:
    name = session()
    said = messages("A task done wrongly.")
    answer = send(gateway, said, name, stream=stream)
    assert (answer["text"], answer["source"]) == ("Now the tests pass.", "advisor")
    turn = record(gateway, answer)
    assert [(call.purpose, call.served) for call in turn.calls] == [
        ("draft", False),
        ("advisor", False),
        ("answer", True),
    ]
    assert all(call.cost_usd for call in turn.calls)
    assert turn.why.values["plan"].startswith("Run the tests")
    # The budget is spent, and what the advisor said is not in the conversation that goes on.
    later = send(gateway, [*said, {"role": "assistant", "content": answer["text"]}, *messages("More.")], name)
    assert (later["text"], later["source"]) == ("All done.", "fixed")
    assert [call.purpose for call in record(gateway, later).calls] == ["answer"]


def test_an_empty_turn_is_reviewed(gateway: Running) -> None:
    answer = send(gateway, messages("Please say nothing."), session())
    assert record(gateway, answer).why.rule == "redo"


def test_an_advisor_that_fails_lets_the_turn_out_three_times_and_then_nothing_is_held_back(gateway: Running) -> None:
    name = session()
    seen = []
    for steps in range(1, 6):
        answer = send(gateway, messages("A task.", steps), name, "failing")
        assert answer["text"] == "All done."
        seen.append([call.purpose for call in record(gateway, answer).calls])
    assert seen == [["draft", "advisor"]] * 3 + [["answer"]] * 2


def test_a_cautious_route_does_not_let_it_out(gateway: Running) -> None:
    with pytest.raises(urllib.error.HTTPError):
        send(gateway, messages("A task."), session(), "cautious")
    gateway.settled()
    assert gateway.turns()[0].why.rule == "unreviewed"  # type: ignore[union-attr]


def test_concurrent_turns_of_one_agent_consult_once(gateway: Running) -> None:
    name = session()
    with concurrent.futures.ThreadPoolExecutor(4) as pool:
        turns = [pool.submit(send, gateway, messages(f"Part {n}, slowly."), name) for n in range(4)]
        answers = [turn.result() for turn in turns]
    assert {answer["text"] for answer in answers} == {"All done."}
    calls = [[call.purpose for call in record(gateway, answer).calls] for answer in answers]
    assert sorted(calls) == [["draft"], ["draft"], ["draft"], ["draft", "advisor"]]
    unreviewed = next(answer for answer in answers if answer["source"] != "advisor")
    assert "a concurrent turn of this agent is being reviewed" in record(gateway, unreviewed).why.sentence


def test_agents_of_one_session_are_reviewed_apart_and_at_once(gateway: Running) -> None:
    def work(agent: int) -> float:
        headers = {"content-type": "application/json", "x-claude-code-session-id": "family"}
        headers["x-claude-code-agent-id"] = f"a{agent}"
        data = body_of(messages("A task, slowly."), "coder")
        began = time.monotonic()
        request = urllib.request.Request(gateway.url + "/v1/messages", data, headers)
        with urllib.request.urlopen(request, timeout=20) as response:
            assert response.headers["x-turnout-source"] == "advisor"
            response.read()
        return time.monotonic() - began

    began = time.monotonic()
    with concurrent.futures.ThreadPoolExecutor(4) as pool:
        list(pool.map(work, range(4)))
    assert time.monotonic() - began < 4 * 0.7


def test_a_review_that_a_hang_up_broke_off_is_made_by_the_next_turn(gateway: Running) -> None:
    name = session()
    said = messages("A task, slowly.")
    host = gateway.url.removeprefix("http://")
    connection = http.client.HTTPConnection(host, timeout=20)
    headers = {"content-type": "application/json", "x-claude-code-session-id": name}
    connection.request("POST", "/v1/messages", body_of(said, "coder"), headers)
    time.sleep(0.3)
    connection.close()
    gateway.settled()
    gone = gateway.turns()[0]
    assert (gone.ended, gone.remembered) == ("client_gone", ())
    assert [call.purpose for call in gone.calls] == ["draft", "advisor"]
    assert send(gateway, said, name)["source"] == "advisor"
