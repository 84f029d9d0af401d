"""A router that has its target's whole answer before any of it goes out, as judges do."""

from msgspec import Struct

from turnout.routing import Answer, Asking, Decision, Failure, Forward, Passthrough, TargetName, Turn, Why, ask


class Considering(Struct, frozen=True, tag="considering", tag_field="type", forbid_unknown_fields=True):
    """Asks `target`, then answers with its reply; forwards to it when the ask failed."""

    target: TargetName

    @property
    def otherwise(self) -> TargetName:
        return self.target

    def route(self, turn: Turn) -> Asking[Decision]:
        outcome = yield from ask(self.target, turn.conversation, within_s=400)
        if isinstance(outcome, Failure):
            return Forward(self.target, Why("fault", outcome.message))
        return Answer(outcome, self.target, Why("judge", "considered"))


ROUTERS = Passthrough | Considering
