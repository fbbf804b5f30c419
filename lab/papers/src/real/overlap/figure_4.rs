//! Figure 4: sort, grep, sort, with first in first out at the maps and a shared shuffle.

use super::super::common::{blocks, cluster, policies, section as section_of, workload as workload_of};
use super::super::context::RealContext;
use super::WORDS;
use super::beside_models::{ModelDistances, ModelledRun, WARM_UP, WORKERS, claims};
use crate::prelude::*;
use gristmill_lab::compare::statistics::mean;
use gristmill_lab::compare::workload::{Arrivals, DataSet, JobKind};
use gristmill_lab::compare::{Comparison, Contender, JobRun, Workload};
use gristmill_runtime::cluster::ClusterConfig;
use gristmill_runtime::generate;
use gristmill_scheduler::units::Bytes;
use gristmill_worker::protocol::Slots;
use gristmill_worker::settings::Shuffle;
use std::num::{NonZeroU32, NonZeroU64};

/// Speed of their slots. A sort only records the positions of its pairs, so at full speed its maps would
/// end at once.
const SPEED: f64 = 0.01;

/// Map time of the grep divided by that of a sort, as in the paper: 10 minutes over 7.
const GREP_RATIO: f64 = 10.0 / 7.0;

/// Shuffle time divided by map time of the first job, as in the paper: 11 minutes over 7.
const RATIO: f64 = 11.0 / 7.0;

/// Maximum relative difference of the bytes of the two sorts of a run.
const BYTES_UNEQUAL_MAX: f64 = 0.05;

/// Maximum relative difference of their mean map times. They differ by what else runs: the models get the measured times.
const MAPS_UNEQUAL_MAX: f64 = 0.1;

/// Bytes of a sort that runs before the three jobs, a map on each worker, and time after its arrival at which they arrive,
/// seconds. The first map of a process takes several times as long as later ones.
const WARM_UP_BYTES: u64 = WORKERS as u64 * 2 * MIB;
const WARM_UP_SECONDS: f64 = 8.0;

const MIB: u64 = 1 << 20;

fn kind(job: &str, arguments: &[&str]) -> JobKind {
    JobKind { split_bytes: Some(2 * MIB), reduces: Some(WORKERS), ..JobKind::new(job, arguments) }
}

fn sort() -> JobKind {
    kind("sort", &["{data}/records"])
}

fn grep() -> JobKind {
    JobKind {
        reduces: None,
        split_bytes: Some(MIB / 32),
        ..kind("grep", &["--count-matches", "[a-z]+e", "{data}/text"])
    }
}

/// Returns a workload whose sorts read this many bytes of records, and whose grep reads this many of text. A small sort
/// comes first.
fn workload(context: &RealContext<'_>, kinds: &[JobKind], records: u64, text: u64) -> Workload {
    let seed = context.first_seed;
    let data = |name: &str, kind, bytes| DataSet { name: name.to_owned(), kind, bytes, seed };
    let data = vec![
        data("warm-up", generate::Kind::Records, WARM_UP_BYTES),
        data("records", generate::Kind::Records, records),
        data("text", generate::Kind::Text, text),
    ];
    let kinds = [&[kind("sort", &["{data}/warm-up"])], kinds].concat();
    let times = (0..kinds.len()).map(|job| if job < WARM_UP { 0.0 } else { WARM_UP_SECONDS });
    let arrivals = Arrivals::Times(times.collect());
    Workload { redraw: false, ..workload_of("sort, grep, sort", seed, arrivals, kinds, data) }
}

fn config() -> ClusterConfig {
    let mut config = cluster(WORKERS, 2);
    // Its policy looks at no size, so none is measured beforehand.
    config.deciders.estimator = "tasks".to_owned();
    config.workers.speeds = vec![SPEED];
    // Every segment passes the network, and sorts send their pairs.
    config.workers.each.shuffle = Shuffle::Http;
    // Reduces have slots of their own, as in Hadoop, and do not block maps. None waits for another: it would move to an
    // idle worker, and its segments would be sent twice.
    config.workers.each.slots = Slots::Pools { map: 1, reduce: 3 };
    // Segments stay in memory: spilled ones are compressed, and equal sorts would move different bytes.
    config.workers.each.memory = Bytes::mib(512);
    config
}

fn sharing() -> Vec<Contender> {
    policies(&[("map-fifo-shuffle-ps", "map-fifo-shuffle-ps")])
}

/// Amounts that make the three jobs as in the paper on this machine.
struct MachineScale {
    /// Bytes of the grep's text.
    text: u64,
    /// Rate limit of each worker's shuffle, in bytes per second.
    rate: f64,
}

/// Measures a sort and a grep that run alone.
fn scale(context: &RealContext<'_>, records: u64) -> anyhow::Result<MachineScale> {
    const PROBE: u64 = MIB;
    let probe = workload(context, &[sort(), grep()], records, PROBE);
    let alone = context.compare("overlap-alone", &probe, &config(), sharing(), 1)?;
    let first = alone.runs.first().ok_or_else(|| anyhow::anyhow!("the sort alone left no run"))?;
    let [of_sort, of_grep] = [WARM_UP, WARM_UP + 1]
        .map(|job| first.jobs.get(job).map_or(0.0, |job| job.usage.slot_seconds[0]) / f64::from(WORKERS));
    let map_seconds = of_sort.max(1e-3);
    let shuffle_bytes = first.jobs.get(WARM_UP).map_or(0, |job| job.shuffle_bytes) as f64;
    Ok(MachineScale {
        text: (PROBE as f64 * GREP_RATIO * map_seconds / of_grep.max(1e-6)) as u64,
        rate: shuffle_bytes / (map_seconds * RATIO) / f64::from(WORKERS),
    })
}

pub(super) fn section(context: &RealContext<'_>) -> anyhow::Result<Section> {
    let records = context.scaled(48, 192, 384) * MIB;
    let MachineScale { text, rate } = scale(context, records)?;
    let mut config = config();
    config.workers.each.nic_bytes_per_second = NonZeroU64::new(rate as u64);
    let three = workload(context, &[sort(), grep(), sort()], records, text);
    let repetitions = context.scaled(1, 4, 6);
    // Maps at a hundredth of a processor's speed take longer while other clusters use its caches.
    let alone = NonZeroU32::MIN;
    let comparison =
        context.compare_at_once(alone, "overlap-figure-4", &three, &config, (sharing(), repetitions))?;
    let run = comparison.runs.first().ok_or_else(|| anyhow::anyhow!("the three jobs left no run"))?;
    let measured = ModelledRun::new(run, rate * f64::from(WORKERS))?;
    let all = comparison
        .runs
        .iter()
        .map(|run| Ok(ModelledRun::new(run, rate * f64::from(WORKERS))?.compare_models()));
    let all = all.collect::<anyhow::Result<Vec<ModelDistances>>>()?;
    let words = measured.sizes.iter().map(|[map, shuffle]| format!("({map:.2}, {shuffle:.2})"));
    let holes = holes![
        workers = WORKERS,
        speed = SPEED,
        warm_up = WARM_UP_BYTES / MIB,
        later = WARM_UP_SECONDS,
        records = records / MIB,
        text = text as f64 / MIB as f64,
        rate = rate / 1e6,
        sizes = words.collect::<Vec<_>>().join(", "),
        repetitions,
    ];
    let claims = claims(&all, unequal_sorts(&comparison));
    let mut shown = measured.charts();
    shown.extend(blocks("figure-4", &comparison, &["slots-and-lanes"]));
    Ok(section_of((&WORDS, "figure-4", holes), &comparison, shown, claims))
}

/// Returns the reason why the runs cannot be judged: the two sorts of a run moved different bytes, or those of all runs
/// took different slot time at map.
fn unequal_sorts(comparison: &Comparison) -> Option<String> {
    let sorts: Vec<[&JobRun; 2]> =
        comparison.runs.iter().filter_map(|run| Some([run.jobs.get(WARM_UP)?, run.jobs.last()?])).collect();
    let apart = |[one, other]: [f64; 2]| (one - other).abs() / one.max(other);
    let megabytes = sorts.iter().map(|sorts| sorts.map(|job| job.shuffle_bytes as f64 / 1e6));
    let bytes = megabytes.max_by(|one, other| apart(*one).total_cmp(&apart(*other)))?;
    let maps = [0, 1].map(|sort| mean(sorts.iter().map(|sorts| sorts[sort].usage.slot_seconds[0])));
    let seconds = [maps[0]?, maps[1]?];
    (BYTES_UNEQUAL_MAX < apart(bytes) || MAPS_UNEQUAL_MAX < apart(seconds)).then(|| {
        let ([one, other], [first, last]) = (bytes, seconds);
        format!(
            "Not comparable: the equal sorts of a run moved {one:.1} and {other:.1} MB, and their maps took \
             {first:.1} and {last:.1} s on average"
        )
    })
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::real::tests::made_up::flows;
    use gristmill_lab::compare::testing::job;

    #[test]
    fn runs_whose_equal_sorts_differ_are_not_judged() {
        let reason = |bytes: u64, seconds: f64| {
            let mut comparison = flows(&[("shared", &[1.0])]);
            let three = [(1, 4.0), (2, 9.0), (3, 4.0)].map(|(place, ended)| job(place, 0.0, ended));
            comparison.runs[0].jobs = [&[job(0, 0.0, 1.0)], &three[..]].concat();
            let last = &mut comparison.runs[0].jobs[3];
            (last.shuffle_bytes, last.usage.slot_seconds[0]) = (bytes, seconds);
            unequal_sorts(&comparison)
        };
        // The first sort moved 1000 bytes, and its maps took 2 s.
        assert_eq!(reason(1040, 2.0), None);
        assert!(reason(1060, 2.0).is_some());
        assert_eq!(reason(1000, 2.2), None);
        assert!(reason(1000, 2.3).is_some_and(|words| words.contains("took 2.0 and 2.3 s")));
    }
}
