"""Measures the training loop of CleanRL's Rainbow in Atari, in frames per second. `loop.py` measures ours.

    git clone https://github.com/vwxyzjn/cleanrl ../cleanrl
    python3 -m venv ../peer
    ../peer/bin/pip install torch "gymnasium>=1.1" ale-py tyro tensorboard opencv-python-headless -e .
    ../peer/bin/python benchmarks/cleanrl_loop.py ../cleanrl --out results/speed/cleanrl.json

CleanRL's script runs unchanged, with its own defaults except for game, length, warm-up and replay capacity. Shims
restore names that Gymnasium has changed, and conversions that NumPy 2.4 no longer allows. The measured time includes
the environment, the replay buffer and one update for every four agent steps. The first updates are not timed. Without
OpenCV, a substitute resizes the frames, and the table says so. On a busy CPU, set OMP_NUM_THREADS=1.
"""

import argparse
import contextlib
import os
import runpy
import sys
import tempfile
import time
import warnings
from functools import cache
from importlib.metadata import version
from importlib.util import find_spec
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import ale_py
import gymnasium
import in_one_line  # noqa: F401
import numpy as np
import torch
from gymnasium.vector import AutoresetMode, SyncVectorEnv
from torch.optim.optimizer import register_optimizer_step_post_hook

from multihorizon.errors import InputError
from multihorizon.files import write_json

SCRIPT = Path("cleanrl", "rainbow_atari.py")
FRAMES, STEPS = 4, 4  # frames per agent step, agent steps per update
PART = 50  # each measurement of the speed covers 50 updates; the first 50 updates are not timed


class Worlds(SyncVectorEnv):
    """One environment that resets in the step that ends an episode, as CleanRL's script expects.

    Rewards and actions become scalars, because NumPy 2.4 no longer converts arrays with one element to scalars.
    """

    def __init__(self, makers: Any) -> None:
        super().__init__(makers, autoreset_mode=AutoresetMode.SAME_STEP)

    def step(self, actions: Any) -> Any:
        observations, rewards, terminations, truncations, told = super().step(actions)
        actions.shape = ()
        told["final_observation"] = told.get("final_obs")
        if episode := told.pop("final_info", {}).get("episode"):
            told["final_info"] = [{"episode": {name: values[0] for name, values in episode.items()}}]
        return observations, rewards[0], terminations, truncations, told


@cache
def shares(of: int, to: int) -> np.ndarray:
    """Returns a matrix [to, of]. Multiplication by this matrix shrinks a row of pixels by averaging."""
    size, pixel = of / to, np.arange(of)
    begin = np.arange(to)[:, None] * size
    return (np.clip(np.minimum(begin + size, pixel + 1) - np.maximum(begin, pixel), 0, None) / size).astype(np.float32)


def smaller(image: np.ndarray, size: tuple[int, int], interpolation: int) -> np.ndarray:
    """Shrinks a colour image by averaging over areas, as `cv2.resize` does with INTER_AREA."""
    height, width, colours = image.shape
    rows = shares(height, size[1]) @ image.reshape(height, -1).astype(np.float32)
    return np.rint(shares(width, size[0]) @ rows.reshape(-1, width, colours)).astype(np.uint8)


def put_in_place() -> bool:
    """Installs the shims that the script needs, and returns whether OpenCV is available."""
    gymnasium.register_envs(ale_py)
    names: Any = gymnasium.wrappers
    names.GrayScaleObservation = names.GrayscaleObservation
    names.FrameStack = names.FrameStackObservation
    gymnasium.vector.SyncVectorEnv = Worlds  # type: ignore[misc, assignment]
    warnings.filterwarnings("ignore", category=DeprecationWarning)
    if find_spec("cv2"):
        return True
    ocl = SimpleNamespace(setUseOpenCL=lambda use: None)
    sys.modules["cv2"] = SimpleNamespace(resize=smaller, INTER_AREA=3, ocl=ocl)  # type: ignore[assignment]
    return False


def times_of_updates(options: argparse.Namespace) -> np.ndarray:
    checkout, times = options.checkout.resolve(), []
    sys.path.insert(0, str(checkout))
    sys.argv = [SCRIPT.name, "--env-id", f"{options.game}NoFrameskip-v4", "--buffer-size", str(options.buffer_size)]
    sys.argv += ["--learning-starts", str(options.warm_up), "--total-timesteps", str(options.warm_up + options.steps)]
    sys.argv += ["--no-cuda"] if options.cpu else []
    register_optimizer_step_post_hook(lambda *_: times.append(time.perf_counter()))
    with tempfile.TemporaryDirectory() as folder, contextlib.chdir(folder), contextlib.redirect_stdout(sys.stderr):
        runpy.run_path(str(checkout / SCRIPT), run_name="__main__")
    return np.array(times[PART:])


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("checkout", type=Path, metavar="CHECKOUT", help="folder of a clone of CleanRL")
    parser.add_argument("--game", default="Seaquest")
    parser.add_argument("--warm-up", type=int, default=1000)
    parser.add_argument("--steps", type=int, default=2000, help="agent steps after the warm-up (default: %(default)s)")
    parser.add_argument(
        "--buffer-size",
        type=int,
        default=100_000,
        help="replay capacity (default: 100,000; CleanRL's default: 1,000,000)",
    )
    parser.add_argument("--cpu", action="store_true")
    parser.add_argument("--out", type=Path, required=True)
    options = parser.parse_args()
    if not (options.checkout / SCRIPT).is_file():
        raise InputError(f"{options.checkout} has no {SCRIPT}: give a folder with a clone of CleanRL")
    if options.steps < (least := STEPS * 3 * PART):
        raise InputError(f"--steps must be at least {least}, got {options.steps}")
    cuda = torch.cuda.is_available() and not options.cpu
    opencv, times = put_in_place(), times_of_updates(options)
    speed = STEPS * (len(times) - 1) / (times[-1] - times[0])
    found = {
        "peer": "CleanRL's Rainbow" + ("" if opencv else " (without OpenCV)"),
        "device": f"{torch.cuda.get_device_name() if cuda else 'cpu'}, {os.cpu_count()} cores",
        "game": options.game,
        "replay_capacity": options.buffer_size,
        "updates": len(times) - 1,
        "agent_steps_per_second": speed,
        "frames_per_second": FRAMES * speed,
        f"frames_per_second_every_{PART}_updates": list(FRAMES * STEPS * PART / np.diff(times[::PART])),
        "versions": {name: version(name) for name in ("torch", "gymnasium", "ale-py", "numpy")},
    }
    print("| peer | device | agent steps/s | frames/s |\n|---|---|---|---|")
    print(f"| {found['peer']} | {found['device']} | {speed:,.1f} | {FRAMES * speed:,.0f} |")
    write_json(options.out, found)


if __name__ == "__main__":
    main()
