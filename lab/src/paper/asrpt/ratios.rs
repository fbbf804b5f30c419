//! Efficiency ratios: figures 5 to 8 by setting, figure 9 over time, and what is claimed of them.

use super::runs::{Kept, PROVED, Runs, SCHEDULERS, STEP, STEPS, Scenario};
use crate::paper::{
    Axis, Block, Cell, Chart, ChartKind, Claim, Column, Compared, Section, Series, Table, Verdict,
};
use gristmill_scheduler::metrics::Interval;
use gristmill_scheduler::workload::asrpt::{Cut, SETTINGS, SLOTS};

/// Means and half widths of an independent reference implementation over 30 seeds, by setting and scheduler.
type References = [[(f64, f64); 4]; 4];

/// DSRPT, by setting.
const REFERENCE_DSRPT: [(f64, f64); 4] = [(1.48, 0.029), (1.889, 0.032), (1.42, 0.029), (1.568, 0.03)];

/// ASRPT, FIFO, Fair and LRPT by setting, for each scenario in the order of [`Scenario::ALL`].
const REFERENCES: [References; 4] = [
    [
        [(1.452, 0.027), (2.9, 0.102), (2.523, 0.109), (6.535, 0.89)],
        [(1.53, 0.025), (2.149, 0.056), (2.424, 0.077), (7.292, 0.897)],
        [(1.388, 0.028), (2.13, 0.042), (2.256, 0.029), (3.237, 0.207)],
        [(1.404, 0.025), (1.524, 0.01), (2.111, 0.026), (3.587, 0.212)],
    ],
    [
        [(6.402, 0.286), (6.704, 0.233), (6.889, 0.215), (8.716, 0.448)],
        [(3.289, 0.105), (3.732, 0.065), (3.801, 0.055), (8.126, 0.843)],
        [(5.623, 0.327), (5.73, 0.309), (6.051, 0.263), (6.379, 0.188)],
        [(2.865, 0.119), (2.966, 0.106), (3.317, 0.079), (4.471, 0.077)],
    ],
    [
        [(10.272, 0.462), (10.484, 0.417), (10.438, 0.424), (11.725, 0.396)],
        [(4.42, 0.14), (4.806, 0.089), (4.819, 0.082), (8.217, 0.445)],
        [(8.603, 0.384), (8.705, 0.369), (8.76, 0.355), (9.165, 0.29)],
        [(3.729, 0.139), (3.824, 0.129), (4.137, 0.113), (5.193, 0.051)],
    ],
    [
        [(3.067, 0.072), (3.525, 0.042), (3.869, 0.058), (6.157, 0.637)],
        [(2.05, 0.057), (2.551, 0.043), (2.701, 0.07), (7.096, 1.068)],
        [(2.603, 0.116), (2.796, 0.095), (3.352, 0.065), (3.907, 0.09)],
        [(1.717, 0.049), (1.858, 0.032), (2.313, 0.015), (3.951, 0.201)],
    ],
];

/// Slots of the reference's convergence.
const REFERENCE_SLOTS: [u32; 6] = [50, 100, 200, 300, 400, 500];

/// The reference's ratios within the first slots, by preemptive or even, then by scheduler.
const REFERENCE_WITHIN: [[[f64; 6]; 4]; 2] = [
    [
        [1.48, 1.43, 1.41, 1.40, 1.40, 1.40],
        [1.54, 1.53, 1.53, 1.52, 1.52, 1.52],
        [1.96, 2.04, 2.08, 2.10, 2.11, 2.11],
        [2.70, 3.19, 3.46, 3.61, 3.62, 3.58],
    ],
    [
        [3.09, 2.95, 2.89, 2.82, 2.83, 2.85],
        [3.13, 3.03, 2.98, 2.93, 2.93, 2.95],
        [3.35, 3.32, 3.30, 3.27, 3.28, 3.30],
        [3.87, 4.15, 4.35, 4.41, 4.44, 4.44],
    ],
];

/// Why ratios of drawn cuts may differ where many jobs have fewer than ten units of reduce work.
const DRAWN: &str = "the number of tasks is drawn from 1 to the smaller of 10 and the units; drawn from 1 to 10 and \
                     then capped by the units, jobs have more and shorter tasks, and this ratio is about 0.1 lower";

/// The setting of figure 9.
const UNIFORM_SMALL: usize = 3;

/// The rivals of ASRPT in the figures, as places in `SCHEDULERS`.
const RIVALS: [usize; 3] = [1, 2, 3];

fn reference(setting: usize, scenario: usize, scheduler: usize) -> Option<(f64, f64)> {
    match SCHEDULERS[scheduler].title {
        "DSRPT" => (scenario == 0).then(|| REFERENCE_DSRPT[setting]),
        _ => Some(REFERENCES[scenario][setting][scheduler]),
    }
}

/// A mean beside the reference: it agrees if the 95 % intervals overlap, and partly if they miss each other by less
/// than their own width.
fn compared(what: String, ours: Interval, reference: (f64, f64), note: &str) -> Compared {
    let half = ours.half_width.unwrap_or(0.0) + reference.1;
    let verdict = match (ours.mean - reference.0).abs() {
        gap if gap <= half => Verdict::Holds,
        gap if gap <= 2.0 * half => Verdict::Partly,
        _ => Verdict::Fails,
    };
    Compared {
        what,
        printed: None,
        reference: Some(reference),
        ours: ours.mean,
        half_width: ours.half_width,
        verdict,
        note: note.to_owned(),
    }
}

fn cell(interval: Option<Interval>) -> Cell {
    interval.map_or(Cell::Empty, |interval| Cell::Number {
        value: interval.mean,
        half_width: interval.half_width,
    })
}

/// The efficiency ratios, one figure for each setting.
pub(super) fn figures_5_to_8(runs: &Runs) -> Vec<Section> {
    let section = |setting: usize| {
        let number = 5 + setting;
        let title = SETTINGS[setting].title;
        let names = Scenario::ALL.map(Scenario::name);
        let mean = |scenario, scheduler| runs.mean([setting, scenario, scheduler], |kept| kept.ratio);
        let series = SCHEDULERS.iter().enumerate().map(|(scheduler, named)| {
            let bars: Vec<(usize, Interval)> = (0..names.len())
                .filter_map(|scenario| Some((scenario, mean(scenario, scheduler)?)))
                .collect();
            Series {
                name: named.title.to_owned(),
                points: bars.iter().map(|(scenario, bar)| (*scenario as f64, bar.mean)).collect(),
                half_widths: bars.iter().map(|(_, bar)| bar.half_width.unwrap_or(0.0)).collect(),
                reference: false,
            }
        });
        let chart = Chart {
            id: format!("figure-{number}"),
            caption: format!("Efficiency ratio by scheduler: total flow time over the bound; {title}"),
            x: Axis::names("scenario and cut of the reduces", names.clone()),
            y: Axis::linear("efficiency ratio"),
            kind: ChartKind::Bars,
            series: series.collect(),
        };
        let all = (0..names.len()).flat_map(|scenario| (0..SCHEDULERS.len()).map(move |s| (scenario, s)));
        let rows = all.filter_map(|(scenario, scheduler)| {
            let what = format!("{}, {}", SCHEDULERS[scheduler].title, names[scenario]);
            let drawn = matches!(Scenario::ALL[scenario], Scenario::NonPreemptive(Cut::Even | Cut::Random));
            let note = if SETTINGS[setting].name == "exp-small" && drawn { DRAWN } else { "" };
            Some(compared(what, mean(scenario, scheduler)?, reference(setting, scenario, scheduler)?, note))
        });
        Section {
            id: format!("figure-{number}"),
            title: format!("Figure {number}: efficiency ratio, {title}"),
            text: vec![format!(
                "{}. Total flow time until all jobs have ended, over that of SRPT without precedence.",
                runs.seeds_in_words()
            )],
            blocks: vec![Block::Chart(chart), Block::Comparison(rows.collect())],
        }
    };
    (0..SETTINGS.len()).map(section).collect()
}

/// The convergence of the ratios.
pub(super) fn figure_9(runs: &Runs) -> Section {
    let mut blocks = Vec::new();
    let mut rows = Vec::new();
    for (scenario, id) in [(0, "preemptive"), (1, "non-preemptive")] {
        let at = |scheduler: usize, step: usize| {
            runs.mean([UNIFORM_SMALL, scenario, scheduler], |kept| kept.within[step])
        };
        let series = (0..4).map(|scheduler| {
            let points: Vec<(f64, Interval)> = (0..STEPS)
                .filter_map(|step| Some((f64::from(STEP) * (step + 1) as f64, at(scheduler, step)?)))
                .collect();
            Series {
                name: SCHEDULERS[scheduler].title.to_owned(),
                points: points.iter().map(|(slots, ratio)| (*slots, ratio.mean)).collect(),
                ..Series::default()
            }
        });
        blocks.push(Block::Chart(Chart {
            id: format!("figure-9-{id}"),
            caption: format!("Efficiency ratio within the first slots, {}", Scenario::ALL[scenario].name()),
            x: Axis::linear("total time T, slots"),
            y: Axis::linear("efficiency ratio"),
            kind: ChartKind::Lines,
            series: series.collect(),
        }));
        for scheduler in 0..4 {
            for (place, slots) in REFERENCE_SLOTS.into_iter().enumerate() {
                let step = (slots / STEP) as usize - 1;
                let half = REFERENCES[scenario][UNIFORM_SMALL][scheduler].1;
                let reference = (REFERENCE_WITHIN[scenario][scheduler][place], half);
                let what = format!("{}, {id}, T = {slots}", SCHEDULERS[scheduler].title);
                let note = "the reference's half width is that of its drained ratio";
                rows.extend(at(scheduler, step).map(|ours| compared(what, ours, reference, note)));
            }
        }
    }
    blocks.push(Block::Comparison(rows));
    blocks.push(Block::Claims(vec![constant_ratio(runs)]));
    Section {
        id: "figure-9".to_owned(),
        title: "Figure 9: convergence of efficiency ratios, U[10,50] map, U[10,20] reduce".to_owned(),
        text: vec![format!(
            "{}. Flow times count slots up to T only, those of jobs that have not ended included, here and in the \
             bound; the mean of the seeds' ratios is drawn.",
            runs.seeds_in_words()
        )],
        blocks,
    }
}

/// Theorems 2 and 3: the ratio of any work-conserving scheduler tends to a constant.
fn constant_ratio(runs: &Runs) -> Claim {
    let change = |scenario: usize, scheduler: usize| {
        let at = |step: usize| {
            let mean = runs.mean([UNIFORM_SMALL, scenario, scheduler], |kept| kept.within[step]);
            mean.map_or(f64::NAN, |mean| mean.mean)
        };
        at(STEPS - 1) / at(STEPS / 2 - 1) - 1.0
    };
    let changes: Vec<(String, f64)> = [(0, "preemptive"), (1, "non-preemptive")]
        .into_iter()
        .flat_map(|(scenario, name)| (0..4).map(move |scheduler| (scenario, name, scheduler)))
        .map(|(scenario, name, scheduler)| {
            (format!("{} {name}", SCHEDULERS[scheduler].title), change(scenario, scheduler))
        })
        .collect();
    let largest = changes.iter().max_by(|(_, a), (_, b)| a.abs().total_cmp(&b.abs()));
    let (name, change) = largest.cloned().unwrap_or((String::new(), f64::NAN));
    Claim {
        place: "Theorems 2 and 3, section VII B".to_owned(),
        statement: "Any work-conserving scheduler, even LRPT, has a constant efficiency ratio.".to_owned(),
        verdict: if change.abs() < 0.1 { Verdict::Holds } else { Verdict::Open },
        evidence: format!(
            "From T = {} to T = {SLOTS} the ratio that changes most, that of {name}, changes by {:+.1} % (it is taken \
             to settle if that is less than 10 %).",
            SLOTS / 2,
            100.0 * change
        ),
    }
}

/// Section VI and VII B in claims.
pub(super) fn claims(runs: &Runs) -> Section {
    Section {
        id: "theorem-4".to_owned(),
        title: "Theorem 4, its corollaries, and section VII B: what is claimed of ASRPT".to_owned(),
        text: vec![format!("All runs of figures 5 to 8: {} in each setting.", runs.seeds_in_words())],
        blocks: vec![Block::Claims(vec![
            asrpt_is_best(runs),
            lrpt_is_worst(runs),
            asrpt_against_dsrpt(runs),
            below_three_bounds(runs),
            ratio_of_two(runs),
        ])],
    }
}

/// Every setting and scenario.
fn cases() -> impl Iterator<Item = (usize, usize)> {
    (0..SETTINGS.len()).flat_map(|setting| (0..Scenario::ALL.len()).map(move |scenario| (setting, scenario)))
}

/// The mean over seeds of how much the ratio of one scheduler is above that of another.
fn difference(runs: &Runs, setting: usize, scenario: usize, above: usize, below: usize) -> Option<Interval> {
    let pairs = runs.of(setting, scenario, above).iter().zip(runs.of(setting, scenario, below));
    let differences: Vec<f64> = pairs.map(|(above, below)| above.ratio - below.ratio).collect();
    Interval::of(&differences)
}

/// Whether differences are above 0 everywhere, and the least of them in words.
fn all_above(differences: &[(String, Interval)]) -> (Verdict, String) {
    let above = differences.iter().filter(|(_, d)| 0.0 < d.mean).count();
    let clear = differences.iter().filter(|(_, d)| 0.0 < d.mean - d.half_width.unwrap_or(0.0)).count();
    let verdict = match above {
        above if above == differences.len() => Verdict::Holds,
        0 => Verdict::Fails,
        _ => Verdict::Partly,
    };
    let words = differences.iter().min_by(|(_, a), (_, b)| a.mean.total_cmp(&b.mean)).map(|(what, least)| {
        let half = least.half_width.unwrap_or(0.0);
        format!(
            "Above on average in {above} of {} comparisons, by more than the 95 % interval of the seeds' differences \
             in {clear}; closest: {what}, {:+.3} ± {half:.3}.",
            differences.len(),
            least.mean
        )
    });
    (verdict, words.unwrap_or_default())
}

fn asrpt_is_best(runs: &Runs) -> Claim {
    let differences = cases().flat_map(|(setting, scenario)| {
        RIVALS.into_iter().filter_map(move |rival| {
            let (name, cut) = (SETTINGS[setting].name, Scenario::ALL[scenario].name());
            let what = format!("{} in {name}, {cut}", SCHEDULERS[rival].title);
            Some((what, difference(runs, setting, scenario, rival, 0)?))
        })
    });
    let (verdict, words) = all_above(&differences.collect::<Vec<_>>());
    Claim {
        place: "Section VII B".to_owned(),
        statement:
            "The total flow time of ASRPT is smaller than that of FIFO, Fair and LRPT in all settings, \
                    preemptive and not."
                .to_owned(),
        verdict,
        evidence: format!("Ratios of the others minus that of ASRPT, with all three cuts. {words}"),
    }
}

fn lrpt_is_worst(runs: &Runs) -> Claim {
    let differences = cases().flat_map(|(setting, scenario)| {
        [0, 1, 2].into_iter().filter_map(move |other| {
            let (name, cut) = (SETTINGS[setting].name, Scenario::ALL[scenario].name());
            let what = format!("{} in {name}, {cut}", SCHEDULERS[other].title);
            Some((what, difference(runs, setting, scenario, 3, other)?))
        })
    });
    let (verdict, words) = all_above(&differences.collect::<Vec<_>>());
    Claim {
        place: "Section VII A".to_owned(),
        statement: "LRPT shows how poorly work-conserving schedulers can do.".to_owned(),
        verdict,
        evidence: format!("Ratio of LRPT minus that of the others. {words}"),
    }
}

fn asrpt_against_dsrpt(runs: &Runs) -> Claim {
    let dsrpt = SCHEDULERS.len() - 1;
    let pairs =
        (0..SETTINGS.len()).flat_map(|setting| runs.of(setting, 0, 0).iter().zip(runs.of(setting, 0, dsrpt)));
    let gaps: Vec<f64> = pairs.map(|(asrpt, dsrpt)| dsrpt.ratio - asrpt.ratio).collect();
    let worse = gaps.iter().filter(|&&gap| gap < 0.0).count();
    let least = gaps.iter().copied().fold(f64::INFINITY, f64::min);
    Claim {
        place: "Corollary 2".to_owned(),
        statement: "The total flow time of ASRPT is not greater than that of DSRPT.".to_owned(),
        verdict: if worse == 0 { Verdict::Holds } else { Verdict::Fails },
        evidence: format!(
            "Greater in {worse} of {} preemptive runs; the least gain in the ratio is {least:.3}. The paper's argument \
             is a sketch; small random instances are tested beside these runs.",
            gaps.len()
        ),
    }
}

/// The largest ratio of a scheduler over all preemptive runs.
fn largest(runs: &Runs, scheduler: usize) -> f64 {
    let ratios =
        (0..SETTINGS.len()).flat_map(|setting| runs.of(setting, 0, scheduler)).map(|kept| kept.ratio);
    ratios.fold(0.0, f64::max)
}

fn below_three_bounds(runs: &Runs) -> Claim {
    let [asrpt, dsrpt] = [0, SCHEDULERS.len() - 1].map(|scheduler| largest(runs, scheduler));
    Claim {
        place: "Theorem 4, Corollaries 1 and 2".to_owned(),
        statement:
            "DSRPT and ASRPT, preemptive, are at most three times the bound of Lemma 1 as n goes to infinity."
                .to_owned(),
        verdict: if asrpt.max(dsrpt) < PROVED { Verdict::Holds } else { Verdict::Fails },
        evidence: format!("Largest ratio of all runs: DSRPT {dsrpt:.2}, ASRPT {asrpt:.2}."),
    }
}

fn ratio_of_two(runs: &Runs) -> Claim {
    let asrpt = largest(runs, 0);
    Claim {
        place: "Corollary 2".to_owned(),
        statement: "ASRPT has an efficiency ratio of 2 in the preemptive scenario.".to_owned(),
        verdict: if asrpt <= 2.0 { Verdict::Holds } else { Verdict::Open },
        evidence: format!(
            "The ratio is to the optimum, which is at least the bound; ASRPT is at most {asrpt:.2} times the bound in \
             any run. (The list of contributions says \"less than 2\", the corollary 2.)"
        ),
    }
}

/// What the paper leaves open and how much depends on it.
pub(super) fn left_open(runs: &Runs) -> Section {
    let mut rows = Vec::new();
    for (setting, scenario) in cases() {
        for (scheduler, named) in SCHEDULERS.iter().enumerate() {
            let mean = |number: &dyn Fn(&Kept) -> f64| runs.mean([setting, scenario, scheduler], number);
            let Some(drained) = mean(&|kept| kept.ratio) else { continue };
            let within = mean(&|kept| kept.within[STEPS - 1]);
            let change =
                within.map_or(Cell::Empty, |within| Cell::number(100.0 * (within.mean / drained.mean - 1.0)));
            let words = [SETTINGS[setting].title.to_owned(), Scenario::ALL[scenario].name()];
            let mut row: Vec<Cell> = words.into_iter().map(Cell::text).collect();
            row.extend([Cell::text(named.title), cell(Some(drained)), cell(within), change]);
            rows.push(row);
        }
    }
    let table = Table {
        id: "left-open".to_owned(),
        caption: "Ratios until all jobs have ended, and within the slots of arrivals".to_owned(),
        columns: vec![
            Column::new("setting", ""),
            Column::new("scenario and cut", ""),
            Column::new("scheduler", ""),
            Column::new("until all ended", ""),
            Column::new(&format!("within {SLOTS} slots"), ""),
            Column::new("change", "%"),
        ],
        rows,
    };
    Section {
        id: "left-open".to_owned(),
        title: "What the paper leaves open: how reduces are cut, and what is counted".to_owned(),
        text: vec![
            "The text gives totals \"in T time slots\": whether flow times are counted until all jobs have ended or \
             up to T changes preemptive ratios little and non-preemptive ones by some per cent. The cut of the \
             reduces decides the non-preemptive ratios: the longer the tasks, the less any policy can do, since \
             the bound may spread a job over all machines. No ranking depends on either."
                .to_owned(),
        ],
        blocks: vec![Block::Table(table)],
    }
}
