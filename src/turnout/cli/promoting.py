"""Puts versions into force and takes them back, after looking whether the configuration can serve them."""

import getpass
from pathlib import Path
from typing import TYPE_CHECKING

import msgspec

from turnout.cli import output
from turnout.cli.check import line
from turnout.cli.exits import CommandError
from turnout.cli.versions import Known, Shelf
from turnout.errors import ConfigError
from turnout.policies.history import Change, promoted
from turnout.policies.policy import Policy

if TYPE_CHECKING:
    from turnout.gateway.config import Config


def promote(shelf: Shelf, route: str, wanted: str, reason: str, force: bool) -> tuple[Change | None, str]:
    """Serve a version from now on; the change (None: it is served already) and its digest. Raises CommandError, ConfigError."""
    known = shelf.version(route, wanted)
    if not known.file:
        step = f"turnout policy rollback {route} --to-configuration"
        raise CommandError("the configuration's own table is no version to promote", step=step)
    complete = _fitting(shelf, known, force)
    _require_evidence(complete, force)
    path = Path(known.file)
    if complete != known.policy or path.resolve().parent != shelf.folder.path.resolve():
        path = shelf.folder.add(complete)
    change = shelf.folder.promote(complete, path, reason=reason, by=_user(), forced=force)
    return change, complete.digest


def _fitting(shelf: Shelf, known: Known, force: bool) -> Policy:
    """The version as the configuration completes it. Raises CommandError where it does not fit."""
    from turnout.gateway.versions import complete

    stated = known.policy
    found, findings = complete(_served(shelf), stated, Path(known.file).read_text("utf-8-sig"), known.file)
    errors = [finding for finding in findings if finding.severity == "error"]
    for finding in findings if errors or not force else ():
        output.say(line(finding))
    if found is None or errors:
        raise CommandError(
            f"{known.file} does not fit {shelf.own.file}; nothing was changed", step="mend what is listed"
        )
    if stated.digest and found.digest != stated.digest:
        if not force:
            message = f"{known.file} would be {found.digest} here, and its evidence is about {stated.digest}"
            raise CommandError(message, step="measure again, or promote it without evidence by --force")
        note = f"as {stated.digest}, here on other models or settings"
        return msgspec.structs.replace(found, came_from=stated.digest, evidence=None, note=note)
    return found


def _served(shelf: Shelf) -> "Config":
    """The configuration with what is promoted, or where that cannot be read as the file has it."""
    from turnout.gateway.config import load

    try:
        return load(shelf.own.file, None)
    except ConfigError as error:
        output.say(f"note: what is promoted now cannot be served: {error}")
        return shelf.own


def _require_evidence(policy: Policy, force: bool) -> None:
    if force:
        return
    if policy.evidence is None:
        message = f"{policy.digest} has no evidence: nothing says that it is better than what is served"
        raise CommandError(message, step="measure it (`turnout calibrate`), or promote it all the same by --force")
    if policy.evidence.holds is False:
        message = f"the evidence of {policy.digest} speaks against it: {policy.evidence.constraint} does not hold"
        raise CommandError(message, step="promote it all the same by --force")


def rollback(shelf: Shelf, route: str, to_own: bool, reason: str) -> Change:
    """Serve what was served before. Raises CommandError where that cannot be, ConfigError where nothing was promoted."""
    shelf.route(route)
    stack = promoted(shelf.folder.history()).get(route, ())
    if len(stack) > 1 and not to_own:
        before = stack[-2]
        try:
            policy, text = shelf.folder.served(before)
        except ConfigError as error:
            raise CommandError(f"the version before cannot be served: {error}") from None
        _still_fits(shelf, policy, text, before.file)
    return shelf.folder.rollback(route, to_own=to_own, reason=reason, by=_user())


def _still_fits(shelf: Shelf, policy: Policy, text: str, file: str) -> None:
    from turnout.gateway.versions import complete

    found, findings = complete(shelf.own, policy, text, file)
    if found is None:
        for finding in findings:
            output.say(line(finding))
        step = f"turnout policy rollback {policy.route} --to-configuration"
        raise CommandError(f"the version before, {policy.digest}, no longer fits {shelf.own.file}", step=step)


def _user() -> str:
    try:
        return getpass.getuser()
    except (OSError, KeyError):
        return "unknown"
