"""A graph from a review: relations, how stable they are, judges that are left out, types of task, what is said of it."""

import random
from statistics import correlation as pearson
from typing import Any

import msgspec
import pytest
from tests.peers.graph.reviews import MODELS, review, review_json
from tests.peers.worked import EXPECTED, WORKED

from turnout.errors import ClientError
from turnout.peers.graph.judges import correlation, judges, ranks
from turnout.peers.graph.measure import Measured, Wanted, measure, shrunk
from turnout.peers.graph.relations import Settings
from turnout.peers.graph.resampling import Resampled
from turnout.peers.graph.scored import Scored
from turnout.peers.graph.words import failing
from turnout.routing.collaboration.graph import read

FEW = Wanted(resamples=200)


@pytest.fixture(scope="module")
def measured() -> Measured:
    return measure(review(), FEW, Resampled)


def test_a_plain_matrix_makes_the_worked_graph() -> None:
    plain = Scored(tuple(WORKED["models"]), WORKED["scores"], made_at="2026-01-31T12:00:00Z")
    found = measure(plain, Wanted())
    assert found.category == EXPECTED["cells"]
    assert found.stability == {}
    assert found.judges == {}
    assert any("question by question" in note for note in found.notes)


def test_scores_outside_their_scale_are_named() -> None:
    scores = {judge: dict(row) for judge, row in WORKED["scores"].items()}
    assert not any("outside" in note for note in measure(Scored(tuple(scores), scores), Wanted()).notes)
    scores["M1"]["M2"] = 99.0
    notes = measure(Scored(tuple(scores), scores), Wanted()).notes
    assert "scores outside 0 to 10, taken as they are: M1 of M2: 99" in notes


def test_a_route_reads_what_is_measured(measured: Measured) -> None:
    graph = read(msgspec.json.encode(measured))
    assert graph.id == measured.id
    assert graph.voters == measured.voters
    assert graph.manifest.models[0].model == "vendor-anchor"
    assert graph.manifest.question_set == "aa"
    assert set(graph.by_type) == {"type0", "type1"}


def test_clear_differences_are_stable(measured: Measured) -> None:
    worth = measured.stability[""]
    assert measured.anchors == ("anchor", "second")
    assert worth.category["anchor"] == {"LH": 1.0}
    assert worth.unstable == ()
    assert worth.agreement == 1.0
    assert worth.questions == 120
    for model in MODELS:
        low, high = worth.received[model] or (0.0, 0.0)
        assert low < (measured.received[model] or 0.0) < high
        assert 0.15 < high - low < 0.6  # four times the standard error of 120 scores of spread 1


def test_equal_models_are_not() -> None:
    data = review_json(60)
    dice = random.Random(4)
    for row in data["cells"].values():
        for author in row:
            row[author] = [dice.randint(4, 8) for _ in range(60)]
    data["scores"] = {j: {i: sum(v) / 60 for i, v in row.items()} for j, row in data["cells"].items()}
    found = measure(msgspec.convert(data, Scored), Wanted(resamples=200, outliers=True), Resampled)
    worth = found.stability[""]
    assert "unstable" in found.flags
    assert worth.unstable
    assert worth.agreement < 0.8
    for model in worth.unstable:
        assert max(worth.category[model].values()) < 0.8
    for edge in worth.unstable_edges:
        assert 0.2 < edge.probability < 0.8
        assert edge.there == (edge.judge in found.voters[edge.author])


def test_probabilities_add_up(measured: Measured) -> None:
    for worth in measured.stability.values():
        for shares in worth.category.values():
            assert sum(shares.values()) == pytest.approx(1)
        for author, shares in worth.C_i.items():
            assert author not in shares
            assert all(0 < share <= 1 for share in shares.values())


def test_the_same_seed_gives_the_same_and_another_gives_another(measured: Measured) -> None:
    again = measure(review(), FEW, Resampled)
    assert msgspec.json.encode(again) == msgspec.json.encode(measured)
    other = measure(review(), Wanted(resamples=200, seed=2), Resampled)
    assert other.stability[""].given != measured.stability[""].given


def test_cells_of_a_question_move_together() -> None:
    """With scores that depend on nothing but the question, every resample moves all cells alike, so nothing can change places."""
    data = review_json(60)
    for judge, row in data["cells"].items():
        for author in row:
            row[author] = [1 + q % 8 + (author == "anchor") - (judge == "anchor") for q in range(60)]
    data["scores"] = {j: {i: sum(v) / 60 for i, v in row.items()} for j, row in data["cells"].items()}
    worth = measure(msgspec.convert(data, Scored), FEW, Resampled).stability[""]
    assert worth.agreement == 1.0
    low, high = worth.given["anchor"] or (0.0, 0.0)
    assert high > low


def test_types_are_drawn_towards_all_types() -> None:
    one, everywhere = {"a": {"b": 8.0, "c": None}}, {"a": {"b": 4.0, "c": 5.0}, "b": {"a": 3.0}}
    found = shrunk(one, {"a": {"b": 60, "c": 3}}, everywhere, 20)
    assert found == {"a": {"b": 7.0, "c": 5.0}, "b": {"a": 3.0}}
    assert shrunk(one, {"a": {"b": 60}}, everywhere, 0) == {"a": {"b": 8.0, "c": 5.0}, "b": {"a": 3.0}}


@pytest.mark.parametrize(
    ("questions", "said"), [(120, ""), (80, "40 questions, fewer than 50"), (40, "20 questions, fewer than 25")]
)
def test_a_type_with_few_questions_falls_back(questions: int, said: str) -> None:
    found = measure(review(questions), Wanted(resamples=50), Resampled)
    assert found.by_type["type0"].falls_back == said
    assert (found.of("type0") is found) == bool(said)
    assert ("type0" in found.stability) == (questions > 40)


def spoilt(judge: str, row: Any, **changes: Any) -> Scored:
    data = review_json(60) | changes
    data["cells"][judge] = {author: [row(author, q) for q in range(60)] for author in data["cells"][judge]}
    return msgspec.convert(data, Scored)


def test_a_judge_that_disagrees_is_left_out_of_scores_and_votes() -> None:
    dice = random.Random(1)
    scored = spoilt("anchor", lambda author, q: dice.randint(1, 10))
    found = measure(scored, FEW, Resampled)
    assert list(found.excluded) == ["anchor"]
    assert "does not agree with the others" in found.excluded["anchor"]
    assert found.given["anchor"] is None
    assert found.received["anchor"] is not None
    assert all("anchor" not in voters for voters in found.voters.values())
    assert "anchor" not in {edge.judge for edge in found.stability[""].unstable_edges}
    kept = measure(scored, Wanted(outliers=True, resamples=0), Resampled)
    assert kept.excluded == {}
    assert any(note.startswith("kept although they fail: anchor") for note in kept.notes)
    assert failing(found, "anchor").startswith("left out: it does not agree")
    assert failing(kept, "anchor").startswith("kept, but: it does not agree")
    assert failing(kept, "plain") == ""


def test_a_judge_without_spread_and_one_that_cannot_be_read_are_left_out() -> None:
    flat = judges(spoilt("odd", lambda author, q: 7))["odd"]
    assert flat.spread == 0.0
    assert "hardly differ" in flat.fails
    assert flat.agreement is None
    data = review_json(60)
    data["judges"]["odd"] = {"asked": 240, "scored": 210, "parse_failures": 30}
    unread = judges(msgspec.convert(data, Scored))["odd"]
    assert unread.parse_failures == 0.125
    assert "could not be read" in unread.fails


def test_judges_are_kept_where_too_few_would_be_left() -> None:
    data = review_json(60)
    for judge in MODELS[:3]:
        data["judges"][judge] = {"asked": 10, "scored": 5, "parse_failures": 5}
    found = measure(msgspec.convert(data, Scored), Wanted(resamples=0))
    assert found.excluded == {}
    assert any("too few judges would be left" in note for note in found.notes)


def test_a_judge_that_scores_length_is_named_and_nothing_is_corrected() -> None:
    found = judges(spoilt("odd", lambda author, q: 1 + q // 6))["odd"]
    assert (found.length or 0) > 0.9
    assert any("follow length" in note for note in found.notes)
    assert abs(judges(review())["plain"].length or 0) < 0.2


def test_self_preference_is_what_a_judge_gives_itself_beside_the_others() -> None:
    data = review_json(60)
    data["self_scores"]["plain"] = [10] * 60
    mine, others = judges(msgspec.convert(data, Scored))["plain"], judges(review(60))["plain"]
    received = measure(review(60), Wanted(resamples=0)).received["plain"] or 0
    assert mine.self_preference == pytest.approx(10 - received)
    assert any("its own answers" in note for note in mine.notes)
    assert (others.self_preference or 0) < (mine.self_preference or 0)


def test_agreement_leaves_the_judge_itself_out() -> None:
    scored = review(40)
    own, others = [], []
    for author in scored.models:
        for q in range(40):
            if author != "plain":
                beside = [row[author][q] or 0 for judge, row in scored.cells.items() if judge not in ("plain", author)]
                own.append(scored.cells["plain"][author][q] or 0)
                others.append(sum(beside) / len(beside))
    assert judges(scored)["plain"].agreement == pytest.approx(pearson(own, others))


def test_equal_values_share_their_ranks() -> None:
    assert ranks([3, 1, 3, 2]) == [3.5, 1.0, 3.5, 2.0]
    assert correlation([1, 1, 1], [1, 2, 3]) is None


def test_thin_cells_are_left_out_of_every_resample() -> None:
    data = review_json(60)
    data["scores"]["anchor"]["plain"] = None
    found = measure(msgspec.convert(data, Scored), FEW, Resampled)
    assert "missing_scores" in found.flags
    assert found.scores["anchor"]["plain"] is None
    assert "anchor" not in found.stability[""].C_i["plain"]


def test_two_models_are_refused() -> None:
    with pytest.raises(ClientError, match="at least 3 models, got 2"):
        measure(Scored(("a", "b"), {}), Wanted())


def test_settings_reach_edges_and_manifest() -> None:
    wanted = Wanted(Settings(50, 25, "judge_centered"), resamples=0, soft_ttl_days=7, hard_ttl_days=60)
    found = measure(review(60), wanted)
    assert (found.d2, found.edge_score, found.stability) == (25, "judge_centered", {})
    assert (found.manifest.soft_ttl_days, found.manifest.hard_ttl_days) == (7, 60)
    assert found.manifest.made_at == "2026-01-31T12:00:00Z"
