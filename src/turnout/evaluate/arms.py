"""Arms: a model under a harness, and how a user names one."""

import difflib
from collections.abc import Iterable

from msgspec import Struct

from turnout.errors import ClientError


class Arm(Struct, frozen=True, order=True):
    """A model and the harness it ran in ("" where none is recorded)."""

    model: str
    harness: str = ""

    def __str__(self) -> str:
        return f"{self.model}@{self.harness}" if self.harness else self.model


class Wanted(Struct, frozen=True):
    """An arm as a user names it: MODEL, or MODEL@HARNESS where a model ran in several.

    Upper and lower case are the same, and a model may be named without its vendor (`gpt-5` for `openai/gpt-5`).
    """

    text: str

    def may_mean(self, arm: Arm) -> bool:
        """Whether this is a name of `arm`."""
        return any(
            _is_model(model, arm.model) and (harness is None or harness == arm.harness.lower())
            for model, harness in self._readings()
        )

    def among(self, arms: Iterable[Arm]) -> Arm:
        """The one arm that is meant. Raises ClientError that lists the candidates when there is none or more than one."""
        known = sorted(arms)
        # A name that is spelled out wins over one that only fits without a vendor.
        exact = [arm for arm in known if self.text in (arm.model, str(arm))]
        found = exact or [arm for arm in known if self.may_mean(arm)]
        if len(found) == 1:
            return found[0]
        if found:
            listed = "; ".join(str(arm) for arm in found)
            raise ClientError(
                f"{self.text} is ambiguous, it ran in {len(found)} harnesses or under {len(found)} names: {listed}; "
                "name one as MODEL@HARNESS",
                code="ambiguous_arm",
            )
        raise ClientError(f"no rows of {self.text}; {_near(self.text, known)}", code="unknown_arm")

    def _readings(self) -> Iterable[tuple[str, str | None]]:
        """Every way to split the name at an `@`, and not to."""
        text = self.text.lower()
        yield text, None
        for at, letter in enumerate(text):
            if letter == "@":
                yield text[:at], text[at + 1 :]


def _is_model(named: str, model: str) -> bool:
    model = model.lower()
    return named == model or ("/" in model and named == model.rsplit("/", 1)[1])


def _near(text: str, arms: list[Arm]) -> str:
    """What a mistyped name may have meant, else what there is."""
    model = text.split("@", 1)[0].lower()
    names = {arm.model.lower(): arm for arm in arms}
    near = [names[name] for name in difflib.get_close_matches(model, list(names), 3, 0.5)]
    near += [arm for arm in arms if model and _is_model(model, arm.model) and arm not in near]
    shown = near or arms[:10]
    listed = "; ".join(str(arm) for arm in shown)
    return f"{'nearest' if near else 'there are'}: {listed}" if shown else "the file holds no readable rows"
