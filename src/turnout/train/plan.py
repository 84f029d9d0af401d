"""What a training run will take: memory on each device, and time, by arithmetic on the model's shape. Pure; needs no torch.

Every figure is an estimate with its assumption beside it. Peaks inside kernels and fragmentation are not counted: leave a tenth.
"""

from collections.abc import Mapping
from pathlib import Path
from typing import Any

import msgspec
from msgspec import Struct

from turnout.errors import ConfigError
from turnout.train.settings import Settings

GIB = 1 << 30


class Anatomy(Struct, frozen=True):
    """The shape of a decoder-only transformer with grouped key-value heads."""

    layers: int
    width: int
    inner: int
    heads: int
    kv_heads: int
    vocabulary: int
    tied: bool

    @property
    def parameters(self) -> int:
        head = self.width // self.heads
        attention = self.width * (2 * self.heads + 2 * self.kv_heads) * head
        return self.layers * (attention + 3 * self.width * self.inner) + self.vocabulary * self.width * (
            1 if self.tied else 2
        )


KNOWN: Mapping[str, Anatomy] = {
    "Qwen2.5-0.5B": Anatomy(24, 896, 4864, 14, 2, 151_936, True),
    "Qwen2.5-1.5B": Anatomy(28, 1536, 8960, 12, 2, 151_936, True),
    "Qwen2.5-3B": Anatomy(36, 2048, 11_008, 16, 2, 151_936, True),
    "Qwen2.5-7B": Anatomy(28, 3584, 18_944, 28, 4, 152_064, False),
}


class Device(Struct, frozen=True):
    """An accelerator. `memory_gib`; `tflops`: dense bf16 peak; `bandwidth_gbs`: of its memory, GB/s."""

    name: str
    memory_gib: float
    tflops: float
    bandwidth_gbs: float


DEVICES = {
    "a100-40": Device("A100 40 GB", 40, 312, 1555),
    "a100-80": Device("A100 80 GB", 80, 312, 2039),
    "h100": Device("H100 SXM 80 GB", 80, 989, 3350),
    "h200": Device("H200 SXM 141 GB", 141, 989, 4800),
    "l40s": Device("L40S 48 GB", 48, 362, 864),
    "rtx4090": Device("RTX 4090 24 GB", 24, 165, 1008),
}


class Part(Struct, frozen=True):
    """A share of memory (GiB on one device) or of time (seconds of a step)."""

    name: str
    amount: float
    because: str


class Plan(Struct, frozen=True):
    """`fits`: whether the memory is enough with a tenth to spare. `hours`: None where the number of questions is not known."""

    parameters: int
    device: Device
    devices: int
    sharded: bool
    memory: tuple[Part, ...]
    step_s: tuple[Part, ...]
    steps: int | None
    hours: float | None
    fits: bool
    warnings: tuple[str, ...]

    @property
    def memory_gib(self) -> float:
        return sum(part.amount for part in self.memory)


def anatomy_of(model: str) -> Anatomy:
    """The shape of a model: of a folder's `config.json`, or of a known family. Raises ConfigError for an unknown one."""
    described = Path(model) / "config.json"
    if described.is_file():
        config: Any = msgspec.json.decode(described.read_bytes())
        try:
            return Anatomy(
                config["num_hidden_layers"],
                config["hidden_size"],
                config["intermediate_size"],
                config["num_attention_heads"],
                config.get("num_key_value_heads") or config["num_attention_heads"],
                config["vocab_size"],
                bool(config.get("tie_word_embeddings", False)),
            )
        except KeyError as missing:
            raise ConfigError(f"{described} has no {missing.args[0]}", key="model") from None
    for name, known in KNOWN.items():
        if name.lower() in model.lower():
            return known
    raise ConfigError(
        f"the shape of {model} is not known here; name a folder with its config.json (known: {', '.join(KNOWN)})",
        key="model",
    )


def plan(
    settings: Settings,
    device: Device,
    devices: int = 1,
    sharded: bool = False,
    questions: int | None = None,
    filled: float = 0.35,
    busy: float = 0.35,
) -> Plan:
    """What a run of `settings` takes on so many devices.

    `sharded`: weights, gradients and optimiser spread over them (FSDP, ZeRO-3). `questions`: how many there are to train on.
    `filled`: how much of the longest completion an average one takes. `busy`: the share of peak speed that training reaches.
    """
    body = anatomy_of(settings.model)
    chosen = settings.optimisation
    memory = _memory(settings, body, devices if sharded else 1, device)
    step = _step(settings, body, device, devices, filled, busy)
    steps = chosen.steps
    if steps is None and questions is not None:
        steps = max(1, int(chosen.epochs * questions / chosen.questions))
    total = sum(part.amount for part in memory)
    seconds = sum(part.amount for part in step)
    return Plan(
        body.parameters,
        device,
        devices,
        sharded,
        memory,
        step,
        steps,
        None if steps is None else steps * seconds / 3600,
        total <= 0.9 * device.memory_gib,
        tuple(_warnings(settings, body, devices)),
    )


def _memory(settings: Settings, body: Anatomy, shards: int, device: Device) -> tuple[Part, ...]:
    chosen, engine = settings.optimisation, settings.engine
    size = 2 if chosen.bf16 else 4
    n, over = body.parameters, f" / {shards} devices" if shards > 1 else ""
    trained = n
    if chosen.lora is not None:
        head = body.width // body.heads
        outs = (body.heads * head, body.kv_heads * head, body.kv_heads * head, body.width, body.inner, body.inner)
        trained = body.layers * chosen.lora.rank * (sum(outs) + 5 * body.width + body.inner + body.width)
    context = settings.limits.tokens + 512
    rows, kept = chosen.micro_batch, settings.limits.tokens
    parts = [
        Part("weights", n * size / shards, f"{n / 1e9:.2f}e9 parameters x {size} bytes{over}"),
        Part("gradients", trained * size / shards, f"one for each of {trained / 1e9:.2f}e9 trained parameters{over}"),
        Part("optimiser", 2 * trained * size / shards, f"Adam's two moments in the weights' precision{over}"),
    ]
    frozen = chosen.lora is None and (chosen.beta > 0 or settings.teacher.on != "none")
    if frozen:
        parts.append(Part("reference", n * size / shards, f"the frozen start, for the KL and as the teacher{over}"))
    if settings.teacher.on != "none" and settings.teacher.model:
        other = anatomy_of(settings.teacher.model).parameters
        parts.append(Part("teacher", other * size / shards, f"another model, {other / 1e9:.2f}e9 parameters{over}"))
    if chosen.gradient_checkpointing:
        states = rows * context * (body.layers * body.width + 8 * body.width + 3 * body.inner) * size
        parts.append(
            Part("activations", states, f"{rows} x {context} tokens: one state a layer, one layer whole (checkpointed)")
        )
    else:
        states = rows * context * body.layers * (10 * body.width + 3 * body.inner) * size
        parts.append(Part("activations", states, f"{rows} x {context} tokens: all states of all layers"))
    if settings.teacher.on != "none":
        parts.append(
            Part(
                "logits",
                3 * rows * kept * body.vocabulary * size,
                f"{rows} x {kept} x vocabulary: student's, their gradient, teacher's",
            )
        )
    if engine.vllm == "colocate":
        parts.append(
            Part(
                "vLLM", engine.gpu_memory * device.memory_gib * GIB, f"its share of the device, {engine.gpu_memory:.0%}"
            )
        )
    elif engine.vllm == "off":
        cache = 2 * body.layers * body.kv_heads * (body.width // body.heads) * size
        at_once = settings.optimisation.questions * settings.optimisation.group // max(shards, 1)
        parts.append(Part("key-value cache", at_once * context * cache, f"{at_once} trajectories generated at once"))
    return tuple(Part(part.name, part.amount / GIB, part.because) for part in parts)


def _step(
    settings: Settings, body: Anatomy, device: Device, devices: int, filled: float, busy: float
) -> tuple[Part, ...]:
    chosen = settings.optimisation
    rows = chosen.questions * chosen.group
    tokens = rows * (settings.limits.tokens * filled + 512)
    speed = device.tflops * 1e12 * busy * devices
    n = body.parameters
    forward = 2 * n * tokens / speed
    recomputed = 1.33 if chosen.gradient_checkpointing else 1.0
    generated = rows * settings.limits.tokens * filled * 0.5
    at_once = min(rows / devices, 256)
    # Each token of a batch reads all weights once; a wide batch is bound by arithmetic instead.
    per_token = max(2 * n / (device.bandwidth_gbs * 1e9) / at_once, 2 * n / (device.tflops * 1e12 * 0.5)) / devices
    slow = 1.0 if settings.engine.vllm != "off" else 5.0
    parts = [
        Part("generation", generated * per_token * slow, f"half of a completion is the model's, {int(at_once)} rows at once" + (
            "" if slow == 1.0 else "; transformers' generate, some 5 times slower than vLLM")),
        Part("training", 3 * forward * recomputed, "forward and backward" + (", forward twice" if recomputed > 1 else "")),
    ]  # fmt: skip
    if chosen.beta > 0:
        parts.append(Part("reference", forward, "one forward"))
    if settings.teacher.on != "none":
        share = 1.0 if settings.teacher.on == "all" else 0.58
        because = (
            "all trajectories" if share == 1.0 else "58 % of trajectories are poor (the paper's share at theta_P 0.1)"
        )
        parts.append(Part("teacher", forward * share, f"one forward of {because}"))
        parts.append(
            Part(
                "student again", 3 * forward * share * recomputed, "the student's own distribution there, and backward"
            )
        )
    return tuple(parts)


def _warnings(settings: Settings, body: Anatomy, devices: int) -> list[str]:
    chosen, found = settings.optimisation, []
    rows = chosen.questions * chosen.group
    if rows % (chosen.micro_batch * devices):
        found.append(
            f"{rows} trajectories a step cannot be shared by {devices} devices in micro-batches of {chosen.micro_batch}"
        )
    if settings.teacher.model and settings.teacher.on != "none" and settings.teacher.model != settings.model:
        if body.parameters < 4e9:
            found.append(
                "another model as the teacher of a small student: in the paper a 7B teacher made a 1.5B student worse "
                "(MuSiQue F1 15.8 against 32.7 with its own start)"
            )
        else:
            found.append("another model as the teacher: its tokenizer must be the student's")
    if chosen.group < 8:
        found.append(f"groups of {chosen.group} make noisy advantages; the paper has 32")
    return found
