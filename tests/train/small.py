"""A training run of seconds: a model of a few thousand weights on eight questions."""

import sys
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import msgspec

from turnout.knowledge.passage import Passage
from turnout.routing.core import Failure
from turnout.routing.retrieval.agent import Step, Trajectory
from turnout.routing.retrieval.facts import Fact, Found, Lookup
from turnout.routing.retrieval.protocol import Role, read_move
from turnout.train.credit import Shaping, Thresholds
from turnout.train.data.question import Question
from turnout.train.roles import token_roles
from turnout.train.rollout import Limits, Rollout
from turnout.train.settings import Engine, Optimisation, Settings, Teacher

TAGS = [f"<{end}{tag}>" for tag in ("think", "query", "answer", "knowledge") for end in ("", "/")]
LETTERS = list("abcdefgh")
WORDS = [*TAGS, "\n", *LETTERS, "who", "gold"]
FACTS = (Fact("f1", "a b c"), Fact("f2", "d e"))
QUESTIONS = [
    Question(f"q{i}", "small", f"who {letter}", (letter,), (Passage("p", "", f"a b {letter}"),))
    for i, letter in enumerate(LETTERS)
]


def asked(question: Question) -> str:
    return question.question


def taught(question: Question) -> str:
    return f"gold {question.gold_passages[0].text} {question.question}"


def searched(lookups: Sequence[Lookup]) -> list[Found | Failure]:
    return [Found(FACTS) for _ in lookups]


def model_at(folder: Path) -> str:
    """The path of a small model, made once."""
    from turnout.train.tiny import Size, save_model, word_tokenizer

    if not (folder / "model").exists():
        save_model(folder / "model", word_tokenizer(WORDS), Size(width=32, layers=2, heads=2), seed=3)
    return str(folder / "model")


def settings(folder: Path, **changed: Any) -> Settings:
    base = Settings(
        model=model_at(folder),
        train="",
        knowledge="",
        out=folder / "out",
        limits=Limits(turns=3, turn_tokens=8, tokens=40, facts=2, style="lines"),
        thresholds=Thresholds(path=0.3),
        shaping=Shaping(format="every_step"),
        teacher=Teacher(top_k=8, warmup_steps=0),
        optimisation=Optimisation(
            learning_rate=1e-3, questions=4, group=4, micro_batch=4, steps=4, seed=5, max_grad_norm=1e9
        ),
        engine=Engine(device="cpu"),
        log_to=("jsonl",),
    )
    return msgspec.structs.replace(base, **changed)


SAID = (
    ("<think> a b </think> <query> c </query>", "<think> d </think> <answer> {} </answer>"),
    ("<think> c </think> <answer> {} </answer>",),
    ("<think> b </think> <query> d e </query>", "<think> f g </think> <answer> h </answer>"),
    ("<query> a </query>", "b c d"),
)
"""What the four trajectories of a group say when rollouts are injected; {} stands for the right answer."""


def injected(question: Question, number: int, tokenizer: Any, prompt: list[int]) -> Rollout:
    """The trajectory `number` of a group, the same whoever asks."""
    completion: list[int] = []
    sampled: list[int] = []
    roles: list[Role] = []
    steps = []
    for i, text in enumerate(SAID[number]):
        said = text.format(question.answers[0])
        if i:
            shown = tokenizer("<knowledge>\na b c\n</knowledge>", add_special_tokens=False)["input_ids"]
            completion, sampled = completion + shown, sampled + [0] * len(shown)
            roles += [Role.OBSERVATION] * len(shown)
        ids = tokenizer(said, add_special_tokens=False)["input_ids"]
        completion, sampled = completion + ids, sampled + [1] * len(ids)
        roles += token_roles(ids, tokenizer.decode)
        move = read_move(said)
        steps.append(Step(said, move, FACTS[:1] if move.action == "query" else None))
    answered = steps[-1].move.action == "answer"
    done = Trajectory(question.question, tuple(steps), "answered" if answered else "turns")
    return Rollout(prompt, completion, sampled, roles, [], done)


def one_step(folder: Path, out: Path, micro_batch: int) -> None:
    """Take one step of plain descent on injected rollouts and save the weights: their change is the gradient."""
    import torch

    from turnout.train.run import prepared

    chosen = settings(folder)
    changed = msgspec.structs.replace(chosen.optimisation, micro_batch=micro_batch, steps=2, learning_rate=0.1)
    chosen = msgspec.structs.replace(chosen, optimisation=changed, log_to=(), out=out.parent / f"{out.stem}-run")
    trainer = prepared(chosen, QUESTIONS, searched, asked, taught)
    trainer.roll_out = lambda: injected_batch(trainer)  # type: ignore[method-assign]
    trainer.optimizer = torch.optim.SGD(trainer.model.parameters(), lr=0.1)
    trainer.train()
    if trainer.accelerator.is_main_process:
        model = trainer.accelerator.unwrap_model(trainer.model)
        torch.save({name: value.detach().clone() for name, value in model.state_dict().items()}, out)


def injected_batch(trainer: Any) -> list[Rollout]:
    """The rows of this process: whole groups, in order."""
    seen: dict[str, int] = {}
    rows = []
    for question in trainer._asked:
        number = seen.get(question.id, 0)
        seen[question.id] = number + 1
        rows.append(injected(question, number, trainer._tokenizer, trainer._spelling.prompt(asked(question))))
    return rows


if __name__ == "__main__":
    one_step(Path(sys.argv[1]), Path(sys.argv[2]), int(sys.argv[3]))
