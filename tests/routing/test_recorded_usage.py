"""Predicted cache reads against what a provider reported, over recorded runs of an agent."""

from statistics import median
from typing import Any

from tests.recorded import needs_recordings, rows

from turnout.pricing.caching import caching_of
from turnout.pricing.rates import Rates
from turnout.routing.warmth import Warmed, Warmth

RATES = Rates(input=2.0, output=12.0, cache_read=0.2)


def run(calls: list[Any]) -> tuple[list[tuple[int, int, int]], Warmth]:
    """Of every call but the first its prompt, predicted and reported reads; and what is known of the lane at the end. The prompt
    only grows, and the pauses are short."""
    rules = caching_of("gemini-3-pro-preview", "openai_chat", RATES)
    assert rules is not None
    state, seen = Warmth(), []
    for index, (prompt, read, output, _) in enumerate(calls):
        warm = state.of("gemini")
        predicted = int(min(rules.whole(warm.tokens) * warm.trust, prompt)) if warm is not None else 0
        if warm is not None:
            seen.append((prompt, predicted, read))
        costs = [(prompt - part) * 2.0 + part * 0.2 if warm is not None else 0.0 for part in (predicted, read)]
        state = state.after(
            Warmed(
                target="gemini",
                at=20.0 * index,
                count=2 * index + 1,
                size=4 * prompt,
                prompt_tokens=prompt,
                output_tokens=output,
                held_tokens=prompt,
                trust=read / predicted if predicted >= rules.least_tokens else None,
                predicted=costs[0],
                reported=costs[1],
            )
        )
    return seen, state


@needs_recordings
def test_over_many_sessions_predictions_are_those_of_the_provider() -> None:
    runs = [
        row["per_call_usage[in,cached,out,cost]"]
        for row in rows("traces/traj_miniswe_gemini3pro_swebench_verified.jsonl.gz")
    ]
    found = [run(calls) for calls in runs]
    calls = [call for seen, _ in found for call in seen]
    reported = sum(read for _, _, read in calls)
    assert reported / sum(prompt for prompt, _, _ in calls) > 0.8
    assert abs(sum(predicted for _, predicted, _ in calls) / reported - 1) < 0.01
    biases = [warm.bias for _, state in found if (warm := state.of("gemini")) is not None and warm.bias is not None]
    assert len(biases) > 240
    assert abs(median(biases)) < 0.02
