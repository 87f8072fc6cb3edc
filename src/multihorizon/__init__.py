"""multihorizon: reinforcement learning in which time preference is a choice.

    >>> import multihorizon as mh

All public names are here. Modules are imported at their first use, so this import is quick and does not load JAX.
"""

from importlib import import_module
from typing import Any

__version__ = "0.1.0"

_NAMES = {
    "multihorizon.agents.acting": ("Acting", "Consistency", "Epsilon"),
    "multihorizon.agents.config": ("AgentConfig",),
    "multihorizon.agents.losses": ("Bootstrap", "Categorical", "Huber", "Priority"),
    "multihorizon.agents.networks": ("ConvTorso", "MlpTorso"),
    "multihorizon.agents.optimisers": ("Adam", "RmsProp"),
    "multihorizon.agents.presets": ("agent",),
    "multihorizon.agents.risk": ("CVaR", "Quantile"),
    "multihorizon.discounting": (
        "decode_rewards",
        "Design",
        "design_horizons",
        "Discount",
        "FitMethod",
        "gauss_grid",
        "GridReport",
        "Horizons",
        "minimax_grid",
        "Offer",
        "paper_grid",
        "report_grid",
        "reweight",
        "Reweighting",
        "RewardTimeline",
        "single",
    ),
    "multihorizon.errors": ("InputError",),
    "multihorizon.runs.run": ("Run", "train"),
    "multihorizon.runs.loading": ("load", "load_run"),
    "multihorizon.runs.episodes": ("Returns", "evaluate"),
    "multihorizon.runs.policy": ("Policy",),
    "multihorizon.runs.progress": ("PrintedProgress", "NoProgress"),
    "multihorizon.api": ("forage", "pathworld", "report", "sweep", "watch"),
    "multihorizon.experiments.experiment": ("Experiment", "ExperimentRun"),
}
_MODULES = {
    "discount": "multihorizon.discounting.discount",
    "envs": "multihorizon.envs",
    "hazard": "multihorizon.discounting.hazard",
    "loggers": "multihorizon.runs.loggers",
    "mdp": "multihorizon.mdp",
}
_HOMES = {name: module for module, names in _NAMES.items() for name in names}

__all__ = ["__version__", *sorted(_HOMES), *sorted(_MODULES)]  # noqa: PLE0604 - all of them are strings


def __getattr__(name: str) -> Any:
    if name in _MODULES:
        found: Any = import_module(_MODULES[name])
    elif name in _HOMES:
        found = getattr(import_module(_HOMES[name]), name)
    else:
        raise AttributeError(f"module 'multihorizon' has no attribute {name!r}")
    globals()[name] = found
    return found


def __dir__() -> list[str]:
    return __all__
