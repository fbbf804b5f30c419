"""Counts over web crawls: words of WET files; servers and links between hosts of WARC or WAT files; tags of WARC files.

usage: crawl.py words|servers|links|tags FILE...

Files may be compressed by gzip record by record, as crawls publish them. A first job reads each file once to find where
records begin; then pieces of at least 64 MiB are read separately. Needs warcio, here and on the workers.
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


# Minimum bytes of a piece of a file, as it is stored, and the number of lists of pieces, each of which is one map.
PIECE_BYTES = 64 << 20
LISTS = 64


def pieces(path):
    """Yields the start of each piece of a file and the start of the next, or None. Both are starts of records."""
    with open(path, "rb") as file:
        found, start = ArchiveIterator(file, no_record_parse=True), 0
        for _ in found:
            gristmill.count("records found", 1)
            if found.offset - start >= PIECE_BYTES:
                yield (path, start), found.offset
                start = found.offset
        yield (path, start), None


def listed(piece, ends):
    for end in ends:
        yield piece, end


def records(piece, end, *kinds):
    """Records of these types: `response` of WARC files, `metadata` of WAT files, `conversion` of WET files."""
    path, start = piece
    with open(path, "rb") as file:
        file.seek(start)
        found = ArchiveIterator(file)
        for record in found:
            # Not get_record_offset(), which reads the record to its end.
            if end is not None and found.offset >= end:
                return
            if record.rec_type in kinds:
                # A piece takes long, and a function that does nothing for ten minutes is stopped.
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


def words(piece, end):
    for record in records(piece, end, "conversion"):
        for word in text_of(record).lower().split():
            yield word, 1


def servers(piece, end):
    for record in records(piece, end, "response", "metadata"):
        if record.rec_type == "metadata":
            response = described(record)
            if response is not None:
                yield response.get("Headers", {}).get("Server") or "(none)", 1
        elif record.http_headers is not None:
            yield record.http_headers.get_header("Server") or "(none)", 1


def tags(piece, end):
    for found in map(page, records(piece, end, "response")):
        for tag in found.tags if found else ():
            yield tag, 1


def links_of(record):
    """Links of a page, or those that a record of a WAT file lists for one."""
    if record.rec_type == "metadata":
        listed = ((described(record) or {}).get("HTML-Metadata") or {}).get("Links", ())
        return [link["url"] for link in listed if link.get("path") == "A@/href" and "url" in link]
    found = page(record)
    return found.links if found else []


def links(piece, end):
    for record in records(piece, end, "response", "metadata"):
        for link in links_of(record):
            target = host(address(record), link)
            if target:
                yield (host(address(record)), target), 1


def total(key, counts):
    yield key, sum(counts)


JOBS = {function.__name__: function for function in (words, servers, tags, links)}


def main(kind, *files):
    found = gristmill.run(gristmill.Job(pieces, listed, per_file=True, reduces=LISTS), *files)
    job = gristmill.Job(JOBS[kind], total, combiner=total, name=kind)
    for key, count in sorted(gristmill.run(job, found), key=lambda pair: (-pair[1], pair[0])):
        print(count, *(key if isinstance(key, tuple) else (key,)), sep="\t")


if __name__ == "__main__":
    if len(sys.argv) < 3 or sys.argv[1] not in JOBS:
        sys.exit(__doc__)
    main(*sys.argv[1:])
