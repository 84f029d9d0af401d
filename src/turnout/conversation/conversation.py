"""The conversation a turn continues, independent of any provider."""

from collections.abc import Sequence

from msgspec import Struct
from msgspec.structs import force_setattr

from turnout.conversation.parts import Format, Message, Part, Role, Tool


class Conversation(Struct, frozen=True):
    """Instructions, messages and tools of one request.

    `system`: top-level instructions (`system` of Messages, `instructions` of Responses); inline system and developer
    messages stay in `messages`, in their place. `messages`, `system`, `tools` may decode lazily. `roles` gives the role of
    every message without decoding any. `format`: the wire format it was read from, None when built by hand.
    `previous_response_id`-style server state is in `Settings`, not here.
    """

    messages: Sequence[Message]
    system: Sequence[Part] = ()
    tools: Sequence[Tool] = ()
    roles: Sequence[Role] = ()
    format: Format | None = None
    system_flat: bool = True

    def __post_init__(self) -> None:
        if len(self.roles) != len(self.messages):
            # Only hand-built conversations get here: readers pass the roles they saw while indexing.
            force_setattr(self, "roles", tuple(m.role for m in self.messages))
