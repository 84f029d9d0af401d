"""What a training run is: one file, every ablation a switch in it. Needs no torch."""

from pathlib import Path
from typing import Annotated, Literal, TypeAlias

from msgspec import Meta, Struct

from turnout.routing.retrieval.protocol import Role
from turnout.train.credit import RouteBy, Shaping, Thresholds, Weights
from turnout.train.rollout import Limits

Count: TypeAlias = Annotated[int, Meta(ge=1)]
Share: TypeAlias = Annotated[float, Meta(ge=0)]

METRICS = "metrics.jsonl"
"""In the folder of a run: the metrics of each step, a line each."""


class Teacher(Struct, frozen=True, forbid_unknown_fields=True):
    """The frozen teacher, who scores the student's own tokens knowing the gold evidence; it generates nothing.

    `on`: which trajectories it corrects: `low` those whose evidence is poor (P < theta_P), `all`, or `none` for no teacher.
    `weight`: lambda of its loss; `warmup_steps`: over which it grows from 0, 0 for a constant one. `top_k`: tokens of the
    support. `roles`: on which tokens. `model`: another model of the same tokenizer; "" is the student's own start. A much
    stronger one made small students worse in the paper.
    """

    on: Literal["low", "all", "none"] = "low"
    weight: Share = 0.1
    warmup_steps: Annotated[int, Meta(ge=0)] = 20
    top_k: Count = 128
    roles: tuple[Role, ...] = (Role.REASONING, Role.QUERY)
    model: str = ""


class Lora(Struct, frozen=True, forbid_unknown_fields=True):
    """Low-rank adapters instead of all weights. `modules`: those that get one; empty = all linear layers."""

    rank: Count = 32
    alpha: Count = 64
    dropout: Share = 0.0
    modules: tuple[str, ...] = ()


class Optimisation(Struct, frozen=True, forbid_unknown_fields=True):
    """One step trains on `questions` x `group` trajectories; `micro_batch` of them go through the model at once on a device.

    `steps`: how many, None for `epochs` over the questions. `beta`: of the KL to the start. `epsilon`: of the clip.
    """

    learning_rate: Annotated[float, Meta(gt=0)] = 1e-6
    questions: Count = 128
    group: Annotated[int, Meta(ge=2)] = 32
    micro_batch: Count = 8
    epochs: Annotated[float, Meta(gt=0)] = 3.0
    steps: Count | None = None
    beta: Share = 0.01
    epsilon: Annotated[float, Meta(gt=0)] = 0.2
    temperature: Annotated[float, Meta(gt=0)] = 1.0
    max_grad_norm: Annotated[float, Meta(gt=0)] = 1.0
    seed: int = 0
    bf16: bool = False
    gradient_checkpointing: bool = False
    lora: Lora | None = None


class Engine(Struct, frozen=True, forbid_unknown_fields=True):
    """What generates. `vllm`: `off` for transformers, `colocate` on the training devices, `server` on others (`server_url`).
    `rows`: trajectories transformers generates at once. `device`: `auto`, or `cpu` even where there is a GPU."""

    vllm: Literal["off", "colocate", "server"] = "off"
    server_url: str = ""
    gpu_memory: Annotated[float, Meta(gt=0, le=1)] = 0.3
    tensor_parallel: Count = 1
    rows: Count = 256
    device: Literal["auto", "cpu"] = "auto"


class Settings(Struct, frozen=True, forbid_unknown_fields=True):
    """A training run. `model`: a folder or a hub id. `train`: questions, a file or `hub:NAME` (see
    `turnout.train.data`). `knowledge`: a
    knowledge folder, or the URL of a search service. `out`: folder for checkpoints, metrics and the final model.

    `route_by`, `thresholds`, `weights`, `shaping`, `teacher`: PathRouter's parts. Plain GRPO is `route_by = "none"`, no teacher,
    and all of `shaping` but `base` and `format` 0; Graph-R1 is that, its `format` rule included.
    """

    model: str
    train: str
    knowledge: str
    out: Path
    limits: Limits = Limits()
    inference_turns: Count = 10
    route_by: RouteBy = "both"
    thresholds: Thresholds = Thresholds()
    weights: Weights = Weights()
    shaping: Shaping = Shaping()
    teacher: Teacher = Teacher()
    optimisation: Optimisation = Optimisation()
    engine: Engine = Engine()
    save_every: Count = 50
    log_to: tuple[Literal["console", "jsonl", "tensorboard", "trackio"], ...] = ("console", "jsonl")
