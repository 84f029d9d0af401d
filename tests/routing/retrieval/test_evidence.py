"""Which facts an answer rests on."""

import pytest

from turnout.routing.retrieval.agent import Step, Trajectory
from turnout.routing.retrieval.evidence import evidence
from turnout.routing.retrieval.facts import Fact
from turnout.routing.retrieval.protocol import read_move


def fact(name: str, text: str, *entities: str) -> Fact:
    return Fact(name, text, sources=(f"p-{name}",), entities=entities)


BUILT = fact("b", "Flying Scotsman is a steam locomotive that was built in Doncaster in 1923.")
DON = fact("d", "Doncaster lies on the River Don.")
MALLARD = fact("m", "Mallard is a steam locomotive that was built in 1938.")
CREWE = fact("c", "Crewe is a railway town.")
QUESTION = "Which river runs through the town where the locomotive Flying Scotsman was built?"


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
    first = ("Where was Flying Scotsman built?", (MALLARD, BUILT))
    then = ("the river of Doncaster", (CREWE, DON, BUILT))
    assert cited(QUESTION, "the River Don", first, then) == ("named", ["b", "d"])


@pytest.mark.parametrize("answer", ["river don", "The River, Don.", "RIVER  DON"])
def test_case_articles_and_signs_make_no_difference(answer: str) -> None:
    assert cited(QUESTION, answer, ("river", (CREWE, DON))) == ("named", ["d"])


def test_words_are_whole() -> None:
    assert cited("How many?", "3", ("how many", (fact("a", "There were 13."), fact("b", "There were 3.")))) == (
        "named",
        ["b"],
    )


def test_a_fact_names_what_its_entities_are_called() -> None:
    built = fact("b", "It was built in 1938.", "Mallard")
    assert cited("What was built in 1938?", "Mallard", ("built 1938", (CREWE, built))) == ("named", ["b"])


@pytest.mark.parametrize("answer", ["no", "Alpha"])
def test_a_choice_rests_on_what_was_found_about_each(answer: str) -> None:
    one, other = fact("a", "Alpha opened in 1950."), fact("b", "Beta opened in 1960.")
    looked = (("when did Alpha open", (one, CREWE)), ("when did Beta open", (other, CREWE)))
    assert cited("Did Alpha open after Beta?", answer, *looked) == ("steps", ["a", "b"])


def test_an_answer_from_memory_is_not_passed_off_as_found() -> None:
    assert cited(QUESTION, "the River Ouse", ("its river", (DON, CREWE))) == ("unsupported", ["d"])
    assert cited(QUESTION, "the River Ouse") == ("unsearched", [])
    assert cited(QUESTION, "the River Ouse", ("nothing there", ())) == ("unsearched", [])
