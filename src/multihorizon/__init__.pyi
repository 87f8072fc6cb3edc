"""Types of the public names, which `__init__.py` imports when they are first used."""

from multihorizon import envs as envs
from multihorizon import mdp as mdp
from multihorizon.agents.acting import Acting as Acting
from multihorizon.agents.acting import Epsilon as Epsilon
from multihorizon.agents.config import AgentConfig as AgentConfig
from multihorizon.agents.losses import Bootstrap as Bootstrap
from multihorizon.agents.losses import Categorical as Categorical
from multihorizon.agents.losses import Huber as Huber
from multihorizon.agents.losses import Priority as Priority
from multihorizon.agents.networks import ConvTorso as ConvTorso
from multihorizon.agents.networks import MlpTorso as MlpTorso
from multihorizon.agents.optimisers import Adam as Adam
from multihorizon.agents.optimisers import RmsProp as RmsProp
from multihorizon.agents.presets import agent as agent
from multihorizon.api import report as report
from multihorizon.api import sweep as sweep
from multihorizon.api import watch as watch
from multihorizon.discounting import Discount as Discount
from multihorizon.discounting import Horizons as Horizons
from multihorizon.discounting import discount as discount
from multihorizon.discounting import gauss_grid as gauss_grid
from multihorizon.discounting import hazard as hazard
from multihorizon.discounting import minimax_grid as minimax_grid
from multihorizon.discounting import paper_grid as paper_grid
from multihorizon.discounting import single as single
from multihorizon.errors import InputError as InputError
from multihorizon.experiments.experiment import Experiment as Experiment
from multihorizon.experiments.experiment import ExperimentRun as ExperimentRun
from multihorizon.training import loggers as loggers
from multihorizon.training.episodes import Returns as Returns
from multihorizon.training.episodes import evaluate as evaluate
from multihorizon.training.policy import Policy as Policy
from multihorizon.training.progress import Printed as Printed
from multihorizon.training.progress import Silent as Silent
from multihorizon.training.runs import Run as Run
from multihorizon.training.runs import load as load
from multihorizon.training.runs import load_run as load_run
from multihorizon.training.runs import train as train

__version__: str
