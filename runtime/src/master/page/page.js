// The live page: follows the master's feed and draws it. It is read-only except for the button that cancels a job, which
// requires a link made for that; the master checks the right.
// Foreign text is set as text, never as markup.

const HUES = [36, 205, 330, 140, 265, 15, 180, 95, 300, 230];
const KEPT_SECONDS = 1830, KEPT_PER_WORKER = 6000, ROWS_MAX = 300;
const FRAME_MS = 100, SILENCE_MS = 5000, AHEAD_MS = 2000, TURNS_MS = 1000, TURNS_SHOWN = 20, BUCKETS = 60;
// An attempt may start this long before the recorded end of the previous one; it was not queued then.
const OVERLAP_NS = 2e5, QUEUED_MIN_NS = 2e7;
const ENDS = { succeeded: "succeeded", failed: "failed", lost: "lost with its worker", running: "running",
  suspended: "suspended", returned: "given back" };

const model = {
  master: null, at: 0, jobs: new Map(), workers: new Map(), attempts: new Map(), fetches: [],
  span: 60, paused: null, traces: new Map(), reasons: new Map(), chosen: null, turns: { value: null, at: -Infinity, pause: TURNS_MS, asking: false },
};
const $ = (id) => document.getElementById(id);
const dark = matchMedia("(prefers-color-scheme: dark)");

// ---- admission -------------------------------------------------------------------------------------------------

const TOKEN = "gristmill.token";
const CLOSED = "This page is not let in any more. Run `gristmill cluster page` for a new link.";

async function enter() {
  const code = new URLSearchParams(location.hash.slice(1)).get("enter");
  if (!code) return sessionStorage.getItem(TOKEN);
  history.replaceState(null, "", "/");
  const answer = await fetch("/page/enter", { method: "POST", body: JSON.stringify({ code }) });
  if (!answer.ok) {
    const kept = sessionStorage.getItem(TOKEN);
    if (kept) return kept;
    throw new Locked((await answer.json()).message);
  }
  const { token } = await answer.json();
  sessionStorage.setItem(TOKEN, token);
  return token;
}

class Locked extends Error {}
class Stranger extends Error {}

// The token is sent only to a server that proves that it knows it and its own address, as in worker/src/http/proof.rs.
async function prove(token, method, path) {
  if (!crypto.subtle) return;
  const [name, secret] = token.split(":");
  const ours = toText(crypto.getRandomValues(new Uint8Array(32)));
  const hello = `${ours} ${name} ${method} /api/v1/${path.split("?")[0]}`;
  const answer = await fetch("/prove", { method: "POST", headers: { "gristmill-hello": hello } });
  const [theirs, proof, ...place] = (answer.headers.get("gristmill-proof") ?? "").split(" ");
  const key = await derive(fromText(secret), `gristmill hello 1 ${ours} ${theirs} ${place.join(" ")}`);
  if (proof !== toText(await derive(key, "server")) || theirs === ours || !isHere(place.join(" "))) {
    throw new Stranger("what answers there does not know this page's token: another program has the master's port, or the token was revoked");
  }
}

// A host name declared to the master may be a proxy's, which has another address.
function isHere(place) {
  if (location.protocol === "https:") return place.startsWith("tls ");
  const local = location.hostname === "localhost";
  if (!local && !/^[\d.]+$|^\[/.test(location.hostname)) return true;
  const hosts = local ? ["127.0.0.1", "[::1]"] : [location.hostname];
  return hosts.some((host) => place === `${host}:${location.port || 80}`);
}

async function derive(secret, purpose) {
  const key = await crypto.subtle.importKey("raw", secret, { name: "HMAC", hash: "SHA-256" }, false, ["sign"]);
  return new Uint8Array(await crypto.subtle.sign("HMAC", key, new TextEncoder().encode(purpose)));
}

const toText = (bytes) => btoa(String.fromCharCode(...bytes)).replaceAll("+", "-").replaceAll("/", "_").replaceAll("=", "");
const fromText = (text) => Uint8Array.from(atob(text.replaceAll("-", "+").replaceAll("_", "/")), (char) => char.charCodeAt(0));

async function ask(path, method = "GET") {
  const token = sessionStorage.getItem(TOKEN);
  if (token === null) throw new Locked(CLOSED);
  await prove(token, method, path);
  const answer = await fetch("/api/v1/" + path, { method, headers: { Authorization: "Bearer " + token } });
  if (answer.status === 401 || answer.status === 403) {
    sessionStorage.removeItem(TOKEN);
    throw new Locked(CLOSED);
  }
  if (!answer.ok) throw new Error((await answer.json().catch(() => ({}))).message ?? "status " + answer.status);
  return answer;
}

// ---- following -------------------------------------------------------------------------------------------------

async function follow() {
  for (let wait = 500; ; wait = Math.min(2 * wait, 8000)) {
    let why = "no answer from the master; trying again";
    try {
      const reader = (await ask("feed")).body.pipeThrough(new TextDecoderStream()).getReader();
      forget();
      let rest = "";
      for (;;) {
        // A silent master is lost, even if the connection is open: lines arrive four times a second.
        const late = setTimeout(() => reader.cancel().catch(() => {}), SILENCE_MS);
        const { value, done } = await reader.read();
        clearTimeout(late);
        if (done) break;
        const lines = (rest + value).split("\n");
        rest = lines.pop();
        for (const line of lines) if (line) take(JSON.parse(line));
        connection("live", "live");
        wait = 500;
      }
    } catch (error) {
      if (error instanceof Locked) return lock(error.message);
      if (error instanceof Stranger) why = error.message;
    }
    connection("lost", why);
    await new Promise((resolve) => setTimeout(resolve, wait));
  }
}

function forget() {
  model.jobs.clear(); model.attempts.clear(); model.workers.clear(); model.reasons.clear(); model.traces.clear();
  model.fetches = [];
  model.chosen = model.turns.value = null;
}

function take(line) {
  model.master = line.master;
  model.at = performance.now();
  for (const job of line.jobs) {
    const before = model.jobs.get(job.job);
    model.jobs.set(job.job, job);
    if (before && before.state !== job.state) model.traces.delete(job.job);
    // Attempts without further reports ended with their job.
    if (ended(job)) for (const lanes of model.workers.values()) lanes.changed = true;
  }
  for (const worker of line.workers) Object.assign(lanesOf(worker.worker), { live: worker, counts: worker.slot_counts, changed: true });
  for (const id of line.left) lanesOf(id).live = null;
  for (const [job, kind, index, epoch, worker, launched, started, ended, end] of line.attempts) {
    const key = job + "/" + kind + "/" + index + "/" + epoch;
    let attempt = model.attempts.get(key);
    if (!attempt) {
      attempt = { key, job, kind, index, epoch, worker, launched };
      model.attempts.set(key, attempt);
      lanesOf(worker).attempts.push(attempt);
    }
    attempt.started = started; attempt.ended = ended; attempt.end = end;
    attempt.suspended = end === "suspended" ? attempt.suspended ?? line.master.now_ns : null;
    lanesOf(worker).changed = true;
  }
  for (const [job, map, from, to, bytes, started, ended] of line.fetches) {
    if (bytes) model.fetches.push({ job, map, from, to, bytes, started, ended });
  }
  trim(line.master.now_ns - KEPT_SECONDS * 1e9);
  document.body.dataset.lines = String(Number(document.body.dataset.lines ?? 0) + 1);
}

function lanesOf(worker) {
  if (!model.workers.has(worker)) {
    model.workers.set(worker, { attempts: [], live: null, counts: { unified: 1 }, rows: null, changed: true });
  }
  return model.workers.get(worker);
}

/** The workers that are there, by their numbers. */
const liveWorkers = () => [...model.workers.values()].flatMap((lanes) => lanes.live ?? []).sort((a, b) => a.worker - b.worker);

function trim(before) {
  for (const [id, lanes] of model.workers) {
    const over = lanes.attempts.length - KEPT_PER_WORKER;
    const first = lanes.attempts[0], end = first ? stopped(first) : 0;
    if (0 < over || (end && end < before)) {
      lanes.changed = true;
      lanes.attempts = lanes.attempts.filter((attempt, at) => {
        const end = stopped(attempt);
        const kept = !end || (before <= end && over <= at);
        if (!kept) model.attempts.delete(attempt.key);
        return kept;
      });
    }
    if (!lanes.live && !lanes.attempts.length) model.workers.delete(id);
  }
  if (4 * ROWS_MAX < model.jobs.size) {
    for (const [id, job] of model.jobs) {
      if (job.ended_ns && job.ended_ns < before && id !== shownJob()) model.jobs.delete(id);
    }
  }
  const first = model.fetches.findIndex((fetch) => before <= fetch.ended);
  const cut = Math.max(first < 0 ? model.fetches.length : first, model.fetches.length - 4 * KEPT_PER_WORKER);
  if (0 < cut) model.fetches.splice(0, cut);
}

/** The master's clock now, nanoseconds. */
const clock = () => model.master.now_ns + Math.min(performance.now() - model.at, AHEAD_MS) * 1e6;

// ---- texts -----------------------------------------------------------------------------------------------------

function seconds(ns) {
  const s = ns / 1e9;
  if (s < 0.001) return (s * 1e6).toFixed(0) + " µs";
  if (s < 1) return (s * 1e3).toFixed(s < 0.01 ? 1 : 0) + " ms";
  if (s < 100) return s.toFixed(1) + " s";
  const whole = Math.round(s), minutes = Math.round(s / 60);
  if (s < 6000) return Math.floor(whole / 60) + " min " + (whole % 60) + " s";
  return Math.floor(minutes / 60) + " h " + (minutes % 60) + " min";
}

function bytes(count) {
  const units = ["B", "KiB", "MiB", "GiB", "TiB"];
  let unit = 0;
  while (1024 <= count && unit + 1 < units.length) { count /= 1024; unit += 1; }
  return (unit && count < 10 ? count.toFixed(1) : count.toFixed(0)) + " " + units[unit];
}

function timeOfDay(text) {
  if (!text) return "…";
  const time = new Date(text), today = time.toDateString() === new Date().toDateString();
  return today ? time.toLocaleTimeString("en-GB") : time.toLocaleString("en-GB", { day: "numeric", month: "short", hour: "2-digit", minute: "2-digit" });
}

const taskName = (attempt) => (attempt.kind ? "reduce-" : "map-") + attempt.index;
const jobName = (id) => "job-" + id;
const colour = (job, light) => `hsl(${HUES[job % HUES.length]} 62% ${light + (dark.matches ? 6 : 0)}%)`;

// ---- elements --------------------------------------------------------------------------------------------------

function element(name, attributes = {}, ...children) {
  const made = document.createElement(name);
  for (const [key, value] of Object.entries(attributes)) {
    if (key !== "style") {
      made.setAttribute(key, value);
      continue;
    }
    for (const [property, set] of Object.entries(value)) if (set !== undefined) made.style.setProperty(property, set);
  }
  made.append(...children.map((child) => (child instanceof Node ? child : String(child))));
  return made;
}

/** The column by which each table is sorted, if its reader has chosen one. */
const orders = new WeakMap();

/** Shows the first items in a table, in the order that the reader has chosen. Cells are compared by their `by`, else by their text. */
function fillSorted(body, items, toRow) {
  const order = orders.get(body);
  if (!order) return fill(body, items.slice(0, ROWS_MAX).map(toRow));
  const value = ({ by, text, node }) => by ?? text ?? node?.textContent ?? "";
  const compare = (a, b) => (typeof a === "number" && typeof b === "number" ? a - b : String(a).localeCompare(String(b), "en", { numeric: true }));
  const rows = items.map(toRow).sort((a, b) => order.sign * compare(value(a[order.column]), value(b[order.column])));
  fill(body, rows.slice(0, ROWS_MAX));
}

/** Makes the headings of a table buttons: one sorts by its column, sorts in the other direction, and returns to the order of the page. */
function sortable(table) {
  const body = table.tBodies[0], headings = [...table.tHead.rows[0].cells];
  headings.forEach((heading, column) => {
    const button = element("button", { type: "button", class: "heading" }, heading.textContent);
    heading.replaceChildren(button);
    button.addEventListener("click", () => {
      const sign = orders.get(body)?.column === column ? orders.get(body).sign - 2 : 1;
      if (sign < -1) orders.delete(body); else orders.set(body, { column, sign });
      headings.forEach((other) => other.removeAttribute("aria-sort"));
      if (-1 <= sign) heading.setAttribute("aria-sort", sign === 1 ? "ascending" : "descending");
      tables = -Infinity;
    });
  });
}

/** Shows rows in a table's body, and touches only cells that have changed, so that links stay what is being clicked. */
function fill(body, rows) {
  const focused = body.contains(document.activeElement) ? document.activeElement.getAttribute("href") : null;
  rows.forEach((cells, at) => {
    const row = body.rows[at] ?? body.insertRow();
    cells.forEach(({ text, node, kind }, column) => {
      const words = node ? node.outerHTML : String(text ?? "");
      const cell = row.cells[column] ?? row.insertCell();
      if (cell.dataset.words === words) return;
      cell.dataset.words = words;
      cell.className = kind ?? "";
      cell.replaceChildren(node ?? words);
    });
    while (cells.length < row.cells.length) row.deleteCell(-1);
  });
  while (rows.length < body.rows.length) body.deleteRow(-1);
  if (focused && document.activeElement?.getAttribute("href") !== focused) {
    [...body.querySelectorAll("a")].find((link) => link.getAttribute("href") === focused)?.focus();
  }
}

function tiles(list, shown) {
  shown.forEach(([label, value, line], at) => {
    let item = list.children[at];
    if (!item) { item = element("li", {}, element("b"), element("span"), ...(line ? [element("canvas", { "aria-hidden": "true" })] : [])); list.append(item); }
    if (line) spark(item.children[2], line);
    if (item.firstChild.textContent !== value) item.firstChild.textContent = value;
    if (item.children[1].textContent !== label) item.children[1].textContent = label;
  });
  while (shown.length < list.children.length) list.lastChild.remove();
}

/** A row of heights between 0 and 1 as bars. */
function spark(canvas, heights) {
  const dense = window.devicePixelRatio || 1, wide = Math.round(canvas.clientWidth * dense), high = Math.round(26 * dense);
  if (canvas.width !== wide || canvas.height !== high) { canvas.width = wide; canvas.height = high; }
  const pen = canvas.getContext("2d"), style = getComputedStyle(document.documentElement);
  pen.fillStyle = style.getPropertyValue("--lane");
  pen.fillRect(0, 0, wide, high);
  pen.fillStyle = style.getPropertyValue("--accent");
  const one = wide / heights.length;
  heights.forEach((height, at) => {
    const up = Math.min(1, height) * high;
    pen.fillRect(Math.floor(at * one), high - up, Math.ceil(one), up);
  });
}

function phase(done, running, total, fill) {
  const share = total ? Math.min(1, done / total) : 0;
  const words = total ? `${done} of ${total}` + (running ? `, ${running} run` : "") : "none";
  return element("span", { class: "phase" },
    element("i", {}, element("u", { style: { width: (100 * share).toFixed(1) + "%", "--fill": fill } })), words);
}

function connection(state, words) {
  $("connection").dataset.state = state;
  if ($("connection").textContent !== words) $("connection").textContent = words;
}

function lock(words) {
  connection("lost", "closed");
  $("cluster").hidden = $("job").hidden = true;
  $("notice").hidden = false;
  $("notice").textContent = words;
}

// ---- the cluster -----------------------------------------------------------------------------------------------

/** How busy the three stations were in the span of the chart: slots that ran maps, bytes a second, slots that ran reduces. */
function stations() {
  const until = model.paused ?? clock(), from = until - model.span * 1e9, wide = (until - from) / BUCKETS;
  const [map, network, reduce] = [0, 1, 2].map(() => new Array(BUCKETS).fill(0));
  const add = (row, start, stop, amount) => {
    for (let at = Math.max(0, Math.floor((start - from) / wide)); at < BUCKETS && from + at * wide < stop; at += 1) {
      row[at] += (amount * (Math.min(stop, from + (at + 1) * wide) - Math.max(start, from + at * wide))) / wide;
    }
  };
  for (const { attempts } of model.workers.values()) {
    for (const attempt of attempts) {
      const stop = attempt.suspended ?? (stopped(attempt) || until);
      if (from < stop && attempt.end !== "returned") add(attempt.kind ? reduce : map, begin(attempt), Math.min(stop, until), 1);
    }
  }
  for (const fetch of model.fetches) {
    const took = Math.max(fetch.ended - fetch.started, 1e6);
    if (from < fetch.ended) add(network, fetch.ended - took, fetch.ended, (fetch.bytes * 1e9) / took);
  }
  return { map, network, reduce };
}

function drawCluster() {
  const { master } = model;
  const jobs = [...model.jobs.values()], workers = liveWorkers();
  const slots = workers.reduce((sum, worker) => sum + worker.slots, 0);
  const running = (phase) => jobs.reduce((sum, job) => sum + (ended(job) ? 0 : job[phase].running), 0);
  const lately = model.fetches.filter((fetch) => master.now_ns - 2e9 < fetch.ended);
  const moved = lately.reduce((sum, fetch) => sum + fetch.bytes, 0) / 2;
  const memory = workers.reduce((sum, worker) => sum + worker.memory_bytes, 0);
  const budget = workers.reduce((sum, worker) => sum + worker.memory_budget_bytes, 0);
  const busy = stations(), most = Math.max(...busy.network, 1);
  const span = model.span % 60 === 0 ? `${model.span / 60} min` : Number.isInteger(model.span) ? `${model.span} s` : seconds(model.span * 1e9);
  const share = (row) => Math.round((100 * row.reduce((sum, one) => sum + Math.min(one, slots), 0)) / BUCKETS / Math.max(1, slots));
  const heights = (row) => row.map((one) => one / Math.max(1, slots));
  tiles($("tiles"), [
    ["workers, with " + slots + (slots === 1 ? " slot" : " slots"), String(workers.length)],
    ["jobs under way", String(master.jobs_live)],
    [`slots run maps; ${share(busy.map)} % of ${span}`, String(running("maps")), heights(busy.map)],
    [`a second between workers; at most ${bytes(most === 1 ? 0 : most)} in ${span}`, bytes(moved), busy.network.map((one) => one / most)],
    [`slots run reduces; ${share(busy.reduce)} % of ${span}`, String(running("reduces")), heights(busy.reduce)],
    [`memory in use, of ${bytes(budget)} for pairs`, bytes(memory)],
  ]);
  const pills = [["policy", master.policy], ["placement", master.placement], ["estimator", master.estimator]];
  $("deciders").replaceChildren(...pills.map(([what, name]) => element("span", {}, element("b", {}, what), name)));
  jobs.sort((a, b) => rank(a) - rank(b) || (rank(a) === WAITS ? a.job - b.job : b.job - a.job));
  const wanted = $("jobs-search").value.trim().toLowerCase();
  const found = jobs.filter((job) => [jobName(job.job), job.name, job.owner, job.state].join(" ").toLowerCase().includes(wanted));
  fillSorted($("jobs-table").tBodies[0], found, jobRow);
  $("jobs-more").hidden = 0 < found.length && found.length <= ROWS_MAX || !jobs.length;
  $("jobs-more").textContent = found.length ? `${found.length - ROWS_MAX} more are not shown; \`gristmill job list\` lists them.` : "No job has these words.";
  $("jobs-table").hidden = !jobs.length;
  $("no-jobs").hidden = 0 < jobs.length;
  drawTurns(jobs);
  const sums = (end) => lately.reduce((sums, fetch) => sums.set(fetch[end], (sums.get(fetch[end]) ?? 0) + fetch.bytes / 2), new Map());
  const [received, sent] = [sums("to"), sums("from")];
  fillSorted($("workers-table").tBodies[0], workers, (worker) => workerRow(worker, received, sent));
  $("workers-more").hidden = workers.length <= ROWS_MAX;
  $("workers-more").textContent = `${workers.length - ROWS_MAX} more are not shown; \`gristmill cluster status\` lists them.`;
  $("workers-table").hidden = !workers.length;
  $("no-workers").hidden = 0 < workers.length;
}

/** Who gets the next slots: asked for while somebody looks, less often where the answer takes long. */
function drawTurns(jobs) {
  const live = jobs.filter((job) => !ended(job));
  $("turns").hidden = !live.length;
  if (!live.length) { model.turns.value = null; return; }
  askTurns();
  const told = model.turns.value;
  if (!told) return;
  const inTurn = told.turns.filter((turn) => live.some((job) => job.job === turn.job));
  const rows = inTurn.slice(0, TURNS_SHOWN).map((turn, at) => turnRow(at + 1, model.jobs.get(turn.job), `${turn.tasks} ${turn.kind.toLowerCase()}${turn.tasks === 1 ? "" : "s"}`, turn.reason));
  const named = new Set(inTurn.map((turn) => turn.job));
  const rest = live.filter((job) => !named.has(job.job));
  rows.push(...rest.slice(0, TURNS_SHOWN).map((job) => turnRow("", job, "nothing", "all that could start of it runs already")));
  $("turns-hint").textContent = `The order in which slots that become free are given by policy ${model.master.policy}, and why; placement ${model.master.placement} then chooses the worker. `
    + (model.master.estimator === "tasks" ? "Work is counted in tasks and segments." : `Work is in seconds of a slot and of the network, as estimator ${model.master.estimator} sees it.`);
  fill($("turns-table").tBodies[0], rows);
  const more = Math.max(0, inTurn.length - TURNS_SHOWN) + Math.max(0, rest.length - TURNS_SHOWN) + told.omitted;
  $("turns-more").hidden = !more;
  $("turns-more").textContent = `${more} more are not shown.`;
}

function turnRow(place, job, starts, reason) {
  const held = [[job.maps.running, "map"], [job.reduces.running, "reduce"]].filter(([count]) => count)
    .map(([count, kind]) => `${count} ${kind}${count === 1 ? "" : "s"}`);
  const unit = model.master.estimator === "tasks" ? "" : " s";
  return [
    { text: place, kind: "number" }, { node: jobLink(job) }, { text: starts }, { text: held.join(", ") || "nothing" },
    { text: job.work ? job.work.left.map((left) => (left < 0.05 ? "0" : left.toFixed(1)) + unit).join(", ") : "" },
    { text: reason, kind: "why" },
  ];
}

async function askTurns() {
  const kept = model.turns;
  if (kept.asking || performance.now() - kept.at < kept.pause) return;
  kept.asking = true;
  kept.at = performance.now();
  try {
    kept.value = await (await ask("turns")).json();
  } catch (error) {
    if (error instanceof Locked) lock(error.message);
  }
  kept.pause = Math.max(TURNS_MS, 20 * (performance.now() - kept.at));
  kept.asking = false;
}

/** What keeps the master from its work, such as a journal that cannot be written; nothing where all is well. */
function drawTrouble() {
  const { trouble, policy_panics, policy_panic } = model.master;
  const said = [
    trouble && "The master accepts no jobs and launches no tasks for now: " + trouble,
    policy_panics && `The policy panicked ${policy_panics} times, and fifo stood in for it: ${policy_panic}`,
  ].filter(Boolean).join(". ");
  if ($("trouble").textContent !== said) $("trouble").textContent = said;
  $("trouble").hidden = !said;
}

const ended = (job) => job.ended_ns != null && job.state !== "publishing";
const WAITS = 1;
const rank = (job) => (ended(job) ? 2 : job.state === "waiting" ? WAITS : 0);
const flow = (job) => (job.ended_ns ?? clock()) - job.arrived_ns;

const jobLink = (job) => element("span", {}, element("span", { class: "swatch", style: { background: colour(job.job, 48) } }),
  element("a", { href: "#" + jobName(job.job) }, jobName(job.job)), " " + job.name);

/** How long a job will take from now on by the master's forecast, ns. */
function left(job) {
  return job.time_left_ns == null || ended(job) ? null : Math.max(0, job.now_ns + job.time_left_ns - clock());
}

/** Interval of that time, in parentheses. */
function interval(job) {
  const since = clock() - job.now_ns, ends = job.time_left_interval_ns;
  return ends ? ` (${ends.map((end) => seconds(Math.max(0, end - since))).join(" to ")})` : "";
}

/** Where it stands in line. */
function place(job) {
  if (ended(job) || !model.turns.value) return "";
  const inTurn = model.turns.value.turns.filter((turn) => model.jobs.has(turn.job) && !ended(model.jobs.get(turn.job)));
  const at = inTurn.findIndex((turn) => turn.job === job.job);
  return at < 0 ? "" : at ? `turn ${at + 1}` : "next";
}

function jobRow(job) {
  const name = jobLink(job);
  const fetched = job.segments_total ? Math.min(100, Math.round((100 * job.totals.shuffle_segments) / job.segments_total)) : 0;
  const rest = left(job), waits = liveWorkers().length ? place(job) : ended(job) ? "" : "no workers";
  const order = [waits, job.owner && "of " + job.owner, job.pool && "pool " + job.pool, job.priority && "priority " + job.priority,
    job.weight !== 1 && "weight " + job.weight, job.deadline_ns && deadline(job)].filter(Boolean);
  return [
    { node: name },
    { node: element("span", { class: "state " + job.state }, job.state) },
    { node: phase(job.maps.done, job.maps.running, job.maps.total, colour(job.job, 48)), by: job.maps.total },
    { text: job.reduces.total ? (job.shuffle_done_ns != null || ended(job) ? bytes(job.totals.shuffle_bytes) : fetched + " %, " + bytes(job.totals.shuffle_bytes)) : "", by: job.totals.shuffle_bytes },
    { node: phase(job.reduces.done, job.reduces.running, job.reduces.total, colour(job.job, 48)), by: job.reduces.total },
    { text: seconds(flow(job)), kind: "number", by: flow(job) },
    { text: rest == null ? "" : "~ " + seconds(rest), kind: "number", by: rest ?? -1 },
    { text: order.join(", ") },
    { text: timeOfDay(job.submitted_at), by: job.arrived_ns },
  ];
}

function deadline(job) {
  const left = job.deadline_ns - (job.ended_ns ?? clock());
  return left < 0 ? "deadline missed by " + seconds(-left) : seconds(left) + " to its deadline";
}

function workerRow(worker, received, sent) {
  const words = worker.away ? "away: its connection broke"
    : worker.disk_full ? "disk full: gets no new tasks" : "working";
  return [
    { text: "worker-" + worker.worker }, { text: worker.host },
    { node: phase(worker.running, 0, worker.slots), by: worker.running },
    { text: worker.processors.toFixed(2), kind: "number", by: worker.processors },
    { text: bytes(worker.memory_bytes) + " (" + bytes(worker.memory_budget_bytes) + " for pairs)", by: worker.memory_bytes },
    { text: bytes(worker.disk_free_bytes), kind: "number", by: worker.disk_free_bytes },
    { text: bytes(received.get(worker.worker) ?? 0) + "/s", kind: "number", by: received.get(worker.worker) ?? 0 },
    { text: bytes(sent.get(worker.worker) ?? 0) + "/s", kind: "number", by: sent.get(worker.worker) ?? 0 },
    { text: worker.speed === 1 ? "" : "× " + worker.speed, kind: "number", by: worker.speed },
    { node: element("span", { class: "state " + (worker.away || worker.disk_full ? "away" : "") }, words) },
  ];
}

// ---- the chart -------------------------------------------------------------------------------------------------

const ROW = 15, GAP = 3, AXIS = 20, WORKER_GAP = 5 + GAP;
const SPAN_MIN = 0.02;
const KINDS = { slot: "", map: "map", reduce: "reduce", queued: "queued", suspended: "suspended" };
let drawn = [];
/** Times that the chart shows, in nanoseconds, and their places in pixels. */
let range = { from: 0, until: 1, left: 0, right: 1 };

/**
 * Lays the attempts of a worker into rows: one for each slot, and one each for what is queued or suspended, if anything is.
 * A worker does not say which slot runs what, nor, until it ends, when an attempt that was queued ahead has begun. So each
 * goes into the first slot that was free when it began, and one that found none began when a slot became free, or waits
 * still.
 */
function lay({ attempts, counts }) {
  const { map, reduce } = counts.pools ?? { map: counts.unified, reduce: 0 };
  const row = (kind) => ({ kind, bars: [] });
  const rows = counts.pools ? [...Array(map).fill("map"), ...Array(reduce).fill("reduce")].map(row) : Array.from({ length: map }, () => row("slot"));
  const queued = row("queued"), suspended = row("suspended");
  const free = rows.map(() => -Infinity), late = [];
  const fits = (slot, attempt) => rows[slot].kind === "slot" || (rows[slot].kind === "reduce") === Boolean(attempt.kind);
  const put = (slot, attempt, from, until) => {
    free[slot] = until ?? Infinity;
    rows[slot].bars.push({ attempt, from, until });
  };
  for (const attempt of [...attempts].sort((a, b) => begin(a) - begin(b))) {
    const from = begin(attempt), { launched } = attempt;
    const until = attempt.suspended ?? (stopped(attempt) || null);
    if (attempt.suspended != null) suspended.bars.push({ attempt, from: attempt.suspended, until: null });
    if (!attempt.started && attempt.end === "returned") { queued.bars.push({ attempt, from: launched, until }); continue; }
    if (attempt.started && launched + QUEUED_MIN_NS < attempt.started) queued.bars.push({ attempt, from: launched, until: attempt.started });
    const slot = free.findIndex((end, slot) => end <= from + OVERLAP_NS && fits(slot, attempt));
    if (0 <= slot) put(slot, attempt, from, until); else if (attempt.suspended == null) late.push([attempt, from, until]);
  }
  for (const [attempt, from, until] of late) {
    let slot = -1;
    for (let at = 0; at < rows.length; at += 1) if (fits(at, attempt) && (slot < 0 || free[at] < free[slot])) slot = at;
    if (0 <= slot && free[slot] < Infinity) put(slot, attempt, Math.max(from, free[slot]), until);
    else queued.bars.push({ attempt, from, until });
  }
  for (const more of [queued, suspended]) if (more.bars.length) rows.push(more);
  for (const { bars } of rows) bars.sort((a, b) => a.from - b.from);
  return rows;
}

/** The workers with their rows and where those stand, from above. A worker out of sight is laid out when it comes into sight. */
function placed(from, to) {
  let top = 0;
  const all = [];
  for (const [id, lanes] of [...model.workers].sort((a, b) => a[0] - b[0])) {
    if (!lanes.live && !lanes.attempts.length) continue;
    const height = () => lanes.rows.length * (ROW + 1) + WORKER_GAP;
    if (!lanes.rows || (lanes.changed && top <= to && from <= top + height())) {
      lanes.rows = lay(lanes);
      lanes.changed = false;
    }
    all.push({ id, lanes, rows: lanes.rows, top, bottom: top + height() });
    top += height();
  }
  return { all, high: top };
}

function drawChart() {
  const canvas = $("slots"), chart = canvas.parentElement;
  const style = getComputedStyle(document.documentElement);
  const tint = (name) => style.getPropertyValue(name).trim();
  const scrolled = chart.scrollTop;
  const { all, high } = placed(scrolled, scrolled + chart.clientHeight);
  // The canvas is as high as its visible part, and stays in place; the space below it is the scrollable height.
  const wide = chart.clientWidth, whole = AXIS + high + 4;
  const seen = Math.min(whole, Math.round(0.6 * innerHeight));
  $("slots-room").style.height = whole - seen + "px";
  const dense = window.devicePixelRatio || 1;
  if (canvas.width !== Math.round(wide * dense) || canvas.height !== Math.round(seen * dense)) {
    canvas.width = Math.round(wide * dense); canvas.height = Math.round(seen * dense);
    canvas.style.height = seen + "px";
  }
  const side = wide < 520 ? 92 : 146;
  const pen = canvas.getContext("2d");
  pen.setTransform(dense, 0, 0, dense, 0, 0);
  pen.clearRect(0, 0, wide, seen);
  pen.font = "12px system-ui, sans-serif";
  const until = model.paused ?? clock(), from = until - model.span * 1e9;
  const x = (at) => side + ((at - from) / (until - from)) * (wide - side - 6);
  range = { from, until, left: side, right: wide - 6 };
  drawn = [];
  const shuffles = new Map();
  for (const fetch of model.fetches) {
    if (fetch.ended < from || until < fetch.started) continue;
    if (!shuffles.has(fetch.to)) shuffles.set(fetch.to, []);
    shuffles.get(fetch.to).push(fetch);
  }
  const inks = { ink: tint("--ink"), soft: tint("--soft"), bad: tint("--bad"), lane: tint("--lane"), panel: tint("--panel"), line: tint("--line") };
  const view = { pen, side, wide, from, until, x, inks };
  const { marks, step } = axisMarks(view);
  const named = (at) => (1e9 <= step ? seconds(at) : (at / 1e9).toFixed(step < 1e8 ? 2 : 1) + " s");
  pen.strokeStyle = inks.line; pen.lineWidth = 1;
  for (const at of marks) { pen.beginPath(); pen.moveTo(x(at), AXIS - 4); pen.lineTo(x(at), seen); pen.stroke(); }
  for (const worker of all) {
    const top = AXIS + worker.top - scrolled;
    if (AXIS + worker.bottom - scrolled < AXIS || seen < top) continue;
    drawWorker(view, worker, top, seen, shuffles.get(worker.id) ?? []);
  }
  // The axis covers the rows scrolled under it.
  pen.fillStyle = inks.panel;
  pen.fillRect(0, 0, wide, AXIS - 4);
  pen.fillStyle = inks.soft;
  for (const at of marks) if (0 <= at && x(at) < wide - 50) pen.fillText(at ? named(at) : "0", x(at) + 3, 12);
}

function drawWorker(view, { id, lanes, rows }, top, seen, fetches) {
  const { pen, side, wide, x, inks } = view;
  rows.forEach(({ kind, bars }, at) => {
    const y = top + at * (ROW + 1);
    if (y + ROW < AXIS || seen < y) return;
    if (at && rows[at - 1].kind !== kind && KINDS[kind]) {
      pen.fillStyle = inks.soft;
      pen.fillText(KINDS[kind], side - 8 - pen.measureText(KINDS[kind]).width, y + 12);
    } else if (!at && KINDS[kind] && 120 < side) {
      pen.fillStyle = inks.soft;
      pen.fillText(KINDS[kind], side - 8 - pen.measureText(KINDS[kind]).width, y + 12);
    }
    pen.fillStyle = inks.lane;
    pen.fillRect(side, y, wide - side - 6, ROW);
    drawBars(view, kind, bars, y);
  });
  pen.fillStyle = lanes.live ? inks.ink : inks.bad;
  pen.fillText("worker-" + id + (lanes.live ? "" : " †"), 8, top + 12);
  const line = top + rows.length * (ROW + 1) + 1;
  for (const fetch of fetches) {
    const left = Math.max(side, x(fetch.started));
    pen.fillStyle = colour(fetch.job, 48);
    pen.fillRect(left, line, Math.max(1.5, x(fetch.ended) - left), 3);
  }
}

/** The times that are marked, and the step between them. */
function axisMarks({ side, wide, from, until }) {
  const steps = [0.01, 0.02, 0.05, 0.1, 0.2, 0.5, 1, 2, 5, 10, 15, 30, 60, 120];
  const step = (steps.find((step) => model.span / step <= (wide - side) / 80) ?? 300) * 1e9;
  const marks = [];
  for (let at = Math.ceil(from / step) * step; at <= until; at += step) marks.push(at);
  return { marks, step };
}

function drawBars({ pen, side, from, until, x, inks }, kind, bars, y) {
  for (const one of bars) {
    const start = one.from, stop = one.until ?? (stopped(one.attempt) || until);
    if (stop < from || until < start) continue;
    const left = Math.max(side, x(start)), width = Math.max(1, x(Math.min(stop, until)) - left);
    bar(pen, one.attempt, kind, { left, y, width }, inks);
    drawn.push({ attempt: one.attempt, kind, left, y, right: left + Math.max(width, 3) });
  }
}

/** End of an attempt; without an end of its own, that of its job. */
const stopped = (attempt) => attempt.ended || model.jobs.get(attempt.job)?.ended_ns || 0;
const begin = (attempt) => attempt.started || attempt.launched;

function bar(pen, attempt, kind, { left, y, width }, inks) {
  const bad = attempt.end === "failed", gone = attempt.end === "lost" || attempt.end === "returned";
  const waits = kind === "queued" || kind === "suspended";
  pen.fillStyle = attempt.kind ? `hsl(${HUES[attempt.job % HUES.length]} 62% 30%)` : colour(attempt.job, 68);
  pen.globalAlpha = gone ? 0.25 : waits ? 0.4 : 1;
  if (kind === "queued") pen.fillRect(left, y + 5, width, ROW - 10); else pen.fillRect(left, y, width, ROW);
  pen.globalAlpha = 1;
  if (!waits && (bad || gone)) {
    pen.strokeStyle = bad ? inks.bad : inks.soft;
    pen.lineWidth = bad ? 2 : 1;
    pen.setLineDash(gone ? [3, 2] : []);
    pen.strokeRect(left + 1, y + 1, Math.max(1, width - 2), ROW - 2);
    pen.setLineDash([]);
  }
  if (model.chosen?.attempt === attempt && model.chosen.kind === kind) {
    pen.strokeStyle = inks.ink; pen.lineWidth = 2;
    pen.strokeRect(left + 1, y + 1, Math.max(2, width - 2), ROW - 2);
  }
  const name = taskName(attempt);
  if (!waits && !gone && name.length * 7 + 8 < width) {
    pen.fillStyle = attempt.kind ? "#fff" : "#1a1812";
    pen.fillText(name, left + 4, y + 11.5);
  }
}

/** Time at a place of the window in the chart, nanoseconds. */
function timeAt(clientX) {
  const { from, until, left, right } = range, px = clientX - $("slots").getBoundingClientRect().left;
  return from + Math.min(1, Math.max(0, (px - left) / (right - left))) * (until - from);
}

/** Shows the times between two, and stops the chart there. */
function zoom(from, until) {
  if (until - from < SPAN_MIN * 1e9) return;
  choose(Math.min((until - from) / 1e9, KEPT_SECONDS));
  pause(until);
}

/** Makes the chart show what is dragged over. */
function brush(down) {
  if (down.button) return;
  const chart = $("slots"), mark = $("brush"), box = chart.getBoundingClientRect();
  const pixel = (time) => range.left + ((time - range.from) / (range.until - range.from)) * (range.right - range.left);
  const ends = [timeAt(down.clientX), timeAt(down.clientX)];
  const move = (event) => {
    ends[1] = timeAt(event.clientX);
    const [from, until] = [Math.min(...ends), Math.max(...ends)].map(pixel);
    mark.hidden = until - from < 5;
    mark.style.left = from + "px";
    mark.style.width = until - from + "px";
    mark.style.height = box.height + "px";
  };
  const up = (event) => {
    chart.removeEventListener("pointermove", move);
    chart.removeEventListener("pointerup", up);
    chart.removeEventListener("pointercancel", up);
    if (!mark.hidden && event.type === "pointerup") zoom(Math.min(...ends), Math.max(...ends));
    mark.hidden = true;
  };
  chart.setPointerCapture(down.pointerId);
  chart.addEventListener("pointermove", move);
  chart.addEventListener("pointerup", up);
  chart.addEventListener("pointercancel", up);
}

async function hover(event) {
  const box = $("slots").getBoundingClientRect();
  const [px, py] = [event.clientX - box.left, event.clientY - box.top];
  const hit = drawn.findLast((one) => one.left <= px && px <= one.right && one.y <= py && py <= one.y + ROW);
  if (!hit || py < AXIS - 4) return hideTold();
  await tell(hit.attempt, event.clientX + 14, event.clientY + 14);
}

function hideTold() {
  $("hover").hidden = true;
  $("hover").dataset.key = "";
}

/** Shows what an attempt did and why it ran there and then, near a place of the window; gives it in words. */
async function tell(attempt, left, top) {
  const shown = $("hover");
  shown.hidden = false;
  shown.style.left = Math.max(4, Math.min(left, innerWidth - 440)) + "px";
  shown.style.top = Math.max(4, Math.min(top, innerHeight - 140)) + "px";
  const ran = seconds((stopped(attempt) || clock()) - begin(attempt));
  const facts = `${ENDS[attempt.end]}, ${ran} on worker-${attempt.worker}`;
  const title = `${jobName(attempt.job)} ${taskName(attempt)}` + (attempt.epoch ? `, try ${attempt.epoch + 1}` : "");
  if (shown.dataset.key === attempt.key + attempt.end) {
    shown.children[1].textContent = facts;
    return;
  }
  shown.dataset.key = attempt.key + attempt.end;
  shown.replaceChildren(element("b", {}, title), element("span", {}, facts), element("p", {}, "…"));
  const sentences = await reason(attempt).catch(() => []);
  // The sentences about a task start with its last attempt; earlier attempts have their own sentences.
  const name = `${jobName(attempt.job)}/${taskName(attempt)}.${attempt.epoch}`;
  const told = sentences.find((sentence) => sentence.replace("before that, ", "").startsWith(name + " ")) ?? "";
  if (shown.dataset.key === attempt.key + attempt.end) shown.lastChild.textContent = told;
  return `${title}: ${facts}. ${told}`;
}

/** Arrow keys go from bar to bar; where they stand is shown as under the mouse, and said by screen readers. */
async function step(key) {
  const { all } = placed(-Infinity, Infinity);
  const rows = all.flatMap((worker) => worker.rows.map((row, at) => ({ ...row, worker: worker.id, y: worker.top + at * (ROW + 1) })));
  const filled = rows.filter((row) => row.bars.length);
  if (!filled.length) { $("told").textContent = "No task has run yet."; return; }
  const now = model.chosen;
  let row = filled.findIndex((row) => now && row.kind === now.kind && row.bars.some((bar) => bar.attempt === now.attempt));
  let bars = filled[row]?.bars, at = bars ? bars.findIndex((bar) => bar.attempt === now.attempt) : 0;
  if (row < 0) {
    row = 0;
    at = filled[0].bars.length - 1;
  } else if (key === "ArrowLeft" || key === "ArrowRight") {
    at = Math.max(0, Math.min(at + (key === "ArrowLeft" ? -1 : 1), bars.length - 1));
  } else {
    const time = bars[at].from;
    row = Math.max(0, Math.min(row + (key === "ArrowUp" ? -1 : 1), filled.length - 1));
    // The last one that started before that time.
    at = Math.max(0, filled[row].bars.findLastIndex((bar) => bar.from <= time));
  }
  const { attempt, from } = filled[row].bars[at];
  model.chosen = { attempt, kind: filled[row].kind };
  const chart = $("slots").parentElement, y = filled[row].y;
  if (y < chart.scrollTop || chart.scrollTop + $("slots").clientHeight - AXIS < y + ROW) chart.scrollTop = Math.max(0, y - 60);
  const box = $("slots").getBoundingClientRect();
  const until = model.paused ?? clock(), share = Math.max(0.2, 1 - (until - from) / (model.span * 1e9));
  const said = await tell(attempt, box.left + share * box.width, box.top + AXIS + y - chart.scrollTop + ROW + 6);
  if (said && model.chosen.attempt === attempt) $("told").textContent = said;
}

async function reason(attempt) {
  const key = attempt.key + attempt.end;
  if (!model.reasons.has(key)) {
    if (2000 < model.reasons.size) model.reasons.clear();
    const answer = await ask(`jobs/${jobName(attempt.job)}/explain?task=${taskName(attempt)}`);
    model.reasons.set(key, (await answer.json()).sentences);
  }
  return model.reasons.get(key);
}

// ---- one job ---------------------------------------------------------------------------------------------------

/** A text of others, with what is not seen or turns the direction of writing as `\\u` and four digits, as everywhere else. */
const visible = (text) => text.replace(/[\p{Cc}\p{Bidi_Control}\u2028\u2029\u00ad\u180e\u200b\u2060-\u2064\ufeff\ufff9-\ufffb\u115f\u1160\u3164\uffa0]/gu,
  (unseen) => unseen === "\n" || unseen === "\t" ? unseen : "\\u" + unseen.codePointAt(0).toString(16).padStart(4, "0"));

/** Nothing of the job that was shown before stands under the title of another. */
function clearJob() {
  $("job-parameters").textContent = $("logs-text").textContent = $("job-state").textContent = "";
  $("job-tiles").replaceChildren();
  list($("job-why"), []);
  $("cancel").hidden = $("cancel-hint").hidden = true;
  $("cancel-said").textContent = "";
  $("cancel-dialog").close();
  fill($("tasks-table").tBodies[0], []);
  $("tasks-durations").textContent = "";
  $("job-failure").hidden = true;
  $("path").hidden = $("skew").hidden = $("logs").hidden = $("counters").hidden = $("tasks-more").hidden = true;
  for (const kept of model.traces.keys()) if (kept !== shownJob()) model.traces.delete(kept);
}

async function drawJob(id) {
  // A job that the master has forgotten may be in its archive.
  const job = model.jobs.get(id) ?? (await traceOf({ job: id, state: "succeeded", ended_ns: 0 }))?.status;
  if (shownJob() !== id) return;
  $("job-title").textContent = jobName(id) + (job ? " " + job.name : "");
  if (!job) { $("job-state").textContent = "not known to this master, or ended long ago"; return; }
  $("job-state").replaceChildren(element("span", { class: "state " + job.state }, job.state));
  drawCancelling(job);
  $("job-failure").hidden = !job.failure;
  $("job-failure").textContent = job.failure ? visible(job.failure.message) : "";
  $("job-parameters").textContent = visible(JSON.stringify(job.parameters));
  const span = (from, to) => (to == null ? "…" : seconds(to - from));
  const rest = left(job);
  tiles($("job-tiles"), [
    ["flow time" + (rest == null ? "" : `, about ${seconds(rest)} left${interval(job)}`), seconds(flow(job))],
    ["maps done" + (job.maps.running ? `, ${job.maps.running} run` : ""), `${job.maps.done} of ${job.maps.total}`],
    ["until all maps were done", span(job.arrived_ns, job.maps_done_ns)],
    ["between workers", bytes(job.totals.shuffle_bytes)],
    ["reduces done" + (job.reduces.running ? `, ${job.reduces.running} run` : ""), job.reduces.total ? `${job.reduces.done} of ${job.reduces.total}` : "none"],
    ["records out", job.totals.records_out.toLocaleString("en")],
    ["submitted", timeOfDay(job.submitted_at)], ["started", timeOfDay(job.started_at)], ["ended", timeOfDay(job.ended_at)],
  ]);
  const counters = Object.entries(job.counters);
  $("counters").hidden = !counters.length;
  fill($("counters-table").tBodies[0], counters.map(([name, count]) => [{ text: name }, { text: count.toLocaleString("en"), kind: "number" }]));
  const trace = await traceOf(job);
  if (shownJob() !== id || !trace) return;
  list($("job-why"), [...trace.why, ...counted(job.incidents)]);
  drawDurations(trace);
  drawTasks(job, trace);
  drawPath(trace.path);
  const read = trace.attempts.filter((one) => one.attempt.task.kind === "Reduce" && one.end === "succeeded" && one.report);
  const most = Math.max(1, ...read.map((one) => one.report.bytes_in));
  read.sort((a, b) => b.report.bytes_in - a.report.bytes_in);
  $("skew").hidden = read.length < 2;
  $("skew-bars").replaceChildren(...read.slice(0, 64).map((one) => element("li", {}, "reduce-" + one.attempt.task.index,
    element("i", { style: { width: (100 * one.report.bytes_in) / most + "%" } }), bytes(one.report.bytes_in))));
  const logs = trace.logs.map((entry) => `${entry.attempt ? attemptName(entry.attempt) + " on " : ""}worker-${entry.worker}: ${visible(entry.text)}`).join("\n");
  $("logs").hidden = !logs;
  if ($("logs-text").textContent !== logs) $("logs-text").textContent = logs;
}

/** Returns equal sentences once, with their number. */
function counted(sentences) {
  const counts = new Map();
  for (const sentence of sentences) counts.set(sentence, (counts.get(sentence) ?? 0) + 1);
  return [...counts].map(([sentence, count]) => (count === 1 ? sentence : `${count} times: ${sentence}`));
}

/** Shows the durations of tasks that have succeeded. */
function drawDurations(trace) {
  const words = ["Map", "Reduce"].flatMap((kind) => {
    const took = trace.attempts.filter((one) => one.attempt.task.kind === kind && one.end === "succeeded")
      .map((one) => one.ended_ns - (one.started_ns ?? one.launched_ns)).sort((a, b) => a - b);
    const quantile = (share) => seconds(took[Math.ceil(share * took.length) - 1]);
    return took.length < 2 ? [] : `${kind}s ran ${quantile(0.5)} in the median, ${quantile(0.95)} at the 95th percentile, ${quantile(1)} at most.`;
  });
  $("tasks-durations").textContent = words.join(" ");
}

/** By the name of the page's token, for what is shown alone: what is asked for the master's gate judges. */
const mayCancel = (job) => {
  // ROLE[-LABEL]@GENERATION, or ROLE@ASKER@GENERATION of a page that another token requested.
  const [own, asker, page] = (sessionStorage.getItem(TOKEN) ?? "").split(":")[0].split("@");
  const owner = page ? asker : own;
  return /^(submit|admin)(-|$)/.test(own) && (/^admin(-|$)/.test(owner) || owner === job?.owner);
};

function drawCancelling(job) {
  const over = ended(job), may = mayCancel(job), said = $("cancel-said");
  // Closing the dialog returns the focus to the button, which must exist until then.
  if (over) $("cancel-dialog").close();
  if (over && document.activeElement === $("cancel")) $("job-title").focus();
  $("cancel").hidden = over || !may;
  $("cancel-hint").hidden = over || may;
  if (!over) return;
  const words = `${jobName(job.job)}: ${job.state}`;
  if (said.textContent && said.textContent !== words) said.textContent = words;
}

/** Asks whether the job that is shown is meant; the safe answer has the focus. */
function askToCancel() {
  const id = shownJob(), job = model.jobs.get(id);
  if (!job) return;
  const running = job.maps.running + job.reduces.running;
  $("cancel-dialog").dataset.job = String(id);
  $("cancel-title").textContent = `Cancel ${jobName(id)} ${job.name}?`;
  $("cancel-words").textContent = `${running} of its tasks ${running === 1 ? "runs" : "run"} now. The job ends without output; that cannot be taken back.`;
  $("cancel-dialog").showModal();
}

async function cancelJob() {
  const name = jobName(Number($("cancel-dialog").dataset.job)), said = $("cancel-said");
  $("cancel-dialog").close();
  said.textContent = `${name} is being cancelled`;
  try {
    await ask(`jobs/${name}/cancel`, "POST");
  } catch (error) {
    if (error instanceof Locked) lock(error.message);
    said.textContent = `${name} was not cancelled: ${error.message}`;
  }
}

function drawPath(steps) {
  const whole = Math.max(1, steps.at(-1)?.until_ns ?? 0);
  $("path").hidden = !steps.length;
  const words = JSON.stringify(steps);
  if ($("path-bars").dataset.words === words) return;
  $("path-bars").dataset.words = words;
  $("path-bars").replaceChildren(...steps.map(({ from_ns, until_ns, what }) => element("li", {}, element("span", {}, what),
    element("i", { class: /^(map|reduce)-\d+(, try \d+)? on /.test(what) ? "ran" : "", style: { "margin-left": (100 * from_ns) / whole + "%", width: (100 * (until_ns - from_ns)) / whole + "%" } }),
    element("b", {}, seconds(until_ns - from_ns)))));
}

function list(target, sentences) {
  const words = sentences.join("\n");
  if (target.dataset.words === words) return;
  target.dataset.words = words;
  target.replaceChildren(...sentences.map((sentence) => element("li", {}, sentence)));
}

/** Facts of a job that are fetched only while its details are open, every two seconds until it ends. */
async function traceOf(job) {
  const kept = model.traces.get(job.job);
  if (kept && (kept.asking || kept.final || performance.now() - kept.at < kept.pause)) return kept.value;
  const entry = { asking: true, value: kept?.value, at: performance.now(), pause: 2000, final: ended(job) };
  model.traces.set(job.job, entry);
  try {
    const name = jobName(job.job);
    const [trace, why, logs] = await Promise.all(["trace", "explain", "logs"].map(async (what) => (await ask(`jobs/${name}/${what}`)).json()));
    entry.value = { status: trace.status, attempts: trace.attempts, omitted: trace.omitted, path: trace.path ?? [], why: why.sentences, logs };
  } catch (error) {
    if (error instanceof Locked) lock(error.message);
    entry.final = false;
  }
  // A job with very many tasks is polled at longer intervals.
  entry.pause = Math.max(2000, 10 * (performance.now() - entry.at));
  entry.asking = false;
  return entry.value;
}

const taskOf = ({ task }) => `${task.kind.toLowerCase()}-${task.index}`;
const attemptName = (attempt) => taskOf(attempt) + (attempt.epoch ? `, try ${attempt.epoch + 1}` : "");

/** Details of a task, with what its code wrote, below its attempt. */
async function explainTask(event) {
  const task = event.target.dataset?.task, told = event.target.lastElementChild;
  if (!task || !event.target.open || told.childElementCount) return;
  const answer = await ask(`jobs/${jobName(shownJob())}/explain?task=${task}`).catch(() => null);
  const sentences = answer ? (await answer.json()).sentences : ["the master did not say"];
  const logs = (model.traces.get(shownJob())?.value?.logs ?? []).filter((entry) => entry.attempt && taskOf(entry.attempt) === task);
  told.replaceChildren(...sentences.map((sentence) => element("li", {}, sentence)), ...logs.map((entry) => element("li", {}, element("pre", {}, visible(entry.text)))));
}

function endOf(record) {
  if (typeof record.end === "string") return { kind: record.suspended ? "suspended" : record.end, words: "" };
  const [kind, detail] = Object.entries(record.end)[0];
  return { kind, words: detail?.message ?? "" };
}

function drawTasks(job, trace) {
  const chosen = $("task-filter").value;
  let rows = trace.attempts;
  if (chosen === "map") rows = rows.filter((one) => one.attempt.task.kind === "Map");
  if (chosen === "reduce") rows = rows.filter((one) => one.attempt.task.kind === "Reduce");
  if (chosen === "bad") rows = rows.filter((one) => ["failed", "lost", "returned"].includes(endOf(one).kind));
  const ran = (one) => (one.ended_ns ?? clock()) - (one.started_ns ?? one.launched_ns);
  if (chosen === "slow") rows = [...rows].sort((a, b) => ran(b) - ran(a));
  fillSorted($("tasks-table").tBodies[0], rows, (one) => {
    const end = endOf(one);
    return [
      { text: attemptName(one.attempt) },
      { text: "worker-" + one.worker },
      { text: seconds(one.launched_ns - job.arrived_ns), kind: "number", by: one.launched_ns },
      { text: seconds(ran(one)), kind: "number", by: ran(one) },
      { node: element("span", { class: "state " + (end.kind === "failed" ? "bad" : end.kind) }, ENDS[end.kind] ?? end.kind) },
      { node: element("details", { "data-task": taskOf(one.attempt) }, element("summary", {}, end.words || one.reason), element("ul")), kind: "why" },
    ];
  });
  const more = rows.length - Math.min(rows.length, ROWS_MAX) + trace.omitted;
  $("tasks-more").hidden = !more;
  $("tasks-more").textContent = `${more} more are not shown; \`gristmill job explain ${jobName(job.job)}\` tells of each.`;
}

// ---- all together ----------------------------------------------------------------------------------------------

function shownJob() {
  const found = /^#job-(\d+)$/.exec(location.hash);
  return found ? Number(found[1]) : null;
}

let last = -Infinity, tables = -Infinity;

function frame(now) {
  requestAnimationFrame(frame);
  if (!model.master || now - last < FRAME_MS || $("notice").hidden === false) return;
  last = now;
  const id = shownJob();
  $("cluster").hidden = id != null;
  $("job").hidden = id == null;
  if (id == null) drawChart();
  if (now - tables < 250) return;
  tables = now;
  drawTrouble();
  if (id == null) drawCluster(); else drawJob(id).catch((error) => { $("job-state").textContent = String(error.message ?? error); });
}

function choose(span) {
  model.span = span;
  for (const button of document.querySelectorAll("[data-span]")) {
    button.setAttribute("aria-pressed", String(Number(button.dataset.span) === span));
  }
}

/** Stops the chart at a time, or lets it go on. */
function pause(at) {
  model.paused = at;
  $("pause").setAttribute("aria-pressed", String(model.paused != null));
}

for (const button of document.querySelectorAll("[data-span]")) {
  button.addEventListener("click", () => choose(Number(button.dataset.span)));
}
const togglePause = () => pause(model.paused == null ? clock() : null);
$("pause").addEventListener("click", togglePause);
$("slots").addEventListener("pointerdown", brush);
$("slots").addEventListener("pointermove", hover);
$("slots").addEventListener("pointerleave", hideTold);
$("slots").addEventListener("blur", () => { model.chosen = null; hideTold(); });
$("slots").addEventListener("keydown", (event) => {
  const { until } = range;
  if (event.key === " ") togglePause();
  else if (event.key === "+") zoom(until - model.span * 5e8, until);
  else if (event.key === "-") zoom(until - model.span * 2e9, until);
  else if (event.key === "Escape") { model.chosen = null; hideTold(); }
  else if (event.key.startsWith("Arrow")) step(event.key);
  else return;
  event.preventDefault();
});
for (const name of ["jobs-table", "workers-table", "tasks-table"]) sortable($(name));
$("jobs-search").addEventListener("input", () => { tables = -Infinity; });
$("tasks-table").addEventListener("toggle", explainTask, true);
$("cancel").addEventListener("click", askToCancel);
$("cancel-no").addEventListener("click", () => $("cancel-dialog").close());
$("cancel-yes").addEventListener("click", cancelJob);
addEventListener("hashchange", () => {
  // A link opened in a tab that already shows the page.
  if (location.hash.startsWith("#enter=")) return location.reload();
  tables = last = -Infinity;
  const id = shownJob();
  document.title = id == null ? "Gristmill" : jobName(id) + " · Gristmill";
  clearJob();
  if (id != null) { $("job").hidden = false; $("job-title").focus(); }
});
document.querySelector(".skip").addEventListener("click", (event) => {
  event.preventDefault();
  (shownJob() == null ? $("jobs-title") : $("job-title")).focus();
});
choose(model.span);

try {
  if (await enter()) { requestAnimationFrame(frame); await follow(); } else {
    lock("This page shows a running master. Run `gristmill cluster page` next to it, and open the link that it prints.");
  }
} catch (error) {
  lock(error instanceof Locked ? error.message : "The master does not answer.");
}
