//! The quick example of section IV, and figure 4: SRPT, DSRPT and ASRPT slot by slot.

use super::runs::{completions_on, flow_within};
use crate::paper::{Axis, Block, Cell, Chart, Claim, Column, Compared, Section, Series, Table};
use gristmill_scheduler::sim::slotted::SlotService;
use gristmill_scheduler::workload::Job;

/// Numbers of small jobs in the quick example.
const SMALL_JOBS: [u32; 8] = [1, 3, 10, 30, 100, 300, 1000, 3000];

fn job(slot: u32, maps: u32, reduces: u32) -> Job {
    let work = [f64::from(maps), 0.0, f64::from(reduces)];
    Job { arrival: f64::from(slot - 1), work: work.into(), reduces: vec![work[2]], ..Job::default() }
}

/// A number of small jobs, and the ratio that it leads to.
type Ratios = Vec<(f64, f64)>;

/// The ratios of the example: of a policy that begins the long reduce at once, and by equation 6.
fn ratios() -> anyhow::Result<[Ratios; 2]> {
    let (mut ours, mut formula) = (Vec::new(), Vec::new());
    for small in SMALL_JOBS {
        // H = 0 and L = 1, as a work-conserving policy has it: the map in slot 1, the reduce from slot 2 on. The
        // small jobs come every other slot while it runs.
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
    Ok([ours, formula])
}

/// The equation is a lower bound, and a policy that begins at once does not exceed it by more than a slot per job.
fn beside_equation_6(&((small, ours), (_, formula)): &((f64, f64), (f64, f64))) -> Compared {
    Compared {
        printed: Some(formula),
        note: "equation 6 before simplification, H = 0, L = 1".to_owned(),
        ..Compared::new(
            format!("Q = {small}: lower bound of equation 6"),
            ours,
            formula <= ours && ours <= 1.5 * formula,
        )
    }
}

/// No online policy has a constant competitive ratio: the ratio in the example grows with the small jobs' number.
pub(super) fn quick_example() -> anyhow::Result<Section> {
    let [ours, formula] = ratios()?;
    let rows =
        ours.iter().copied().zip(formula.iter().copied()).map(|pair| beside_equation_6(&pair)).collect();
    let last = ours.last().copied().unwrap_or_default();
    let claim = Claim::new(
        "Section IV",
        "No online algorithm has a constant competitive ratio when reduces cannot be interrupted.",
        ours.windows(2).all(|pair| pair[0].1 < pair[1].1),
        format!(
            "The ratio of a policy that begins the long reduce at once grows with Q all the way, to {:.0} \
             at Q = {:.0}. One that waits pays when no small job comes (case I, whose flow time should read \
             H + L + 2Q + 1).",
            last.1, last.0
        ),
    );
    let chart = Chart::lines(
        "section-4",
        "Flow time of a non-preemptive work-conserving policy over that of a schedule that knows the future",
        [Axis::logarithmic("Q, number of small jobs"), Axis::logarithmic("ratio")],
        vec![Series::new("FIFO", ours), Series::new("equation 6", formula).as_reference()],
    );
    let text = "One machine. A job with one map and a reduce of 2Q + 1 units comes first, then Q jobs of \
                one map and one reduce unit each, every other slot, while the long reduce runs and cannot \
                be interrupted.";
    Ok(Section::new(
        "section-4",
        "Figure 1 and section IV: the quick example",
        [text],
        vec![Block::Chart(chart), Block::Comparison(rows), Block::Claims(vec![claim])],
    ))
}

/// What a policy runs on the example of figure 4.
struct Schedule {
    title: &'static str,
    /// By slot, what each machine runs, in words.
    slots: Vec<Vec<String>>,
    /// Total flow time, slots.
    flow: f64,
}

const MACHINES: u32 = 3;

fn schedule(title: &'static str, policy: &str, jobs: &[Job]) -> anyhow::Result<Schedule> {
    let mut slots: Vec<Vec<String>> = Vec::new();
    let completions = completions_on(policy, MACHINES, true, jobs, &mut |slot, served| {
        slots.resize(slot as usize, Vec::new());
        slots[slot as usize - 1] = served.iter().flat_map(in_words).collect();
    })?;
    Ok(Schedule { title, slots, flow: flow_within(jobs, &completions, f64::INFINITY) })
}

fn in_words(job: &SlotService) -> Vec<String> {
    let parts = [(job.maps, "map"), (job.reduces, "reduce")].into_iter().filter(|part| 0 < part.0);
    parts.map(|(count, kind)| format!("{count} {kind} of job {}", job.seq + 1)).collect()
}

fn slot_by_slot(schedules: &[Schedule]) -> Table {
    let length = schedules.iter().map(|schedule| schedule.slots.len()).max().unwrap_or(0);
    let mut columns = vec![Column::new("schedule", "")];
    columns.extend((1..=length).map(|slot| Column::new(&format!("slot {slot}"), "")));
    columns.push(Column::new("total flow time", "slots"));
    let rows = schedules.iter().map(|schedule| {
        let words = |slot: usize| schedule.slots.get(slot).filter(|words| !words.is_empty());
        let mut row = vec![Cell::text(schedule.title)];
        row.extend(
            (0..length).map(|slot| words(slot).map_or(Cell::Empty, |words| Cell::text(words.join(", ")))),
        );
        row.push(Cell::number(schedule.flow));
        row
    });
    Table::new(
        "figure-4",
        "Machines by slot; SRPT lets reduces run beside their job's last maps, which no cluster can",
        columns,
        rows.collect(),
    )
}

/// An instance in which the three schedules differ.
pub(super) fn figure_4() -> anyhow::Result<Section> {
    let jobs = [job(1, 2, 4), job(1, 4, 1)];
    let (srpt, dsrpt) = (schedule("SRPT", "srpt", &jobs)?, schedule("DSRPT", "dsrpt", &jobs)?);
    let asrpt = schedule("ASRPT", "asrpt", &jobs)?;
    let claim = Claim::new(
        "Figure 4, section VI B",
        "Maps are scheduled as in SRPT or earlier, reduces about one slot later; ASRPT is an improvement of \
         DSRPT, and SRPT a bound of both.",
        srpt.flow <= asrpt.flow && asrpt.flow <= dsrpt.flow,
        format!("Total flow times: SRPT {}, DSRPT {}, ASRPT {} slots.", srpt.flow, dsrpt.flow, asrpt.flow),
    );
    Ok(Section::new(
        "figure-4",
        "Figure 4: SRPT, DSRPT and ASRPT on the same jobs",
        [format!(
            "{MACHINES} machines; job 1 has 2 maps and 4 reduce units, job 2 has 4 maps and 1 reduce unit, \
             both arrive in slot 1. (The figure shows an instance without numbers; this one is ours.)"
        )],
        vec![Block::Table(slot_by_slot(&[srpt, dsrpt, asrpt])), Block::Claims(vec![claim])],
    ))
}
