"""Makes the book's pages: HTML that stands alone, without scripts and without a request to another host.

Run by `scripts/book.py build`, in the environment of docs/book/requirements.txt.
"""
import html
import pathlib
import posixpath
import re
import shutil
import sys
import tempfile

import markdown

from book_source import FENCE, ROOT, Wrong, chapters_of

PAGE = """<!doctype html>
<html lang="en">
<head>
<meta charset="utf-8">
<meta name="viewport" content="width=device-width, initial-scale=1">
<meta http-equiv="Content-Security-Policy" content="default-src 'none'; img-src 'self'; style-src 'self'">
<title>{title} - Gristmill</title>
<link rel="stylesheet" href="style.css">
</head>
<body>
<nav aria-label="Chapters"><p class="book">The Gristmill book</p><ol>
{contents}</ol></nav>
<main>
{body}
<p class="turn">{turn}</p>
</main>
</body>
</html>
"""
LOADED = re.compile(r"""<(?:img|script|link|iframe|source|video|audio|object|embed)\b[^>]*?(?:src|href|data)=["']([^"']+)""")
IN_STYLE = re.compile(r"@import|url\(")
ATTRIBUTE = re.compile(r'(<(?:a|img)\b[^>]*?(?:href|src)=")([^"]+)(")')
IDENTIFIER = re.compile(r'\bid="([^"]+)"')


def page_of(name: str) -> str:
    return "index.html" if name == "index.md" else name.removesuffix(".md") + ".html"


class Pages:
    """The pages of a book, and what they need beside them."""

    def __init__(self, book: pathlib.Path, out: pathlib.Path):
        self.book, self.out, self.chapters = book, out, chapters_of(book)
        self.anchors, self.links = {}, []

    def write(self):
        shutil.rmtree(self.out, ignore_errors=True)
        (self.out / "figures").mkdir(parents=True)
        style = (self.book / "style.css").read_text()
        if IN_STYLE.search(style):
            raise Wrong("style.css loads something")
        (self.out / "style.css").write_text(style)
        for number, (title, name) in enumerate(self.chapters):
            self.write_page(number, title, name)
        for page, target in self.links:
            file, _, anchor = target.partition("#")
            file = file or page
            if file not in self.anchors or (anchor and anchor not in self.anchors[file]):
                raise Wrong(f"{page}: a link leads to {target}, which is not there")

    def write_page(self, number: int, title: str, name: str):
        # What stands behind the kind of a block is for `book.py run`.
        text = FENCE.sub(lambda found: f"{found['indent']}```{found['kind']}\n{found['body']}{found['indent']}```", (self.book / name).read_text())
        body = markdown.markdown(text, extensions=["fenced_code", "tables", "toc", "md_in_html", "sane_lists"], output_format="html")
        page = page_of(name)
        body = ATTRIBUTE.sub(lambda found: found[1] + self.target(page, html.unescape(found[2])) + found[3], body)
        body = re.sub(r"(<table>.*?</table>)", r'<div class="wide" tabindex="0">\1</div>', body, flags=re.DOTALL)
        contents = "".join(f'<li><a href="{page_of(file)}"{here(file == name)}>{html.escape(words)}</a></li>\n' for words, file in self.chapters)
        turn = []
        if 0 < number:
            turn.append(f'<a rel="prev" href="{page_of(self.chapters[number - 1][1])}">← {html.escape(self.chapters[number - 1][0])}</a>')
        if number + 1 < len(self.chapters):
            turn.append(f'<a rel="next" href="{page_of(self.chapters[number + 1][1])}">{html.escape(self.chapters[number + 1][0])} →</a>')
        made = PAGE.format(title=html.escape(title), contents=contents, body=body, turn=" ".join(turn))
        for loaded in LOADED.findall(made):
            if re.match(r"[a-z]+:|//", loaded):
                raise Wrong(f"{page} would load {loaded}")
        self.anchors[page] = set(IDENTIFIER.findall(made))
        (self.out / page).write_text(made)

    def target(self, page: str, link: str) -> str:
        """Where a link of a chapter leads in the built book; figures are copied there."""
        if re.match(r"https?://", link):
            return html.escape(link)
        file, sharp, anchor = link.partition("#")
        if not file or file.endswith(".md") and "/" not in file:
            to = (page_of(file) if file else "") + sharp + anchor
            self.links.append((page, to))
            return html.escape(to)
        source = (self.book / file).resolve()
        if source.suffix not in (".svg", ".png") or not source.is_file() or not source.is_relative_to(ROOT):
            raise Wrong(f"{page}: a link to {link}, which is no chapter and no figure")
        # Figures of one name lie in different folders.
        copy = posixpath.join("figures", "-".join(source.relative_to(ROOT).parts[-3:]))
        shutil.copy(source, self.out / copy)
        return copy


def here(is_here: bool) -> str:
    return ' aria-current="page"' if is_here else ""


# Made-up chapters and styles that must be refused, with what is said of them.
REFUSED = [
    ("![](https://example.org/a.png)", "", "would load"),
    ('<script src="//example.org/a.js"></script>', "", "would load"),
    ("[there](nowhere.md)", "", "a link leads to"),
    ("[there](one.md#nowhere)", "", "a link leads to"),
    ("[there](../../README.md)", "", "no chapter and no figure"),
    ("", "@import 'a.css';", "style.css loads"),
    ("", "body { background: url(a.png) }", "style.css loads"),
]


def self_test():
    """Raises if a page that must be refused is not, or one that is right is."""
    with tempfile.TemporaryDirectory(prefix="gristmill-book-pages-") as base:
        book = pathlib.Path(base)
        (book / "SUMMARY.md").write_text("- [One](one.md)\n")
        for chapter, style, expected in [("# One\n\n[here](one.md#one) [out](https://example.org)", "", None), *REFUSED]:
            (book / "one.md").write_text(chapter + "\n")
            (book / "style.css").write_text(style)
            try:
                Pages(book, book / "out").write()
                said = None
            except Wrong as wrong:
                said = str(wrong)
            if said != expected and (said is None or expected is None or expected not in said):
                raise Wrong(f"of the made-up page `{chapter or style}` was expected {expected!r}, was said {said!r}")


def main() -> int:
    book, out = pathlib.Path(sys.argv[1]), pathlib.Path(sys.argv[2])
    try:
        self_test()
        pages = Pages(book, out)
        pages.write()
    except Wrong as wrong:
        print(f"book.py: {wrong}", file=sys.stderr)
        return 1
    size = sum(path.stat().st_size for path in out.rglob("*") if path.is_file())
    print(f"{len(pages.chapters)} pages, {size >> 10} KiB: {out / page_of(pages.chapters[0][1])}")
    return 0


if __name__ == "__main__":
    sys.exit(main())
