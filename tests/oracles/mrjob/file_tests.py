"""Runs mrjob's tests of `hadoop fs` on the `hadoop` in PATH, and prints the results as JSON. For run.py.

The tests put files where mrjob's stand-in stores them: that directory becomes the root of `hdfs:`. The tests are otherwise
unchanged.
"""
import json
import os
import sys
import unittest

from tests import fs
from tests.mockhadoop import get_mock_hdfs_root

HADOOP_PATH = os.environ["PATH"]
# Tests that check where mrjob finds a `hadoop` create their own.
os.environ["PATH"] = HADOOP_PATH.partition(":")[2]
del os.environ["HADOOP_HOME"]


def mock_popen(self, module, main, env):
    """Replaces mrjob's stand-in by the real program."""
    os.environ["PATH"] = HADOOP_PATH
    os.environ["GRISTMILL_HDFS_ROOT"] = get_mock_hdfs_root(env)


class Results(unittest.TestResult):
    def __init__(self):
        super().__init__()
        self.failed = {}

    def addFailure(self, test, error):
        self.failed[test.id().rpartition(".")[2]] = self._exc_info_to_string(error, test)

    addError = addFailure


def main() -> None:
    fs.MockSubprocessTestCase.mock_popen = mock_popen
    results = Results()
    unittest.defaultTestLoader.loadTestsFromName("tests.fs.test_hadoop").run(results)
    print(json.dumps({"run": results.testsRun, "failed": results.failed}))


if __name__ == "__main__":
    sys.path.insert(0, os.getcwd())
    main()
