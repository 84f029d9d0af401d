"""`turnout check`: everything wrong or doubtful in a configuration file."""

import os
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from turnout.cli import exits, options, output

if TYPE_CHECKING:
    from turnout.gateway.tables import Finding


def check(
    file: options.ConfigFile = options.DEFAULT_FILE,
    strict: Annotated[bool, typer.Option("--strict", help="Exit with 1 when there are warnings.")] = False,
    show: Annotated[
        bool, typer.Option("--show", help="Also print the effective configuration, without secrets.")
    ] = False,
    as_json: options.AsJson = False,
) -> None:
    """Find what is wrong in a configuration file.

    Every error and warning at once, each with line, key and remedy.

    Exit code 0 without errors (1 with --strict and warnings), 2 with errors.
    """
    from turnout.gateway import checking
    from turnout.gateway.config import effective

    config, findings = checking.check(_text(file), str(file), os.environ)
    errors = sum(finding.severity == "error" for finding in findings)
    warnings = len(findings) - errors
    if as_json:
        result: dict[str, Any] = {
            "file": str(file),
            "ok": not errors,
            "errors": errors,
            "warnings": warnings,
            "digest": config.digest if config else None,
            "findings": findings,
        }
        if show:
            result["config"] = effective(config) if config else None
        output.emit(result)
    else:
        for finding in findings:
            output.emit_text(line(finding))
        if config is not None:
            for name, kind, targets in checking.summary(config):
                promoted = f", policy {config.routes[name].policy}" if config.routes[name].version else ""
                output.emit_text(f"route {name}: {kind} over {targets}{promoted}")
            if show:
                output.emit_text(_shown(effective(config)))
        digest = f", digest {config.digest}" if config else ""
        output.emit_text(f"{file}: {output.count(errors, 'error')}, {output.count(warnings, 'warning')}{digest}")
    if errors:
        raise typer.Exit(exits.USAGE)
    if warnings and strict:
        raise typer.Exit(exits.FOUND)


def _text(file: Path) -> str:
    try:
        return file.read_text("utf-8-sig")
    except FileNotFoundError:
        raise exits.CommandError(f"{file}: no such file", step="`turnout init` writes one") from None
    except UnicodeDecodeError as error:
        raise exits.CommandError(f"{file}: not UTF-8 at byte {error.start}", step="save it as UTF-8") from None


def line(finding: "Finding") -> str:
    """A finding for people, with its remedy."""
    where = ":".join(str(part) for part in (finding.file, finding.line) if part)
    key = f" {finding.key}:" if finding.key else ""
    hint = f"\n    {finding.hint}" if finding.hint else ""
    return f"{finding.severity}: {where}:{key} {finding.message}{hint}"


def _shown(tree: dict[str, Any]) -> str:
    import msgspec

    return msgspec.json.format(msgspec.json.encode(tree), indent=2).decode()
