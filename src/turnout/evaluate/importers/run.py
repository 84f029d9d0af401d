"""Importing files into a ledger: format, items, batches, and a report of what was read, added and skipped."""

from collections.abc import Callable, Iterable, Iterator
from pathlib import Path
from typing import Literal

import msgspec
from msgspec import Struct

from turnout.errors import ConfigError
from turnout.evaluate.importers.formats import BY_NAME, Importer, detect
from turnout.evaluate.importers.scrub import scrub
from turnout.evaluate.importers.source import Skipped, Source, Tally, fingerprint
from turnout.evaluate.importers.turns import Assembler
from turnout.ledger.importing import ImportedOutcome, Importing
from turnout.ledger.rows import Capture
from turnout.ledger.trace import TurnRecord
from turnout.pricing import Prices
from turnout.signals import BUILT_IN, Vocabulary

BATCH = 256
VERSION = "1"
"""Part of what names an import: raise it when the same file gives other items."""
ENDINGS = (".jsonl", ".jsonl.gz", ".ndjson", ".json", ".json.gz", ".traj", ".csv", ".tsv", ".parquet", ".history.md")
"""Files taken from a folder; any file that is named is looked at."""

Status = Literal["imported", "imported before", "format not known", "not readable"]


class Options(Struct, frozen=True):
    """How files are read. `format`: "" = told from the content."""

    format: str = ""
    capture: Capture = "signals"
    scrub: bool = False


class FileReport(Struct, frozen=True):
    """What a file gave. `turns`, `outcomes`: read from it; `new_turns`, `new_outcomes`: not in the ledger before. `resumed`:
    items that an interrupted import had stored. `records`, `skipped`, `ignored`, `mended`, `examples`: see `Tally`."""

    file: str
    status: Status
    format: str = ""
    turns: int = 0
    outcomes: int = 0
    new_turns: int = 0
    new_outcomes: int = 0
    sessions: int = 0
    resumed: int = 0
    records: int = 0
    skipped: dict[str, int] = {}
    ignored: dict[str, int] = {}
    mended: dict[str, int] = {}
    examples: tuple[Skipped, ...] = ()
    detail: str = ""


def files(paths: Iterable[Path]) -> Iterator[Path]:
    """The files meant: those named, and those in folders whose names end as recordings do. Raises ConfigError."""
    for path in paths:
        if path.is_dir():
            yield from (p for p in sorted(path.rglob("*")) if p.is_file() and p.name.lower().endswith(ENDINGS))
        elif path.exists():
            yield path
        else:
            raise ConfigError("there is no such file or folder", file=str(path))


def items(
    source: Source,
    importer: Importer,
    options: Options,
    prices: Prices,
    vocabulary: Vocabulary = BUILT_IN,
    skip: int = 0,
) -> tuple[Assembler, Iterator[TurnRecord | ImportedOutcome | None]]:
    """The items of a file, made as they are taken; None for the first `skip`."""

    def bad(why: str) -> None:
        source.tally.records += 1
        source.skip(0, "a message that is not in chat form", why)

    assembler = Assembler(
        importer.name,
        source.changed_at,
        prices,
        capture=options.capture,
        scrubbing=options.scrub,
        vocabulary=vocabulary,
        skip=skip,
        on_bad=bad,
    )
    return assembler, assembler.items(importer.read(source))


def import_file(
    path: Path,
    importing: Importing,
    options: Options,
    prices: Prices,
    *,
    vocabulary: Vocabulary = BUILT_IN,
    on_bytes: Callable[[int], None] = lambda _: None,
    on_skip: Callable[[Skipped], None] | None = None,
) -> FileReport:
    """Import one file; an import of it that was interrupted goes on. `on_bytes`: told how many bytes of it were read."""
    try:
        source = Source(path, on_skip)
        importer = BY_NAME[options.format] if options.format else detect(source)
        if importer is None:
            return FileReport(str(path), "format not known", detail="; ".join(BY_NAME))
        key = fingerprint(path, VERSION, importer.name, options.capture, str(options.scrub))
        before = importing.progress(key)
        if before.done:
            known = msgspec.json.decode(before.report, type=FileReport)
            return msgspec.structs.replace(known, file=str(path), status="imported before", new_turns=0, new_outcomes=0)
        return _import(source, importer, importing, options, prices, vocabulary, key, before.stored, on_bytes)
    except OSError as error:
        return FileReport(str(path), "not readable", detail=error.strerror or str(error))


def _import(
    source: Source,
    importer: Importer,
    importing: Importing,
    options: Options,
    prices: Prices,
    vocabulary: Vocabulary,
    key: str,
    stored: int,
    on_bytes: Callable[[int], None],
) -> FileReport:
    name = scrub(source.path.name) if options.scrub else source.path.name
    assembler, made = items(source, importer, options, prices, vocabulary, stored)
    batch: list[TurnRecord | ImportedOutcome] = []
    count = new_turns = new_outcomes = 0
    for item in made:
        count += 1
        if item is None:
            continue
        batch.append(item)
        if len(batch) >= BATCH:
            added = importing.store(key, name, batch, count)
            new_turns, new_outcomes = new_turns + added.turns, new_outcomes + added.outcomes
            batch.clear()
            on_bytes(source.position)
    tally: Tally = source.tally
    report = FileReport(
        str(source.path),
        "imported",
        importer.name,
        assembler.turns,
        assembler.outcomes,
        sessions=assembler.sessions,
        resumed=min(stored, count),
        records=tally.records,
        skipped=tally.skipped,
        ignored=tally.ignored,
        mended=tally.mended,
        examples=tuple(tally.examples),
    )
    kept = msgspec.structs.replace(report, file=name, examples=())
    added = importing.store(key, name, batch, count, msgspec.json.encode(kept).decode())
    on_bytes(source.size)
    return msgspec.structs.replace(
        report, new_turns=new_turns + added.turns, new_outcomes=new_outcomes + added.outcomes
    )
