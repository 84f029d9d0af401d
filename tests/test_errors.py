"""Errors that are kept and raised."""

import pytest

from turnout.errors import UpstreamError, afresh


def test_a_copy_says_the_same_and_leaves_the_original_without_frames():
    kept = UpstreamError("overflow", "too long", status=400, code="c", retry_after_s=2.0, target="t")
    with pytest.raises(UpstreamError) as raised:
        raise afresh(kept)
    assert raised.value is not kept
    assert (str(raised.value), vars(raised.value)) == (str(kept), vars(kept))
    assert raised.value.__traceback__ is not None
    assert kept.__traceback__ is None
