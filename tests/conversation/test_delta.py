"""Replies as events: folding undoes unfolding, whatever the pieces."""

import msgspec
import pytest
from hypothesis import given
from hypothesis import strategies as st
from tests import strategies

from turnout.conversation import (
    ArgumentsDelta,
    Begin,
    End,
    Fault,
    Folding,
    PartBegin,
    PartEnd,
    Text,
    TextDelta,
    ToolCall,
    Usage,
    fold,
    unfold,
)
from turnout.errors import UpstreamError


@given(strategies.replies(rich=True))
def test_folding_undoes_unfolding(reply):
    assert fold(unfold(reply)) == reply


@given(strategies.replies(rich=True))
def test_frames_are_no_part_of_the_events(reply):
    framed = msgspec.structs.replace(reply, frames=b"{}", format="openai_chat", streamed=True)
    assert fold(unfold(framed)) == msgspec.structs.replace(reply, format="openai_chat")


@given(strategies.replies(rich=True))
def test_unfolded_events_keep_the_order_every_writer_relies_on(reply):
    deltas = list(unfold(reply))
    assert isinstance(deltas[0], Begin)
    assert isinstance(deltas[-1], End)
    expected = 0
    current = None
    for delta in deltas[1:-1]:
        if isinstance(delta, PartBegin):
            assert current is None
            assert delta.index == expected
            current = delta
        elif isinstance(delta, PartEnd):
            assert current is not None
            assert delta.index == expected
            current, expected = None, expected + 1
        else:
            assert isinstance(delta, ArgumentsDelta) == isinstance(current.part, ToolCall)
            assert delta.index == expected
            assert delta.text
    assert current is None
    assert expected == len(reply.parts)


@given(strategies.replies(rich=True).flatmap(lambda r: st.tuples(st.just(r), strategies.streams(r))))
def test_a_stream_folds_to_its_reply_however_it_was_cut(pair):
    reply, deltas = pair
    assert fold(deltas) == reply


@given(strategies.replies(rich=True).flatmap(lambda r: st.tuples(st.just(r), strategies.streams(r))))
def test_reading_the_reply_early_changes_nothing(pair):
    reply, deltas = pair
    folding = Folding()
    seen = ""
    for delta in deltas:
        folding.feed(delta)
        assert folding.reply == folding.reply
        assert folding.reply.text.startswith(seen)
        seen = folding.reply.text
    assert folding.complete
    assert folding.reply == reply


def test_the_last_usage_counts_and_an_early_one_fills_in():
    early, late = Usage(input_tokens=3), Usage(input_tokens=3, output_tokens=5)
    assert fold([Begin(usage=early), End("end", late)]).usage == late
    assert fold([Begin(usage=early), End("end")]).usage == early
    assert fold([Begin(), End("end")]).usage is None


def test_a_final_value_replaces_the_growths():
    deltas = [Begin(), PartBegin(0, Text("")), TextDelta(0, "a"), PartEnd(0, Text("ab", extra={"x": 1})), End("end")]
    assert fold(deltas).parts == (Text("ab", extra={"x": 1}),)


def test_a_fault_is_raised_and_a_stream_without_terminal_is_malformed():
    error = UpstreamError("overflow", "too long")
    with pytest.raises(UpstreamError) as caught:
        fold([Begin(), PartBegin(0, Text("")), Fault(error)])
    assert caught.value is not error, "a fault that is kept may be raised again"
    assert vars(caught.value) == vars(error)
    with pytest.raises(UpstreamError, match="without a terminal") as caught:
        fold([Begin(), PartBegin(0, Text("")), TextDelta(0, "a")])
    assert caught.value.kind == "malformed"
