"""The trainer on TRL: the whole of it in seconds, gradients that do not depend on how a batch is divided, exact resuming."""

import os
import signal
import subprocess
import sys
from pathlib import Path
from typing import Any

import msgspec
import pytest
from tests.train import small

torch = pytest.importorskip("torch", reason="needs the extra `train`")
pytest.importorskip("trl", reason="needs the extra `train`")

ROOT = Path(__file__).parents[2]
ENVIRONMENT = {
    **os.environ,
    "PYTHONPATH": os.pathsep.join([str(ROOT / "src"), str(ROOT)]),
    "OMP_NUM_THREADS": "1",
    "CUDA_VISIBLE_DEVICES": "",
    # Several processes meet on loopback: this machine's name need not resolve to an address of it.
    **({"GLOO_SOCKET_IFNAME": "lo"} if sys.platform == "linux" else {}),
}
pytestmark = pytest.mark.filterwarnings("ignore::DeprecationWarning", "ignore::FutureWarning", "ignore::UserWarning")


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    torch.set_num_threads(1)
    path = tmp_path_factory.mktemp("small")
    small.model_at(path)
    return path


def rows(path: Path) -> list[dict[str, Any]]:
    return [msgspec.json.decode(line) for line in path.read_bytes().splitlines()]


def test_a_whole_run_reports_each_step_and_leaves_a_model(folder: Path, tmp_path: Path) -> None:
    from turnout.train.run import trained

    chosen = small.settings(folder, out=tmp_path / "run")
    trained(chosen, small.QUESTIONS, small.searched, small.asked, small.taught)
    steps = [row for row in rows(tmp_path / "run" / "metrics.jsonl") if "reward" in row]
    assert [row["step"] for row in steps] == [1, 2, 3, 4]
    for row in steps:
        assert sum(value for name, value in row.items() if name.startswith("route/")) == pytest.approx(1.0)
        assert row["teacher/lambda"] == pytest.approx(0.1)
        assert {"seconds/rollout", "seconds/teacher", "terms/format", "path/p", "kl"} <= set(row)
    assert any(row["teacher/kl"] > 0 for row in steps)
    assert (tmp_path / "run" / "model" / "model.safetensors").exists()


def stepped(folder: Path, out: Path, micro_batch: int, processes: int = 1) -> dict[str, Any]:
    script = [str(Path(small.__file__)), str(folder), str(out), str(micro_batch)]
    launch = (
        ["-m", "torch.distributed.run", "--standalone", "--local-addr", "127.0.0.1", "--nproc_per_node", str(processes)]
        if processes > 1
        else []
    )
    done = subprocess.run(
        [sys.executable, *launch, *script], env=ENVIRONMENT, capture_output=True, text=True, timeout=300
    )
    assert done.returncode == 0, done.stderr[-3000:]
    weights: dict[str, Any] = torch.load(out)
    return weights


def test_a_step_is_the_same_however_the_batch_is_divided(folder: Path, tmp_path: Path) -> None:
    small.one_step(folder, tmp_path / "whole.pt", 16)
    small.one_step(folder, tmp_path / "parts.pt", 4)
    whole, parts = torch.load(tmp_path / "whole.pt"), torch.load(tmp_path / "parts.pt")
    ranks = stepped(folder, tmp_path / "ranks.pt", 4, processes=2)
    from transformers import AutoModelForCausalLM

    start = AutoModelForCausalLM.from_pretrained(folder / "model").state_dict()
    moved = max((whole[name] - start[name]).abs().max().item() for name in whole)
    assert moved > 1e-3
    for name, value in whole.items():
        torch.testing.assert_close(parts[name], value, rtol=0, atol=1e-5)
        torch.testing.assert_close(ranks[name], value, rtol=0, atol=1e-5)


def test_a_killed_run_goes_on_with_the_losses_it_would_have_had(folder: Path, tmp_path: Path) -> None:
    from transformers import TrainerCallback

    from turnout.train.run import trained

    class Kill(TrainerCallback):  # type: ignore[misc]
        def on_save(self, args: Any, state: Any, control: Any, **_: Any) -> None:
            if state.global_step == 2:
                os.kill(os.getpid(), signal.SIGKILL)

    chosen = small.settings(folder, out=tmp_path / "whole", save_every=2)
    trained(chosen, small.QUESTIONS, small.searched, small.asked, small.taught)
    killed = msgspec.structs.replace(chosen, out=tmp_path / "killed")
    child = os.fork()
    if child == 0:
        trained(killed, small.QUESTIONS, small.searched, small.asked, small.taught, [Kill()])
        os._exit(0)
    assert os.WTERMSIG(os.waitpid(child, 0)[1]) == signal.SIGKILL
    assert not (tmp_path / "killed" / "model").exists()
    trained(killed, small.QUESTIONS, small.searched, small.asked, small.taught)
    told = [[(row["step"], row["loss"], row["reward"]) for row in rows(path / "metrics.jsonl") if "loss" in row]
            for path in (chosen.out, killed.out)]  # fmt: skip
    assert told[0] == told[1]
    assert len(told[0]) == 4
