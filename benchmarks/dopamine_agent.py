"""Builds Dopamine's JAX Rainbow agent for the benchmarks."""

import sys
from types import ModuleType
from typing import Any


def rainbow(actions: int, capacity: int, warm_up: int) -> Any:
    for name in ("baselines", "baselines.common", "baselines.common.atari_wrappers"):
        sys.modules[name] = ModuleType(name)  # Dopamine uses these modules only for Procgen, so stubs suffice
    sys.modules["baselines.common"].atari_wrappers = sys.modules["baselines.common.atari_wrappers"]  # type: ignore[attr-defined]
    import gin
    from dopamine.jax.agents.rainbow.rainbow_agent import JaxRainbowAgent

    gin.parse_config(
        f"""
        ReplayBuffer.max_capacity = {capacity}
        ReplayBuffer.batch_size = 32
        PrioritizedSamplingDistribution.max_capacity = {capacity}
        create_optimizer.learning_rate = 0.0000625
        create_optimizer.eps = 0.00015
        """
    )
    return JaxRainbowAgent(num_actions=actions, update_horizon=3, min_replay_history=warm_up, seed=0)


def world_and_agent(game: str, warm_up: int) -> tuple[Any, Any]:
    """Returns Dopamine's environment, with sticky actions, and its agent."""
    rainbow(2, 100, 50)  # installs the stubs and parses the configuration
    from dopamine.discrete_domains.atari_lib import create_atari_environment

    world = create_atari_environment(game)
    return world, rainbow(world.action_space.n, capacity=100_000, warm_up=warm_up)
