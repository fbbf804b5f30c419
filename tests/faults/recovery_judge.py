"""Judges the measurements of `recovery.py` by the targets, and compares them with earlier ones and with other systems.
"""
import statistics
from dataclasses import dataclass

# Names of a round's numbers in tables.
NAMES = {
    "noticed": "noticed, s",
    "again": "work ordered again, s",
    "beyond": "cost beyond lost work, s",
    "cost": "cost, s",
    "ratio": "x ideal",
    "ended": "ended after, s",
    "lost": "workers lost",
}

# Time that other systems take by default to notice a silent worker, with the source.
OTHERS = [
    ("Hadoop MapReduce, YARN", "600 s", "`mapreduce.task.timeout` in mapred-default.xml, "
     "`yarn.nm.liveness-monitor.expiry-interval-ms` in yarn-default.xml; since Hadoop's commit r383623 of 2006"),
    ("Dask", "300 s", "`distributed.scheduler.worker-ttl` in distributed.yaml"),
    ("Ballista", "180 s", "`executor_timeout_seconds` in ballista/scheduler/src/config.rs"),
    ("Spark", "60 to 120 s", "`spark.worker.timeout` (standalone) in spark-standalone.md, `spark.network.timeout` in "
     "configuration.md"),
    ("Ray", "15 to 55 s", "`health_check_period_ms`, `_timeout_ms`, `_failure_threshold` in src/ray/common/ray_config_def.h"),
]


@dataclass(frozen=True)
class Limit:
    """Upper limit of a number of a round."""

    name: str
    most: float

    def shown(self) -> str:
        return f"{NAMES[self.name].split(',')[0]} <= {self.most:g}"


@dataclass(frozen=True)
class Verdict:
    """Result of a target: reached or not, with a description."""

    text: str
    reached: bool


def judge(limits: list[Limit], rounds: list[dict], wanted: int) -> Verdict:
    """Judges a target. It is reached if all wanted rounds were run and each kept the limits."""
    errors = [found for found in rounds if "error" in found]
    good = [found for found in rounds if "error" not in found]
    missed = [f"{len(errors)} of {len(rounds)} rounds failed"] if errors else []
    for limit in limits:
        values = [found[limit.name] for found in good if found.get(limit.name) is not None]
        above = [value for value in values if limit.most < value]
        if above:
            missed.append(f"{NAMES[limit.name].split(',')[0]} {max(above):.2f} > {limit.most:g} in {len(above)} of {len(values)}")
        elif good and not values:
            missed.append(f"{NAMES[limit.name].split(',')[0]} was never seen")
    if missed:
        return Verdict("**not reached**: " + "; ".join(missed), False)
    if len(good) < wanted:
        return Verdict(f"open: {len(good)} of {wanted} rounds", False)
    return Verdict("reached", True)


def cell(name: str, rounds: list[dict]) -> str:
    """Median and maximum."""
    values = [found[name] for found in rounds if found.get(name) is not None]
    return f"{statistics.median(values):.2f} ({max(values):.2f})" if values else "-"


HEAD = ["fault", "rounds", "undisturbed, s", "job, s: median (most)", "cost", "of it lost work", "noticed after", "ordered again",
        "tasks again", "before", "target", "verdict"]


def row(what: str, before: str, limits: list[Limit], rounds: list[dict], wanted: int) -> str:
    numbers = [cell(name, rounds) for name in ("clean", "faulted", "cost", "lost_work", "noticed", "again", "run_again")]
    target = ", ".join(limit.shown() for limit in limits)
    good = sum("error" not in found for found in rounds)
    return line([what, str(good), *numbers, before, target, judge(limits, rounds, wanted).text])


def line(cells: list[str]) -> str:
    return f"| {' | '.join(cells)} |"


def heading(cells: list[str]) -> str:
    return f"{line(cells)}\n{line(['---'] * len(cells))}"


def others() -> str:
    rows = [heading(["system", "notices a silent worker after", "by"])] + [line(list(entry)) for entry in OTHERS]
    return "\n".join(rows)


def self_test() -> None:
    """Checks that the judgement can fail."""
    limits = [Limit("noticed", 5.0), Limit("beyond", 10.0)]
    good = {"noticed": 4.0, "beyond": 1.0}
    assert judge(limits, [good] * 10, 10) == Verdict("reached", True)
    # One round of ten is enough, whatever the median.
    slow = judge(limits, [good] * 9 + [{"noticed": 5.5, "beyond": 1.0}], 10)
    assert not slow.reached and slow.text == "**not reached**: noticed 5.50 > 5 in 1 of 10", slow
    failed = judge(limits, [good] * 9 + [{"error": "the output differs"}], 10)
    assert not failed.reached and "1 of 10 rounds failed" in failed.text, failed
    unseen = judge(limits, [{"noticed": None, "beyond": 1.0}] * 10, 10)
    assert not unseen.reached and "noticed was never seen" in unseen.text, unseen
    few = judge(limits, [good] * 3, 10)
    assert not few.reached and few.text == "open: 3 of 10 rounds", few
    assert "**not reached**" in row("a fault", "48", limits, [{"noticed": 6.0, "beyond": 1.0, "clean": 1.0}], 1)
    at_the_limit = judge([Limit("lost", 0)], [{"lost": 0}], 1)
    assert at_the_limit.reached and not judge([Limit("lost", 0)], [{"lost": 1}], 1).reached
    print("recovery.py: the self-test has passed: a target that is missed is called so")
