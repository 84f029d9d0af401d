"""Cache marks for a request whose format has none. Pure.

OpenAI's models cache a prompt by themselves; Anthropic's only where the request marks it. A conversation that was translated
would be paid in full at every turn, so the places are marked that the next turn begins with.
"""

from typing import Any, TypeAlias

from turnout.conversation import Settings

Block: TypeAlias = dict[str, Any]

_CARRIES = frozenset(("text", "image", "document", "tool_use", "tool_result"))
"""Blocks that may hold a mark; thinking may not."""


def mark(body: Block, settings: Settings) -> None:
    """Mark the ends of the instructions (or else of the tools), of the last user turn before the newest, and of the newest.

    The one before is where the last request ended: a provider looks back from a mark over about 20 blocks only, and a turn
    with many tool results is longer. Nothing is marked where the client marked something, nor in a question asked once
    (no tools, nothing answered yet, no cache key), which would pay for writing what nobody reads.
    """
    turns: list[Block] = body["messages"]
    heads = [blocks for blocks in (body.get("system"), body.get("tools")) if blocks]
    if not (body.get("tools") or settings.prompt_cache_key or any(turn["role"] == "assistant" for turn in turns)):
        return
    if any("cache_control" in block for blocks in (*heads, *(turn["content"] for turn in turns)) for block in blocks):
        return
    if heads:
        _mark_last(heads[0])
    for turn in [turn for turn in turns if turn["role"] == "user"][-2:]:
        _mark_last(turn["content"])


def _mark_last(blocks: list[Block]) -> None:
    for block in reversed(blocks):
        if "name" in block or (block.get("type") in _CARRIES and block.get("text") != ""):
            block["cache_control"] = {"type": "ephemeral"}
            return
