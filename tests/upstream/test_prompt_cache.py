"""Usage of scripted models: what a prompt cache would have held."""

from typing import Any

import msgspec
import pytest
from hypothesis import given
from hypothesis import strategies as st

from turnout.conversation import Format, Usage
from turnout.upstream.prompt_cache import LEAST, STEP, PromptCache

MARK = {"cache_control": {"type": "ephemeral"}}
LONG = "some words that fill a prompt " * 400


class Clock:
    now = 100.0

    def __call__(self) -> float:
        return self.now


def chat(*texts: str, model: str = "m") -> bytes:
    return msgspec.json.encode({"model": model, "messages": [{"role": "user", "content": text} for text in texts]})


def messages(*texts: str, marked: bool = True) -> bytes:
    blocks: list[dict[str, Any]] = [{"type": "text", "text": text} for text in texts]
    if marked:
        blocks[-1] |= MARK
    return msgspec.json.encode({"model": "m", "messages": [{"role": "user", "content": [block]} for block in blocks]})


def prompt(usage: Usage) -> int:
    found = usage.prompt_tokens
    assert found is not None
    return found


def test_openai_reads_a_known_prefix_in_steps():
    cache = PromptCache("openai_chat")
    first, second = cache.usage(chat(LONG), 1), cache.usage(chat(LONG, "more"), 1)
    assert first.cache_read_tokens == 0
    assert second.cache_read_tokens == prompt(first) // STEP * STEP
    assert second.cache_write_tokens is None


def test_anthropic_reads_and_writes_up_to_the_mark():
    cache = PromptCache("anthropic_messages")
    first, second = cache.usage(messages(LONG), 1), cache.usage(messages(LONG, "more"), 1)
    assert (first.cache_read_tokens, first.cache_write_tokens, first.input_tokens) == (0, prompt(first), 0)
    assert second.cache_read_tokens == first.cache_write_tokens
    assert second.cache_write_tokens == prompt(second) - prompt(first)


def test_anthropic_caches_nothing_without_a_mark():
    cache = PromptCache("anthropic_messages")
    for _ in range(2):
        usage = cache.usage(messages(LONG, marked=False), 1)
        assert (usage.cache_read_tokens, usage.cache_write_tokens) == (0, 0)


@pytest.mark.parametrize("format", ["openai_chat", "anthropic_messages"])
def test_short_prompts_are_not_cached(format: Format):
    cache, body = PromptCache(format), {"openai_chat": chat("short"), "anthropic_messages": messages("short")}[format]
    for _ in range(2):
        usage = cache.usage(body, 1)
        assert prompt(usage) < LEAST
        assert not usage.cache_read_tokens
        assert not usage.cache_write_tokens


def test_another_model_and_another_upstream_know_nothing():
    cache = PromptCache("openai_chat")
    cache.usage(chat(LONG), 1)
    assert cache.usage(chat(LONG, model="other"), 1).cache_read_tokens == 0
    assert PromptCache("openai_chat").usage(chat(LONG), 1).cache_read_tokens == 0


def test_a_prefix_is_forgotten_after_its_lifetime_and_kept_by_reading():
    clock = Clock()
    cache = PromptCache("anthropic_messages", lifetime_s=300.0, clock=clock)
    cache.usage(messages(LONG), 1)
    clock.now += 200
    assert cache.usage(messages(LONG), 1).cache_read_tokens
    clock.now += 200
    assert cache.usage(messages(LONG), 1).cache_read_tokens
    clock.now += 301
    assert not cache.usage(messages(LONG), 1).cache_read_tokens


@given(
    st.lists(st.sampled_from([LONG, "a", "b " * 600]), min_size=1, max_size=5),
    st.sampled_from(["openai_chat", "anthropic_messages"]),
)
def test_the_parts_of_a_prompt_add_up_to_the_whole(texts: list[str], format: Format):
    """Caching changes how a prompt is charged, never how long it is."""
    warm = PromptCache(format)
    write = chat if format == "openai_chat" else messages
    for end in range(1, len(texts) + 1):
        body = write(*texts[:end])
        assert prompt(warm.usage(body, 1)) == prompt(PromptCache(format).usage(body, 1))
