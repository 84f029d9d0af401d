"""Which facts an answer rests on."""

import pytest

from turnout.routing.retrieval.agent import Step, Trajectory
from turnout.routing.retrieval.evidence import evidence
from turnout.routing.retrieval.facts import Fact
from turnout.routing.retrieval.protocol import read_move


def fact(name: str, text: str, *entities: str) -> Fact:
    return Fact(name, text, sources=(f"p-{name}",), entities=entities)


JOURNAL = fact("j", "The Journal of Psychotherapy Integration is published by the American Psychological Association.")
HALL = fact("h", "G. Stanley Hall was the first president of the American Psychological Association.")
PHYSICS = fact("x", "The Journal of Mathematical Physics is published by the American Institute of Physics.")
FREUD = fact("f", "Freud was never its president.")
QUESTION = "Who was the first president of the association which published Journal of Psychotherapy Integration?"


def trajectory(question: str, answer: str, *lookups: tuple[str, tuple[Fact, ...]]) -> Trajectory:
    steps = [
        Step(said, read_move(said), facts)
        for query, facts in lookups
        for said in [f"<think>t</think><query>{query}</query>"]
    ]
    said = f"<think>t</think><answer>{answer}</answer>"
    return Trajectory(question, (*steps, Step(said, read_move(said))), "answered")


def cited(*args: object) -> tuple[str, list[str]]:
    found = evidence(trajectory(*args))  # type: ignore[arg-type]
    return found.support, [one.id for one in found.facts]


def test_the_fact_that_names_the_answer_and_the_one_that_led_there() -> None:
    first = ("publisher of Journal of Psychotherapy Integration", (PHYSICS, JOURNAL))
    then = ("first president of the American Psychological Association", (FREUD, HALL, JOURNAL))
    assert cited(QUESTION, "G. Stanley Hall", first, then) == ("named", ["j", "h"])


@pytest.mark.parametrize("answer", ["g stanley hall", "The G. Stanley Hall", "Stanley  HALL"])
def test_case_articles_and_signs_make_no_difference(answer: str) -> None:
    assert cited(QUESTION, answer, ("first president", (FREUD, HALL))) == ("named", ["h"])


def test_words_are_whole() -> None:
    assert cited("How many?", "3", ("how many", (fact("a", "There were 13."), fact("b", "There were 3.")))) == (
        "named",
        ["b"],
    )


def test_a_fact_names_what_its_entities_are_called() -> None:
    born = fact("b", "He was born in 1844.", "G. Stanley Hall")
    assert cited("Who was born in 1844?", "Stanley Hall", ("born 1844", (FREUD, born))) == ("named", ["b"])


@pytest.mark.parametrize("answer", ["no", "Alpha"])
def test_a_choice_rests_on_what_was_found_about_each(answer: str) -> None:
    one, other = fact("a", "Alpha opened in 1950."), fact("b", "Beta opened in 1960.")
    looked = (("when did Alpha open", (one, FREUD)), ("when did Beta open", (other, FREUD)))
    assert cited("Did Alpha open after Beta?", answer, *looked) == ("steps", ["a", "b"])


def test_an_answer_from_memory_is_not_passed_off_as_found() -> None:
    assert cited(QUESTION, "Carl Rogers", ("first president", (HALL, FREUD))) == ("unsupported", ["h"])
    assert cited(QUESTION, "Carl Rogers") == ("unsearched", [])
    assert cited(QUESTION, "Carl Rogers", ("nothing there", ())) == ("unsearched", [])
