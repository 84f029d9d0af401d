"""What the README and the guides show is true: blocks marked `<!-- run -->` run, configurations load, links lead somewhere."""

import os
import re
import shutil
import subprocess
import sys
import tomllib
from collections.abc import Iterator
from pathlib import Path

import msgspec
import pytest
import typer.main

from tests.running import Running, running
from turnout.cli import conditions, init, ports
from turnout.cli.app import app
from turnout.gateway import config as configuration
from turnout.knowledge.building import Options, build
from turnout.knowledge.passage import Passage
from turnout.knowledge.statement import Document
from turnout.policies import file as policies
from turnout.upstream.scripted import Line

ROOT = Path(__file__).parents[1]
PAGES = [ROOT / "README.md", ROOT / "CONTRIBUTING.md", *sorted((ROOT / "docs").rglob("*.md"))]
BLOCK = re.compile(r"^(<!-- run -->\n)?```(\w*)\n(.*?)^```$", re.MULTILINE | re.DOTALL)


def lines_before(page: Path, at: int) -> int:
    return page.read_text("utf-8")[:at].count("\n")


BLOCKS = [
    pytest.param(
        kind,
        text,
        bool(run),
        id=f"{page.relative_to(ROOT)}:{page.read_text('utf-8')[: found.start()].count(chr(10)) + 1}",
    )
    for page in PAGES
    for found in BLOCK.finditer(page.read_text("utf-8"))
    for run, kind, text in [found.groups()]
]


def of_kind(kind: str, run: bool = False) -> list[object]:
    return [block for block in BLOCKS if block.values[0] == kind and (block.values[2] or not run)]


@pytest.fixture(scope="module")
def gateway(tmp_path_factory: pytest.TempPathFactory) -> Iterator[tuple[Running, Path]]:
    """The configuration that `turnout init --preset demo` writes, served in its folder."""
    folder = tmp_path_factory.mktemp("readme")
    shutil.copy(init.PRESETS / "demo-replies.jsonl", folder)
    with running((init.PRESETS / "demo.toml").read_text("utf-8"), folder) as served:
        yield served, folder


def environment(folder: Path, url: str) -> dict[str, str]:
    """An environment in which `turnout` and `python` are those under test."""
    programs = folder / "bin"
    programs.mkdir(exist_ok=True)
    shim = programs / "turnout"
    shim.write_text(f'#!/bin/sh\nexec "{sys.executable}" -m turnout "$@"\n')
    shim.chmod(0o755)
    return {
        **os.environ,
        "PATH": f"{programs}:{os.environ['PATH']}",
        "PYTHONPATH": str(ROOT / "src"),
        "OPENAI_BASE_URL": f"{url}/v1",
        "ANTHROPIC_BASE_URL": url,
    }


@pytest.mark.parametrize(("kind", "text", "run"), of_kind("python", run=True))
def test_python_blocks_run(kind: str, text: str, run: bool, gateway: tuple[Running, Path]):
    served, folder = gateway
    served.turns()  # what came before is in the ledger
    command = [sys.executable, "-c", text]
    done = subprocess.run(
        command,
        cwd=folder,
        env=environment(folder, served.url),
        capture_output=True,
        text=True,
        timeout=60,
        check=False,
    )
    assert done.returncode == 0, done.stderr
    assert done.stdout.strip()


@pytest.mark.skipif(shutil.which("curl") is None, reason="curl is not installed")
@pytest.mark.parametrize(("kind", "text", "run"), of_kind("sh", run=True))
def test_shell_blocks_run(kind: str, text: str, run: bool, gateway: tuple[Running, Path], tmp_path: Path):
    served, folder = gateway
    url = served.url
    if "turnout init" in text:  # a block that brings up its own gateway
        folder, port = tmp_path, ports.free_port()
        url = f"http://127.0.0.1:{port}"
        text = text.replace("turnout serve", f"turnout serve --port {port}")
    text = text.replace("http://127.0.0.1:4000", url)
    done = subprocess.run(
        ["bash", "-e", "-c", text], cwd=folder, env=environment(folder, url), capture_output=True, text=True, timeout=60,
        check=False,
    )  # fmt: skip
    assert done.returncode == 0, done.stderr
    assert done.stdout.strip()
    assert '"error"' not in done.stdout


@pytest.mark.parametrize(("kind", "text", "run"), of_kind("toml"))
def test_configurations_load(kind: str, text: str, run: bool, tmp_path: Path):
    (tmp_path / "replies.jsonl").write_text('{"text": "hello"}\n')
    shutil.copy(ROOT / "src/turnout/cli/presets/collaboration-graph.json", tmp_path / "graph.json")
    file = tmp_path / "turnout.toml"
    file.write_text(text)
    tables = tomllib.loads(text)
    for route in tables.get("routes", {}).values():
        if (knowledge := route.get("knowledge")) and "://" not in knowledge:
            pytest.importorskip("numpy", reason="needs the extra `knowledge`")
            passage = Passage("p2", "Doncaster", "Doncaster lies on the River Don.")
            build([Document(passage)], tmp_path / knowledge, Options(embedder="hashed"))
    if "conditions" in tables:
        assert conditions.read(file).conditions
        return
    if "router" in tables:
        assert policies.parse(text, str(file)).route
        return
    configuration.load(file, None)
    assert tomllib.loads(text)["routes"]


def test_script_lines_are_script_lines():
    texts = [block.values[1] for block in of_kind("json")]
    lines = [msgspec.json.decode(line, type=Line) for text in texts for line in str(text).splitlines()]
    assert len(lines) > 3


@pytest.mark.parametrize("page", PAGES, ids=lambda page: str(page.relative_to(ROOT)))
def test_links_lead_somewhere(page: Path):
    for link in re.findall(r"\]\((?!https?://)([^)#]+)", page.read_text("utf-8")):
        assert (page.parent / link).exists(), link


@pytest.mark.parametrize("page", PAGES, ids=lambda page: str(page.relative_to(ROOT)))
def test_commands_exist(page: Path):
    known = set(typer.main.get_command(app).commands)  # type: ignore[attr-defined]
    for name in re.findall(r"(?:^|`| )turnout ([a-z]+)(?=[ `\n])", page.read_text("utf-8"), re.MULTILINE):
        if name not in ("on", "is", "at"):
            assert name in known, name


def test_every_page_is_in_the_navigation():
    navigation = (ROOT / "mkdocs.yml").read_text("utf-8")
    for page in (ROOT / "docs").rglob("*.md"):
        assert str(page.relative_to(ROOT / "docs")) in navigation


def test_the_readme_names_the_two_commands():
    readme = (ROOT / "README.md").read_text("utf-8")
    for command in ("scripts/demo", "scripts/check"):
        assert f"    {command} " in readme
        assert os.access(ROOT / command, os.X_OK)
