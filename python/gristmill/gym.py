"""A Gymnasium environment over the cluster simulator: the agent orders jobs whenever something has changed."""
from __future__ import annotations

import queue
import threading
from typing import Any, Dict, Iterable, List, Optional, Tuple

import gymnasium
import numpy

from .policy import PolicyJob, simulate

#: Numbers of a job in an observation.
FEATURES = 11


def features(jobs: List[PolicyJob], now: float) -> Any:
    """Returns a row for each job: work of the whole job and what is left of it, in logarithms of seconds; slots held and
    usable; age; true if its sizes are known."""
    rows = [[*job.whole, *job.left, job.held[0] + job.held[2], job.can[0] + job.can[2], now - job.arrival, 0.0, float(job.known)] for job in jobs]
    table = numpy.array(rows, dtype=numpy.float32).reshape(-1, FEATURES)
    table[:, 9] = table[:, 3:6].sum(axis=1)
    table[:, :10] = numpy.log1p(numpy.minimum(table[:, :10], 1e9))
    return table


class _Ended(Exception):
    """The episode was left before its end."""


class OrderJobs(gymnasium.Env[Any, Any]):
    """Simulates a workload. An action has a number for each job of the observation, the largest first.

    Observation: `jobs_max` rows of [`FEATURES`] numbers, those of the oldest jobs that are there by `features`, then zeros.
    Reward: minus the seconds that all jobs together waited or ran since the last action, so that the sum over an episode is
    minus the total flow time. The info has `jobs`, the number of rows in use. Keywords are the flags of `gristmill lab sim`.
    """

    metadata: Dict[str, Any] = {"render_modes": []}

    def __init__(self, workload: str = "mix:load=0.9,jobs=40", jobs_max: int = 16, **flags: Any) -> None:
        self._workload, self._jobs_max, self._flags = workload, jobs_max, flags
        self._shape = (jobs_max, FEATURES)
        self.observation_space = gymnasium.spaces.Box(0.0, 25.0, self._shape, numpy.float32)
        self.action_space = gymnasium.spaces.Box(-1e6, 1e6, (jobs_max,), numpy.float32)
        self._thread: Optional[threading.Thread] = None
        self._questions: "queue.Queue[Any]" = queue.Queue()
        self._orders: "queue.Queue[Any]" = queue.Queue()
        self._jobs: List[PolicyJob] = []
        self._last: Tuple[float, int] = (0.0, 0)
        self._ended = True

    def reset(self, *, seed: Optional[int] = None, options: Optional[Dict[str, Any]] = None) -> Tuple[Any, Dict[str, Any]]:
        """Starts a simulation with this seed, else a drawn one."""
        super().reset(seed=seed)
        self.close()
        drawn = int(self.np_random.integers(1, 2**31)) if seed is None else seed
        self._last = (0.0, 0)
        self._thread = threading.Thread(target=self._simulate, args=(drawn,), daemon=True)
        self._thread.start()
        observation, _, _, _, info = self._next()
        return observation, info

    def step(self, action: Any) -> Tuple[Any, float, bool, bool, Dict[str, Any]]:
        """Puts the jobs into the order of the action's numbers and simulates until something has changed."""
        if self._thread is None or self._ended:
            raise gymnasium.error.ResetNeeded("this environment has no episode: call reset() first")
        numbers = numpy.asarray(action, dtype=float)
        if numbers.shape != (self._jobs_max,) or not numpy.isfinite(numbers).all():
            raise gymnasium.error.InvalidAction(f"an action has {self._jobs_max} finite numbers, and this one is {action!r}")
        chosen = self._jobs[: self._jobs_max]
        places = numpy.argsort(-numbers[: len(chosen)], kind="stable")
        self._orders.put([chosen[place] for place in places])
        return self._next()

    def close(self) -> None:
        """Ends the simulation."""
        if self._thread is not None:
            self._orders.put(None)
            self._thread.join()
            self._thread = None
        self._questions, self._orders = queue.Queue(), queue.Queue()

    def _simulate(self, seed: int) -> None:
        questions, orders = self._questions, self._orders

        def policy(jobs: List[PolicyJob], now: float) -> Iterable[PolicyJob]:
            questions.put((jobs, now))
            order = orders.get()
            if order is None:
                raise _Ended
            return order  # type: ignore[no-any-return]

        try:
            questions.put(simulate(policy, self._workload, seed=seed, **self._flags))
        except _Ended:
            pass
        except Exception as error:
            questions.put(error)

    def _next(self) -> Tuple[Any, float, bool, bool, Dict[str, Any]]:
        found = self._questions.get()
        if isinstance(found, Exception):
            raise found
        observation = numpy.zeros(self._shape, numpy.float32)
        (before, present), ended = self._last, not isinstance(found, tuple)
        self._ended = ended
        self._jobs, now = ([], max(job["completion"] for job in found.jobs)) if ended else found
        self._last = (now, len(self._jobs))
        rows = features(self._jobs[: self._jobs_max], now)
        observation[: len(rows)] = rows
        info = {"jobs": len(rows), "now": now}
        return observation, -present * (now - before), ended, False, info
