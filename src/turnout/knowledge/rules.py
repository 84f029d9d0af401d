"""The extractor that needs no model: a sentence is a fact; titles, links, capitalised spans, dates and numbers are entities.
Pure."""

import re
from collections.abc import Iterator

from turnout.knowledge.sentences import sentences
from turnout.knowledge.statement import Document, Kind, Mention, Statement, key_of

NAME = "rules-1"
"""Changes with whatever changes the statements of an unchanged document, so that builds know what to extract again."""

_MONTH = "January|February|March|April|May|June|July|August|September|October|November|December"
_DATE = re.compile(
    rf"\b(?:\d{{1,2}} (?:{_MONTH}) \d{{3,4}}|(?:{_MONTH}) \d{{1,2}}, \d{{3,4}}|(?:{_MONTH}) \d{{4}}|\d{{4}}-\d{{2}}-\d{{2}}|"
    r"(?:1[0-9]|20)\d\d)\b"
)
_NUMBER = re.compile(r"(?<![\w.,-])\d[\d,]*(?:\.\d+)?(?: (?:thousand|million|billion|trillion))?(?![\w-])")
_WIKI_LINK = re.compile(r"\[\[([^\[\]|]+)(?:\|([^\[\]]+))?\]\]")
_MARKDOWN_LINK = re.compile(r"\[([^\[\]]+)\]\((?:[^()\s]+)\)")
_CAPITAL = r"(?:[A-ZÀ-ÖØ-ÞĀ-Ž][\w'\u2019&.-]*\w|[A-ZÀ-ÖØ-Þ]\.?)"
_SPAN = re.compile(
    rf"(?<![\w'\u2019]){_CAPITAL}(?:(?: (?:of|the|de|la|le|du|del|della|di|da|dos|von|van|der|den|and|&|for|in|on|to|at)){{1,2}}"
    rf"(?= {_CAPITAL})| {_CAPITAL}| (?:[IVX]+|\d{{1,4}})(?!\w))*"
)
_JOINERS = {" and ", " & "}
_BRACKETED = re.compile(r"\s*\([^()]*\)$")
_NO_NAMES = frozenset(
    word
    for line in (
        "a an the this that these those he she it they we you i his her its their our my your who what when where why how which",
        "there here in on at by for from with without to of and or but nor so yet as if then than after before during while",
        "since until although though because however also both each every all some many most several few one two three four five",
        "six seven eight nine ten first second third later earlier other another such no is was are were be been being has",
        "have had do does did can could will would may might shall should must now once today despite among between under over",
        "through following according additionally furthermore moreover meanwhile thus therefore instead even still like unlike",
        "january february march april june july august september october november december",
    )
    for word in line.split()
)
"""Words that begin sentences with a capital and name nothing by themselves."""


def statements(document: Document) -> list[Statement]:
    """The facts of a document: its given triples, then its sentences; of equal ones only the first.

    A sentence that does not name what its passage is about is led by the title, so that it can be read by itself.
    """
    found = {statement.text: statement for statement in given(document)}
    title = " ".join(document.passage.title.split())
    about = list(_titles(title))
    for sentence in sentences(document.passage.text):
        plain, links = _unlinked(sentence)
        text = plain if not title or _names(plain, about) else f"{title}: {plain}"
        found.setdefault(text, Statement(text, _distinct([*about, *links, *_dated(plain), *_spans(plain)])))
    return list(found.values())


def given(document: Document) -> list[Statement]:
    """The facts that come with a document."""
    return [
        Statement(f"{subject} {relation} {object_}", _distinct(_given(subject, object_)))
        for subject, relation, object_ in dict.fromkeys(document.triples)
    ]


def _given(subject: str, object_: str) -> Iterator[Mention]:
    yield Mention(subject, "given")
    yield Mention(object_, "given")


def _titles(title: str) -> Iterator[Mention]:
    """The title, and what it is called elsewhere: without what stands in brackets behind it."""
    if title:
        yield Mention(title, "title")
    if (bare := _BRACKETED.sub("", title)) and bare != title:
        yield Mention(bare, "title")


def _names(sentence: str, about: list[Mention]) -> bool:
    folded = sentence.casefold()
    return any(mention.name.casefold() in folded for mention in about)


def _unlinked(sentence: str) -> tuple[str, list[Mention]]:
    """The sentence as it is read, and the targets of its wiki links and the texts of its Markdown links."""
    links = [Mention(link[1].strip(), "link") for link in _WIKI_LINK.finditer(sentence)]
    links += [Mention(link[1].strip(), "link") for link in _MARKDOWN_LINK.finditer(sentence)]
    plain = _WIKI_LINK.sub(lambda link: (link[2] or link[1]).strip(), sentence)
    return _MARKDOWN_LINK.sub(lambda link: link[1].strip(), plain), links


def _dated(sentence: str) -> Iterator[Mention]:
    for match, kind in _figures(sentence):
        yield Mention(match, kind)


def _figures(sentence: str) -> Iterator[tuple[str, Kind]]:
    taken: list[tuple[int, int]] = []
    for date in _DATE.finditer(sentence):
        taken.append(date.span())
        yield date[0], "date"
        if (year := date[0][-4:]) != date[0] and year.isdigit():
            yield year, "date"
    for number in _NUMBER.finditer(sentence):
        inside = any(start <= number.start() < end for start, end in taken)
        if not inside and len(number[0]) > 1:  # one digit names nothing
            yield number[0], "number"


def _spans(sentence: str) -> Iterator[Mention]:
    """Capitalised spans; one that joins two names ("A and B") is three entities: itself and its parts."""
    for match in _SPAN.finditer(sentence):
        span = _trimmed(match[0])
        if not span:
            continue
        yield Mention(span, "name")
        for joiner in _JOINERS:
            if joiner in span:
                yield from (Mention(part, "name") for part in map(_trimmed, span.split(joiner)) if part)


def _trimmed(span: str) -> str:
    """A span without the words at its beginning that only begin a sentence, and without a possessive."""
    words = span.split(" ")
    while words and key_of(words[0]) in _NO_NAMES:
        words.pop(0)
    joined = re.sub(r"['\u2019]s?$", "", " ".join(words)).rstrip(".,;:")
    return joined if len(joined) > 1 else ""


def _distinct(mentions: Iterator[Mention] | list[Mention]) -> tuple[Mention, ...]:
    found: dict[str, Mention] = {}
    for mention in mentions:
        if key := key_of(mention.name):
            found.setdefault(key, mention)
    return tuple(found.values())
