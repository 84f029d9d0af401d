"""A graph from a file of scores, with all that is known of its worth."""

from collections.abc import Callable, Mapping, Sequence
from functools import partial
from pathlib import Path
from typing import Protocol, TypeAlias

import msgspec
from msgspec import Struct, field
from msgspec.structs import asdict, replace

from turnout import __version__
from turnout.errors import ClientError, ConfigError
from turnout.peers.graph.judges import Judge, judges
from turnout.peers.graph.relations import LEAST_MODELS, Settings, relate
from turnout.peers.graph.scored import Cells, Scored, ScoredType
from turnout.peers.graph.stability import LEAST, Means, Stability, stability
from turnout.peers.graph.traps import Trap, traps
from turnout.routing.collaboration.graph import Graph, Manifest, Relations, Scores, TypeRelations
from turnout.routing.collaboration.graph import read as read_graph

LEAST_QUESTIONS = 25
"""Questions of a type below which it has no graph."""
ENOUGH_QUESTIONS = 50
"""Questions of a type below which the graph for all types is used instead."""

RESAMPLES = 1_000
SEED = 1
KAPPA = 20.0
"""Questions' worth of weight that the scores for all types have in those for one."""

Told: TypeAlias = Callable[[str, int, int], None]


class Resampling(Protocol):
    """Resamples of the questions of a review, as `resampling.Resampled` makes them."""

    resamples: int

    def means(self) -> Means:
        """Mean scores over all questions of each resample."""
        ...

    def shrunk(self, of: Sequence[int], kappa: float) -> Means:
        """Mean scores over some of the questions, drawn towards those over all."""
        ...


Resampler: TypeAlias = Callable[[Sequence[str], Cells, int, int, int], Resampling]
"""Makes resamples from models, cells, the number of questions, how many resamples, and a seed."""


class Measured(Graph, frozen=True, kw_only=True):
    """A graph and what is known of its worth. A route reads it as a plain graph.

    `traps`: why scores of this kind cannot make a graph. `judges`: {} where scores are not there one by one. `stability`: by type
    of task, "" = all; {} where scores are not there one by one or no resamples were wanted. `notes`: for people.
    """

    traps: tuple[Trap, ...] = ()
    judges: dict[str, Judge] = field(default_factory=dict)
    stability: dict[str, Stability] = field(default_factory=dict)
    notes: tuple[str, ...] = ()


def read(path: Path) -> Measured:
    """The graph in a file with what is known of its worth. Raises ConfigError with what is wrong and where."""
    data = path.read_bytes()
    read_graph(data, str(path))
    try:
        return msgspec.json.decode(data, type=Measured)
    except msgspec.MsgspecError as error:
        raise ConfigError(f"{error}; make it anew with `turnout peers graph`", file=str(path)) from None


class Wanted(Struct, frozen=True):
    """How a graph is to be made. `outliers`: keep judges that fail. `resamples`: 0 = no intervals. `soft_ttl_days`,
    `hard_ttl_days`: as in a manifest."""

    settings: Settings = Settings()
    outliers: bool = False
    resamples: int = RESAMPLES
    seed: int = SEED
    kappa: float = KAPPA
    soft_ttl_days: float = 30.0
    hard_ttl_days: float | None = None


def measure(
    scored: Scored, wanted: Wanted, resampler: Resampler | None = None, told: Told = lambda what, done, of: None
) -> Measured:
    """The graph that scores make; without a resampler no intervals. Raises ClientError for fewer than three models."""
    models, settings = scored.models, wanted.settings
    if len(models) < LEAST_MODELS:
        raise ClientError(
            f"a graph needs at least {LEAST_MODELS} models, got {len(models)}: of two, each is the only judge of the other"
        )
    reported = judges(scored)
    excluded, kept = _excluded(scored, reported, wanted)
    scores = without(scored.scores, excluded)
    questions = len(scored.questions) or scored.manifest.question_count
    plain = relate(models, scores, settings, questions=questions)
    found = traps(models, scored.scores, plain)
    worth: dict[str, Stability] = {}
    drawn = None
    if resampler is not None and scored.cells and scored.questions and wanted.resamples:
        cells = {judge: row for judge, row in scored.cells.items() if judge not in excluded}
        drawn = resampler(models, cells, len(scored.questions), wanted.resamples, wanted.seed)
        telling = partial(told, "bootstrap")
        worth[""] = stability(drawn.means(), drawn.resamples, plain, settings, telling)
    plain = replace(plain, flags=(*plain.flags, *(trap.name for trap in found if trap.certain), *_shaky(worth.get(""))))
    by_type: dict[str, TypeRelations] = {}
    for kind, one in scored.by_type.items():
        by_type[kind] = _for_type(scored, kind, one, plain, excluded, drawn, wanted, worth, told)
    return Measured(
        **{name: getattr(plain, name) for name in Relations.__struct_fields__},
        models=models,
        **asdict(settings),
        excluded=excluded,
        by_type=by_type,
        manifest=_manifest(scored, wanted),
        traps=found,
        judges=reported,
        stability=worth,
        notes=(*kept, *_notes(scored, plain, questions)),
    )


def _excluded(scored: Scored, reported: Mapping[str, Judge], wanted: Wanted) -> tuple[dict[str, str], tuple[str, ...]]:
    """The judges that are left out with the reasons, and what is to be said where they cannot be."""
    failing = {name: judge.fails for name, judge in reported.items() if judge.fails}
    if not failing:
        return {}, ()
    said = "; ".join(f"{name}: {why}" for name, why in failing.items())
    if wanted.outliers:
        return {}, (f"kept although they fail: {said}",)
    if len(scored.models) - len(failing) < LEAST_MODELS:
        return {}, (f"kept although they fail, since too few judges would be left: {said}",)
    return failing, ()


def without(scores: Scores, excluded: Mapping[str, str]) -> Scores:
    """Scores without those of some judges."""
    return {judge: {} if judge in excluded else row for judge, row in scores.items()}


def _shaky(worth: Stability | None) -> tuple[str, ...]:
    return ("unstable",) if worth is not None and worth.agreement < LEAST else ()


def _for_type(
    scored: Scored,
    kind: str,
    one: ScoredType,
    everywhere: Relations,
    excluded: Mapping[str, str],
    drawn: Resampling | None,
    wanted: Wanted,
    worth: dict[str, Stability],
    told: Told,
) -> TypeRelations:
    """The relations for one type, its scores drawn towards those for all types. Puts their stability into `worth`."""
    of = [at for at, question in enumerate(scored.questions) if question.type == kind]
    questions = len(of) or one.questions
    counts = one.counts or {judge: dict.fromkeys(row, questions) for judge, row in one.scores.items()}
    scores = shrunk(without(one.scores, excluded), counts, everywhere.scores, wanted.kappa)
    found = relate(scored.models, scores, wanted.settings, questions=questions)
    flags, falls_back = list(found.flags), ""
    if questions < ENOUGH_QUESTIONS:
        flags.append("few_questions")
        least = LEAST_QUESTIONS if questions < LEAST_QUESTIONS else ENOUGH_QUESTIONS
        falls_back = f"{questions} questions, fewer than {least}"
    if drawn is not None and of and questions >= LEAST_QUESTIONS:
        means, telling = drawn.shrunk(of, wanted.kappa), partial(told, f"bootstrap {kind}")
        worth[kind] = stability(means, drawn.resamples, found, wanted.settings, telling)
        if _shaky(worth[kind]):
            flags.append("unstable")
            falls_back = falls_back or f"other questions would give another C (agreement {worth[kind].agreement:.2f})"
    relations = {name: getattr(found, name) for name in Relations.__struct_fields__ if name != "flags"}
    return TypeRelations(**relations, flags=tuple(flags), falls_back=falls_back)


def shrunk(scores: Scores, counts: Mapping[str, Mapping[str, int]], everywhere: Scores, kappa: float) -> Scores:
    """Scores of one type drawn towards those for all types, (n S + kappa S_all) / (n + kappa); what a type lacks is taken from
    those for all."""
    found: Scores = {}
    for judge, row in everywhere.items():
        found[judge] = {}
        for author, overall in row.items():
            own, count = scores.get(judge, {}).get(author), counts.get(judge, {}).get(author, 0)
            if own is None or overall is None:
                found[judge][author] = overall if own is None else own
            else:
                found[judge][author] = (count * own + kappa * overall) / (count + kappa) if count + kappa else own
    return found


def _manifest(scored: Scored, wanted: Wanted) -> Manifest:
    review = scored.manifest
    return Manifest(
        made_at=review.began or scored.made_at,
        models=review.models,
        question_set=review.question_set,
        question_count=review.question_count or len(scored.questions),
        prompt=review.prompt,
        prompt_version=review.prompt_version,
        scores=scored.digest,
        turnout=__version__,
        soft_ttl_days=wanted.soft_ttl_days,
        hard_ttl_days=wanted.hard_ttl_days,
    )


def _notes(scored: Scored, found: Relations, questions: int) -> list[str]:
    notes = []
    if "degenerate" in found.flags:
        notes.append("all scores are equal: every model is in C, and choosing by the graph is choosing at random")
    if unclassified := [model for model, cell in found.category.items() if cell is None]:
        notes.append(f"no category for {', '.join(unclassified)}: scored nobody or by nobody")
    missing = sum(
        found.scores[judge][author] is None for judge in scored.models for author in scored.models if judge != author
    )
    if missing:
        notes.append(
            f"{missing} of {len(scored.models) * (len(scored.models) - 1)} scores are missing and are in no mean"
        )
    lowest, highest = min(0.0, scored.manifest.scale[0]), max(10.0, scored.manifest.scale[1])
    outside = [
        f"{judge} of {author}: {score:g}"
        for judge, row in found.scores.items()
        for author, score in row.items()
        if score is not None and not lowest <= score <= highest
    ]
    if outside:
        notes.append(f"scores outside {lowest:g} to {highest:g}, taken as they are: {', '.join(outside[:5])}")
    if not scored.complete:
        notes.append(f"the review is not complete{f' (it stopped for {scored.stopped})' if scored.stopped else ''}")
    if not scored.cells:
        notes.append("no scores question by question: intervals, stability and judges are not known")
    elif questions < LEAST_QUESTIONS:
        notes.append(f"{questions} questions are too few to rely on: at least {LEAST_QUESTIONS}, better 100")
    return notes
