#!/usr/bin/env python3
"""The live page under load: 100 workers that sleep, 20,000 tasks, ten minutes. Then the longest stretch in which the page
answered nobody is under 100 ms, the browser's heap has grown to at most 1.10 of what it was, and the master took less than
10 % of a processor.

Fewer minutes make fewer tasks, at the same pace. The heap is compared from when the page has all that it keeps (320 s); in a
run of less than 7 minutes it still gathers, and its growth from the half on is told and not judged. Talks to loopback only, and ends what it has started. Needs
chromium and chromedriver. --self-test: that each of the three would be noticed.
"""
import argparse, json, os, pathlib, shutil, subprocess, sys, tempfile, time, urllib.request
from page import PATIENCE_SECONDS, Browser, Cluster
from page_looks import command

TASKS_EACH_MINUTE = 2_000
KEPT_SECONDS = 330
BUSY_MS_MAX, HEAP_GROWTH_MAX, MASTER_SHARE_MAX = 100, 1.10, 0.10
FEED_LINES = 20
HEAP_LOOKS = 7
OBSERVE = """
window.busy = [];
new PerformanceObserver((list) => { for (const entry of list.getEntries()) window.busy.push(entry.duration); })
  .observe({ type: "longtask", buffered: false });
"""


class LargeCluster(Cluster):
    """A master, and one command that starts all workers."""

    def __init__(self, program: str, folder: pathlib.Path, workers: int):
        self.program, self.folder, self.ours = program, folder, []
        self.environment = {**os.environ, "XDG_STATE_HOME": str(folder / "state"), "TMPDIR": str(folder)}
        (folder / "state").mkdir()
        self.start_master()
        self.start("worker", "--workers", str(workers), "--slots", "1", "--memory", f"{workers * 16}MiB")
        end = time.monotonic() + 5 * PATIENCE_SECONDS
        while (there := len(json.loads(self.ask("status", "--json"))["workers"])) < workers:
            assert time.monotonic() < end, f"only {there} of {workers} workers have joined"
            time.sleep(0.5)


def processor_seconds(pid: int) -> float:
    fields = pathlib.Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()
    return (int(fields[11]) + int(fields[12])) / os.sysconf("SC_CLK_TCK")


def heap_bytes(browser: Browser) -> int:
    """What is held after a collection: the least of several looks, as the page may draw between a collection and the look, and
    what it makes for that (up to 0.8 MB of 3) is held by nobody."""
    looks = []
    for _ in range(HEAP_LOOKS):
        command(browser, "HeapProfiler.collectGarbage")
        looks.append(command(browser, "Runtime.getHeapUsage")["usedSize"])
        time.sleep(0.3)
    return min(looks)


def line_bytes(cluster: Cluster) -> float:
    """Bytes of a line of the feed in the mean, without the first one, which tells all."""
    join = (cluster.folder / "state/gristmill/join").read_text().strip()
    address, token = join.removeprefix("gm1:").split("#")
    request = urllib.request.Request(f"http://{address}/api/v1/feed", headers={"Authorization": "Bearer " + token.split(".")[0]})
    with urllib.request.urlopen(request, timeout=PATIENCE_SECONDS) as answer:
        while json.loads(answer.readline())["more"]:
            pass
        return sum(len(answer.readline()) for _ in range(FEED_LINES)) / FEED_LINES


def judge(figures: dict) -> list:
    """What is not as it should be, in words."""
    found = []
    if BUSY_MS_MAX <= figures["busy_ms"]:
        found.append(f"the page was busy for {figures['busy_ms']:.0f} ms at a stretch, not under {BUSY_MS_MAX}")
    if figures["keeps_all"] and HEAP_GROWTH_MAX < figures["heap_growth"]:
        found.append(f"the browser's heap has grown to {figures['heap_growth']:.2f} of what it was, more than {HEAP_GROWTH_MAX}")
    if MASTER_SHARE_MAX <= figures["master_share"]:
        found.append(f"the master took {100 * figures['master_share']:.1f} % of a processor, not under {100 * MASTER_SHARE_MAX:.0f} %")
    if figures["lines_a_second"] < 2:
        found.append(f"the page got {figures['lines_a_second']:.1f} lines a second, fewer than 2")
    return found


def measure(cluster: Cluster, browser: Browser, minutes: float, tasks: int, workers: int) -> dict:
    seconds = 60 * minutes
    # So that the tasks last a little longer than the measurement.
    task_ms = round(1000 * 1.15 * (seconds + 10) * workers / tasks)
    browser.open(cluster.ask("page"))
    browser.until("the feed", "document.getElementById('connection').textContent === 'live'")
    browser.until("all workers", f"document.querySelectorAll('#workers-table tbody tr').length === {workers}")
    cluster.ask("submit", "synthetic", "--maps", str(tasks), "--reduces", "1", "--map-time", f"{task_ms}ms", "--detach",
                "--output", str(cluster.folder / "out"))
    browser.until("tasks run", "/[1-9]/.test(document.querySelector('#jobs-table tbody tr')?.cells[2].innerText.split(' of ')[0] ?? '')")
    browser.run("document.querySelector('[data-span=\"300\"]').click()")
    time.sleep(5)
    browser.run(OBSERVE)
    master = cluster.ours[0].pid
    begun, spent = time.monotonic(), processor_seconds(master)
    lines = int(browser.run("return document.body.dataset.lines"))
    keeps_all = KEPT_SECONDS + 60 <= seconds
    time.sleep(KEPT_SECONDS if keeps_all else seconds / 2)
    first = heap_bytes(browser)
    time.sleep(max(0, begun + seconds - time.monotonic()))
    passed = time.monotonic() - begun
    # Before the garbage is collected, which is none of the page's doing.
    busy = browser.run("return window.busy")
    figures = {"minutes": minutes, "workers": workers, "tasks": tasks, "task_ms": task_ms, "keeps_all": keeps_all,
               "busy_ms": max(busy, default=0.0), "long_stretches": len(busy),
               "master_share": (processor_seconds(master) - spent) / passed,
               "lines_a_second": (int(browser.run("return document.body.dataset.lines")) - lines) / passed}
    last = heap_bytes(browser)
    done = browser.run("return document.querySelector('#jobs-table tbody tr').cells[2].innerText")
    return {**figures, "feed_line_bytes": line_bytes(cluster), "heap_bytes": last, "heap_growth": last / first, "maps": done}


def self_test():
    good = {"busy_ms": 60, "heap_growth": 1.05, "master_share": 0.05, "lines_a_second": 4, "keeps_all": True}
    assert judge(good) == []
    for name, bad in (("busy_ms", 100), ("heap_growth", 1.11), ("master_share", 0.10), ("lines_a_second", 1)):
        assert len(judge({**good, name: bad})) == 1, name
    browser = Browser(800, 600, False)
    try:
        browser.open("about:blank")
        browser.run(OBSERVE)
        browser.run("setTimeout(() => { const end = performance.now() + 150; while (performance.now() < end); }, 10)")
        seen = browser.until("a stretch of 150 ms is noticed", "window.busy.length && Math.max(...window.busy)")
        assert 150 <= seen, seen
        first = heap_bytes(browser)
        browser.run("window.kept = Array.from({ length: 200000 }, (_, at) => ({ at }))")
        assert judge({**good, "heap_growth": heap_bytes(browser) / first}), "a heap that grows is not noticed"
    finally:
        browser.end()
    spent, end = processor_seconds(os.getpid()), time.monotonic() + 0.5
    while time.monotonic() < end:
        pass
    assert judge({**good, "master_share": (processor_seconds(os.getpid()) - spent) / 0.5}), "a busy process is not noticed"
    print("a busy page, a heap that grows, a busy master and a slow feed would be noticed")


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--program", default="target/debug/gristmill", help="the program (default: %(default)s)")
    parser.add_argument("--minutes", type=float, default=10, help="how long it is measured (default: %(default)s)")
    parser.add_argument("--workers", type=int, default=100, help="worker processes of one slot (default: %(default)s)")
    parser.add_argument("--tasks", type=int, help=f"map tasks (default: {TASKS_EACH_MINUTE} for each minute)")
    parser.add_argument("--self-test", action="store_true", help="see that what is wrong would be noticed")
    options = parser.parse_args()
    missing = [tool for tool in ("chromedriver", "chromium") if shutil.which(tool) is None]
    if missing:
        print(f"skipped: {' and '.join(missing)} not found (Debian: chromium chromium-driver)")
        return 0
    if options.self_test:
        self_test()
        return 0
    tasks = options.tasks or round(TASKS_EACH_MINUTE * options.minutes)
    with tempfile.TemporaryDirectory(prefix="gristmill-load-") as folder:
        cluster = browser = None
        try:
            cluster = LargeCluster(os.path.abspath(options.program), pathlib.Path(folder), options.workers)
            browser = Browser(1280, 1000, False)
            figures = measure(cluster, browser, options.minutes, tasks, options.workers)
        finally:
            if browser:
                browser.end()
            if cluster:
                cluster.end()
    print(json.dumps(figures))
    found = judge(figures)
    for line in found:
        print(line)
    return 1 if found else 0


if __name__ == "__main__":
    sys.exit(main())
