//! The quick example of section IV, and figure 4: SRPT, DSRPT and ASRPT slot by slot.

use super::runs::{completions_on, flow_within};
use crate::paper::{
    Axis, Block, Cell, Chart, ChartKind, Claim, Column, Compared, Section, Series, Table, Verdict,
};
use gristmill_scheduler::workload::Job;

/// Numbers of small jobs in the quick example.
const SMALL_JOBS: [u32; 8] = [1, 3, 10, 30, 100, 300, 1000, 3000];

fn job(slot: u32, maps: u32, reduces: u32) -> Job {
    let work = [f64::from(maps), 0.0, f64::from(reduces)];
    Job { arrival: f64::from(slot - 1), work: work.into(), reduces: vec![work[2]], ..Job::default() }
}

/// No online policy has a constant competitive ratio: the ratio in the example grows with the small jobs' number.
pub(super) fn quick_example() -> anyhow::Result<Section> {
    let mut ours = Vec::new();
    let mut formula = Vec::new();
    for small in SMALL_JOBS {
        // H = 0 and L = 1, as a work-conserving policy has it: the map in slot 1, the reduce from slot 2 on. The small
        // jobs come every other slot while it runs.
        let mut jobs = vec![job(1, 1, 2 * small + 1)];
        jobs.extend((1..=small).map(|index| job(1 + 2 * index, 1, 1)));
        let online = completions_on("fifo", 1, false, &jobs, &mut |_, _| {})?;
        let online = flow_within(&jobs, &online, f64::INFINITY);
        // The schedule that knows the future: every small job at once, the long reduce after them.
        let q = f64::from(small);
        let offline = 2.0 * q + (1.0 + 2.0 * q + 2.0 * q + 1.0);
        ours.push((q, online / offline));
        formula.push((q, ((2.0 * q + 2.0) + (2.0 * q + 1.0) * q) / offline));
    }
    let rows = ours.iter().zip(&formula).map(|(&(small, ours), &(_, formula))| Compared {
        what: format!("Q = {small}: lower bound of equation 6"),
        printed: Some(formula),
        reference: None,
        ours,
        half_width: None,
        // The equation is a lower bound, and a policy that begins at once does not exceed it by more than a slot per job.
        verdict: if formula <= ours && ours <= 1.5 * formula { Verdict::Holds } else { Verdict::Fails },
        note: "equation 6 before simplification, H = 0, L = 1".to_owned(),
    });
    let rows: Vec<Compared> = rows.collect();
    let grows = ours.windows(2).all(|pair| pair[0].1 < pair[1].1);
    let last = ours.last().copied().unwrap_or_default();
    let claim = Claim {
        place: "Section IV".to_owned(),
        statement: "No online algorithm has a constant competitive ratio when reduces cannot be interrupted."
            .to_owned(),
        verdict: if grows { Verdict::Holds } else { Verdict::Fails },
        evidence: format!(
            "The ratio of a policy that begins the long reduce at once grows with Q all the way, to {:.0} at Q = {:.0}. \
             One that waits pays when no small job comes (case I, whose flow time should read H + L + 2Q + 1).",
            last.1, last.0
        ),
    };
    let series = |name: &str, points: Vec<(f64, f64)>, reference: bool| Series {
        name: name.to_owned(),
        points,
        half_widths: Vec::new(),
        reference,
    };
    let chart = Chart {
        id: "section-4".to_owned(),
        caption: "Flow time of a non-preemptive work-conserving policy over that of a schedule that knows the future"
            .to_owned(),
        x: Axis::logarithmic("Q, number of small jobs"),
        y: Axis::logarithmic("ratio"),
        kind: ChartKind::Lines,
        series: vec![series("FIFO", ours, false), series("equation 6", formula, true)],
    };
    Ok(Section {
        id: "section-4".to_owned(),
        title: "Figure 1 and section IV: the quick example".to_owned(),
        text: vec![
            "One machine. A job with one map and a reduce of 2Q + 1 units comes first, then Q jobs of one map and one \
             reduce unit each, every other slot, while the long reduce runs and cannot be interrupted."
                .to_owned(),
        ],
        blocks: vec![Block::Chart(chart), Block::Comparison(rows), Block::Claims(vec![claim])],
    })
}

/// An instance in which the three schedules differ.
pub(super) fn figure_4() -> anyhow::Result<Section> {
    const MACHINES: u32 = 3;
    let jobs = [job(1, 2, 4), job(1, 4, 1)];
    let mut flows = Vec::new();
    let mut rows = Vec::new();
    for (title, name) in [("SRPT", "srpt"), ("DSRPT", "dsrpt"), ("ASRPT", "asrpt")] {
        let mut slots: Vec<Vec<String>> = Vec::new();
        let completions = completions_on(name, MACHINES, true, &jobs, &mut |slot, served| {
            slots.resize(slot as usize, Vec::new());
            let word = |job: &gristmill_scheduler::sim::slotted::SlotService| {
                let part = |count: u32, kind: &str| format!("{count} {kind} of job {}", job.seq + 1);
                let parts = [(job.maps, "map"), (job.reduces, "reduce")];
                parts
                    .into_iter()
                    .filter(|part| 0 < part.0)
                    .map(|(count, kind)| part(count, kind))
                    .collect::<Vec<_>>()
            };
            slots[slot as usize - 1] = served.iter().flat_map(word).collect();
        })?;
        let flow = flow_within(&jobs, &completions, f64::INFINITY);
        flows.push(flow);
        rows.push((title, slots, flow));
    }
    let length = rows.iter().map(|(_, slots, _)| slots.len()).max().unwrap_or(0);
    let mut columns = vec![Column::new("schedule", "")];
    columns.extend((1..=length).map(|slot| Column::new(&format!("slot {slot}"), "")));
    columns.push(Column::new("total flow time", "slots"));
    let rows = rows.into_iter().map(|(title, mut slots, flow)| {
        slots.resize(length, Vec::new());
        let mut row = vec![Cell::text(title)];
        row.extend(slots.into_iter().map(|words| match words.is_empty() {
            true => Cell::Empty,
            false => Cell::text(words.join(", ")),
        }));
        row.push(Cell::number(flow));
        row
    });
    let table = Table {
        id: "figure-4".to_owned(),
        caption: "Machines by slot; SRPT lets reduces run beside their job's last maps, which no cluster can"
            .to_owned(),
        columns,
        rows: rows.collect(),
    };
    let ordered = flows[0] <= flows[2] && flows[2] <= flows[1];
    let claim = Claim {
        place: "Figure 4, section VI B".to_owned(),
        statement: "Maps are scheduled as in SRPT or earlier, reduces about one slot later; ASRPT is an improvement of \
                    DSRPT, and SRPT a bound of both."
            .to_owned(),
        verdict: if ordered { Verdict::Holds } else { Verdict::Fails },
        evidence: format!("Total flow times: SRPT {}, DSRPT {}, ASRPT {} slots.", flows[0], flows[1], flows[2]),
    };
    Ok(Section {
        id: "figure-4".to_owned(),
        title: "Figure 4: SRPT, DSRPT and ASRPT on the same jobs".to_owned(),
        text: vec![format!(
            "{MACHINES} machines; job 1 has 2 maps and 4 reduce units, job 2 has 4 maps and 1 reduce unit, both arrive \
             in slot 1. (The figure shows an instance without numbers; this one is ours.)"
        )],
        blocks: vec![Block::Table(table), Block::Claims(vec![claim])],
    })
}
