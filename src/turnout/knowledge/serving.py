"""Serve a knowledge folder until told to stop."""

from pathlib import Path

import uvicorn

from turnout.knowledge.search import Searcher
from turnout.knowledge.service import application


def serve(searcher: Searcher, folder: Path, host: str, port: int) -> None:
    """Listen; SIGTERM or Ctrl-C end it after the running requests."""
    made = searcher.manifest
    about = {"knowledge": folder.name, "passages": made.passages, "facts": made.facts, "entities": made.entities}
    uvicorn.run(application(searcher, about), host=host, port=port, log_level="warning", access_log=False)
