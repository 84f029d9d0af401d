"""Judges as good citizens: what a judge that fails, dawdles or rambles costs the turn, its target, and the operator."""

import http.client
import json
import logging
import threading
import time
from collections import Counter
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import pytest
from tests.faulty import TEXT, FaultyUpstream
from tests.played import Played, Seen, Step, completion, whole
from tests.running import Running, running

from turnout.ledger.trace import TurnRecord
from turnout.upstream.health import TRIP_AFTER

VERDICT = json.dumps({"reason": "it gets on", "escalate": False})
USAGE = {"prompt_tokens": 1000, "completion_tokens": 100, "total_tokens": 1100}
PRICE = "price = { input = 1.0, output = 1.0 }"


class Judge:
    """A server of a weak model, and of a model that both judges and answers; `steps` is what a judgement gets."""

    def __init__(self, steps: list[Step] | None = None) -> None:
        self.steps = steps if steps is not None else whole(200, completion(VERDICT, USAGE))
        self.answers: list[Step] = whole(200, completion("done", USAGE))
        self.asked: Counter[str] = Counter()
        self.at_once = self.most = 0
        self.lock = threading.Lock()

    def play(self, seen: Seen, n: int) -> Iterator[Step]:
        body = json.loads(seen.body)
        kind = "judge" if "response_format" in body else body["model"]
        with self.lock:
            self.asked[kind] += 1
            if kind == "judge":
                self.at_once += 1
                self.most = max(self.most, self.at_once)
        try:
            yield from self.steps if kind == "judge" else self.answers
        finally:
            with self.lock:
                self.at_once -= kind == "judge"


@contextmanager
def gateway(
    judge: Judge, folder: Path, *, upstream: str = "", route: str = "", judging: str = "", price: str = PRICE
) -> Iterator[Running]:
    """The route `r` judges with the target that the route `direct` answers with."""
    with Played(judge.play) as played:  # type: ignore[arg-type]  # any iterable of steps will do
        toml = f'[upstreams.u]\nformat = "openai_chat"\nbase_url = "{played.url}"\n{upstream}\n'
        for name in ("weak", "strong", "both"):
            toml += f'[targets.{name}]\nupstream = "u"\nmodel = "{name}"\n{price}\n'
        toml += '[routes.direct]\ntype = "passthrough"\ntarget = "both"\n'
        toml += f'[routes.r]\ntype = "escalation"\nweak = "weak"\nstrong = "strong"\njudge = "both"\n{route}\n'
        toml += f"[routes.r.judging]\n{judging}\n"
        with running(toml, folder) as served:
            yield served


def ask(served: Running, model: str = "r", session: str = "s1", before: int = 0) -> tuple[int, str]:
    """The status and the text of one turn. `before`: how many came before it in its conversation."""
    connection = http.client.HTTPConnection(served.url.removeprefix("http://"), timeout=10)
    said = [{"role": role, "content": "go on"} for role in ("user", *(("assistant", "user") * before))]
    body = {"model": model, "messages": said}
    headers = {"content-type": "application/json", "x-turnout-session": session}
    connection.request("POST", "/v1/chat/completions", json.dumps(body), headers)
    response = connection.getresponse()
    told = json.loads(response.read())
    connection.close()
    return response.status, told["choices"][0]["message"]["content"] if response.status == 200 else told


def failures(served: Running) -> dict[str, float]:
    """The counter of judgements that failed, by reason."""
    found = {}
    for line in served.gateway.metrics.render().decode().splitlines():
        if line.startswith("turnout_judge_failures_total{"):
            labels, value = line.split("{", 1)[1].split("} ")
            named = dict(pair.split("=") for pair in labels.split(","))
            assert (named["route"], named["target"]) == ('"r"', '"both"')
            found[named["reason"].strip('"')] = float(value)
    return found


def reasons(turns: tuple[TurnRecord, ...]) -> list[str]:
    """Why each turn had no verdict, oldest first."""
    return [turn.why.values.get("judge_failure", "") for turn in reversed(turns) if turn.why is not None]


def lines(caplog: pytest.LogCaptureFixture) -> list[str]:
    return [record.getMessage() for record in caplog.records if "no verdict" in record.getMessage()]


RAMBLING = whole(200, completion("Well, where shall I begin? The agent has been reading files.", USAGE))


@pytest.mark.parametrize(
    ("steps", "reason", "judging"),
    [
        (whole(429, {"error": {"message": "slow down"}}), "rate_limit", ""),
        (whole(503, {"error": {"message": "down"}}), "upstream_5xx", ""),
        (whole(401, {"error": {"message": "bad key"}}), "upstream_non_5xx", ""),
        (["reset"], "transport", ""),
        ([20.0], "timeout", "within_s = 0.1"),
        (RAMBLING, "parse_error", ""),
    ],
    ids=["429", "503", "401", "reset", "silent", "rambling"],
)
def test_a_judge_that_fails_is_asked_a_few_times_and_costs_no_turn(
    steps: list[Step], reason: str, judging: str, tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    judge, more = Judge(steps), 7
    with caplog.at_level(logging.WARNING), gateway(judge, tmp_path, judging=judging) as served:
        said = [ask(served) for _ in range(TRIP_AFTER + more)]
        direct = ask(served, "direct")
        counted, turns, ready = failures(served), served.settled(), served.gateway.readiness()
    assert said == [(200, "done")] * (TRIP_AFTER + more)
    assert judge.asked["judge"] == TRIP_AFTER  # one attempt each, and none once the breaker is open
    assert reasons(turns[1:]) == [reason] * TRIP_AFTER + ["breaker"] * more
    assert counted == {reason: TRIP_AFTER, "breaker": more}
    assert [line for line in lines(caplog) if f": {reason};" in line] == [
        f"route r: no verdict of the judge both: {reason}; turns go on without"
    ]
    assert len(lines(caplog)) == 2
    assert direct == (200, "done")
    assert ready["cooling_targets"] == []
    skipped = turns[1].calls
    assert [(call.purpose, call.error, call.unheard) for call in skipped] == [
        ("draft", "", ""),
        ("judge", "breaker", "breaker"),
    ]
    assert skipped[1].cost_usd == 0.0


def test_a_judge_that_says_when_to_come_back_is_not_asked_before(tmp_path: Path) -> None:
    judge = Judge(whole(429, {"error": {"message": "slow down"}}, retry_after="60"))
    with gateway(judge, tmp_path) as served:
        for _ in range(4):
            assert ask(served) == (200, "done")
        turns = served.settled()
    assert judge.asked["judge"] == 1
    assert reasons(turns) == ["rate_limit", "breaker", "breaker", "breaker"]


def test_one_probe_finds_out_whether_the_judge_is_back(tmp_path: Path) -> None:
    judge = Judge(RAMBLING)
    with gateway(judge, tmp_path) as served:
        health = served.gateway.judges.models["both"].health  # type: ignore[index]
        for _ in range(TRIP_AFTER + 1):
            ask(served)
        health.cooling_until = time.monotonic()
        ask(served)
        assert judge.asked["judge"] == TRIP_AFTER + 1
        assert health.wait_s(time.monotonic()) > 0
        judge.steps = whole(200, completion(VERDICT, USAGE))
        health.cooling_until = time.monotonic()
        ask(served)
        ask(served)
        turns = served.settled()
    assert judge.asked["judge"] == TRIP_AFTER + 3
    assert reasons(turns)[-4:] == ["breaker", "parse_error", "", ""]


def test_a_target_that_cannot_answer_may_still_judge(tmp_path: Path) -> None:
    judge = Judge()
    with gateway(judge, tmp_path, upstream="max_retries = 0") as served:
        well, judge.answers = judge.answers, whole(503, {"error": {"message": "down"}})
        for _ in range(TRIP_AFTER):
            assert ask(served, "direct")[0] == 503
        assert served.gateway.readiness()["cooling_targets"] == ["both"]
        judge.answers = well
        assert ask(served) == (200, "done")
        (turn, *_) = served.settled()
    assert turn.why is not None
    assert turn.why.values["verdict"] == "decline"


def test_judges_wait_for_connections_of_their_own_and_answers_do_not(tmp_path: Path) -> None:
    judge = Judge([0.3, *whole(200, completion(VERDICT, USAGE))])
    limits = "judge_connections = 2\nmax_connections = 2"
    with gateway(judge, tmp_path, upstream=limits) as served, ThreadPoolExecutor(9) as pool:
        judged = [pool.submit(ask, served, "r", f"s{n}") for n in range(6)]
        while not judge.asked["judge"]:
            time.sleep(0.01)
        assert ask(served, "direct") == (200, "done")
        assert judge.asked["both"] == 1
        assert [one.result() for one in judged] == [(200, "done")] * 6
    assert judge.most == 2


def test_turns_at_once_do_not_storm_a_judge_that_refuses(tmp_path: Path) -> None:
    judge = Judge([0.05, *whole(429, {"error": {"message": "slow down"}})])
    with gateway(judge, tmp_path, upstream="judge_connections = 2") as served, ThreadPoolExecutor(24) as pool:
        said = list(pool.map(lambda n: ask(served, "r", f"s{n}"), range(24)))
        served.settled()
        counted = failures(served)
    assert said == [(200, "done")] * 24
    assert judge.asked["judge"] <= TRIP_AFTER + 1  # those that waited for a connection learn of the others' failures
    assert counted["rate_limit"] + counted["breaker"] == 24


def test_waiting_for_other_judgements_is_part_of_the_time(tmp_path: Path) -> None:
    judge = Judge([2.0, *whole(200, completion(VERDICT, USAGE))])
    limits, judging = "judge_connections = 1", "within_s = 3.0"
    with gateway(judge, tmp_path, upstream=limits, judging=judging) as served, ThreadPoolExecutor(3) as pool:
        said = list(pool.map(lambda n: ask(served, "r", f"s{n}"), range(3)))
        turns = served.settled()
        wait_s = served.gateway.judges.models["both"].health.wait_s(time.monotonic())  # type: ignore[index]
    assert said == [(200, "done")] * 3
    assert sorted(reasons(turns)) == ["", "timeout", "timeout"]
    assert wait_s == 0.0


@pytest.mark.parametrize(
    ("kind", "reason"),
    [
        ("s429-forever", "rate_limit"),
        ("s500", "upstream_5xx"),
        ("stall-head", "timeout"),
        ("stall-body", "timeout"),
        ("cut", "transport"),
        ("html", "invalid_response"),
        ("empty", "invalid_response"),
        ("half-event", "invalid_response"),
        ("ok", "parse_error"),
        ("drip", "parse_error"),
        ("overflow", "upstream_non_5xx"),
    ],
)
@pytest.mark.parametrize("stream", [True, False])
def test_whatever_a_judge_does_the_client_gets_the_weak_answer(
    kind: str, reason: str, stream: bool, tmp_path: Path
) -> None:
    with FaultyUpstream() as upstream:
        toml = f'[upstreams.u]\nformat = "openai_chat"\nbase_url = "{upstream.url}"\n'
        for name, model in (("weak", "ok#weak"), ("strong", "ok#strong"), ("judge", f"{kind}#judge")):
            toml += f'[targets.{name}]\nupstream = "u"\nmodel = "{model}"\n'
        toml += '[routes.r]\ntype = "escalation"\nweak = "weak"\nstrong = "strong"\njudge = "judge"\n'
        toml += "[routes.r.judging]\nwithin_s = 1.5\n"
        with running(toml, tmp_path) as served:
            connection = http.client.HTTPConnection(served.url.removeprefix("http://"), timeout=10)
            body = {"model": "r", "stream": stream, "messages": [{"role": "user", "content": "go on"}]}
            headers = {"content-type": "application/json", "x-turnout-session": "s1"}
            connection.request("POST", "/v1/chat/completions", json.dumps(body), headers)
            response = connection.getresponse()
            data = response.read()
            connection.close()
            (turn,) = served.settled()
    assert (response.status, turn.ended, turn.target) == (200, "ok", "weak")
    assert TEXT in data.decode() if not stream else data.endswith(b"data: [DONE]\n\n")
    assert upstream.counts[f"{kind}#judge"] == 1
    assert reasons((turn,)) == [reason]
    assert [call.unheard for call in turn.calls] == ["", reason]


def money(turns: tuple[TurnRecord, ...]) -> tuple[float, float]:
    """What judges cost, and what all cost."""
    calls = [call for turn in turns for call in turn.calls]
    judged = sum(call.cost_usd or 0.0 for call in calls if call.purpose == "judge")
    return judged, sum(call.cost_usd or 0.0 for call in calls)


def test_judges_get_no_more_than_their_share(tmp_path: Path) -> None:
    judge, turns_made = Judge(), 40
    with gateway(judge, tmp_path, route="judge_budget = 0.2") as served:
        for _ in range(turns_made):
            assert ask(served) == (200, "done")
            served.settled()
        turns, counted = served.settled(), failures(served)
    judged, spent = money(turns)
    asked = judge.asked["judge"]
    # A judgement is as dear as a draft, so four drafts pay for one; the first has to wait for none, its successor for eight.
    assert asked == 9
    assert 0.18 * spent < judged <= 0.2 * spent
    assert counted == {"budget": turns_made - asked}
    skipped = next(turn for turn in turns if turn.why is not None and turn.why.values.get("judge_failure"))
    assert skipped.why is not None
    assert "the judge was not asked" in skipped.why.values["judge_message"]
    assert "share of 20%" in skipped.why.values["judge_message"]
    assert skipped.target == "weak"


def test_judges_cost_no_more_a_day_than_was_allowed(tmp_path: Path) -> None:
    judge = Judge()
    with gateway(judge, tmp_path, route="judge_usd_per_day = 0.0035") as served, ThreadPoolExecutor(4) as pool:
        assert ask(served) == (200, "done")  # what a judgement costs is known from the first one on
        said = list(pool.map(lambda n: ask(served, "r", f"s{n}"), range(12)))
        turns = served.settled()
    assert said == [(200, "done")] * 12
    assert judge.asked["judge"] == 3
    assert money(turns)[0] == pytest.approx(0.0033)


def test_a_judge_without_a_price_is_not_asked_on_a_budget(tmp_path: Path) -> None:
    judge = Judge()
    with gateway(judge, tmp_path, route="judge_budget = 0.5", price="") as served:
        assert ask(served) == (200, "done")
        (turn,) = served.settled()
    assert judge.asked["judge"] == 0
    assert turn.why is not None
    assert "no price is known for both" in turn.why.values["judge_message"]


def test_a_turn_given_up_during_the_judgement_gives_its_money_back(tmp_path: Path) -> None:
    judge = Judge([8.0])
    with gateway(judge, tmp_path, route="judge_budget = 0.5") as served:
        connection = http.client.HTTPConnection(served.url.removeprefix("http://"), timeout=10)
        body: dict[str, Any] = {"model": "r", "messages": [{"role": "user", "content": "go on"}]}
        headers = {"content-type": "application/json", "x-turnout-session": "s1"}
        connection.request("POST", "/v1/chat/completions", json.dumps(body), headers)
        while not judge.asked["judge"]:
            time.sleep(0.01)
        connection.close()
        (turn,) = served.settled()
        budget = served.gateway.judges.budgets["r"]
        assert turn.ended == "client_gone"
        assert [(call.purpose, call.error) for call in turn.calls] == [("draft", ""), ("judge", "cancelled")]
        assert budget.refuses(time.time()) == ""
        assert served.gateway.judges.models["both"].health.failures == 0  # type: ignore[index]


SORTED = """
[routes.sorted]
type = "classifier"
judge = "both"
default = "strong"
targets = { code = "weak", prose = "strong" }
[routes.sorted.judging]
prompt = "What kind of task is it?"
"""


def test_an_answer_that_only_the_router_finds_wanting_is_counted_too(tmp_path: Path) -> None:
    judge = Judge(whole(200, completion('{"choice": 7}', USAGE)))
    with gateway(judge, tmp_path, judging=SORTED) as served:
        assert ask(served, "sorted") == (200, "done")
        (turn,) = served.settled()
        text = served.gateway.metrics.render().decode()
    assert [(call.purpose, call.unheard) for call in turn.calls] == [("judge", "invalid_response"), ("answer", "")]
    assert 'turnout_judge_failures_total{reason="invalid_response",route="sorted",target="both"} 1.0' in text


def test_an_opinion_that_would_outlast_the_turn_is_not_waited_for(tmp_path: Path) -> None:
    """The draft is there; a judge that is patient by its own setting must not cost the client the turn's deadline."""
    judge = Judge([20.0])
    with gateway(judge, tmp_path, judging="within_s = 15", upstream="[server]\ndeadline_s = 3") as served:
        assert ask(served)[0] == 200
        turn = served.settled()[0]
        assert turn.ended == "ok"
        assert reasons((turn,)) == ["timeout"]
        # It was not given the time it may have, so this says nothing of it.
        assert served.gateway.judges.models["both"].health.failures == 0
