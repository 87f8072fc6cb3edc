"""Checks how durations and survivals are read from environments, and how they affect hazard."""

from typing import Any

import gymnasium
import jax
import jax.numpy as jnp
import numpy as np
import pytest
from gymnasium.spaces import Box, Discrete

from multihorizon.discounting.hazard import Dirac
from multihorizon.envs.environment import Step, check_shapes, timing_fields
from multihorizon.envs.foraging import Foraging
from multihorizon.envs.gymnasium_hazard import GymnasiumHazard
from multihorizon.envs.gymnasium_vector import Gymnasium
from multihorizon.envs.gymnax import Gymnax
from multihorizon.envs.hazard import Hazard, Lethal
from multihorizon.envs.shortcut import Shortcut
from multihorizon.envs.timing import Timing, TimingFields
from multihorizon.errors import InputError


class Timed(gymnasium.Env[Any, Any]):
    """An environment that returns the given infos in turn. Each episode has three steps and begins with `infos[0]`."""

    observation_space, action_space = Box(0, 9, (1,)), Discrete(2)

    def __init__(self, infos: list[dict[str, Any]], declared: Any = None) -> None:
        self._infos, self._time = infos, 0
        self.metadata = {} if declared is None else {"timing": declared}

    def reset(self, **given: Any) -> tuple[Any, dict[str, Any]]:
        self._time = 0
        return np.zeros(1), {}

    def step(self, action: Any) -> tuple[Any, float, bool, bool, dict[str, Any]]:
        self._time += 1
        info = self._infos[(self._time - 1) % len(self._infos)]
        return np.full(1, self._time), 1.0, self._time == 3, False, info


def moved(make: Any, steps: int = 1, count: int = 1) -> list[Timing]:
    made = Gymnasium(make, count)
    made.reset(np.arange(count))
    found = []
    for _ in range(steps):
        made.send(np.zeros(count, int))
        found.append(made.receive().timing)
    return found


def test_gymnasium_timing_is_read_from_info_even_at_the_last_step() -> None:
    infos = [{"duration": 2, "survival": 1}, {"duration": 0.5, "survival": 0.9}, {"duration": 7.25, "survival": 0.25}]
    starts = iter((0, 1))

    def make() -> Timed:
        first = next(starts)  # in the first environment, the first duration and survival are whole numbers
        return Timed(infos[first:] + infos[:first], ("duration", "survival"))

    found = moved(make, 4, count=2)
    np.testing.assert_array_equal([t.duration for t in found], [[2, 0.5], [0.5, 7.25], [7.25, 2], [2, 0.5]])
    np.testing.assert_allclose([t.survival for t in found], [[1, 0.9], [0.9, 0.25], [0.25, 1], [1, 0.9]])
    assert found[0].duration.dtype == np.float32


@pytest.mark.parametrize("metadata", [{"timing": None}, {}])
def test_declaring_timing_as_none_is_the_same_as_declaring_no_timing(metadata: Any) -> None:
    def make() -> Timed:
        made = Timed([{}])
        made.metadata = metadata
        return made

    assert Gymnasium(make, 1).timing == TimingFields()
    assert moved(make) == [Timing()]
    hazardous = GymnasiumHazard(make(), Dirac(0.1), seed=0)
    hazardous.reset()
    hazardous.step(0)

    def reports() -> Timed:
        made = Timed([{"duration": 2.0}])
        made.metadata = metadata
        return made

    with pytest.raises(InputError, match="without declaring it"):
        moved(reports)


@pytest.mark.parametrize("declared", [5, 2.5, True, {"duration": True}, np.array(["duration"]), object()])
def test_timing_declaration_of_wrong_type_raises_a_one_line_error(declared: Any) -> None:
    for use in (lambda make: Gymnasium(make, 1), lambda make: GymnasiumHazard(make(), Dirac(0.1))):
        with pytest.raises(InputError, match=r'^metadata\["timing"\] must be a tuple of field names, .*got [^\n]+$'):
            use(lambda: Timed([{}], declared))


def test_metadata_of_wrong_type_raises_an_error() -> None:
    def make() -> Timed:
        made = Timed([{}])
        made.metadata = None  # type: ignore[assignment]
        return made

    with pytest.raises(InputError, match="metadata of an environment must be a dictionary, got None"):
        Gymnasium(make, 1)


def test_only_declared_timing_fields_are_read() -> None:
    info = {"duration": 2.0, "survival": 0.5}
    both, neither = Gymnasium(lambda: Timed([info], ["survival"]), 1), Gymnasium(lambda: Timed([{}]), 1)
    assert both.timing == TimingFields(survival=True)
    assert neither.timing == TimingFields()
    (found,) = moved(lambda: Timed([info], "survival"))
    assert found.fields == TimingFields(survival=True)
    (ignored,) = moved(lambda: Timed([info], ()))
    assert ignored == Timing()


@pytest.mark.parametrize(
    ("info", "declared", "problem"),
    [
        ({"duration": 0}, "duration", r"a duration of 0; a duration must be positive and finite"),
        ({"duration": -1.5}, "duration", r"a duration of -1.5; a duration must be positive"),
        ({"duration": np.inf}, "duration", r"a duration of inf"),
        ({"duration": np.nan}, "duration", r"a duration of nan"),
        ({"survival": 0.0}, "survival", r"a survival of 0; it is a probability and must lie in \(0, 1\]"),
        ({"survival": 1.01}, "survival", r"a survival of 1.01; it is a probability"),
        ({"survival": "high"}, "survival", r"""info\["survival"\] must be a number, got 'high'"""),
        ({}, "survival", r'declares "survival" in .*, but a step has no info\["survival"\]'),
        (
            {"duration": 2.0},
            None,
            r'without declaring it; set metadata\["timing"\] to \("duration",\) to learn with it',
        ),
        ({}, "durations", r"unknown field in metadata.*'durations' \(did you mean 'duration'\?\)"),
    ],
)
def test_invalid_gymnasium_timing_raises_a_one_line_error(
    info: dict[str, Any], declared: str | None, problem: str
) -> None:
    with pytest.raises(InputError, match=problem) as caught:
        moved(lambda: Timed([{"duration": 1.0, "survival": 1.0}, info] if declared else [{}, {}, info], declared), 3)
    assert "\n" not in str(caught.value)


class Ticking:
    """An endless environment whose steps report `duration` and `survival`."""

    actions, observation_shape, observation_dtype = 2, (1,), "float32"

    def __init__(self, duration: Any = None, survival: Any = None) -> None:
        self.duration, self.survival = duration, survival

    def reset(self, key: Any) -> Any:
        return jnp.zeros(()), jnp.zeros(1)

    def step(self, key: Any, state: Any, action: Any) -> Any:
        no = jnp.zeros((), bool)
        return state, Step(jnp.zeros(1), jnp.ones(()), no, no, self.duration, self.survival)


def test_timing_fields_of_a_jax_environment_are_known_without_a_step() -> None:
    assert timing_fields(Foraging().environment()) == TimingFields()
    assert timing_fields(Ticking(2.0)) == TimingFields(duration=True)
    assert timing_fields(Hazard(Ticking(2, jnp.ones(())), Dirac(0.1))) == TimingFields(duration=True, survival=True)
    assert timing_fields(Lethal(Ticking(2.0, 0.5))) == TimingFields(duration=True)
    with pytest.raises(InputError, match=r"the duration of Ticking has shape \[1\], but must have \[\]"):
        check_shapes(Ticking(jnp.ones(1)), "Ticking")
    with pytest.raises(InputError, match="Lethal needs steps that report survival, but Ticking reports none"):
        Lethal(Ticking(2.0))


class Gymnaxed:
    """An environment with gymnax's interface that reports timing in `info`."""

    default_params = ()

    def action_space(self, params: Any) -> Any:
        return Discrete(2)

    def reset(self, key: Any, params: Any) -> Any:
        return jnp.zeros(1), jnp.zeros(())

    def step(self, key: Any, state: Any, action: Any, params: Any) -> Any:
        info = {"discount": 1.0, "duration": 1.0 + action, "survival": jnp.float32(0.5)}
        return jnp.zeros(1), state, 1.0, False, info


def test_gymnax_timing_is_read_from_info() -> None:
    made = Gymnax.of(Gymnaxed())
    assert timing_fields(made) == TimingFields(duration=True, survival=True)
    state, _ = made.reset(jax.random.key(0))
    _, step = made.step(jax.random.key(0), state, jnp.asarray(1))
    assert (float(step.duration), float(step.survival)) == (2.0, 0.5)


def _alive(environment: Any, episodes: int = 20_000) -> float:
    """Returns the fraction of episodes that survive their first step."""

    def one(key: jax.Array) -> jax.Array:
        reset_key, step_key = jax.random.split(key)
        state, _ = environment.reset(reset_key)
        return ~environment.step(step_key, state, jnp.asarray(0))[1].terminated

    return float(jax.jit(jax.vmap(one))(jax.random.split(jax.random.key(0), episodes)).mean())


def test_hazard_ends_more_episodes_in_longer_steps() -> None:
    assert _alive(Hazard(Ticking(3.0), Dirac(0.2))) == pytest.approx(np.exp(-0.6), abs=0.015)
    assert _alive(Hazard(Ticking(), Dirac(0.2))) == pytest.approx(np.exp(-0.2), abs=0.015)
    # Without the wrapper `Lethal`, reported survival probabilities end no episode.
    assert _alive(Hazard(Ticking(survival=0.3), Dirac(0.2))) == pytest.approx(np.exp(-0.2), abs=0.015)
    assert _alive(Lethal(Ticking(3.0, 0.3))) == pytest.approx(0.3, abs=0.015)
    assert _alive(Hazard(Lethal(Ticking(3.0, 0.5)), Dirac(0.2))) == pytest.approx(0.5 * np.exp(-0.6), abs=0.015)
    hazardous = GymnasiumHazard(Timed([{"duration": 3}], "duration"), Dirac(0.2), seed=0)
    lived = []
    for _ in range(4_000):
        hazardous.reset()
        lived.append(not hazardous.step(0)[2])
    assert np.mean(lived) == pytest.approx(np.exp(-0.6), abs=0.035)


def test_lethal_shortcut_earns_its_expected_return() -> None:
    """The route to the goal has five dangerous steps, and the agent survives each of them with probability 0.9."""
    environment = Lethal(Shortcut().environment())

    def walked(key: jax.Array) -> jax.Array:
        state, _ = environment.reset(key)
        earned, alive = jnp.zeros(()), jnp.asarray(True)
        for step_key in jax.random.split(key, 6):
            state, step = environment.step(step_key, state, jnp.asarray(3))
            earned, alive = earned + alive * step.reward, alive & ~step.terminated
        return earned

    mean = float(jax.jit(jax.vmap(walked))(jax.random.split(jax.random.key(1), 20_000)).mean())
    assert mean == pytest.approx(0.9**5, abs=0.016)
