"""Tables of recorded answers: small ones written here, and parts of the recordings."""

import gzip
import json
import random
from pathlib import Path
from typing import Any

from tests.recorded import shared

from turnout.peers.simulate.recorded import Table, read

MODELS = ("large", "middle", "small", "odd")
RIGHT = {"large": 0.85, "middle": 0.7, "small": 0.5, "odd": 0.3}

POOLS = {
    "gsm8k": "gpt-4o-mini-2024-07-18 claude-3-haiku-20240307 Meta-Llama-3.1-8B-Instruct gemma-2-9b-it "
    "Mixtral-8x7B-Instruct-v0.1 Qwen2-7B-Instruct gpt-3.5-turbo-0125 Phi-3.5-mini-instruct",
    "math_l5": "gpt-4o-mini-2024-07-18 claude-3-5-haiku-20241022 deepseek-v2.5-0908 Qwen2-72B-Instruct gemini-1.5-flash "
    "gemma-2-27b-it Meta-Llama-3-70B-Instruct Qwen2.5-7B-Instruct",
    "mmlu_pro": "Meta-Llama-3_1-8B-Instruct Yi-34B mathstral-7B Mixtral-8x7B-Instruct-v0.1 Phi-3-mini-4k-instruct "
    "c4ai-command-r-v01 gemma-7b Mistral-7B-Instruct-v0.2",
}


def rows(questions: int = 120, seed: int = 1, samples: int = 0) -> list[dict[str, Any]]:
    """Answers of four models from A to D, some of which could not be read."""
    dice = random.Random(seed)

    def answer(model: str, gold: str) -> str | None:
        if dice.random() < 0.03:
            return None
        return gold if dice.random() < RIGHT[model] else dice.choice("ABCD")

    found = []
    for at in range(questions):
        gold = dice.choice("ABCD")
        row: dict[str, Any] = {"question_id": at, "category": "xy"[at % 2], "gold": gold}
        row["answers"] = {model: answer(model, gold) for model in MODELS}
        if samples:
            row["samples"] = {model: [answer(model, gold) for _ in range(samples)] for model in MODELS}
        found.append(row)
    return found


def written(folder: Path, lines: list[dict[str, Any]], name: str = "answers.jsonl") -> Path:
    path = folder / name
    text = "".join(json.dumps(line) + "\n" for line in lines).encode()
    path.write_bytes(gzip.compress(text) if name.endswith(".gz") else text)
    return path


def recorded(name: str, most: int) -> Table:
    """The first questions of a recording, with its pool of eight models, evenly spaced."""
    folder = shared()
    assert folder
    table = read(folder / "data" / "peers" / f"{name}_answers.jsonl.gz", POOLS[name].split())
    step = max(1, len(table.questions) // most)
    return Table(table.name, table.kind, table.models, table.questions[::step][:most])
