"""A training run from its settings: what is loaded, how the engine is told, what is kept. Needs the extra `train`."""

import time
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

import msgspec
from transformers import AutoModelForCausalLM, TrainerCallback
from transformers.trainer_utils import get_last_checkpoint
from trl import GRPOConfig

from turnout.errors import ConfigError
from turnout.routing.retrieval.protocol import STOPS
from turnout.train.data.question import Question
from turnout.train.rollout import LookUp
from turnout.train.settings import METRICS, Settings
from turnout.train.spelling import tokenizer_of
from turnout.train.trainer import PathRouterTrainer, Prompting, asked, taught


def trained(
    settings: Settings,
    questions: Sequence[Question],
    look_up: LookUp,
    prompt: Prompting = asked,
    gold_prompt: Prompting = taught,
    callbacks: Sequence[TrainerCallback] = (),
) -> PathRouterTrainer:
    """Train, or go on from the last checkpoint in `settings.out`, and leave the model in its folder `model`.

    Raises ConfigError for settings that do not go together.
    """
    trainer = prepared(settings, questions, look_up, prompt, gold_prompt, callbacks)
    checkpoint = get_last_checkpoint(str(settings.out)) if settings.out.is_dir() else None
    trainer.train(resume_from_checkpoint=checkpoint)
    trainer.save_model(str(settings.out / "model"))
    return trainer


def prepared(
    settings: Settings,
    questions: Sequence[Question],
    look_up: LookUp,
    prompt: Prompting = asked,
    gold_prompt: Prompting = taught,
    callbacks: Sequence[TrainerCallback] = (),
) -> PathRouterTrainer:
    """The trainer of a run, ready to go."""
    usable = [question for question in questions if question.gold_passages]
    if not usable:
        raise ConfigError("no question has gold passages, on which credit and teacher rest", key="train")
    tokenizer = tokenizer_of(settings.model)
    model = AutoModelForCausalLM.from_pretrained(
        settings.model, dtype="bfloat16" if settings.optimisation.bf16 else "float32"
    )
    own = [Jsonl(settings.out / METRICS)] if "jsonl" in settings.log_to else []
    return PathRouterTrainer(
        settings,
        usable,
        look_up,
        model,
        tokenizer,
        engine_config(settings),
        prompt,
        gold_prompt,
        peft_config=_adapters(settings),
        callbacks=[*own, *callbacks],
    )


def engine_config(settings: Settings, processes: int | None = None) -> GRPOConfig:
    """The same run in TRL's words. `processes`: how many share it; None to ask the launcher."""
    chosen, engine = settings.optimisation, settings.engine
    world = processes or _world()
    rows = chosen.questions * chosen.group
    accumulated, left = divmod(rows, chosen.micro_batch * world)
    if left or not accumulated:
        raise ConfigError(
            f"a step has {chosen.questions} questions x {chosen.group} trajectories = {rows}, which {world} processes cannot "
            f"share in micro-batches of {chosen.micro_batch}; change questions, group or micro_batch",
            key="optimisation.micro_batch",
        )
    return GRPOConfig(
        output_dir=str(settings.out),
        per_device_train_batch_size=chosen.micro_batch,
        gradient_accumulation_steps=accumulated,
        num_generations=chosen.group,
        max_completion_length=settings.limits.tokens,
        learning_rate=chosen.learning_rate,
        lr_scheduler_type="constant",
        num_train_epochs=chosen.epochs,
        max_steps=chosen.steps or -1,
        beta=chosen.beta,
        epsilon=chosen.epsilon,
        temperature=chosen.temperature,
        max_grad_norm=chosen.max_grad_norm,
        loss_type="grpo",
        scale_rewards="group",
        seed=chosen.seed,
        bf16=chosen.bf16,
        gradient_checkpointing=chosen.gradient_checkpointing,
        use_cpu=engine.device == "cpu",
        logging_steps=1,
        save_steps=settings.save_every,
        save_total_limit=2,
        disable_tqdm="console" not in settings.log_to,
        report_to=[name for name in settings.log_to if name in ("tensorboard", "trackio")],
        **_generation(settings),
    )


def _generation(settings: Settings) -> Mapping[str, Any]:
    engine = settings.engine
    if engine.vllm == "off":
        return {}
    chosen: dict[str, Any] = {
        "use_vllm": True,
        "vllm_mode": engine.vllm,
        "vllm_max_model_length": 2 * settings.limits.tokens,
        "generation_kwargs": {"stop": list(STOPS), "include_stop_str_in_output": True},
    }
    if engine.vllm == "server":
        if not engine.server_url:
            raise ConfigError(
                'vllm = "server" needs the address of `trl vllm-serve` in server_url', key="engine.server_url"
            )
        return {**chosen, "vllm_server_base_url": engine.server_url}
    return {
        **chosen,
        "vllm_gpu_memory_utilization": engine.gpu_memory,
        "vllm_tensor_parallel_size": engine.tensor_parallel,
    }


def _adapters(settings: Settings) -> Any:
    lora = settings.optimisation.lora
    if lora is None:
        return None
    from peft import LoraConfig

    modules = list(lora.modules) or "all-linear"
    return LoraConfig(
        r=lora.rank, lora_alpha=lora.alpha, lora_dropout=lora.dropout, target_modules=modules, task_type="CAUSAL_LM"
    )


def _world() -> int:
    import os

    return int(os.environ.get("WORLD_SIZE", "1"))


class Jsonl(TrainerCallback):
    """Writes the metrics of each step as one line. A run that goes on from a checkpoint drops the lines after it first."""

    def __init__(self, path: Path) -> None:
        self._path = path
        self._began = time.time()

    def on_train_begin(self, args: Any, state: Any, control: Any, **_: Any) -> None:
        if not state.is_world_process_zero or not self._path.exists():
            return
        lines = self._path.read_bytes().splitlines()
        kept = [line for line in lines if _step(line) is not None and (_step(line) or 0) <= state.global_step]
        self._path.write_bytes(b"".join(line + b"\n" for line in kept))

    def on_log(self, args: Any, state: Any, control: Any, logs: Mapping[str, Any] | None = None, **_: Any) -> None:
        if not state.is_world_process_zero or not logs:
            return
        self._path.parent.mkdir(parents=True, exist_ok=True)
        row = {"step": state.global_step, "at": round(time.time() - self._began, 3), **logs}
        with self._path.open("ab") as file:
            file.write(msgspec.json.encode(row) + b"\n")


def _step(line: bytes) -> int | None:
    try:
        row = msgspec.json.decode(line)
    except msgspec.DecodeError:
        return None  # cut when the run was killed
    return row.get("step") if isinstance(row, dict) else None
