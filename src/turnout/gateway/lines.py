"""Where the keys of a TOML file stand: tomllib gives values but no lines, and an error without a line is half an error."""

from typing import TypeAlias

Path: TypeAlias = tuple[str | int, ...]
"""A TOML path: keys, and positions in arrays."""

_BARE_END = frozenset(",]}\n#")
_ESCAPES = {"b": "\b", "t": "\t", "n": "\n", "f": "\f", "r": "\r", '"': '"', "\\": "\\", "e": "\x1b"}


def line_index(text: str) -> dict[Path, int]:
    """The line (from 1) of every table header, key and array element of a TOML text that tomllib accepts."""
    scanner = _Scanner(text.replace("\r\n", "\n"))
    scanner.document()
    return scanner.lines


def dotted(path: Path) -> str:
    """A path as people write it: `routes.coder.targets[1]`."""
    out = ""
    for step in path:
        if isinstance(step, int):
            out += f"[{step}]"
        else:
            bare = step.replace("-", "").replace("_", "").isalnum() and step.isascii()
            out += ("." if out else "") + (step if bare else f'"{step}"')
    return out


class _Scanner:
    """Walks a valid text once; `lines` keeps the first line on which each path was seen."""

    def __init__(self, text: str) -> None:
        self.text = text
        self.at = 0
        self.line = 1
        self.lines: dict[Path, int] = {}
        self.arrays: dict[Path, int] = {}

    def document(self) -> None:
        table: Path = ()
        while self._skip(newlines=True):
            if self._peek() == "[":
                table = self._header()
            else:
                self._pair(table)

    def _header(self) -> Path:
        many = self.text.startswith("[[", self.at)
        self.at += 2 if many else 1
        keys = self._keys()
        self.at = self.text.index("]", self.at) + (2 if many else 1)
        table: Path = ()
        for position, key in enumerate(keys):
            table = (*table, key)
            self._record(table)
            last = position == len(keys) - 1
            if many and last:
                self.arrays[table] = self.arrays.get(table, -1) + 1
            if table in self.arrays:
                table = (*table, self.arrays[table])
                self._record(table)
        return table

    def _pair(self, table: Path) -> None:
        path = table
        for key in self._keys():
            path = (*path, key)
            self._record(path)
        self.at = self.text.index("=", self.at) + 1
        self._value(path)

    def _keys(self) -> list[str]:
        keys = []
        while True:
            self._skip()
            if self._peek() in "\"'":
                keys.append(self._string())
            else:
                start = self.at
                while self._peek().isalnum() or self._peek() in ("-", "_"):
                    self.at += 1
                keys.append(self.text[start : self.at])
            self._skip()
            if self._peek() != ".":
                return keys
            self.at += 1

    def _value(self, path: Path) -> None:
        self._skip()
        first = self._peek()
        if first in ('"', "'"):
            self._string()
        elif first == "[":
            self._array(path)
        elif first == "{":
            self._inline_table(path)
        else:
            while self.at < len(self.text) and self.text[self.at] not in _BARE_END:
                self.at += 1

    def _array(self, path: Path) -> None:
        self.at += 1
        position = 0
        while self._skip(newlines=True) and self._peek() != "]":
            if self._peek() == ",":
                self.at += 1
                continue
            self._record((*path, position))
            self._value((*path, position))
            position += 1
        self.at += 1

    def _inline_table(self, path: Path) -> None:
        self.at += 1
        while self._skip(newlines=True) and self._peek() != "}":
            if self._peek() == ",":
                self.at += 1
                continue
            self._pair(path)
        self.at += 1

    def _string(self) -> str:
        quote = self.text[self.at]
        delimiter = quote * 3 if self.text.startswith(quote * 3, self.at) else quote
        self.at += len(delimiter)
        out = []
        while not self.text.startswith(delimiter, self.at):
            char = self.text[self.at]
            if char == "\\" and quote == '"':
                self.at += 1
                char = self._escape()
            elif char == "\n":
                self.line += 1
            out.append(char)
            self.at += 1
        self.at += len(delimiter)
        while len(delimiter) == 3 and self._peek() == quote:  # a multi-line string may end in its own quotes
            self.at += 1
        return "".join(out)

    def _escape(self) -> str:
        char = self.text[self.at]
        if char == "\n":
            self.line += 1
        digits = {"u": 4, "U": 8, "x": 2}.get(char)
        if digits is None:
            return _ESCAPES.get(char, char)
        code = int(self.text[self.at + 1 : self.at + 1 + digits], 16)
        self.at += digits
        return chr(code)

    def _record(self, path: Path) -> None:
        self.lines.setdefault(path, self.line)

    def _peek(self) -> str:
        return self.text[self.at] if self.at < len(self.text) else "\0"

    def _skip(self, newlines: bool = False) -> bool:
        """Pass over blanks and comments (and line ends, where they mean nothing); False at the end of the text."""
        while self.at < len(self.text):
            char = self.text[self.at]
            if char == "#" and newlines:
                end = self.text.find("\n", self.at)
                self.at = len(self.text) if end < 0 else end
            elif char == "\n" and newlines:
                self.line += 1
                self.at += 1
            elif char in " \t":
                self.at += 1
            else:
                return True
        return False
