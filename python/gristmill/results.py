"""Results of comparisons as tables."""
from __future__ import annotations

import importlib
import json
import os
import pathlib
from typing import Any, Dict, Iterator, List, Union

from .errors import GristmillError


def pandas() -> Any:
    """Returns the module pandas, which only tables need."""
    try:
        return importlib.import_module("pandas")
    except ImportError as error:
        raise GristmillError("tables need pandas: pip install './gristmill[frames]'") from error


class Results:
    """Runs of `gristmill lab compare --out DIRECTORY`, as DataFrames of pandas. Times are seconds since the first arrival."""

    def __init__(self, directory: Union[str, "os.PathLike[str]"]) -> None:
        self._pandas = pandas()
        self._runs = sorted(pathlib.Path(directory).glob("runs/*/results.json"))
        if not self._runs:
            raise GristmillError(f"{directory} has no runs/*/results.json: name a directory that `gristmill lab compare --out` wrote")

    def _records(self) -> Iterator[Any]:
        for path in self._runs:
            try:
                record = json.loads(path.read_text())
                run = {"policy": record["contender"]["name"], "repetition": record["repetition"]}
            except (ValueError, KeyError, TypeError) as error:
                raise GristmillError(f"{path} does not hold a run: {error!r}; run the comparison again, or remove its directory") from error
            yield path.parent, run, record

    @property
    def jobs(self) -> Any:
        """A row for each job of each run: its times, work, and the flow times that were predicted and replayed."""
        rows: List[Dict[str, Any]] = []
        for _, run, record in self._records():
            simulated = {kind: {job["index"]: sum(job["phases"]) for job in (record.get(kind) or {}).get("jobs") or []} for kind in ("predicted", "replayed")}
            for job in record["jobs"]:
                plain = {name: value for name, value in job.items() if not isinstance(value, (list, dict))}
                work = {f"{kind}_work": job["work_seconds"][place] for place, kind in enumerate(("map", "reduce"))}
                flows = {f"{kind}_flow": flow.get(job["index"]) for kind, flow in simulated.items()}
                rows.append({**run, **plain, **work, "flow": job["ended"] - job["arrived"], **flows})
        return self._pandas.DataFrame(rows)

    @property
    def tasks(self) -> Any:
        """A row for each attempt of a task: its job, kind, worker, start and end."""
        rows = [{**run, **span} for _, run, record in self._records() for span in record["spans"]]
        return self._pandas.DataFrame(rows)

    @property
    def decisions(self) -> Any:
        """A row for each order of the scheduler, in the order of decision; `at` is the master's time, and `order` the rest."""
        rows: List[Dict[str, Any]] = []
        for directory, run, _ in self._records():
            with open(directory / "journal.jsonl") as journal:
                for line in journal:
                    entry = json.loads(line)
                    instant = entry.get("instant", {}) if isinstance(entry, dict) else {}
                    for order in instant.get("orders", []):
                        [(kind, details)] = order.items() if isinstance(order, dict) else [(order, {})]
                        rows.append({**run, "at": instant["at"] / 1e9, "kind": kind, "order": details})
        return self._pandas.DataFrame(rows)


#: Runs of a comparison as tables: `results(DIRECTORY).jobs.to_parquet(FILE)` writes one to a file.
results = Results
