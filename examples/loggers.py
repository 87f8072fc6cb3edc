"""Write metrics to a CSV file and to TensorBoard, and stop training early with a callback.

The CSV file and the TensorBoard events are in the run's folder. `tensorboard --logdir NEW_FOLDER` shows the events.
Usage: python examples/loggers.py [NEW_FOLDER]
"""

import csv
import sys
import tempfile
from pathlib import Path

import multihorizon as mh

ENOUGH = 20.0


def stop_when_good(rows):
    """Receives a row of metrics for each seed after every iteration. Returns False to stop training."""
    best = max(row["evaluation_return"] or 0.0 for row in rows)
    print(f"step {rows[0]['step']}: best evaluation return {best:.1f}")
    return best < ENOUGH


folder = Path(sys.argv[1]) if len(sys.argv) > 1 else Path(tempfile.mkdtemp()) / "cartpole"
agent = mh.agent("dqn", warm_up_steps=500, epsilon=mh.Epsilon(decay_steps=2_000))
run = mh.train(
    agent,
    "CartPole-v1",
    steps=20_000,
    training_steps=1_000,
    evaluation_steps=500,
    out=folder,
    loggers=[mh.loggers.Csv(), mh.loggers.TensorBoard()],
    callback=stop_when_good,
)
print(run)  # not finished: run.resume() would continue it

with (folder / "metrics.csv").open(newline="") as file:
    table = list(csv.DictReader(file))
print(f"metrics.csv has {len(table)} rows and the columns {', '.join(table[0])}")
print("TensorBoard:", *[path.relative_to(folder) for path in (folder / "events").iterdir()])
