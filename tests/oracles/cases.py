#!/usr/bin/env python3
"""Draws worked cases, computes them again from the papers' text, and compares with `gristmill lab verify`.

usage: tests/oracles/cases.py [--program target/debug/gristmill] [--cases 300] [--seed 1] [--keep FILE]

Kinds `deadline-plan`, `order` and `online-order`: the computation follows the deadlines paper (equations 1 and 3, section IV)
and the pairs paper (Algorithms 1 to 8) line by line in exact fractions, independently of the program's code. If ties leave
Algorithms 7 and 8 a choice (all matchings are tried), the order is not compared.
Ends with code 1 at differences; --keep writes the cases to a file that `gristmill lab verify` reads.
"""
import argparse
import itertools
import json
import math
import pathlib
import random
import subprocess
import sys
import tempfile
from fractions import Fraction as F

INFINITE = float("inf")


# Deadlines: one slot at a time; everything is computed again after each.

def plan_of(case: dict) -> dict:
    now, jobs = F(case["now"]), case["jobs"]
    states = [standing(job, 0, now) for job in jobs]
    expect = {"state": {}, "mu": {}, "s_req": {}}
    for place, (job, (state, key)) in enumerate(zip(jobs, states)):
        expect["state"][str(place)] = state
        expect["mu"][str(place)] = float(mean(job)) if job["done"] else None
        if state == "ADJUST":
            expect["s_req"][str(place)] = float(key)
    expect["priority"] = sorted(range(len(jobs)), key=lambda place: rank(states[place], place))
    for name in ("min", "max"):
        given = [0] * len(jobs)
        for _ in range(case["free_slots"]):
            now_states = [standing(job, given[place], now) for place, job in enumerate(jobs)]
            able = [place for place, job in enumerate(jobs) if given[place] < job["pending"]]
            if not able:
                break
            best = min(able, key=lambda place: rank(now_states[place], place))
            state, key = now_states[best]
            if name == "min" and state == "ADJUST" and key <= 0:
                break
            given[best] += 1
        expect[name] = {str(place): count for place, count in enumerate(given)}
    return expect


def mean(job: dict) -> F:
    return F(sum(map(F, job["done"]))) / len(job["done"])


def standing(job: dict, given: int, now: F) -> tuple:
    """Returns the state, and the key compared within it, if this many tasks had been started at this moment."""
    if not job["done"] and now < F(job["goal"]):
        return "NODATA", F(job["submit"])
    running = len(job["running_elapsed"]) + given
    if now >= F(job["goal"]):
        if not job["done"] or running == 0 or job["goal"] <= job["submit"]:
            return "UNDEAD", INFINITE
        end = now + work(job, given) / running
        return "UNDEAD", (end - F(job["submit"])) / (F(job["goal"]) - F(job["submit"]))
    return "ADJUST", work(job, given) / (F(job["goal"]) - now) - running


def work(job: dict, given: int) -> F:
    """Returns the slot-seconds left: tasks that were just started have all of theirs left, like those that wait."""
    length = mean(job)
    left = sum(max(F(0), length - F(elapsed)) for elapsed in job["running_elapsed"])
    return left + (given + job["pending"] - given) * length


def rank(judged: tuple, place: int) -> tuple:
    state, key = judged
    return (["UNDEAD", "NODATA", "ADJUST"].index(state), key if state == "NODATA" else -key, place)


# Pairs: Algorithms 1 to 8.

def surplus(job) -> F:
    return job[1] - job[0]


def total(job) -> F:
    return job[0] + job[1]


def blend(job, alpha: F) -> F:
    return alpha * max(job) + (1 - alpha) * total(job)


def in_turn(jobs: list, subset: list) -> list:
    """Orders jobs: the most shuffle-heavy, then the most map-heavy of the rest, and so on; an odd one last."""
    rest, order = list(subset), []
    while rest:
        best = max(rest, key=lambda job: (surplus(jobs[job]), -subset.index(job)))
        order.append(best)
        rest.remove(best)
        if rest:
            best = max(rest, key=lambda job: (-surplus(jobs[job]), -subset.index(job)))
            order.append(best)
            rest.remove(best)
    return order


def by_priority(jobs: list, step, priority) -> list:
    subsets = {}
    for job in sorted(range(len(jobs)), key=lambda job: (priority(jobs[job]), job)):
        subsets.setdefault(bucket(priority(jobs[job]), step), []).append(job)
    return [job for subset in subsets.values() for job in in_turn(jobs, subset)]


def bucket(value: F, step):
    return value if step is None else math.floor(value / step)


def groups_of(jobs: list, priorities: list, k: int) -> tuple:
    """Solves equation 1 by trying all cuts: the minimum sum of ranges, and the groups; None for groups if several are
    minimal."""
    order = sorted(range(len(jobs)), key=lambda job: (priorities[job], job))
    found = {}
    for cuts in itertools.combinations(range(1, len(jobs)), min(k, len(jobs)) - 1):
        borders = [0, *cuts, len(jobs)]
        groups = [order[a:b] for a, b in zip(borders, borders[1:])]
        spread = sum(priorities[group[-1]] - priorities[group[0]] for group in groups)
        found.setdefault(spread, []).append(groups)
    least = min(found)
    return least, found[least][0] if len(found[least]) == 1 else None


def new_couple(jobs: list, step) -> list:
    cut = [tuple(bucket(size, step) for size in job) for job in jobs]
    subsets, pairs, alone = {}, [], []
    for job in range(len(jobs)):
        subsets.setdefault(abs(surplus(cut[job])), []).append(job)
    for lean, subset in subsets.items():
        rest = list(subset)
        while True:
            possible = [(a, b) for a, b in itertools.combinations(sorted(rest), 2)
                        if lean == 0 or surplus(cut[a]) == -surplus(cut[b])]
            if not possible:
                break
            # Lower indices of each kind come first among pairs with the same total.
            best = min(possible, key=lambda two: (total(cut[two[0]]) + total(cut[two[1]]), two))
            pairs.append(best)
            rest = [job for job in rest if job not in best]
        alone += rest
    pairs.sort(key=lambda two: (total(cut[two[0]]) + total(cut[two[1]]), min(two)))
    alone.sort(key=lambda job: (total(cut[job]), job))
    order = []
    for a, b in pairs:
        if total(cut[b]) < total(cut[a]):
            a, b = b, a
        order += [b, a] if surplus(jobs[a]) < surplus(jobs[b]) else [a, b]
    return order + alone


def weight(a, b, alpha: F) -> F:
    return alpha * abs(a[0] + b[0] - a[1] - b[1]) + (1 - alpha) * abs(total(a) - total(b))


def matchings(jobs: list):
    if not jobs:
        yield []
        return
    first, rest = jobs[0], jobs[1:]
    for partner in rest:
        for others in matchings([job for job in rest if job != partner]):
            yield [(first, partner), *others]


def match(jobs: dict, alpha: F) -> tuple:
    """Returns the minimum weight, the order, and whether ties left a choice. Jobs are numbers."""
    rest, last, tied = sorted(jobs), [], False
    if len(rest) % 2:
        leans = [surplus(jobs[job]) for job in rest]
        tied |= leans.count(min(leans)) > 1
        last = [rest[leans.index(min(leans))]]
        rest.remove(last[0])
    weights = {}
    for pairs in matchings(rest):
        weights.setdefault(sum(weight(jobs[a], jobs[b], alpha) for a, b in pairs), []).append(pairs)
    least = min(weights)
    tied |= len(weights[least]) > 1
    pairs = sorted(weights[least][0], key=lambda two: total(jobs[two[0]]) + total(jobs[two[1]]))
    totals = [total(jobs[a]) + total(jobs[b]) for a, b in pairs]
    tied |= len(set(totals)) < len(totals)
    tied |= any(surplus(jobs[a]) == surplus(jobs[b]) for a, b in pairs)
    order = [job for two in pairs for job in sorted(two, key=lambda job: -surplus(jobs[job]))]
    return least, order + last, tied


def averages(jobs: list, order: list) -> list:
    map_end = shuffle_end = F(0)
    waiting = end = F(0)
    for job in order:
        waiting += map_end
        map_end += jobs[job][0]
        shuffle_end = max(shuffle_end + jobs[job][1], map_end)
        end += shuffle_end
    return [float(part / len(jobs)) for part in (waiting, end - waiting, end)]


def order_of(case: dict) -> dict:
    """Returns the expected orders; that of Algorithm 7 only where ties left no choice."""
    jobs = [tuple(F(str(size)) for size in job) for job in case["jobs"]]
    alpha, k = F(str(case["alpha"])), case["k"]
    step = None if case["step"] is None else F(str(case["step"]))
    every = range(len(jobs))
    least, matched, tied = match(dict(enumerate(jobs)), alpha)
    priorities = [blend(job, alpha) for job in jobs]
    spread, groups = groups_of(jobs, priorities, k)
    orders = {
        "alg1_pair": by_priority(jobs, step, max),
        "alg2_couple": by_priority(jobs, step, total),
        "alg3_generalized": by_priority(jobs, step, lambda job: blend(job, alpha)),
        "alg4_group": groups and [job for group in groups for job in in_turn(jobs, group)],
        "alg6_ncouple": new_couple(jobs, step),
        "alg7_match": None if tied else matched,
        "maxdiff": sorted(every, key=lambda job: (-surplus(jobs[job]), job)),
        "pairwise": in_turn(jobs, list(every)),
        "maxshuffle": sorted(every, key=lambda job: (-jobs[job][1], job)),
        "maxsrpt": sorted(every, key=lambda job: (max(jobs[job]), job)),
    }
    totals = [averages(jobs, list(order))[2] * len(jobs) for order in itertools.permutations(every)]
    return {
        "algorithms": {name: {"order": order, "avg": averages(jobs, order)} for name, order in orders.items() if order},
        "smjpd": float(spread), "min_matching_weight": float(least), "brute_force_total": min(totals),
    }


def online_groups(case: dict, events: list) -> list:
    """Runs Algorithm 5, with a group of its own for a job while there are fewer than k."""
    alpha, k, sizes, groups, steps = F(str(case["alpha"])), case["k"], {}, [], []
    priority = lambda job: blend(sizes[job], alpha)
    pairwise = lambda group: in_turn(sizes, sorted(group, key=lambda job: (priority(job), job)))
    for event in events:
        step = dict(event)
        if "pop" in event:
            first = groups[0].pop(0)
            groups = [group for group in groups if group]
            step = {"pop": first}
        else:
            job = event["arrive"]
            sizes[job] = tuple(F(str(size)) for size in event["job"])
            waiting = sum(map(len, groups)) + 1
            if F(str(event["u"])) * waiting * k * k < 1:
                here = sorted([job, *itertools.chain(*groups)], key=lambda job: (priority(job), job))
                _, cut = groups_of(here, [priority(job) for job in here], k)
                if cut is None:
                    return steps
                groups = [pairwise([here[place] for place in group]) for group in cut]
                step["branch"] = "reschedule"
            elif len(groups) < k:
                groups.append([job])
                step["branch"] = "new group"
            else:
                far = [max(abs(priority(job) - priority(other)) for other in group) for group in groups]
                place = far.index(min(far))
                groups[place] = pairwise([*groups[place], job])
                step["branch"] = f"joined {place}"
            groups.sort(key=lambda group: (min(map(priority, group)), max(map(priority, group)), min(group)))
        steps.append({**step, "groups": [list(group) for group in groups]})
    return steps


def online_match(case: dict, events: list) -> list:
    """Runs Algorithm 8, up to the first tie."""
    alpha, sizes, order, steps = F(str(case["alpha"])), {}, [], []
    for event in events:
        step = dict(event)
        if "pop" in event:
            step = {"pop": order.pop(0)}
        else:
            job = event["arrive"]
            sizes[job] = tuple(F(str(size)) for size in event["job"])
            if F(str(event["u"])) * (len(order) + 1) ** 4 < 1 or not order:
                _, order, tied = match({other: sizes[other] for other in [*order, job]}, alpha)
                step["branch"] = "reschedule"
            else:
                weights = [weight(sizes[job], sizes[other], alpha) for other in order]
                tied = weights.count(min(weights)) > 1
                place = weights.index(min(weights))
                before = surplus(sizes[order[place]]) < surplus(sizes[job])
                order.insert(place if before else place + 1, job)
                step["branch"] = "insert"
            if tied:
                return steps
        steps.append({**step, "S": list(order)})
    return steps


# Draws.

def draw_plan(draw) -> dict:
    length = lambda: draw.choice([draw.randint(1, 40), round(draw.uniform(0.5, 40), 2)])
    lengths = lambda most: [length() for _ in range(draw.randint(0, most))]
    jobs = []
    for _ in range(draw.randint(1, 6)):
        submit = draw.randint(0, 60)
        jobs.append({
            "submit": submit, "goal": draw.choice([draw.randint(submit + 1, 100), draw.randint(101, 500)]),
            "done": lengths(6) if draw.random() < 0.7 else [], "running_elapsed": lengths(4), "pending": draw.randint(0, 30),
        })
    return {"now": 100, "free_slots": draw.randint(0, 30), "jobs": jobs}


def draw_size(draw, kind: int) -> list:
    if kind == 0:  # many ties
        return [draw.randint(0, 9), draw.randint(0, 9)]
    if kind == 1:  # few
        return [round(draw.uniform(0, 12), 3), round(draw.uniform(0, 12), 3)]
    size = draw.randint(1, 20)  # halves, around a diagonal
    return [size / 2, max(0, size + draw.randint(-3, 3)) / 2]


def draw_order(draw) -> dict:
    kind = draw.randint(0, 2)
    return {
        "jobs": [draw_size(draw, kind) for _ in range(draw.randint(1, 6))], "alpha": draw.choice([0, 0.25, 0.5, 1]),
        "k": draw.randint(1, 4), "step": draw.choice([None, 0.5, 1, 2]),
    }


def draw_events(draw) -> list:
    kind, waiting, events = draw.randint(0, 2), 0, []
    for number in range(9):
        if waiting and draw.random() < 0.2:
            events.append({"pop": None})
            waiting -= 1
        else:
            u = draw.choice([round(draw.random(), 4), 1e-6, 0.9])
            events.append({"arrive": number, "job": draw_size(draw, kind), "u": u})
            waiting += 1
    return events


def draw_case(draw, number: int) -> dict:
    kind = ["deadline-plan", "order", "online-order", "online-order"][number % 4]
    if kind == "deadline-plan":
        given = draw_plan(draw)
        return {"id": f"{number}", "kind": kind, "input": given, "expect": plan_of(given)}
    if kind == "order":
        given = draw_order(draw)
        return {"id": f"{number}", "kind": kind, "input": given, "expect": order_of(given)}
    given = {"alpha": draw.choice([0, 0.25, 0.5, 1]), "k": draw.randint(1, 3)}
    steps = [online_groups, online_match][number % 4 - 2](given, draw_events(draw))
    return {"id": f"{number}", "kind": kind, "input": given, "expect": {"steps": steps}}


def main() -> int:
    flags = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    flags.add_argument("--program", default="target/debug/gristmill")
    flags.add_argument("--cases", type=int, default=300)
    flags.add_argument("--seed", type=int, default=1)
    flags.add_argument("--keep", type=pathlib.Path)
    flags = flags.parse_args()
    print(f"seed {flags.seed}, {flags.cases} cases")
    drawn = [draw_case(random.Random(f"{flags.seed}/{number}"), number) for number in range(flags.cases)]
    # The first tie of an online case may be its first arrival.
    drawn = [case for case in drawn if case["expect"].get("steps") != []]
    with tempfile.TemporaryDirectory() as directory:
        path = flags.keep or pathlib.Path(directory) / "cases.json"
        path.write_text(json.dumps({"tol": 1e-9, "cases": drawn}, indent=1))
        done = subprocess.run([flags.program, "lab", "verify", "--quiet", "--cases", path], capture_output=True, text=True)
        print(done.stdout, done.stderr, sep="", end="")
    kinds = [case["kind"] for case in drawn]
    print(", ".join(f"{kinds.count(kind)} {kind}" for kind in sorted(set(kinds))))
    return int(done.returncode > 0)


if __name__ == "__main__":
    sys.exit(main())
