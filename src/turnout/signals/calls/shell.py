"""Shell command lines taken apart: simple commands, how they are joined, where their output goes."""

import re

from msgspec import Struct

PARSED_AT_MOST = 20_000
"""Characters of a command line that are looked at."""

_TOKEN = re.compile(
    r"""
      (?P<space>[ \t]+|\\\n)
    | (?P<newline>\n)
    | (?P<comment>\#[^\n]*)
    | (?P<redirect>\d*(?:<<<|<<-?|>>|>\||>&|<&|&>>|&>|<>|>|<))
    | (?P<operator>&&|\|\||;;|\|&|[;|&(){}](?=[\s;|&(){}]|$)|[;|&()])
    | (?P<word>(?:\\.|'[^']*+'|"(?:\\.|[^"\\])*+"|\$'(?:\\.|[^'\\])*+'|\$\((?:[^()]|\([^()]*+\))*+\)|`[^`]*+`
        |[^\s;|&()<>'"\\`$]|\$)++)
    | (?P<stray>.)
    """,
    re.VERBOSE | re.DOTALL,
)
_UNQUOTE = re.compile(r"""\\(.)|'([^']*)'|"((?:\\.|[^"\\])*)\"""", re.DOTALL)
_KEYWORDS = frozenset(
    {"if", "then", "elif", "else", "fi", "do", "done", "while", "until", "!", "time", "{", "}", "esac"}
)
_CLAUSES = frozenset({"for", "case", "select", "function"})
_NO_PROGRAM = re.compile(r"^-[\w-]|[*?|()\s]|^\[.*\]$|^\{")
"""What no program is called: options, and patterns."""
_NAME = re.compile(r"[A-Za-z_]\w*\+?=")


class Simple(Struct, frozen=True):
    """One simple command.

    `words`: program and arguments, quotes removed, leading assignments dropped. `joined`: the operator before it
    (`&&`, `||`, `;`, `|`, `&`, "" for the first). `writes`: files its output is redirected to (never `/dev/null`).
    `reads_heredoc`: its input is a here-document, `heredoc` its text.
    """

    words: tuple[str, ...]
    joined: str = ""
    writes: tuple[str, ...] = ()
    reads_heredoc: bool = False
    heredoc: str = ""


class _Open:
    """The simple command being read."""

    __slots__ = ("heredoc", "joined", "line", "words", "writes")

    def __init__(self, joined: str, line: bool = False) -> None:
        self.joined = joined
        self.line = line
        self.words: list[str] = []
        self.writes: list[str] = []
        self.heredoc = False

    def close(self, commands: list[Simple]) -> None:
        words = self.words
        while words and (words[0] in _KEYWORDS or _NAME.match(words[0])):
            words.pop(0)
        if words and words[0] in _CLAUSES:
            words = []
        if words and self.line and commands and _NO_PROGRAM.search(words[0]):
            # A terminal broke the line: what cannot be a program's name goes on with the arguments before it.
            before = commands[-1]
            writes = (*before.writes, *self.writes)
            commands[-1] = Simple((*before.words, *words), before.joined, writes, before.reads_heredoc or self.heredoc)
            return
        if words or self.writes:
            commands.append(Simple(tuple(words), self.joined, tuple(self.writes), self.heredoc))


def parse(line: str) -> tuple[Simple, ...]:
    """The simple commands of a shell command line, in order. Never raises: what is no shell reads as words."""
    line = line[:PARSED_AT_MOST]
    commands: list[Simple] = []
    now = _Open("")
    heredocs: list[str] = []
    redirect = ""
    position, end = 0, len(line)
    while position < end:
        token = _TOKEN.match(line, position)
        if token is None:
            break
        position = token.end()
        kind, text = token.lastgroup, token.group()
        if kind == "word" or kind == "stray":
            word = unquoted(text)
            if not redirect:
                now.words.append(word)
            elif redirect.startswith("<<") and redirect != "<<<":
                heredocs.append(word)
                now.heredoc = True
            elif ">" in redirect and not redirect.endswith("&") and not word.startswith(("/dev/", "&")):
                now.writes.append(word)
            redirect = ""
        elif kind == "redirect":
            redirect = text.lstrip("0123456789")
        elif kind == "newline" or kind == "operator":
            now.close(commands)
            joined = ";" if kind == "newline" or text in ";;(){}" else "|" if text == "|&" else text
            # `&&` at a line's end goes on in the next line.
            if not now.words and not now.writes and kind == "newline":
                joined = now.joined
            now, redirect = _Open(joined, kind == "newline"), ""
            if kind == "newline" and heredocs:
                position, texts = _heredocs(line, position, heredocs)
                _attach(commands, texts)
                heredocs = []
    now.close(commands)
    return tuple(commands)


def _heredocs(line: str, position: int, delimiters: list[str]) -> tuple[int, list[str]]:
    """Where the here-documents end that begin at `position`, and their texts."""
    texts = []
    for delimiter in delimiters:
        closing = re.compile(rf"^[ \t]*{re.escape(delimiter)}[ \t]*$", re.MULTILINE).search(line, position)
        texts.append(line[position : len(line) if closing is None else closing.start()])
        position = len(line) if closing is None else closing.end()
    return position, texts


def _attach(commands: list[Simple], texts: list[str]) -> None:
    """Give the here-documents just read to the commands that wait for them."""
    waiting = [i for i, c in enumerate(commands) if c.reads_heredoc and not c.heredoc]
    for i, text in zip(waiting, texts, strict=False):
        c = commands[i]
        commands[i] = Simple(c.words, c.joined, c.writes, True, text)


def unquoted(word: str) -> str:
    """A word with its quotes and backslashes taken away."""
    if "'" not in word and '"' not in word and "\\" not in word:
        return word
    return _UNQUOTE.sub(lambda m: m.group(1) or m.group(2) or m.group(3) or "", word)
