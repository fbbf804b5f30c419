"""What a release consists of, made of one program: tarball, Debian package, licences, bill of materials, sums.

All of it follows from the program, the sources and one moment: nothing here asks for the time, the user or the order of a
folder. `release.py` builds the program and calls this; nothing else does.
"""
import collections
import gzip
import hashlib
import io
import json
import os
import pathlib
import shutil
import subprocess
import tarfile
import tomllib
import uuid

ROOT = pathlib.Path(__file__).resolve().parent.parent
TARGET = "x86_64-unknown-linux-gnu"
SHELLS = {"bash": "gristmill.bash", "zsh": "_gristmill", "fish": "gristmill.fish"}
# Where a package for Debian puts what a tarball has beside the program.
DEBIAN_PLACES = {"man": "usr/share/man/man1", "bash": "usr/share/bash-completion/completions", "zsh": "usr/share/zsh/vendor-completions",
                 "fish": "usr/share/fish/vendor_completions.d"}
LICENCE_NAMES = ("license", "licence", "copying", "notice", "unlicense", "copyright")
NAMESPACE = uuid.UUID("7d8a3c52-5a53-4a5f-9d0b-1c7f6f1f6f10")
DESCRIPTION = "MapReduce on a laptop or a LAN"

Release = collections.namedtuple("Release", "version moment program")


def built_in() -> list:
    """The packages that are part of the program, ours left out, sorted."""
    words = ["cargo", "metadata", "--format-version", "1", "--locked", "--offline", "--filter-platform", TARGET]
    metadata = json.loads(subprocess.run(words, cwd=ROOT, check=True, stdout=subprocess.PIPE).stdout)
    packages = {package["id"]: package for package in metadata["packages"]}
    nodes = {node["id"]: node for node in metadata["resolve"]["nodes"]}
    waiting = [package["id"] for package in packages.values() if package["name"] == "gristmill"]
    seen = set()
    while waiting:
        ident = waiting.pop()
        if ident in seen:
            continue
        seen.add(ident)
        # What only builds or tests is in no program.
        waiting += [needed["pkg"] for needed in nodes[ident]["deps"] if any(kind["kind"] is None for kind in needed["dep_kinds"])]
    found = [packages[ident] for ident in seen if packages[ident]["source"]]
    return sorted(found, key=lambda package: (package["name"], package["version"]))


def checksums() -> dict:
    """The SHA-256 of each package as the lock file has it."""
    lock = tomllib.loads((ROOT / "Cargo.lock").read_text())
    return {(package["name"], package["version"]): package.get("checksum") for package in lock["package"]}


def licences(packages: list) -> str:
    """The licences of all packages: each text once, with those that it is for."""
    texts, without = collections.defaultdict(list), []
    for package in packages:
        folder = pathlib.Path(package["manifest_path"]).parent
        files = sorted(path for path in folder.iterdir() if path.is_file() and path.name.lower().startswith(LICENCE_NAMES))
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


def bill_of_materials(release: Release, packages: list) -> str:
    """The packages in the format of CycloneDX 1.6."""
    sums = checksums()

    def component(package: dict) -> dict:
        reference = f"pkg:cargo/{package['name']}@{package['version']}"
        described = {"type": "library", "bom-ref": reference, "name": package["name"], "version": package["version"], "purl": reference}
        if package["license"]:
            # Cargo once allowed a slash for OR.
            described["licenses"] = [{"expression": package["license"].replace("/", " OR ")}]
        if sums.get((package["name"], package["version"])):
            described["hashes"] = [{"alg": "SHA-256", "content": sums[package["name"], package["version"]]}]
        return described

    digest = hashlib.sha256(release.program).hexdigest()
    bill = {
        "bomFormat": "CycloneDX", "specVersion": "1.6", "version": 1,
        "serialNumber": f"urn:uuid:{uuid.uuid5(NAMESPACE, digest)}",
        "metadata": {"component": {"type": "application", "bom-ref": f"pkg:generic/gristmill@{release.version}", "name": "gristmill",
                                   "version": release.version, "hashes": [{"alg": "SHA-256", "content": digest}]}},
        "components": [component(package) for package in packages],
    }
    return json.dumps(bill, indent=1, sort_keys=True) + "\n"


def contents(release: Release, program: pathlib.Path, scratch: pathlib.Path) -> dict:
    """What the tarball holds, by name: bytes and mode."""
    packages = built_in()
    files = {"gristmill": (release.program, 0o755)}
    man = scratch / "man"
    subprocess.run([program, "man", man], check=True, stdout=subprocess.DEVNULL)
    files |= {f"man/{page.name}": (page.read_bytes(), 0o644) for page in man.iterdir()}
    for shell, name in SHELLS.items():
        completions = subprocess.run([program, "completions", shell], check=True, stdout=subprocess.PIPE).stdout
        files[f"completions/{shell}/{name}"] = (completions, 0o644)
    for name in ("README.md", "CHANGELOG.md", "LICENSE-MIT", "LICENSE-APACHE"):
        files[name] = ((ROOT / name).read_bytes(), 0o644)
    files["LICENSES-THIRD-PARTY.txt"] = (licences(packages).encode(), 0o644)
    files["sbom.cdx.json"] = (bill_of_materials(release, packages).encode(), 0o644)
    return files


def tarball(release: Release, files: dict, path: pathlib.Path, folder: str) -> None:
    """Sorted, of one moment, owned by root."""
    packed = io.BytesIO()
    with tarfile.open(fileobj=packed, mode="w", format=tarfile.USTAR_FORMAT) as tar:
        for name, (content, mode) in sorted(files.items()):
            entry = tarfile.TarInfo(f"{folder}/{name}")
            entry.size, entry.mode, entry.mtime = len(content), mode, release.moment
            entry.uname = entry.gname = "root"
            tar.addfile(entry, io.BytesIO(content))
    path.write_bytes(gzip.compress(packed.getvalue(), 9, mtime=0))


def debian_package(release: Release, files: dict, path: pathlib.Path, scratch: pathlib.Path) -> None:
    """A package that depends on nothing."""
    tree = scratch / "debian"
    shutil.rmtree(tree, ignore_errors=True)

    def put(place: str, content: bytes, mode: int = 0o644) -> None:
        target = tree / place
        target.parent.mkdir(parents=True, exist_ok=True)
        target.write_bytes(content)
        target.chmod(mode)

    for name, (content, mode) in files.items():
        kind, *rest = name.split("/")
        if kind == "gristmill":
            put("usr/bin/gristmill", content, mode)
        elif kind == "man":
            put(f"{DEBIAN_PLACES['man']}/{rest[0]}.gz", gzip.compress(content, 9, mtime=0))
        elif kind == "completions":
            # A completion of bash is found by the name of its command.
            put(f"{DEBIAN_PLACES[rest[0]]}/{rest[1].removesuffix('.bash')}", content)
        else:
            put(f"usr/share/doc/gristmill/{name}", content)
    put("usr/share/doc/gristmill/copyright", files["LICENSE-MIT"][0] + b"\n" + files["LICENSE-APACHE"][0])
    size = sum(len(content) for content, _ in files.values()) // 1024
    control = (f"Package: gristmill\nVersion: {release.version}\nArchitecture: amd64\nMaintainer: The Gristmill maintainers\nSection: utils\n"
               f"Priority: optional\nInstalled-Size: {size}\nDescription: {DESCRIPTION}\n A master and workers that run map, shuffle and "
               "reduce,\n with a scheduler into which policies fit.\n")
    put("DEBIAN/control", control.encode())
    for folder in [tree, *(found for found in tree.rglob("*") if found.is_dir())]:
        folder.chmod(0o755)
    environment = {**os.environ, "SOURCE_DATE_EPOCH": str(release.moment)}
    for found in tree.rglob("*"):
        os.utime(found, (release.moment, release.moment))
    # One thread: how xz cuts its input must not depend on the machine.
    words = ["dpkg-deb", "--root-owner-group", "--threads-max=1", "-Zxz", "--build", tree, path]
    subprocess.run(words, check=True, stdout=subprocess.DEVNULL, env=environment)
    shutil.rmtree(tree)


def sums(out: pathlib.Path) -> str:
    files = sorted(path for path in out.iterdir() if path.is_file() and path.name != "SHA256SUMS")
    return "".join(f"{hashlib.sha256(path.read_bytes()).hexdigest()}  {path.name}\n" for path in files)


def pack(release: Release, program: pathlib.Path, out: pathlib.Path, scratch: pathlib.Path) -> None:
    """Writes everything of a release to a folder, which must be empty."""
    out.mkdir(parents=True, exist_ok=True)
    folder = f"gristmill-{release.version}-{TARGET}"
    files = contents(release, program, scratch)
    tarball(release, files, out / f"{folder}.tar.gz", folder)
    if shutil.which("dpkg-deb"):
        debian_package(release, files, out / f"gristmill_{release.version}_amd64.deb", scratch)
    environment = {**os.environ, "SOURCE_DATE_EPOCH": str(release.moment)}
    subprocess.run([ROOT / "scripts/wheel.py", "--binary", program, "--out", out], check=True, stdout=subprocess.DEVNULL, env=environment)
    (out / "sbom.cdx.json").write_bytes(files["sbom.cdx.json"][0])
    for name in ("Containerfile", "install.sh"):
        shutil.copy(ROOT / "scripts/release" / name, out / name)
    (out / "SHA256SUMS").write_text(sums(out))
