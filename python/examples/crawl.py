"""Counts over web crawls: words of WET files; servers, links between hosts, or tags of WARC files.

usage: crawl.py words|servers|links|tags FILE...

Files may be compressed by gzip, as crawls publish them. Each file is one map. Needs warcio, here and on the workers.
"""
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


def records(path, kind):
    """Records of this type: `response` of WARC files, `conversion` of WET files."""
    with open(path, "rb") as file:
        for record in ArchiveIterator(file):
            if record.rec_type == kind:
                # A file takes long, and a function that does nothing for ten minutes is stopped.
                gristmill.count("records", 1)
                yield record


def text_of(record):
    return record.content_stream().read().decode("utf-8", "replace")


def responses(path):
    """Responses of web servers, with their address."""
    for record in records(path, "response"):
        # Crawls also have responses of name servers.
        if record.http_headers is not None:
            yield record.rec_headers.get_header("WARC-Target-URI") or "", record


def pages(path):
    for source, record in responses(path):
        if "html" in (record.http_headers.get_header("Content-Type") or ""):
            yield source, Page(text_of(record))


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
    for _, record in responses(path):
        yield record.http_headers.get_header("Server") or "(none)", 1


def tags(path):
    for _, page in pages(path):
        for tag in page.tags:
            yield tag, 1


def links(path):
    for source, page in pages(path):
        for link in page.links:
            target = host(source, link)
            if target:
                yield (host(source), target), 1


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
