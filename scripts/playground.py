#!/usr/bin/env python3
"""Builds the playground: one HTML file with the scheduler as WebAssembly, which needs no server.

usage: scripts/playground.py build [FILE]     default: target/playground.html
       scripts/playground.py test [FILE]      builds it, opens it in chromium and compares its decisions with the native program;
                                              --pictures DIRECTORY keeps screenshots
       scripts/playground.py rate [FILE]      measures its frames per second with ten thousand tasks, on a quiet machine

The target wasm32-unknown-unknown is added with rustup where that is possible. Code 3: it is not there and cannot be added.
"""
import base64
import json
import pathlib
import shutil
import subprocess
import sys
import time

from page import Browser
from page_looks import ROOT, looks

PAGE = ROOT / "playground/page"
TARGET = "wasm32-unknown-unknown"
BYTES_MAX = 2 << 20
# Frames that must be drawn in a second with ten thousand tasks.
FRAMES_MIN = 30
CANNOT = 3


def program() -> bytes:
    """Builds the crate and returns the module."""
    build = ["cargo", "build", "--locked", "--profile", "wasm", "--target", TARGET, "-p", "gristmill-playground"]
    if subprocess.run(build, cwd=ROOT, capture_output=True).returncode:
        if shutil.which("rustup"):
            subprocess.run(["rustup", "target", "add", TARGET], cwd=ROOT, check=False)
        if subprocess.run(build, cwd=ROOT).returncode:
            print(f"playground.py: the target {TARGET} is not installed: rustup target add {TARGET}", file=sys.stderr)
            sys.exit(CANNOT)
    return (ROOT / f"target/{TARGET}/wasm/gristmill_playground.wasm").read_bytes()


def build(out: pathlib.Path) -> None:
    page = (PAGE / "page.html").read_text()
    # The colours are those of the live page.
    colours = (ROOT / "runtime/src/master/page/tokens.css").read_text()
    page = page.replace("/*STYLE*/", colours + (PAGE / "page.css").read_text()).replace("/*SCRIPT*/", (PAGE / "page.js").read_text())
    page = page.replace("/*PROGRAM*/", base64.b64encode(program()).decode())
    if len(page) > BYTES_MAX:
        sys.exit(f"playground.py: the page has {len(page)} bytes, and at most {BYTES_MAX} are promised")
    out.parent.mkdir(parents=True, exist_ok=True)
    out.write_text(page)
    print(f"{out}: {len(page):,} bytes")


def large() -> dict:
    """A scenario of ten thousand tasks."""
    jobs = [{"arrival": place * 2, "maps": 90, "each": 1, "shuffle": 20, "reduces": 10, "eachReduce": 1} for place in range(100)]
    return {"workers": 16, "slots": 4, "speed": 1, "network": 100, "estimator": "oracle", "policies": ["fair", "gristmill"], "jobs": jobs}


def native(requests: list) -> list:
    """Schedules of scenarios by the native program."""
    # As the tests build it: with other features all dependencies would be built again.
    build = ["cargo", "build", "--quiet", "--locked", "--workspace", "--features", "full", "--example", "schedules"]
    subprocess.run(build, cwd=ROOT, check=True)
    given = "".join(json.dumps(request) + "\n" for request in requests)
    done = subprocess.run([ROOT / "target/debug/examples/schedules"], check=True, capture_output=True, text=True, input=given)
    return [json.loads(line) for line in done.stdout.splitlines()]


def check(browser: Browser, page: pathlib.Path, pictures) -> None:
    """Loads every example, steps through it, and compares its decisions with the native program."""
    browser.open(page.resolve().as_uri())
    browser.until("the page is ready", "document.body.dataset.ready")
    seen = "window.runs.map(({ request, jobs, tasks, transfers, decisions }) => [request, { jobs, tasks, transfers, decisions }])"
    count = browser.run("return document.querySelectorAll('#preset option').length")
    assert count >= 6, f"{count} examples"
    for place in range(count):
        name = browser.run("const list = document.getElementById('preset'); list.value = arguments[0]; list.onchange(); return list.selectedOptions[0].textContent", place)
        assert browser.run("return document.getElementById('message').hidden"), f"{name}: {browser.run('return document.body.innerText')[:400]}"
        runs = browser.run(f"return {seen}")
        for (request, found), wanted in zip(runs, native([request for request, _ in runs])):
            assert found == wanted, f"{name}: {request['policy']} decides otherwise than the native program"
            assert len(found["decisions"]) > 2 and all(job["end"] > 0 for job in found["jobs"]), name
        # What the other policy does in the state to which the first one has led: the same orders before, and its own then.
        request, found = runs[0]
        at = found["decisions"][len(found["decisions"]) // 2]["at"]
        taken = {**request, "takeover": {"at": at, "policy": runs[1][0]["policy"].split("+")[0]}}
        other = browser.run("return called('simulate', JSON.stringify(arguments[0]))", taken)
        assert [other] == native([taken]), f"{name}: another policy takes over otherwise than in the native program"
        assert [one for one in other["decisions"] if one["at"] < at] == [one for one in found["decisions"] if one["at"] < at], name
    steps(browser)
    assert start_large(browser) == 10_000
    first = browser.run("return frames")
    browser.until("frames of ten thousand tasks", f"frames > {first + 3}")
    print("the playground decides as the native program does")
    looks(browser, "playground", pictures, lambda: browser.run("document.getElementById('preset').value = 0; document.getElementById('preset').onchange(); go(lastEnd() / 2)"))


def start_large(browser: Browser) -> int:
    """Plays ten thousand tasks, and returns their number."""
    return browser.run("scenario = arguments[0]; clock = 0; fill(); simulate(); play(); return runs[0].tasks.length", large())


def rate(browser: Browser, page: pathlib.Path, pictures) -> None:
    """Measures how many frames are drawn in a second."""
    browser.open(page.resolve().as_uri())
    browser.until("the page is ready", "document.body.dataset.ready")
    tasks = start_large(browser)
    began, first = time.monotonic(), browser.run("return frames")
    time.sleep(2)
    found = (browser.run("return frames") - first) / (time.monotonic() - began)
    print(f"{tasks} tasks: {found:.0f} frames per second")
    if found < FRAMES_MIN:
        sys.exit(f"playground.py: the target is {FRAMES_MIN}")


def steps(browser: Browser) -> None:
    """A step forward goes to the next decision, a step back to the one before; a shared link is the same scenario."""
    browser.run("document.getElementById('preset').value = 0; document.getElementById('preset').onchange(); step('start')")
    moments = [moment for moment in browser.run("return moments()") if moment > 0]
    for expected in moments[:4]:
        browser.run("step('forward')")
        assert browser.run("return clock") == expected
    browser.run("step('back')")
    assert browser.run("return clock") == moments[2]
    assert "Decision" in browser.run("return runs[0].decision.innerText")
    said = []
    for _ in moments:
        said.append(browser.run("step('forward'); return runs[0].decision.innerText"))
    assert any("Here gristmill would give these orders:" in words for words in said) and any("Here gristmill would give the same orders." in words for words in said), said
    browser.run("scenario.jobs[0].arrival = 3.5; changed(); document.getElementById('share').onclick()")
    link = browser.run("return location.href")
    browser.open("about:blank")
    browser.open(link)
    browser.until("the shared scenario", "document.body.dataset.ready && scenario.jobs[0].arrival === 3.5")
    wrong = browser.run("scenario.policies[0] = 'no-such-policy'; changed(); const message = document.getElementById('message'); return message.hidden ? '' : message.textContent")
    assert "no-such-policy" in wrong, wrong
    browser.run("scenario.policies[0] = 'fifo'; changed()")


def in_browser(action, page: pathlib.Path, pictures) -> int:
    if not shutil.which("chromedriver"):
        print("playground.py: chromedriver is not installed (Debian: chromium chromium-driver): not tested", file=sys.stderr)
        return CANNOT
    browser = Browser(1400, 1000, False)
    try:
        action(browser, page, pictures)
    finally:
        browser.end()
    return 0


def main() -> int:
    pictures = None
    if "--pictures" in sys.argv:
        place = sys.argv.index("--pictures")
        pictures = pathlib.Path(sys.argv[place + 1])
        pictures.mkdir(parents=True, exist_ok=True)
        del sys.argv[place : place + 2]
    actions = {"build": None, "test": check, "rate": rate}
    if len(sys.argv) not in (2, 3) or sys.argv[1] not in actions:
        print(__doc__, file=sys.stderr)
        return 2
    out = pathlib.Path(sys.argv[2]) if len(sys.argv) == 3 else ROOT / "target/playground.html"
    build(out)
    action = actions[sys.argv[1]]
    return in_browser(action, out, pictures) if action else 0


if __name__ == "__main__":
    sys.exit(main())
