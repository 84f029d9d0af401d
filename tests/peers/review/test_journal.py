"""The journal: what it means depends on which whole lines it holds, on nothing else."""

from pathlib import Path

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from turnout.errors import ConfigError
from turnout.peers.review.journal import FORM, Entry
from turnout.upstream.buying.journal import Journal, counts, parse, read

ENTRIES = st.builds(
    Entry,
    key=st.sampled_from(["k1", "k2", "k3"]),
    kind=st.sampled_from(["answer", "score"]),
    question=st.just("q"),
    model=st.text(max_size=3),
    status=st.sampled_from(["ok", "parse_error", "invalid_response", "timeout", "rate_limit", "transport"]),
    text=st.text(max_size=8),
    score=st.none() | st.integers(1, 10),
    at=st.floats(0, 10),
)


@settings(max_examples=60)
@given(entries=st.lists(ENTRIES, max_size=8), data=st.data())
def test_order_and_repetition_do_not_matter(entries: list[Entry], data: st.DataObject) -> None:
    mixed = data.draw(st.permutations(entries + entries[: data.draw(st.integers(0, len(entries)))]))
    assert counts(mixed) == counts(entries)
    for key, best in counts(entries).items():
        assert best.finished == any(entry.finished for entry in entries if entry.key == key)


@settings(max_examples=60, deadline=None)
@given(entries=st.lists(ENTRIES, max_size=6), data=st.data())
def test_what_is_written_is_read_and_a_torn_line_dropped(
    entries: list[Entry], data: st.DataObject, tmp_path_factory: pytest.TempPathFactory
) -> None:
    file = tmp_path_factory.mktemp("journal") / "j"
    journal = Journal.open(file, FORM)
    for entry in entries:
        journal.add(entry)
    assert journal.entries == counts(entries)
    journal.close()
    assert read(FORM, file) == (journal.began, entries)
    whole = file.read_bytes()
    cut = data.draw(st.integers(0, len(whole)))
    file.write_bytes(whole[:cut])
    again = Journal.open(file, FORM)
    kept = max(whole[:cut].count(b"\n") - 1, 0)
    assert again.spent == entries[:kept]
    again.add(Entry("new", "answer", "q", "m"))
    again.close()
    assert read(FORM, file)[1] == [*entries[:kept], Entry("new", "answer", "q", "m")]


@pytest.mark.parametrize(
    "text", [b"not json\n", b'{"key": 1}\n', b'{"key":"k","kind":"vote","question":"q","model":"m"}\n']
)
def test_a_damaged_line_is_named(text: bytes, tmp_path: Path) -> None:
    file = tmp_path / "j"
    Journal.open(file, FORM).close()
    file.write_bytes(file.read_bytes() + text + b'{"key":"k","kind":"score","question":"q","model":"m"}\n')
    with pytest.raises(ConfigError, match=r"j:2: .*remove the line"):
        Journal.open(file, FORM)


def test_another_file_is_no_journal(tmp_path: Path) -> None:
    (tmp_path / "q.jsonl").write_text('{"id": 1, "question": "?"}\n')
    with pytest.raises(ConfigError, match="name another file"):
        Journal.open(tmp_path / "q.jsonl", FORM)
    assert (tmp_path / "q.jsonl").read_text().startswith('{"id"')


def test_one_process_writes_it(tmp_path: Path) -> None:
    journal = Journal.open(tmp_path / "j", FORM)
    with pytest.raises(ConfigError, match="another review is writing"):
        Journal.open(tmp_path / "j", FORM)
    journal.close()
    Journal.open(tmp_path / "j", FORM).close()


def test_a_journal_that_is_not_there_holds_nothing(tmp_path: Path) -> None:
    assert read(FORM, tmp_path / "j") == ("", [])
    assert not (tmp_path / "j").exists()
    assert parse(FORM, b"torn") == ("", [], 0)
