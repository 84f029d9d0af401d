"""Training settings from a file; the presets that come with the package. Needs no torch."""

from importlib import resources
from pathlib import Path
from typing import Any

import msgspec

from turnout.errors import ConfigError
from turnout.train.settings import Settings

PRESETS = ("qwen2.5-1.5b", "qwen2.5-3b", "qwen2.5-7b")
LAUNCHERS = ("one-gpu", "fsdp-8", "zero3-8", "nodes")


def load_settings(file: Path) -> Settings:
    """The settings in a TOML file; its paths are relative to where the command runs. Raises ConfigError, which names the key."""
    return read_settings(file.read_text(encoding="utf-8"), str(file))


def read_settings(text: str, file: str = "") -> Settings:
    """The settings in a TOML text."""
    try:
        return msgspec.toml.decode(text, type=Settings, dec_hook=_path)
    except msgspec.ValidationError as error:
        message, _, where = str(error).partition(" - at `$")
        raise ConfigError(message, file=file, key=where.rstrip("`").lstrip(".")) from None
    except (msgspec.DecodeError, ValueError) as error:
        raise ConfigError(str(error), file=file) from None


def preset(name: str) -> str:
    """The text of a preset, or of a launcher's file. Raises ConfigError for an unknown name."""
    suffix = "toml" if name in PRESETS else "yaml"
    if name not in (*PRESETS, *LAUNCHERS):
        known = ", ".join((*PRESETS, *LAUNCHERS))
        raise ConfigError(f"no preset is called {name}; there are {known}")
    return (resources.files("turnout.train") / "presets" / f"{name}.{suffix}").read_text(encoding="utf-8")


def _path(kind: type, value: Any) -> Any:
    if kind is Path and isinstance(value, str):
        return Path(value)
    raise NotImplementedError(f"cannot read {kind.__name__}")
