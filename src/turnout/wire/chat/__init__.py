"""OpenAI Chat Completions."""

from turnout.wire.chat.codec import ChatCodec

CHAT = ChatCodec()

__all__ = ["CHAT", "ChatCodec"]
