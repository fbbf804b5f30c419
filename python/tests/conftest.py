"""Fixtures of the tests: input, and jobs on a cluster of one worker."""
import functools
import pathlib

import pytest

import gristmill

TEXT = "the mill grinds\nthe grist\n\nthe mill\n"
WORDS = {"the": 3, "mill": 2, "grinds": 1, "grist": 1}


@pytest.fixture
def text(tmp_path: pathlib.Path) -> pathlib.Path:
    """A file of four lines."""
    path = tmp_path / "text"
    path.write_text(TEXT)
    return path


@pytest.fixture
def run():
    """Runs a job with one worker."""
    return functools.partial(gristmill.run, workers=1)
