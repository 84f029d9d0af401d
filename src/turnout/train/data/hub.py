"""Questions from a data set on the hub, by the library `datasets`. Needs the extra `train` and, the first time, the network."""

from collections.abc import Iterator
from itertools import islice
from pathlib import Path
from typing import Any

from turnout.errors import ClientError
from turnout.train.data.formats import FormatName
from turnout.train.data.reading import Read, collected, read_questions

PREFIX = "hub:"


def questions_of(source: str, limit: int | None = None, format: FormatName | None = None) -> Read:
    """The questions of a file, or of `hub:NAME[:CONFIG][:SPLIT]` (split `train` unless named), such as
    `hub:hotpotqa/hotpot_qa:distractor:validation`.

    Rows have the columns of the published formats. Raises ClientError as `read_questions` does.
    """
    if not source.startswith(PREFIX):
        return read_questions(Path(source), format, limit)
    name, *more = source.removeprefix(PREFIX).split(":")
    if not name or len(more) > 2:
        raise ClientError(f"{source} is not hub:NAME[:CONFIG][:SPLIT]")
    split = more[-1] if more else "train"
    config = more[0] if len(more) == 2 else None
    return collected(_rows(name, config, split, limit), source, format, limit)


def _rows(name: str, config: str | None, split: str, limit: int | None) -> Iterator[tuple[str, Any]]:
    from datasets import load_dataset

    try:
        rows = load_dataset(name, config, split=split, streaming=limit is not None)
    except (OSError, ValueError, ConnectionError) as error:
        raise ClientError(f"{name} could not be had from the hub: {str(error).splitlines()[0]}") from None
    # Rows left out must not make a limited read a short one.
    for i, row in enumerate(islice(rows, None if limit is None else 4 * limit)):
        yield f"row {i}", dict(row)
