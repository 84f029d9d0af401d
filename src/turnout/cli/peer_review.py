"""`turnout peers review`: models answer questions and score one another's answers."""

from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Literal

import typer

from turnout.cli import buying, exits, options, output, peer_reviewed, progress

if TYPE_CHECKING:
    from turnout.gateway.config import Config
    from turnout.peers.review.answers import Answers
    from turnout.peers.review.plan import Member, Plan, Sampling
    from turnout.peers.review.questions import Question
    from turnout.peers.review.running import Concurrency
    from turnout.peers.review.scores import Scores
    from turnout.pricing import Prices
    from turnout.upstream.buying.budget import Limits

LEAST_MODELS = 3


def review(
    questions: Annotated[
        Path, typer.Argument(metavar="QUESTIONS", help="JSONL or JSONL.gz; a line: id, question or messages, type.")
    ],
    config: Annotated[
        Path, typer.Option(metavar="FILE", help="Configuration file with the targets.")
    ] = options.DEFAULT_FILE,
    models: Annotated[
        str, typer.Option(metavar="A,B,C", help="Targets that take part; all of the configuration if absent.")
    ] = "",
    answers: Annotated[
        Path | None, typer.Option(metavar="FILE", help="Recorded answers (id, model, answer); only scores are bought.")
    ] = None,
    journal: Annotated[
        Path, typer.Option(metavar="FILE", help="Keeps every call that is over; a review that ended goes on from it.")
    ] = Path("review.journal.jsonl"),
    out: Annotated[Path, typer.Option(metavar="FILE", help="Where the scores go.")] = Path("scores.json"),
    plan: Annotated[
        bool, typer.Option("--plan", help="Say what it would do and cost, and stop: nothing is called.")
    ] = False,
    judges: Annotated[int, typer.Option(min=0, help="Judges of each answer, dealt evenly; 0 = all others.")] = 0,
    self_scores: Annotated[
        bool, typer.Option("--self-scores", help="Also let models score themselves; told apart, in no mean.")
    ] = False,
    temperature: Annotated[
        float, typer.Option(min=-1, max=2, help="For answers and scores; negative: each model's own.")
    ] = 0.0,
    answer_tokens: Annotated[int, typer.Option(min=1, help="The most tokens of an answer.")] = 2048,
    score_tokens: Annotated[
        int, typer.Option(min=16, help="The most tokens of a judgement, reasoning included.")
    ] = 1024,
    structured: Annotated[
        Literal["json_schema", "json_object", "text"], typer.Option(help="How scores are asked for.")
    ] = "json_schema",
    within_s: Annotated[float, typer.Option(min=1, max=600, help="Seconds after which a call has failed.")] = 120.0,
    revision: Annotated[
        list[str] | None,
        typer.Option(metavar="TARGET=TEXT", help="Your word for what a target serves; a new one asks it anew."),
    ] = None,
    max_calls: Annotated[int | None, typer.Option(min=0, help="Requests, those in the journal included.")] = None,
    max_tokens: Annotated[int | None, typer.Option(min=0, help="Tokens in and out, the journal's included.")] = None,
    max_usd: Annotated[float | None, typer.Option(min=0, help="Money, the journal's included.")] = None,
    max_seconds: Annotated[float | None, typer.Option(min=0, help="Time of this run; no call begins after it.")] = None,
    at_once: Annotated[int, typer.Option(min=1, max=1024, help="Calls in flight.")] = 16,
    per_upstream: Annotated[int, typer.Option(min=1, max=1024, help="Calls in flight at one upstream.")] = 8,
    sequential: Annotated[bool, typer.Option("--sequential", help="One call after the other.")] = False,
    force: Annotated[bool, typer.Option("--force", help="Review types with fewer than 25 questions too.")] = False,
    as_json: options.AsJson = False,
) -> None:
    """Let models answer questions and score one another's answers, blind, from 1 to 10.

    Every call is written to the journal before it counts. A review that was killed goes on with the same command; what it has
    bought is not bought again, and the scores are those of a review that was not killed.

    turnout peers review questions.jsonl --models small,large,other --max-usd 5 --plan
    """
    from turnout.peers.review.plan import Sampling
    from turnout.peers.review.questions import read
    from turnout.peers.review.running import Concurrency
    from turnout.pricing import Prices
    from turnout.upstream.buying.budget import Limits

    asked, prices = read(questions), Prices.load()
    _enough(asked, force)
    loaded = _configuration(config)
    members = _members(loaded, models, revision or [])
    sampling = Sampling(None if temperature < 0 else temperature, answer_tokens, score_tokens, structured, within_s)
    made = _plan(loaded, members, asked, sampling, answers, judges, self_scores, prices)
    limits = Limits(max_calls, max_tokens, max_usd, max_seconds)
    if plan:
        _say_plan(made, journal, limits, as_json)
        return
    _priced(made, limits)
    concurrency = Concurrency(1, 1) if sequential else Concurrency(at_once, per_upstream)
    found = _reviewed(made, loaded, prices, journal, limits, concurrency)
    _write(out, found)
    if as_json:
        output.emit(found)
    else:
        peer_reviewed.print_scores(found)
    output.say(f"wrote {out}; every call is in {journal}")
    if found.left_out:
        name, why = next(iter(found.left_out.items()))
        step = (
            "the same command asks again for what is missing; a server that takes no structured output or no temperature "
            "wants --structured text, --temperature -1"
        )
        raise exits.CommandError(f"{', '.join(found.left_out)} gave no replies ({name}: {why})", exits.UPSTREAM, step)
    if not found.complete:
        output.say(peer_reviewed.incomplete(found))
        raise typer.Exit(exits.FOUND)


def _enough(questions: "tuple[Question, ...]", force: bool) -> None:
    from turnout.peers.review.questions import LEAST_PER_TYPE, few

    if not force and (short := few(questions)):
        listed = ", ".join(f"{kind} ({n})" for kind, n in short.items())
        raise exits.CommandError(
            f"fewer than {LEAST_PER_TYPE} questions of type {listed}: another sample would give another graph",
            step="add questions, leave out their `type`, or --force",
        )


def _configuration(file: Path) -> "Config":
    """The configuration, whose secrets are looked at only for the targets that take part."""
    from turnout.gateway.config import load

    return load(file, None)


def _members(config: "Config", models: str, stated: list[str]) -> "list[Member]":
    from turnout.gateway.tables import nearest
    from turnout.peers.review.plan import Member
    from turnout.upstream.buying.identity import revision as digest

    names = [name.strip() for name in models.split(",") if name.strip()] or list(config.targets)
    for name in names:
        if name not in config.targets:
            step = nearest(name, list(config.targets), "targets")
            raise exits.CommandError(f"{config.file} has no target {name!r}", step=step)
    if len(names) < LEAST_MODELS or len(set(names)) < len(names):
        step = "with --models A,B,C"
        raise exits.CommandError(f"a review takes {LEAST_MODELS} different models or more, not {names}", step=step)
    words = dict(text.partition("=")[::2] for text in stated)
    if unknown := [name for name in words if name not in names]:
        raise exits.CommandError(f"--revision {unknown[0]}: no such target takes part", step="expected TARGET=TEXT")
    targets = [(name, config.targets[name]) for name in config.targets if name in names]
    targets.sort(key=lambda one: names.index(one[0]))
    return [
        Member(
            name, target.model, target.upstream, digest(target, config.upstreams[target.upstream], words.get(name, ""))
        )
        for name, target in targets
    ]


def _plan(
    config: "Config",
    members: "list[Member]",
    questions: "tuple[Question, ...]",
    sampling: "Sampling",
    answers: Path | None,
    judges: int,
    self_scores: bool,
    prices: "Prices",
) -> "Plan":
    from turnout.gateway.facts import rates_of
    from turnout.peers.review.plan import Plan
    from turnout.routing.core import TargetName

    if judges >= len(members):
        raise exits.CommandError(f"--judges {judges}: each answer has {len(members) - 1} others to score it")
    rates = {m.name: rates_of(config.targets[TargetName(m.name)], config, prices) for m in members}
    recorded = _recorded(answers, members, questions) if answers is not None else {}
    return Plan(members, questions, sampling, recorded, rates, judges, self_scores)


def _recorded(file: Path, members: "list[Member]", questions: "tuple[Question, ...]") -> "Answers":
    """Recorded answers; models are known in the file by their targets' names or their own ids."""
    from turnout.peers.review.answers import read

    ids = [member.model for member in members]
    known = {m.model: m.name for m in members if ids.count(m.model) == 1} | {m.name: m.name for m in members}
    found = read(file, known)
    if not any(question.id in one for question in questions for one in found.values()):
        example = next(iter(next(iter(found.values()))))
        raise exits.CommandError(
            f"{file} answers none of the questions", step=f"ids must match: {questions[0].id!r} here, {example!r} there"
        )
    return found


def _say_plan(plan: "Plan", journal: Path, limits: "Limits", as_json: bool) -> None:
    from turnout.peers.review.estimate import estimate
    from turnout.peers.review.journal import FORM
    from turnout.peers.review.questions import types
    from turnout.upstream.buying.journal import counts, read

    found = estimate(plan, counts(read(FORM, journal)[1]), types(plan.questions))
    if as_json:
        output.emit(found)
        return
    peer_reviewed.print_plan(found)
    for name, most in (("--max-calls", limits.calls), ("--max-tokens", limits.tokens), ("--max-usd", limits.usd)):
        if most is not None:
            output.emit_text(f"{name} {most:g} would end it there")


def _priced(plan: "Plan", limits: "Limits") -> None:
    unpriced = [m.name for m in plan.members if plan.priced(m.name, 1, 1) is None]
    if limits.usd is not None and unpriced:
        raise exits.CommandError(
            f"--max-usd cannot hold: no price is known for {', '.join(unpriced)}",
            step="state `price` in their [targets.NAME], or limit tokens",
        )


def _reviewed(
    plan: "Plan", config: "Config", prices: "Prices", journal: Path, limits: "Limits", at_once: "Concurrency"
) -> "Scores":
    import asyncio

    from turnout.peers.review.journal import FORM
    from turnout.peers.review.running import review as conduct
    from turnout.routing.core import TargetName
    from turnout.upstream.buying.calling import open_models
    from turnout.upstream.buying.journal import Journal

    taking = {TargetName(member.name): config.targets[TargetName(member.name)] for member in plan.members}
    keys = buying.keys(config, sorted({member.upstream for member in plan.members}))
    kept = Journal.open(journal, FORM)

    async def run() -> "Scores":
        models = open_models(taking, config.upstreams, keys, prices, at_once.per_upstream)
        with progress.shown() as told:
            return await conduct(
                plan,
                kept,
                models,
                [key for key in keys.values() if key],
                limits,
                at_once,
                lambda what, done, of, usd: told(what, done, of, output.usd(usd)),
            )

    try:
        return asyncio.run(run())
    except KeyboardInterrupt:
        output.say(f"interrupted; {journal} keeps what was bought, the same command goes on")
        raise
    finally:
        kept.close()


def _write(path: Path, found: "Scores") -> None:
    """Put the scores in place whole, or not at all."""
    import msgspec

    path.parent.mkdir(parents=True, exist_ok=True)
    beside = path.with_name(f".{path.name}.part")
    beside.write_bytes(msgspec.json.format(msgspec.json.encode(found), indent=1) + b"\n")
    beside.replace(path)
