//! The quick example of section IV, and figure 4: SRPT, DSRPT and ASRPT slot by slot.

use super::runs::{completions_on, flow_within};
use crate::paper::judge::{Seen, every};
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
pub(super) type Ratios = Vec<(f64, f64)>;

/// The online policies that the example is played against, none of which interrupts a reduce.
const ONLINE: [(&str, &str); 4] = [("FIFO", "fifo"), ("Fair", "fair"), ("LRPT", "lrpt"), ("ASRPT", "asrpt")];

/// What the adversary makes of each policy, in the order of [`ONLINE`], and equation 6.
struct Played {
    online: Vec<Ratios>,
    formula: Ratios,
}

/// Plays both cases of section IV against every policy: nothing comes after the job with the long reduce, or small jobs
/// come every other slot while that would run. The worse of the two ratios counts.
fn play() -> anyhow::Result<Played> {
    let mut played = Played { online: vec![Ratios::new(); ONLINE.len()], formula: Ratios::new() };
    for small in SMALL_JOBS {
        let long = job(1, 1, 2 * small + 1);
        let mut jobs = vec![long.clone()];
        jobs.extend((1..=small).map(|index| job(1 + 2 * index, 1, 1)));
        let q = f64::from(small);
        // The schedules that know the future: the long job at once, or every small job at once and the long reduce
        // after them.
        let (alone, offline) = (2.0 * q + 2.0, 2.0 * q + (1.0 + 2.0 * q + 2.0 * q + 1.0));
        for ((_, policy), ratios) in ONLINE.iter().zip(&mut played.online) {
            let flow = |jobs: &[Job]| -> anyhow::Result<f64> {
                let ends = completions_on(policy, 1, false, jobs, &mut |_, _| {})?;
                Ok(flow_within(jobs, &ends, f64::INFINITY))
            };
            let case_one = flow(std::slice::from_ref(&long))? / alone;
            ratios.push((q, case_one.max(flow(&jobs)? / offline)));
        }
        played.formula.push((q, ((2.0 * q + 2.0) + (2.0 * q + 1.0) * q) / offline));
    }
    Ok(played)
}

/// The equation is a lower bound of what a policy that begins at once comes to.
fn beside_equation_6(&((small, ours), (_, formula)): &((f64, f64), (f64, f64))) -> Compared {
    Compared {
        printed: Some(formula),
        note: "equation 6 before simplification, H = 0, L = 1; a lower bound, so ours must not be below"
            .to_owned(),
        ..Compared::new(format!("Q = {small}: lower bound of equation 6"), ours, formula <= ours)
    }
}

/// A ratio grows without end if, from a tenth of the largest number of jobs to that number, it grows at least as the
/// square root of their number does, and is constant if it grows by less than a tenth of the power.
const GROWS: f64 = 0.5;
const CONSTANT: f64 = 0.1;

/// How the ratio grows with the number of jobs over its last tenfold: as which power.
fn power(ratios: &[(f64, f64)]) -> f64 {
    let last = ratios.last().copied().unwrap_or((f64::NAN, f64::NAN));
    let before = ratios.iter().rev().find(|(small, _)| 10.0 * small <= last.0).copied();
    before.map_or(f64::NAN, |before| (last.1 / before.1).ln() / (last.0 / before.0).ln())
}

/// No online policy has a constant competitive ratio: each of these is driven up by the adversary.
pub(super) fn no_constant_ratio(online: &[Ratios]) -> Claim {
    let powers: Vec<f64> = online.iter().map(|ratios| power(ratios)).collect();
    let seen = powers.iter().map(|&power| match power {
        power if GROWS < power => Seen::Yes,
        power if power < CONSTANT => Seen::No,
        _ => Seen::Unclear,
    });
    let words = ONLINE.iter().zip(online).zip(&powers).map(|(((name, _), ratios), power)| {
        let last = ratios.last().copied().unwrap_or((f64::NAN, f64::NAN));
        format!("{name} {:.0} at Q = {:.0}, as Q to the power {power:.2}", last.1, last.0)
    });
    Claim::new(
        "Section IV",
        "No online algorithm has a constant competitive ratio when reduces cannot be interrupted.",
        every(seen),
        format!(
            "Tried on the policies here, not on all there may be. The worse of both cases: {}. (A power above {GROWS} \
             counts as growing, below {CONSTANT} as constant.) One that waits pays when no small job comes (case I, \
             whose flow time should read H + L + 2Q + 1).",
            words.collect::<Vec<_>>().join("; ")
        ),
    )
}

/// The quick example, played against all policies.
pub(super) fn quick_example() -> anyhow::Result<Section> {
    let Played { online, formula } = play()?;
    let claim = no_constant_ratio(&online);
    let ours = online.into_iter().next().unwrap_or_default();
    let rows =
        ours.iter().copied().zip(formula.iter().copied()).map(|pair| beside_equation_6(&pair)).collect();
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
    let claim = in_order([srpt.flow, dsrpt.flow, asrpt.flow]);
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

/// What the figure shows, by total flow times.
pub(super) fn in_order([srpt, dsrpt, asrpt]: [f64; 3]) -> Claim {
    Claim::new(
        "Figure 4, section VI B",
        "Maps are scheduled as in SRPT or earlier, reduces about one slot later; ASRPT is an improvement of \
         DSRPT, and SRPT a bound of both.",
        srpt <= asrpt && asrpt <= dsrpt,
        format!("Total flow times: SRPT {srpt}, DSRPT {dsrpt}, ASRPT {asrpt} slots."),
    )
}
