#!/usr/bin/env python3
"""Measures how fast a job reads from an S3 server on this machine, beside plain GETs of the same objects, in turn.

usage: scripts/stores_speed.py [--program PROGRAM] [--megabytes 1000] [--rounds 3]

Two curls at once get all objects; then `run grep` looks for the one line of each that matches. Aim: the job takes at most
1.3 times as long. Of each the shortest round counts, beside it all rounds. The same job on the same files, without the
server, is there to say what it takes by itself. The server is s3s-fs, which `cargo install` builds into target/bench the
first time. It takes part of the same cores. Objects are put there by way of it: of files
that it finds it makes a sum for each GET. Without --program the shipped build is made first. Ends with code 1 if the
aim is missed. Not here: what stores do wrong (cli/tests/it/stores).
"""
import argparse
import os
import pathlib
import socket
import subprocess
import sys
import tempfile
import time

from shipped import ROOT, shipped

SERVER, SERVER_VERSION = "s3s-fs", "0.14.1"
OBJECTS, AT_ONCE = 16, 2
RATIO_MAX = 1.3
START_SECONDS_MAX = 10
KEY_ID, SECRET = "AKIDOFTHEBENCH", "secretofthebench"


def server_program():
    """The server's program, installed if need be."""
    home = pathlib.Path(os.environ.get("GRISTMILL_BENCH_HOME", ROOT / "target/bench"))
    program = home / "bin" / SERVER
    if not program.exists():
        words = ["cargo", "install", "--quiet", "--locked", "--root", home, "--version", SERVER_VERSION, "--features", "binary", SERVER]
        subprocess.run(words, check=True)
    return program


def free_port():
    with socket.socket() as some:
        some.bind(("127.0.0.1", 0))
        return some.getsockname()[1]


def wait_for(port, server):
    end = time.monotonic() + START_SECONDS_MAX
    while time.monotonic() < end and server.poll() is None:
        with socket.socket() as some:
            if some.connect_ex(("127.0.0.1", port)) == 0:
                return
        time.sleep(0.02)
    sys.exit(f"{SERVER} did not listen within {START_SECONDS_MAX} s")


def timed(words, **more):
    """Seconds of a command, and what it wrote."""
    begun = time.monotonic()
    done = subprocess.run(words, stdin=subprocess.DEVNULL, capture_output=True, text=True, **more)
    took = time.monotonic() - begun
    if done.returncode:
        sys.exit(f"{words} ended with {done.returncode}: {done.stderr[-2000:]}")
    return took, done.stdout


def texts(program, folder, megabytes):
    """Objects with one line each that matches; their bytes."""
    one = subprocess.run([program, "gen", "text", folder / "text-00", "--size", f"{megabytes * 1_000_000 // OBJECTS}B", "--seed", "7"],
                         capture_output=True, text=True)
    if one.returncode:
        sys.exit(f"could not make the texts: {one.stderr}")
    text = (folder / "text-00").read_bytes()
    middle = text.index(b"\n", len(text) // 2) + 1
    for number in range(OBJECTS):
        (folder / f"text-{number:02}").write_bytes(text[:middle] + b"NEEDLE %d\n" % number + text[middle:])
    return sum(path.stat().st_size for path in folder.iterdir())


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--program")
    parser.add_argument("--megabytes", type=int, default=1000)
    parser.add_argument("--rounds", type=int, default=3)
    asked = parser.parse_args()
    program = shipped(asked.program)
    serve = server_program()
    with tempfile.TemporaryDirectory(prefix="gristmill-stores-", dir=os.environ.get("TMPDIR")) as base:
        folder, served = pathlib.Path(base) / "texts", pathlib.Path(base) / "served"
        folder.mkdir()
        served.mkdir()
        size_mb = texts(program, folder, asked.megabytes) / 1e6
        port = free_port()
        server = subprocess.Popen([serve, "--host", "127.0.0.1", "--port", str(port), "--access-key", KEY_ID, "--secret-key", SECRET, served],
                                  env={**os.environ, "RUST_LOG": "off"}, stdout=subprocess.DEVNULL)
        try:
            wait_for(port, server)
            kept = {name: os.environ[name] for name in ("PATH", "HOME", "TMPDIR") if name in os.environ}
            env = {**kept, "AWS_ENDPOINT_URL": f"http://127.0.0.1:{port}", "AWS_REGION": "us-east-1", "AWS_ACCESS_KEY_ID": KEY_ID,
                   "AWS_SECRET_ACCESS_KEY": SECRET, "AWS_EC2_METADATA_DISABLED": "true"}
            url = f"http://127.0.0.1:{port}/data"
            curl = ["curl", "--silent", "--show-error", "--fail", "--aws-sigv4", "aws:amz:us-east-1:s3", "--user", f"{KEY_ID}:{SECRET}",
                    "--header", "x-amz-content-sha256: UNSIGNED-PAYLOAD", "--output", "/dev/null"]
            timed([*curl, "--request", "PUT", url])
            for path in sorted(folder.iterdir()):
                timed([*curl, "--upload-file", path, f"{url}/{path.name}"])
            get = [*curl, "--parallel", "--parallel-max", str(AT_ONCE), f"{url}/text-[00-{OBJECTS - 1}]"]
            grep = [program, "run", "grep", "^NEEDLE", "--workers", "2", "--quiet"]
            needles = sorted(f"NEEDLE {number}" for number in range(OBJECTS))
            gets, jobs, local = [], [], []
            for _ in range(asked.rounds):
                gets.append(timed(get)[0])
                for words, times in (([*grep, "s3://data/"], jobs), ([*grep, folder], local)):
                    took, found = timed(words, env=env)
                    if sorted(found.splitlines()) != needles:
                        sys.exit(f"{words} found {found!r}")
                    times.append(took)
        finally:
            server.terminate()
            server.wait()
    for what, times in (("GETs, two at once", gets), ("job on the store", jobs), ("job on the files", local)):
        print(f"    {what:18} {min(times):.3f} s, {size_mb / min(times):.0f} MB/s (rounds: {', '.join(f'{took:.3f}' for took in times)})")
    ratio = min(jobs) / min(gets)
    print(f"    job over GETs: {ratio:.2f}{'' if ratio <= RATIO_MAX else '  MISSED'}")
    if RATIO_MAX < ratio:
        sys.exit(1)


if __name__ == "__main__":
    main()
