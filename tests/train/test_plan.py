"""Presets, settings from files, and plans, without the engine."""

import json
from pathlib import Path

import pytest

from turnout.cli.app import run
from turnout.errors import ConfigError
from turnout.routing.retrieval.protocol import Role
from turnout.train.loading import LAUNCHERS, PRESETS, load_settings, preset, read_settings
from turnout.train.plan import DEVICES, KNOWN, anatomy_of, plan

PAPER = read_settings(preset("qwen2.5-7b"))


def test_presets_hold_the_papers_hyperparameters() -> None:
    for name in PRESETS:
        settings = read_settings(preset(name))
        chosen = settings.optimisation
        assert (chosen.learning_rate, chosen.questions, chosen.group, chosen.epochs) == (1e-6, 128, 32, 3.0)
        assert (settings.limits.turns, settings.inference_turns, chosen.epsilon, chosen.beta) == (5, 10, 0.2, 0.01)
        assert (settings.teacher.top_k, settings.teacher.weight, settings.teacher.warmup_steps) == (128, 0.1, 20)
        assert settings.teacher.roles == (Role.REASONING, Role.QUERY)
        assert (settings.thresholds.correct, settings.thresholds.path) == (0.5, 0.1)
        assert (settings.weights.full, settings.weights.down, settings.weights.preserve) == (1.0, 0.5, 0.3)
        shaping = settings.shaping
        assert (shaping.path, shaping.explored, shaping.stopped_early) == (0.5, 0.2, -0.25)
        assert (shaping.ran_out, shaping.repeated, shaping.base) == (-0.5, -0.1, -1.0)
    assert all("num_processes" in preset(name) for name in LAUNCHERS)
    with pytest.raises(ConfigError, match=r"there are qwen2\.5-1\.5b"):
        preset("gpt")


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("model = 'x'\n", "required field `train`"),
        (preset("qwen2.5-3b") + "\n[teecher]\n", "unknown field `teecher`"),
        (preset("qwen2.5-3b").replace("group = 32", "group = 1"), "optimisation.group"),
        (preset("qwen2.5-3b").replace("down = 0.5", "down = -0.5"), "0 or more"),
        ("model = ", "Invalid"),
    ],
)
def test_wrong_settings_are_named(tmp_path: Path, text: str, message: str) -> None:
    file = tmp_path / "train.toml"
    file.write_text(text)
    with pytest.raises(ConfigError, match=message) as caught:
        load_settings(file)
    assert "train.toml" in str(caught.value)


def test_parameters_are_those_the_makers_state() -> None:
    billions = {name: round(shape.parameters / 1e9, 2) for name, shape in KNOWN.items()}
    assert billions == {"Qwen2.5-0.5B": 0.49, "Qwen2.5-1.5B": 1.54, "Qwen2.5-3B": 3.09, "Qwen2.5-7B": 7.62}


def test_a_folder_says_its_own_shape(tmp_path: Path) -> None:
    described = {
        "num_hidden_layers": 2, "hidden_size": 8, "intermediate_size": 16, "num_attention_heads": 2, "vocab_size": 10,
        "tie_word_embeddings": True,
    }  # fmt: skip
    (tmp_path / "config.json").write_text(json.dumps(described))
    # Two layers of four 8 x 8 projections and three 8 x 16, and ten embeddings of 8.
    assert anatomy_of(str(tmp_path)).parameters == 2 * (4 * 64 + 3 * 128) + 80
    del described["hidden_size"]
    (tmp_path / "config.json").write_text(json.dumps(described))
    with pytest.raises(ConfigError, match="no hidden_size"):
        anatomy_of(str(tmp_path))
    with pytest.raises(ConfigError, match="not known here"):
        anatomy_of("someone/else")


def test_weights_spread_over_devices_take_a_share_of_each() -> None:
    alone, spread = plan(PAPER, DEVICES["h100"]), plan(PAPER, DEVICES["h100"], 8, sharded=True)
    memory = {part.name: part.amount for part in alone.memory}
    assert memory["weights"] == pytest.approx(7.62 * 2e9 / 2**30, rel=0.01)
    assert {part.name: part.amount for part in spread.memory}["weights"] == pytest.approx(memory["weights"] / 8)
    assert (alone.fits, spread.fits) == (False, True)
    assert sum(part.amount for part in spread.step_s) == pytest.approx(
        sum(part.amount for part in alone.step_s) / 8, rel=0.2
    )


def test_the_teacher_costs_what_it_adds() -> None:
    import msgspec

    off = msgspec.structs.replace(PAPER, teacher=msgspec.structs.replace(PAPER.teacher, on="none"))
    with_it = {part.name for part in plan(PAPER, DEVICES["h100"]).step_s}
    assert with_it - {part.name for part in plan(off, DEVICES["h100"]).step_s} == {"teacher", "student again"}


def test_a_plan_warns_of_what_made_small_students_worse() -> None:
    import msgspec

    small = read_settings(preset("qwen2.5-1.5b"))
    strong = msgspec.structs.replace(
        small, teacher=msgspec.structs.replace(small.teacher, model="Qwen/Qwen2.5-7B-Instruct")
    )
    assert any("made a 1.5B student worse" in note for note in plan(strong, DEVICES["h100"]).warnings)
    assert plan(small, DEVICES["h100"], 8).warnings == ()
    assert any("cannot be shared" in note for note in plan(small, DEVICES["h100"], 3).warnings)


def test_the_guides_commands(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.chdir(tmp_path)
    assert run(["train", "preset", "qwen2.5-3b"]) == 0
    (tmp_path / "train.toml").write_text(capsys.readouterr().out)
    plain = ["train", "plan", "train.toml", "--device", "h100", "--devices", "8", "--sharded", "--questions", "5120"]
    assert run(plain) == 0
    said = capsys.readouterr().out
    assert "3.09e9 parameters on 8 x H100 SXM 80 GB, weights spread" in said
    assert "120 steps: about" in said
    assert run([*plain, "--json"]) == 0
    assert json.loads(capsys.readouterr().out)["steps"] == 120
    assert run(["train", "plan", "train.toml", "--device", "abacus"]) == 4
    assert "no device is called abacus" in capsys.readouterr().err


def test_without_the_extra_one_line_says_what_to_install(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setattr("importlib.util.find_spec", lambda name: None)
    for command in (["bench", "--out", str(tmp_path)], ["evaluate", "m", "--data", "x.jsonl"]):
        assert run(["train", *command]) == 2
        told = capsys.readouterr().err.strip()
        assert told == "error: training needs torch, transformers, trl; pip install 'turnout[train]'"
