"""Wire formats: bytes <-> conversation."""

from turnout.conversation import Format
from turnout.wire.anthropic import MESSAGES
from turnout.wire.chat import CHAT
from turnout.wire.codec import Codec
from turnout.wire.responses import RESPONSES

CODECS: dict[Format, Codec] = {
    "openai_chat": CHAT,
    "anthropic_messages": MESSAGES,
    "openai_responses": RESPONSES,
}
"""Every wire format by its name in configuration."""
