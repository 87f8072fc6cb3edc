"""A complete report of made-up runs, which several tests share."""

import numpy as np
import pytest
from made_up_runs import REPORT_AGENTS, REPORT_GAMES, hyperbolic, learning, write_run, write_sweep

from multihorizon.reports.baselines import read_dopamine
from multihorizon.reports.data import read_runs
from multihorizon.reports.sections import ReportContents, build_report


@pytest.fixture(scope="session")
def made(tmp_path_factory: pytest.TempPathFactory) -> ReportContents:
    """Returns a report of five agents in four games. One run is half finished, and one run has not started."""
    folder, rng = tmp_path_factory.mktemp("sweep"), np.random.default_rng(0)
    runs = []
    for game in REPORT_GAMES:
        for position, agent in enumerate(REPORT_AGENTS):
            place = f"{game}/{agent}"
            wanted = hyperbolic() if agent.startswith("hyper") else None
            run = {"label": agent, "environment": f"atari/{game}", "folder": place, "seeds": 3, "wanted": wanted}
            runs.append(run)
            if place != "Alien/hyper-rainbow":
                done = 4 if place == "Pong/multi-c51" else 8
                curves = learning(rng, 100 + 10 * position, 3, 8)[:, :done]
                gamma = 0.98917 if "-" in agent else 0.99
                write_run(folder / place, agent, f"atari/{game}", curves, iterations=8, finished=done == 8, gamma=gamma)
    panels = [["c51", "multi-c51"], ["rainbow", "multi-rainbow"]]
    write_sweep(folder, runs, pairs=[["rainbow", "hyper-rainbow"], *panels], panels=panels)
    curves = np.tile(np.linspace(0, 90, 8), (1, len(REPORT_GAMES), 5, 1))
    games = np.array([game.lower() for game in REPORT_GAMES])
    np.savez(folder / "d.npz", legacy_scores=curves, legacy_agents=np.array(["Rainbow"]), games=games)
    experiment = read_runs(folder, pytest.fail)
    return build_report(experiment, read_dopamine(folder / "d.npz"))
