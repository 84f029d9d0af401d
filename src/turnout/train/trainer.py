"""PathRouter on TRL's GRPO trainer: routed advantages, and a frozen teacher on the tokens of poor trajectories.

TRL owns the optimiser, the processes and the accelerators (DDP, FSDP, DeepSpeed, vLLM); this adds what the method needs at the
three places it leaves open: the rollout, the advantages, the loss. Needs the extra `train`.
"""

import os
import time
from collections.abc import Callable, Sequence
from contextlib import nullcontext
from typing import Any

import torch
from torch import Tensor

os.environ.setdefault("TRL_EXPERIMENTAL_SILENCE", "1")  # `rollout_func` is pinned and tested

from accelerate.utils import gather_object
from datasets import Dataset
from transformers import AutoModelForCausalLM
from trl import GRPOConfig, GRPOTrainer
from trl.models.utils import prepare_deepspeed, prepare_fsdp, unwrap_model_for_generation
from trl.trainer.utils import RepeatSampler

from turnout.routing.retrieval.protocol import STOPS, Role, gold_instructions, instructions
from turnout.train.credit import Credit, Episode, Route, credit
from turnout.train.data.question import Question
from turnout.train.divergence import forward_kl, row_means, selected_mean, top_k_targets
from turnout.train.generation import closers, generated
from turnout.train.rollout import LookUp, Rollout, Turned, rollouts
from turnout.train.settings import Settings
from turnout.train.spelling import spelling_of

_ROLES = tuple(Role)
Prompting = Callable[[Question], str]


def asked(question: Question) -> str:
    """What the agent is told."""
    return instructions(question.question)


def taught(question: Question) -> str:
    """What the teacher is told: the same, and the gold evidence."""
    return gold_instructions(question.question, [passage.text for passage in question.gold_passages])


class PathRouterTrainer(GRPOTrainer):
    """GRPO whose advantages are scaled by the route of each trajectory, and whose loss has the selective teacher's term.

    `questions`: to train on; each needs gold passages. `look_up`: the retrieval, many look-ups at once. `prompt`, `gold_prompt`:
    what agent and teacher are told. All other arguments go to `GRPOTrainer`.
    """

    _tag_names = ("turnout", "pathrouter")

    def __init__(
        self,
        settings: Settings,
        questions: Sequence[Question],
        look_up: LookUp,
        model: Any,
        tokenizer: Any,
        args: GRPOConfig,
        prompt: Prompting = asked,
        gold_prompt: Prompting = taught,
        **more: Any,
    ) -> None:
        self._settings = settings
        self._questions = questions
        self._look_up = look_up
        self._prompt, self._gold_prompt = prompt, gold_prompt
        self._spelling = spelling_of(tokenizer)
        self._closers = closers(tokenizer)
        self._asked: list[Question] = []
        self._done: list[tuple[Rollout, Credit]] = []
        self._seconds: dict[str, float] = {}
        rows = Dataset.from_dict(
            {"prompt": [prompt(question) for question in questions], "number": list(range(len(questions)))}
        )
        super().__init__(
            model=model,
            reward_funcs=[_reward],
            args=args,
            train_dataset=rows,
            processing_class=tokenizer,
            rollout_func=_rolled_out,
            **more,
        )
        self._teacher: Any = self._frozen() if settings.teacher.on != "none" else None

    def _get_train_sampler(self, dataset: Any = None) -> Any:
        args = self.args
        return _Ordered(
            lambda: int((self.state.epoch or 0.0) + 1e-6),
            data_source=self.train_dataset if dataset is None else dataset,
            mini_repeat_count=self.num_generations,
            batch_size=args.generation_batch_size // self.num_generations,
            repeat_count=self.num_iterations * args.steps_per_generation,
            shuffle=self.shuffle_dataset,
            seed=args.seed,
        )

    # Rollouts

    def _generate_and_score_completions(self, inputs: list[dict[str, Any]]) -> dict[str, Any]:
        self._asked = [self._questions[row["number"]] for row in inputs]
        out: dict[str, Any] = super()._generate_and_score_completions(inputs)
        credits = [earned for _, earned in self._done]
        device = out["advantages"].device
        out["advantages"] = out["advantages"] * torch.tensor([earned.weight for earned in credits], device=device)
        self._measure()
        if self._teacher is not None:
            self._teach(out)
        return out

    def roll_out(self) -> list[Rollout]:
        """Answer the questions of this batch; every process makes the same number of generate calls."""
        began = time.perf_counter()
        prompts = [self._prompt(question) for question in self._asked]
        texts = [question.question for question in self._asked]
        limits = self._settings.limits
        done = rollouts(texts, prompts, self._spelling, self._generated, self._looked_up, limits, self._anyone)
        self._took("rollout", began)
        return done

    def _anyone(self, active: int) -> bool:
        """Whether any process has an agent at work."""
        if self.accelerator.num_processes == 1:
            return active > 0
        total = self.accelerator.reduce(torch.tensor(active, device=self.accelerator.device), reduction="sum")
        return bool(total.item())

    def _looked_up(self, lookups: Any) -> Any:
        began = time.perf_counter()
        found = self._look_up(lookups)
        self._took("retrieval", began)
        return found

    def _generated(self, contexts: list[list[int]], most: int) -> list[Turned]:
        if self.use_vllm:
            ids, logprobs = self._generate_single_turn(contexts, None, {}, 1)
            return [self._vllm_turn(one, probs) for one, probs in zip(ids, logprobs, strict=True)]
        rows, done = self._settings.engine.rows, []
        for i in range(self._most(-(-len(contexts) // rows))):
            part = contexts[i * rows : (i + 1) * rows]
            # A process with nothing left generates a row for nobody: generation is collective where weights are spread.
            done += self._transformers_turns(part or contexts[:1], most)[: len(part)]
        return done

    def _transformers_turns(self, contexts: list[list[int]], most: int) -> list[Turned]:
        with (
            unwrap_model_for_generation(
                self.model_wrapped,
                self.accelerator,
                gather_deepspeed3_params=self.args.ds3_gather_for_generation,
                generation_kwargs=self.generation_kwargs,
                gradient_checkpointing_kwargs=self.args.gradient_checkpointing_kwargs,
            ) as model,
            torch.no_grad(),
            self._dist.summon_full_params(self.model_wrapped, recurse=False),
        ):
            turns = generated(
                model,
                contexts,
                self._tokenizer,
                self._closers,
                most,
                self.eos_token_ids,
                do_sample=True,
                temperature=self.temperature,
                top_k=0,
            )
        return [Turned(ids, cut) for ids, cut in turns]

    def _most(self, calls: int) -> int:
        """How many calls the process with the most work makes."""
        if self.accelerator.num_processes == 1:
            return calls
        return int(self.accelerator.gather(torch.tensor([calls], device=self.accelerator.device)).max().item())

    def _vllm_turn(self, ids: list[int], logprobs: list[float]) -> Turned:
        text = self._spelling.decode(ids).rstrip()
        ended = text.endswith(STOPS) or (ids and ids[-1] in self.eos_token_ids)
        return Turned(ids, not ended, logprobs)

    def take(self, done: Sequence[Rollout]) -> list[float]:
        """Score rollouts of this batch; their rewards."""
        settings = self._settings
        self._done = [
            (
                one,
                credit(
                    episode(one, question), settings.thresholds, settings.weights, settings.shaping, settings.route_by
                ),
            )
            for one, question in zip(done, self._asked, strict=True)
        ]
        return [earned.reward for _, earned in self._done]

    # The teacher

    def _frozen(self) -> Any:
        """The teacher's model, prepared as TRL prepares its reference; None where the student's own start is had by switching its
        adapters off."""
        named = self._settings.teacher.model
        if not named:
            if self.ref_model is not None:
                return self.ref_model
            if hasattr(self.accelerator.unwrap_model(self.model), "disable_adapter"):
                return self.model
        path = named or self._settings.model
        dtype = next(self.model.parameters()).dtype
        model = AutoModelForCausalLM.from_pretrained(path, dtype=dtype)
        if model.config.vocab_size != self.model.config.vocab_size:
            raise ValueError(
                f"the teacher {path} has a vocabulary of {model.config.vocab_size}, the student one of "
                f"{self.model.config.vocab_size}: they must share a tokenizer"
            )
        model.requires_grad_(False)
        if self.is_deepspeed_enabled:
            return prepare_deepspeed(model, self.accelerator)
        if self.is_fsdp_enabled:
            return prepare_fsdp(model, self.accelerator)
        return self.accelerator.prepare_model(model, evaluation_mode=True)

    def _teach(self, out: dict[str, Any]) -> None:
        """Add what the teacher needs to correct this batch: its prompts, which rows, which tokens.

        Its distributions are made when a micro-batch comes to its loss: those of a whole batch would not fit anywhere.
        """
        device, width = out["completion_ids"].device, out["completion_ids"].size(1)
        everyone = self._settings.teacher.on == "all"
        low = [everyone or earned.path < self._settings.thresholds.path for _, earned in self._done]
        roles = torch.full((len(low), width), -1, dtype=torch.int8, device=device)
        for row, (one, _) in enumerate(self._done):
            roles[row, : len(one.roles)] = torch.tensor([_ROLES.index(role) for role in one.roles], device=device)
        # Without a token to correct, a trajectory takes no part in the mean.
        selected = torch.tensor(low, device=device) & (self._corrected(roles).sum(dim=1) > 0)
        prompts = [self._spelling.prompt(self._gold_prompt(question)) for question in self._asked]
        longest = max(map(len, prompts))
        pad = self._tokenizer.pad_token_id
        out["teacher_ids"] = torch.tensor([[pad] * (longest - len(ids)) + ids for ids in prompts], device=device)
        out["teacher_mask"] = torch.tensor(
            [[0] * (longest - len(ids)) + [1] * len(ids) for ids in prompts], device=device
        )
        out["teacher_roles"] = roles
        out["teacher_selected"] = selected.float()
        out["teacher_total"] = self.accelerator.reduce(selected.sum(), reduction="sum").float()

    def _corrected(self, roles: Tensor) -> Tensor:
        """Which positions the teacher corrects: (B, C), 0 or 1."""
        chosen = torch.tensor([_ROLES.index(role) for role in self._settings.teacher.roles], device=roles.device)
        return torch.isin(roles, chosen.to(roles.dtype)).float()

    # The loss

    def _compute_loss(self, model: Any, inputs: dict[str, Any]) -> Tensor:
        loss: Tensor = super()._compute_loss(model, inputs)
        if "teacher_ids" not in inputs:
            return loss
        teaching = self.teacher_loss(model, inputs)
        weight = self.teacher_weight
        mode = "train" if self.model.training else "eval"
        # The average over micro-batches is reported, so each states its share of the whole.
        accumulated = self.current_gradient_accumulation_steps if self.model.training else 1
        self._metrics[mode]["teacher/kl"].append(
            self._summed(teaching.detach()) / self.accelerator.num_processes * accumulated
        )
        self._metrics[mode]["teacher/lambda"].append(weight)
        return loss + weight * teaching

    @property
    def teacher_weight(self) -> float:
        """lambda at this step: it grows over the warm-up, then stays."""
        teacher = self._settings.teacher
        if not teacher.warmup_steps:
            return teacher.weight
        step: int = self.state.global_step
        return teacher.weight * min(1.0, step / teacher.warmup_steps)

    def teacher_loss(self, model: Any, inputs: dict[str, Any]) -> Tensor:
        """This micro-batch's share of L_TKL (Eq. 7), such that the shares of all micro-batches and processes of a step add up to
        the mean over all selected trajectories."""
        selected = inputs["teacher_selected"]
        rows = selected.nonzero().flatten()
        if not len(rows):
            if self.accelerator.num_processes == 1:
                return selected.sum() * 0.0
            rows = torch.zeros(
                1, dtype=torch.long, device=selected.device
            )  # all processes call the models equally often: a call synchronises buffers, or weights
        completions, mask = inputs["completion_ids"][rows], inputs["completion_mask"][rows]
        ids, logp = self._targets(inputs["teacher_ids"][rows], inputs["teacher_mask"][rows], completions, mask)
        began = time.perf_counter()
        logits = _completed(model, inputs["prompt_ids"][rows], inputs["prompt_mask"][rows], completions, mask)
        divergence = forward_kl(logits, ids, logp)
        roles = inputs["teacher_roles"][rows]
        means = row_means(divergence, self._corrected(roles))
        share = selected_mean(means, selected[rows], inputs["teacher_total"])
        self._measure_divergence(divergence.detach(), roles, selected[rows])
        self._took("student forward", began)
        # Gradients are averaged over processes afterwards; a generation that feeds several steps counts its rows once for each.
        window = (
            self.args.steps_per_generation / self.current_gradient_accumulation_steps if self.model.training else 1.0
        )
        return share * self.accelerator.num_processes * window

    def _targets(self, ids: Tensor, ids_mask: Tensor, completions: Tensor, mask: Tensor) -> tuple[Tensor, Tensor]:
        """The teacher's likeliest tokens at each position of the completions, and their log-probabilities."""
        began = time.perf_counter()
        own = self._teacher is self.model
        off = self.accelerator.unwrap_model(self.model).disable_adapter() if own else nullcontext()
        with torch.no_grad(), off:
            logits = _completed(self._teacher, ids, ids_mask, completions, mask)
            targets = top_k_targets(logits, self._settings.teacher.top_k)
        self._took("teacher", began)
        return targets

    # Metrics

    def _took(self, part: str, began: float) -> None:
        self._seconds[part] = self._seconds.get(part, 0.0) + time.perf_counter() - began

    def _summed(self, value: Tensor) -> float:
        return float(self.accelerator.reduce(value, reduction="sum").item())

    def _measure(self) -> None:
        """Put what became of this batch, over all processes, into the metrics of the step."""
        mode = "train" if self.model.training else "eval"
        metrics = self._metrics[mode]
        rows = gather_object([_measured(one, earned) for one, earned in self._done])
        for name in sorted({name for row in rows for name in row}):
            values = [row[name] for row in rows if name in row]
            metrics[name].append(sum(values) / len(values))
        for route in Route:
            metrics[f"route/{route.value}"].append(
                sum(row["_route"] == list(Route).index(route) for row in rows) / len(rows)
            )
        metrics.pop("_route", None)

    def _measure_divergence(self, divergence: Tensor, roles: Tensor, selected: Tensor) -> None:
        """The mean divergence on the tokens of each role, of the trajectories the teacher corrects (of this process)."""
        metrics = self._metrics["train" if self.model.training else "eval"]
        for number, role in enumerate(_ROLES):
            at = (roles == number) * selected.unsqueeze(1)
            if role is not Role.OBSERVATION and at.any():
                metrics[f"teacher/kl_{role.value}"].append(((divergence * at).sum() / at.sum()).item())

    def log(self, logs: dict[str, float], start_time: float | None = None) -> None:
        """Report a step, and where its time went."""
        if self.model.training:
            for part, seconds in self._seconds.items():
                self._metrics["train"][f"seconds/{part.replace(' ', '_')}"].append(seconds)
            self._seconds.clear()
        super().log(logs, start_time)


def _completed(model: Any, prompt: Tensor, prompt_mask: Tensor, completion: Tensor, mask: Tensor) -> Tensor:
    """The logits of each token of the completions: (B, C, V)."""
    logits: Tensor = model(
        input_ids=torch.cat([prompt, completion], dim=1),
        attention_mask=torch.cat([prompt_mask, mask], dim=1),
        logits_to_keep=completion.size(1) + 1,
    ).logits
    return logits[:, :-1]


class _Ordered(RepeatSampler):
    """TRL's sampler, whose order depends on the epoch alone: its own generator starts anew in a run that is resumed, which then
    would repeat the first epoch."""

    def __init__(self, epoch: Callable[[], int], **more: Any) -> None:
        super().__init__(**more)
        self._epoch = epoch

    def __iter__(self) -> Any:
        if self.shuffle:
            self.generator.manual_seed(self.seed + self._epoch())
        yield from super().__iter__()


def episode(one: Rollout, question: Question) -> Episode:
    """What credit reads of a rollout."""
    done = one.trajectory
    return Episode(
        done.answer,
        question.answers,
        tuple(passage.text for passage in question.gold_passages),
        tuple(tuple(fact.text for fact in facts) for facts in done.lookups),
        len(done.steps),
        done.well_formed,
        done.ended in ("turns", "cut", "failed"),
    )


def _measured(one: Rollout, earned: Credit) -> dict[str, float]:
    done = one.trajectory
    return {
        "path/correct": float(earned.correct),
        "path/f1": earned.f1,
        "path/p": earned.path,
        "path/coverage": earned.coverage,
        "path/lookups": float(len(done.lookups)),
        "path/answered": float(done.ended == "answered"),
        "path/weight": earned.weight,
        **{f"terms/{name}": value for name, value in earned.terms.items()},
        "_route": float(list(Route).index(earned.route)),
    }


def _rolled_out(prompts: list[str], trainer: PathRouterTrainer) -> dict[str, Any]:
    """TRL's `rollout_func`."""
    done = trainer.roll_out()
    return {
        "prompt_ids": [one.prompt for one in done],
        "completion_ids": [one.completion for one in done],
        "logprobs": [one.logprobs for one in done] if trainer.use_vllm else None,
        "env_mask": [one.sampled for one in done],
        "earned": trainer.take(done),
    }


def _reward(prompts: Any, completions: Any, earned: list[float], **_: Any) -> list[float]:
    """TRL's reward function: what was earned is known since the rollout."""
    return earned
