"""Counts over web crawls: words of WET files; servers and links between hosts of WARC or WAT files; tags of WARC files.

usage: crawl.py words|servers|links|tags FILE...

Files may be compressed by gzip, as crawls publish them. Each file is one map. Needs warcio, here and on the workers.
"""
import json
import sys
from html.parser import HTMLParser
from urllib.parse import urljoin, urlsplit

import gristmill
from warcio.archiveiterator import ArchiveIterator


class Page(HTMLParser):
    """Tags of a page, and the targets of its links."""

    def __init__(self, text):
        super().__init__()
        self.tags, self.links = [], []
        try:
            self.feed(text)
        except AssertionError:
            # Broken markup ends the page for Python's parser.
            gristmill.count("broken pages", 1)

    def handle_starttag(self, tag, attributes):
        self.tags.append(tag)
        self.links += [value for name, value in attributes if tag == "a" and name == "href" and value]


def records(path, *kinds):
    """Records of these types: `response` of WARC files, `metadata` of WAT files, `conversion` of WET files."""
    with open(path, "rb") as file:
        for record in ArchiveIterator(file):
            if record.rec_type in kinds:
                # A file takes long, and a function that does nothing for ten minutes is stopped.
                gristmill.count("records", 1)
                yield record


def text_of(record):
    return record.content_stream().read().decode("utf-8", "replace")


def address(record):
    return record.rec_headers.get_header("WARC-Target-URI") or ""


def described(record):
    """HTTP response that a record of a WAT file describes; None for other records."""
    if record.rec_headers.get_header("Content-Type") != "application/json":
        return None
    return json.loads(text_of(record))["Envelope"]["Payload-Metadata"].get("HTTP-Response-Metadata")


def page(record):
    """The page of a response; None for images, and for responses of name servers, which have no headers."""
    headers = record.http_headers
    return Page(text_of(record)) if headers and "html" in (headers.get_header("Content-Type") or "") else None


def host(source, link=""):
    """Host of an address, or of a link on a page with that address; empty if it is broken."""
    try:
        return urlsplit(urljoin(source, link)).hostname or ""
    except ValueError:
        return ""


def words(path):
    for record in records(path, "conversion"):
        for word in text_of(record).lower().split():
            yield word, 1


def servers(path):
    for record in records(path, "response", "metadata"):
        if record.rec_type == "metadata":
            response = described(record)
            if response is not None:
                yield response.get("Headers", {}).get("Server") or "(none)", 1
        elif record.http_headers is not None:
            yield record.http_headers.get_header("Server") or "(none)", 1


def tags(path):
    for found in map(page, records(path, "response")):
        for tag in found.tags if found else ():
            yield tag, 1


def links_of(record):
    """Links of a page, or those that a record of a WAT file lists for one."""
    if record.rec_type == "metadata":
        listed = ((described(record) or {}).get("HTML-Metadata") or {}).get("Links", ())
        return [link["url"] for link in listed if link.get("path") == "A@/href" and "url" in link]
    found = page(record)
    return found.links if found else []


def links(path):
    for record in records(path, "response", "metadata"):
        for link in links_of(record):
            target = host(address(record), link)
            if target:
                yield (host(address(record)), target), 1


def total(key, counts):
    yield key, sum(counts)


JOBS = {function.__name__: function for function in (words, servers, tags, links)}


def main(kind, *files):
    job = gristmill.Job(JOBS[kind], total, combiner=total, per_file=True, name=kind)
    for key, count in sorted(gristmill.run(job, *files), key=lambda pair: (-pair[1], pair[0])):
        print(count, *(key if isinstance(key, tuple) else (key,)), sep="\t")


if __name__ == "__main__":
    if len(sys.argv) < 3 or sys.argv[1] not in JOBS:
        sys.exit(__doc__)
    main(*sys.argv[1:])
