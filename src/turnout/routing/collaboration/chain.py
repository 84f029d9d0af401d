"""The rules of a collaboration chain, over answers it never looks into.

A model answers; those the graph names vote; one who disapproves improves the answer; and so on until all approve or the hops
are used up. `chain` is a generator of what is to be done next (`Generate`, `Vote`, `Refine`) that is sent what came of it, and
returns an `Ended`. Live, the steps are model calls; in a simulation they are looked up.
"""

import hashlib
import math
from collections.abc import Callable, Collection, Generator, Hashable, Iterable, Sequence
from typing import Any, Literal, TypeAlias

from msgspec import Struct

from turnout.routing.collaboration.electorate import Electorate, Ladder, Rung

Picker: TypeAlias = Literal["random", "max_received", "cheapest", "weighted"]
Exit: TypeAlias = Literal["last", "best_supported"]
Polling: TypeAlias = Literal["parallel", "cheapest_first"]
Halting: TypeAlias = Literal["budget", "deadline"]
Status: TypeAlias = Literal[
    "converged", "hop_limit", "no_fresh_disapprover", "no_voters", "unverified", "refiner_failed", "budget", "deadline", "failed"
]  # fmt: skip
"""How a chain ended. `converged`: nobody who voted disapproved of the answer, and enough did vote. All others are no agreement.
`hop_limit`: alpha hops were made. `no_fresh_disapprover`: all who disapprove have written an answer already. `no_voters`: nobody
may vote. `unverified`: too few votes came. `refiner_failed`: nobody who disapproves could improve the answer. `budget`,
`deadline`: the host halted it. `failed`: there is no answer at all."""

Draw: TypeAlias = Callable[[int, int], float]
"""A number in [0, 1) for a hop and an attempt at it: the only dice."""


def dice(request: str, seed: int = 0) -> Draw:
    """The dice of a request: the same request, seed, hop and attempt draw the same, whatever was drawn before."""

    def draw(hop: int, attempt: int) -> float:
        digest = hashlib.blake2b(f"{seed}\x1f{hop}\x1f{attempt}\x1f{request}".encode(), digest_size=7).digest()
        return int.from_bytes(digest, "big") / 2**56

    return draw


class Rules(Struct, frozen=True):
    """What a chain is ruled by; the defaults are those of the mode `default`.

    `alpha`: hops at most, so alpha + 1 answers. `approval`: share of the votes that must approve; 1 = all. `quorum`: share of the
    voters whose votes must have come for an answer to count as agreed on, one at least. `picker`: who of those who disapprove
    improves the answer. `revisits`: whether a model may write again. `exit`: which answer is returned without agreement.
    `ladder`: whether others are asked where those whom the graph names are none or do not vote; else an author for whom it names
    nobody has converged at once. `supplement`: whether C'_i is among those others. `max_voters`: the most that are asked about an
    answer at once, the best scored; None = all. `final_vote`: whether the answer of the last hop is voted on. `polling`: all
    voters at once, or the cheapest first until one disapproves, which `exit` must then not need the other votes for.
    """

    alpha: int = 3
    approval: float = 1.0
    quorum: float = 0.5
    picker: Picker = "random"
    revisits: bool = False
    exit: Exit = "best_supported"
    ladder: bool = True
    supplement: bool = False
    max_voters: int | None = None
    final_vote: bool = True
    polling: Polling = "parallel"


PAPER = Rules(revisits=True, exit="last", ladder=False)
"""The method as published: unanimity of C_i, a disapprover drawn at random, revisits, the last answer."""
DEFAULT = Rules()
"""Ours: no revisits, the answer with the most supporters, others asked where C_i is empty."""


class Response(Struct, frozen=True):
    """An answer as the chain sees it.

    `key`: equal for the same text, whose votes are then kept. `alike`: equal for answers that say the same, whose supporters are
    counted together; None = as `key`. `fault`: why it cannot be returned (it does not fit what it must): nobody votes on it, and
    it is improved. `content`: the host's own.
    """

    key: Hashable
    content: Any = None
    alike: Hashable = None
    fault: str = ""


class Generate(Struct, frozen=True):
    """Have `author` answer. Send a Response, None when it failed, or a Halt."""

    author: str


class Vote(Struct, frozen=True):
    """Have `voters` vote on the answer of hop `hop`. Send their votes in order (True approves, False disapproves, None abstains),
    or a Halt."""

    voters: tuple[str, ...]
    hop: int


class Refine(Struct, frozen=True):
    """Have `author` improve the answer of hop `hop`. Send what `Generate` takes. `last`: what comes will be returned whatever it
    is, so that it may go out as it comes."""

    author: str
    hop: int
    last: bool = False


class Halt(Struct, frozen=True):
    """The host makes no more calls."""

    status: Halting


Step: TypeAlias = Generate | Vote | Refine


class Ballot(Struct):
    """One vote. `copied`: cast on the same text at an earlier hop. `substitute`: asked because others did not vote."""

    voter: str
    rung: Rung
    vote: bool | None = None
    copied: bool = False
    substitute: bool = False


class Hop(Struct):
    """One answer and what became of it.

    `candidates`: who could improve it, those who disapprove. `refiners`: those who tried; all failed but the last of a hop that
    another follows. `drawn`: the numbers that chose them, None where there was no choice.
    """

    author: str
    response: Response
    ballots: list[Ballot] = []
    candidates: tuple[str, ...] = ()
    drawn: list[float | None] = []
    refiners: list[str] = []

    @property
    def approvers(self) -> list[str]:
        """Who approved."""
        return [ballot.voter for ballot in self.ballots if ballot.vote]

    @property
    def disapprovers(self) -> list[str]:
        """Who disapproved."""
        return [ballot.voter for ballot in self.ballots if ballot.vote is False]

    @property
    def abstainers(self) -> list[str]:
        """Who was asked in vain."""
        return [ballot.voter for ballot in self.ballots if ballot.vote is None]


class Ended(Struct):
    """How a chain ended. `chosen`: the hop whose answer is returned, -1 = none. `supporters`: of that answer, its authors and all
    who approved of it. `first_failed`: who failed to answer first. `votes`: how many were asked for."""

    status: Status
    chosen: int
    hops: tuple[Hop, ...]
    supporters: tuple[str, ...] = ()
    first_failed: tuple[str, ...] = ()
    votes: int = 0

    @property
    def agreed(self) -> bool:
        """Whether the returned answer may be called agreed on by somebody."""
        return self.status == "converged" and bool(self.hops[self.chosen].approvers)

    @property
    def generations(self) -> int:
        """How many answers were written."""
        return len(self.hops)

    @property
    def response(self) -> Response | None:
        """The answer that is returned."""
        return self.hops[self.chosen].response if self.chosen >= 0 else None


Chain: TypeAlias = Generator[Step, Any, Ended]


def chain(
    rules: Rules, electorate: Electorate, first: Iterable[str], draw: Draw, unavailable: Collection[str] = frozenset()
) -> Chain:
    """The course of one request. `first`: who is to answer first, then in order who else may where that one fails.
    `unavailable`: models that are not asked for votes."""
    course = _Course(rules, electorate, draw, unavailable)
    return (yield from course.run(first))


def standing(responses: Sequence[Hop]) -> list[tuple[list[int], tuple[str, ...]]]:
    """The answers that say the same, by the hops they were given at, and the supporters of each: authors and approvers."""
    groups: dict[Hashable, tuple[list[int], dict[str, None]]] = {}
    for at, hop in enumerate(responses):
        key = hop.response.key if hop.response.alike is None else hop.response.alike
        members, supporters = groups.setdefault(key, ([], {}))
        members.append(at)
        supporters[hop.author] = None
        for ballot in hop.ballots:
            if ballot.vote:
                supporters[ballot.voter] = None
    return [(members, tuple(supporters)) for members, supporters in groups.values()]


class _Course:
    """One request's way through the rules."""

    __slots__ = ("cast", "draw", "electorate", "failed", "first_failed", "hops", "out", "rules", "silent", "votes")

    def __init__(self, rules: Rules, electorate: Electorate, draw: Draw, unavailable: Collection[str]) -> None:
        self.rules = rules
        self.electorate = electorate
        self.draw = draw
        self.out = unavailable
        self.silent: set[str] = set()  # abstained, so that others are asked in their place from then on
        self.failed: set[str] = set()
        self.first_failed: list[str] = []
        self.hops: list[Hop] = []
        self.cast: dict[Hashable, dict[str, bool]] = {}
        self.votes = 0

    def run(self, first: Iterable[str]) -> Chain:
        rules, status = self.rules, (yield from self._start(first))
        while not status:
            hop = self.hops[-1]
            at_limit = len(self.hops) > rules.alpha
            if at_limit and not rules.final_vote:
                return self._ended("hop_limit")
            status = (yield from self._judged(hop)) or ("hop_limit" if at_limit else "")
            if not status:
                status = yield from self._refined(hop)
        return self._ended(status)

    def _start(self, first: Iterable[str]) -> Generator[Step, Any, Status | Literal[""]]:
        for author in first:
            came = yield Generate(author)
            if isinstance(came, Response):
                self.hops.append(Hop(author, came))
                return ""
            if isinstance(came, Halt):
                return came.status
            self.failed.add(author)
            self.first_failed.append(author)
        return "failed"

    def _judged(self, hop: Hop) -> Generator[Step, Any, Status | Literal[""]]:
        """ "" when the answer is disapproved of, else how the chain ends."""
        if hop.response.fault:
            return ""
        waiting = self._waiting(hop.author)
        if not waiting:
            if self._ladder(hop.author):
                return "unverified"
            return "no_voters" if self.rules.ladder else "converged"
        voters = self._first_round(waiting)
        quorum = max(1, math.ceil(self.rules.quorum * len(voters) - 1e-9))
        substitutes = [one for one in waiting if one not in voters] if self.rules.ladder else []
        while voters:
            halted = yield from self._poll(hop, voters)
            if halted:
                return halted
            valid = sum(ballot.vote is not None for ballot in hop.ballots)
            if valid and not self._agreed(hop, valid):
                return ""
            if valid >= quorum:
                return "converged"
            lacking = quorum - valid
            voters, substitutes = substitutes[:lacking], substitutes[lacking:]
        return "unverified"

    def _agreed(self, hop: Hop, valid: int) -> bool:
        return len(hop.approvers) >= self.rules.approval * valid - 1e-9

    def _ladder(self, author: str) -> Ladder:
        return self.electorate.ladder(author, self.rules.ladder, self.rules.supplement)

    def _waiting(self, author: str) -> list[tuple[Rung, str]]:
        """Who may vote on the answer, in the order of the ladder."""
        out, silent = self.out, self.silent
        return [
            (rung, model)
            for rung, models in self._ladder(author)
            for model in models
            if model not in out and model not in silent
        ]

    def _first_round(self, waiting: list[tuple[Rung, str]]) -> list[tuple[Rung, str]]:
        """The highest rung that anybody stands on; of more than may be asked, the best scored."""
        voters = [one for one in waiting if one[0] == waiting[0][0]]
        most = self.rules.max_voters
        if most is not None and len(voters) > most:
            received = self.electorate.received
            best = set(sorted(voters, key=lambda one: -received.get(one[1], 0.0))[:most])
            voters = [one for one in voters if one in best]
        return voters

    def _poll(self, hop: Hop, voters: list[tuple[Rung, str]]) -> Generator[Step, Any, Status | Literal[""]]:
        """Add the ballots of `voters`; those cast on the same text before are copied."""
        known, later = self.cast.setdefault(hop.response.key, {}), bool(hop.ballots)
        ballots = [Ballot(model, rung, known.get(model), model in known, later) for rung, model in voters]
        asked = [ballot for ballot in ballots if not ballot.copied]
        if self.rules.polling == "parallel":
            hop.ballots += ballots
            return (yield from self._ask(known, asked))
        hop.ballots += [ballot for ballot in ballots if ballot.copied]
        for ballot in sorted(asked, key=lambda one: self.electorate.price(one.voter)):
            if any(one.vote is False for one in hop.ballots):
                break
            hop.ballots.append(ballot)
            halted = yield from self._ask(known, [ballot])
            if halted:
                return halted
        return ""

    def _ask(self, known: dict[str, bool], ballots: list[Ballot]) -> Generator[Step, Any, Status | Literal[""]]:
        if not ballots:
            return ""
        came = yield Vote(tuple([ballot.voter for ballot in ballots]), len(self.hops) - 1)
        if isinstance(came, Halt):
            hop = self.hops[-1]
            hop.ballots = [ballot for ballot in hop.ballots if ballot not in ballots]
            return came.status
        self.votes += len(ballots)
        for ballot, vote in zip(ballots, came, strict=True):
            ballot.vote = vote
            if vote is not None:
                known[ballot.voter] = vote
            elif self.rules.ladder:
                self.silent.add(ballot.voter)
        return ""

    def _refined(self, hop: Hop) -> Generator[Step, Any, Status | Literal[""]]:
        """ "" when there is another answer, else how the chain ends."""
        waiting = self._waiting(hop.author) if hop.response.fault else []
        against = [model for _, model in waiting] if hop.response.fault else hop.disapprovers
        if not against:
            return "no_voters"
        fresh = against if self.rules.revisits else [m for m in against if all(m != one.author for one in self.hops)]
        if not fresh:
            return "no_fresh_disapprover"
        left = [model for model in fresh if model not in self.failed]
        hop.candidates = tuple(left)
        at, last = len(self.hops), len(self.hops) == self.rules.alpha
        last = last and not self.rules.final_vote and self.rules.exit == "last"
        while left:
            # Where nobody voted, those whom the graph names come before who only stands in for them.
            rung = next((rung for rung, model in waiting if model in left), None)
            able = [model for stands, model in waiting if stands == rung and model in left] or left
            picked, drawn = self._picked(able, at, len(hop.refiners))
            hop.refiners.append(picked)
            hop.drawn.append(drawn)
            came = yield Refine(picked, at - 1, last)
            if isinstance(came, Halt):
                return came.status
            if isinstance(came, Response):
                self.hops.append(Hop(picked, came))
                return ""
            self.failed.add(picked)
            left.remove(picked)
        return "refiner_failed"

    def _picked(self, candidates: list[str], hop: int, attempt: int) -> tuple[str, float | None]:
        """Who improves the answer, and the number that was drawn to choose; candidates stand in the pool's order."""
        if len(candidates) == 1:
            return candidates[0], None
        received = self.electorate.received
        match self.rules.picker:
            case "max_received":
                return max(candidates, key=lambda model: received.get(model, 0.0)), None
            case "cheapest":
                price = self.electorate.price
                return min(candidates, key=lambda model: (price(model), -received.get(model, 0.0))), None
        drawn = self.draw(hop, attempt)
        if self.rules.picker == "random":
            return candidates[int(drawn * len(candidates))], drawn
        weights = [max(received.get(model, 0.0), 1e-9) for model in candidates]
        left = drawn * sum(weights)
        for model, weight in zip(candidates, weights, strict=True):
            left -= weight
            if left < 0:
                return model, drawn
        return candidates[-1], drawn

    def _ended(self, status: Status) -> Ended:
        hops = self.hops
        chosen = -1 if not hops else len(hops) - 1 if status == "converged" else self._exit()
        supporters = next((who for members, who in standing(hops) if chosen in members), ())
        return Ended(status, chosen, tuple(hops), supporters, tuple(self.first_failed), self.votes)

    def _exit(self) -> int:
        """The hop whose answer is returned without agreement; one that cannot be used only where all cannot."""
        usable = [at for at, hop in enumerate(self.hops) if not hop.response.fault] or list(range(len(self.hops)))
        if self.rules.exit == "last":
            return usable[-1]
        received = self.electorate.received

        def support(group: tuple[list[int], tuple[str, ...]]) -> tuple[int, float, int]:
            members, supporters = group
            return len(supporters), sum(received.get(model, 0.0) for model in supporters), -members[0]

        able = set(usable)
        groups = [([at for at in members if at in able], who) for members, who in standing(self.hops)]
        return max((group for group in groups if group[0]), key=support)[0][0]
