"""Where `turns` and `why` find recorded turns: a running gateway, or a ledger."""

import contextlib
import urllib.parse
from collections.abc import Callable, Iterator, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any

from turnout.cli import exits, gateways, options

if TYPE_CHECKING:
    from turnout.ledger.outcome import Reported
    from turnout.ledger.store import Ledger
    from turnout.ledger.trace import TurnRecord


PAGE = 500
"""Turns read at once."""


class Records:
    """Recorded turns of one place. Raises CommandError when it cannot be reached or read."""

    def __init__(self, ledger: str = "", url: str = "", key_env: str = "") -> None:
        """`url`: a gateway to ask. `ledger`: a database URL; "" = that of ./turnout.toml, else ./turnout.db."""
        if ledger and url:
            raise exits.CommandError("--ledger and --url exclude each other", step="leave one out")
        self.url = url
        self.key_env = key_env
        self.ledger = "" if url else existing(ledger or _usual())

    @property
    def name(self) -> str:
        """The place, for people; no password is in it."""
        return self.url or shown(self.ledger)

    def recent(
        self,
        limit: int,
        route: str = "",
        session: str = "",
        since: float | None = None,
        until: float | None = None,
        told: Callable[[int], None] | None = None,
    ) -> list["TurnRecord"]:
        """The newest turns, newest first. `since`, `until`: Unix seconds, the first included, the last not. `told`: how many
        have been read."""
        which = {"route": route, "session": session, "since": since, "until": until}
        found: list[TurnRecord] = []
        before = ""
        with self._pages() as page:
            while len(found) < limit:
                turns, before = page(which, min(limit - len(found), PAGE), before)
                found += turns
                if told is not None:
                    told(len(found))
                if not before or not turns:
                    break
        return found

    def one(self, turn: str) -> "TurnRecord":
        """A turn by its id, or the newest: `last`."""
        if turn == "last":
            newest = self.recent(1)
            if not newest:
                raise exits.CommandError("no turns are recorded yet", exits.NOT_FOUND)
            turn = newest[0].id
        if self.url:
            return _record(gateways.fetch(self.url, f"/v1/turns/{urllib.parse.quote(turn)}", self._key()))
        with reading(self.ledger) as ledger:
            found = ledger.turn(turn)
        if found is None:
            step = "`turnout turns` lists the newest; the id is in the header x-turnout-turn"
            raise exits.CommandError(f"no turn {turn} in the ledger", exits.NOT_FOUND, step)
        return found

    def outcomes(self, turns: "Sequence[TurnRecord]") -> "tuple[Reported, ...] | None":
        """What became of these turns and their sessions; None when a gateway is asked, for it does not tell."""
        if self.url:
            return None
        sessions = sorted({record.session for record in turns if record.session})
        with reading(self.ledger) as ledger:
            return ledger.outcomes_of([record.id for record in turns], sessions)

    @contextlib.contextmanager
    def _pages(self) -> "Iterator[Callable[[dict[str, Any], int, str], tuple[Sequence[TurnRecord], str]]]":
        """Gives pages of turns: filter, size and cursor in, turns and the next cursor out."""
        if self.url:
            yield self._fetched
            return
        from turnout.ledger.reading import TurnFilter

        with reading(self.ledger) as ledger:

            def page(which: dict[str, Any], size: int, before: str) -> "tuple[Sequence[TurnRecord], str]":
                got = ledger.turns(TurnFilter(**which), limit=size, before=before)
                return got.turns, got.next

            yield page

    def _fetched(self, which: dict[str, Any], size: int, before: str) -> "tuple[Sequence[TurnRecord], str]":
        asked = {**which, "limit": str(size), "before": before}
        query = urllib.parse.urlencode({name: value for name, value in asked.items() if value not in ("", None)})
        answer = gateways.fetch(self.url, f"/v1/turns?{query}", self._key())
        if not isinstance(answer, dict):
            raise exits.CommandError("the gateway's answer is no list of turns", exits.UPSTREAM)
        return [_record(row) for row in answer.get("turns", [])], str(answer.get("next", ""))

    def _key(self) -> str:
        return gateways.key_in(self.key_env) if self.key_env else ""


def none_of(route: str = "", session: str = "", period: bool = False) -> str:
    """Says that there are no turns of what was asked for."""
    asked = [f"{name} `{value}`" for name, value in (("route", route), ("session", session)) if value]
    when = " in this period" if period else ""
    return (
        f"no turns of {' and '.join(asked)} are recorded{when}" if asked else f"no turns are recorded{when or ' yet'}"
    )


@contextlib.contextmanager
def reading(url: str) -> "Iterator[Ledger]":
    """A ledger, open to be read."""
    from turnout.ledger.store import Ledger

    ledger = Ledger.read(url)
    try:
        yield ledger
    finally:
        ledger.close()


def shown(url: str) -> str:
    """A ledger's URL for people; no password is in it, and no name of a home folder."""
    from sqlalchemy.engine import make_url

    from turnout.evaluate.importers.scrub import scrub

    text = make_url(url).render_as_string(hide_password=True)
    return scrub(text) if text.startswith("sqlite:") else text


def _usual() -> str:
    """The ledger of the configuration in this folder, else the default one."""
    from turnout.errors import ConfigError
    from turnout.gateway.config import LedgerConfig, load

    config = LedgerConfig()
    if options.DEFAULT_FILE.exists():
        try:
            config = load(options.DEFAULT_FILE, None).ledger
        except ConfigError as error:
            raise exits.CommandError(str(error), step="or name the ledger with --ledger") from None
    if config.url_env:
        import os

        config = LedgerConfig(os.environ.get(config.url_env, ""))
    return config.url


def existing(url: str) -> str:
    """`url`, unless it is that of a file which is not there: to read a ledger must not make one."""
    file = Path(url.removeprefix("sqlite:///").partition("?")[0])
    if url.startswith("sqlite:///") and not file.exists():
        step = "run this where the gateway was started, or name a ledger with --ledger or a running gateway with --url"
        raise exits.CommandError(f"no ledger here: {file} does not exist", exits.NOT_FOUND, step)
    return url


def _record(row: Any) -> "TurnRecord":
    import msgspec

    from turnout.ledger.trace import TurnRecord

    try:
        return msgspec.convert(row, TurnRecord, strict=False)
    except msgspec.ValidationError as error:
        raise exits.CommandError(f"the gateway's answer is no turn: {error}", exits.UPSTREAM) from None
