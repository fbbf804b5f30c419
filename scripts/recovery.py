#!/usr/bin/env python3
"""How long a job takes to recover from faults, on hosts that are network namespaces of this machine.

usage: scripts/recovery.py [--program target/dist/gristmill] [--rounds 10] [--only NAME,...] [--json FILE]

Each round starts a master, three workers of one slot and a submitter on hosts of their own, runs a job of tasks that
sleep once undisturbed and once with the fault, compares the outputs byte by byte, and reads from the master's journal
when the fault was noticed and when work was ordered again. Cost is the disturbed time less the undisturbed one. A fault
that left no trace where it must leave one is an error, and so is a round longer than its limit.

Needs root and `ip`; `tc` for slow links. All of it happens in namespaces of its own, which go with the script.
"""
import argparse
import hashlib
import json
import os
import pathlib
import signal
import statistics
import subprocess
import sys
import tempfile
import time
from dataclasses import dataclass, field

MASTER, WORKERS = 1, (2, 3, 4)
# A hardware address that nobody has: what is sent there is lost without a word.
NOBODY = "02:00:00:00:00:99"
ROUND_SECONDS_MAX = 240.0
JOB = {
    "even": ["--maps", "36", "--map-time", "200ms", "--reduce-time", "200ms", "--map-bytes", "64KiB",
             "--reduces", "6"],
    "many": ["--maps", "600", "--map-time", "12ms", "--reduce-time", "200ms", "--map-bytes", "8KiB",
             "--reduces", "6"],
}


def ip(*arguments: str) -> None:
    subprocess.run(["ip", *arguments], check=True, capture_output=True)


class Lan:
    """Hosts on a switch; each is a namespace."""

    def __init__(self) -> None:
        self.name = f"gr{os.getpid()}"
        self.hosts = (MASTER, *WORKERS)
        switch = self.space(0)
        ip("netns", "add", switch)
        ip("-n", switch, "link", "add", "switch", "type", "bridge")
        ip("-n", switch, "link", "set", "switch", "up")
        for host in self.hosts:
            space = self.space(host)
            ip("netns", "add", space)
            ip("-n", switch, "link", "add", f"cable{host}", "type", "veth", "peer", "name", "eth0", "netns", space)
            ip("-n", switch, "link", "set", f"cable{host}", "master", "switch", "up")
            ip("-n", space, "address", "add", f"{self.address(host)}/24", "dev", "eth0")
            for link in ("lo", "eth0"):
                ip("-n", space, "link", "set", link, "up")

    def space(self, host: int) -> str:
        return f"{self.name}h{host}"

    def address(self, host: int) -> str:
        return f"10.78.0.{host}"

    def on(self, host: int, *command: str) -> list[str]:
        return ["ip", "netns", "exec", self.space(host), *command]

    def cut(self, one: int, other: int) -> None:
        """What either sends to the other is lost."""
        for sender, receiver in ((one, other), (other, one)):
            ip("-n", self.space(sender), "neigh", "replace", self.address(receiver), "lladdr", NOBODY, "dev", "eth0",
               "nud", "permanent")

    def vanish(self, host: int) -> None:
        ip("-n", self.space(0), "link", "set", f"cable{host}", "down")

    def throttle(self, host: int, rate: str) -> None:
        """Both directions of this host's link."""
        limit = ["root", "tbf", "rate", rate, "burst", "4kb", "latency", "400ms"]
        for space, link in ((self.space(host), "eth0"), (self.space(0), f"cable{host}")):
            subprocess.run(["ip", "netns", "exec", space, "tc", "qdisc", "replace", "dev", link, *limit],
                           check=True, capture_output=True)

    def close(self) -> None:
        for host in (0, *self.hosts):
            subprocess.run(["ip", "netns", "delete", self.space(host)], capture_output=True)


class Cluster:
    """A master and its workers, each on its host."""

    def __init__(self, program: str, folder: pathlib.Path, lan: Lan, speeds: dict[int, str]) -> None:
        self.program, self.folder, self.lan = program, folder, lan
        self.environment = {**os.environ, "GRISTMILL_STATE": str(folder / "state"), "TMPDIR": str(folder)}
        self.journal = folder / "journal"
        flags = ["--allow-root", "--insecure-plaintext"]
        self.master = self.start(MASTER, ["master", "--listen", f"{lan.address(MASTER)}:0", "--journal",
                                          str(self.journal), *flags])
        self.join = folder / "state" / "join"
        wait("the join line", lambda: self.join.exists() and self.join.read_text().strip())
        self.workers = {}
        for host in WORKERS:
            speed = ["--speed", speeds[host]] if host in speeds else []
            self.workers[host] = self.start(host, ["worker", "--workers", "1", "--slots", "1", "--join",
                                                   str(self.join), *flags, *speed])
            wait(f"worker {host}", lambda: len(self.facts("worker_joined")) == len(self.workers))
        self.flags = flags

    def start(self, host: int, words: list[str]) -> subprocess.Popen:
        log = open(self.folder / f"log-{host}-{words[0]}", "ab")
        # A group of its own, so that what a helper of the shell has started ends with it.
        return subprocess.Popen(self.lan.on(host, self.program, *words), stdout=log, stderr=log,
                                env=self.environment, start_new_session=True)

    def submit(self, job: list[str], output: pathlib.Path) -> subprocess.Popen:
        words = ["submit", "synthetic", *job, "--join", str(self.join), "--output", str(output), *self.flags]
        return self.start(MASTER, words)

    def worker_process(self, host: int) -> int:
        """The process that runs tasks: a child of the program that was started there."""
        def child() -> int:
            text = pathlib.Path(f"/proc/{self.workers[host].pid}/task/{self.workers[host].pid}/children").read_text()
            return int(text.split()[0]) if text.split() else 0
        return wait(f"the worker process of host {host}", child)

    def instants(self) -> list[dict]:
        lines = self.journal.read_text().splitlines() if self.journal.exists() else []
        found = []
        for line in lines:
            try:
                value = json.loads(line)
            except json.JSONDecodeError:
                break  # its end is being written
            if isinstance(value, dict) and "instant" in value:
                found.append(value["instant"])
        return found

    def facts(self, name: str) -> list[tuple[float, dict]]:
        return [(instant["at"] / 1e9, fact[name]) for instant in self.instants() for fact in instant["facts"]
                if name in fact]

    def orders(self, name: str) -> list[tuple[float, dict]]:
        return [(instant["at"] / 1e9, order[name]) for instant in self.instants() for order in instant["orders"]
                if name in order]

    def end(self) -> None:
        for process in (*self.workers.values(), self.master):
            if process.poll() is None:
                try:
                    os.killpg(process.pid, signal.SIGTERM)
                except ProcessLookupError:
                    pass
        deadline = time.monotonic() + 10
        for process in (*self.workers.values(), self.master):
            try:
                process.wait(max(0.1, deadline - time.monotonic()))
            except subprocess.TimeoutExpired:
                os.killpg(process.pid, signal.SIGKILL)
                process.wait()


def wait(what: str, condition, seconds: float = 20.0):
    end = time.monotonic() + seconds
    while time.monotonic() < end:
        value = condition()
        if value:
            return value
        time.sleep(0.002)
    raise RuntimeError(f"{what}: not seen in {seconds:.0f} s")


def digest(output: pathlib.Path) -> str:
    parts = sorted(output.glob("part-*"))
    return hashlib.sha256(b"".join(part.name.encode() + part.read_bytes() for part in parts)).hexdigest()


@dataclass
class Fault:
    """What is done, in which phase of the job, and what is measured."""

    what: str
    inject: object
    # Of the tasks that must have ended before: maps, or reduces.
    after: tuple[str, int]
    job: str = "even"
    target: str = ""
    speeds: dict = field(default_factory=dict)
    # A worker must have been declared lost.
    loses: bool = False
    fails: bool = False
    # Seconds beyond the undisturbed time that the work of this fault costs in any case.
    ideal: float = 0.0


def kill(cluster: Cluster, host: int = 2) -> None:
    os.kill(cluster.worker_process(host), signal.SIGKILL)


def stop(cluster: Cluster, seconds: float | None) -> None:
    process = cluster.worker_process(2)
    os.kill(process, signal.SIGSTOP)
    if seconds is not None:
        time.sleep(seconds)
        os.kill(process, signal.SIGCONT)



MAPS, SHUFFLE, REDUCES = ("map_finished", 12), ("map_finished", 34), ("reduce_finished", 1)
FAULTS = {
    "kill-maps": Fault("a worker killed in the maps", kill, MAPS, target="lost work + 1 s", loses=True),
    "kill-shuffle": Fault("a worker killed at the end of the maps", kill, SHUFFLE, target="lost work + 1 s", loses=True),
    "kill-reduces": Fault("a worker killed in the reduces", kill, REDUCES, target="lost work + 1 s", loses=True),
    "stop-4s": Fault("a worker stopped for 4 s", lambda c: stop(c, 4.0), MAPS, target="survived"),
    "stop": Fault("a worker stopped for good", lambda c: stop(c, None), MAPS, target="dead at 5 s", loses=True),
    "pair": Fault("two workers cannot reach each other", lambda c: c.lan.cut(2, 3), MAPS, target="lost work + 10 s"),
    "pair-many": Fault("the same with 600 maps", lambda c: c.lan.cut(2, 3), ("map_finished", 200), job="many",
                       target="lost work + 10 s"),
    "apart": Fault("a worker cut off from all others",
                   lambda c: [c.lan.cut(2, other) for other in (3, 4)], MAPS, target="lost work + 10 s"),
    "vanish": Fault("a worker's host vanishes", lambda c: c.lan.vanish(2), MAPS, target="dead at 5 s", loses=True),
    "throttle": Fault("a worker on a link of 1 Mbit/s", lambda c: c.lan.throttle(2, "1mbit"), MAPS,
                      target="lost work + 10 s"),
    "slow": Fault("a worker of three at a tenth of its speed", lambda c: None, ("map_finished", 1),
                  speeds={2: "0.1"}, target="1.3 x ideal"),
}


def measured(program: str, fault: Fault) -> dict:
    """One round: the job undisturbed, then with the fault."""
    lan = Lan()
    cluster = None
    with tempfile.TemporaryDirectory(prefix="gristmill-recovery-") as name:
        folder = pathlib.Path(name)
        try:
            cluster = Cluster(program, folder, lan, {})
            clean = timed(cluster, JOB[fault.job], folder / "clean", lambda: None)
            expected = digest(folder / "clean")
            if fault.speeds:
                cluster.end()
                cluster.journal.unlink()
                (folder / "again").mkdir()
                cluster = Cluster(program, folder / "again", lan, fault.speeds)
            ended = len(cluster.facts(fault.after[0]))
            injected = {}

            def inject() -> None:
                wait("the phase", lambda: ended + fault.after[1] <= len(cluster.facts(fault.after[0])), 60.0)
                injected["at"] = cluster.instants()[-1]["at"] / 1e9
                injected["wall"] = time.monotonic()
                fault.inject(cluster)

            faulted = timed(cluster, JOB[fault.job], folder / "faulted", inject)
            if digest(folder / "faulted") != expected:
                raise RuntimeError("the output differs from that of the undisturbed job")
            lost = [at for at, _ in cluster.facts("worker_lost") if injected["at"] <= at]
            if fault.loses and not lost:
                raise RuntimeError("no worker was lost: the fault did not fire")
            again = [at for at, order in cluster.orders("launch")
                     if 0 < order["attempt"]["epoch"] and injected["at"] <= at]
            return {"clean": clean, "faulted": faulted, "cost": faulted - clean,
                    "noticed": lost[0] - injected["at"] if lost else None,
                    "again": again[0] - injected["at"] if again else None, "run_again": len(again)}
        finally:
            for process in list(cluster.workers.values()) if cluster else []:
                # A stopped process cannot end.
                for child in children(process.pid):
                    try:
                        os.kill(child, signal.SIGCONT)
                    except ProcessLookupError:
                        pass
            if cluster:
                cluster.end()
            lan.close()


def children(pid: int) -> list[int]:
    try:
        return [int(child) for child in pathlib.Path(f"/proc/{pid}/task/{pid}/children").read_text().split()]
    except OSError:
        return []


def timed(cluster: Cluster, job: list[str], output: pathlib.Path, inject) -> float:
    begun = time.monotonic()
    client = cluster.submit(job, output)
    inject()
    try:
        code = client.wait(ROUND_SECONDS_MAX)
    except subprocess.TimeoutExpired:
        os.killpg(client.pid, signal.SIGKILL)
        client.wait()
        raise RuntimeError(f"the job had not ended after {ROUND_SECONDS_MAX:.0f} s") from None
    if code != 0:
        raise RuntimeError(f"the job ended with code {code}:\n{(cluster.folder / 'log-1-submit').read_text()[-2000:]}")
    return time.monotonic() - begun


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--program", default="target/dist/gristmill")
    parser.add_argument("--rounds", type=int, default=10)
    parser.add_argument("--only", default=",".join(FAULTS), help="faults, with commas: " + ", ".join(FAULTS))
    parser.add_argument("--json", type=pathlib.Path)
    options = parser.parse_args()
    if os.geteuid() != 0:
        print("recovery.py: needs root for network namespaces", file=sys.stderr)
        return 3
    unknown = [name for name in options.only.split(",") if name not in FAULTS]
    if unknown:
        parser.error(f"no fault is called {', '.join(unknown)}; there are {', '.join(FAULTS)}")
    program = os.path.abspath(options.program)
    results, failed = {}, False
    print("| fault | undisturbed, s | cost, s: median (most) | noticed, s | ordered again, s | tasks again | target |")
    print("|---|---|---|---|---|---|---|")
    for name in options.only.split(","):
        fault, rounds = FAULTS[name], []
        for _ in range(options.rounds):
            try:
                rounds.append(measured(program, fault))
            except RuntimeError as error:
                rounds.append({"error": str(error)})
                failed = True
        results[name] = rounds
        print(row(fault, rounds), flush=True)
    if options.json:
        options.json.write_text(json.dumps(results, indent=1))
    for name, rounds in results.items():
        for number, found in enumerate(rounds):
            if "error" in found:
                print(f"{name}, round {number + 1}: {found['error']}", file=sys.stderr)
    return 1 if failed else 0


def row(fault: Fault, rounds: list[dict]) -> str:
    def shown(key: str) -> str:
        values = [found[key] for found in rounds if found.get(key) is not None]
        return f"{statistics.median(values):.2f} ({max(values):.2f})" if values else "-"
    errors = sum("error" in found for found in rounds)
    cells = [fault.what, shown("clean"), shown("cost"), shown("noticed"), shown("again"), shown("run_again"),
             fault.target + (f"; {errors} of {len(rounds)} rounds failed" if errors else "")]
    return f"| {' | '.join(cells)} |"


if __name__ == "__main__":
    sys.exit(main())
