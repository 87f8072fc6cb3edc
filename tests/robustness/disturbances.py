"""Kills a training process, or sends it signals, at random times between its start and its end."""

import random
import signal
import subprocess
import time
from pathlib import Path

from short_run import MESSAGES, continue_words, difference, environment, program, unfinished_files

SIGNALS = {signal.SIGINT: 130, signal.SIGTERM: 143, signal.SIGHUP: 129}
# This script runs the program, and kills it just before file operation n + 1 in a folder. The script's arguments are n,
# the folder, and the arguments of the program.
KILLER = """
import os, signal, sys
left, below = int(sys.argv.pop(1)), sys.argv.pop(1)
def count(event, arguments):
    global left
    if event in ("open", "os.rename", "os.remove", "os.mkdir", "os.truncate"):
        path = arguments[0]
        if isinstance(path, (str, bytes, os.PathLike)) and os.fsdecode(path).startswith(below):
            left -= 1
            if left < 0:
                os.kill(os.getpid(), signal.SIGKILL)
sys.addaudithook(count)
from multihorizon.__main__ import main
sys.argv[0] = "multihorizon"
main()
"""


def kill_once(folder: Path, cache: Path, rng: random.Random, longest: float) -> str | None:
    """Starts or resumes a run, and kills it at a random moment. Returns the problem, or None."""
    words = continue_words(folder)
    at_operation = rng.random() < 0.5
    command = program(words)
    if at_operation:
        command = [command[0], "-c", KILLER, str(rng.randrange(80)), str(folder), *words]
    process = subprocess.Popen(
        command, env=environment(cache), stdout=subprocess.DEVNULL, stderr=subprocess.PIPE, text=True
    )
    try:
        _, said = process.communicate(timeout=120 if at_operation else rng.uniform(0, longest))
    except subprocess.TimeoutExpired:
        process.kill()
        _, said = process.communicate()
    if process.returncode not in (0, -signal.SIGKILL) and "is finished" not in said:
        return f"status {process.returncode}: {said[-MESSAGES:]}"
    if "Traceback" in said:
        return said[-MESSAGES:]
    return None


def finish(folder: Path, cache: Path) -> str | None:
    if (folder / "weights.npz").exists():
        return None
    done = subprocess.run(
        program(continue_words(folder)), env=environment(cache), capture_output=True, text=True, check=False
    )
    return None if done.returncode == 0 else f"status {done.returncode}: {done.stderr[-MESSAGES:]}"


def compare(whole: Path, folder: Path) -> str | None:
    left = unfinished_files(folder)
    return difference(whole, folder) or (f"it left {', '.join(left)}" if left else None)


def signal_once(folder: Path, cache: Path, rng: random.Random, longest: float) -> str | None:
    """Starts or resumes a run, and sends up to five signals of one kind. Returns the problem, or None."""
    number = rng.choice(list(SIGNALS))
    count = rng.choice([1, 1, 1, 2, 5])
    words = continue_words(folder)
    process = subprocess.Popen(
        program(words), env=environment(cache), stdout=subprocess.DEVNULL, stderr=subprocess.PIPE, text=True
    )
    time.sleep(rng.uniform(0.1, longest))  # during the first 0.1 s, Python itself is still starting
    for _ in range(count):
        if process.poll() is None:
            process.send_signal(number)
            time.sleep(rng.choice([0.0, 0.01, 0.2]))
    try:
        _, said = process.communicate(timeout=120)
    except subprocess.TimeoutExpired:
        process.kill()
        process.communicate()
        return f"{signal.Signals(number).name} x {count} was ignored: the run did not stop"
    finished = process.returncode == 0 and (folder / "weights.npz").exists()
    refused = process.returncode == 2 and "is finished" in said
    if process.returncode not in (SIGNALS[number], -number) and not finished and not refused:
        return f"{signal.Signals(number).name} x {count}, status {process.returncode}: {said[-MESSAGES:]}"
    if any(word in said for word in ("Traceback", "Exception ignored", "terminate called", "Fatal Python error")):
        return f"{signal.Signals(number).name} x {count}: {said[-MESSAGES:]}"
    return None
