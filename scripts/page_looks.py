#!/usr/bin/env python3
"""Checks the appearance of the live page in chromium.

Contrast of every text, including drawn ones, in light and dark (WCAG AA: 4.5, 3 for large ones); no horizontal scrolling at
420 px; 2,400 slots; reasons by keyboard; problems of the master.

The page is a real master's. Its data is made up, so that all states are on it at once. Uses loopback only. Needs chromium
and chromedriver. --self-test: deliberately broken pages must be rejected.
"""
import argparse, json, os, pathlib, shutil, sys, tempfile, time
from page import Browser, Cluster

ROOT = pathlib.Path(__file__).resolve().parent.parent
WIDTHS = (420, 900, 1600)
WORKERS, SLOTS_OF_WORKER = 100, 24
SECOND = 10**9

# Runs before the page's own script: a made-up feed, and a record of each text on the chart with its background.
PREPARED = r"""
const line = __LINE__, turns = __TURNS__;
const asked = window.fetch;
window.fetch = (url, options) => {
  if (String(url).endsWith("/api/v1/turns")) return Promise.resolve(new Response(JSON.stringify(turns)));
  if (!String(url).endsWith("/api/v1/feed")) return asked(url, options);
  const bytes = (value) => new TextEncoder().encode(JSON.stringify(value) + "\n");
  let timer;
  return Promise.resolve(new Response(new ReadableStream({
    start(out) {
      out.enqueue(bytes(line));
      const rest = { ...line, workers: [], jobs: [], attempts: [], fetches: [] };
      timer = setInterval(() => {
        rest.master = { ...rest.master, now_ns: rest.master.now_ns + 250000000 };
        out.enqueue(bytes(rest));
      }, 250);
    },
    cancel() { clearInterval(timer); },
  })));
};
window.written = new Map();
const write = CanvasRenderingContext2D.prototype.fillText;
CanvasRenderingContext2D.prototype.fillText = function (text, x, y, ...more) {
  const at = this.getTransform().transformPoint({ x: x + 2, y: y - 4 });
  if (window.writes && 0 <= at.y && at.y < this.canvas.height) {
    const on = [...this.getImageData(Math.round(at.x), Math.round(at.y), 1, 1).data];
    window.written.set([text, this.fillStyle, on].join(), [text, this.fillStyle, on]);
  }
  return write.call(this, text, x, y, ...more);
};
"""

# Every visible text, with its colour and its background.
TEXTS = r"""
const parse = (text) => { const n = text.match(/[\d.]+/g).map(Number); return [n[0], n[1], n[2], n[3] ?? 1]; };
const found = [];
const walk = document.createTreeWalker(document.body, NodeFilter.SHOW_TEXT);
while (walk.nextNode()) {
  const node = walk.currentNode, owner = node.parentElement;
  if (!node.textContent.trim() || !owner.checkVisibility()) continue;
  const range = document.createRange();
  range.selectNodeContents(node);
  if (![...range.getClientRects()].some((box) => 1 < box.width && 0 <= box.right)) continue;
  if (owner.tagName === "OPTION" || owner.tagName === "NOSCRIPT") continue;
  const style = getComputedStyle(owner), layers = [];
  let opacity = 1;
  for (let at = owner; at; at = at.parentElement) {
    const look = getComputedStyle(at);
    opacity *= Number(look.opacity);
    layers.push(parse(look.backgroundColor));
  }
  found.push({ text: node.textContent.trim().slice(0, 40), ink: parse(style.color), layers, opacity,
    size: parseFloat(style.fontSize), bold: 700 <= Number(style.fontWeight) });
}
return found;
"""


def luminance(colour) -> float:
    def linear(value):
        value /= 255
        return value / 12.92 if value <= 0.04045 else ((value + 0.055) / 1.055) ** 2.4

    red, green, blue = (linear(value) for value in colour[:3])
    return 0.2126 * red + 0.7152 * green + 0.0722 * blue


def contrast(ink, ground) -> float:
    light, dark = sorted((luminance(ink), luminance(ground)), reverse=True)
    return (light + 0.05) / (dark + 0.05)


def over(top, below):
    """A colour laid over an opaque one."""
    share = top[3]
    return [share * a + (1 - share) * b for a, b in zip(top[:3], below[:3])]


def weak_texts(browser: Browser) -> list:
    """Describes the texts whose contrast is too low."""
    weak = set()
    texts = browser.run(TEXTS)
    assert 20 < len(texts), f"only {len(texts)} texts"
    for text in texts:
        ground = [255, 255, 255]
        for layer in reversed(text["layers"]):
            ground = over(layer, ground)
        ink = over([*text["ink"][:3], text["ink"][3] * text["opacity"]], ground)
        large = 24 <= text["size"] or (18.66 <= text["size"] and text["bold"])
        ratio = contrast(ink, ground)
        if ratio < (3 if large else 4.5):
            weak.add(f"{text['text']!r}: {ratio:.2f}")
    return sorted(weak)


def looks(browser: Browser, name: str, pictures, show) -> None:
    """Checks a page without a server, after `show`: it is not wider than its window, and all text can be read."""
    for scheme in ("light", "dark"):
        command(browser, "Emulation.setEmulatedMedia", features=[{"name": "prefers-color-scheme", "value": scheme}])
        for width in WIDTHS:
            command(browser, "Emulation.setDeviceMetricsOverride", width=width, height=1000, deviceScaleFactor=1, mobile=False)
            show()
            time.sleep(0.2)
            found = browser.run("return [document.documentElement.scrollWidth, innerWidth]")
            assert found[0] <= found[1], f"at {width} px the page is {found[0]} px wide"
            weak = weak_texts(browser)
            assert not weak, f"{scheme}, {width} px: {weak[:3]}"
            if pictures:
                browser.picture(pictures / f"{name}-{scheme}-{width}.png")


def weak_drawings(browser: Browser) -> list:
    browser.run("window.written.clear(); window.writes = true")
    browser.until("something is written on the chart", "window.written.size > 3")
    browser.run("window.writes = false")
    weak = {}
    for text, ink, ground in browser.run("return [...window.written.values()]"):
        ink = [int(ink[at : at + 2], 16) for at in (1, 3, 5)]
        panel = browser.run("return getComputedStyle(document.querySelector('.chart')).backgroundColor.match(/[\\d.]+/g).map(Number)")
        ground = over([*ground[:3], ground[3] / 255], panel)
        if contrast(ink, ground) < 4.5:
            weak[f"{contrast(ink, ground):.2f}"] = f"{text!r} on the chart: {contrast(ink, ground):.2f}"
    return sorted(weak.values())


def job(number: int, state: str, now: int) -> dict:
    ended = state in ("succeeded", "failed", "cancelled")
    totals = dict.fromkeys(("map_records_in", "map_bytes_in", "map_records_out", "map_bytes_out", "shuffle_bytes", "shuffle_segments",
                            "reduce_records_in", "records_out", "bytes_out"), 7_000_000)
    tasks = {"total": 40, "running": 2, "done": 20}
    return {"job": number, "name": f"a-job-with-quite-a-long-name-{number}", "parameters": "{}", "state": state, "maps": tasks, "reduces": tasks,
            "segments_total": 9_000_000, "arrived_ns": now - 200 * SECOND, "started_ns": now - 190 * SECOND, "maps_done_ns": None,
            "shuffle_done_ns": None, **dict.fromkeys(("submitted_at", "started_at", "ended_at"), "2026-11-30T17:40:25.123Z"), "ended_ns": now - SECOND if ended else None, "totals": totals, "counters": {}, "incidents": [],
            "failure": None, "work": {"whole": [90.0, 2.0, 9.0], "left": [40.0, 1.0, 9.0]}, "pool": "a-pool", "priority": 3, "weight": 2.0, "deadline_ns": now + 60 * SECOND}


def made_up(workers: int, slots: int) -> dict:
    """Returns a line of a feed with everything that can be on the page."""
    now = 1000 * SECOND
    states = ["running", "waiting", "publishing", "succeeded", "failed", "cancelled"]
    states += ["running"] * 10
    jobs = [job(number, state, now) for number, state in enumerate(states)]
    told = {"host": "a-host", "pid": 1, "speed": 0.5, "nic_bytes_per_second": None, "running": slots, "endpoint": {"host": "127.0.0.1", "port": 1},
            "memory_budget_bytes": 1 << 30, "memory_bytes": 1 << 28, "disk_free_bytes": 1 << 38, "clock_offset_ns": 0, "joined_ns": 1}
    pools = {"pools": {"map": slots - 2, "reduce": 2}}
    all_workers = [{**told, "worker": number, "slots": slots, "slot_counts": pools if number == 1 else {"unified": slots},
                    "away": number == 2, "disk_full": number == 3} for number in range(1, workers + 1)]
    attempts = []
    for worker in range(1, workers + 1):
        for slot in range(slots):
            kind, which = (1, slot) if slot in (0, 1) else (0, slot)
            for past in range(3):
                begun = now - (past * 15 + 14) * SECOND
                attempts.append([6 + (slot + worker) % 10, kind, (worker * slots + which) * 3 + past, 0, worker, begun, begun, begun + 14 * SECOND,
                                 ["succeeded", "succeeded", "failed" if slot == 3 else "succeeded"][past]])
    late = now - 5 * SECOND
    attempts += [[6, 0, 900_000 + index, 0, 1, late, 0, 0, "running"] for index in range(slots)]
    attempts += [[7, 1, 900_000, 0, 1, late, 0, 0, "suspended"], [7, 0, 900_001, 0, workers + 1, late, late, now, "lost"]]
    fetches = [[6, 0, 2, 1, 1 << 20, now - 3 * SECOND, now - 2 * SECOND]]
    master = {"version": "0", "build": "", "policy": "gristmill", "placement": "pull", "estimator": "history", "policy_panics": 1,
              "policy_panic": "a made-up panic", "now_ns": now, "workers": [], "jobs_live": 9, "trouble": "a made-up disk is full", "returns": True}
    return {"master": master, "workers": all_workers, "loads": [], "left": [], "jobs": jobs, "attempts": attempts, "fetches": fetches, "more": False}


TURNS = {"schema": 1, "omitted": 3, "turns": [{"job": job, "kind": kind, "tasks": 7, "reason": "a made-up reason, as long as those of policies are: 3.500"}
                                              for job, kind in ((6, "Map"), (7, "Reduce"), (1, "Map"))]}


def command(browser: Browser, name: str, **parameters):
    return browser.of_session("POST", "/goog/cdp/execute", {"cmd": name, "params": parameters})


def open_page(browser: Browser, cluster: Cluster, line: dict):
    command(browser, "Page.addScriptToEvaluateOnNewDocument", source=PREPARED.replace("__LINE__", json.dumps(line)).replace("__TURNS__", json.dumps(TURNS)))
    browser.open(cluster.ask("cluster", "page"))
    browser.until("the feed", "document.getElementById('connection').textContent === 'live'")
    browser.until("jobs", "document.querySelectorAll('#jobs-table tbody tr').length > 5")
    browser.until("who comes next", "document.querySelectorAll('#turns-table tbody tr').length > 5")


def wanting(browser: Browser, worse: str = "") -> list:
    """Returns the problems of the page's appearance. `worse` is a style that a self-test adds."""
    found = []
    for scheme in ("light", "dark"):
        command(browser, "Emulation.setEmulatedMedia", features=[{"name": "prefers-color-scheme", "value": scheme}])
        assert browser.run("return matchMedia('(prefers-color-scheme: dark)').matches") is (scheme == "dark")
        for width in (1280, 420):
            command(browser, "Emulation.setDeviceMetricsOverride", width=width, height=900, deviceScaleFactor=1, mobile=False)
            for shown in ("", "job-6"):
                browser.run("location.hash = arguments[0]", shown)
                part = "job" if shown else "cluster"
                browser.until(f"the {part}", f"document.getElementById('{part}').checkVisibility()")
                if worse:
                    browser.run("const sheet = new CSSStyleSheet(); sheet.replaceSync(arguments[0]); document.adoptedStyleSheets = [sheet]", worse)
                where = f"{scheme}, {width} px, {shown or 'cluster'}"
                found += [f"{where}: too faint: {weak}" for weak in weak_texts(browser)]
                if not shown:
                    found += [f"{where}: too faint: {weak}" for weak in weak_drawings(browser)]
                found += [f"{where}: does not fit into its tile: {text}" for text in browser.run(
                    "return [...document.querySelectorAll('.tiles b')].filter((b) => b.clientWidth < b.scrollWidth).map((b) => b.innerText)")]
                whole = browser.run("return document.documentElement.scrollWidth")
                if width < whole:
                    found.append(f"{where}: {whole} px wide, scrolls sideways")
    browser.run("location.hash = ''")
    browser.until("the cluster", "document.querySelector('.chart').checkVisibility()")
    command(browser, "Emulation.setDeviceMetricsOverride", width=1280, height=900, deviceScaleFactor=1, mobile=False)
    return found


def check_slots(browser: Browser) -> list:
    """Checks that all slots can be scrolled to, on a canvas no higher than its visible part."""
    found = []
    high, whole = browser.run("const c = document.querySelector('.chart'); return [document.getElementById('slots').height, c.scrollHeight]")
    slots = WORKERS * SLOTS_OF_WORKER
    if 900 < high:
        found.append(f"the canvas is {high} px high")
    if whole < 16 * slots:
        found.append(f"{whole} px do not hold {slots} slots")
    browser.run("window.written.clear(); window.writes = true; document.querySelector('.chart').scrollTop = 1e9")
    browser.until(f"worker-{WORKERS} at the end", f"[...window.written.values()].some(([text]) => text.startsWith('worker-{WORKERS}'))")
    if browser.run("return [...window.written.values()].some(([text]) => text === 'worker-1')"):
        found.append("what is out of sight is drawn")
    browser.run("document.querySelector('.chart').scrollTop = 0; window.written.clear()")
    for kind in ("reduce", "queued", "suspended"):
        browser.until(f"a row for {kind}", f"[...window.written.values()].some(([text]) => text === '{kind}')")
    browser.run("window.writes = false")
    return found


def check_keys(browser: Browser) -> list:
    """Checks that arrow keys select tasks, with texts for screen readers."""
    browser.run("document.getElementById('slots').focus()")
    said = set()
    for key in ("ArrowUp", "ArrowLeft", "ArrowLeft", "ArrowDown", "ArrowDown"):
        browser.run("document.activeElement.dispatchEvent(new KeyboardEvent('keydown', { key: arguments[0], bubbles: true }))", key)
        before = list(said)
        said.add(browser.until(f"something new after {key}", "(() => { const told = document.getElementById('told').textContent;"
                               " return arguments[0].includes(told) ? '' : told; })()", before))
    found = [] if all(" on worker-1" in one and one.startswith("job-") for one in said) else [f"told by keys: {sorted(said)}"]
    if browser.run("return document.getElementById('hover').hidden"):
        found.append("what keys chose is not shown")
    browser.run("document.activeElement.blur()")
    trouble = browser.run("const line = document.getElementById('trouble'); return line.hidden ? '' : line.textContent")
    return found + ([] if "a made-up disk is full" in trouble and "a made-up panic" in trouble else [f"trouble is shown as {trouble!r}"])


def self_test(browser: Browser):
    assert round(contrast([0, 0, 0], [255, 255, 255]), 1) == 21 and round(contrast([119] * 3, [255] * 3), 2) == 4.48
    faint = wanting(browser, ".hint, th { color: #b0b0b0 !important }")
    assert any("too faint" in line for line in faint), "faint headings are not found"
    wide = wanting(browser, "#jobs-title { min-width: 600px }")
    assert any("scrolls sideways" in line for line in wide), "a wide heading is not found"
    long = wanting(browser, ".tiles b { letter-spacing: 60px }")
    assert any("does not fit" in line for line in long), "numbers wider than their tile are not found"
    print("a page with faint texts, one with wide numbers and one that is too wide are found wanting")


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--program", default="target/debug/gristmill", help="the program (default: %(default)s)")
    parser.add_argument("--pictures", type=pathlib.Path, help="directory for a picture of the page")
    parser.add_argument("--self-test", action="store_true", help="make the page worse, and see that it is found wanting")
    options = parser.parse_args()
    missing = [tool for tool in ("chromedriver", "chromium") if shutil.which(tool) is None]
    if missing:
        print(f"skipped: {' and '.join(missing)} not found (Debian: chromium chromium-driver)")
        return 0
    with tempfile.TemporaryDirectory(prefix="gristmill-looks-") as directory:
        cluster = Cluster(os.path.abspath(options.program), pathlib.Path(directory))
        browser = None
        try:
            browser = Browser(1280, 900, False)
            open_page(browser, cluster, made_up(WORKERS, SLOTS_OF_WORKER))
            if options.self_test:
                self_test(browser)
                return 0
            found = wanting(browser) + check_slots(browser) + check_keys(browser)
            if options.pictures:
                options.pictures.mkdir(parents=True, exist_ok=True)
                browser.picture(options.pictures / "looks.png")
        finally:
            if browser:
                browser.end()
            cluster.end()
    for line in found:
        print(line)
    print("the page looks as it should: contrast, width, slots, keys" if not found else f"{len(found)} things are wrong with the page")
    return 1 if found else 0


if __name__ == "__main__":
    sys.exit(main())
