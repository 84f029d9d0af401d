"""A report as a browser finds it: what it would load, its links, and its block of data."""

import hashlib
import json
import re
from html.parser import HTMLParser
from typing import Any

LOADING = ("src", "href", "xlink:href", "data", "action", "srcset", "poster", "background")
REACHING = re.compile(r"url\((?!#)|@import|\bfetch\(|XMLHttpRequest|WebSocket|EventSource|sendBeacon|\bimport\(")


class Opened(HTMLParser):
    """A page, parsed. `asked`: the table and the values of every link to rows."""

    def __init__(self, text: str) -> None:
        super().__init__()
        self.text = text
        self.loads: list[str] = []
        self.asked: list[tuple[str, dict[str, Any]]] = []
        self._block = ""
        self._in_data = False
        self.feed(text)
        self.data: dict[str, Any] = json.loads(self._block)

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        given = dict(attrs)
        self.loads += [f"{tag} {given[name]}" for name in LOADING if given.get(name)]
        if "data-rows" in given:
            self.asked.append(tuple(json.loads(given["data-rows"] or "")))
        self._in_data = given.get("id") == "data"

    def handle_data(self, data: str) -> None:
        if self._in_data:
            self._block += data

    def handle_endtag(self, tag: str) -> None:
        self._in_data = False

    def reaches_out(self) -> list[str]:
        """What the page would load from elsewhere, by its elements, its style or its scripts."""
        found = [one for one in self.loads if not re.fullmatch(r"\S+ #\S+", one)]
        found += REACHING.findall(self.text.replace(self._block, ""))
        return found if "default-src 'none'" in self.text else [*found, "no policy forbids it"]

    def table(self, name: str) -> dict[str, Any]:
        """A table of the block of data, whose digest is that of its keys."""
        found: dict[str, Any] = next(one for one in self.data["tables"] if one["name"] == name)
        assert found["digest"] == digest(rows_of(found), found["key"])
        return found

    def rows(self, name: str) -> list[dict[str, Any]]:
        """The rows of a table."""
        return rows_of(self.table(name))

    def shown_by(self, name: str, **where: Any) -> list[dict[str, Any]]:
        """The rows that a link to them shows; there has to be such a link."""
        assert (name, where) in self.asked
        return [row for row in self.rows(name) if all(_has(row[key], value) for key, value in where.items())]


def _has(value: Any, wanted: Any) -> bool:
    return bool(value > 0 if wanted == "> 0" else value == wanted)


def rows_of(table: dict[str, Any]) -> list[dict[str, Any]]:
    return [dict(zip(table["columns"], row, strict=True)) for row in table["rows"]]


def digest(rows: list[dict[str, Any]], key: list[str]) -> str:
    """The digest of rows, from the definition."""
    lines = [" ".join("" if row[name] is None else str(row[name]) for name in key) for row in rows]
    return "sha256:" + hashlib.sha256("".join(line + "\n" for line in lines).encode()).hexdigest()
