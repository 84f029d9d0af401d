"""What a knowledge folder says of itself: how it was made, how much it holds, and the digest of every file."""

import hashlib
from pathlib import Path
from typing import Literal, TypeAlias

import msgspec

from turnout.errors import ConfigError

FILE = "manifest.json"
VERSION = 1

EntityOrder: TypeAlias = Literal["similarity", "degree"]
IndexKind: TypeAlias = Literal["exact", "hnsw"]


class Retrieval(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """How look-ups are made. `entities`: looked up by each query; all their facts are on the entity path. `facts`: looked up by
    each query, or as many as are asked for, where that is more. `entity_order`: of the facts on the entity path: "similarity"
    to the query, or "degree" (how many entities, then how many passages), as Graph-R1 has it. `bm25`: whether words are a third
    path. `index`: "exact", or "hnsw", which finds most of them in less time."""

    entities: int = 5
    facts: int = 10
    entity_order: EntityOrder = "similarity"
    bm25: bool = True
    index: IndexKind = "exact"


class Manifest(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """`embedder`: its name. `model`: digest of what it computes vectors with; `dimensions`: of them. `passages`, `facts`,
    `entities`, `incidences`: how many. `files`: SHA-256 of each file of the folder, by its name."""

    version: int
    embedder: str
    model: str
    dimensions: int
    passages: int
    facts: int
    entities: int
    incidences: int
    retrieval: Retrieval
    files: dict[str, str]


def read(folder: Path) -> Manifest:
    """The manifest of a folder. Raises ConfigError when there is none, or one of another version."""
    path = folder / FILE
    try:
        data = path.read_bytes()
    except (FileNotFoundError, NotADirectoryError):
        step = f"`turnout knowledge build CORPUS --out {folder}` makes or finishes it"
        raise ConfigError(f"no knowledge here (no {FILE}); {step}", file=str(folder)) from None
    try:
        version = msgspec.json.decode(data, type=dict[str, object]).get("version")
        if version != VERSION:
            raise ConfigError(f"made by another version ({version}, not {VERSION}); build it again", file=str(path))
        return msgspec.json.decode(data, type=Manifest)
    except msgspec.DecodeError as error:
        raise ConfigError(f"damaged: {error}; build it again", file=str(path)) from None


def write(folder: Path, manifest: Manifest) -> None:
    """Put the manifest in place, whole or not at all."""
    whole = msgspec.json.format(msgspec.json.encode(manifest), indent=2)
    part = folder / (FILE + ".part")
    part.write_bytes(whole + b"\n")
    part.replace(folder / FILE)


def verify(folder: Path, manifest: Manifest) -> None:
    """Raises ConfigError where a file is missing or is not the one that was written."""
    for name, digest in manifest.files.items():
        path = folder / name
        try:
            found = file_digest(path)
        except FileNotFoundError:
            found = "missing"
        if found != digest:
            what = "missing" if found == "missing" else "damaged, or of a build that was broken off"
            raise ConfigError(f"{what}; run the same `turnout knowledge build` again", file=str(path))


def file_digest(path: Path) -> str:
    """SHA-256 of a file."""
    with path.open("rb") as file:
        return hashlib.file_digest(file, "sha256").hexdigest()
