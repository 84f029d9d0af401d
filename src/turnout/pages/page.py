"""What every report is: a verdict, tiles, sections of figures, and the rows behind them, as one HTML file.

The file loads nothing from elsewhere. Its block of data (`<script id="data">`) holds the figures, the same as the command
prints with `--json`, and the tables of rows they were made from. A figure is a link that names a table and what its rows have
in common; the page shows these rows, finds others, and hands them out as CSV or JSON.
"""

from collections.abc import Iterable, Sequence
from html import escape
from importlib.resources import files
from string import Template
from typing import Any, Literal, TypeAlias

import msgspec
from msgspec import Struct

from turnout.pages.digest import digest

Tone: TypeAlias = Literal["good", "bad", "open"]
Cell: TypeAlias = str | int | float | bool | None


POSITIVE = "> 0"
"""In place of a value that rows have in common: any number above 0."""


class Rows(Struct, frozen=True):
    """A table of rows that figures are made from. `source`: where they stand, for people. `key`: the columns that name a row
    there. `said`: what a row is."""

    name: str
    columns: tuple[str, ...]
    rows: Sequence[Sequence[Cell]]
    key: tuple[str, ...]
    source: str
    said: str

    @property
    def digest(self) -> str:
        """Names the rows, as `digest` does from their keys."""
        places = [self.columns.index(name) for name in self.key]
        return digest(" ".join(_text(row[place]) for place in places) for row in self.rows)


class Section(Struct, frozen=True):
    """A part of a page. `body`: HTML. `beside`: stands beside the section before it."""

    title: str
    body: str
    caption: str = ""
    beside: bool = False


class Preset(Struct, frozen=True):
    """A button that shows rows: the name of a table, and what the rows have in common."""

    said: str
    table: str
    where: dict[str, Cell] = {}


class Page(Struct, frozen=True):
    """A report before it is written. `kicker`: the question it answers; `verdict`: the answer, in `tone`. `who`, `tiles`: HTML.
    `figures`: what `--json` prints. `warnings`: what speaks against it. `script`: a further script that the page needs."""

    title: str
    kicker: str
    verdict: str
    tone: Tone
    who: str
    tiles: str
    sections: Sequence[Section]
    tables: Sequence[Rows]
    presets: Sequence[Preset]
    figures: Any
    warnings: Sequence[str] = ()
    script: str = ""


def render(page: Page) -> str:
    """The page, complete."""
    data = {
        "figures": page.figures,
        "presets": page.presets,
        "tables": [
            {
                "name": one.name,
                "said": one.said,
                "source": one.source,
                "key": one.key,
                "digest": one.digest,
                "columns": one.columns,
                "rows": one.rows,
            }
            for one in page.tables
        ],
    }
    return Template(_file("page.html")).substitute(
        title=escape(page.title),
        kicker=escape(page.kicker),
        tone=page.tone,
        verdict=escape(page.verdict),
        who=page.who,
        warnings="".join(f'<p class="warning">{escape(one)}</p>' for one in page.warnings),
        tiles=page.tiles,
        sections="".join(_sections(page.sections)),
        style=_file("page.css"),
        script=_file("page.js") + page.script,
        # No text of a row may end the block it stands in.
        data=msgspec.json.encode(data).decode().replace("<", "\\u003c"),
    )


def _file(name: str) -> str:
    return files("turnout.pages").joinpath(name).read_text("utf-8")


def _sections(sections: Sequence[Section]) -> Iterable[str]:
    for place, one in enumerate(sections):
        followed = place + 1 < len(sections) and sections[place + 1].beside
        if followed and not one.beside:
            yield '<div class="pair">'
        caption = f"<figcaption>{one.caption}</figcaption>" if one.caption else ""
        yield f"<figure><h2>{escape(one.title)}</h2>{one.body}{caption}</figure>"
        if one.beside and not followed:
            yield "</div>"


def link(said: str, table: str, **where: Cell) -> str:
    """A figure that shows the rows it was made from: those of a table that have these values (`POSITIVE`: any above 0)."""
    asked = msgspec.json.encode([table, where]).decode()
    return f'<a href="#rows" data-rows="{escape(asked)}">{escape(said)}</a>'


def tile(name: str, lines: Sequence[tuple[str, str]]) -> str:
    """A tile of the first screen. `lines`: a large figure and the small words under it, both HTML."""
    body = "".join(f"<p class=big>{figure}</p><p class=range>{said}</p>" for figure, said in lines)
    return f"<div class=tile><h3>{escape(name)}</h3>{body}</div>"


def table(heads: Iterable[str], rows: Iterable[Sequence[str]]) -> str:
    """A table; cells are HTML."""
    head = "".join(f"<th>{escape(one)}" for one in heads)
    body = "".join("<tr>" + "".join(f"<td>{cell}" for cell in row) for row in rows)
    return f"<div class=wide><table><tr>{head}{body}</table></div>"


def listed(lines: Iterable[str]) -> str:
    """A list of sentences."""
    return "<ul>" + "".join(f"<li>{escape(line)}" for line in lines) + "</ul>"


def defined(pairs: dict[str, str]) -> str:
    """Terms and what they mean."""
    return "<dl>" + "".join(f"<dt>{escape(name)}<dd>{escape(said)}" for name, said in pairs.items()) + "</dl>"


def absent(said: str) -> str:
    """Says why there is nothing to show."""
    return f"<p class=absent>{escape(said)}</p>"


def _text(value: Cell) -> str:
    if value is None:
        return ""
    return ("true" if value else "false") if isinstance(value, bool) else str(value)
