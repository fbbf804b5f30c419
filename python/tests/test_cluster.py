"""The same lines on a running master."""
import os
import subprocess
import time

import pytest

import gristmill
from conftest import WORDS
from gristmill.program import program
from test_jobs import total, words

PATIENCE_SECONDS = 30


@pytest.fixture
def join(tmp_path):
    """The file with the join line of a master with one worker."""
    state = tmp_path / "state"
    environment = {**os.environ, "XDG_STATE_HOME": str(state)}
    started = []

    def start(*arguments):
        with open(tmp_path / "log", "ab") as log:
            started.append(subprocess.Popen([program(), *arguments], env=environment, stdin=subprocess.DEVNULL, stdout=log, stderr=log))

    def line():
        return next(state.rglob("join"), None)

    try:
        start("cluster", "master", "--allow-commands", "--allow-root")
        end = time.monotonic() + PATIENCE_SECONDS
        while line() is None:
            assert time.monotonic() < end, (tmp_path / "log").read_text()
            time.sleep(0.05)
        start("cluster", "worker", "--workers", "1", "--allow-root", "--join", str(line()))
        yield line()
    finally:
        for process in reversed(started):
            process.terminate()
        for process in started:
            process.wait(PATIENCE_SECONDS)


def test_the_same_lines_run_on_a_cluster(text, join):
    job = gristmill.Job(words, total, combiner=total)
    assert dict(gristmill.run(job, text, join=join)) == dict(gristmill.run(job, text, workers=1)) == WORDS
