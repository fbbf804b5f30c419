#!/usr/bin/env python3
"""Builds and tests a release: a static program in a tarball, a package of Debian and a wheel, with licences, a bill of materials and checksums.

usage: scripts/release.py build [--profile dist] [--target-dir DIR] [--out target/dist-files]
       scripts/release.py try [--out DIR]     installs it in an empty root directory, runs it there and tests the wheel (root)
       scripts/release.py twice               builds in two target directories, compares all files and keeps one

glibc is linked in (`crt-static`), because the target for musl cannot be installed everywhere. On a host with another glibc,
only addresses and names in /etc/hosts are sure to resolve.
Paths of this machine are removed (--remap-path-prefix), and files have the time of the last commit, or SOURCE_DATE_EPOCH.
So the bytes follow from the sources and the compilers alone. pip gets maturin, which builds the wheel, from PyPI.
"""
import argparse
import collections
import gzip
import hashlib
import io
import json
import os
import pathlib
import shutil
import stat
import subprocess
import sys
import tarfile
import tempfile
import tomllib
import uuid

ROOT = pathlib.Path(__file__).resolve().parent.parent
TARGET = "x86_64-unknown-linux-gnu"
# The oldest tag known to pip for a program that needs no library.
WHEEL_TAG = "manylinux2014"
STATIC = "-C target-feature=+crt-static"
# Randomness by the system call: a static program finds no function for it at run time, and would need /dev/urandom.
RANDOMNESS = '--cfg getrandom_backend="linux_getrandom"'
LICENCE_NAMES = ("license", "licence", "copying", "notice", "unlicense", "copyright")
NAMESPACE = uuid.UUID("7d8a3c52-5a53-4a5f-9d0b-1c7f6f1f6f10")
# Places of the files of the tarball in Debian; a man page is compressed.
DEBIAN_PLACES = {"gristmill": "bin/gristmill", "completions/gristmill.bash": "share/bash-completion/completions/gristmill",
                 "completions/_gristmill": "share/zsh/vendor-completions/_gristmill",
                 "completions/gristmill.fish": "share/fish/vendor_completions.d/gristmill.fish",
                 "LICENSES-THIRD-PARTY.txt": "share/doc/gristmill/copyright-third-party", "README.md": "share/doc/gristmill/README.md"}
# The empty root directory has the program and the usual contents of containers.
ROOT_DIRECTORIES = ("tmp", "proc", "dev", "home")
TEXT, COUNTS, WORDS = "the mill\nthe grist\n", ["grist\t1", "mill\t1", "the\t2"], ["grist\t1", "mill\t1", "the\t1"]


def say(text: str) -> None:
    print(f"release.py: {text}", file=sys.stderr)


def output(*words: object, **options) -> str:
    return subprocess.run([str(word) for word in words], check=True, cwd=ROOT, stdout=subprocess.PIPE, text=True, **options).stdout.strip()


def moment() -> int:
    return int(os.environ.get("SOURCE_DATE_EPOCH") or output("git", "log", "-1", "--format=%ct"))


def variables(target_dir: pathlib.Path) -> dict:
    """Environment of a build that contains no path of this machine."""
    cargo_home = os.environ.get("CARGO_HOME") or pathlib.Path.home() / ".cargo"
    places = {str(target_dir): "/target", str(ROOT): "/gristmill", str(cargo_home): "/cargo", output("rustc", "--print", "sysroot"): "/rust"}
    # The innermost directory is last: the last matching rule counts.
    ordered = sorted(places.items(), key=lambda place: len(place[0]))
    changed = output("git", "status", "--porcelain", "--untracked-files=no")
    return {**os.environ, "SOURCE_DATE_EPOCH": str(moment()), "CARGO_INCREMENTAL": "0", "CARGO_TARGET_DIR": str(target_dir),
            "RUSTFLAGS": " ".join([STATIC, RANDOMNESS, *(f"--remap-path-prefix={place}={name}" for place, name in ordered)]),
            "CFLAGS": " ".join(f"-ffile-prefix-map={place}={name}" for place, name in ordered),
            "GRISTMILL_BUILD": output("git", "rev-parse", "--short=12", "HEAD") + ("-changed" if changed else "")}


def packages() -> list:
    """Third-party packages that are linked into the program, sorted."""
    metadata = json.loads(output("cargo", "metadata", "--format-version", "1", "--locked", "--offline", "--filter-platform", TARGET,
                                 "--manifest-path", "cli/Cargo.toml", "--features", "full"))
    known = {package["id"]: package for package in metadata["packages"]}
    nodes = {node["id"]: node for node in metadata["resolve"]["nodes"]}
    waiting, seen = [package["id"] for package in known.values() if package["name"] == "gristmill"], set()
    while waiting:
        if (ident := waiting.pop()) not in seen:
            seen.add(ident)
            # Without packages that only build or test.
            waiting += [needed["pkg"] for needed in nodes[ident]["deps"] if any(kind["kind"] is None for kind in needed["dep_kinds"])]
    return sorted((known[ident] for ident in seen if known[ident]["source"]), key=lambda package: (package["name"], package["version"]))


def licences(linked: list) -> str:
    """Each licence text once, with its packages."""
    texts, without = collections.defaultdict(list), []
    for package in linked:
        directory = pathlib.Path(package["manifest_path"]).parent
        files = sorted(path for path in directory.iterdir() if path.is_file() and path.name.lower().startswith(LICENCE_NAMES))
        label = f"{package['name']} {package['version']} ({package['license'] or 'see its text'})"
        for path in files:
            texts[path.read_text(errors="replace").strip()].append(f"{label}: {path.name}")
        if not files:
            without.append(label)
    parts = ["Gristmill contains the following packages, under these licences.\n"]
    if without:
        parts.append("Without a text of their own, under the named licences:\n" + "".join(f"  {label}\n" for label in without))
    for text, labels in sorted(texts.items(), key=lambda entry: entry[1]):
        parts.append("=" * 80 + "\n" + "".join(f"{label}\n" for label in labels) + "-" * 80 + f"\n{text}\n")
    return "\n".join(parts)


def bill_of_materials(linked: list, version: str, digest: str) -> str:
    """The packages in the format of CycloneDX 1.6."""
    lock = tomllib.loads((ROOT / "Cargo.lock").read_text())["package"]
    sums = {(package["name"], package["version"]): package.get("checksum") for package in lock}

    def component(package: dict) -> dict:
        name, release = package["name"], package["version"]
        reference = f"pkg:cargo/{name}@{release}"
        found = {"type": "library", "bom-ref": reference, "name": name, "version": release, "purl": reference}
        if package["license"]:
            # Cargo once allowed a slash for OR.
            found["licenses"] = [{"expression": package["license"].replace("/", " OR ")}]
        if sums.get((name, release)):
            found["hashes"] = [{"alg": "SHA-256", "content": sums[name, release]}]
        return found

    program = {"type": "application", "bom-ref": f"pkg:generic/gristmill@{version}", "name": "gristmill", "version": version,
               "hashes": [{"alg": "SHA-256", "content": digest}]}
    bill = {"bomFormat": "CycloneDX", "specVersion": "1.6", "version": 1, "serialNumber": f"urn:uuid:{uuid.uuid5(NAMESPACE, digest)}",
            "metadata": {"component": program}, "components": [component(package) for package in linked]}
    return json.dumps(bill, indent=1, sort_keys=True) + "\n"


def tarball(files: dict, path: pathlib.Path, directory: str) -> None:
    """Writes files by name, with one time, owned by root."""
    packed = io.BytesIO()
    with tarfile.open(fileobj=packed, mode="w", format=tarfile.USTAR_FORMAT) as tar:
        for name, content in sorted(files.items()):
            entry = tarfile.TarInfo(f"{directory}/{name}")
            entry.size, entry.mode, entry.mtime = len(content), 0o755 if name == "gristmill" else 0o644, moment()
            entry.uname = entry.gname = "root"
            tar.addfile(entry, io.BytesIO(content))
    path.write_bytes(gzip.compress(packed.getvalue(), 9, mtime=0))


def debian_package(files: dict, out: pathlib.Path, version: str) -> None:
    """Writes a package that depends on no other, if `dpkg-deb` is there."""
    if not shutil.which("dpkg-deb"):
        say("dpkg-deb is not installed: no package of Debian is built")
        return
    placed = {f"usr/{place}": files[name] for name, place in DEBIAN_PLACES.items()}
    placed |= {f"usr/share/man/man1/{name.removeprefix('man/')}.gz": gzip.compress(content, 9, mtime=0)
               for name, content in files.items() if name.startswith("man/")}
    placed["usr/share/doc/gristmill/copyright"] = b"MIT or Apache-2.0, as you like.\n\n" + files["LICENSE-MIT"] + b"\n" + files["LICENSE-APACHE"]
    size = sum(map(len, placed.values())) // 1024
    placed["DEBIAN/control"] = "".join(f"{line}\n" for line in (
        "Package: gristmill", f"Version: {version.replace('-', '~', 1)}", "Architecture: amd64", "Section: science", "Priority: optional", f"Installed-Size: {size}",
        "Maintainer: The Gristmill developers <gristmill@localhost>", "Description: MapReduce jobs on one laptop or a LAN",
        " A master, workers, a shuffle over HTTP and a scheduler with the policies of", " five papers, on real jobs and in simulation.")).encode()
    with tempfile.TemporaryDirectory(prefix="gristmill-debian-") as base:
        for name, content in placed.items():
            path = pathlib.Path(base) / name
            path.parent.mkdir(parents=True, exist_ok=True)
            path.write_bytes(content)
            path.chmod(0o755 if name == "usr/bin/gristmill" else 0o644)
        for directory, _, _ in os.walk(base):
            os.chmod(directory, 0o755)
        output("dpkg-deb", "--root-owner-group", "--build", base, out / f"gristmill_{version}_amd64.deb",
               env={**os.environ, "SOURCE_DATE_EPOCH": str(moment())})


def sums_of(out: pathlib.Path) -> str:
    files = sorted(path for path in out.iterdir() if path.is_file() and path.name != "SHA256SUMS")
    return "".join(f"{hashlib.sha256(path.read_bytes()).hexdigest()}  {path.name}\n" for path in files)


def build(profile: str, target_dir: pathlib.Path, out: pathlib.Path) -> None:
    shutil.rmtree(out, ignore_errors=True)
    out.mkdir(parents=True)
    environment, selected = variables(target_dir), ["--profile", profile, "--target", TARGET]
    subprocess.run(["cargo", "build", "--locked", *selected, "-p", "gristmill", "--features", "full", "--bin", "gristmill"],
                   cwd=ROOT, check=True, env=environment)
    built = target_dir / TARGET / ("debug" if profile == "dev" else profile) / "gristmill"
    if "INTERP" in output("readelf", "--wide", "--program-headers", built):
        sys.exit(f"release.py: {built} needs libraries: it was not linked with {STATIC}")
    version = tomllib.loads((ROOT / "Cargo.toml").read_text())["workspace"]["package"]["version"]
    with tempfile.TemporaryDirectory(prefix="gristmill-release-") as base:
        stripped, pages = pathlib.Path(base) / "gristmill", pathlib.Path(base) / "pages"
        subprocess.run(["strip", "--strip-all", "-o", stripped, built], check=True)
        # Manual pages and completions, written by a program built for this machine.
        output("cargo", "run", "--quiet", "--locked", "-p", "gristmill", "--features", "full", "--example", "pages", "--", pages)
        program, linked = stripped.read_bytes(), packages()
        files = {"gristmill": program, "LICENSES-THIRD-PARTY.txt": licences(linked).encode(),
                 "sbom.cdx.json": bill_of_materials(linked, version, hashlib.sha256(program).hexdigest()).encode()}
        files |= {name: (ROOT / name).read_bytes() for name in ("README.md", "CHANGELOG.md", "LICENSE-MIT", "LICENSE-APACHE")}
        files |= {f"{'man' if page.suffix == '.1' else 'completions'}/{page.name}": page.read_bytes() for page in pages.iterdir()}
    name = f"gristmill-{version}-{TARGET}"
    tarball(files, out / f"{name}.tar.gz", name)
    debian_package(files, out, version)
    (out / "sbom.cdx.json").write_bytes(files["sbom.cdx.json"])
    for copied in ("Containerfile", "install.sh"):
        shutil.copy(ROOT / "deploy" / copied, out / copied)
    arguments = " ".join([*selected, "--strip", "--compatibility", WHEEL_TAG])
    subprocess.run([sys.executable, "-m", "pip", "wheel", "--quiet", "--no-deps", "--wheel-dir", out, "--config-settings",
                    f"build-args={arguments}", "."], cwd=ROOT, check=True, env=environment)
    (out / "SHA256SUMS").write_text(sums_of(out))
    say(f"{out} holds")
    for path in sorted(out.iterdir()):
        say(f"  {path.stat().st_size:>12,}  {path.name}")


def try_release(out: pathlib.Path) -> None:
    """Installs a release in an empty root directory, runs it there, and tests the wheel."""
    assert (out / "SHA256SUMS").read_text() == sums_of(out), "SHA256SUMS is not of these files"
    with tempfile.TemporaryDirectory(prefix="gristmill-root-") as base:
        root = pathlib.Path(base) / "root"
        root.mkdir()
        say(output(out / "install.sh", "--prefix", root).splitlines()[0])
        refuses_other_bytes(out, pathlib.Path(base))
        run_in(root, "/bin/gristmill")
        say(f"installed and run in an empty root directory; the program has {(root / 'bin/gristmill').stat().st_size:,} bytes")
        if not list(out.glob("*.deb")):
            say("there is no package of Debian to try")
        for package in out.glob("*.deb"):
            root = pathlib.Path(base) / "debian"
            for name in ("info", "updates"):
                (root / "var/lib/dpkg" / name).mkdir(parents=True)
            (root / "var/lib/dpkg/status").touch()
            output("dpkg", f"--root={root}", "--force-script-chrootless", "--install", package)
            run_in(root, "/usr/bin/gristmill")
            say(f"{package.name} installed by dpkg and run in an empty root directory")
    subprocess.run([ROOT / "scripts/python.py", "--wheel", next(out.glob("*.whl"))], check=True)


def refuses_other_bytes(out: pathlib.Path, scratch: pathlib.Path) -> None:
    """The installer must notice one changed byte."""
    other = scratch / "other"
    shutil.copytree(out, other)
    packed = next(other.glob("*.tar.gz"))
    content = bytearray(packed.read_bytes())
    content[len(content) // 2] ^= 1
    packed.write_bytes(content)
    refused = subprocess.run([other / "install.sh", "--prefix", scratch / "nothing"], stderr=subprocess.PIPE, text=True)
    assert refused.returncode == 1 and "nothing was installed" in refused.stderr, refused
    assert not (scratch / "nothing").exists(), "something was installed"


def run_in(root: pathlib.Path, program: str) -> None:
    """Runs a job of text, one that writes a table and one that reads it, in namespaces of their own."""
    for name in ROOT_DIRECTORIES:
        (root / name).mkdir()
    os.mknod(root / "dev/null", 0o666 | stat.S_IFCHR, os.makedev(1, 3))
    (root / "text").write_text(TEXT)
    script = f'mount -t proc proc "$1/proc" && root=$1 && shift && exec chroot "$root" {program} run --workers 2 --no-sync --quiet "$@"'

    def lines(*job: str) -> list:
        words = ["unshare", "--mount", "--pid", "--fork", "sh", "-c", script, "sh", root, *job]
        return sorted(output(*words, env={"PATH": os.environ["PATH"], "TMPDIR": "/tmp", "HOME": "/home"}, timeout=60).splitlines())

    assert (counts := lines("wordcount", "/text")) == COUNTS, counts
    lines("wordcount", "/text", "--output", "/table", "--output-format", "parquet")
    assert (words := lines("wordcount", "/table/*.parquet", "--read-columns", "word")) == WORDS, words


def twice(profile: str, kept: pathlib.Path) -> None:
    with tempfile.TemporaryDirectory(prefix="gristmill-twice-") as base:
        outs = [pathlib.Path(base) / name / "out" for name in ("one", "other")]
        for out in outs:
            build(profile, out.parent / "target", out)
        if outs[0].joinpath("SHA256SUMS").read_text() != outs[1].joinpath("SHA256SUMS").read_text():
            sys.exit(f"release.py: two builds differ:\n{sums_of(outs[0])}{sums_of(outs[1])}")
        say("two builds gave the same bytes")
        shutil.rmtree(kept, ignore_errors=True)
        shutil.copytree(outs[0], kept)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("what", choices=("build", "try", "twice"))
    parser.add_argument("--profile", default="dist")
    parser.add_argument("--target-dir", type=pathlib.Path, default=ROOT / "target/release-build")
    parser.add_argument("--out", type=pathlib.Path, default=ROOT / "target/dist-files")
    given = parser.parse_args()
    if given.what == "build":
        build(given.profile, given.target_dir.absolute(), given.out.absolute())
    elif given.what == "try":
        try_release(given.out.absolute())
    else:
        twice(given.profile, given.out.absolute())


if __name__ == "__main__":
    main()
