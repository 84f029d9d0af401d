"""Chat templates: what stands between turns is the template's, and the ids of a trajectory spell what it would."""

import pytest

pytest.importorskip("transformers", reason="needs the extra `train`")

TEMPLATE = (
    "{% for m in messages %}<|{{ m.role }}|>{{ m.content }}<|end|>{% endfor %}"
    "{% if add_generation_prompt %}<|assistant|>{% endif %}"
)


def test_prompt_and_observations_are_framed_as_the_template_would() -> None:
    from turnout.train.spelling import ChatSpelling, PlainSpelling, spelling_of
    from turnout.train.tiny import word_tokenizer

    tokenizer = word_tokenizer(["a", "b", "<think>", "</think>"])
    assert isinstance(spelling_of(tokenizer), PlainSpelling)
    texts: list[str] = []

    class Spy:
        chat_template = TEMPLATE

        def apply_chat_template(self, messages: object, **more: object) -> str:
            tokenizer.chat_template = TEMPLATE
            return str(tokenizer.apply_chat_template(messages, **more))

        def __call__(self, text: str, **more: object) -> dict[str, list[int]]:
            texts.append(text)
            return {"input_ids": [1]}

    spelling = spelling_of(Spy())
    assert isinstance(spelling, ChatSpelling)
    spelling.prompt("who?")
    spelling.shown("found")
    assert texts == ["<|user|>who?<|end|><|assistant|>", "<|end|><|user|>found<|end|><|assistant|>"]
    whole = [
        {"role": "user", "content": "who?"},
        {"role": "assistant", "content": "x"},
        {"role": "user", "content": "found"},
    ]
    assert texts[0] + "x" + texts[1] == tokenizer.apply_chat_template(whole, tokenize=False, add_generation_prompt=True)
