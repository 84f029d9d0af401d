"""What a format has no field for, told in words that readers of signals know again."""

FAILED, FAILED_END = "<tool_use_error>", "</tool_use_error>"


def told_as_failed(text: str) -> str:
    """The text of a failed result where there is no flag: in the tag in which coding agents report failed calls.

    A prefix such as `Error:` would not do: results that succeeded may begin like that.
    """
    return text if text.startswith(FAILED) else f"{FAILED}{text}{FAILED_END}"


def without_call(call_id: str) -> str:
    """The line before a result whose call is not in the conversation, told as the user's text."""
    return f"[result of tool call {call_id}]"
