"""The folder of a run."""

from pathlib import Path

from short_run import dead_process

import multihorizon as mh


def test_run_killed_while_it_wrote_its_configuration_can_be_started_again(tmp_path: Path) -> None:
    (tmp_path / ".lock").touch()
    (tmp_path / f".config.unfinished-{dead_process()}.json").write_text('{"agent": ')
    agent = mh.agent("dqn", warm_up_steps=100)
    mh.train(agent, "foraging", steps=200, training_steps=200, evaluation_steps=0, out=tmp_path)
    assert mh.load_run(tmp_path).finished
    assert not list(tmp_path.glob(".*unfinished*"))
