"""Every turn to one target."""

from msgspec import Struct

from turnout.routing.core import Forward, TargetName, Turn, Why


class Passthrough(Struct, frozen=True, tag="passthrough", tag_field="type", forbid_unknown_fields=True):
    """Sends every turn to one target.

    `target`: name of the target. `fallbacks`: targets tried in order when it fails before the first content (default none).
    """

    target: TargetName
    fallbacks: tuple[TargetName, ...] = ()

    @property
    def otherwise(self) -> TargetName:
        """Where a turn goes when routing fails."""
        return self.target

    def route(self, turn: Turn) -> Forward:
        """The one target, whatever the turn."""
        return Forward(self.target, Why("fixed", f"nothing to decide: always {self.target}"), self.fallbacks)
