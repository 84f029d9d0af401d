"""What passes to an upstream and back, and what never gets into a text."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from turnout.errors import ClientError
from turnout.upstream.credentials import Redactor, fixed_headers, passed_headers, returned_headers
from turnout.upstream.models import address
from turnout.upstream.target import Upstream

KEY = "sk-proj-Abcdefghijklmnop1234567890"


def test_each_vendor_gets_its_key_its_way():
    assert (b"authorization", f"Bearer {KEY}".encode()) in fixed_headers(Upstream("openai_chat"), KEY)
    assert (b"x-api-key", KEY.encode()) in fixed_headers(Upstream("anthropic_messages"), KEY)
    assert (b"authorization", f"Bearer {KEY}".encode()) in fixed_headers(
        Upstream("anthropic_messages", auth="bearer"), KEY
    )
    assert (b"anthropic-version", b"2023-06-01") in fixed_headers(Upstream("anthropic_messages"), None)


def test_the_operators_headers_win():
    fixed = fixed_headers(Upstream("anthropic_messages", headers={"Anthropic-Version": "2024-01-01"}), None)
    assert [v for k, v in fixed if k == b"anthropic-version"] == [b"2024-01-01"]


def test_a_clients_secrets_and_unknown_headers_stay_here():
    upstream = Upstream("openai_chat")
    client = [
        (b"authorization", b"Bearer client"),
        (b"cookie", b"c"),
        (b"x-api-key", b"k"),
        (b"x-client-request-id", b"r"),
    ]
    passed = passed_headers(upstream, fixed_headers(upstream, KEY), "openai_chat", client)
    assert (b"x-client-request-id", b"r") in passed
    assert [v for k, v in passed if k == b"authorization"] == [f"Bearer {KEY}".encode()]
    assert not {k for k, _ in passed} & {b"cookie", b"x-api-key"}


def test_protocol_headers_pass_only_to_the_same_format():
    client = [(b"anthropic-beta", b"x-2026"), (b"anthropic-version", b"2023-06-01")]
    same = Upstream("anthropic_messages")
    other = Upstream("openai_chat")
    assert (b"anthropic-beta", b"x-2026") in passed_headers(
        same, fixed_headers(same, None), "anthropic_messages", client
    )
    assert b"anthropic-beta" not in dict(
        passed_headers(other, fixed_headers(other, None), "anthropic_messages", client)
    )


def test_credentials_are_forwarded_to_their_own_vendor_only():
    upstream = Upstream("anthropic_messages", forward_auth=True)
    client = [(b"authorization", b"Bearer user-token")]
    fixed = fixed_headers(upstream, None)
    assert (b"authorization", b"Bearer user-token") in passed_headers(upstream, fixed, "anthropic_messages", client)
    with pytest.raises(ClientError) as refused:
        passed_headers(upstream, fixed, "openai_chat", client)
    assert refused.value.status == 401


def test_only_harmless_headers_come_back():
    came = [(b"set-cookie", b"a"), (b"x-request-id", b"r"), (b"x-ratelimit-remaining-tokens", b"5"), (b"server", b"x")]
    assert returned_headers(came) == [(b"x-request-id", b"r"), (b"x-ratelimit-remaining-tokens", b"5")]


@pytest.mark.parametrize(
    ("base", "format", "expected"),
    [
        ("http://h:1", "openai_chat", "http://h:1/v1/chat/completions"),
        ("http://h:1/v1/", "openai_chat", "http://h:1/v1/chat/completions"),
        ("http://h:1/v1", "anthropic_messages", "http://h:1/v1/messages"),
        ("https://h/api/v1", "openai_responses", "https://h/api/v1/responses"),
        ("https://h/api/paas/v4", "openai_chat", "https://h/api/paas/v4/chat/completions"),
        ("https://h/v1/messages", "anthropic_messages", "https://h/v1/messages"),
    ],
)
def test_base_urls_come_with_or_without_v1(base, format, expected):
    assert address(Upstream(format, base_url=base)) == expected


@given(st.text(max_size=30), st.integers(0, len(KEY) - 6), st.integers(6, len(KEY)), st.text(max_size=30))
def test_no_run_of_a_known_secret_survives(before, start, length, after):
    piece = KEY[start : start + length]
    clean = Redactor([KEY]).clean(before + piece + after)
    grams = {KEY[i : i + 6] for i in range(len(KEY) - 5)}
    assert not any(gram in clean for gram in grams)


@pytest.mark.parametrize(
    "text",
    [
        "Incorrect API key provided: sk-proj-********wxyz.",
        "x-api-key: abcdef123",
        "Authorization Bearer abc.def.ghi",
        "bad key sk-ant-api03-xyz",
    ],
)
def test_what_is_spelled_like_a_key_is_hidden(text):
    clean = Redactor([]).clean(text)
    assert "[redacted]" in clean
    assert not any(piece in clean for piece in ("wxyz", "abcdef123", "abc.def", "api03"))


def test_ordinary_words_stay():
    text = "The key-value store sk is well-known; maximum context length is 8192 tokens."
    assert Redactor([KEY]).clean(text) == text
