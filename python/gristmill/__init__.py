"""Gristmill from Python: jobs whose mapper, combiner and reducer are functions.

    import gristmill

    def words(line): return ((word, 1) for word in line.split())
    def total(word, counts): yield word, sum(counts)
    print(dict(gristmill.run(gristmill.Job(words, total, combiner=total), "books")))

A job runs on an embedded cluster, or with `join=FILE` on a running master. The functions run in processes of their own,
which a worker starts like any command of Hadoop Streaming. Pairs are sent as typed bytes.

Workers import this module too, from the files that were shipped with the job.
"""
from .errors import FunctionError, GristmillError, JobError, ShippingError
from .job import Job
from .policy import PolicyJob, Simulation, decide, simulate
from .reported import count, status
from .results import Results, results
from .run import JobRun, run, submit

__all__ = [
    "FunctionError", "GristmillError", "Job", "JobError", "JobRun", "PolicyJob", "Results", "ShippingError", "Simulation",
    "count", "decide", "results", "run", "simulate", "status", "submit",
]
