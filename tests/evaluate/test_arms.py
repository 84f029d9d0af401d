"""A user names an arm by model, and by harness where a model ran in several."""

import pytest

from turnout.errors import ClientError
from turnout.evaluate.arms import Arm, Wanted

ARMS = [Arm("vendor/big", "one"), Arm("vendor/big", "two"), Arm("vendor/small", "core@1.2"), Arm("plain")]


@pytest.mark.parametrize(
    ("text", "arm"),
    [
        ("vendor/small", ARMS[2]),
        ("small", ARMS[2]),
        ("SMALL", ARMS[2]),
        ("small@core@1.2", ARMS[2]),
        ("vendor/big@two", ARMS[1]),
        ("big@ONE", ARMS[0]),
        ("plain", ARMS[3]),
    ],
)
def test_a_name_finds_its_arm(text: str, arm: Arm) -> None:
    assert Wanted(text).among(ARMS) == arm
    assert Wanted(text).may_mean(arm)


def test_an_ambiguous_model_lists_its_harnesses() -> None:
    with pytest.raises(ClientError, match=r"vendor/big@one; vendor/big@two"):
        Wanted("big").among(ARMS)


def test_a_name_spelled_out_wins_over_one_without_its_vendor() -> None:
    assert Wanted("big").among([Arm("big"), Arm("vendor/big")]) == Arm("big")


@pytest.mark.parametrize(
    ("text", "said"), [("smal", "vendor/small"), ("big@three", "vendor/big@one"), ("zzzzz", "there are")]
)
def test_an_unknown_name_says_what_may_be_meant(text: str, said: str) -> None:
    with pytest.raises(ClientError, match=said):
        Wanted(text).among(ARMS)


def test_an_empty_file_is_said_to_be_one() -> None:
    with pytest.raises(ClientError, match="no readable rows"):
        Wanted("big").among([])
