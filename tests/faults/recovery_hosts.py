"""Hosts for `recovery.py`: network namespaces of this machine on a switch, a cluster on them, and faults.

All that is started or created here ends with the script.
"""
import json
import os
import pathlib
import signal
import socket
import struct
import subprocess
import sys
import threading
import time

MASTER, WORKERS = 1, (2, 3, 4)
# A hardware address that does not exist: packets to it are lost without an error.
NOBODY = "02:00:00:00:00:99"
# Bytes of a response that pass before the connection drips or is reset, so that segments start to arrive. A dripping
# connection then sends one byte per pause.
FREE_BYTES, DRIP_PAUSE = 8192, 0.5
ORIGINAL_DESTINATION = 80  # SO_ORIGINAL_DST, which Python has no name for


def ip(*arguments: str) -> None:
    subprocess.run(["ip", *arguments], check=True, capture_output=True)


def wait(what: str, condition, seconds: float = 20.0):
    end = time.monotonic() + seconds
    while time.monotonic() < end:
        value = condition()
        if value:
            return value
        time.sleep(0.002)
    raise RuntimeError(f"{what}: not seen in {seconds:.0f} s")


def children(pid: int) -> list[int]:
    try:
        return [int(child) for child in pathlib.Path(f"/proc/{pid}/task/{pid}/children").read_text().split()]
    except OSError:
        return []


class Lan:
    """Hosts on a switch; each is a namespace."""

    def __init__(self) -> None:
        self.name = f"gr{os.getpid()}"
        self.hosts = (MASTER, *WORKERS)
        # Rules between hosts.
        self.proxies: list[subprocess.Popen] = []
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

    def run(self, host: int, *command: str, text: str | None = None) -> None:
        subprocess.run(self.on(host, *command), check=True, capture_output=True, input=text, text=True)

    def cut(self, one: int, other: int) -> None:
        """Drops all packets between the two hosts."""
        for sender, receiver in ((one, other), (other, one)):
            ip("-n", self.space(sender), "neigh", "replace", self.address(receiver), "lladdr", NOBODY, "dev", "eth0",
               "nud", "permanent")

    def vanish(self, host: int) -> None:
        ip("-n", self.space(0), "link", "set", f"cable{host}", "down")

    def throttle(self, host: int, rate: str) -> None:
        """Throttles both directions of this host's link."""
        limit = ["root", "tbf", "rate", rate, "burst", "4kb", "latency", "400ms"]
        self.run(host, "tc", "qdisc", "replace", "dev", "eth0", *limit)
        self.run(0, "tc", "qdisc", "replace", "dev", f"cable{host}", *limit)

    def filter(self, host: int, rules: str) -> None:
        self.run(host, "nft", "-f", "-", text=rules)

    def lose(self, host: int, percent: int) -> None:
        """Drops this percentage of the packets that this host sends and receives, whatever their size."""
        rule = f"numgen random mod 100 < {percent} drop"
        self.filter(host, f"table inet loss {{\nchain in {{ type filter hook input priority 0; iif eth0 {rule}; }}\n"
                          f"chain out {{ type filter hook output priority 0; oif eth0 {rule}; }}\n}}")

    def others(self, host: int) -> list[str]:
        return [self.address(other) for other in WORKERS if other != host]

    def answer_badly(self, host: int, how: str) -> None:
        """Makes this host's responses to other workers arrive byte by byte ("drip"), or resets each connection in the middle of a
        response ("reset").
        """
        proxy = subprocess.Popen(self.on(host, sys.executable, __file__, how), stdout=subprocess.PIPE, text=True)
        self.proxies.append(proxy)
        port = int(proxy.stdout.readline())
        others = ", ".join(self.others(host))
        self.filter(host, "table ip turned {\nchain in { type nat hook prerouting priority -100; "
                          f"ip saddr {{ {others} }} tcp dport 1-65535 redirect to :{port}; }}\n}}")
        # Existing connections are not redirected.
        for other in self.others(host):
            subprocess.run(self.on(host, "ss", "-K", "dst", other), capture_output=True)

    def close(self) -> None:
        for proxy in self.proxies:
            proxy.kill()
            proxy.wait()
        for host in (0, *self.hosts):
            subprocess.run(["ip", "netns", "delete", self.space(host)], capture_output=True)


class Journal:
    """The contents of a master's journal so far, and the offset of the master's clock."""

    def __init__(self, path: pathlib.Path) -> None:
        self.path, self.taken, self.instants = path, 0, []
        # Local time when the master's clock was 0: the minimum seen, as lines are read some time after they were
        # written.
        self.zero = float("inf")

    def read(self) -> list[dict]:
        if not self.path.exists():
            return []
        with open(self.path, "rb") as file:
            file.seek(self.taken)
            text = file.read()
        seen = time.monotonic()
        whole = text[:text.rfind(b"\n") + 1]
        self.taken += len(whole)
        for line in whole.splitlines():
            value = json.loads(line)
            if isinstance(value, dict) and "instant" in value:
                self.instants.append(value["instant"])
                self.zero = min(self.zero, seen - value["instant"]["at"] / 1e9)
        return self.instants

    def now(self) -> float:
        return time.monotonic() - self.zero

    def facts(self, name: str) -> list[tuple[float, dict]]:
        return [(instant["at"] / 1e9, fact[name]) for instant in self.read() for fact in instant["facts"] if name in fact]

    def orders(self, name: str) -> list[tuple[float, dict]]:
        return [(instant["at"] / 1e9, order[name]) for instant in self.read() for order in instant["orders"]
                if name in order]


class Cluster:
    """A master and its workers, each on its host."""

    def __init__(self, program: str, directory: pathlib.Path, lan: Lan, speeds: dict[int, str]) -> None:
        self.program, self.directory, self.lan = program, directory, lan
        self.environment = {**os.environ, "GRISTMILL_STATE": str(directory / "state"), "TMPDIR": str(directory)}
        self.journal = Journal(directory / "journal")
        self.flags = ["--allow-root", "--insecure-plaintext"]
        self.workers: dict[int, subprocess.Popen] = {}
        self.master = self.start(MASTER, ["cluster master", "--listen", f"{lan.address(MASTER)}:0", "--journal",
                                          str(self.journal.path), *self.flags])
        self.join = directory / "state" / "join"
        wait("the join line", lambda: self.join.exists() and self.join.read_text().strip())
        for host in WORKERS:
            speed = ["--speed", speeds[host]] if host in speeds else []
            self.workers[host] = self.start(host, ["cluster worker", "--workers", "1", "--slots", "1", "--join",
                                                   str(self.join), *self.flags, *speed])
            wait(f"worker {host}", lambda: len(self.journal.facts("worker_joined")) == len(self.workers))

    def log(self, host: int, role: str) -> pathlib.Path:
        return self.directory / f"log-{host}-{role}"

    def start(self, host: int, words: list[str]) -> subprocess.Popen:
        with open(self.log(host, words[0].split()[-1]), "ab") as log:
            # A group of its own, so that its children end with it.
            return subprocess.Popen(self.lan.on(host, self.program, *words[0].split(), *words[1:]), stdout=log, stderr=log,
                                    env=self.environment, start_new_session=True)

    def submit(self, job: list[str], output: pathlib.Path) -> subprocess.Popen:
        words = ["submit", "synthetic", *job, "--join", str(self.join), "--output", str(output), *self.flags]
        return self.start(MASTER, words)

    def worker_process(self, host: int) -> int:
        """The process that runs tasks: a child of the program that was started there."""
        return wait(f"the worker process of host {host}", lambda: children(self.workers[host].pid))[0]

    def kill(self, host: int) -> None:
        try:
            os.kill(self.worker_process(host), signal.SIGKILL)
        except ProcessLookupError:
            pass

    def kill_for_good(self, host: int) -> None:
        process = self.worker_process(host)
        os.killpg(self.workers[host].pid, signal.SIGKILL)
        try:
            os.kill(process, signal.SIGKILL)
        except ProcessLookupError:
            pass

    def stop(self, host: int, seconds: float | None) -> None:
        process = self.worker_process(host)
        os.kill(process, signal.SIGSTOP)
        if seconds is not None:
            time.sleep(seconds)
            os.kill(process, signal.SIGCONT)

    def end(self) -> None:
        for process in self.workers.values():
            # A stopped process cannot end.
            for child in children(process.pid):
                try:
                    os.kill(child, signal.SIGCONT)
                except ProcessLookupError:
                    pass
        # The master ends its workers; a process that does not react is killed.
        signals = [(self.master, signal.SIGTERM)] + [(worker, signal.SIGTERM) for worker in self.workers.values()]
        for process, word in signals:
            if process.poll() is None:
                try:
                    os.killpg(process.pid, word)
                except ProcessLookupError:
                    pass
        deadline = time.monotonic() + 5
        for process in (self.master, *self.workers.values()):
            try:
                process.wait(max(0.1, deadline - time.monotonic()))
            except subprocess.TimeoutExpired:
                os.killpg(process.pid, signal.SIGKILL)
                process.wait()


class Again:
    """Repeats an action until it is stopped."""

    def __init__(self, pause: float, deed) -> None:
        self.times, self.over = 0, threading.Event()

        def run() -> None:
            while not self.over.wait(pause):
                deed()
                self.times += 1
        self.thread = threading.Thread(target=run, daemon=True)
        self.thread.start()

    def stop(self) -> None:
        self.over.set()
        self.thread.join()


def bad_server(how: str) -> None:
    """Accepts redirected connections, and makes the other side's responses drip, or resets them."""
    door = socket.create_server(("0.0.0.0", 0))
    print(door.getsockname()[1], flush=True)

    def pass_on(source: socket.socket, target: socket.socket, answers: bool) -> None:
        passed = 0
        try:
            while piece := source.recv(1 if answers and FREE_BYTES <= passed else 1024):
                passed += len(piece)
                target.sendall(piece)
                if answers and FREE_BYTES <= passed:
                    if how == "reset":
                        for end in (source, target):
                            # Closed without a wait, which sends a reset.
                            end.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, struct.pack("ii", 1, 0))
                        break
                    time.sleep(DRIP_PAUSE)
        except OSError:
            pass
        for end in (source, target):
            end.close()

    while True:
        client, _ = door.accept()
        _, port, address = struct.unpack("!HH4s8x", client.getsockopt(socket.SOL_IP, ORIGINAL_DESTINATION, 16))
        try:
            server = socket.create_connection((socket.inet_ntoa(address), port))
        except OSError:
            client.close()
            continue
        for ends in ((client, server, False), (server, client, True)):
            threading.Thread(target=pass_on, args=ends, daemon=True).start()


if __name__ == "__main__":
    bad_server(sys.argv[1])
