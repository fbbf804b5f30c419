"""Shared by the scripts of this directory: hosts, the four standard jobs, and checks of leftovers.

Hosts are network namespaces of this machine. Results are compared with coreutils. All that is started or created here ends
with the script.
"""
import json
import os
import pathlib
import shutil
import signal
import subprocess
import sys
import tempfile
import time

ROOT = pathlib.Path(__file__).resolve().parents[2]
PROGRAM = pathlib.Path(os.environ.get("GRISTMILL", ROOT / "target/debug/gristmill"))
ENV = {"PATH": "/usr/sbin:/usr/bin:/sbin:/bin", "LC_ALL": "C"}
# Debian's packages of programs that not every Debian has.
PACKAGES = {"ip": "iproute2", "ss": "iproute2", "ssh": "openssh-client", "sshd": "openssh-server", "curl": "curl",
            "slurmctld": "slurmctld", "slurmd": "slurmd", "sbatch": "slurm-client", "munged": "munge"}
WORDS = "tr -s ' ' '\\n' < text | grep -v '^$' | sort | uniq -c | awk '{print $2\"\\t\"%s$1}'"
JOIN = ("join -t, -1 1 -2 2 <(tail -n +2 tables/users.csv | sort -t, -k1,1) <(tail -n +2 tables/visits.csv | sort -t, -k2,2)")
# Six jobs that mostly sleep.
WORKLOAD = """name = "tiny"
seed = 5
[arrivals]
kind = "poisson"
mean-interval = "60ms"
[[job]]
name = "synthetic"
args = ["--maps", "4", "--map-time", "exp:60ms", "--reduce-time", "30ms", "--map-bytes", "2KiB", "--seed", "{seed}"]
count = 6
reduces = 2
"""


def leave(why: str) -> None:
    """Ends the script with the code for tests that are impossible here."""
    print(f"not run: {why}")
    sys.exit(3)


def need(*programs: str, packages: str = "", venv: pathlib.Path | None = None) -> None:
    """Installs missing programs, and packages of PyPI into a virtual environment, or ends with one line."""
    if os.geteuid() != 0 or not PROGRAM.exists():
        leave(f"needs root, and {PROGRAM}: cargo build -p gristmill")
    programs = ("ip", "ss", "unshare", "nsenter", *programs)
    lacking = lambda: [program for program in programs if not shutil.which(program, path=ENV["PATH"])]  # noqa: E731
    if lacking() and shutil.which("apt-get"):
        names = sorted({PACKAGES[program] for program in lacking() if program in PACKAGES})
        for words in (["update", "-qq"], ["install", "-y", "-qq", "--no-install-recommends", *names]):
            run(["apt-get", *words], env={**os.environ, "DEBIAN_FRONTEND": "noninteractive"})
    if lacking():
        leave(f"{', '.join(lacking())} missing")
    spaces = run(["unshare", "--net", "--mount", "--uts", "true"])
    if spaces.returncode != 0:
        leave(f"no hosts can be made: {spaces.stderr.strip()}")
    if venv and not (venv / "bin/python").exists():
        run([sys.executable, "-m", "venv", venv])
        if run([venv / "bin/python", "-m", "pip", "install", "--quiet", *packages.split()]).returncode != 0:
            shutil.rmtree(venv, ignore_errors=True)
            leave(f"{packages} could not be installed")


def run(command: list, **further) -> subprocess.CompletedProcess:
    return subprocess.run([str(word) for word in command], capture_output=True, text=True, **further)


def check(said: str, holds: bool, found: object = "") -> None:
    if not holds:
        raise AssertionError(f"{said}: {found}")
    print(f"  ok: {said}", flush=True)


def wait(what: str, condition, seconds: float = 60.0):
    end = time.monotonic() + seconds
    while time.monotonic() < end:
        if value := condition():
            return value
        time.sleep(0.05)
    raise AssertionError(f"{what}: not seen within {seconds:.0f} s")


def as_json(said: subprocess.CompletedProcess) -> object:
    assert said.returncode == 0, said.stderr
    return json.loads(said.stdout)


class Lan:
    """Hosts on a switch, numbered from 1: each is a namespace with its own name, home directory and /tmp."""

    def __init__(self, hosts: int, directory: pathlib.Path, own_root: bool = True) -> None:
        """With `own_root` its home is mounted at /root, which hides what else is there."""
        self.name, self.directory, self.hosts, self.own_root = f"gp{os.getpid()}", directory, range(1, hosts + 1), own_root
        self.servers: dict[int, subprocess.Popen] = {}
        ip = lambda words: subprocess.run(["ip", *words.split()], check=True, capture_output=True)  # noqa: E731
        ip(f"netns add {self.space(0)}")
        ip(f"-n {self.space(0)} link add switch type bridge")
        ip(f"-n {self.space(0)} link set switch up")
        for host in self.hosts:
            space = self.space(host)
            ip(f"netns add {space}")
            ip(f"-n {self.space(0)} link add cable{host} type veth peer name eth0 netns {space}")
            ip(f"-n {self.space(0)} link set cable{host} master switch up")
            ip(f"-n {space} address add {self.address(host)}/24 dev eth0")
            ip(f"-n {space} link set lo up")
            ip(f"-n {space} link set eth0 up")
            self.home(host).mkdir(mode=0o700)
            self.tmp(host).mkdir(mode=0o700)

    def space(self, host: int) -> str:
        return f"{self.name}h{host}"

    def address(self, host: int) -> str:
        return f"10.79.0.{host}"

    def home(self, host: int) -> pathlib.Path:
        return self.directory / f"home{host}"

    def tmp(self, host: int) -> pathlib.Path:
        return self.directory / f"tmp{host}"

    def root(self, host: int) -> str:
        return "/root" if self.own_root else str(self.home(host))

    def on(self, host: int, *command: object) -> list[str]:
        """A command of that host. Not by `ip netns exec`, which hides the control groups that Slurm needs."""
        home = f"mount --bind {self.home(host)} /root; " if self.own_root else ""
        script = f"set -e; hostname node{host}; {home}mount --bind {self.tmp(host)} /tmp; cd {self.root(host)}; exec \"$@\""
        return ["nsenter", f"--net=/run/netns/{self.space(host)}", "unshare", "-m", "-u", "env", f"HOME={self.root(host)}",
                "sh", "-c", script, "sh", *[str(word) for word in command]]

    def run(self, host: int, *command: object) -> subprocess.CompletedProcess:
        return run(self.on(host, *command), env=ENV, timeout=300)

    def start(self, host: int, *command: object, output: object = None) -> subprocess.Popen:
        output = output or open(self.directory / f"server{host}.log", "ab")
        return subprocess.Popen(self.on(host, *command), env=ENV, stdin=subprocess.DEVNULL, stdout=output, stderr=output)

    def serve(self, host: int, *command: object) -> None:
        """Starts a server that runs until its host is killed."""
        self.servers[host] = self.start(host, *command)

    def pids(self, host: int) -> list[int]:
        return [int(pid) for pid in run(["ip", "netns", "pids", self.space(host)]).stdout.split()]

    def processes(self, host: int) -> list[str]:
        """Command lines of all but the server."""
        server = self.servers.get(host)
        ps = run(["ps", "-o", "args=", "-p", ",".join(str(pid) for pid in self.pids(host) if not server or pid != server.pid)])
        return ps.stdout.splitlines()

    def ports(self, host: int) -> set[int]:
        said = run(["ip", "netns", "exec", self.space(host), "ss", "-Hltn"]).stdout
        return {int(line.split()[3].rsplit(":", 1)[1]) for line in said.splitlines()}

    def kill(self, host: int) -> None:
        """Kills all processes of a host."""
        while pids := self.pids(host):
            for pid in pids:
                try:
                    os.kill(pid, signal.SIGKILL)
                except ProcessLookupError:
                    pass
            if host in self.servers and self.servers[host].poll() is not None:
                del self.servers[host]

    def close(self) -> None:
        for host in self.hosts:
            self.kill(host)
        for host in (0, *self.hosts):
            run(["ip", "netns", "delete", self.space(host)])


class Place:
    """A cluster of Gristmill on a LAN: the steps of each place, and the test that all of them share."""

    hosts, own_root, nodes = 4, True, (2, 3, 4)

    def __init__(self) -> None:
        # Not in /tmp or /root, which hosts have of their own.
        self.directory = pathlib.Path(tempfile.mkdtemp(prefix="gristmill-places-", dir="/var/tmp"))
        self.directory.chmod(0o755)
        self.program = pathlib.Path(shutil.copy(PROGRAM, self.directory / "gristmill"))
        self.lan = Lan(self.hosts, self.directory, self.own_root)
        self.environment: list[str] = []
        # State directory, and its path on the host that submits.
        self.state, self.seen_state = self.directory / "state", str(self.directory / "state")
        self.outputs = 0

    def gristmill(self, *words: object) -> subprocess.CompletedProcess:
        # Flags of workers may end the command.
        verb, *further = words
        return self.lan.run(1, "env", *self.environment, self.program, *verb.split(), "--state", self.seen_state, *further)

    def submit(self, *words: object) -> subprocess.CompletedProcess:
        return self.gristmill("submit", *words)

    def workers(self) -> list[str]:
        listed = as_json(self.gristmill("cluster status", "--json"))["workers"]
        return sorted(worker["host"].split("/")[0] for worker in listed if not worker["away"])

    def make_data(self, host: int = 1) -> None:
        self.data = self.lan.tmp(host) / "data"
        self.data.mkdir()
        for kind in ("text", "tables"):
            assert run([PROGRAM, "gen", kind, self.data / kind, "--size", "4MiB"]).returncode == 0

    def judge(self, output: str, script: str, columns=None) -> None:
        """Compares the parts of an output with the output of a shell command; in order for `sort` and `grep`."""
        ours = b"".join(part.read_bytes() for part in sorted((self.data / output).glob("part-*"))).splitlines()
        oracle = subprocess.run(["bash", "-c", f"set -o pipefail; {script}"], cwd=self.data, env=ENV, capture_output=True)
        assert oracle.returncode == 0, oracle.stderr
        theirs = oracle.stdout.splitlines()
        if columns:
            rows = [line.split(b",") for line in ours]
            ours = [b",".join(row[:columns] + row[columns + 1:]) for row in rows if row[0] != b"user"]
        if not script.startswith(("sort", "grep")):
            ours, theirs = sorted(ours), sorted(theirs)
        check(f"{output} has what coreutils print ({len(theirs)} lines)", ours == theirs and len(theirs) > 0)

    def four_jobs(self) -> None:
        text, users, visits = (f"/tmp/data/{name}" for name in ("text", "tables/users.csv", "tables/visits.csv"))
        for name, words, script, columns in (
                ("wordcount", [text], WORDS % "", None), ("grep", ["z[aeiou]{1}l", text], "grep -E 'z[aeiou]{1}l' text", None),
                ("sort", [text], "sort text", None),
                # The key is in the expected rows twice, once for each table.
                ("join", ["--left", users, "--right", visits, "--on", "user"], JOIN, 5)):
            ended = self.submit(name, *words, "--output", f"/tmp/data/out-{name}", "--quiet", "--allow-root")
            check(f"{name} ends well", ended.returncode == 0, ended.stderr)
            self.judge(f"out-{name}", script, columns)

    def compares(self) -> None:
        """Two policies over one workload."""
        compared = self.directory / "compare"
        compared.mkdir()
        (compared / "tiny.toml").write_text(WORKLOAD)
        said = self.gristmill("lab compare", compared / "tiny.toml", "--policy", "fifo,fair", "--repeat", 1, "--no-warm-up",
                              "--no-calibration", "--out", compared / "out", "--join", f"{self.seen_state}/join")
        pages = [(compared / f"out/runs/{run}-1/results.json").exists() for run in ("fifo", "fair")]
        check("compare runs two policies", said.returncode == 0 and pages == [True, True], said.stderr)

    def loses_a_node(self, lost: int) -> None:
        """Kills all processes of a node while a job runs."""
        job = self.lan.start(1, "env", *self.environment, self.program, "submit", "wordcount", *["/tmp/data/text"] * 8,
                             "--split-size", "64KiB", "--allow-root", "--output", "/tmp/data/lost", "--quiet", "--state",
                             self.seen_state)
        wait("a job that runs", lambda: any(one["state"] == "running" and one["maps"]["done"] > 0
                                            for one in as_json(self.gristmill("job list", "--json"))))
        self.lan.kill(lost)
        check(f"node{lost} was lost while the job ran", job.poll() is None)
        check("the job ends well without it", job.wait(timeout=120) == 0)
        self.judge("lost", WORDS % "8*")

    def secret_is_nowhere(self, join: pathlib.Path) -> None:
        """Checks that other users cannot see the secret in processes."""
        secret = join.read_text().split("#")[1].split(".")[0].split(":")[-1].encode()
        seen = [path.read_bytes() for host in self.lan.hosts for pid in self.lan.pids(host)
                for path in (pathlib.Path(f"/proc/{pid}/cmdline"), pathlib.Path(f"/proc/{pid}/environ")) if path.exists()]
        check(f"no secret in {len(seen)} command lines and environments",
              len(seen) > 0 and not any(secret in text or b"gm1:" in text for text in seen))

    def nothing_is_left(self, hosts: tuple, known: tuple = (), known_files: tuple = ()) -> None:
        for host in hosts:
            ours = [line for line in self.lan.processes(host) if not any(word in line for word in known)]
            check(f"node{host} has no process", ours == [], ours)
            files = [str(path.relative_to(self.directory)) for top in (self.lan.home(host), self.lan.tmp(host)) if host != 1
                     for path in top.rglob("*") if path.name not in ("gristmill-0", *known_files) and "/ray/" not in str(path)]
            check(f"node{host} has no file", files == [], files)
        check("nothing is up by the state directory", not (self.state / "up/record.json").exists())

    def close(self) -> None:
        self.lan.close()

    def main(self) -> None:
        try:
            self.drill()
        except BaseException:
            for log in sorted([*self.directory.glob("*.log"), *self.directory.glob("**/state/*.log")]):
                print(f"--- {log.name}\n" + "\n".join(log.read_text(errors="replace").splitlines()[-8:]))
            raise
        finally:
            self.close()
            shutil.rmtree(self.directory, ignore_errors=True)
        print(f"{type(self).__name__.lower()}: all of it holds")
