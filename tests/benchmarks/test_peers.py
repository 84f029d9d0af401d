"""The benchmark of collaboration puts its tables where they belong."""

import sys
from pathlib import Path

import pytest
from tests.recorded import needs_recordings, shared

from benchmarks import peers


@needs_recordings
def test_tables_are_put_between_the_markers(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    folder = shared()
    assert folder
    monkeypatch.setattr(peers, "POOLS", {"PRD": ("prd_vicuna80", 1, ())})
    monkeypatch.setattr(peers, "AXES", {"alpha": peers.AXES["alpha"]})
    readme, figures = tmp_path / "README.md", tmp_path / "figures.json"
    readme.write_text(f"# before\n{peers.BEGIN}\nformer tables\n{peers.END}\nafter\n")
    options = ["--json", str(figures), "--write", str(readme), "--processes", "1"]
    monkeypatch.setattr(sys, "argv", ["peers.py", str(folder / "data" / "peers"), *options])
    peers.main()
    said = readme.read_text()
    assert said.startswith("# before\n")
    assert said.endswith("after\n")
    assert "former tables" not in said
    for row in ("default first=random", "paper alpha=1", "paper first=random - non_targeted"):
        assert f"| {row} |" in said, row
    assert figures.stat().st_size > 10_000
