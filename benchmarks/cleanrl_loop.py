"""The whole training loop of CleanRL's Rainbow in Atari, in frames a second while it learns: a peer for `loop.py`.

    git clone https://github.com/vwxyzjn/cleanrl ../cleanrl
    python3 -m venv ../peer
    ../peer/bin/pip install torch "gymnasium>=1.1" ale-py tyro tensorboard opencv-python-headless -e . -c constraints.txt
    ../peer/bin/python benchmarks/cleanrl_loop.py ../cleanrl --out results/speed/cleanrl.json

Its script is run as it is, with its own settings but for the length, the warm-up and the size of the replay, whose
memory is taken only as it fills. What gymnasium has renamed or changed since, and what NumPy 2.4 no longer allows, is
put in place around it. Time runs from one optimiser step to another, after the first ones: environment, replay and one
update for every four agent steps. Without OpenCV, frames are made smaller by a stand-in, and the table says so.
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
from types import ModuleType, SimpleNamespace
from typing import Any

import ale_py
import gymnasium
import numpy as np
import torch
from gymnasium.vector import AutoresetMode, SyncVectorEnv
from torch.optim.optimizer import register_optimizer_step_post_hook

from multihorizon.files import write_json

SCRIPT = Path("cleanrl", "rainbow_atari.py")
FRAMES = 4  # in an agent step
TRAIN_FREQUENCY = 4  # agent steps in an update
SETTLING = 50  # the first updates, which are not timed
PART = 50  # updates in each of the speeds that show how steady it was


class Worlds(SyncVectorEnv):
    """One world as the script expects it: begun anew in the step that ends it, with what is told then by its old names.

    Rewards and actions are stored as single numbers, which NumPy 2.4 no longer makes of arrays with one.
    """

    def __init__(self, makers: Any) -> None:
        super().__init__(makers, autoreset_mode=AutoresetMode.SAME_STEP)

    def step(self, actions: Any) -> Any:
        observations, rewards, terminations, truncations, told = super().step(actions)
        actions.shape = ()
        if "final_obs" in told:
            told["final_observation"] = told["final_obs"]
        episode = told.pop("final_info", {}).get("episode")
        if episode:
            told["final_info"] = [{"episode": {name: values[0] for name, values in episode.items()}}]
        return observations, rewards[0], terminations, truncations, told


@cache
def shares(of: int, to: int) -> np.ndarray:
    """How much of each of `of` pixels is in each of `to` larger ones."""
    size = of / to
    begin, pixel = np.arange(to)[:, None] * size, np.arange(of)
    return (np.clip(np.minimum(begin + size, pixel + 1) - np.maximum(begin, pixel), 0, None) / size).astype(np.float32)


def smaller(image: np.ndarray, size: tuple[int, int], interpolation: int) -> np.ndarray:
    """`cv2.resize` by area, for smaller images with colours."""
    height, width, colours = image.shape
    rows = shares(height, size[1]) @ image.reshape(height, -1).astype(np.float32)
    columns = shares(width, size[0]) @ rows.reshape(size[1], width, colours)
    return np.rint(columns).astype(np.uint8)


def put_in_place() -> bool:
    """What the script needs, and whether OpenCV is there."""
    gymnasium.register_envs(ale_py)
    names: Any = gymnasium.wrappers
    names.GrayScaleObservation = names.GrayscaleObservation
    names.FrameStack = names.FrameStackObservation
    gymnasium.vector.SyncVectorEnv = Worlds  # type: ignore[misc]
    warnings.filterwarnings("ignore", category=DeprecationWarning)
    if find_spec("cv2"):
        return True
    stand_in: Any = ModuleType("cv2")
    stand_in.resize, stand_in.INTER_AREA = smaller, 3
    stand_in.ocl = SimpleNamespace(setUseOpenCL=lambda use: None)
    sys.modules["cv2"] = stand_in
    return False


def times_of_updates(options: argparse.Namespace) -> np.ndarray:
    """Runs the script, where what it writes is thrown away, and notes when each update was done."""
    checkout, times = options.checkout.resolve(), []
    sys.path.insert(0, str(checkout))
    sys.argv = [SCRIPT.name, "--env-id", f"{options.game}NoFrameskip-v4", "--buffer-size", str(options.buffer_size)]
    sys.argv += ["--learning-starts", str(options.warm_up), "--total-timesteps", str(options.warm_up + options.steps)]
    sys.argv += ["--no-cuda"] if options.cpu else []
    hook = register_optimizer_step_post_hook(lambda *_: times.append(time.perf_counter()))
    with tempfile.TemporaryDirectory() as folder, contextlib.chdir(folder), contextlib.redirect_stdout(sys.stderr):
        runpy.run_path(str(checkout / SCRIPT), run_name="__main__")
    hook.remove()
    return np.array(times[SETTLING:])


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("checkout", type=Path, metavar="CHECKOUT", help="a folder with a clone of CleanRL")
    parser.add_argument("--game", default="Seaquest")
    parser.add_argument("--warm-up", type=int, default=1000)
    parser.add_argument("--steps", type=int, default=2000, help="agent steps while learning")
    parser.add_argument("--buffer-size", type=int, default=100_000)
    parser.add_argument("--cpu", action="store_true")
    parser.add_argument("--out", type=Path, required=True)
    options = parser.parse_args()
    if not (options.checkout / SCRIPT).is_file():
        sys.exit(f"{options.checkout} has no {SCRIPT}: give a folder with a clone of CleanRL")
    if options.steps < TRAIN_FREQUENCY * (SETTLING + PART + 2):
        sys.exit(f"--steps {options.steps} are too few: give {TRAIN_FREQUENCY * (SETTLING + PART + 2)} or more")
    cuda = torch.cuda.is_available() and not options.cpu
    opencv, times = put_in_place(), times_of_updates(options)
    speed = TRAIN_FREQUENCY * (len(times) - 1) / (times[-1] - times[0])
    found = {
        "peer": "CleanRL's Rainbow" + ("" if opencv else ", a stand-in for OpenCV"),
        "device": f"{torch.cuda.get_device_name() if cuda else 'cpu'}, {os.cpu_count()} cores",
        "game": options.game,
        "replay_capacity": options.buffer_size,
        "updates": len(times) - 1,
        "agent_steps_per_second": speed,
        "frames_per_second": FRAMES * speed,
        f"frames_per_second_every_{PART}_updates": list(FRAMES * TRAIN_FREQUENCY * PART / np.diff(times[::PART])),
        "opencv": opencv,
        "versions": {name: version(name) for name in ("torch", "gymnasium", "ale-py", "numpy")},
    }
    print("| peer | device | agent steps/s | frames/s |\n|---|---|---|---|")
    print(f"| {found['peer']} | {found['device']} | {speed:,.1f} | {FRAMES * speed:,.0f} |")
    write_json(options.out, found)


if __name__ == "__main__":
    main()
