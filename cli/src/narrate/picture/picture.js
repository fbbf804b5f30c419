"use strict";
// The story of one job as a moving picture. `story` is what the program recorded; nothing is computed a second time.
// A step has one or two frames: a map first emits and then stores its pairs, a reduce first reads and then groups them.
const story = JSON.parse(document.getElementById("story").textContent);
const $ = id => document.getElementById(id);
const still = matchMedia("(prefers-reduced-motion: reduce)").matches;
const PHASES = { map: ["emit", "store"], reduce: ["read", "group"] };
const frames = story.steps.flatMap((step, number) => {
  const { scene } = step;
  const task = scene.type === "ended" && story[`${scene.task}s`][scene.index];
  const shown = task && (scene.task === "reduce" || task.emitted.length > 0);
  const phases = shown ? PHASES[scene.task] : [""];
  return phases.map(phase => ({ step, number, scene, phase }));
});
const plural = (count, one) => `${count} ${one}${count === 1 ? "" : "s"}`;
// One sentence or two on a frame, readable from the last row; the text below has all facts.
const LEADS = {
  arrived: () => story.has_reduces ? "Maps turn lines into pairs; all pairs of one key come to one reduce." : "Maps turn lines into parts of the output.",
  input: () => "The input is cut into splits, one for each map. A line belongs to the split in which its first byte lies.",
  launched: ({ task, index, epoch, worker }) => {
    const before = stateAt(at).tasks[`${task}-${index}`].filter(one => one.epoch !== epoch), running = before.find(one => one.end === "");
    if (running) return `${running.worker} is slow with ${task}-${index}, so ${worker} gets a second attempt. The first to end counts.`;
    return before.length ? `${worker} gets ${task}-${index} again: what ${before.at(-1).worker} had done of it is lost.` : `A free slot of ${worker} gets ${task}-${index}.`;
  },
  emit: ({ index }) => `The mapper reads its lines and emits ${plural(story.maps[index].counts[0], "pair")}.`,
  store: ({ index }) => {
    const { counts: [emitted, stored], combines } = story.maps[index];
    return `${combines ? `The combiner merges pairs of equal keys: ${emitted} become ${stored}. ` : ""}Each key belongs to one partition, the same on every map; its colour is that of its reduce.`;
  },
  fetched: ({ map, to }) => `${to} gets its part of what map-${map} has stored.`,
  discarded: ({ task, index, why }) => `An attempt at ${task}-${index} ends without result: ${why}. Nothing of it counts.`,
  read: ({ index }) => `reduce-${index} reads its part of every map${story.reduces[index].combines ? ", and adds up the values of each key" : ", in the order of keys"}.`,
  group: ({ index }) => `The reducer of reduce-${index} is called once for each key, and writes its part of the output.`,
  ended: ({ task, index }) => `${task}-${index} has ended.`,
  published: () => "Each part gets its name. _SUCCESS comes last: a program that sees it sees the whole output.",
  failed: () => "The job has failed, and leaves no output.",
};
let at = 0, timer = null, followed = "", pinned = "";

/// Creates an element. `false` and empty children are left out.
function h(tag, attributes, ...children) {
  const element = document.createElement(tag);
  for (const [name, value] of Object.entries(attributes)) if (value !== undefined && value !== "") element.setAttribute(name, value);
  element.append(...children.flat(Infinity).filter(child => child || child === 0));
  return element;
}

/// Returns what has happened up to a frame.
function stateAt(last) {
  const state = { split: false, tasks: {}, phase: {}, fetched: {}, published: false };
  const attempts = scene => state.tasks[`${scene.task}-${scene.index}`] ??= [];
  const attempt = scene => attempts(scene).find(one => one.epoch === scene.epoch) ?? {};
  for (const { scene, phase } of frames.slice(0, last + 1)) {
    switch (scene.type) {
      case "input": state.split = true; break;
      case "launched": attempts(scene).push({ epoch: scene.epoch, worker: scene.worker, end: "" }); break;
      case "discarded": attempt(scene).end = scene.why; break;
      case "ended": attempt(scene).end = "ended"; state.phase[`${scene.task}-${scene.index}`] = phase || "ended"; break;
      case "fetched":
        (state.fetched[scene.map] ??= new Set()).add(scene.to); break;
      case "published": state.published = true; break;
    }
  }
  return state;
}

/// Returns a function that counts how often it was called before with the same argument.
function counter() {
  const seen = new Map();
  return of => seen.set(of, (seen.get(of) ?? -1) + 1).get(of);
}

/// True if the segment of a map is where the reduce of its partition runs.
const isSent = (state, map, partition) => state.fetched[map]?.has(story.reduces[partition]?.worker);
const colour = partition => `--part: var(--p${partition % 8})`;
const more = count => count > 0 && h("span", { class: "soft" }, `and ${count} more`);

/// Creates a pair. `id` is its place in this frame, `from` are the places that it comes from, `stage` that of its path.
function chip([key, value], partition, { id, from, stage, map }) {
  return h("span", { class: "chip", style: partition === undefined ? "" : colour(partition), "data-key": key, "data-id": id,
    "data-from": (from ?? []).join(" "), "data-stage": stage, "data-map": map, "data-part": partition }, key, value !== "" && h("b", {}, value));
}

function attemptsOf(state, task) {
  const attempts = state.tasks[task] ?? [], running = attempts.filter(one => one.end === "");
  return attempts.map(one => {
    if (one.end === "ended") return h("small", {}, `✓ ${one.worker}`);
    if (one.end !== "") return h("small", { class: "bad" }, "✕ ", h("s", {}, one.worker), ` ${one.end}`);
    const again = attempts.indexOf(one) === 0 ? "runs" : running.length > 1 ? "runs at the same time, in case the first is slow" : "runs again";
    return h("small", {}, `${one.worker} ${again}`);
  });
}

function cardOf(kind, index, state, children) {
  const task = `${kind}-${index}`, attempts = state.tasks[task] ?? [], scene = frames[at].scene;
  const now = (scene.task === kind && scene.index === Number(index)) || (kind === "map" && scene.type === "fetched" && scene.map === Number(index));
  const standing = state.phase[task] ? "done" : attempts.some(one => one.end === "") ? "busy" : "";
  return h("div", { class: `card ${kind} ${standing} ${now ? "now" : ""} ${attempts.length ? "" : "unborn"}` },
    h("h3", {}, task, attemptsOf(state, task)), children);
}

function split(index, map) {
  const lines = map.lines.map((line, place) => h("li", { "data-line": "yes", "data-map": index, "data-id": `l:${index}:${place}` }, line || " "));
  return h("div", { class: "card", "data-id": `split:${index}` }, h("h3", {}, map.pieces.map(piece => h("small", {}, piece))), h("ol", {}, lines), more(map.lines_more));
}

/// Pairs of a map by partition, each with the emitted pairs that it comes from.
function bins(index, map, state) {
  const ofPartition = counter(), ofKey = counter();
  const chips = map.output.map(([partition, key, value]) => {
    const place = ofPartition(partition), nth = ofKey(key);
    const same = map.emitted.map(([other], place) => other === key ? `e:${index}:${place}` : "").filter(Boolean);
    // A combiner makes one pair of all; else pairs of a key stay in their order.
    const from = map.combines ? same : same.slice(nth, nth + 1);
    return [partition, chip([key, value], partition, { id: `b:${index}:${partition}:${place}`, from, stage: 2, map: index })];
  });
  return map.bins.map(([partition, omitted]) => h("div", { class: `bin ${isSent(state, index, partition) ? "sent" : ""}` },
    h("span", { class: "soft" }, `for reduce-${partition}`), chips.filter(([of]) => of === partition).map(([, made]) => made), more(omitted)))
    .concat(map.output_more > 0 ? h("div", { class: "soft" }, `${map.output_more} more pairs are not shown`) : []);
}

/// Places from which emitted pairs come: the next line that has the text of the key, else the split.
function origins(index, map) {
  let line = 0;
  return map.emitted.map(([key]) => {
    const found = map.lines.findIndex((text, place) => place >= line && text.toLowerCase().includes(key.toLowerCase()));
    if (found >= 0) line = found;
    return found >= 0 ? `l:${index}:${found}` : `split:${index}`;
  });
}

function mapCard(index, map, state) {
  const phase = state.phase[`map-${index}`], from = origins(index, map);
  const emitted = () => h("div", { class: "bin" }, map.emitted.map((pair, place) =>
    chip(pair, undefined, { id: `e:${index}:${place}`, from: [from[place]], stage: 1, map: index })), more(map.emitted_more));
  const counts = () => story.has_reduces && h("div", { class: "soft" }, map.combines ? `${plural(map.counts[0], "pair")} emitted, ${map.counts[1]} after the combiner` : `${plural(map.counts[0], "pair")} emitted`);
  const fetched = state.fetched[index] && h("div", { class: "soft" }, `fetched by ${[...state.fetched[index]].join(", ")}`);
  return cardOf("map", index, state, phase === "emit" ? emitted() : phase ? [counts(), bins(index, map, state), fetched] : []);
}

function reduceCard(partition, reduce, state) {
  const phase = state.phase[`reduce-${partition}`], next = counter();
  const pair = ([map, key, value], id, from) => {
    const place = next(map);
    return chip([key, value], partition, { id: id(map, place), from: from(map, place), stage: 3, map });
  };
  const gathered = () => {
    const sent = Object.keys(story.maps).filter(map => isSent(state, map, partition));
    return sent.map(map => h("div", { class: "bin" }, h("span", { class: "soft" }, `from map-${map}`),
      story.maps[map].output.filter(([of]) => of === Number(partition)).map(([, key, value]) =>
        pair([Number(map), key, value], (m, i) => `f:${m}:${partition}:${i}`, (m, i) => [`b:${m}:${partition}:${i}`])),
      more(story.maps[map].bins.find(([of]) => of === Number(partition))?.[1])));
  };
  const read = () => h("div", { class: "bin" }, h("span", { class: "soft" }, reduce.combines ? "into a table" : "merged by key"), reduce.read.map(one =>
    pair(one, (m, i) => `r:${m}:${partition}:${i}`, (m, i) => [`${isSent(state, m, partition) ? "f" : "b"}:${m}:${partition}:${i}`])), more(reduce.read_more));
  const ofMap = counter(), places = reduce.read.map(([map, key]) => [key, `r:${map}:${partition}:${ofMap(map)}`]);
  let begun = 0;
  const groups = () => [h("div", { class: "groups" }, reduce.groups.map(({ key, size, values, lines }, place) => {
    // With a combiner the pairs of a key are read in any place, else one group after another.
    const own = reduce.combines ? places.filter(([other]) => other === key) : places.slice(begun, begun += size);
    const from = own.map(([, place]) => place);
    return h("div", { class: "group" }, h("span", {}, chip([key, values], partition, { id: `g:${partition}:${place}`, from, stage: 4 })), h("span", { class: "soft" }, "→"),
      h("span", {}, lines.map(line => h("div", { class: "written", "data-key": key, "data-stage": 5, "data-part": partition }, line.replaceAll(" ⇥ ", "\u2003")))));
  })), more(reduce.groups_more)];
  const part = story.parts[partition];
  const published = state.published && part && h("div", {}, h("b", {}, part.name), h("span", { class: "soft" }, " is published"));
  const home = !state.tasks[`reduce-${partition}`] && reduce.worker && h("div", { class: "soft" }, `will run on ${reduce.worker}`);
  return cardOf("reduce", partition, state, [home, phase === "read" ? read() : phase ? groups() : gathered(), published]);
}

const head = (...names) => h("div", { class: `head ${names.length > 1 ? "row" : ""}` }, names.map(([name, kind]) => h("b", { class: kind }, name)));

function view(state) {
  const maps = Object.entries(story.maps), reduces = Object.entries(story.reduces);
  const left = maps.map(([index, map]) => h("div", { class: "row" }, state.split ? split(index, map) : h("div", {}), mapCard(index, map, state)));
  const parts = () => state.published && story.parts.map(part => h("div", { class: "card" }, h("h3", {}, part.name), h("ol", {}, part.lines.map(line => h("li", {}, line))), more(part.more)));
  const right = story.has_reduces ? reduces.map(([partition, reduce]) => reduceCard(partition, reduce, state)) : [parts()];
  return [
    h("div", { class: "half" }, head(["Input, in splits", ""], ["Map tasks, and what each stores", "map"]), left, more(story.maps_more)),
    h("div", { class: "half" }, head(story.has_reduces ? ["Shuffle, and reduce tasks: what comes, and what each writes", "shuffle reduce"] : ["Output", ""]), right, more(story.reduces_more)),
  ];
}

/// Shows a frame. With `move`, what is new in it comes from where it was.
function show(frame, move) {
  at = Math.max(0, Math.min(frames.length - 1, frame));
  const old = new Map([...document.querySelectorAll("[data-id]")].map(element => [element.dataset.id, element.getBoundingClientRect()]));
  for (const ghost of document.querySelectorAll(".ghost")) ghost.remove();
  $("stage").replaceChildren(...view(stateAt(at)));
  const { step, number, scene, phase } = frames[at];
  $("number").textContent = `${number + 1}.`;
  $("title").textContent = step.title.replaceAll("`", "");
  $("at").textContent = `at ${step.at}`;
  $("lead").textContent = LEADS[phase || scene.type](scene);
  $("text").replaceChildren(...step.text.map(([kind, words]) => h("div", { class: kind }, words.replaceAll("`", ""))));
  // The pairs that a map stores are explained behind those that it emits.
  const behind = phase === "store" && [...$("text").children].find(part => /^The (combiner|job has no combiner)/.test(part.textContent));
  $("text").scrollTop = behind ? behind.offsetTop - $("text").offsetTop : 0;
  $("when").value = at;
  const now = document.querySelector(".card.now");
  now ? now.scrollIntoView({ block: "nearest" }) : $("stage").scrollTop = 0;
  follow(followed);
  return move && !still ? fly(old) : 0;
}

/// Moves new elements from the places they come from. Returns how long that takes, in milliseconds.
function fly(old) {
  const pace = 1 / Number($("speed").value), all = [...document.querySelectorAll("[data-from]")];
  const fresh = all.filter(element => !old.has(element.dataset.id)), gap = Math.min(160, 2400 / Math.max(1, fresh.length)) * pace;
  fresh.forEach((element, place) => {
    const to = element.getBoundingClientRect(), delay = place * gap;
    const from = element.dataset.from.split(" ").map(id => old.get(id)).filter(Boolean);
    const path = rect => [{ transform: `translate(${rect.left - to.left}px, ${rect.top - to.top}px)`, opacity: .4 }, { transform: "none", opacity: 1 }];
    const timing = { duration: 700 * pace, delay, easing: "ease-in-out", fill: "backwards" };
    element.animate(from.length ? path(from[0]) : [{ opacity: 0 }, { opacity: 1 }], timing);
    for (const rect of from.slice(1)) {
      const ghost = element.cloneNode(true);
      ghost.classList.add("ghost");
      Object.assign(ghost.style, { left: `${to.left}px`, top: `${to.top}px` });
      for (const name of ["id", "key", "from", "stage"]) delete ghost.dataset[name];
      document.body.append(ghost);
      ghost.animate(path(rect), timing).finished.finally(() => ghost.remove());
    }
  });
  return fresh.length ? fresh.length * gap + 700 * pace : 0;
}

/// Marks where the text of a key occurs in a line, as a whole word. Returns true if it does.
function markIn(line, key) {
  const quoted = key.replace(/[.*+?^${}()|[\]\\]/g, "\\$&"), edge = "[\\p{L}\\p{N}_]";
  const pieces = line.textContent.split(new RegExp(`(?<!${edge})(${quoted})(?!${edge})`, "iu"));
  line.replaceChildren(...pieces.map((piece, place) => place % 2 ? h("mark", { "data-stage": 0, "data-map": line.dataset.map }, piece) : piece));
  return pieces.length > 1;
}

/// Shows the path of a key, from the lines in which its text occurs to the lines written for it.
function follow(key) {
  followed = key;
  $("paths").replaceChildren();
  $("stage").classList.toggle("tracing", key !== "");
  for (const line of document.querySelectorAll("[data-line]")) {
    if (line.querySelector("mark")) line.textContent = line.textContent;
    line.classList.toggle("on", key !== "" && markIn(line, key));
  }
  for (const element of document.querySelectorAll("[data-key]")) element.classList.toggle("on", element.dataset.key === key);
  if (key === "") return;
  const { top, right, bottom, left } = $("stage").getBoundingClientRect();
  $("paths").style.clipPath = `polygon(${left}px ${top}px, ${right}px ${top}px, ${right}px ${bottom}px, ${left}px ${bottom}px)`;
  const stages = [0, 1, 2, 3, 4, 5].map(stage => [...document.querySelectorAll(`mark[data-stage="${stage}"], .on[data-stage="${stage}"]`)]).filter(stage => stage.length);
  const fits = (one, other, name) => one.dataset[name] === undefined || other.dataset[name] === undefined || one.dataset[name] === other.dataset[name];
  stages.slice(1).forEach((stage, place) => {
    for (const to of stage) for (const from of stages[place]) if (fits(from, to, "map") && fits(from, to, "part")) draw(from.getBoundingClientRect(), to.getBoundingClientRect());
  });
}

function draw(from, to) {
  const [x0, y0, x1, y1] = [from.right, from.top + from.height / 2, to.left, to.top + to.height / 2], bend = Math.max(24, Math.abs(x1 - x0) / 2);
  const path = document.createElementNS("http://www.w3.org/2000/svg", "path");
  path.setAttribute("d", `M${x0} ${y0} C${x0 + bend} ${y0} ${x1 - bend} ${y1} ${x1} ${y1}`);
  $("paths").append(path);
}

function stop() { clearTimeout(timer); timer = null; $("play").textContent = "Play"; }
function go(frame) { stop(); show(frame, frame === at + 1); }
function play() {
  if (at === frames.length - 1) show(0, false);
  $("play").textContent = "Pause";
  const tick = () => {
    if (at === frames.length - 1) return stop();
    const moving = show(at + 1, true);
    timer = setTimeout(tick, moving + 2200 / Number($("speed").value));
  };
  timer = setTimeout(tick, 300);
}
const toggle = () => timer ? stop() : play();

const keys = new Set(Object.values(story.maps).flatMap(map => map.output.map(pair => pair[1])).concat(Object.values(story.reduces).flatMap(reduce => reduce.groups.map(group => group.key))));
$("keys").append(...[...keys].map(key => h("option", { value: key })));
$("when").max = frames.length - 1;
$("when").oninput = () => go(Number($("when").value));
$("back").onclick = () => go(at - 1);
$("next").onclick = () => go(at + 1);
$("play").onclick = toggle;
$("full").onclick = () => document.fullscreenElement ? document.exitFullscreen() : document.documentElement.requestFullscreen();
$("key").oninput = () => {
  pinned = keys.has($("key").value) ? $("key").value : "";
  $("key").setCustomValidity(pinned === $("key").value ? "" : "This job has no such key.");
  follow(pinned);
};
$("key").onkeydown = event => { if (event.key === "Enter" || event.key === "Escape") $("key").blur(); };
$("stage").onclick = event => { const key = event.target.closest("[data-key]")?.dataset.key ?? ""; pinned = key === pinned ? "" : key; $("key").value = pinned; $("key").setCustomValidity(""); follow(pinned); };
$("stage").onpointerover = event => { const key = event.target.closest("[data-key]")?.dataset.key; if (key !== undefined && event.pointerType === "mouse") follow(key); };
$("stage").onpointerout = event => { if (event.pointerType === "mouse" && followed !== pinned) follow(pinned); };
$("stage").onscroll = onresize = () => follow(followed);
addEventListener("keydown", event => {
  if (event.target.matches("input:not([type=range]), select") || event.altKey || event.ctrlKey || event.metaKey) return;
  const act = { ArrowRight: () => go(at + 1), ArrowLeft: () => go(at - 1), Home: () => go(0), End: () => go(frames.length - 1), " ": toggle, f: () => $("full").click() }[event.key];
  if (act && !(event.key === " " && event.target.matches("button"))) { event.preventDefault(); act(); }
});
show(0, false);
