"""What the scripts of this folder share: hosts that are network namespaces of this machine, the four standard jobs with
what other programs answer, and looks at what is left behind.

Everything that is started or made here goes with the script, and nothing is sent beyond this machine.
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
# The exit code of a script whose programs cannot be had here.
NOT_HERE = 3
# How long whatever is waited for may take, seconds.
PATIENCE = 60.0
# Of text, and of two tables.
SIZE = "4MiB"
ENV = {"PATH": "/usr/sbin:/usr/bin:/sbin:/bin", "LC_ALL": "C"}


# Debian's packages of programs; those that every Debian has stand in none.
PACKAGES = {"ip": "iproute2", "ss": "iproute2", "ssh": "openssh-client", "ssh-keygen": "openssh-client",
            "sshd": "openssh-server", "slurmctld": "slurmctld", "slurmd": "slurmd", "sbatch": "slurm-client",
            "munged": "munge", "curl": "curl", "hostname": "hostname", "setpriv": "util-linux", "unshare": "util-linux"}


def need(*programs: str) -> None:
    """Installs what is missing, where that is possible; else ends with one line."""
    if os.geteuid() != 0:
        leave("not root, who alone can make network namespaces")
    if not PROGRAM.exists():
        leave(f"{PROGRAM} is not built: cargo build -p gristmill")

    def missing() -> list[str]:
        return [program for program in programs if not shutil.which(program, path=ENV["PATH"])]

    if missing() and shutil.which("apt-get"):
        packages = sorted({PACKAGES[program] for program in missing() if program in PACKAGES})
        env = {**os.environ, "DEBIAN_FRONTEND": "noninteractive"}
        for words in (["update", "-qq"], ["install", "-y", "-qq", "--no-install-recommends", *packages]):
            subprocess.run(["apt-get", *words], env=env, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)
    if missing():
        leave(f"{', '.join(missing())} missing")
    spaces = run(["unshare", "--net", "--mount", "--uts", "true"])
    if spaces.returncode != 0:
        leave(f"no hosts can be made: {spaces.stderr.strip()}")


def leave(why: str) -> None:
    print(f"not run: {why}")
    sys.exit(NOT_HERE)


def run(command: list, **further) -> subprocess.CompletedProcess:
    return subprocess.run([str(word) for word in command], capture_output=True, text=True, **further)


def check(said: str, holds: bool, found: object = "") -> None:
    if not holds:
        raise AssertionError(f"{said}: {found}")
    print(f"  ok: {said}", flush=True)


def wait(what: str, condition, seconds: float = PATIENCE):
    end = time.monotonic() + seconds
    while time.monotonic() < end:
        value = condition()
        if value:
            return value
        time.sleep(0.05)
    raise AssertionError(f"{what}: not seen within {seconds:.0f} s")


class Lan:
    """Hosts on a switch, numbered from 1: each is a namespace, with a name, a home folder and a /tmp of its own."""

    def __init__(self, hosts: int, folder: pathlib.Path, own_root: bool = True) -> None:
        """With `own_root` its home folder is seen as /root, which hides what else lies there."""
        self.name, self.folder, self.hosts, self.own_root = f"gp{os.getpid()}", folder, range(1, hosts + 1), own_root
        self.servers: dict[int, subprocess.Popen] = {}
        self.ip("netns", "add", self.space(0))
        self.ip("-n", self.space(0), "link", "add", "switch", "type", "bridge")
        self.ip("-n", self.space(0), "link", "set", "switch", "up")
        for host in self.hosts:
            space = self.space(host)
            self.ip("netns", "add", space)
            cable = f"cable{host}"
            self.ip("-n", self.space(0), "link", "add", cable, "type", "veth", "peer", "name", "eth0", "netns", space)
            self.ip("-n", self.space(0), "link", "set", cable, "master", "switch", "up")
            self.ip("-n", space, "address", "add", f"{self.address(host)}/24", "dev", "eth0")
            for link in ("lo", "eth0"):
                self.ip("-n", space, "link", "set", link, "up")
            for own in (self.home(host), self.tmp(host)):
                own.mkdir(mode=0o700)

    def ip(self, *words: str) -> None:
        subprocess.run(["ip", *words], check=True, capture_output=True)

    def space(self, host: int) -> str:
        return f"{self.name}h{host}"

    def address(self, host: int) -> str:
        return f"10.79.0.{host}"

    def home(self, host: int) -> pathlib.Path:
        return self.folder / f"home{host}"

    def tmp(self, host: int) -> pathlib.Path:
        return self.folder / f"tmp{host}"

    def root(self, host: int) -> str:
        """Its home folder as its processes call it."""
        return "/root" if self.own_root else str(self.home(host))

    def env(self, host: int) -> dict:
        return {**ENV, "HOME": self.root(host)}

    def on(self, host: int, *command: object) -> list[str]:
        """A command as one of that host. The shell sets the host up and is gone."""
        home = f"mount --bind {self.home(host)} /root; " if self.own_root else ""
        script = (f"set -e; hostname node{host}; {home}mount --bind {self.tmp(host)} /tmp; cd {self.root(host)}; "
                  'exec "$@"')
        words = [str(word) for word in command]
        # Not by `ip netns exec`, which hides the control groups that Slurm looks for.
        return ["nsenter", f"--net=/run/netns/{self.space(host)}", "unshare", "-m", "-u", "sh", "-c", script, "sh", *words]

    def run(self, host: int, *command: object, **further) -> subprocess.CompletedProcess:
        return run(self.on(host, *command), env=self.env(host), **further)

    def serve(self, host: int, *command: object) -> subprocess.Popen:
        """Starts what runs until the host goes."""
        said = open(self.folder / f"server{host}.log", "ab")
        server = subprocess.Popen(self.on(host, *command), env=self.env(host), stdin=subprocess.DEVNULL,
                                  stdout=said, stderr=said)
        self.servers[host] = server
        return server

    def pids(self, host: int) -> list[int]:
        return [int(pid) for pid in run(["ip", "netns", "pids", self.space(host)]).stdout.split()]

    def processes(self, host: int) -> list[str]:
        """Command lines of what lives there, but for the server that this script has started."""
        server = self.servers.get(host)
        lines = []
        for pid in self.pids(host):
            words = pathlib.Path(f"/proc/{pid}/cmdline")
            try:
                line = words.read_bytes().replace(b"\0", b" ").decode(errors="replace").strip()
            except OSError:
                continue
            if line and not (server and pid == server.pid):
                lines.append(line)
        return lines

    def listening(self, host: int) -> list[str]:
        said = run(["ip", "netns", "exec", self.space(host), "ss", "-Hltn"]).stdout
        return [line.split()[3] for line in said.splitlines()]

    def files(self, host: int) -> list[str]:
        """What lies in its home and its /tmp."""
        found = [path for top in (self.home(host), self.tmp(host)) for path in top.rglob("*")]
        return sorted(str(path.relative_to(self.folder)) for path in found)

    def kill(self, host: int) -> None:
        """All that runs there, at once."""
        while pids := self.pids(host):
            for pid in pids:
                try:
                    os.kill(pid, signal.SIGKILL)
                except ProcessLookupError:
                    pass
            self.reap(host)

    def reap(self, host: int) -> None:
        server = self.servers.get(host)
        if server and server.poll() is not None:
            del self.servers[host]

    def close(self) -> None:
        for host in self.hosts:
            self.kill(host)
        for server in self.servers.values():
            server.wait()
        for host in (0, *self.hosts):
            subprocess.run(["ip", "netns", "delete", self.space(host)], capture_output=True)


class Jobs:
    """The four standard jobs over files of their own, each beside what other programs answer."""

    def __init__(self, folder: pathlib.Path, seen: str) -> None:
        """The files lie in `folder`, which the submitter calls `seen`."""
        self.folder, self.seen = folder, seen
        folder.mkdir()
        for words in (["text", folder / "text"], ["tables", folder / "tables"]):
            made = run([PROGRAM, "gen", *words, "--size", SIZE])
            assert made.returncode == 0, made.stderr
        self.number = 0

    def oracle(self, script: str) -> bytes:
        answer = subprocess.run(["bash", "-c", f"set -o pipefail; {script}"], cwd=self.folder, env=ENV, capture_output=True)
        assert answer.returncode == 0, answer.stderr
        return answer.stdout

    def all(self) -> list[tuple[str, list[str], str]]:
        """Name, words behind `submit`, and the shell pipeline that answers the same once both are sorted."""
        text, users, visits = (f"{self.seen}/{name}" for name in ("text", "tables/users.csv", "tables/visits.csv"))
        joined = ("join -t, -1 1 -2 2 <(tail -n +2 tables/users.csv | sort -t, -k1,1) "
                  "<(tail -n +2 tables/visits.csv | sort -t, -k2,2)")
        return [
            ("wordcount", ["wordcount", text], "tr -s ' ' '\\n' < text | grep -v '^$' | sort | uniq -c | awk '{print $2\"\\t\"$1}'"),
            ("grep", ["grep", "z[aeiou]{1}l", text], "grep -E 'z[aeiou]{1}l' text"),
            ("sort", ["sort", text], "sort text"),
            ("join", ["join", "--left", users, "--right", visits, "--on", "user"], joined),
        ]

    def compare(self, submit, names: tuple = ("wordcount", "grep", "sort", "join")) -> None:
        """Runs them. `submit` gets words and the output folder, and answers the finished process."""
        for name, words, script in self.all():
            if name not in names:
                continue
            self.number += 1
            output = f"output-{self.number}"
            ended = submit([*words, "--output", f"{self.seen}/{output}", "--quiet", "--allow-root"])
            check(f"{name} ends well", ended.returncode == 0, ended.stderr)
            self.judge(name, output)

    def judge(self, name: str, output: str) -> None:
        script = next(script for job, _, script in self.all() if job == name)
        parts = sorted((self.folder / output).glob("part-*"))
        ours, theirs = b"".join(part.read_bytes() for part in parts), self.oracle(script)
        if name == "join":
            # The key stands twice in our rows, once for each table, and rows of a part are in another order.
            rows = [line.split(b",") for line in ours.splitlines() if line]
            # user,name,country,joined and visit,user,...
            rows = [row[:5] + row[6:] for row in rows if row[0] != b"user"]
            ours, theirs = (sorted(b",".join(row) for row in rows), sorted(theirs.splitlines()))
        elif name == "wordcount":
            ours, theirs = sorted(ours.splitlines()), sorted(theirs.splitlines())
        check(f"{name} answers what coreutils answer ({len(theirs)} lines or bytes)", ours == theirs and len(theirs) > 0)


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


def compares(gristmill, folder: pathlib.Path, join: object) -> None:
    """Two policies over the same workload on a cluster that is there, in a folder that all its hosts see."""
    folder.mkdir()
    (folder / "tiny.toml").write_text(WORKLOAD)
    said = gristmill("compare", folder / "tiny.toml", "--policy", "fifo,fair", "--repeat", "1", "--no-warm-up",
                     "--no-calibration", "--out", folder / "compared", "--join", join)
    pages = [(folder / f"compared/runs/{run}-1/results.json").exists() for run in ("fifo", "fair")]
    check("compare runs two policies on it", said.returncode == 0 and pages == [True, True], said.stderr)


def secret_is_nowhere(lan: Lan, line: str) -> None:
    """Not in what other users can see of processes."""
    secret = line.split("#")[1].split(".")[0].split(":")[-1]
    seen = 0
    for host in lan.hosts:
        for pid in lan.pids(host):
            for name in ("cmdline", "environ"):
                try:
                    text = pathlib.Path(f"/proc/{pid}/{name}").read_bytes()
                except OSError:
                    continue
                seen += 1
                assert secret.encode() not in text and b"gm1:" not in text, f"{name} of process {pid}"
    check(f"no secret in {seen} command lines and environments", 0 < seen)


def folder() -> tuple[pathlib.Path, pathlib.Path]:
    """A folder that hosts see, and the program in it. Not in /tmp or /root, which hosts have of their own."""
    made = pathlib.Path(tempfile.mkdtemp(prefix="gristmill-places-", dir="/var/tmp"))
    made.chmod(0o755)
    return made, pathlib.Path(shutil.copy(PROGRAM, made / "gristmill"))


def as_json(said: subprocess.CompletedProcess) -> object:
    assert said.returncode == 0, said.stderr
    return json.loads(said.stdout)


def show_logs(folder: pathlib.Path) -> None:
    """What servers have said, for whoever looks for the cause of a failure."""
    for log in sorted([*folder.glob("*.log"), *folder.glob("*/.local/**/*.log"), *folder.glob("*/state/*.log")]):
        print(f"--- {log.name}\n" + "\n".join(log.read_text(errors="replace").splitlines()[-8:]))
