"""The jobs of `examples/crawl.py` on made-up crawls, counted here by a reader of its own."""
import collections
import gzip
import importlib.util
import json
import pathlib
import random
import re
import subprocess
import sys

import pytest

import gristmill

CRAWL = pathlib.Path(__file__).resolve().parents[1] / "examples/crawl.py"
SEED = 20
WORDS = "mill wheel stone grain flour water Mühle 風車".split()
HOSTS = ["mill.example", "stream.example", "grain.example"]
SERVERS = ["nginx", "Apache/2.4", None]


def record(kind, uri, body, mime="text/plain"):
    head = f"WARC/1.0\r\nWARC-Type: {kind}\r\nWARC-Target-URI: {uri}\r\nWARC-Date: 2026-01-01T00:00:00Z\r\n"
    mime = "application/http; msgtype=response" if kind == "response" else mime
    return f"{head}WARC-Record-ID: <urn:uuid:{random.getrandbits(64):x}>\r\nContent-Type: {mime}\r\nContent-Length: {len(body)}\r\n\r\n".encode() + body + b"\r\n\r\n"


def response(server, kind, page):
    named = f"Server: {server}\r\n" if server else ""
    return f"HTTP/1.1 200 OK\r\nContent-Type: {kind}\r\n{named}Content-Length: {len(page)}\r\n\r\n".encode() + page


@pytest.fixture(scope="module")
def crawl(tmp_path_factory):
    """Two WARC files, one of them compressed record by record, the WAT file of the second, and a WET file; with the counts of
    each job, those of WAT under the file's name."""
    directory, draw = tmp_path_factory.mktemp("crawl"), random.Random(SEED)
    counts = {kind: collections.Counter() for kind in ("words", "servers", "tags", "links", "wat servers", "wat links")}
    described = []
    for name, wrap in (("a.warc", bytes), ("b.warc.gz", gzip.compress)):
        with open(directory / name, "wb") as file:
            for _ in range(40):
                source, target, server, kind = draw.choice(HOSTS), draw.choice(HOSTS), draw.choice(SERVERS), draw.choice(["text/html", "image/png"])
                link = draw.choice([f"http://{target}/x", "/here", "http://[broken"])
                page = f"<html><p><b>{draw.choice(WORDS)}</b><a href='{link}'>go</a><br></html>".encode()
                counts["servers"][server or "(none)"] += 1
                if kind == "text/html":
                    counts["tags"].update(re.findall("<([a-z]+)", page.decode()))
                    if "[" not in link:
                        counts["links"][source, target if "://" in link else source] += 1
                if name == "b.warc.gz":
                    described.append((source, server, [link] if kind == "text/html" else []))
                file.write(wrap(record("request", f"http://{source}/", b"GET / HTTP/1.1\r\n\r\n")))
                file.write(wrap(record("response", f"http://{source}/", response(server, kind, page))))
    with open(directory / "b.wat.gz", "wb") as file:
        file.write(gzip.compress(record("metadata", "http://mill.example/", b"fetchTimeMs: 7\r\n")))
        for source, server, found in described:
            headers = {"Server": server} if server else {}
            about = {"Headers": headers}
            if found:
                about["HTML-Metadata"] = {"Links": [{"path": "A@/href", "url": link} for link in found] + [{"path": "IMG@/src", "url": "http://image.example/"}]}
            text = json.dumps({"Envelope": {"Payload-Metadata": {"HTTP-Response-Metadata": about}}})
            file.write(gzip.compress(record("metadata", f"http://{source}/", text.encode(), "application/json")))
            counts["wat servers"][server or "(none)"] += 1
            for link in found:
                if "[" not in link:
                    counts["wat links"][source, re.split("/+", link)[1] if "://" in link else source] += 1
    with open(directory / "c.wet.gz", "wb") as file:
        file.write(gzip.compress(record("response", "dns:mill.example", b"20260101 mill.example")))
        for _ in range(40):
            text = " ".join(draw.choices(WORDS, k=30))
            counts["words"].update(text.lower().split())
            file.write(gzip.compress(record("conversion", "http://mill.example/", text.encode())))
    return directory, counts


@pytest.mark.parametrize("kind", ["words", "servers", "tags", "links", "wat servers", "wat links"])
def test_counts_of_a_crawl_are_those_of_another_reader(crawl, kind):
    directory, counts = crawl
    files = ["c.wet.gz"] if kind == "words" else ["b.wat.gz"] if "wat" in kind else ["a.warc", "b.warc.gz"]
    job = kind.split()[-1]
    done = subprocess.run([sys.executable, CRAWL, job, *(directory / name for name in files)], capture_output=True, text=True, timeout=120)
    assert done.returncode == 0, done.stderr
    found = {}
    for line in done.stdout.splitlines():
        count, *key = line.split("\t")
        found[tuple(key) if job == "links" else key[0]] = int(count)
    assert found == counts[kind], f"seed {SEED}"


@pytest.mark.parametrize("name", ["a.warc", "b.warc.gz", "b.wat.gz", "c.wet.gz"])
def test_pieces_of_any_size_have_each_record_once(crawl, name, monkeypatch):
    spec = importlib.util.spec_from_file_location("crawl", CRAWL)
    example = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(example)
    monkeypatch.setattr(gristmill, "count", lambda name, count: None)
    path = str(crawl[0] / name)
    text = (gzip.decompress if name.endswith("gz") else bytes)((crawl[0] / name).read_bytes())
    wanted = re.findall("WARC-Record-ID: (.*)\r\n", text.decode())
    job = {"c": example.words, "b": example.servers, "a": example.links}[name[0]]
    counts = collections.Counter(key for key, _ in job((path, 0), None))
    assert counts
    kinds = ("request", "response", "metadata", "conversion")
    numbers = set()
    # Every place at which a file can be cut is a border for some of these sizes.
    for size in [*range(1, 400, 7), *range(400, len(text) + 400, 400)]:
        monkeypatch.setattr(example, "PIECE_BYTES", size)
        found = list(example.pieces(path))
        read = [record.rec_headers.get_header("WARC-Record-ID") for piece, end in found for record in example.records(piece, end, *kinds)]
        assert read == wanted, f"pieces of {size} bytes, seed {SEED}"
        assert collections.Counter(key for piece in found for key, _ in job(*piece)) == counts, f"pieces of {size} bytes, seed {SEED}"
        numbers.add(len(found))
    assert {1, len(wanted)} <= numbers


def test_directory_for_a_mapper_of_files_is_refused_by_its_name(tmp_path):
    with pytest.raises(FileNotFoundError, match="is not a file: per_file=True takes files"):
        gristmill.submit(gristmill.Job(lambda path: [], per_file=True), tmp_path)
