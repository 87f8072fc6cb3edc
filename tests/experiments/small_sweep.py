"""A small experiment, as a user would write it, for tests that interrupt a sweep."""

from multihorizon.agents.acting import Epsilon
from multihorizon.agents.presets import preset
from multihorizon.discounting import discount
from multihorizon.experiments.experiment import Experiment, ExperimentRun

SETTINGS = {"warm_up_steps": 100, "replay_capacity": 400, "epsilon": Epsilon(decay_steps=300)}
SIZE = {"seeds": 2, "steps": 6_000, "training_steps": 300}  # long enough to interrupt
AGENT, WANTED = preset("dqn"), discount.exponential(0.99)
EXPERIMENT = Experiment(
    name="small",
    title="One agent in two worlds",
    about="To be killed.",
    runs=[  # the two runs train with the same programs, which are compiled only once
        ExperimentRun(AGENT, "foraging/hazard", wanted=WANTED, settings=SETTINGS, evaluation_steps=20, **SIZE),
        ExperimentRun(AGENT, "foraging", wanted=WANTED, settings=SETTINGS, **SIZE),
    ],
)
