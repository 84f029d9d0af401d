"""OpenAI Responses: items in, items out."""

from turnout.wire.codec import Codec
from turnout.wire.responses.codec import Responses

RESPONSES: Codec = Responses()

__all__ = ["RESPONSES"]
