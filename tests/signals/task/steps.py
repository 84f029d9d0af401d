"""Observations for tests of whole tasks, made without conversations."""

from typing import Any

from turnout.signals import Observation


def ran(call: str = "run", out: str = "a", **more: Any) -> Observation:
    """A program that went well and printed `out`."""
    fields: dict[str, Any] = {"kind": "execute", "status": "ok", "call": call, "digest": out, "size": len(out), **more}
    return Observation("bash", **fields)


def failed(call: str = "run", why: str = "ValueError", error_class: Any = "capability", **more: Any) -> Observation:
    """A program that failed for the reason `why`."""
    fields: dict[str, Any] = {
        "kind": "execute", "status": "failed", "call": call, "digest": why, "size": len(why),
        "error_class": error_class, "error_kind": "exception", "fingerprint": why, **more,
    }  # fmt: skip
    return Observation("bash", **fields)


def read(path: str = "a.py", out: str = "text") -> Observation:
    """A file that was read."""
    return Observation("Read", kind="read", status="ok", call=f"read {path}", target=path, digest=out, size=len(out))


def edited(path: str = "a.py", call: str = "", **more: Any) -> Observation:
    """A change that went through."""
    fields: dict[str, Any] = {"kind": "edit", "status": "ok", "change": "verified", "size": 9, "digest": "done", **more}
    return Observation("Edit", call=call or f"edit {path}", target=path, **fields)


def edit_failed(path: str = "a.py", call: str = "") -> Observation:
    """A change that did not go through."""
    return Observation(
        "Edit", kind="edit", status="failed", call=call or f"edit {path}", target=path, error_class="capability",
        error_kind="edit_failed", fingerprint="not found", digest="not found", size=9,
    )  # fmt: skip


def suite(run: int, red: int, call: str = "pytest", **more: Any) -> Observation:
    """A run of `run` tests of which `red` failed."""
    common: dict[str, Any] = {
        "kind": "test", "call": call, "target": call, "tests_run": run, "tests_failed": red, "tests_passed": not red,
        "digest": f"{red}/{run}", "size": 9,
    }  # fmt: skip
    if red:
        common |= {"status": "failed", "error_class": "capability", "error_kind": "test_failure", "fingerprint": "E"}
    else:
        common |= {"status": "ok"}
    return Observation("bash", **{**common, **more})


def waited(call: str = "poll", out: str = "pending") -> Observation:
    """A look at something that is not ready."""
    return Observation(
        "bash", kind="read", status="failed", call=call, digest=out, size=len(out), error_class="informational",
        error_kind="pending", waits=True,
    )  # fmt: skip


def noted(text: str = "x") -> Observation:
    """A note of the agent to itself."""
    return Observation("think", kind="plan", call=text)


def undone(what: str = "rollback") -> Observation:
    """Changes taken back."""
    return Observation("bash", kind="edit", status="ok", call=what, takes_back=what, change="verified")
