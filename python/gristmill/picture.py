"""A job as HTML, for notebooks: progress bars while it runs, and a timeline once it has ended.

The HTML is self-contained: it sends no requests and has no scripts or external styles.
"""
from __future__ import annotations

from html import escape
from typing import Any, Dict, List, Optional, Tuple

WIDTH, LEFT, ROW = 760, 130, 14
COLOURS = {"map": "#3b7dd8", "reduce": "#2e9e6b", "fetch": "#e08a1e", "in place": "#c9c9c9"}
BAD = {"failed": "#c0392b", "lost": "#222222"}
# Maximum number of bars of a picture; the longest are drawn.
BARS_MAX = 2_000


def _bar(name: str, done: float, total: float, colour: str) -> str:
    share = 100 if total <= 0 else min(100, round(100 * done / total))
    return (
        f'<div style="display:flex;align-items:center;gap:8px;margin:2px 0"><span style="width:5em">{name}</span>'
        f'<div style="flex:0 0 320px;height:10px;background:#8883;border-radius:3px"><div style="width:{share}%;height:10px;'
        f'background:{colour};border-radius:3px"></div></div><span>{share} %</span></div>'
    )


def _bars(status: Dict[str, Any]) -> str:
    maps, reduces = status["maps"], status["reduces"]
    parts = [_bar("maps", maps["done"], maps["total"], COLOURS["map"])]
    if reduces["total"]:
        gathered = status.get("totals", {}).get("shuffle_segments", 0)
        parts.append(_bar("shuffle", gathered, status.get("segments_total", 0), COLOURS["fetch"]))
        parts.append(_bar("reduces", reduces["done"], reduces["total"], COLOURS["reduce"]))
    return "".join(parts)


def slots(trace: Dict[str, Any]) -> str:
    """Returns the bars of slots and lanes, as SVG."""
    events: List[Dict[str, Any]] = [event for event in trace["traceEvents"] if event["ph"] == "X"]
    if not events:
        return ""
    names: Dict[Tuple[str, int, int], str] = {}
    for event in trace["traceEvents"]:
        if event["ph"] == "M" and event["name"] in ("process_name", "thread_name"):
            names[event["name"], event["pid"], event["tid"]] = event["args"]["name"]
    rows = sorted({(event["pid"], event["tid"]) for event in events})
    end = max(event["ts"] + event["dur"] for event in events) or 1.0
    scale = (WIDTH - LEFT - 10) / end
    height = 24 + len(rows) * (ROW + 2) + 20
    out = [
        f'<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 {WIDTH} {height}" width="{WIDTH}" font-size="10" '
        'font-family="system-ui, sans-serif" fill="currentColor">'
    ]
    x = LEFT
    for name, colour in COLOURS.items():
        out.append(f'<rect x="{x}" y="4" width="9" height="9" fill="{colour}"/><text x="{x + 13}" y="12">{name}</text>')
        x += 70
    tops = {}
    for number, (pid, tid) in enumerate(rows):
        y = tops[pid, tid] = 22 + number * (ROW + 2)
        worker = names.get(("process_name", pid, 0), f"worker-{pid}")
        label = escape(f'{worker}, {names.get(("thread_name", pid, tid), tid)}')
        out.append(f'<text x="0" y="{y + 11}">{label}</text>')
        out.append(f'<rect x="{LEFT}" y="{y}" width="{WIDTH - LEFT - 10}" height="{ROW}" fill="#8882"/>')
    for event in sorted(events, key=lambda event: -event["dur"])[:BARS_MAX]:
        colour = BAD.get(event["args"].get("state"), COLOURS.get(event["cat"], "#999"))
        title = escape(f'{event["name"]}: {event["dur"] / 1000:.1f} ms')
        out.append(
            f'<rect x="{LEFT + event["ts"] * scale:.1f}" y="{tops[event["pid"], event["tid"]] + 1}" '
            f'width="{max(event["dur"] * scale, 1.2):.1f}" height="{ROW - 2}" rx="1" fill="{colour}"><title>{title}</title></rect>'
        )
    out.append(f'<text x="{LEFT}" y="{height - 6}">0</text>')
    out.append(f'<text x="{WIDTH - 10}" y="{height - 6}" text-anchor="end">{end / 1000:.0f} ms</text></svg>')
    return "".join(out)


def page(name: str, status: Optional[Dict[str, Any]], trace: Optional[Dict[str, Any]], error: Optional[str]) -> str:
    """Returns a job as HTML."""
    state = status["state"] if status else "starting"
    out = [f'<div style="font:12px system-ui,sans-serif"><b>{escape(name)}</b> {escape(state)}']
    if status:
        seconds = ((status.get("ended_ns") or status["now_ns"]) - status["arrived_ns"]) / 1e9
        out.append(f", {seconds:.2f} s, {status['maps']['total']} maps, {status['reduces']['total']} reduces")
        out.append(f", {status['workers']} workers{_bars(status)}")
    if trace:
        out.append(slots(trace))
    if error:
        out.append(f'<pre style="white-space:pre-wrap">{escape(error)}</pre>')
    out.append("</div>")
    return "".join(out)
