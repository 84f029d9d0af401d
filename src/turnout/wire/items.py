"""Pieces of one format's requests that the writers of other formats treat in a particular way.

Item types of OpenAI Responses reach the neutral form as `Opaque(format="openai_responses", type=...)`.
"""

ATTRIBUTION = "x-anthropic-billing-header:"
"""A line that Claude Code puts first and that changes with every request: it would spoil prefix caches of other vendors."""

UNTRANSLATABLE: frozenset[str] = frozenset(
    f"{kind}{end}"
    for kind in ("local_shell_call", "shell_call", "apply_patch_call", "computer_call", "program")
    for end in ("", "_output")
) | {"image_generation_call"}
"""Calls of tools that only the Responses API defines, and their outputs. No other format can say them: a request or reply
that holds one is refused with a typed error (`unsupported_capability`), never turned into text."""

CONTROL: frozenset[str] = frozenset({"additional_tools", "compaction_trigger"})
"""Items that are no content: the tools of `additional_tools` are in `Conversation.tools`, and `compaction_trigger` asks the
Responses API for a summary. Other formats leave them out without a word."""


def attribution(text: str) -> bool:
    """Whether an instruction is nothing but the attribution line."""
    return text.startswith(ATTRIBUTION) and "\n" not in text.strip()


TIERS: frozenset[object] = frozenset({"auto", "default", "flex", "scale", "priority"})
"""The service tiers that Chat Completions and Responses name alike; clients of either refuse any other."""
