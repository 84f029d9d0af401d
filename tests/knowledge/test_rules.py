"""The extractor that needs no model."""

from tests.knowledge.corpora import DIRECTOR, FILM

from turnout.knowledge.passage import Passage
from turnout.knowledge.rules import statements
from turnout.knowledge.sentences import sentences
from turnout.knowledge.statement import Document, Statement, key_of


def names(statement: Statement) -> set[str]:
    return {mention.name for mention in statement.mentions}


def of(text: str, title: str = "") -> list[Statement]:
    return statements(Document(Passage("p", title, text)))


def test_a_sentence_is_a_fact_about_its_title_names_and_dates() -> None:
    first, second = statements(FILM)
    assert first.text == "Lanterns over Harrowmere is a 1961 drama film directed by Odile Vantorre."
    assert names(first) >= {"Lanterns over Harrowmere", "Odile Vantorre", "1961"}
    assert second.text == "Lanterns over Harrowmere: It follows three ferry pilots."
    assert names(second) == {"Lanterns over Harrowmere"}


def test_dates_are_entities_whole_and_by_year() -> None:
    assert names(statements(DIRECTOR)[0]) >= {"3 May 1919", "1919", "12 August 1988", "1988"}


def test_numbers_are_entities_unless_they_are_a_digit_or_part_of_a_date() -> None:
    found = names(of("In 1961 the town had 12,400 people, 3 mills and 2.5 million herrings.")[0])
    assert found == {"1961", "12,400", "2.5 million"}


def test_links_are_entities_and_read_as_text() -> None:
    (fact,) = of("She met [[Tesk (river)|the Tesk]] and [the mill](https://example.org/mill).")
    assert fact.text == "She met the Tesk and the mill."
    assert names(fact) >= {"Tesk (river)", "the mill"}


def test_a_title_in_brackets_is_an_entity_without_them_too() -> None:
    (fact,) = of("Mercury is small.", "Mercury (planet)")
    assert names(fact) == {"Mercury (planet)", "Mercury"}
    assert fact.text == "Mercury is small."


def test_given_triples_are_facts() -> None:
    document = Document(Passage("p", "Odile Vantorre", "Text."), (("Odile Vantorre", "place of birth", "Port Saltry"),))
    assert statements(document)[0].text == "Odile Vantorre place of birth Port Saltry"
    assert names(statements(document)[0]) == {"Odile Vantorre", "Port Saltry"}


def test_words_that_only_begin_a_sentence_name_nothing() -> None:
    assert names(of("However, they left. The river rose.")[0]) == set()


def test_abbreviations_and_initials_end_no_sentence() -> None:
    text = 'Dr. J. R. Moss of St. Ives, c. 1800, wrote "Tides." It sold 4.5 copies a day, i.e. few. He died.'
    assert sentences(text) == [
        'Dr. J. R. Moss of St. Ives, c. 1800, wrote "Tides."',
        "It sold 4.5 copies a day, i.e. few.",
        "He died.",
    ]
    assert sentences(" \n ... \n\n -") == []


def test_spellings_of_one_entity_have_one_key() -> None:
    assert key_of(" Odile  VANTORRE.") == key_of("odile vantorre") != key_of("Odile")
