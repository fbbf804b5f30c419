//! The overlap paper on real execution: how three jobs go through map and shuffle beside both of its models, and its
//! policies on slots and a network that are both scarce.
//!
//! Not here: the models themselves and the same policies in them (`paper::overlap`).

use super::RealContext;
use super::common::{blocks, cluster, conditions, faster_than, networked, policies, sleeping, two_stations};
use crate::compare::series::makespan;
use crate::compare::workload::{Arrivals, DataSet, Kind, Order};
use crate::compare::{RunRecord, Workload};
use crate::paper::overlap::{Progress, overlapping, traditional};
use crate::paper::{Axis, Block, Chart, ChartKind, Claim, Paper, Section, Series, Verdict};
use gristmill_runtime::generate;
use gristmill_scheduler::station::Station;
use gristmill_scheduler::units::Bytes;
use gristmill_scheduler::workload::Job;
use gristmill_scheduler::workload::pairs::{Sizes, Stream};
use gristmill_worker::protocol::SlotCounts;
use gristmill_worker::settings::Shuffle;
use std::num::NonZeroU64;

/// Workers of the three jobs, of one slot each.
const WORKERS: u32 = 8;

/// Their slots work at this speed: a sort only notes where its pairs lie, so its maps are over at once otherwise.
const SPEED: f64 = 0.01;

/// Map time of the grep over that of a sort, as in the paper: 10 minutes over 7.
const GREP_RATIO: f64 = 10.0 / 7.0;

/// Shuffle over map time of the first job, as in the paper: 11 minutes over 7.
const RATIO: f64 = 11.0 / 7.0;

/// What each worker's shuffle is held to where policies are compared, bytes in a second.
const NIC: NonZeroU64 = NonZeroU64::new(8_000_000).expect("above 0");

/// Mean time for which a job keeps all map slots busy where policies are compared, seconds.
const MEAN_SECONDS: f64 = 0.6;

/// Sizes are cut at this multiple of the mean, so that one job does not fill the whole run.
const LARGEST: f64 = 8.0;

/// Places at which two curves are compared.
const PLACES: usize = 200;

/// Runs the experiments.
///
/// # Errors
/// A run that fails.
pub(super) fn run(context: &RealContext<'_>) -> anyhow::Result<Paper> {
    let mut sections = vec![figure_4(context)?];
    for load in context.scaled(vec![0.8], vec![0.6, 0.85], vec![0.5, 0.7, 0.85]) {
        sections.push(policies_at(context, load)?);
    }
    Ok(Paper {
        name: "overlap",
        title: "M. Lin, L. Zhang, A. Wierman, J. Tan: Joint Optimization of Overlapping Phases in MapReduce \
                (Performance Evaluation 2013)",
        about: vec![
            "The paper models map and shuffle as two stations that a job passes at once: what is mapped can be \
             shuffled. It shows three jobs on a Hadoop cluster beside that model and beside a traditional tandem, and \
             then policies in the model. Here both run on real processes: master, workers, HTTP shuffle whose rate is \
             held down at each worker, so that the network is scarce."
                .to_owned(),
        ],
        sections,
    })
}

/// Sort, grep, sort, first in first out at the maps, the shuffle shared.
fn figure_4(context: &RealContext<'_>) -> anyhow::Result<Section> {
    let mib: u64 = 1 << 20;
    let bytes = context.scaled(48, 192, 384) * mib;
    let data = |name: &str, kind: generate::Kind, bytes: u64| DataSet {
        name: name.to_owned(),
        kind,
        bytes,
        seed: context.seed,
    };
    let kind = |job: &str, arguments: &[&str]| Kind {
        split_bytes: Some(2 * mib),
        reduces: Some(WORKERS),
        ..Kind::new(job, arguments)
    };
    let sort = || kind("sort", &["{data}/records"]);
    let grep = || Kind {
        reduces: None,
        split_bytes: Some(mib / 32),
        ..kind("grep", &["--count-matches", "[a-z]+e", "{data}/text"])
    };
    let workload = |kinds: Vec<Kind>, text: u64| Workload {
        name: "sort, grep, sort".to_owned(),
        seed: context.seed,
        arrivals: Arrivals::Batch,
        order: Order::Listed,
        total: None,
        redraw: false,
        kinds,
        data: vec![data("records", generate::Kind::Records, bytes), data("text", generate::Kind::Text, text)],
    };
    // Every segment passes the network, and sorts send their pairs.
    let mut config = cluster(WORKERS, 2);
    config.workers.speeds = vec![SPEED];
    config.workers.each.shuffle = Shuffle::Http;
    // Reduces have slots of their own, as in Hadoop, and are not in the way of maps.
    config.workers.each.slots = SlotCounts::Pools { map: 1, reduce: 1 };
    config.workers.each.memory = Bytes::mib(64);
    let sharing = || policies(&[("map-fifo-shuffle-ps", "map-fifo-shuffle-ps")]);
    let probe = mib;
    let alone =
        context.compare("overlap-alone", &workload(vec![sort(), grep()], probe), &config, sharing(), 1)?;
    let first = alone.runs.first().ok_or_else(|| anyhow::anyhow!("the sort alone left no run"))?;
    let [of_sort, of_grep] =
        [0, 1].map(|job| first.jobs.get(job).map_or(0.0, |job| job.slot_seconds[0]) / f64::from(WORKERS));
    let map_seconds = of_sort.max(1e-3);
    let text = (probe as f64 * GREP_RATIO * map_seconds / of_grep.max(1e-6)) as u64;
    let shuffle_bytes = first.jobs.first().map_or(0, |job| job.shuffle_bytes) as f64;
    let rate = shuffle_bytes / (map_seconds * RATIO) / f64::from(WORKERS);
    config.workers.each.nic_bytes_per_second = NonZeroU64::new(rate as u64);
    let three = workload(vec![sort(), grep(), sort()], text);
    let comparison = context.compare("overlap-figure-4", &three, &config, sharing(), 1)?;
    let run = comparison.runs.first().ok_or_else(|| anyhow::anyhow!("the three jobs left no run"))?;
    let network = rate * f64::from(WORKERS);
    let sizes: Vec<[f64; 2]> = run
        .jobs
        .iter()
        .map(|job| [job.slot_seconds[0] / f64::from(WORKERS), job.shuffle_bytes as f64 / network])
        .collect();
    let overlapping = overlapping("map-fifo-shuffle-ps", &sizes)?;
    let traditional = traditional("ps", &sizes)?;
    let words: Vec<String> = sizes.iter().map(|[map, shuffle]| format!("({map:.2}, {shuffle:.2})")).collect();
    let mut section = Section {
        id: "figure-4".to_owned(),
        title: "Figure 4: sort, grep, sort on a cluster, and the two models".to_owned(),
        text: vec![format!(
            "{WORKERS} workers of one slot at {SPEED} of this machine's speed; sorts of {} MiB of records, a grep that \
             counts matches in {:.1} MiB of text; maps first in, first out, the shuffle shared. The network is held to \
             {:.2} MB/s at each worker, chosen so that a sort needs 11/7 as long to shuffle as to map, as in the paper. \
             Sizes as measured, seconds of all slots and of the whole network: {}; the models get them. The grep's \
             combiner leaves little to shuffle, less than the paper's had.",
            bytes / mib,
            text as f64 / mib as f64,
            rate / 1e6,
            words.join(", ")
        )],
        blocks: charts(run, &sizes, &overlapping, &traditional, network),
    };
    section.text.extend(conditions(&comparison));
    section.blocks.extend(blocks("figure-4", &comparison, &["slots-and-lanes"]));
    section.blocks.push(Block::Claims(claims_of_figure_4(run, &sizes, &overlapping, &traditional, network)));
    Ok(section)
}

/// Seconds of the whole map station that a job has had at a time.
fn mapped(run: &RunRecord, job: usize, time: f64) -> f64 {
    let spans = run.spans.iter().filter(|span| span.map && span.job as usize == job);
    spans.map(|span| (time.min(span.to) - span.from).max(0.0)).sum::<f64>() / f64::from(WORKERS)
}

/// Seconds of the whole network that a job has had at a time.
fn shuffled(run: &RunRecord, job: usize, time: f64, network: f64) -> f64 {
    let transfers = run.transfers.iter().filter(|transfer| transfer.job as usize == job);
    let bytes = transfers.map(|transfer| {
        let length = (transfer.to - transfer.from).max(1e-9);
        let part = ((time - transfer.from) / length).clamp(0.0, 1.0);
        transfer.bytes as f64 * part
    });
    bytes.sum::<f64>() / network
}

fn times(end: f64) -> impl Iterator<Item = f64> {
    (0..=PLACES).map(move |place| end * place as f64 / PLACES as f64)
}

fn charts(
    run: &RunRecord,
    sizes: &[[f64; 2]],
    overlapping: &Progress,
    traditional: &Progress,
    network: f64,
) -> Vec<Block> {
    let end = makespan(run);
    let all = [0, 1].map(|station| sizes.iter().map(|size| size[station]).sum::<f64>());
    let real = |station: usize, time: f64| {
        let jobs = 0..sizes.len();
        match station {
            0 => jobs.map(|job| mapped(run, job, time)).sum::<f64>(),
            _ => jobs.map(|job| shuffled(run, job, time, network)).sum::<f64>(),
        }
    };
    let model = |progress: &Progress, station: usize, time: f64| {
        (0..sizes.len()).map(|job| progress.at(time, job)[station]).sum::<f64>()
    };
    let left = |station: usize, id: &str, caption: &str| {
        let series = |name: &str, reference: bool, done: &dyn Fn(f64) -> f64| Series {
            name: name.to_owned(),
            points: times(end).map(|time| (time, (all[station] - done(time)).max(0.0))).collect(),
            reference,
            ..Series::default()
        };
        Block::Chart(Chart {
            id: id.to_owned(),
            caption: caption.to_owned(),
            x: Axis::linear("time, s"),
            y: Axis::linear("work left, s of the station"),
            kind: ChartKind::Lines,
            series: vec![
                series("measured", false, &|time| real(station, time)),
                series("overlapping tandem queue", true, &|time| model(overlapping, station, time)),
                series("traditional tandem queue", true, &|time| model(traditional, station, time)),
            ],
        })
    };
    let by_job = Chart {
        id: "figure-4-jobs".to_owned(),
        caption: "Shuffle work done, by job, measured and in the overlapping model (dashed)".to_owned(),
        x: Axis::linear("time, s"),
        y: Axis::linear("shuffle work done, s"),
        kind: ChartKind::Lines,
        series: (0..sizes.len())
            .flat_map(|job| {
                let name = format!("J'{}", job + 1);
                let measured = times(end).map(|time| (time, shuffled(run, job, time, network))).collect();
                let modelled = times(end).map(|time| (time, overlapping.at(time, job)[1])).collect();
                [
                    Series { name: name.clone(), points: measured, ..Series::default() },
                    Series {
                        name: format!("{name}, model"),
                        points: modelled,
                        reference: true,
                        ..Series::default()
                    },
                ]
            })
            .collect(),
    };
    vec![
        left(0, "figure-4-map", "Work left at the map"),
        left(1, "figure-4-shuffle", "Work left at the shuffle"),
        Block::Chart(by_job),
    ]
}

/// Mean distance between measured and modelled shuffle work over time, as a share of all shuffle work.
fn distance(run: &RunRecord, sizes: &[[f64; 2]], model: &Progress, network: f64) -> f64 {
    let end = makespan(run);
    let all: f64 = sizes.iter().map(|size| size[1]).sum();
    let gaps = times(end).map(|time| {
        let jobs = 0..sizes.len();
        let gap: f64 = jobs.map(|job| shuffled(run, job, time, network) - model.at(time, job)[1]).sum();
        gap.abs()
    });
    gaps.sum::<f64>() / (PLACES + 1) as f64 / all.max(1e-9)
}

fn claims_of_figure_4(
    run: &RunRecord,
    sizes: &[[f64; 2]],
    overlapping: &Progress,
    traditional: &Progress,
    network: f64,
) -> Vec<Claim> {
    let [near, far] = [overlapping, traditional].map(|model| distance(run, sizes, model, network));
    let verdict = if near < 0.05 && 2.0 * near < far {
        Verdict::Holds
    } else if near < far {
        Verdict::Partly
    } else {
        Verdict::Fails
    };
    let end = run.jobs.iter().map(|job| job.shuffle_done).fold(0.0, f64::max);
    let predicted = overlapping.end();
    vec![
        Claim {
            place: "Section 2.2".to_owned(),
            statement: "The shuffle of a real cluster goes as in the overlapping tandem queue, and quite differently \
                        from the traditional one."
                .to_owned(),
            verdict,
            evidence: format!(
                "Mean distance of shuffle work done over time: {:.1} % of all shuffle work from the overlapping model, \
                 {:.1} % from the traditional one (holds below 5 % and less than half of the other).",
                100.0 * near,
                100.0 * far
            ),
        },
        Claim {
            place: "Section 2.2".to_owned(),
            statement: "The overlapping model tells when the last segment is in.".to_owned(),
            verdict: match (end / predicted - 1.0).abs() {
                off if off < 0.1 => Verdict::Holds,
                off if off < 0.2 => Verdict::Partly,
                _ => Verdict::Fails,
            },
            evidence: format!(
                "Measured {end:.2} s, overlapping {predicted:.2} s, traditional {:.2} s.",
                traditional.end()
            ),
        },
    ]
}

/// k-LPS, MaxSRPT and SplitSRPT where map-heavy and shuffle-heavy jobs mix.
fn policies_at(context: &RealContext<'_>, load: f64) -> anyhow::Result<Section> {
    let config = networked(4, 2, NIC);
    let stream = Stream {
        sizes: Sizes::Balanced,
        jobs: context.scaled(6, 15, 80),
        mean: MEAN_SECONDS,
        load,
        swing: 0.0,
    };
    let mut drawn = stream.draw(context.seed);
    for job in &mut drawn {
        job.work = job.work.map(|seconds| seconds.min(LARGEST * MEAN_SECONDS));
    }
    // What was drawn and cut is less than what the load was for: arrivals are moved so that it holds.
    let work = |station: Station| drawn.iter().map(|job| job.work[station]).sum::<f64>();
    let offered =
        work(Station::Map).max(work(Station::Shuffle)) / drawn.last().map_or(1.0, |job| job.arrival);
    let jobs: Vec<Job> = drawn
        .iter()
        .map(|job| {
            two_stations(
                job.arrival * offered / load,
                [job.work[Station::Map], job.work[Station::Shuffle]],
                &config.workers,
                0.1,
            )
        })
        .collect();
    let names = [
        ("k-lps", "k-lps"),
        ("max-srpt", "max-srpt"),
        ("split-srpt", "split-srpt"),
        ("max-srpt head only", "max-srpt:shuffle=head"),
    ];
    let percent = (100.0 * load).round() as u32;
    let name = format!("overlap-load-{percent}");
    let workload = sleeping(&name, context.seed, &jobs, 1.0);
    let repetitions = context.scaled(1, 3, 5);
    let comparison = context.compare(&name, &workload, &config, policies(&names), repetitions)?;
    let mut section = Section {
        id: format!("section-5-load-{percent}"),
        title: format!("Section 5: k-LPS, MaxSRPT and SplitSRPT at load {load}"),
        text: vec![format!(
            "{} jobs, Poisson arrivals; map times log-normal with standard deviation 3.65 times the mean of \
             {MEAN_SECONDS} s, shuffle times those times the cube root of a log-normal ratio (the paper's balanced \
             variant), cut at {LARGEST} means; times between arrivals are such that the busier station has this load until the last \
             arrival; maps sleep, segments are real bytes over {:.0} MB/s at each of 4 workers; \
             sizes known, seed {}, {repetitions} repetitions.",
            jobs.len(),
            NIC.get() as f64 / 1e6,
            context.seed
        )],
        blocks: blocks(
            &format!("load-{percent}"),
            &comparison,
            &["result", "flow-time", "simulated", "stations"],
        ),
    };
    section.text.extend(conditions(&comparison));
    let claim = |statement: &str, one: &str, other: &str| {
        let (verdict, evidence) = faster_than(&comparison, one, &[other]);
        Claim { place: "Section 5.2".to_owned(), statement: statement.to_owned(), verdict, evidence }
    };
    section.blocks.push(Block::Claims(vec![
        claim("MaxSRPT has much smaller response times than k-LPS.", "max-srpt", "k-lps"),
        claim("SplitSRPT has much smaller response times than k-LPS.", "split-srpt", "k-lps"),
        claim("Where sizes are balanced, MaxSRPT is better than SplitSRPT.", "max-srpt", "split-srpt"),
        claim(
            "Not in the paper: serving only the first job at the shuffle, as its text can be read, is worse than going \
             on to the next when the first has nothing to fetch.",
            "max-srpt",
            "max-srpt head only",
        ),
    ]));
    Ok(section)
}
