#!/usr/bin/env python3
"""Builds a release, and tries it: a program without any library, packed for those who install, the same bytes each time.

usage: scripts/release.py build [--profile dist] [--target-dir DIR] [--out target/dist-files]
       scripts/release.py try OUT                what was built: installed in an empty root folder and run there, sums, sizes
       scripts/release.py twice [--profile P]    two builds in target folders of their own, compared byte by byte; one is kept
       scripts/release.py --self-test            the same with a program that is not optimised, and that wrong sums are noticed

`build` links glibc in (`crt-static`), as its target for musl is not everywhere to be had. Names of hosts are then looked up by
what the machine's own glibc has for that: where it has none, or another version, only addresses and /etc/hosts are sure to work.
`try` needs root for chroot; in the empty root there are only /proc and /dev/null beside what was installed, as in any container. The container file is packed and not built: no engine is asked for.

Paths of this machine are cut out of what is compiled (--remap-path-prefix), and files are of the moment of the last commit, or of
SOURCE_DATE_EPOCH. So the bytes follow from the sources, the compiler and the C compiler alone.
"""
import argparse
import os
import pathlib
import shutil
import stat
import subprocess
import sys
import tarfile
import tempfile
import tomllib

from release_pack import ROOT, TARGET, Release, pack, sums

STATIC = "-C target-feature=+crt-static"
# Randomness by the system call: what looks for that at run time finds nothing in a static program, and then needs /dev/urandom.
RANDOMNESS = '--cfg getrandom_backend="linux_getrandom"'
# What the empty root holds beside the program: a folder for spills, and what the kernel and every container have there.
ROOT_FOLDERS = ("tmp", "proc", "dev", "home")
NULL_DEVICE = (1, 3)
TEXT = "the mill\nthe grist\n"
COUNTS = ["grist\t1", "mill\t1", "the\t2"]
# Each word stands once in the table of counts.
WORDS_OF_TABLE = ["grist\t1", "mill\t1", "the\t1"]


def say(text: str) -> None:
    print(f"release.py: {text}", file=sys.stderr)


def asked(*words: str) -> str:
    return subprocess.run(words, cwd=ROOT, check=True, stdout=subprocess.PIPE, text=True).stdout.strip()


def moment() -> int:
    return int(os.environ.get("SOURCE_DATE_EPOCH") or asked("git", "log", "-1", "--format=%ct"))


def version() -> str:
    return tomllib.loads((ROOT / "Cargo.toml").read_text())["workspace"]["package"]["version"]


def build_id() -> str:
    """The commit, and whether anything differs from it."""
    changed = asked("git", "status", "--porcelain", "--untracked-files=no")
    return asked("git", "rev-parse", "--short=12", "HEAD") + ("-changed" if changed else "")


def build_variables(target_dir: pathlib.Path) -> dict:
    """The environment of a build that knows no path of this machine."""
    cargo_home = os.environ.get("CARGO_HOME") or pathlib.Path.home() / ".cargo"
    places = {str(target_dir): "/target", str(ROOT): "/gristmill", str(cargo_home): "/cargo", asked("rustc", "--print", "sysroot"): "/rust"}
    # The innermost folder last: the last rule that fits is the one that counts.
    ordered = sorted(places.items(), key=lambda place: len(place[0]))
    rust = " ".join([STATIC, RANDOMNESS, *(f"--remap-path-prefix={place}={name}" for place, name in ordered)])
    c = " ".join(f"-ffile-prefix-map={place}={name}" for place, name in ordered)
    return {**os.environ, "RUSTFLAGS": rust, "CFLAGS": c, "SOURCE_DATE_EPOCH": str(moment()), "GRISTMILL_BUILD": build_id(),
            "CARGO_INCREMENTAL": "0", "CARGO_TARGET_DIR": str(target_dir)}


def compile_program(profile: str, target_dir: pathlib.Path) -> pathlib.Path:
    words = ["cargo", "build", "--locked", "--target", TARGET, "--profile", profile, "--package", "gristmill", "--features", "full", "--bin", "gristmill"]
    subprocess.run(words, cwd=ROOT, check=True, env=build_variables(target_dir))
    return target_dir / TARGET / ("debug" if profile == "dev" else profile) / "gristmill"


def expect_static(program: pathlib.Path) -> None:
    headers = asked("readelf", "--wide", "--program-headers", str(program))
    if "INTERP" in headers:
        sys.exit(f"release.py: {program} needs libraries: it was not linked with {STATIC}")


def packed(program: pathlib.Path, out: pathlib.Path) -> None:
    """Strips a program and packs it."""
    expect_static(program)
    shutil.rmtree(out, ignore_errors=True)
    with tempfile.TemporaryDirectory(prefix="gristmill-release-") as base:
        scratch = pathlib.Path(base)
        stripped = scratch / "gristmill"
        subprocess.run(["strip", "--strip-all", "-o", stripped, program], check=True)
        pack(Release(version(), moment(), stripped.read_bytes()), stripped, out, scratch)
    say(f"{out} holds")
    for path in sorted(out.iterdir()):
        say(f"  {path.stat().st_size:>12,}  {path.name}")


def try_release(out: pathlib.Path) -> None:
    """Installs what was built in an empty root folder, and runs it there."""
    assert (out / "SHA256SUMS").read_text() == sums(out), "SHA256SUMS is not of these files"
    tarball = next(out.glob("*.tar.gz"))
    with tempfile.TemporaryDirectory(prefix="gristmill-root-") as base:
        root = pathlib.Path(base) / "root"
        root.mkdir()
        installed = subprocess.run([out / "install.sh", "--prefix", root], stdout=subprocess.PIPE, text=True, check=True).stdout
        say(installed.splitlines()[0])
        refuses_other_bytes(out, tarball, pathlib.Path(base))
        for name in ROOT_FOLDERS:
            (root / name).mkdir()
        os.mknod(root / "dev/null", 0o666 | stat.S_IFCHR, os.makedev(*NULL_DEVICE))
        (root / "text").write_text(TEXT)
        run_in(root)
    say(f"installed and run in an empty root folder; the program has {size_of_program(tarball):,} bytes")


def size_of_program(tarball: pathlib.Path) -> int:
    with tarfile.open(tarball) as tar:
        return next(entry.size for entry in tar if entry.name.endswith("/gristmill"))


def refuses_other_bytes(out: pathlib.Path, tarball: pathlib.Path, scratch: pathlib.Path) -> None:
    """The installer must notice one byte."""
    other = scratch / "other"
    shutil.copytree(out, other)
    content = bytearray(tarball.read_bytes())
    content[len(content) // 2] ^= 1
    (other / tarball.name).write_bytes(content)
    refused = subprocess.run([other / "install.sh", "--prefix", scratch / "nothing"], stderr=subprocess.PIPE, text=True)
    assert refused.returncode == 1 and "nothing was installed" in refused.stderr, refused
    assert not (scratch / "nothing").exists(), "something was installed"


def run_in(root: pathlib.Path) -> None:
    """Runs the program where there is nothing but it, a folder for spills, /proc and /dev/null, in namespaces of its own:
    a job of text, one that writes a table, and one that reads it."""
    script = 'mount -t proc proc "$1/proc" && root=$1 && shift && exec chroot "$root" /bin/gristmill run --workers 2 --no-sync --quiet "$@"'
    variables = {"PATH": os.environ["PATH"], "TMPDIR": "/tmp", "HOME": "/home"}

    def lines(*job: str) -> list:
        words = ["unshare", "--mount", "--pid", "--fork", "sh", "-c", script, "sh", str(root), *job]
        done = subprocess.run(words, stdout=subprocess.PIPE, text=True, env=variables, timeout=60)
        assert done.returncode == 0, done
        return sorted(done.stdout.splitlines())

    counts = lines("wordcount", "/text")
    assert counts == COUNTS, counts
    lines("wordcount", "/text", "--output", "/table", "--output-format", "parquet")
    words = lines("wordcount", "/table/*.parquet", "--read-columns", "word")
    assert words == WORDS_OF_TABLE, words


def differences(one: pathlib.Path, other: pathlib.Path) -> list:
    names = sorted({path.name for folder in (one, other) for path in folder.iterdir()})
    same = lambda name: all((folder / name).is_file() for folder in (one, other)) and (one / name).read_bytes() == (other / name).read_bytes()
    return [name for name in names if not same(name)]


def twice(make, kept: pathlib.Path) -> None:
    """Makes a release in two folders, compares, and keeps one."""
    with tempfile.TemporaryDirectory(prefix="gristmill-twice-") as base:
        outs = [pathlib.Path(base) / name / "out" for name in ("one", "the-other")]
        for out in outs:
            make(out)
        wrong = differences(*outs)
        if wrong:
            sys.exit(f"release.py: two builds differ in {', '.join(wrong)}")
        say(f"two builds gave the same bytes: {len(list(outs[0].iterdir()))} files")
        shutil.rmtree(kept, ignore_errors=True)
        shutil.copytree(outs[0], kept)


def self_test() -> None:
    """Builds without optimising, packs twice, tries, and sees that wrong sums are noticed."""
    program = compile_program("dev", ROOT / "target/release-self-test")
    with tempfile.TemporaryDirectory(prefix="gristmill-self-test-") as base:
        twice(lambda out: packed(program, out), pathlib.Path(base) / "out")
        try_release(pathlib.Path(base) / "out")
        wrong = pathlib.Path(base) / "out/SHA256SUMS"
        wrong.write_text(wrong.read_text().replace("a", "b"))
        try:
            try_release(pathlib.Path(base) / "out")
        except AssertionError:
            return
        sys.exit("release.py: wrong sums were not noticed")


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("what", nargs="?", choices=("build", "try", "twice"))
    parser.add_argument("folder", nargs="?", type=pathlib.Path, help="what `build` has written")
    parser.add_argument("--profile", default="dist")
    parser.add_argument("--target-dir", type=pathlib.Path, default=ROOT / "target/release-build")
    parser.add_argument("--out", type=pathlib.Path, default=ROOT / "target/dist-files")
    parser.add_argument("--self-test", action="store_true")
    given = parser.parse_args()
    if given.self_test:
        self_test()
    elif given.what == "build":
        packed(compile_program(given.profile, given.target_dir.absolute()), given.out)
    elif given.what == "try":
        try_release((given.folder or given.out).absolute())
    elif given.what == "twice":
        twice(lambda out: packed(compile_program(given.profile, out.parent / "target"), out), given.out)
    else:
        parser.error("say what to do: build, try or twice")


if __name__ == "__main__":
    main()
