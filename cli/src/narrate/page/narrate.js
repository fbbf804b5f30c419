// Shows one step at a time and marks in the drawing when it happened and what it is about.
"use strict";
const steps = [...document.querySelectorAll("#told > section")];
const links = [...document.querySelectorAll("details a")];
const bars = [...document.querySelectorAll(".gantt rect")];
const gantt = document.querySelector(".gantt");
const [back, next, place, now] = ["back", "next", "place", "now"].map(name => document.getElementById(name));
let here = 0;

function go(to) {
  here = Math.min(Math.max(to, 0), steps.length - 1);
  const step = steps[here], about = new Set(step.dataset.about.split(" "));
  steps.forEach((other, number) => other.classList.toggle("here", number === here));
  bars.forEach(bar => bar.classList.toggle("here", about.has(bar.dataset.name)));
  links.forEach((link, number) => number === here ? link.setAttribute("aria-current", "step") : link.removeAttribute("aria-current"));
  const names = Number(gantt.dataset.names), share = Math.min(Number(step.dataset.at) / Number(gantt.dataset.end), 1);
  for (const end of ["x1", "x2"]) now.setAttribute(end, names + (1000 - names) * share);
  scrollTo(0, 0);
  place.textContent = `step ${here + 1} of ${steps.length}`;
  back.disabled = here === 0;
  next.disabled = here === steps.length - 1;
}

function ofAddress() {
  const named = steps.findIndex(step => "#" + step.id === location.hash);
  return named < 0 ? 0 : named;
}

const keys = {ArrowRight: () => here + 1, ArrowLeft: () => here - 1,
  Home: () => 0, End: () => steps.length - 1};
document.addEventListener("keydown", event => {
  if (event.altKey || event.ctrlKey || event.metaKey || !(event.key in keys)) return;
  event.preventDefault();
  go(keys[event.key]());
});
back.addEventListener("click", () => go(here - 1));
next.addEventListener("click", () => go(here + 1));
addEventListener("hashchange", () => go(ofAddress()));
document.body.classList.add("stepping");
document.querySelector(".steps").hidden = false;
go(ofAddress());
