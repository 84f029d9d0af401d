"""The token estimate, against counts of a real vocabulary that were made once and stored."""

from pathlib import Path

import msgspec
import pytest
from hypothesis import given
from hypothesis import strategies as st

from turnout.pricing.tokens import SAMPLED_FROM, estimate_tokens

SAMPLES = msgspec.json.decode(Path(__file__).with_name("token_samples.json").read_bytes())


@pytest.mark.parametrize("sample", SAMPLES, ids=[sample["name"] for sample in SAMPLES])
def test_near_the_real_count(sample: dict[str, object]) -> None:
    real = int(str(sample["o200k_base"]))
    assert abs(estimate_tokens(str(sample["text"])) / real - 1) < 0.14


def test_within_a_tenth_on_average_over_english_code_and_json() -> None:
    kinds = (
        "english",
        "chat",
        "python",
        "python_sqlalchemy",
        "json",
        "json_pretty",
        "tool_output",
        "diff",
        "typescript",
    )
    errors = [abs(estimate_tokens(s["text"]) / s["o200k_base"] - 1) for s in SAMPLES if s["name"] in kinds]
    assert len(errors) == len(kinds)
    assert sum(errors) / len(errors) < 0.05


def test_a_long_mixed_text_is_sampled_fairly() -> None:
    blocks = [s for s in SAMPLES if s["name"] in ("english", "python", "json", "tool_output", "diff")]
    text = "\n".join(s["text"] * 3 for s in blocks for _ in range(5))
    real = sum(s["o200k_base"] * 3 for s in blocks) * 5
    assert len(text) > SAMPLED_FROM
    assert abs(estimate_tokens(text) / real - 1) < 0.10


def test_nothing_is_nothing() -> None:
    assert estimate_tokens("") == 0


@given(st.text(min_size=1))
def test_any_text_has_a_token_and_not_absurdly_many(text: str) -> None:
    assert 1 <= estimate_tokens(text) <= 4 * len(text)


@given(
    st.text(alphabet=st.characters(codec="ascii"), max_size=2000),
    st.text(alphabet=st.characters(codec="ascii"), max_size=2000),
)
def test_more_text_is_not_fewer_tokens_by_more_than_a_seam(a: str, b: str) -> None:
    assert estimate_tokens(a + b) >= estimate_tokens(a) - 3
    assert abs(estimate_tokens(a + b) - estimate_tokens(a) - estimate_tokens(b)) <= 6
