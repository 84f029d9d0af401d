"""The command line: `turnout COMMAND`. Commands import what they need when they run, so that help comes at once."""

from turnout.cli.app import main

__all__ = ["main"]
