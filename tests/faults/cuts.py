#!/usr/bin/env python3
"""Runs random jobs on clusters that divide running tasks, with faults, and compares every output with an oracle.

usage: tests/faults/cuts.py [--seconds 60] [--cuts N] [--seed N] [--kills no] [--backups yes] [--disks no]
       tests/faults/cuts.py --seed N --round M      one round again

Needs a debug build, in which tests can shorten the pieces of divisions (`divide.part-min`).
A round is a cluster with slow slots; lanes submit one job after another. Ends with code 1 at the first difference and keeps the
directory of the round, else prints sums. With --backups yes, inputs are such that orders to divide are answered at once.
Some rounds limit the shuffle of each worker. As root, some have small disks for spills and outputs, which become full at times,
in a mount namespace of the drill: a job that was running then may fail, with an error that names the full disk and without output.
"""
import argparse, contextlib, ctypes, json, os, pathlib, random, re, shutil, signal, subprocess, sys, tempfile, threading, time
from collections import Counter

sys.dont_write_bytecode = True  # a clean checkout stays clean

from cuts_jobs import Job

HANG_SECONDS, ROUND_SECONDS = 300, 30
POLICIES = ["gristmill", "gristmill", "asrpt:preemptive=yes", "fair", "fifo"]
RATES = ["300KB/s", "1MB/s", "4MB/s"]
CLONE_NEWNS = 0x20000


class Disks:
    """File systems in memory, some of which are full at times."""
    def __init__(self, directory: pathlib.Path, count: int):
        self.paths, self.started, self.ended = [directory / f"disk-{number}" for number in range(count)], 0, 0
        for path in self.paths:
            path.mkdir()
            subprocess.run(["mount", "-t", "tmpfs", "-o", "size=512m", "none", path], check=True)

    def fill(self, paths: list, seconds: float) -> None:
        for path in paths:
            with contextlib.suppress(OSError), open(path / "filler", "wb", 0) as file:
                while file.write(bytes(1 << 20)):
                    pass
        time.sleep(seconds)
        for path in paths:
            (path / "filler").unlink(missing_ok=True)
        self.ended += 1

    def unmount(self, keeps: bool) -> None:
        for path in self.paths:
            with contextlib.suppress(shutil.Error):  # processes that end remove files
                shutil.copytree(path, f"{path}-kept") if keeps else None
            subprocess.run(["umount", "--lazy", path], check=True)


class Round:
    """A cluster and its jobs."""
    def __init__(self, options, number: int, directory: pathlib.Path, sums: Counter):
        self.options, self.number, self.directory, self.sums, self.found = options, number, directory, sums, None
        self.rng = rng = random.Random(f"{options.seed}/{number}")
        self.slots, self.policy = [rng.choice([1, 4, 48, 64, 64, 64]) for _ in range(rng.randint(2, 4))], rng.choice(POLICIES)
        self.slot_mebibytes = rng.choice([1, 3, 32, 32])
        self.flags = ["--slow", f"{rng.randint(40, 120) // (1 if self.slot_mebibytes > 3 else 3)}x"]  # spills take more time, all in all
        if rng.random() < 0.4:
            self.flags += ["--nic-rate", rng.choice(RATES), "--shuffle", "http"]
            sums["slow networks"] += 1
        self.disks = Disks(directory, 2 if rng.random() < 0.4 and options.disks == "yes" else 0)
        self.reserve, self.sums["small disks"] = rng.choice(["0", "8MiB"]), sums["small disks"] + bool(self.disks.paths)
        (directory / "faults").mkdir()
        (directory / "faults/divide.part-min").write_text("1")
        self.env = {**os.environ, "GRISTMILL_STATE": str(directory / "state"), "GRISTMILL_FAULTS": str(directory / "faults")}
        self.started, self.workers, self.master, self.masters, self.threads = [], [], None, 0, []

    def start(self, log: str, *command) -> subprocess.Popen:
        with open(self.directory / log, "ab") as file:
            self.started.append(subprocess.Popen([self.options.program, *map(str, command)], env=self.env, stdout=file, stderr=file))
        return self.started[-1]

    def start_master(self) -> None:
        self.masters += 1
        flags = ["--policy", self.policy, "--journal", self.directory / f"journal-{self.masters}", *["--no-backup"] * (self.options.backups == "no")]
        log, end = self.directory / "master.log", time.monotonic() + 30
        self.master = self.start(log.name, "cluster", "master", "--divide", "--state", self.directory / "state", *flags)
        while log.read_bytes().count(b"master listens") < self.masters:
            assert self.master.poll() is None and time.monotonic() < end, "the master does not start"
            time.sleep(0.02)

    def start_worker(self, slots: int) -> None:
        log = f"worker-{len(self.started)}.log"
        words = ["--workers", "1", "--slots", slots, "--memory", f"{max(16, slots * self.slot_mebibytes)}MiB"]
        disk = self.disks.paths and ["--spill-dir", self.disks.paths[len(self.started) % 2], "--disk-reserve", self.reserve]
        self.workers.append((self.start(log, "cluster", "worker", *words, *self.flags, *disk), slots))

    def client(self, *command, seconds: float = HANG_SECONDS) -> tuple:
        words = [self.options.program, *map(str, command)]
        done = subprocess.run(words, env=self.env, capture_output=True, text=True, timeout=seconds, stdin=subprocess.DEVNULL)
        return done.returncode, done.stdout, done.stderr

    def run_job(self, job: Job) -> None:
        fills_ended = self.disks.ended
        code, text, words = self.client("submit", *job.command, "--output", job.out, "--json" if job.end == "attached" else "--detach")
        status, maps = {}, int((re.search(r"(\d+) maps? over", words) or [0, 0])[1])
        if job.end == "attached":
            status = json.loads(text)["status"] if code == 0 else {}
        elif code == 0:
            shown, first, _ = self.client("job", "show", text.strip(), "--json")
            maps = json.loads(first)["maps"]["total"] if shown == 0 else 0
            if job.end == "cancelled":
                time.sleep(job.cancel_after)
                self.client("job", "cancel", text.strip())
            code, report, words = self.client("job", "wait", text.strip(), "--json")
            status = json.loads(report) if report.strip() else {}
        is_full = code == 7 and self.disks.started > fills_ended and re.search("No space left on device|are to stay free", words)
        if is_full or job.end == "cancelled" and status.get("state") == "cancelled":
            assert not job.out.exists() or not os.listdir(job.out), f"code {code}: {words}: the job left {os.listdir(job.out)}"
            return self.sums.update(["failed by full disks" if is_full else "cancelled"])
        assert code == 0 and status, f"code {code}: {words}"
        job.check(status["totals"], self.options.program)
        counts = {"jobs": 1, "map cuts": status["maps"]["total"] - maps if maps else 0, "reduce cuts": status["reduces"]["total"] - job.reduces}
        self.sums.update({f"{name} {job.kind}": count for name, count in counts.items()})
        self.sums.update({name: status["totals"][name] for name in ("spills", "suspensions")} | {"backups": status["attempts"]["backups"]})

    def run_lane(self, lane: str, sizes: tuple, end: float) -> None:
        rng, number = random.Random(f"{self.options.seed}/{self.number}/{lane}"), 0
        while not self.found and (time.monotonic() < end or number == 0):
            job = Job(rng, self.directory / f"{lane}-{number}", int(sizes[0] * (sizes[1] / sizes[0]) ** rng.random()), self.options.backups == "yes")
            job.out = self.disks.paths[0] / job.directory.name if self.disks.paths and rng.random() < 0.5 else job.out
            try:
                self.run_job(job)
                shutil.rmtree(job.out, ignore_errors=True)
            except Exception as error:
                self.found = self.found or f"{lane}-{number} ({job.end}) {' '.join(job.command)}: {type(error).__name__} {error}"
            number += 1

    def add_lane(self, lane: str, sizes: tuple, end: float = 0) -> None:
        self.threads.append(threading.Thread(target=self.run_lane, args=(lane, sizes, end)))
        self.threads[-1].start()

    def harm(self) -> None:
        """Injects a random fault."""
        rng, kills = self.rng, ["kill", "kill child", "master", "leave"] * (self.options.kills == "yes")
        kills += ["full disks"] * 4 if self.disks.paths and self.disks.started == self.disks.ended else []
        kind, (worker, slots) = rng.choice(["pause", "pause", "urgent", "urgent", "policy"] + kills), rng.choice(self.workers)
        self.sums[kind] += 1
        children = pathlib.Path(f"/proc/{worker.pid}/task/{worker.pid}/children")
        child = int((children.exists() and children.read_text().split() or [worker.pid])[0])
        if kind == "pause":
            os.kill(child, signal.SIGSTOP)
            time.sleep(rng.uniform(0.2, 3))
            os.kill(child, signal.SIGCONT)
        elif kind == "urgent":
            self.add_lane(f"urgent-{len(self.threads)}", (20_000, 100_000))
        elif kind == "full disks":
            self.disks.started += 1
            paths = rng.choice([self.disks.paths, self.disks.paths[:1], self.disks.paths[1:]])
            self.threads.append(threading.Thread(target=self.disks.fill, args=(paths, rng.uniform(1, 10))))
            self.threads[-1].start()
        elif kind == "policy":
            self.client("cluster", "policy", "--policy", rng.choice(POLICIES), seconds=60)
        else:
            victim = {"master": self.master.pid, "kill child": child}.get(kind, worker.pid)
            os.kill(victim, signal.SIGTERM if kind == "leave" else signal.SIGKILL)
            self.master.wait() if kind == "master" else self.workers.remove((worker, slots))
            time.sleep(rng.choice([0, 0, 0.5, 2]))
            self.start_master() if kind == "master" else self.start_worker(slots)

    def run(self) -> None:
        try:
            self.start_master()
            for slots in self.slots:
                self.start_worker(slots)
            for lane in range(self.rng.choice([1, 1, 1, 2, 3])):
                self.add_lane(f"lane-{lane}", (self.rng.choice([1_000_000, 4_000_000]), 10_000_000), time.monotonic() + ROUND_SECONDS)
            # All jobs must end after the last fault. Faults that never end can delay a job forever.
            per_second, end = self.rng.choice([0.05, 0.1, 0.1, 0.25]), time.monotonic() + 2 * ROUND_SECONDS
            while any(thread.is_alive() for thread in self.threads) and not self.found:
                wake = time.monotonic() + self.rng.expovariate(per_second)
                while time.monotonic() < wake and any(thread.is_alive() for thread in self.threads) and not self.found:
                    time.sleep(0.1)
                self.harm() if time.monotonic() < end and any(thread.is_alive() for thread in self.threads) else None
        except Exception as error:
            self.found = self.found or f"{type(error).__name__} {error}"
        finally:
            self.stop()
        if self.masters == 1 and not self.found:
            code, report, words = self.client("lab", "replay", self.directory / "journal-1", "--json")
            self.found = f"replay: {report} {words}" if code or not json.loads(report)["agrees"] else None
            self.sums["replays"] += 1
        journals = [path.read_bytes() for path in self.directory.glob("journal-*")]
        self.sums.update({f"cuts of {kind}s": sum(text.count(b'"%s_added"' % kind.encode()) for text in journals) for kind in ("map", "reduce")})

    def stop(self) -> None:
        """Ends all processes. Those that a worker has started end with it; a master that ends in good order completes its journal."""
        for process in sorted(self.started, key=lambda process: process is self.master):
            process.terminate() if process is self.master and not self.found else process.kill()
            try:
                process.wait(30)
            except subprocess.TimeoutExpired:
                self.found = self.found or "the master does not end"
                process.kill()
        for thread in self.threads:
            thread.join()
        self.disks.unmount(bool(self.found))


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    for flag, kind, default in (("program", str, "target/debug/gristmill"), ("directory", str, tempfile.gettempdir()), ("seconds", float, 60),
                                ("cuts", int, 1 << 60), ("seed", int, random.SystemRandom().randrange(1 << 32)), ("round", int, None),
                                ("kills", str, "yes"), ("backups", str, "no"), ("disks", str, "yes" if os.geteuid() == 0 else "no")):
        parser.add_argument(f"--{flag}", type=kind, default=default)
    options = parser.parse_args()
    if options.disks == "yes":
        assert ctypes.CDLL(None).unshare(CLONE_NEWNS) == 0, "a mount namespace could not be created"
        subprocess.run(["mount", "--make-rprivate", "/"], check=True)
    options.program = str(pathlib.Path(options.program).resolve())
    sums, end, number = Counter(), time.monotonic() + options.seconds, options.round or 0
    signal.signal(signal.SIGTERM, lambda *_: (print(json.dumps(sums, sort_keys=True), flush=True), sys.exit(143)))
    print(f"seed {options.seed}", flush=True)
    while time.monotonic() < end and sums["cuts of maps"] + sums["cuts of reduces"] < options.cuts:
        directory = pathlib.Path(tempfile.mkdtemp(prefix=f"round-{options.seed}-{number}-", dir=options.directory))
        round_ = Round(options, number, directory, sums)
        round_.run()
        sums["rounds"] += 1
        if round_.found:
            print(f"difference in {directory}: {round_.found}\nslots {round_.slots}, {round_.policy}, {round_.flags}\nagain: {sys.argv[0]} --seed "
                  f"{options.seed} --round {number} --kills {options.kills} --backups {options.backups} --disks {options.disks}\n{json.dumps(sums)}")
            return 1
        shutil.rmtree(directory)
        number += 1
        if options.round is not None:
            break
    print(json.dumps(sums, sort_keys=True))
    return 0


if __name__ == "__main__":
    sys.exit(main())
