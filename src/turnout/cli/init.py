"""`turnout init`: write a first configuration file."""

from enum import StrEnum
from pathlib import Path
from typing import Annotated

import typer

from turnout.cli import exits, options, output

PRESETS = Path(__file__).with_name("presets")


class Preset(StrEnum):
    """The configurations that `init` can write."""

    ANTHROPIC = "anthropic"
    OPENAI = "openai"
    OPENROUTER = "openrouter"
    LOCAL = "local"
    DEMO = "demo"
    COLLABORATION = "collaboration"


def init(
    file: Annotated[Path, typer.Argument(metavar="[FILE]", help="Where to write.")] = options.DEFAULT_FILE,
    preset: Annotated[Preset, typer.Option(help="Whose models to route between.")] = Preset.ANTHROPIC,
    force: Annotated[bool, typer.Option("--force", help="Overwrite an existing file.")] = False,
    as_json: options.AsJson = False,
) -> None:
    """Write a first configuration file.

    Comes with comments; prints what to do next."""
    written = [file]
    if file.exists() and not force:
        raise exits.CommandError(f"{file} exists already", step="choose another name, or overwrite it with --force")
    if not file.parent.is_dir():
        raise exits.CommandError(f"there is no folder {file.parent}", step=f"`mkdir -p {file.parent}` makes it")
    text = (PRESETS / f"{preset}.toml").read_text("utf-8")
    for extra in sorted(PRESETS.glob(f"{preset}-*")):
        beside = file.parent / extra.name
        if beside.exists() and not force:
            raise exits.CommandError(f"{beside} exists already", step="remove it, or overwrite it with --force")
        beside.write_bytes(extra.read_bytes())
        written.append(beside)
    file.write_text(text, "utf-8")
    steps = next_steps(file, preset)
    if as_json:
        output.emit({"files": [str(path) for path in written], "preset": preset, "next": steps})
        return
    output.say(f"wrote {', '.join(str(path) for path in written)}. Next:")
    for step in steps:
        output.emit_text(f"  {step}")


def next_steps(file: Path, preset: Preset) -> list[str]:
    """The commands that lead from a fresh file to an agent on it."""
    key = {"anthropic": "ANTHROPIC_API_KEY", "openai": "OPENAI_API_KEY", "openrouter": "OPENROUTER_API_KEY"}.get(preset)
    steps = [
        *([(f"export {key}=...", "your key; the file only names the variable")] if key else []),
        (f"turnout check {file}", "says what is missing"),
        *(
            []
            if preset == Preset.COLLABORATION
            else [
                (f"turnout launch claude --config {file} --small-route background", f"or: launch codex --config {file}")
            ]
        ),
        (f"turnout serve {file}", "a gateway for all your agents, seen at /dashboard"),
    ]
    width = max(len(command) for command, _ in steps)
    return [f"{command:<{width}}   # {comment}" for command, comment in steps]
