"""A chain played on recorded answers: the router's own rules, with answers and votes that are looked up.

How a model would have improved another's answer is not recorded. The truth lies between two plays: `pessimistic`, it comes back
with the answer it gave itself; `optimistic`, with the better one of its own and the one it was to improve (which takes the
labels: an upper bound only).
"""

from collections.abc import Callable, Iterator, Mapping
from typing import TypeAlias

from msgspec import Struct

from turnout.peers.simulate.recorded import Question
from turnout.routing.collaboration.chain import Draw, Ended, Generate, Response, Rules, Vote, chain, dice
from turnout.routing.collaboration.electorate import Electorate


class CallPrices(Struct, frozen=True):
    """What calls cost, in any unit. `models`: an answer by each, in the table's order. `vote`: a vote, as a share of an answer by
    the same model: it is short, but reads as much."""

    models: tuple[float, ...]
    vote: float = 0.5


class Played(Struct, frozen=True):
    """What came of one question. `value`: of the answer that is returned. `agreed`: whether all who voted approved of it, and
    somebody did. `unseen`: whether the graph names no voter for the first author."""

    value: float
    generations: int
    votes: int
    cost: float
    agreed: bool = False
    unseen: bool = False


class _Fork(Struct):
    """Where who improves the answer is drawn for hop `hop`, from `of`: what comes of each choice."""

    hop: int
    of: int
    ways: "dict[object, _Fork | Played]"


Electing: TypeAlias = Callable[[Question], Electorate]


class Playing:
    """Plays the chains of one arm and split.

    Questions on which all models stand to one another alike take the same course for the same draws; such courses are kept, by
    the draws they hung on. `electing` gives the electorate of a question; `shared`: it is the same for all of one category, so
    that courses can be kept.
    """

    def __init__(
        self,
        rules: Rules,
        models: tuple[str, ...],
        electing: Electing,
        prices: CallPrices,
        *,
        optimistic: bool,
        shared: bool,
    ) -> None:
        self.rules = rules
        self.models = models
        self.place = {model: at for at, model in enumerate(models)}
        self.electing = electing
        self.prices = prices
        self.optimistic = optimistic
        self._keeps = shared and rules.picker != "weighted"
        self._known: dict[object, _Fork | Played] = {}

    def play(self, question: Question, first: int, seed: int) -> Played:
        """What comes of a question when `first` answers first."""
        electorate, draw = self.electing(question), dice(question.id, seed)
        if not self._keeps:
            return self._played(question, electorate, self._run(question, electorate, first, draw))
        ways, place = self._known, self._kind(question, electorate, first)
        while isinstance(node := ways.get(place), _Fork):
            ways, place = node.ways, int(draw(node.hop, 0) * node.of)
        if node is None:
            ended = self._run(question, electorate, first, draw)
            node = self._played(question, electorate, ended)
            self._keep(self._kind(question, electorate, first), ended, node)
        return node

    def _kind(self, question: Question, electorate: Electorate, first: int) -> object:
        """Equal for questions of which the same comes for the same draws."""
        return question.marks, question.values, question.approves, id(electorate), first

    def _keep(self, place: object, ended: Ended, played: Played) -> None:
        ways = self._known
        for at, hop in enumerate(ended.hops, 1):
            if hop.drawn and hop.drawn[0] is not None:
                node, of = ways.get(place), len(hop.candidates)
                if not isinstance(node, _Fork):
                    node = ways[place] = _Fork(at, of, {})
                ways, place = node.ways, int(hop.drawn[0] * of)
        ways[place] = played

    def _run(self, question: Question, electorate: Electorate, first: int, draw: Draw) -> Ended:
        """The chain itself. An answer is known by the model whose recorded answer it is."""
        steps = chain(self.rules, electorate, (self.models[first],), draw)
        said: list[int] = []
        step = next(steps)
        while True:
            if isinstance(step, Vote):
                sent: object = [question.vote(self.place[voter], said[step.hop]) for voter in step.voters]
            else:
                author = self.place[step.author]
                answer = author if isinstance(step, Generate) else self._refined(question, author, said[step.hop])
                said.append(answer)
                sent = Response((author, answer), answer, question.marks[answer])
            try:
                step = steps.send(sent)
            except StopIteration as stop:
                ended: Ended = stop.value
                return ended

    def _refined(self, question: Question, author: int, incoming: int) -> int:
        better = question.values[incoming] > question.values[author]
        return incoming if self.optimistic and better else author

    def _played(self, question: Question, electorate: Electorate, ended: Ended) -> Played:
        assert ended.response is not None
        price, place = self.prices.models, self.place
        asked = [place[ballot.voter] for hop in ended.hops for ballot in hop.ballots if not ballot.copied]
        written = sum(price[place[hop.author]] for hop in ended.hops)
        return Played(
            question.values[ended.response.content],
            ended.generations,
            ended.votes,
            written + self.prices.vote * sum(price[voter] for voter in asked),
            ended.agreed,
            not electorate.voters.get(ended.hops[0].author, ()),
        )


class DrawnVoters(Mapping[str, tuple[str, ...]]):
    """Voters of a question that are drawn from all, as many for each author as `named` would ask first."""

    def __init__(self, named: Electorate, rules: Rules, question: str, seed: int) -> None:
        self._named = named
        self._rules = rules
        self._draw = dice(f"voters {question}", seed)

    def __getitem__(self, author: str) -> tuple[str, ...]:
        ladder = self._named.ladder(author, self._rules.ladder, self._rules.supplement)
        left = [model for model in self._named.models if model != author]
        at = self._named.models.index(author)
        wanted = len(ladder[0][1]) if ladder else 0
        return tuple(left.pop(int(self._draw(at, number) * len(left))) for number in range(wanted))

    def __iter__(self) -> Iterator[str]:
        return iter(self._named.models)

    def __len__(self) -> int:
        return len(self._named.models)

    def electorate(self) -> Electorate:
        """The models of `named` with these voters."""
        named = self._named
        return Electorate(named.models, named.received, named.anchors, self, prices=named.prices)
