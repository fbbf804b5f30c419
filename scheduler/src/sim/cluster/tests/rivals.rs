//! Policies from the literature against the mean response times that queueing theory gives them: Poisson arrivals at one
//! slot, and jobs of so short maps that they are as good as interrupted at any time.

use super::*;
use crate::estimate::Oracle;
use crate::policy::by_name;
use crate::sim::bound;
use rand::SeedableRng as _;
use rand_chacha::ChaCha8Rng;

const LOAD: f64 = 0.6;
const JOBS: usize = 4_000;

/// Longest map, in mean sizes of jobs.
const MAP: f64 = 0.2;

/// Law of sizes with mean 1: density, and inverse of the distribution.
struct SizeLaw {
    density: fn(f64) -> f64,
    draw: fn(&mut ChaCha8Rng) -> f64,
    /// Size that is hardly exceeded.
    most: f64,
}

/// Nine of ten jobs have a mean of 0.5, the others one of 5.5: the longer a job has run, the longer it is likely to run.
const VARIED: SizeLaw = SizeLaw {
    density: |size| 1.8 * (-2.0 * size).exp() + 0.1 / 5.5 * (-size / 5.5).exp(),
    draw: |random| {
        let mean = if random.random::<f64>() < 0.9 { 0.5 } else { 5.5 };
        -mean * (1.0 - random.random::<f64>()).ln()
    },
    most: 80.0,
};

/// Uniform from 0.5 to 1.5.
const ALIKE: SizeLaw = SizeLaw {
    density: |size| if (0.5..1.5).contains(&size) { 1.0 } else { 0.0 },
    draw: |random| 0.5 + random.random::<f64>(),
    most: 1.5,
};

impl SizeLaw {
    fn jobs(&self, seed: u64) -> Vec<Job> {
        let mut random = ChaCha8Rng::seed_from_u64(seed);
        let mut arrival = 0.0;
        let mut job = |_| {
            arrival -= (1.0 - random.random::<f64>()).ln() / LOAD;
            let size = (self.draw)(&mut random);
            let maps = (size / MAP).ceil().max(1.0);
            Job { maps: vec![size / maps; maps as usize], ..job(arrival, &[], &[]) }
        };
        (0..JOBS).map(&mut job).collect()
    }

    /// Returns the mean response time of a policy on one slot, simulated.
    fn mean(&self, policy: &str, seed: u64) -> f64 {
        let jobs = self.jobs(seed);
        let deciders =
            Deciders { estimator: Some(Box::new(Oracle)), ..Deciders::with_policy(by_name(policy).unwrap()) };
        let mut flow = 0.0;
        let mut sink = |record: &JobRecord| flow += record.flow();
        run(&Config::uniform(1, Slots::Unified(1)), deciders, jobs, &mut (), &mut sink).unwrap();
        flow / JOBS as f64
    }

    /// Integrates the response time of a size over all sizes, which `response` gets with the moments up to it.
    fn integrate(&self, response: impl Fn(&Moments, f64) -> f64) -> f64 {
        const STEPS: usize = 20_000;
        let step = self.most / STEPS as f64;
        let mut moments = Moments::default();
        let mut mean = 0.0;
        for place in 0..STEPS {
            let size = (place as f64 + 0.5) * step;
            let mass = (self.density)(size) * step;
            moments.below += mass;
            moments.first += size * mass;
            moments.second += size * size * mass;
            mean += mass * response(&moments, size);
        }
        mean
    }
}

/// Moments of the sizes up to one.
#[derive(Default)]
struct Moments {
    below: f64,
    first: f64,
    second: f64,
}

/// Kleinrock II, 4.6: foreground-background.
fn foreground_background(law: &SizeLaw) -> f64 {
    law.integrate(|moments, size| {
        let above = 1.0 - moments.below;
        let rest = 1.0 - LOAD * (moments.first + size * above);
        LOAD * (moments.second + size * size * above) / (2.0 * rest * rest) + size / rest
    })
}

/// Harchol-Balter, chapter 32: preemptive shortest job first.
fn shortest_job_first(law: &SizeLaw) -> f64 {
    law.integrate(|moments, size| {
        let rest = 1.0 - LOAD * moments.first;
        LOAD * moments.second / (2.0 * rest * rest) + size / rest
    })
}

/// Pollaczek and Khinchine: first in, first out.
fn first_in_first_out(law: &SizeLaw) -> f64 {
    let second = law.integrate(|_, size| size * size);
    1.0 + LOAD * second / (2.0 * (1.0 - LOAD))
}

/// Returns the flow times of a policy on one slot, in the order of arrival.
fn flows(policy: &str, jobs: &[Job]) -> Vec<f64> {
    let deciders =
        Deciders { estimator: Some(Box::new(Oracle)), ..Deciders::with_policy(by_name(policy).unwrap()) };
    let mut flows = vec![0.0; jobs.len()];
    let mut sink = |record: &JobRecord| flows[record.seq as usize] = record.flow();
    run(&Config::uniform(1, Slots::Unified(1)), deciders, jobs.to_vec(), &mut (), &mut sink).unwrap();
    flows
}

/// Friedman and Henderson 2003, theorem 1: by their order of ends under equal sharing, no job ends later than by that.
#[test]
fn no_job_ends_later_under_fsp_than_by_equal_sharing_but_for_a_map() {
    let mut jobs = VARIED.jobs(4);
    jobs.truncate(1_000);
    // Equal sharing, exact: the job with the least left ends first.
    let mut wanted = vec![0.0; jobs.len()];
    let (mut now, mut next, mut present) = (0.0, 0, Vec::<(f64, usize)>::new());
    while next < jobs.len() || !present.is_empty() {
        let arrival = jobs.get(next).map_or(f64::INFINITY, |job| job.arrival);
        let least = present.iter().map(|(left, _)| *left).fold(f64::INFINITY, f64::min);
        let until = arrival.min(now + least * present.len() as f64);
        let share = (until - now) / present.len().max(1) as f64;
        present.iter_mut().for_each(|(left, _)| *left -= share);
        now = until;
        for (_, seq) in present.extract_if(.., |(left, _)| *left < 1e-9) {
            wanted[seq] = now - jobs[seq].arrival;
        }
        if now == arrival {
            present.push((jobs[next].maps.iter().sum(), next));
            next += 1;
        }
    }
    let found = flows("fsp", &jobs);
    let late = found.iter().zip(&wanted).map(|(found, wanted)| found - wanted).fold(0.0, f64::max);
    assert!(late < MAP, "a job ends {late} s later, and a map takes at most {MAP} s");
    // `psjf` has no such promise, and this rule sees it.
    let unfair = flows("psjf", &jobs);
    assert!(unfair.iter().zip(&wanted).any(|(found, wanted)| wanted + 1.0 < *found));
    let mean = |flows: &[f64]| flows.iter().sum::<f64>() / flows.len() as f64;
    assert!(mean(&found) < 0.9 * mean(&wanted), "{} and {}", mean(&found), mean(&wanted));
}

/// Yu and Scully 2024: the tail of flow times is shorter than that of `fifo`, which `psjf` makes longer.
#[test]
fn gamma_boost_shortens_the_tail_that_shortest_job_first_makes_longer() {
    // Exponential sizes: under `fifo` flow times fall off at the rate 1 - load.
    let exponential = SizeLaw {
        density: |size| (-size).exp(),
        draw: |random| -(1.0 - random.random::<f64>()).ln(),
        most: 40.0,
    };
    let tail = |policy: &str| {
        let mut all: Vec<f64> = (1..=8).flat_map(|seed| flows(policy, &exponential.jobs(seed))).collect();
        all.sort_by(f64::total_cmp);
        all[all.len() * 995 / 1000]
    };
    let [fifo, boost, shortest] = ["fifo", "gamma-boost:gamma=0.4", "psjf"].map(tail);
    assert!(boost < 0.97 * fifo && fifo < shortest, "{fifo}, {boost}, {shortest}");
}

/// Ananthanarayanan et al. 2013 (Dolly): clones shorten jobs of at most ten tasks by 34 to 46 %, compared with speculation
/// alone, for less than 5 % more of the cluster. Their trace of task times is heavy-tailed with an exponent of 1.259.
#[test]
fn clones_shorten_small_jobs_by_what_their_paper_reports() {
    let stream = |seed: u64| {
        let mut random = ChaCha8Rng::seed_from_u64(seed);
        let mut arrival = 0.0;
        let mut job = |_| {
            arrival -= (1.0 - random.random::<f64>()).ln() / 0.6;
            let small = random.random::<f64>() < 0.88;
            let maps = if small {
                random.random_range(1..9)
            } else {
                10_f64.powf(random.random_range(1.2..2.3)) as usize
            };
            let reduces = if small { random.random_range(0..3) } else { maps.div_ceil(10) };
            job(arrival, &vec![1.0; maps], &vec![1.0; reduces])
        };
        (0..500).map(&mut job).collect::<Vec<Job>>()
    };
    let run = |jobs: &[Job], mechanism: &str, seed: u64| {
        let mut config = Config { seed, ..unified(100, 1) };
        let service = Some(Dtd::new(0.0, 1.259, 1.0).unwrap());
        config.workers.iter_mut().for_each(|worker| worker.service = service);
        Mechanisms::split(mechanism).1.set(&mut config.core);
        let small = |record: &JobRecord| {
            let job = &jobs[record.seq as usize];
            job.maps.len() + job.reduces.len() <= 10
        };
        let mut flows = Vec::new();
        let mut sink = |record: &JobRecord| flows.extend(small(record).then(|| record.flow()));
        let deciders = TestDeciders::named("fair", "pull", Some("tasks")).0;
        let summary = super::run(&config, deciders, jobs.to_vec(), &mut (), &mut sink).unwrap();
        let used = summary.utilisation[Station::Map] + summary.utilisation[Station::Reduce];
        (flows.iter().sum::<f64>() / flows.len() as f64, used)
    };
    // The median over seeds: a mean of such times is that of the few slowest tasks.
    let mut ratios = Vec::new();
    let mut more = 0.0;
    for seed in 1..=9 {
        let jobs = stream(seed);
        let (backed_up, cloned) = (run(&jobs, "+backup", seed), run(&jobs, "+clone", seed));
        ratios.push(cloned.0 / backed_up.0);
        more += (cloned.1 - backed_up.1) / 9.0;
    }
    ratios.sort_by(f64::total_cmp);
    assert!((0.54..=0.66).contains(&ratios[4]) && more < 0.05, "{ratios:?} for {more} more, seeds 1 to 9");
}

/// Compares the mean over three seeds.
fn check(policy: &str, law: &SizeLaw, wanted: f64) {
    let found = [1, 2, 3].map(|seed| law.mean(policy, seed)).iter().sum::<f64>() / 3.0;
    assert!((found / wanted - 1.0).abs() < 0.08, "{policy}: {found} instead of {wanted}, seeds 1 to 3");
}

#[test]
fn least_attained_service_takes_as_long_as_foreground_background_should() {
    let wanted = foreground_background(&VARIED);
    assert!(wanted < 0.6 * first_in_first_out(&VARIED), "the law tells policies apart");
    check("las", &VARIED, wanted);
    check("fifo", &VARIED, first_in_first_out(&VARIED));
}

#[test]
fn preemptive_shortest_job_first_takes_as_long_as_it_should() {
    check("psjf", &VARIED, shortest_job_first(&VARIED));
}

#[test]
fn m_serpt_is_foreground_background_where_old_jobs_are_long_and_fifo_where_they_end_soon() {
    check("m-serpt", &VARIED, foreground_background(&VARIED));
    let wanted = first_in_first_out(&ALIKE);
    assert!(wanted < 0.8 * foreground_background(&ALIKE), "the law tells policies apart");
    check("m-serpt", &ALIKE, wanted);
}

#[test]
fn queues_are_fifo_below_the_first_threshold() {
    check("d-clas:first=1000", &ALIKE, first_in_first_out(&ALIKE));
}

#[test]
fn no_policy_beats_the_bound_and_shortest_remaining_work_nearly_reaches_it() {
    let jobs = VARIED.jobs(1);
    let sizes: Vec<[f64; 2]> = jobs.iter().map(|job| [job.arrival, job.maps.iter().sum()]).collect();
    let least = bound::total_flow(1.0, &sizes) / JOBS as f64;
    for policy in ["las", "psjf", "m-serpt", "fifo", "max-srpt"] {
        assert!(least <= VARIED.mean(policy, 1) + 1e-6, "{policy} beats the bound");
    }
    assert!(VARIED.mean("max-srpt", 1) < 1.05 * least, "the bound is {least}");
}
