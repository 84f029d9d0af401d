"""What users say when it is still wrong, and what only sounds like it."""
# ruff: noqa: RUF001

import pytest
from tests.story import Story

from turnout.signals import observe, progress
from turnout.signals.people.feedback import complains

COMPLAINTS = [
    "It's still failing.", "That didn't work.", "Still getting the same error: KeyError", "same error", "No, still not right.",
    "nope, tests still fail", "The error persists after your change", "Why is it still failing?", "That doesn\u2019t work",
    "now it fails again", "I am still seeing the issue", "you didn't fix it", "you broke the build", "Not fixed.",
    "Thanks, but the problem is back", "I ran it. Same exception as before.", "that is not what I asked",
    "geht immer noch nicht", "Der gleiche Fehler", "Funktioniert leider nicht", "ça ne marche toujours pas", "même erreur",
    "sigue sin funcionar", "el mismo error", "ainda não funciona", "ancora non funziona", "werkt nog steeds niet",
    "fungerar fortfarande inte", "nadal nie działa", "всё ещё не работает", "та же ошибка", "hala çalışmıyor", "vẫn lỗi",
    "masih error", "还是报错", "没有解决", "まだ動きません",
    "同じエラーです", "여전히 오류가 나요", "لا يزال هناك خطأ", "अभी भी त्रुटि है",
]  # fmt: skip
OTHERS = [
    "Great, it works now.", "Fix the failing test in a.py", "Is it still failing?", "If it still fails, tell me.",
    "Now add a test", "Make sure it still works when the file is missing", "Do the tests still pass?",
    "The tests no longer fail, thanks", "Rename foo to bar", "Please keep it the same", "It still needs documentation",
    "when it still doesn't work, stop", "```\nstill failing\n``` what does this log mean", "Danke, funktioniert",
    "还有一个问题：如何部署", "Use the same approach for the other module", "I still want the old behaviour as an option",
    "Explain why retries are not the same as errors", "", "Weiter so", "Merci, ça marche", "ok", "still, I like it",
]  # fmt: skip


@pytest.mark.parametrize("said", COMPLAINTS)
def test_complaints(said: str) -> None:
    assert complains(said)


@pytest.mark.parametrize("said", OTHERS)
def test_other_things_users_say(said: str) -> None:
    assert not complains(said)


def test_only_the_first_part_of_a_long_text_is_looked_at() -> None:
    assert not complains("Here is the plan. " * 200 + "It is still failing.")


def test_a_complaint_counts_after_work_was_done_and_fades() -> None:
    assert not observe(Story("It is still failing.").conversation).complaint
    story = Story().call("Edit", {"file_path": "a"}, "The file a has been updated.").say("That didn't work.")
    signals = observe(story.conversation)
    found = progress(signals, 3)
    assert (signals.complaint, found.complaint, found.evidence["complaint"][0].message) == (True, 1.0, 3)
    levels = []
    for i in range(10):
        story.call("Read", {"file_path": f"{i}"}, str(i))
        levels.append(progress(observe(story.conversation), 3).complaint)
    assert levels == sorted(levels, reverse=True)
    assert levels[-1] == 0.0


def test_green_tests_answer_a_complaint_and_other_words_replace_it() -> None:
    story = Story().bash("pytest", "1 failed in 0.1s", 1).say("still broken")
    assert progress(observe(story.conversation), 3).complaint == 1.0
    answered = story.bash("pytest", "4 passed in 0.1s", 0)
    assert progress(observe(answered.conversation), 3).complaint == 0.0
    later = Story().bash("ls", "a", 0).say("still broken").bash("ls", "b", 0).say("Thanks. Now rename it.")
    assert progress(observe(later.conversation), 3).complaint == 0.0


@pytest.mark.parametrize(
    "text", ["<system-reminder>It is still failing.</system-reminder>", "<command-name>still failing</command-name>"]
)
def test_harnesses_do_not_complain(text: str) -> None:
    assert not observe(Story().bash("ls", "a", 0).say(text).conversation).complaint


def test_a_tool_that_talks_of_failures_is_no_complaint() -> None:
    assert not observe(Story().call("Task", {"prompt": "x"}, "It is still failing.").conversation).complaint
