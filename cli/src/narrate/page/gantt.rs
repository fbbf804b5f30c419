//! Chart of attempts and fetches over time: a row for each slot and lane of each worker, as in the trace.

use super::super::facts::Facts;
use super::super::shuffle;
use super::escape;
use crate::trace::{LANES_FROM, Rows};
use gristmill_runtime::api::AttemptEnd;
use gristmill_scheduler::ids::{TaskKind, WorkerId};
use gristmill_scheduler::units::Span;
use std::collections::BTreeMap;

/// Height of a row, and its distance from the next, in units of the drawing, which is [`WIDTH`] wide.
const ROW: f64 = 24.0;
const WIDTH: f64 = 1000.0;
/// Width of the column with the names of rows.
const NAMES: f64 = 150.0;
/// Minimum width of a bar, so that it is visible.
const BAR_MIN: f64 = 3.0;

/// A bar: the attempt or fetch, its row, and its start and end in nanoseconds after the job's arrival.
pub struct Lane {
    pub name: String,
    class: &'static str,
    words: String,
    worker: WorkerId,
    row: usize,
    from: u64,
    until: u64,
}

/// All attempts and fetches.
pub fn lanes(facts: &Facts) -> Vec<Lane> {
    let end_ns = facts.trace.status.ended_ns.unwrap_or(facts.trace.status.now_ns);
    let mut rows = Rows::default();
    let mut lanes = Vec::new();
    for record in &facts.trace.attempts {
        let from = record.started_ns.unwrap_or(record.launched_ns);
        let until = record.ended_ns.unwrap_or(end_ns).max(from);
        let class = match (&record.end, record.attempt.task.kind) {
            (AttemptEnd::Succeeded | AttemptEnd::Running, TaskKind::Map) => "map",
            (AttemptEnd::Succeeded | AttemptEnd::Running, TaskKind::Reduce) => "reduce",
            _ => "failure",
        };
        lanes.push(Lane {
            name: record.attempt.file_name(),
            class,
            words: format!("{} on {}, {}", record.attempt, record.worker, Span(until - from)),
            worker: record.worker,
            row: rows.place(record.worker, 0, from, until),
            from: facts.since_arrival(from),
            until: facts.since_arrival(until),
        });
    }
    for (number, fetch) in facts.trace.fetches.iter().enumerate() {
        let until = fetch.ended_ns.max(fetch.started_ns);
        lanes.push(Lane {
            name: shuffle::name(number),
            class: "fetch",
            words: format!(
                "map-{} from {} to {}, {} bytes",
                fetch.map.task.index, fetch.from, fetch.to, fetch.bytes
            ),
            worker: fetch.to,
            row: rows.place(fetch.to, LANES_FROM, fetch.started_ns, until),
            from: facts.since_arrival(fetch.started_ns),
            until: facts.since_arrival(until),
        });
    }
    lanes
}

/// The drawing.
pub fn gantt(facts: &Facts, lanes: &[Lane]) -> String {
    let keys: BTreeMap<(WorkerId, usize), usize> = {
        let mut keys: Vec<_> = lanes.iter().map(|lane| (lane.worker, lane.row)).collect();
        keys.sort_unstable();
        keys.dedup();
        keys.into_iter().zip(0..).collect()
    };
    let status = &facts.trace.status;
    let end = facts.since_arrival(status.ended_ns.unwrap_or(status.now_ns)).max(1);
    let x = |ns: u64| NAMES + (WIDTH - NAMES) * ns.min(end) as f64 / end as f64;
    let height = ROW * (keys.len() + 1) as f64;
    let mut out = format!(
        "<svg class=gantt viewBox=\"0 0 {WIDTH} {height}\" role=img data-end={end} data-names={NAMES} \
         aria-label=\"Slots and shuffle lanes of the workers over time\">\n"
    );
    for ((worker, row), place) in &keys {
        let y = ROW * *place as f64;
        let what =
            if *row < LANES_FROM { format!("slot {row}") } else { format!("lane {}", row - LANES_FROM) };
        out += &format!(
            "<text x=0 y={}>{} {what}</text><line class=rule x1={NAMES} x2={WIDTH} y1={y2} y2={y2} />\n",
            y + ROW * 0.7,
            escape(&worker.to_string()),
            y2 = y + ROW
        );
    }
    for lane in lanes {
        let y = ROW * keys[&(lane.worker, lane.row)] as f64 + 3.0;
        let (from, until) = (x(lane.from), x(lane.until));
        out += &format!(
            "<rect class=\"{}\" data-name=\"{}\" x={from:.1} y={y} width={:.1} height={} rx=2><title>{}</title></rect>\n",
            lane.class,
            escape(&lane.name),
            (until - from).max(BAR_MIN),
            ROW - 6.0,
            escape(&lane.words)
        );
    }
    out += &format!("<line id=now x1={NAMES} x2={NAMES} y1=0 y2={} />\n", ROW * keys.len() as f64);
    out += &format!(
        "<text x={NAMES} y={y}>0</text><text class=end x={WIDTH} y={y}>{}</text>\n</svg>\n<p class=key><span \
         class=map>map</span> <span class=reduce>reduce</span> <span class=fetch>fetch</span> <span class=failure>came to \
         nothing</span></p>\n<p class=help>A slot runs one task at a time, a lane of the shuffle one fetch at a time. The dotted \
         line is the moment of this step.</p>",
        Span(end),
        y = height - 6.0
    );
    out
}
