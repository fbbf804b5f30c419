"use strict";
const $ = (id) => document.getElementById(id);
const HUES = [210, 28, 145, 330, 265, 90, 180, 5, 50, 300, 120, 235];
const dark = matchMedia("(prefers-color-scheme: dark)");
// Lightness says the kind of task, hue the job; beyond the hues saturation changes, so that neighbours differ.
const colour = (job, map) => {
  const light = map ? (dark.matches ? 42 : 72) : (dark.matches ? 64 : 44);
  return `hsl(${HUES[job % HUES.length]} ${Math.floor(job / HUES.length) % 2 ? 28 : 62}% ${light}%)`;
};
const variable = (name) => getComputedStyle(document.documentElement).getPropertyValue(name).trim();
const sum = (numbers) => numbers.reduce((total, number) => total + number, 0);
const job = (arrival, maps, each, shuffle = 0, reduces = 0, eachReduce = 0) => ({ arrival, maps, each, shuffle, reduces, eachReduce });
const several = (count, make) => Array.from({ length: count }, (_, place) => make(place));

// Scenarios to start with. Sizes of the papers' examples are those of their text.
const PRESETS = [
  { name: "Short jobs behind a long one", about: "Two long jobs and six short ones: who waits for whom?", workers: 2, slots: 2, speed: 1, network: 50, estimator: "oracle", policies: ["fifo", "gristmill"],
    jobs: [job(0, 12, 2, 120, 2, 3), job(1, 10, 2, 60, 2, 2), ...several(6, (n) => job(2 + 2 * n, 2, 0.6, 6, 1, 0.4))] },
  { name: "Overlap paper: pairs of phases", about: "Jobs that are long at the maps and jobs that are long at the shuffle: together they use both.", workers: 2, slots: 1, speed: 1, network: 10, estimator: "oracle", policies: ["fifo", "max-srpt"],
    jobs: [job(0, 4, 2, 20, 2, 0.1), job(0, 2, 0.5, 80, 2, 0.1), job(0, 4, 1.5, 10, 2, 0.1), job(0, 2, 0.5, 60, 2, 0.1)] },
  { name: "Pairs paper: strong pairs", about: "Each job with much shuffle has a partner with as many maps: MaxDiff and Pairwise look for them.", workers: 2, slots: 1, speed: 1, network: 10, estimator: "oracle", policies: ["max-diff", "pair"],
    jobs: [job(0, 2, 3, 20, 2, 0.1), job(0, 2, 1, 60, 2, 0.1), job(0, 2, 2, 20, 2, 0.1), job(0, 2, 1, 40, 2, 0.1)] },
  { name: "Deadlines paper: slots by need", about: "Jobs with deadlines get as many slots as they need, and no more under min-scheduler.", workers: 4, slots: 2, speed: 1, network: 0, estimator: "oracle", policies: ["min-scheduler", "max-scheduler"],
    jobs: [{ ...job(0, 16, 2, 0, 2, 2), deadline: 20 }, { ...job(1, 12, 1, 0, 2, 1), deadline: 12 }, { ...job(4, 8, 1, 0, 1, 1), deadline: 16 }] },
  { name: "Stragglers: one slow worker", about: "The last worker has a fifth of the speed. A backup of its tasks runs elsewhere.", workers: 4, slots: 2, speed: 0.2, network: 0, estimator: "tasks", policies: ["fair", "fair+backup"],
    jobs: [job(0, 16, 2, 0, 2, 1), job(3, 8, 1, 0, 1, 1)] },
  { name: "Divided tasks", about: "A long map makes everyone wait, unless an idle slot takes half of what it has left.", workers: 2, slots: 2, speed: 1, network: 0, estimator: "oracle", policies: ["gristmill", "gristmill+divide"],
    jobs: [job(0, 3, 9, 0, 1, 4), job(2, 2, 0.8, 0, 1, 0.5), job(4, 2, 0.8, 0, 1, 0.5)] },
  { name: "ASRPT: a refuted theorem", about: "Theorem 4 promises at most twice the optimum. Beside a huge job each small job takes 21 slots under ASRPT and 2 under fair.", workers: 2, slots: 1, speed: 1, network: 0, estimator: "oracle", policies: ["asrpt:slot=1s", "fair"],
    jobs: [job(0, 400, 1, 0, 1, 1), ...several(10, (n) => job(10 + 20 * n, 1, 1, 0, 1, 1))] },
];

let wasm;
let scenario;
let runs = [];
let clock = 0;
let playing = false;
let described = 0;

const copy = (value) => JSON.parse(JSON.stringify(value));

function called(name, text) {
  if (text !== undefined) {
    const bytes = new TextEncoder().encode(text);
    new Uint8Array(wasm.memory.buffer, wasm.room(bytes.length), bytes.length).set(bytes);
  }
  const at = wasm[name]();
  return JSON.parse(new TextDecoder().decode(new Uint8Array(wasm.memory.buffer, at, wasm.length())));
}

/** The scenario for one policy, as the program wants it. */
function asked(policy) {
  const { workers, slots, speed, network, estimator, jobs } = scenario;
  const order = jobs.map((_, place) => place).sort((one, two) => jobs[one].arrival - jobs[two].arrival || one - two);
  const lengths = (count, each) => (Array.isArray(each) ? each : Array(Math.round(count)).fill(each));
  const request = {
    workers: several(workers, (place) => ({ slots, speed: place === workers - 1 ? speed : 1 })),
    network: network ? network * 1e6 : null, policy, estimator,
    jobs: order.map((place) => {
      const { arrival, maps, each, shuffle, reduces, eachReduce, deadline } = jobs[place];
      return { arrival, maps: lengths(maps, each), reduces: lengths(reduces, eachReduce), shuffle: reduces ? shuffle * 1e6 : 0, deadline: deadline ?? null };
    }),
  };
  return { request, order };
}

function simulate() {
  const message = $("message");
  message.hidden = true;
  runs = scenario.policies.map((policy) => {
    const { request, order } = asked(policy);
    const found = called("simulate", JSON.stringify(request));
    if (found.error) {
      message.textContent = `${policy}: ${found.error}`;
      message.hidden = false;
      return { policy, order, request, jobs: [], tasks: [], transfers: [], decisions: [], flow: NaN, end: 0 };
    }
    const flow = sum(found.jobs.map((job, place) => job.end - request.jobs[place].arrival)) / found.jobs.length;
    return { policy, order, request, ...found, flow, end: Math.max(...found.jobs.map((job) => job.end)) };
  });
  window.runs = runs;
  showRuns();
  drawArrivals();
  go(Math.min(clock, lastEnd()));
}

const lastEnd = () => Math.max(1e-9, ...runs.map((run) => run.end));
const seconds = (number) => `${number >= 100 ? number.toFixed(0) : number.toFixed(2)} s`;

function element(tag, attributes = {}, ...children) {
  const made = Object.assign(document.createElement(tag), attributes);
  made.append(...children);
  return made;
}

function swatch(place, map = false) {
  const made = element("span", { className: "swatch" });
  made.style.background = colour(place, map);
  return made;
}

/** Cards of both runs; their charts are drawn once and revealed by the clock. */
function showRuns() {
  const best = Math.min(...runs.map((run) => run.flow));
  $("runs").replaceChildren(...runs.map((run, place) => {
    const choice = element("select", { ariaLabel: `Policy ${place + 1}` });
    for (const known of catalogue) choice.append(element("option", { value: known.name, textContent: known.name, title: known.summary }));
    const base = run.policy.split(/[:+]/)[0];
    choice.value = base;
    const details = element("input", { value: run.policy.slice(base.length), placeholder: ":parameter=value+backup", ariaLabel: "Parameters and mechanisms", size: 22 });
    const change = () => { scenario.policies[place] = choice.value + details.value.trim(); changed(); };
    choice.onchange = () => { details.value = ""; change(); };
    details.onchange = change;
    const parameters = catalogue.find((known) => known.name === base)?.parameters ?? [];
    details.title = [...parameters.map(([name, value, meaning]) => `:${name}=${value}  ${meaning}`), "+divide  idle slots take half of a running task", "+backup  slow tasks get a second attempt", "+clone  so does each task of a small job"].join("\n");
    const flow = element("span", { textContent: Number.isFinite(run.flow) ? `mean flow time ${seconds(run.flow)}` : "", className: run.flow === best && runs.length > 1 && runs.some((other) => other.flow !== best) ? "better" : "" });
    run.canvas = element("canvas");
    run.canvas.setAttribute("role", "img");
    run.canvas.setAttribute("aria-label", `Schedule under ${run.policy}: mean flow time ${seconds(run.flow)}`);
    run.canvas.onpointerdown = (event) => { playing = false; go((event.offsetX - LABEL) / (run.canvas.clientWidth - LABEL) * lastEnd()); };
    run.decision = element("div", { className: "decision" });
    const card = element("section", { className: "run" }, element("header", {}, element("b", { textContent: run.policy }), flow, choice, details, element("span", { textContent: `${run.decisions.length} decisions, ends at ${seconds(run.end)}` })), element("div", { className: "inside" }, run.canvas, run.decision));
    return card;
  }));
  runs.forEach(prepare);
}

const LABEL = 34;
// Height of a slot: more where there are few.
const lane = (slots) => Math.max(16, Math.min(38, Math.floor(200 / slots)));

/** Draws the whole schedule of a run twice: as it is, and pale for what is still to come. */
function prepare(run) {
  const { workers } = run.request;
  const slots = workers[0].slots;
  const LANE = lane(workers.length * slots);
  const height = workers.length * (slots * LANE + 10) + 20;
  const width = Math.max(200, run.canvas.clientWidth || 600);
  const ratio = devicePixelRatio || 1;
  run.canvas.style.height = `${height}px`;
  [run.canvas.width, run.canvas.height] = [width * ratio, height * ratio];
  const scale = (width - LABEL) / lastEnd();
  const x = (time) => LABEL + time * scale;
  const y = (worker, slot) => worker * (slots * LANE + 10) + slot * LANE + 2;
  const paint = (alpha) => {
    const layer = new OffscreenCanvas(run.canvas.width, run.canvas.height);
    const pen = layer.getContext("2d");
    pen.scale(ratio, ratio);
    pen.globalAlpha = alpha;
    pen.font = "11px system-ui";
    for (const task of run.tasks) {
      const place = run.order[task.job];
      const [left, top, wide] = [x(task.from), y(task.worker, task.slot), Math.max(0.7, (task.to - task.from) * scale - 0.7)];
      pen.fillStyle = colour(place, task.map);
      if (task.ended) pen.fillRect(left, top, wide, LANE - 3);
      else {
        pen.globalAlpha = alpha * 0.35;
        pen.fillRect(left, top, wide, LANE - 3);
        pen.globalAlpha = alpha;
        pen.strokeStyle = colour(place, false);
        pen.setLineDash([3, 2]);
        pen.strokeRect(left + 0.5, top + 0.5, Math.max(0.5, wide - 1), LANE - 4);
        pen.setLineDash([]);
      }
      const label = `${place + 1}${task.map ? "m" : "r"}${task.index}`;
      if (30 < wide) { pen.fillStyle = task.map === dark.matches ? "#ffffff" : "#1c1a15"; pen.fillText(label, left + 4, top + LANE / 2 + 3); }
    }
    for (const transfer of run.transfers) {
      pen.fillStyle = colour(run.order[transfer.job], false);
      pen.fillRect(x(transfer.from), transfer.to_worker * (slots * LANE + 10) + slots * LANE + 2, Math.max(0.7, (transfer.to - transfer.from) * scale), 4);
    }
    return layer;
  };
  [run.past, run.future] = [paint(1), paint(0.28)];
  Object.assign(run, { x, width, height, ratio, slots, lane: LANE });
}

function draw() {
  const [ink, line, accent, soft] = ["--ink", "--line", "--accent", "--soft"].map(variable);
  for (const run of runs) {
    if (!run.past) continue;
    const pen = run.canvas.getContext("2d");
    const now = Math.min(run.x(clock), run.width) * run.ratio;
    pen.setTransform(1, 0, 0, 1, 0, 0);
    pen.clearRect(0, 0, run.canvas.width, run.canvas.height);
    if (0 < now) pen.drawImage(run.past, 0, 0, now, run.canvas.height, 0, 0, now, run.canvas.height);
    if (now < run.canvas.width) pen.drawImage(run.future, now, 0, run.canvas.width - now, run.canvas.height, now, 0, run.canvas.width - now, run.canvas.height);
    pen.scale(run.ratio, run.ratio);
    pen.font = "11px system-ui";
    pen.fillStyle = soft;
    run.request.workers.forEach((_, worker) => {
      const top = worker * (run.slots * run.lane + 10);
      pen.fillText(`w${worker}`, 6, top + 14);
      pen.fillStyle = line;
      pen.fillRect(0, top + run.slots * run.lane + 7, run.width, 1);
      pen.fillStyle = soft;
    });
    const step = tick(lastEnd());
    for (let at = 0; at <= lastEnd(); at += step) pen.fillText(`${+at.toPrecision(4)}`, run.x(at), run.height - 5);
    pen.fillStyle = accent;
    pen.fillRect(run.x(clock) - 1, 0, 2, run.height - 16);
    pen.fillStyle = ink;
  }
}

function tick(end) {
  const rough = end / 10;
  const power = 10 ** Math.floor(Math.log10(rough));
  return power * [1, 2, 5, 10].find((factor) => rough <= factor * power);
}

// Finding what the other policy does simulates the run again, up to this many tasks.
const COMPARED_TASKS_MAX = 2000;

/** Orders of another policy at decisions that were looked at. */
const others = new WeakMap();

/** Orders that the other policy gives at a decision, in the state that this run has led to. */
function elsewhere(run, decision, other) {
  const policy = other.policy.split("+")[0];
  if (others.get(decision)?.policy !== policy) {
    const found = called("simulate", JSON.stringify({ ...run.request, takeover: { at: decision.at, policy } }));
    const orders = found.decisions?.find(({ at }) => Math.abs(at - decision.at) < 1e-9)?.orders ?? [];
    others.set(decision, { policy, orders });
  }
  const given = others.get(decision).orders;
  const said = ({ kind, job, map, index, worker }) => `${kind} ${map ? "map" : "reduce"} ${index} of job ${run.order[job] + 1} on worker ${worker}`;
  const [ours, theirs] = [decision.orders, given].map((orders) => orders.map(said));
  const same = ours.length === theirs.length && ours.every((order) => theirs.includes(order));
  if (same) return [element("p", { className: "other", textContent: `Here ${policy} would give the same orders.` })];
  const list = element("ul", {}, ...theirs.slice(0, 12).map((order, place) => element("li", {}, swatch(run.order[given[place].job], given[place].map), order)));
  return [element("p", { className: "other", textContent: theirs.length ? `Here ${policy} would give these orders:` : `Here ${policy} would give no order.` }), list];
}

/** The last decision at or before the clock, and the jobs that are there. */
function describe(run) {
  const place = run.decisions.findLastIndex((decision) => decision.at <= clock + 1e-9);
  if (run.shown === place && run.shownClock === clock && run.shownPlaying === playing) return;
  [run.shown, run.shownClock, run.shownPlaying] = [place, clock, playing];
  const decision = run.decisions[place];
  const parts = [];
  if (decision) {
    parts.push(element("h2", { textContent: `Decision ${place + 1} of ${run.decisions.length}, at ${seconds(decision.at)}` }));
    const named = (text) => text.replace(/job (\d+)/g, (_, number) => `job ${run.order[number] + 1}`);
    const because = decision.because.map(named);
    if (because.length) parts.push(element("p", { textContent: `${because.slice(0, 3).join("; ")}${because.length > 3 ? `; and ${because.length - 3} more` : ""}` }));
    parts.push(element("ul", {}, ...decision.orders.slice(0, 12).map((order) => {
      const kind = order.map ? "map" : "reduce";
      return element("li", {}, swatch(run.order[order.job], order.map), `${order.kind} ${kind} ${order.index} of job ${run.order[order.job] + 1} on worker ${order.worker}`, element("span", { className: "why", textContent: `: ${order.why}` }));
    })));
    if (decision.orders.length > 12) parts.push(element("p", { textContent: `and ${decision.orders.length - 12} more` }));
    const other = runs.find((one) => one !== run && one.policy !== run.policy && one.jobs.length);
    if (other && !playing && run.tasks.length <= COMPARED_TASKS_MAX) parts.push(...elsewhere(run, decision, other));
  }
  const present = run.jobs.map((ended, seq) => ({ seq, ended })).filter(({ seq, ended }) => run.request.jobs[seq].arrival <= clock && clock < ended.end);
  parts.push(element("h2", { textContent: `Jobs in the cluster: ${present.length}` }));
  const counts = new Map(present.map(({ seq }) => [seq, { done: 0, running: 0 }]));
  for (const task of run.tasks) {
    const count = counts.get(task.job);
    if (!count || clock < task.from) continue;
    if (task.to <= clock) count.done += task.ended ? 1 : 0;
    else count.running += 1;
  }
  for (const { seq } of present.slice(0, 12)) {
    const { maps, reduces, arrival } = run.request.jobs[seq];
    const { done, running } = counts.get(seq);
    const bar = element("u");
    bar.style.width = `${Math.min(100, 100 * done / Math.max(1, maps.length + reduces.length))}%`;
    bar.style.background = colour(run.order[seq], false);
    parts.push(element("div", { className: "progress", title: `arrived at ${seconds(arrival)}, ${done} of ${maps.length + reduces.length} tasks ended, ${running} running` },
      element("span", {}, swatch(run.order[seq]), `job ${run.order[seq] + 1}`), element("i", {}, bar), element("span", { className: "why", textContent: running ? `${running} run` : "waits" })));
  }
  if (present.length > 12) parts.push(element("p", { textContent: `and ${present.length - 12} more` }));
  run.decision.replaceChildren(...parts);
}

function go(time) {
  clock = Math.max(0, Math.min(time, lastEnd()));
  $("when").value = 1000 * clock / lastEnd();
  $("clock").textContent = seconds(clock);
  draw();
  // Text that changes with every frame cannot be read.
  if (playing && performance.now() < described + 150) return;
  described = performance.now();
  runs.forEach(describe);
}

const moments = () => [...new Set(runs.flatMap((run) => run.decisions.map((decision) => decision.at)))].sort((one, two) => one - two);

function step(where) {
  playing = false;
  const times = moments();
  if (where === "start") go(0);
  if (where === "end") go(lastEnd());
  if (where === "forward") go(times.find((time) => clock + 1e-9 < time) ?? lastEnd());
  if (where === "back") go(times.findLast((time) => time < clock - 1e-9) ?? 0);
}

let before = 0;
let frames = 0;
function frame(now) {
  $("play").textContent = playing ? "Pause" : "Play";
  if (!playing) return;
  frames += 1;
  // A schedule takes 20 s, however long it is.
  go(clock + Math.min(0.1, (now - before) / 1000) * lastEnd() / 20);
  before = now;
  if (lastEnd() <= clock) { playing = false; go(clock); }
  requestAnimationFrame(frame);
}

function play() {
  playing = !playing;
  if (playing && lastEnd() <= clock) clock = 0;
  before = performance.now();
  if (!playing) go(clock);
  requestAnimationFrame(frame);
}

/** Arrivals as boxes whose area is the work; a box is dragged to another time. */
let boxes = [];
function drawArrivals() {
  const canvas = $("arrivals");
  const ratio = devicePixelRatio || 1;
  const [width, height] = [canvas.clientWidth, canvas.clientHeight];
  [canvas.width, canvas.height] = [width * ratio, height * ratio];
  const pen = canvas.getContext("2d");
  pen.scale(ratio, ratio);
  const last = Math.max(1, ...scenario.jobs.map((job) => job.arrival));
  const end = dragged?.end ?? Math.max(last * 1.25, lastEnd() * 0.6);
  const works = scenario.jobs.map((job) => workOf(job));
  const most = Math.max(...works, 1e-9);
  const free = [];
  boxes = scenario.jobs.map((job, place) => {
    const size = 14 + 30 * Math.sqrt(works[place] / most);
    const left = 8 + job.arrival / end * (width - 60);
    let row = free.findIndex((right) => right < left);
    if (row < 0) row = free.length;
    free[row] = left + size;
    return { place, left, top: 6 + (row * 22) % Math.max(1, height - 34), size };
  });
  pen.font = "11px system-ui";
  for (const box of boxes) {
    pen.fillStyle = colour(box.place, false);
    pen.fillRect(box.left, box.top, box.size, 16);
    pen.fillStyle = dark.matches ? "#1c1a15" : "#ffffff";
    pen.fillText(`${box.place + 1}`, box.left + 3, box.top + 12);
  }
  pen.fillStyle = variable("--soft");
  const step = tick(end);
  for (let at = 0; at <= end; at += step) pen.fillText(`${+at.toPrecision(4)} s`, 8 + at / end * (width - 60), height - 4);
  canvas.end = end;
}

const workOf = (job) => (Array.isArray(job.each) ? sum(job.each) : job.maps * job.each) + (Array.isArray(job.eachReduce) ? sum(job.eachReduce) : job.reduces * job.eachReduce);

let dragged = null;
$("arrivals").onpointerdown = (event) => {
  const box = boxes.findLast(({ left, top, size }) => left <= event.offsetX && event.offsetX <= left + size && top <= event.offsetY && event.offsetY <= top + 16);
  if (!box) return;
  dragged = { place: box.place, offset: event.offsetX - box.left, end: $("arrivals").end };
  $("arrivals").setPointerCapture(event.pointerId);
};
$("arrivals").onpointermove = (event) => {
  if (!dragged) return;
  const time = (event.offsetX - dragged.offset - 8) / ($("arrivals").clientWidth - 60) * dragged.end;
  scenario.jobs[dragged.place].arrival = Math.max(0, Math.round(time * 10) / 10);
  drawArrivals();
};
$("arrivals").onpointerup = () => {
  if (!dragged) return;
  dragged = null;
  changed();
};

function fillTable() {
  const fields = ["arrival", "maps", "each", "shuffle", "reduces", "eachReduce"];
  document.querySelector("#jobs tbody").replaceChildren(...scenario.jobs.map((job, place) => element("tr", {},
    element("td", {}, swatch(place), `${place + 1}`),
    ...fields.map((field) => {
      const measured = Array.isArray(job[field]);
      const input = element("input", { type: "number", min: 0, step: "any", value: measured ? sum(job[field]) / Math.max(1, job[field].length) : job[field], disabled: measured, ariaLabel: `${field} of job ${place + 1}` });
      input.onchange = () => { job[field] = Math.max(0, Number(input.value) || 0); changed(); };
      return element("td", {}, input);
    }),
    element("td", {}, element("button", { textContent: "×", title: `Remove job ${place + 1}`, onclick: () => { scenario.jobs.splice(place, 1); changed(); } })))));
}

function fill() {
  for (const field of ["workers", "slots", "speed", "network", "estimator"]) $(field).value = scenario[field];
  fillTable();
}

function changed() {
  fillTable();
  simulate();
}

for (const field of ["workers", "slots", "speed", "network"]) {
  $(field).onchange = () => {
    const { min, max, value } = $(field);
    scenario[field] = Math.min(max || Infinity, Math.max(min, Number(value) || 0));
    fill();
    simulate();
  };
}
$("estimator").onchange = () => { scenario.estimator = $("estimator").value; simulate(); };
$("add").onclick = () => { scenario.jobs.push(job(Math.round(clock), 4, 1, 10, 1, 1)); changed(); };
$("play").onclick = play;
$("when").oninput = () => { playing = false; go($("when").value / 1000 * lastEnd()); };
document.querySelectorAll("[data-step]").forEach((button) => { button.onclick = () => step(button.dataset.step); });
addEventListener("keydown", (event) => {
  if (["INPUT", "SELECT", "BUTTON"].includes(event.target.tagName)) return;
  const steps = { ArrowLeft: "back", ArrowRight: "forward", Home: "start", End: "end" };
  if (event.key === " ") play();
  else if (steps[event.key]) step(steps[event.key]);
  else return;
  event.preventDefault();
});
addEventListener("resize", () => { runs.forEach(prepare); drawArrivals(); draw(); });
dark.addEventListener("change", () => { showRuns(); fillTable(); drawArrivals(); go(clock); });

/** A link has the whole scenario behind its `#`. */
$("share").onclick = async () => {
  location.hash = btoa(unescape(encodeURIComponent(JSON.stringify(scenario))));
  try { await navigator.clipboard.writeText(location.href); $("share").textContent = "Copied"; } catch { $("share").textContent = "The link is in the address bar"; }
  setTimeout(() => { $("share").textContent = "Copy link"; }, 2000);
};

const NUMBERS = ["workers", "slots", "speed", "network"];
function shared() {
  try {
    const found = JSON.parse(decodeURIComponent(escape(atob(location.hash.slice(1)))));
    if (NUMBERS.every((field) => Number.isFinite(found[field])) && Array.isArray(found.jobs) && found.policies.every((policy) => typeof policy === "string")) return found;
  } catch { /* not a scenario */ }
  return null;
}

/** Jobs, their measured tasks and the workers of a journal that a master wrote. */
function fromJournal(text) {
  const jobs = new Map();
  const workers = new Map();
  let header = {};
  for (const line of text.split("\n").filter(Boolean)) {
    const entry = JSON.parse(line);
    if (entry.schema) header = entry;
    for (const fact of entry.instant?.facts ?? []) {
      const [[kind, value]] = typeof fact === "string" ? [[fact, {}]] : Object.entries(fact);
      if (kind === "worker_joined") workers.set(value.worker, Object.values(value.slots)[0].map ?? Object.values(value.slots)[0]);
      if (kind === "job_arrived") jobs.set(value.job, { arrival: entry.instant.at / 1e9, maps: new Map(), reduces: new Map(), bytes: 0 });
      const task = value.attempt?.task;
      const of = jobs.get(task?.job);
      if (of && kind === "map_finished") { of.maps.set(task.index, value.took / 1e9); of.bytes += value.output_bytes; }
      if (of && kind === "reduce_finished") of.reduces.set(task.index, value.took / 1e9);
    }
  }
  const ran = [...jobs.values()].filter((found) => found.maps.size);
  if (!ran.length) throw new Error("no finished map is in it");
  const first = Math.min(...ran.map((found) => found.arrival));
  return {
    name: "journal", workers: Math.min(16, workers.size), slots: Math.max(...workers.values()), speed: 1, network: 0, estimator: "oracle",
    policies: [header.policy ?? "fifo", header.policy === "fair" ? "gristmill" : "fair"],
    jobs: ran.map((found) => ({ arrival: found.arrival - first, maps: found.maps.size, each: [...found.maps.values()], shuffle: found.reduces.size ? found.bytes / 1e6 : 0, reduces: found.reduces.size, eachReduce: [...found.reduces.values()] })),
  };
}

async function open(file) {
  try {
    scenario = fromJournal(await file.text());
    $("about").textContent = `${file.name}: ${scenario.jobs.length} jobs with their measured tasks.`;
    clock = 0;
    fill();
    simulate();
  } catch (error) {
    $("message").textContent = `${file.name} is not the journal of a run: ${error.message}`;
    $("message").hidden = false;
  }
}
$("journal").onchange = () => { if ($("journal").files[0]) open($("journal").files[0]); };
addEventListener("dragover", (event) => event.preventDefault());
addEventListener("drop", (event) => { event.preventDefault(); if (event.dataTransfer.files[0]) open(event.dataTransfer.files[0]); });

let catalogue = [];
function preset(place) {
  scenario = copy(PRESETS[place]);
  $("about").textContent = scenario.about;
  clock = 0;
  fill();
  simulate();
}
$("preset").append(...PRESETS.map(({ name }, value) => element("option", { value, textContent: name })));
$("preset").onchange = () => preset($("preset").value);

(async () => {
  const bytes = Uint8Array.from(atob(PROGRAM), (letter) => letter.charCodeAt(0));
  wasm = (await WebAssembly.instantiate(bytes, {})).instance.exports;
  catalogue = called("catalogue");
  const found = location.hash.length > 1 ? shared() : null;
  if (found) { scenario = found; fill(); simulate(); } else preset(0);
  document.body.dataset.ready = "yes";
})();
