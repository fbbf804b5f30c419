#!/usr/bin/env python3
"""Tests the live page in a browser, on a live cluster.

A job runs from submission to end, a worker is killed, a reason is read on hover, a job is cancelled by keyboard only if the
link allows it, and a program takes the port of a killed master.

Needs chromium and chromedriver (Debian: chromium chromium-driver), which it drives by WebDriver's HTTP alone. Uses loopback
only. --pictures DIRECTORY stores screenshots, light, dark and narrow.
"""
import argparse, base64, contextlib, http.server, json, os, pathlib, shutil, signal, socket, subprocess, sys, tempfile, threading, time
import urllib.error, urllib.request

TIMEOUT_SECONDS = 60
# Keys by their names in WebDriver.
TAB, ENTER, ESCAPE = "\ue004", "\ue007", "\ue00c"
# Would create elements, attributes or requests if it were treated as markup.
HOSTILE = "<img src=x onerror=alert(1)></script><b>bold</b>"


class Browser:
    """A session of chromedriver."""

    def __init__(self, width: int, height: int, dark: bool):
        self.driver = subprocess.Popen(["chromedriver", "--port=0"], stdout=subprocess.PIPE, stderr=subprocess.DEVNULL, text=True)
        self.port = None
        for line in self.driver.stdout:
            if "started successfully on port" in line:
                self.port = int(line.split("on port")[1].strip(" .\n"))
                break
        if self.port is None:
            raise SystemExit("chromedriver did not say on which port it listens")
        arguments = ["--headless=new", "--no-sandbox", "--disable-gpu", "--disable-background-networking", "--disable-component-update",
                     "--disable-sync", "--no-first-run", f"--window-size={width},{height}", "--hide-scrollbars"]
        if dark:
            arguments.append("--force-dark-mode")
        wanted = {"browserName": "chrome", "goog:chromeOptions": {"args": arguments},
                  "goog:loggingPrefs": {"browser": "ALL", "performance": "ALL"}}
        answer = self.call("POST", "/session", {"capabilities": {"alwaysMatch": wanted}})
        self.session = answer["sessionId"]

    def call(self, method: str, path: str, body=None):
        data = None if body is None else json.dumps(body).encode()
        request = urllib.request.Request(f"http://127.0.0.1:{self.port}{path}", data=data, method=method)
        request.add_header("Content-Type", "application/json")
        try:
            with urllib.request.urlopen(request, timeout=TIMEOUT_SECONDS) as answer:
                return json.load(answer)["value"]
        except urllib.error.HTTPError as error:
            raise RuntimeError(f"{method} {path}: {error.read().decode()[:500]}") from error

    def of_session(self, method: str, path: str, body=None):
        return self.call(method, f"/session/{self.session}{path}", body)

    def open(self, url: str):
        self.of_session("POST", "/url", {"url": url})

    def run(self, script: str, *arguments):
        return self.of_session("POST", "/execute/sync", {"script": script, "args": list(arguments)})

    def until(self, what: str, script: str, *arguments):
        """Waits until a script returns a true value, and returns it."""
        end = time.monotonic() + TIMEOUT_SECONDS
        while time.monotonic() < end:
            value = self.run("return " + script, *arguments)
            if value:
                return value
            time.sleep(0.05)
        raise AssertionError(f"waited {TIMEOUT_SECONDS} s for: {what}; the page says {self.run('return document.body.innerText')[:1500]}")

    def point(self, x: float, y: float):
        move = {"type": "pointerMove", "duration": 0, "x": round(x), "y": round(y)}
        self.of_session("POST", "/actions", {"actions": [{"type": "pointer", "id": "mouse", "actions": [move]}]})

    def drag(self, start: tuple, end: tuple):
        def move(place): return {"type": "pointerMove", "duration": 0, "x": round(place[0]), "y": round(place[1])}
        steps = [move(start), {"type": "pointerDown", "button": 0}, move(end), {"type": "pointerUp", "button": 0}]
        self.of_session("POST", "/actions", {"actions": [{"type": "pointer", "id": "mouse", "actions": steps}]})

    def press(self, key: str):
        self.of_session("POST", "/actions", {"actions": [{"type": "key", "id": "keys", "actions": [
            {"type": "keyDown", "value": key}, {"type": "keyUp", "value": key}]}]})

    def focused(self) -> str:
        return self.run("return document.activeElement.id")

    def picture(self, path: pathlib.Path):
        path.write_bytes(base64.b64decode(self.of_session("GET", "/screenshot")))

    def log(self, kind: str) -> list:
        return self.of_session("POST", "/se/log", {"type": kind})

    def end(self):
        try:
            self.of_session("DELETE", "")
        finally:
            self.driver.terminate()
            self.driver.wait()


class Cluster:
    """A master and two workers of one slot, in a directory of their own."""

    def __init__(self, program: str, directory: pathlib.Path):
        self.program, self.directory, self.ours = program, directory, []
        self.environment = {**os.environ, "XDG_STATE_HOME": str(directory / "state"), "TMPDIR": str(directory)}
        (directory / "state").mkdir()
        self.start_master()
        self.workers = [self.start("cluster", "worker", "--workers", "1", "--slots", "1") for _ in range(2)]

    def start(self, *arguments):
        log = open(self.directory / f"{len(self.ours)}.log", "w")
        started = subprocess.Popen([self.program, *arguments], env=self.environment, stdout=log, stderr=log)
        self.ours.append(started)
        return started

    def start_master(self):
        master = self.start("cluster", "master")
        end = time.monotonic() + TIMEOUT_SECONDS
        while subprocess.run([self.program, "cluster", "status"], env=self.environment, capture_output=True).returncode:
            assert time.monotonic() < end, "the master does not answer"
            time.sleep(0.1)
        return master

    def ask(self, *arguments) -> str:
        done = subprocess.run([self.program, *arguments], env=self.environment, capture_output=True, text=True)
        assert done.returncode == 0, f"{arguments}: {done.stderr}"
        return done.stdout.strip()

    def end(self):
        for process in reversed(self.ours):
            if process.poll() is None:
                process.send_signal(signal.SIGTERM)
        for process in self.ours:
            try:
                process.wait(30)
            except subprocess.TimeoutExpired:
                process.kill()


def children(pid: int) -> list:
    listed = subprocess.run(["ps", "-o", "pid=", "--ppid", str(pid)], capture_output=True, text=True).stdout
    return [int(word) for word in listed.split()]


def check(cluster: Cluster, browser: Browser, pictures):
    directory = cluster.directory
    browser.open(cluster.ask("cluster", "page"))
    browser.until("the feed", "document.getElementById('connection').textContent === 'live'")
    assert "enter=" not in browser.run("return location.href"), "the code stays in the address"
    browser.until("both workers", "document.querySelectorAll('#workers-table tbody tr').length === 2")
    assert browser.run("return document.getElementById('no-jobs').hidden") is False

    text = directory / "text"
    text.write_text("".join(f"{HOSTILE} line {number}\n" for number in range(2000)))
    cluster.ask("submit", "grep", HOSTILE, str(text), "--detach", "--output", str(directory / "hostile"))
    job = cluster.ask("submit", "synthetic", "--maps", "12", "--reduces", "2", "--map-time", "700ms", "--reduce-time", "1s",
                      "--map-bytes", "100KB", "--detach", "--output", str(directory / "out"))
    row = f"[...document.querySelectorAll('#jobs-table tbody tr')].find((row) => row.innerText.includes('{job} '))"
    browser.until(f"{job} runs", f"{row}?.innerText.includes('running')")
    browser.until("a map has ended", f"/[1-9]\\d* of 12/.test({row}?.innerText)")

    # The next jobs and their reasons, the remaining work, and the use of the stations.
    browser.until("who comes next", "/^1\\s+job-\\d+ synthetic\\s+\\d+ maps?\\s+\\d+ map.*its own has the least/s.test(document.querySelector('#turns-table tbody tr')?.innerText ?? '')")
    browser.until("its place in line", f"{row}?.cells[7].innerText.startsWith('next')")
    browser.until("how long it still takes", f"/^~ [\\d.]+ (m?s|min)/.test({row}?.cells[6].innerText)")
    browser.until("busy slots in the line of maps", """(() => { const line = document.querySelector('#tiles canvas');
        const seen = line.getContext('2d').getImageData(line.width - 6, line.height - 3, 1, 1).data, none = line.getContext('2d').getImageData(2, 2, 1, 1).data;
        return seen.join() !== none.join(); })()""")
    print("next in line:", " / ".join(browser.run("return document.querySelector('#turns-table tbody tr').innerText").split("\t")))
    if pictures:
        browser.picture(pictures / "next.png")

    # Tables are found and sorted by what their reader types and clicks.
    browser.run("const find = document.getElementById('jobs-search'); find.value = 'SYNTH'; find.dispatchEvent(new Event('input'))")
    browser.until("only the jobs that were looked for", "document.querySelectorAll('#jobs-table tbody tr').length === 1")
    browser.run("const find = document.getElementById('jobs-search'); find.value = ''; find.dispatchEvent(new Event('input'))")
    for direction, first in ("ascending", "worker-1"), ("descending", "worker-2"):
        browser.run("document.querySelector('#workers-table th button').click()")
        browser.until(f"workers, {direction}", f"document.querySelector('#workers-table th').getAttribute('aria-sort') === '{direction}'"
                      f" && document.querySelector('#workers-table tbody tr').innerText.startsWith('{first}')")

    killed = children(cluster.workers[0].pid)
    assert killed, "a worker process to kill"
    os.kill(killed[0], signal.SIGKILL)
    browser.until("the lost worker is marked and another has come",
                  "document.querySelectorAll('#workers-table tbody tr').length === 2 && document.getElementById('workers-table').innerText.includes('worker-3')")

    box = browser.run("const box = document.getElementById('slots').getBoundingClientRect(); return [box.left, box.top, box.width, box.height]")
    browser.run("document.querySelector('[data-span=\"15\"]').click()")
    read = None
    end = time.monotonic() + TIMEOUT_SECONDS
    while read is None and time.monotonic() < end:
        for share in (0.95, 0.9, 0.85, 0.8, 0.7):
            for down in range(28, int(box[3]), 8):
                browser.point(box[0] + share * box[2], box[1] + down)
                words = browser.run("const shown = document.getElementById('hover'); return shown.hidden ? '' : shown.innerText")
                if words and "reason: " in words:
                    read = words
                    break
            if read:
                break
    assert read, "no reason was read over any bar of the chart"
    print("over a bar:", " / ".join(read.splitlines()))
    if pictures:
        browser.picture(pictures / "cluster.png")

    browser.until("numbers of 15 s", "document.getElementById('tiles').innerText.includes('% of 15 s')")
    browser.drag((box[0] + 0.9 * box[2], box[1] + 40), (box[0] + 0.7 * box[2], box[1] + 40))
    browser.until("a part of the chart alone, and stopped", "document.getElementById('pause').getAttribute('aria-pressed') === 'true'"
                  " && / % of 3\\.\\d s/.test(document.getElementById('tiles').innerText)")
    browser.run("document.getElementById('slots').focus()")
    browser.press("+")
    browser.until("half of it", "/ % of 1\\.\\d s/.test(document.getElementById('tiles').innerText)")
    if pictures:
        browser.picture(pictures / "zoomed.png")
    browser.run("document.querySelector('[data-span=\"60\"]').click()")
    browser.press(" ")
    browser.until("the chart goes on", "document.getElementById('pause').getAttribute('aria-pressed') === 'false'")

    browser.until(f"{job} has succeeded", f"{row}?.innerText.includes('succeeded')")
    browser.run(f"location.hash = '#{job}'")
    browser.until("its tasks", "document.querySelectorAll('#tasks-table tbody tr').length >= 14")
    browser.until("its reasons", "document.getElementById('job-why').innerText.includes('succeeded')")
    assert browser.run("return document.getElementById('tasks-table').innerText.includes('lost with its worker')"), "the lost attempt is not told of"
    steps = browser.until("its critical path", "[...document.querySelectorAll('#path-bars li')].map((step) => step.innerText)")
    assert any("reduce-" in step and " on worker-" in step for step in steps) and steps[-1].startswith("the output is published"), steps
    browser.run("document.querySelector('#tasks-table details').open = true")
    browser.until("the details of a task", "document.querySelector('#tasks-table details ul').innerText.includes(\"after the job's arrival\")")
    if pictures:
        browser.picture(pictures / "job.png")
    browser.run("location.hash = '#job-1'")
    browser.until("the hostile parameters as text", "document.getElementById('job-parameters').textContent.includes('<img src=x onerror=alert(1)>')")
    assert browser.run("return document.querySelectorAll('img, b b, #job script').length") == 0, "text became elements"

    # A browser without a link is shown a hint and no data.
    browser.run("sessionStorage.clear(); location.hash = ''; location.reload()")
    browser.until("the page is closed without a link", "document.getElementById('notice').innerText.includes('gristmill cluster page')")
    assert browser.run("return document.body.innerText.includes('worker-2')") is False


def sleeper(cluster: Cluster, name: str) -> str:
    """A job that runs until it is cancelled."""
    return cluster.ask("submit", "synthetic", "--maps", "1", "--reduces", "1", "--map-time", "600s", "--detach",
                       "--output", str(cluster.directory / name))


def state(cluster: Cluster, job: str) -> str:
    return json.loads(cluster.ask("cluster", "status", job, "--json"))["state"]


def open_job(cluster: Cluster, browser: Browser, job: str, *flags: str):
    """The page of a job, with a fresh link."""
    browser.open(cluster.ask("cluster", "page", *flags))
    browser.until("the feed", "document.getElementById('connection').textContent === 'live'")
    browser.run(f"location.hash = '#{job}'")
    browser.until(f"{job} runs", "document.getElementById('job-state').innerText === 'running'")


def cancel(cluster: Cluster, browser: Browser, pictures):
    """A link that allows it cancels a job, by keyboard alone and after a question."""
    job = sleeper(cluster, "cancelled")
    open_job(cluster, browser, job, "--may-cancel")
    browser.until("the button", "!document.getElementById('cancel').hidden && document.getElementById('cancel-hint').hidden")
    browser.run("document.getElementById('job-title').focus()")
    browser.press(TAB)
    assert browser.focused() == "cancel", browser.focused()
    browser.press(ENTER)
    browser.until("the question", "document.getElementById('cancel-dialog').open")
    assert browser.run("return document.getElementById('cancel-title').innerText") == f"Cancel {job} synthetic?"
    assert browser.focused() == "cancel-no", "the answer that changes nothing comes first"
    if pictures:
        browser.picture(pictures / "cancel.png")
    browser.press(ESCAPE)
    browser.until("the question is gone", "!document.getElementById('cancel-dialog').open")
    assert (browser.focused(), state(cluster, job)) == ("cancel", "running")
    browser.press(ENTER)
    browser.until("the question again", "document.getElementById('cancel-dialog').open")
    browser.press(TAB)
    assert browser.focused() == "cancel-yes", browser.focused()
    browser.press(ENTER)
    browser.until("the end of the job", "document.getElementById('job-state').innerText === 'cancelled'")
    browser.until("the end of the button", f"document.getElementById('cancel').hidden && document.getElementById('cancel-said').innerText === '{job}: cancelled'")
    assert (browser.focused(), state(cluster, job)) == ("job-title", "cancelled")
    browser.until("what ran then, on its critical path",
                  "[...document.querySelectorAll('#path-bars li')].some((step) => /^map-0 on worker-\\d+: ran when the job was stopped/.test(step.innerText))")


@contextlib.contextmanager
def foreign_page():
    """The address of an empty page of another origin."""

    class Empty(http.server.BaseHTTPRequestHandler):
        def do_GET(self):
            self.send_response(200)
            self.send_header("Content-Type", "text/html")
            self.send_header("Content-Length", "0")
            self.end_headers()

        def log_message(self, *_):
            pass

    with http.server.ThreadingHTTPServer(("127.0.0.1", 0), Empty) as server:
        threading.Thread(target=server.serve_forever, daemon=True).start()
        try:
            yield f"http://127.0.0.1:{server.server_port}/"
        finally:
            server.shutdown()


def cancel_not(cluster: Cluster, browser: Browser):
    """A read-only page says so and cannot cancel, nor can one of another origin."""
    job = sleeper(cluster, "spared")
    master = cluster.ask("cluster", "page").split("/")[2]
    route = f"http://{master}/api/v1/jobs/{job}/cancel"
    # The tab has a token that may cancel. A foreign page in it has none, and no browser adds it.
    with foreign_page() as address:
        browser.open(address)
        browser.log("performance")
        browser.run("return fetch(arguments[0], { method: 'POST', mode: 'no-cors', credentials: 'include' }).then(() => 'sent', String)", route)
        messages = [json.loads(entry["message"])["message"] for entry in browser.log("performance")]
        answers = [message["params"]["response"] for message in messages if message["method"] == "Network.responseReceived"]
        assert [answer["status"] for answer in answers if answer["url"] == route] == [403], answers
    assert state(cluster, job) == "running", "a foreign page has cancelled a job"
    open_job(cluster, browser, job)
    browser.until("why there is no button", "document.getElementById('cancel').hidden && document.getElementById('cancel-hint').innerText.includes('gristmill cluster page --may-cancel')")
    assert browser.run("return document.cookie") == ""
    status = browser.run("return fetch(arguments[0], { method: 'POST', headers: { Authorization: 'Bearer ' + sessionStorage.getItem('gristmill.token') } }).then((answer) => answer.status)", route)
    assert status == 403, status
    assert state(cluster, job) == "running", "a page that only looks has cancelled a job"
    cluster.ask("job", "cancel", job)
    browser.until("its end", "document.getElementById('job-state').innerText === 'cancelled' && document.getElementById('cancel-hint').hidden")


def take_port(cluster: Cluster, browser: Browser):
    """A process that takes the port of a killed master does not receive the token."""
    link = cluster.ask("cluster", "page")
    browser.open(link)
    browser.until("the feed", "document.getElementById('connection').textContent === 'live'")
    token = browser.run("return sessionStorage.getItem('gristmill.token')")
    assert len(token.split(":")[1]) == 43, "a token to lose"
    cluster.ours[0].kill()
    cluster.ours[0].wait()
    taken = []
    with socket.create_server(("127.0.0.1", int(link.split("/")[2].split(":")[1]))) as door:
        door.settimeout(TIMEOUT_SECONDS)
        while not browser.run("return document.getElementById('connection').textContent.includes('does not know')"):
            connection, _ = door.accept()
            with connection:
                connection.settimeout(1)
                head = connection.recv(1 << 16).decode()
                taken.append(head)
                hello = head.lower().partition("gristmill-hello: ")[2].split(" ")[0]
                connection.sendall(f"HTTP/1.1 200 OK\r\nGristmill-Proof: {hello} {hello} 127.0.0.1:1\r\nConnection: close\r\n"
                                   "Content-Length: 0\r\n\r\n".encode())
                time.sleep(0.2)
    assert any(head.startswith("POST /prove ") for head in taken), taken
    assert not any("authorization" in head.lower() or token.split(":")[1] in head for head in taken), taken


def look_back(cluster: Cluster, browser: Browser):
    """The next master shows a job of a master that has ended in order, from its history."""
    ended = cluster.start_master()
    ended.send_signal(signal.SIGTERM)
    ended.wait(TIMEOUT_SECONDS)
    cluster.start_master()
    browser.open(cluster.ask("cluster", "page"))
    browser.until("the feed", "document.getElementById('connection').textContent === 'live'")
    browser.run("location.hash = '#job-2'")
    browser.until("a job of before", "document.getElementById('job-title').textContent === 'job-2 synthetic' && 14 <= document.querySelectorAll('#tasks-table tbody tr').length")
    assert browser.run("return document.querySelectorAll('#path-bars li').length"), "its critical path is not told"


def judge(browser: Browser, address: str):
    """Checks that no request went to another host, and that no error was logged."""
    hosts = set()
    for entry in browser.log("performance"):
        message = json.loads(entry["message"])["message"]
        if message["method"] == "Network.requestWillBeSent":
            url = message["params"]["request"]["url"]
            if not url.startswith(("data:", "about:", "chrome:")):
                hosts.add(url.split("/")[2])
    assert hosts == {address}, f"requests went to {hosts}"
    bad = {entry["message"][:300] for entry in browser.log("browser") if entry["level"] == "SEVERE"}
    assert not bad, f"the browser complains: {sorted(bad)[:5]}"


def look(cluster: Cluster, pictures: pathlib.Path):
    for name, width, height, dark in (("dark", 1280, 1000, True), ("narrow", 420, 900, False)):
        browser = Browser(width, height, dark)
        try:
            browser.open(cluster.ask("cluster", "page"))
            browser.until("jobs", "document.querySelectorAll('#jobs-table tbody tr').length")
            browser.picture(pictures / f"{name}.png")
        finally:
            browser.end()


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--program", default="target/debug/gristmill", help="the program (default: %(default)s)")
    parser.add_argument("--pictures", type=pathlib.Path, help="directory for pictures of the page")
    options = parser.parse_args()
    missing = [tool for tool in ("chromedriver", "chromium") if shutil.which(tool) is None]
    if missing:
        print(f"skipped: {' and '.join(missing)} not found (Debian: chromium chromium-driver)")
        return 0
    if options.pictures:
        options.pictures.mkdir(parents=True, exist_ok=True)
    with tempfile.TemporaryDirectory(prefix="gristmill-page-") as directory:
        cluster = Cluster(os.path.abspath(options.program), pathlib.Path(directory))
        browser = None
        try:
            browser = Browser(1280, 1000, False)
            check(cluster, browser, options.pictures)
            cancel(cluster, browser, options.pictures)
            judge(browser, cluster.ask("cluster", "page").split("/")[2])
            if options.pictures:
                look(cluster, options.pictures)
            cancel_not(cluster, browser)
            take_port(cluster, browser)
            look_back(cluster, browser)
        finally:
            if browser:
                browser.end()
            cluster.end()
    print("the page holds: a job from submission to end, who comes next, a worker killed, a reason on hover, a part of the chart, a critical path, hostile\n"
          "text as text, one host, no error, a job cancelled by keyboard only with the link for it, nothing for a process that\n"
          "takes the master's port, a job of an earlier master")
    return 0


if __name__ == "__main__":
    sys.exit(main())
