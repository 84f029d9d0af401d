"""A review: its scores depend on its plan and on what models say, not on when it was interrupted or who was first."""

import json
import random
from pathlib import Path

import msgspec
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from tests.peers.review.pool import NAMES, Pool, Said, done, graded, grades, planned, usual

from turnout.peers.review.journal import FORM
from turnout.peers.review.running import Concurrency
from turnout.peers.review.scores import Scores
from turnout.upstream.buying.budget import Limits
from turnout.upstream.buying.journal import read


def without_date(found: Scores) -> Scores:
    """Scores but for the day they were begun."""
    return msgspec.structs.replace(found, manifest={**found.manifest, "began": ""})


def halting(model: str, text: str, before: int) -> Said:
    """One grade in five cannot be read at first, one in fifty never."""
    dice = random.Random(model + text)
    if grades(text) and dice.random() < (0.1 if "could not be read" in text else 0.2):
        return "Rather good."
    return usual(model, text, before)


def test_everybody_answers_and_is_scored_by_the_others(tmp_path: Path) -> None:
    pool = Pool(usual)
    found = done(planned(4), pool, tmp_path / "j")
    assert found.complete
    assert found.failures == []
    assert len(pool.asked) == 3 * 4 + 3 * 2 * 4
    for judge in NAMES:
        for author in NAMES:
            assert found.counts[judge][author] == (0 if judge == author else 4 - len(found.dropped))
            assert (found.scores[judge][author] is None) == (judge == author)


@settings(max_examples=25, deadline=None)
@given(seed=st.integers(), share=st.floats(0, 1), slow=st.integers(0, 5))
def test_cut_anywhere_and_in_any_order_the_journal_gives_the_same_scores(
    seed: int, share: float, slow: int, tmp_path_factory: pytest.TempPathFactory
) -> None:
    folder = tmp_path_factory.mktemp("cut")
    plan, whole, cut = planned(3), folder / "whole", folder / "cut"
    pool = Pool(halting)
    expected = without_date(done(plan, pool, whole))
    head, *lines = whole.read_bytes().splitlines(keepends=True)
    mixed = head + b"".join(random.Random(seed).sample(lines, len(lines)))
    cut.write_bytes(mixed[: round(share * len(mixed))])
    kept = max(cut.read_bytes().count(b"\n") - 1, 0)
    again = Pool(halting, hurry=lambda number: number * slow % 7)
    assert without_date(done(planned(3), again, cut)) == expected
    assert len(again.asked) == len(pool.asked) - kept


def test_a_whole_journal_buys_nothing(tmp_path: Path) -> None:
    first = done(planned(4), Pool(halting), tmp_path / "j")
    pool = Pool(halting)
    assert done(planned(4), pool, tmp_path / "j") == first
    assert pool.asked == []


def test_one_model_more_leaves_the_others_alone(tmp_path: Path) -> None:
    before = done(planned(4), Pool(usual), tmp_path / "j")
    pool = Pool(usual)
    found = done(planned(4, names=(*NAMES, "d")), pool, tmp_path / "j")
    assert len(pool.asked) == 4 * (1 + 2 * 3)
    for judge in NAMES:
        for author in NAMES:
            if judge != author:
                old = dict(zip([q.id for q in before.questions], before.cells[judge][author], strict=True))
                new = dict(zip([q.id for q in found.questions], found.cells[judge][author], strict=True))
                assert all(new[id] == score for id, score in old.items() if id in new)


def test_one_model_more_in_a_design_of_few_judges_costs_its_own_share(tmp_path: Path) -> None:
    done(planned(5, names=tuple("abcde"), judges=2), Pool(usual), tmp_path / "j")
    pool = Pool(usual)
    assert done(planned(5, names=tuple("abcdef"), judges=2), pool, tmp_path / "j").complete
    assert len(pool.asked) == 5 * (1 + 2 * 2)


def test_a_prompt_that_is_longer_than_estimated_enlarges_those_that_follow(tmp_path: Path) -> None:
    few = done(planned(6), Pool(usual), tmp_path / "j", Limits(tokens=9_000), Concurrency(1, 1))
    longer = done(planned(6), Pool(usual, a_token=1), tmp_path / "k", Limits(tokens=9_000), Concurrency(1, 1))
    for found in (few, longer):
        assert found.stopped == "tokens"
        assert found.spent.input_tokens + found.spent.output_tokens <= 9_000
    assert longer.spent.calls < few.spent.calls


def test_a_reply_that_cannot_be_read_is_asked_for_once_more_and_then_said(tmp_path: Path) -> None:
    def play(model: str, text: str, before: int) -> Said:
        if grades(text) and model == "b":
            return graded(7) if "could not be read" in text and "A says" in text else "seven"
        return usual(model, text, before)

    found = done(planned(2), Pool(play), tmp_path / "j")
    assert found.complete
    assert found.cells["b"]["a"] == [7, 7]
    assert found.cells["b"]["c"] == [None, None]
    assert {(one.judge, one.author, one.status) for one in found.failures} == {("b", "c", "parse_error")}
    assert (found.judges["b"].asked, found.judges["b"].retried, found.judges["b"].parse_failures) == (4, 4, 2)
    assert found.scores["b"]["c"] is None


@pytest.mark.parametrize("score", [0, 11, "7", 7.5, None, True, [7]])
def test_only_a_whole_number_in_range_is_a_score(score: object, tmp_path: Path) -> None:
    def play(model: str, text: str, before: int) -> Said:
        return graded(score) if grades(text) and model == "a" else usual(model, text, before)

    found = done(planned(2), Pool(play), tmp_path / "j")
    assert found.judges["a"].parse_failures == 4
    assert {one.status for one in found.failures} == {"invalid_response"}


def test_who_gives_no_answer_is_not_scored(tmp_path: Path) -> None:
    def play(model: str, text: str, before: int) -> Said:
        return " " if model == "c" and not grades(text) else usual(model, text, before)

    found = done(planned(2), Pool(play), tmp_path / "j")
    assert found.complete
    assert {one.author for one in found.failures} == {"c"}
    assert {one.status for one in found.failures} == {"no_answer"}
    assert [one.author for one in found.thin] == ["c", "c"]


def test_a_busy_server_is_waited_for(tmp_path: Path) -> None:
    def play(model: str, text: str, before: int) -> Said:
        return (429, {"retry-after": "0"}) if before < 2 and model == "a" else usual(model, text, before)

    pool = Pool(play)
    found = done(planned(2), pool, tmp_path / "j")
    assert found.complete
    assert found.spent.calls == len(pool.asked) == 18 + 2 * 6


def test_a_target_that_refuses_is_given_up_and_asked_again_later(tmp_path: Path) -> None:
    def play(model: str, text: str, before: int) -> Said:
        return (404, {}) if model == "b" else usual(model, text, before)

    pool = Pool(play)
    found = done(planned(9), pool, tmp_path / "j", at_once=Concurrency(1, 1))
    assert not found.complete
    assert list(found.left_out) == ["b"]
    assert sum(model == "b" for model, _ in pool.asked) == 3
    assert found.counts["a"]["c"] == 9 - len(found.dropped)
    later = done(planned(9), Pool(usual), tmp_path / "j")
    assert later.complete
    assert without_date(later).scores == done(planned(9), Pool(usual), tmp_path / "other").scores


def test_a_reply_that_broke_off_is_asked_for_again_and_counted(tmp_path: Path) -> None:
    def play(model: str, text: str, before: int) -> Said:
        return None if model == "a" and not grades(text) and not before else usual(model, text, before)

    found = done(planned(2), Pool(play), tmp_path / "j")
    whole = done(planned(2), Pool(usual), tmp_path / "k")
    assert found.complete
    assert found.cells == whole.cells
    assert found.spent.calls == whole.spent.calls + 2
    assert found.spent.estimated_calls == 2
    assert found.spent.usd > whole.spent.usd
    calls = [entry for entry in read(FORM, tmp_path / "j")[1] if entry.tries == 2]
    limit = sum(entry.output_tokens for entry in calls)
    assert limit > 2 * 64
    short = done(planned(2), Pool(play), tmp_path / "l", Limits(tokens=200), Concurrency(1, 1))
    assert short.stopped == "tokens"
    assert short.spent.input_tokens + short.spent.output_tokens <= 200


def test_garbage_is_no_reply_and_a_refusal_is_final(tmp_path: Path) -> None:
    def garbage(model: str, text: str, before: int) -> Said:
        return b"<html>busy</html>" if model == "a" and not grades(text) else usual(model, text, before)

    found = done(planned(2), Pool(garbage), tmp_path / "j")
    assert not found.complete
    assert done(planned(2), Pool(usual), tmp_path / "j").complete

    def filtered(model: str, text: str, before: int) -> Said:
        fault = {"error": {"message": "no", "type": "invalid_request_error", "code": "content_filter"}}
        return json.dumps(fault).encode() if model == "a" and not grades(text) else usual(model, text, before)

    refused = done(planned(2), Pool(filtered), tmp_path / "k")
    assert refused.complete
    assert {(one.author, one.status) for one in refused.failures} == {("a", "no_answer")}


def test_answers_that_are_there_are_not_asked_for_and_equal_ones_scored_once(tmp_path: Path) -> None:
    recorded = {name: {f"q{i}": "the same" if name != "c" else f"other {i}" for i in range(4)} for name in NAMES}
    pool = Pool(usual)
    found = done(planned(4, recorded=recorded), pool, tmp_path / "j")
    assert found.complete
    assert all(grades(text) for _, text in pool.asked)
    # On each question c scores two equal answers with one call, a and b score the other's and c's.
    assert len(pool.asked) == 4 * (1 + 2 + 2)
    assert found.cells["c"]["a"] == found.cells["c"]["b"]


def test_scores_of_oneself_are_told_apart(tmp_path: Path) -> None:
    found = done(planned(3, self_scores=True), Pool(usual), tmp_path / "j")
    assert all(len(found.self_scores[name]) == len(found.questions) for name in NAMES)
    assert all(None not in found.self_scores[name] for name in NAMES)
    plain = done(planned(3), Pool(usual), tmp_path / "other")
    assert (found.scores, found.cells) == (plain.scores, plain.cells)


def test_calls_at_once_are_bounded_in_all_and_at_each_upstream(tmp_path: Path) -> None:
    upstreams = {"a": "one", "b": "two", "c": "three"}
    pool = Pool(usual, hurry=lambda number: 3)
    done(planned(6, upstreams=upstreams), pool, tmp_path / "j", at_once=Concurrency(5, 2))
    assert pool.most == {"": 5, "a": 2, "b": 2, "c": 2}
    together = Pool(usual, hurry=lambda number: 3)
    done(planned(6), together, tmp_path / "k", at_once=Concurrency(5, 2))
    assert together.most[""] == 2


def test_one_at_a_time_is_in_order(tmp_path: Path) -> None:
    one, other = Pool(usual), Pool(usual)
    found = [done(planned(6), p, tmp_path / name, at_once=Concurrency(1, 1)) for p, name in ((one, "k"), (other, "l"))]
    assert one.most[""] == 1
    assert one.asked == other.asked
    assert without_date(found[0]) == without_date(found[1])


@settings(max_examples=25, deadline=None)
@given(
    calls=st.none() | st.integers(0, 60),
    tokens=st.none() | st.integers(0, 20_000),
    usd=st.none() | st.floats(0, 0.05),
    at_once=st.integers(1, 8),
    kept=st.integers(0, 40),
)
def test_limits_are_never_exceeded(
    calls: int | None, tokens: int | None, usd: float | None, at_once: int, kept: int,
    tmp_path_factory: pytest.TempPathFactory,
) -> None:  # fmt: skip
    file = tmp_path_factory.mktemp("budget") / "j"

    def play(model: str, text: str, before: int) -> Said:
        return (
            (429, {"retry-after": "0"}) if not before and text.endswith("number 1?") else halting(model, text, before)
        )

    limits = Limits(calls, tokens, usd)
    pool = Pool(play, hurry=lambda number: number % 5)
    first = done(planned(3), pool, file, Limits(calls=min(kept, calls or kept)), Concurrency(at_once, at_once))
    found = done(planned(3), pool, file, limits, Concurrency(at_once, at_once))
    spent, before = found.spent, first.spent
    assert spent.calls == len(pool.asked)
    assert calls is None or spent.calls <= max(calls, before.calls)
    assert tokens is None or spent.input_tokens + spent.output_tokens <= max(
        tokens, before.input_tokens + before.output_tokens
    )
    assert usd is None or spent.usd <= max(usd, before.usd) + 1e-12
    assert found.complete == (not found.stopped)
    assert sum(entry.tries for entry in read(FORM, file)[1]) == spent.calls


def test_a_limit_says_so_and_the_rest_is_bought_later(tmp_path: Path) -> None:
    found = done(planned(4), Pool(usual), tmp_path / "j", Limits(calls=20), Concurrency(1, 1))
    assert (found.complete, found.stopped, found.spent.calls) == (False, "calls", 20)
    assert {one.status for one in found.failures} == {"not_asked"}
    rest = Pool(usual)
    later = done(planned(4), rest, tmp_path / "j", Limits(calls=36))
    assert later.complete
    assert len(rest.asked) == 16


def test_what_a_server_does_not_report_counts_as_much_as_it_may_be(tmp_path: Path) -> None:
    told = done(planned(2), Pool(usual), tmp_path / "j").spent
    untold = done(planned(2), Pool(usual, usage=False), tmp_path / "k").spent
    assert (told.estimated_calls, untold.estimated_calls) == (0, untold.calls)
    assert untold.usd > told.usd > 0
