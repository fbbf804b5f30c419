"""Policies that are functions: in a simulation, on a master through a file, and as an environment of Gymnasium."""
import pathlib
import subprocess
import sys
import textwrap

import gymnasium
import numpy
import pytest
from gymnasium.utils.env_checker import check_env

import gristmill
from gristmill.gym import OrderJobs
from gristmill.policy import PolicyJob, simulate
from gristmill.program import program
from gristmill.results import results

WORKLOAD = "mix:load=0.9,jobs=20"
FLAGS = {"workers": 2, "slots": 2, "estimator": "oracle"}


def shortest(jobs, now):
    return sorted(jobs, key=lambda job: (job.whole[0] + job.whole[2], job.seq))


def rows(simulation):
    return [(job["job"], job["start"], job["completion"]) for job in simulation.jobs]


def test_a_function_decides_as_the_same_policy_in_rust():
    for seed in (1, 2):
        ours = simulate(shortest, WORKLOAD, seed=seed, seeds=2, **FLAGS)
        theirs = simulate("psjf", WORKLOAD, seed=seed, seeds=2, **FLAGS)
        assert rows(ours) == rows(theirs)
        assert len(ours.jobs) == 40 and ours.mean_flow > 0


def test_an_exception_of_the_function_ends_the_simulation_and_is_raised():
    calls = []

    def policy(jobs, now):
        calls.append(now)
        if len(calls) == 5:
            raise KeyError("no such job")
        return jobs

    with pytest.raises(KeyError, match="no such job"):
        simulate(policy, WORKLOAD, **FLAGS)


def test_a_wrong_answer_and_a_wrong_flag_are_named():
    with pytest.raises(gristmill.GristmillError, match="it named job 99, which is not there"):
        simulate(lambda jobs, now: [PolicyJob({"seq": 99})], WORKLOAD, **FLAGS)
    with pytest.raises(gristmill.GristmillError, match="--no-such-flag"):
        simulate(shortest, WORKLOAD, no_such_flag=1)


def test_the_same_function_decides_as_a_program(tmp_path: pathlib.Path):
    file = tmp_path / "policy.py"
    file.write_text(textwrap.dedent("""
        import gristmill
        def policy(jobs, now):
            print("not an answer")
            return sorted(jobs, key=lambda job: (job.whole[0] + job.whole[2], job.seq))
        gristmill.decide(policy)
    """))
    # The program runs `python3`: the one of this environment.
    assert pathlib.Path(sys.executable).with_name("python3").exists()
    assert rows(simulate(f"program:path={file}", WORKLOAD, **FLAGS)) == rows(simulate("psjf", WORKLOAD, **FLAGS))


def test_the_environment_keeps_the_rules_of_gymnasium_and_its_rewards_are_the_flow_times():
    env = OrderJobs(WORKLOAD, jobs_max=8, **FLAGS)
    for seed in (1, 2):
        state, info = env.reset(seed=seed)
        total, ended, steps = 0.0, False, 0
        while not ended:
            assert state in env.observation_space
            # The smallest amount left first.
            state, reward, ended, stopped, info = env.step(-state[:, 3:6].sum(axis=1))
            assert not stopped and reward <= 0
            total, steps = total + reward, steps + 1
        flows = simulate(lambda jobs, now: [jobs[place] for place in order_of(jobs)], WORKLOAD, seed=seed, **FLAGS)
        assert total == pytest.approx(-sum(job["flow"] for job in flows.jobs), rel=1e-6)
        assert steps > 100
    for wrong in (numpy.zeros(3), numpy.full(8, numpy.nan)):
        env.reset()
        with pytest.raises(gymnasium.error.InvalidAction):
            env.step(wrong)
    env.close()
    with pytest.raises(gymnasium.error.ResetNeeded):
        env.step(numpy.zeros(8))
    check_env(OrderJobs(WORKLOAD, **FLAGS), skip_render_check=True, skip_close_check=True)


def order_of(jobs):
    left = numpy.log1p(numpy.minimum(numpy.array([job.left for job in jobs[:8]], dtype=numpy.float32).reshape(-1, 3), 1e9))
    return numpy.argsort(-(-left.sum(axis=1)), kind="stable")


def test_results_of_a_comparison_are_tables(tmp_path: pathlib.Path):
    workload = tmp_path / "two.toml"
    workload.write_text(textwrap.dedent("""
        name = "two"
        [cluster]
        workers = 1
        slots = 1
        [[job]]
        name = "synthetic"
        args = ["--maps", "4", "--map-time", "20ms"]
        reduces = 1
        count = 2
    """))
    out = tmp_path / "out"
    command = [program(), "lab", "compare", workload, "--policy", "fifo,fair", "--repeat", "2", "--out", out]
    done = subprocess.run(command, capture_output=True, text=True)
    assert done.returncode == 0, done.stderr
    tables = results(out)
    jobs, tasks, decisions = tables.jobs, tables.tasks, tables.decisions
    assert sorted(jobs.policy.unique()) == ["fair", "fifo"] and len(jobs) == 8
    assert (jobs.flow > 0).all() and (jobs.replayed_flow > 0).all()
    assert len(tasks) == 8 * 5 and (tasks["to"] >= tasks["from"]).all()
    assert (decisions.kind == "launch").sum() == 8 * 5
    with pytest.raises(gristmill.GristmillError, match="runs"):
        results(tmp_path)
    next(out.glob("runs/*/results.json")).write_text("{}")
    with pytest.raises(gristmill.GristmillError, match="does not hold a run: KeyError"):
        results(out).jobs
