"""Wire formats: bytes <-> conversation."""

from turnout.conversation import Format
from turnout.wire.anthropic import MESSAGES
from turnout.wire.chat import CHAT
from turnout.wire.codec import Codec

CODECS: dict[Format, Codec] = {
    "openai_chat": CHAT,
    "anthropic_messages": MESSAGES,
}
"""Every wire format by its name in configuration."""
