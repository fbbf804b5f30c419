#!/usr/bin/env python3
"""Tests the moving picture of `run --narrate-html` in chromium: a word count of which a worker is killed.

usage: scripts/story.py [--program FILE] [--pictures DIRECTORY]

All frames are shown forward and backward. In the last one the path of a key goes from its lines to the line written for it. No
page is wider than its window, and all text can be read, light and dark, in three widths. Needs chromium and chromedriver.
"""
import argparse, os, pathlib, signal, subprocess, sys, tempfile, time
from page import Browser, children
from page_looks import ROOT, looks

LINES = ["the mill turns and the mill grinds", "the stream turns the wheel", "the wheel turns the stone", "grain goes in and flour comes out",
         "the miller sings a song of grain", "a song of stone and stream", "the wind is still and the mill is still", "the miller waits for rain"]
LIMIT_SECONDS = 60


def workers_of(pid: int) -> list:
    def is_worker(child: int) -> bool:
        try:
            return b"worker" in pathlib.Path(f"/proc/{child}/cmdline").read_bytes()
        except OSError:
            return False

    return [child for child in children(pid) if is_worker(child)]


def told(program: str, directory: pathlib.Path) -> pathlib.Path:
    """Runs a job slowly, kills one of its workers, and returns its story."""
    text, page = directory / "mill.txt", directory / "story.html"
    text.write_text("\n".join(LINES) + "\n")
    job = [program, "run", "wordcount", str(text), "--workers", "3", "--split-size", "80B", "--reduces", "2", "--slow", "600x", "--output",
           str(directory / "counts"), "--narrate-html", str(page), "--quiet"]
    running = subprocess.Popen(job, env={**os.environ, "TMPDIR": str(directory)})
    end = time.monotonic() + LIMIT_SECONDS
    while len(workers_of(running.pid)) < 3:
        assert time.monotonic() < end and running.poll() is None, "the workers do not start"
        time.sleep(0.01)
    while running.poll() is None and not any((directory / "counts").glob("_temporary/*")):
        assert time.monotonic() < end, "no map starts"
        time.sleep(0.01)
    os.kill(workers_of(running.pid)[0], signal.SIGKILL)
    assert running.wait(LIMIT_SECONDS) == 0
    return page


def check(browser: Browser, page: pathlib.Path, pictures) -> None:
    browser.open(page.as_uri())
    last = browser.until("the frames", "frames.length") - 1
    kinds = browser.run("return frames.map(frame => frame.scene.type)")
    for kind in ("launched", "discarded", "ended", "fetched", "published"):
        assert kind in kinds, f"nothing is {kind} in {kinds}"
    for frame in [*range(last + 1), *range(last, -1, -1)]:
        browser.run("go(arguments[0])", frame)
        assert browser.run("return at") == frame
        if kinds[frame] == "discarded":
            assert browser.run("return document.querySelectorAll('.card .bad').length"), "a discarded attempt is not on the picture"
    browser.run("go(arguments[0])", last)
    # The pairs of a key are as many in each place as its lines and counts say.
    browser.run("follow('mill')")
    count = sum(line.split().count("mill") for line in LINES)
    seen = {stage: browser.run(f"return document.querySelectorAll('mark[data-stage=\"{stage}\"], .on[data-stage=\"{stage}\"]').length") for stage in (0, 2, 4, 5)}
    assert seen[0] == count and seen[2] >= 1 and seen[4] == seen[5] == 1, seen
    assert browser.run("return document.querySelectorAll('#paths path').length") >= count, "no path is drawn"
    written = browser.run("return document.querySelector('.on.written').textContent")
    assert written == f"mill\u2003{count}", written
    browser.run("follow('')")
    browser.run("go(0)")
    for key in ("\ue014", "\ue010", "\ue011"):
        browser.press(key)
    assert browser.run("return at") == 0, "Home does not go to the start"
    looks(browser, "story", pictures, lambda: browser.run("go(arguments[0])", last // 2))
    if pictures:
        for frame in range(last + 1):
            browser.run("go(arguments[0])", frame)
            browser.picture(pictures / f"story-frame-{frame:02}.png")


def main() -> None:
    parser = argparse.ArgumentParser()
    parser.add_argument("--program", default=str(ROOT / "target/debug/gristmill"))
    parser.add_argument("--pictures", type=pathlib.Path)
    flags = parser.parse_args()
    if flags.pictures:
        flags.pictures.mkdir(parents=True, exist_ok=True)
    with tempfile.TemporaryDirectory() as directory:
        page = told(flags.program, pathlib.Path(directory))
        browser = Browser(1600, 900, False)
        try:
            check(browser, page, flags.pictures)
        finally:
            browser.end()
    print("the story plays as it should")


if __name__ == "__main__":
    sys.exit(main())
