#!/usr/bin/env python3
"""Draws a trace written by `gristmill run --trace` as one SVG: a row for each slot and lane.

usage: scripts/trace_svg.py trace.json > docs/run.svg
"""
import html
import json
import sys

WIDTH, LEFT, ROW, GAP, TOP = 900, 150, 16, 10, 46
COLOURS = {"map": "#3b7dd8", "reduce": "#2e9e6b", "fetch": "#e08a1e", "in place": "#c9c9c9"}
BAD = {"failed": "#c0392b", "lost": "#222222"}


def main() -> None:
    with open(sys.argv[1], encoding="utf-8") as file:
        trace = json.load(file)
    events = [event for event in trace["traceEvents"] if event["ph"] == "X"]
    names = {}
    for event in trace["traceEvents"]:
        if event["ph"] == "M" and event["name"] in ("process_name", "thread_name"):
            names[(event["name"], event["pid"], event["tid"])] = event["args"]["name"]
    rows = sorted({(event["pid"], event["tid"]) for event in events})
    end = max(event["ts"] + event["dur"] for event in events)
    scale = (WIDTH - LEFT - 20) / end
    height = TOP + len(rows) * (ROW + 2) + len({pid for pid, _ in rows}) * GAP + 30
    out = [
        f'<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 {WIDTH} {height}" '
        f'font-family="system-ui, sans-serif" font-size="11">',
        f'<rect width="{WIDTH}" height="{height}" fill="#ffffff"/>',
    ]
    x = LEFT
    for name, colour in COLOURS.items():
        label = {"fetch": "fetch over HTTP", "in place": "read in place"}.get(name, name)
        out.append(f'<rect x="{x}" y="10" width="10" height="10" fill="{colour}"/>')
        out.append(f'<text x="{x + 14}" y="19">{label}</text>')
        x += 30 + 7 * len(label)
    y, top_of, previous = TOP, {}, None
    for pid, tid in rows:
        if previous not in (None, pid):
            y += GAP
        previous = pid
        top_of[(pid, tid)] = y
        worker = names.get(("process_name", pid, 0), f"worker-{pid}")
        row = names.get(("thread_name", pid, tid), str(tid))
        out.append(f'<text x="8" y="{y + 12}" fill="#444">{html.escape(worker)}, {html.escape(row)}</text>')
        out.append(f'<rect x="{LEFT}" y="{y}" width="{WIDTH - LEFT - 20}" height="{ROW}" fill="#f4f4f4"/>')
        y += ROW + 2
    done = trace["otherData"].get("maps_done_us")
    if done is not None:
        x = LEFT + done * scale
        out.append(f'<line x1="{x:.1f}" y1="{TOP - 12}" x2="{x:.1f}" y2="{y}" stroke="#888" stroke-dasharray="3 3"/>')
        out.append(f'<text x="{x:.1f}" y="{TOP - 15}" fill="#444" text-anchor="end">last map ends</text>')
    for event in events:
        width = max(event["dur"] * scale, 1.2)
        colour = BAD.get(event["args"].get("state"), COLOURS.get(event["cat"], "#999"))
        title = html.escape(f'{event["name"]}: {event["dur"] / 1000:.1f} ms')
        out.append(
            f'<rect x="{LEFT + event["ts"] * scale:.1f}" y="{top_of[(event["pid"], event["tid"])] + 1}" '
            f'width="{width:.1f}" height="{ROW - 2}" rx="1" fill="{colour}"><title>{title}</title></rect>'
        )
    for part in range(6):
        x = LEFT + (WIDTH - LEFT - 20) * part / 5
        out.append(f'<text x="{x:.0f}" y="{height - 10}" fill="#444" text-anchor="middle">'
                   f'{end * part / 5 / 1e6:.2f} s</text>')
    out.append("</svg>")
    print("\n".join(out))


if __name__ == "__main__":
    main()
