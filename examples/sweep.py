"""Run your own experiment, with several agents and seeds, and write a report on it.

To continue a stopped sweep, start it again with the same folder. Usage: python examples/sweep.py [OUT]
"""

import sys
import tempfile
from pathlib import Path

import multihorizon as mh

SIZE = {"seeds": 2, "steps": 2_000, "training_steps": 1_000, "evaluation_steps": 500}


def run(name, gamma):
    """Returns a run of an agent with one discount factor."""
    agent = mh.agent("dqn", name=name, horizons=gamma, warm_up_steps=500)
    return mh.ExperimentRun(agent, "CartPole-v1", wanted=mh.discount.exponential(gamma), **SIZE)


experiment = mh.Experiment(
    name="patience",
    title="Does patience pay in CartPole?",
    about="A short and a long horizon: discount factors of 0.6 and 0.99.",
    runs=[run("short", 0.6), run("long", 0.99)],
    pairs=[("long", "short")],  # baseline, challenger
)

folder = Path(sys.argv[1]) if len(sys.argv) > 1 else Path(tempfile.mkdtemp()) / experiment.name
result = mh.sweep(experiment, folder)
for planned in result.runs:
    status = result.statuses[planned.run.folder]
    last = mh.load_run(planned.folder).metrics[-SIZE["seeds"] :]  # one row for each seed
    returns = [round(row["evaluation_return"], 2) for row in last]
    print(f"{planned.run.label}: {status.state.value}, evaluation returns by seed {returns}")

report = mh.report(folder)
print(f"report with {len(report.files)} files: {report.page}")
