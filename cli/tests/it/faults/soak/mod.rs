//! A soak: jobs of several kinds in sequence and in parallel, a random fault every few seconds, and a
//! verdict.
//!
//! `tests/faults/soak MINUTES` sets `GRISTMILL_SOAK_SECONDS`. The default suite soaks for a few seconds, so
//! that this code stays in use. Every acknowledged job must succeed with exactly its output. At the end
//! nothing may be left. Memory and descriptors of the master, and of a worker that no fault ends, must
//! be flat (`flat`).
//!
//! `nemesis` causes the faults (`kind`), `flights` are the jobs.

mod flat;
mod flights;
mod kind;
mod nemesis;

use super::cluster::{Cluster, Fleet, WorkerSpec};
use super::disks::small_disks;
use super::{facts, shim};
use crate::support::data::Random;
use crate::support::{Sandbox, until, until_within};
use flat::{Sample, Series};
use flights::Flights;
use nemesis::Nemesis;
use serde_json::Value;
use std::time::{Duration, Instant};

/// Duration by default.
const SECONDS: u64 = 5;

/// Duration from which a soak must have met every kind of fault that this machine can cause, and memory must
/// be flat.
const SECONDS_OF_A_FULL_SOAK: u64 = 600;

/// Number of workers, and of jobs at a time.
const WORKERS: usize = 4;
const JOBS: usize = 2;

/// The worker that no fault ends, so that its memory can grow all the time and jobs always have a
/// worker.
const SPARED: usize = 0;

/// Minimum and maximum pause between faults.
const PAUSE_MILLISECONDS: (usize, usize) = (500, 3000);

/// Pause between two samples of memory and descriptors.
const SAMPLE_PAUSE: Duration = Duration::from_millis(500);

/// Pause between two lines of progress.
const REPORT_PAUSE: Duration = Duration::from_secs(60);

/// Maximum extension of a soak in which no fault has had an effect.
const MEETING_TIMEOUT: Duration = Duration::from_secs(60);

/// Maximum time of a job under permanent faults.
const JOB_TIMEOUT: Duration = Duration::from_secs(240);

/// Memory that the master may gain for each ended job: it keeps the newest, up to 500,000 tasks.
const KIB_OF_AN_ENDED_JOB: u64 = 24;

/// A cluster under soak.
struct Soak<'a> {
    cluster: Cluster<'a>,
    flights: Flights,
    nemesis: Nemesis,
    draw: Random,
    start: Instant,
    sampled: Instant,
    reported: Instant,
    master: Series,
    worker: Series,
    /// Number of outputs that held only the claim of a dead program.
    claims: usize,
}

/// Four workers, with all faults that this machine can cause.
fn fleet(sandbox: &Sandbox) -> (Fleet, Nemesis) {
    let (disks, shim) = (small_disks(sandbox, WORKERS), shim::environment(sandbox));
    let nemesis = Nemesis::new(disks.is_ok(), shim.is_some());
    let mut workers = disks.unwrap_or_else(|_| vec![WorkerSpec::default(); WORKERS]);
    for worker in &mut workers {
        worker.flags.extend(["--memory", "16MiB"].map(str::to_owned));
        worker.environment.extend(shim.clone());
    }
    (Fleet::new(workers), nemesis)
}

impl<'a> Soak<'a> {
    fn start(sandbox: &'a Sandbox, (fleet, nemesis): (&'a Fleet, Nemesis), seed: u64) -> Self {
        let cluster = Cluster::start(sandbox, fleet);
        let mut draw = Random::seeded(seed);
        let flights = Flights::prepare(&cluster, &mut draw);
        let (now, master, worker) = (Instant::now(), Series::default(), Series::default());
        Self {
            cluster,
            flights,
            nemesis,
            draw,
            start: now,
            sampled: now,
            reported: now,
            master,
            worker,
            claims: 0,
        }
    }

    /// Soaks for this time, and longer until some fault has had an effect. In a few seconds that depends on
    /// the faults drawn.
    fn soak(&mut self, time: Duration) {
        let is_met = |nemesis: &Nemesis| nemesis.met() != 0;
        while self.start.elapsed() < time
            || (!is_met(&self.nemesis) && self.start.elapsed() < time + MEETING_TIMEOUT)
        {
            let (least, most) = PAUSE_MILLISECONDS;
            let pause = Duration::from_millis((least + self.draw.below(most - least)) as u64);
            self.nemesis.strike(&mut self.cluster, &mut self.flights, &mut self.draw);
            let struck = Instant::now();
            until("the next fault", || {
                self.go_on(true);
                (pause < struck.elapsed()).then_some(())
            });
        }
    }

    /// Handles jobs, faults and samples.
    fn go_on(&mut self, more: bool) {
        self.nemesis.heal(&mut self.cluster, &mut self.flights, !more);
        self.nemesis.assert_workers_stay(&self.cluster);
        let has_master = self.nemesis.has_master();
        self.flights.go_on(self.cluster.sandbox, has_master);
        while more && has_master && self.flights.len() < JOBS {
            self.flights.submit_any(self.cluster.sandbox, &mut self.draw);
        }
        if has_master && SAMPLE_PAUSE < self.sampled.elapsed() {
            self.sampled = Instant::now();
            let at = self.start.elapsed();
            self.master.add(Sample::read(self.cluster.standing.master.pid(), at));
            self.worker.add(self.cluster.pid_now(SPARED).and_then(|pid| Sample::read(pid, at)));
        }
        if REPORT_PAUSE < self.reported.elapsed() {
            self.reported = Instant::now();
            let (minutes, done) = (self.start.elapsed().as_secs() / 60, self.flights.done);
            eprintln!("after {minutes} min: {done} jobs, {} faults seen to do something", self.nemesis.met());
        }
    }

    /// Ends all faults, and waits until every job has ended and left nothing.
    fn settle(&mut self) {
        until_within("the end of all jobs and faults", JOB_TIMEOUT, || {
            self.go_on(false);
            (self.flights.len() == 0 && self.nemesis.is_healed()).then_some(())
        });
        self.cluster.heal();
        self.cluster.standing.await_workers(WORKERS);
        let since = Instant::now();
        until_within("whole outputs, or none", 2 * JOB_TIMEOUT, || {
            let jobs = self.cluster.sandbox.gristmill(["jobs", "--json"]).finish().expect_code(0).json();
            let ended =
                |job: &Value| ["succeeded", "failed", "cancelled"].map(Value::from).contains(&job["state"]);
            let all_ended = jobs.as_array().unwrap().iter().all(ended);
            let doubt = if all_ended { self.flights.doubts() } else { Some("jobs go on".to_owned()) };
            assert!(doubt.is_none() || since.elapsed() < JOB_TIMEOUT, "for {JOB_TIMEOUT:?}: {doubt:?}");
            doubt.is_none().then_some(())
        });
        // The cluster is as good as new.
        self.claims = self.flights.submit_over_claims(self.cluster.sandbox);
        self.flights.submit_each(self.cluster.sandbox);
        until_within("the last jobs", JOB_TIMEOUT, || {
            self.go_on(false);
            (self.flights.len() == 0).then_some(())
        });
    }

    fn report(&self) -> String {
        let (doubtful, there) = self.flights.count_doubtful();
        let recovery =
            std::fs::metadata(self.cluster.sandbox.path("state/recovery")).map_or(0, |file| file.len());
        format!(
            "{} jobs with exactly their output, the slowest after {:.1?}; {doubtful} whose submitter was not told, {there} \
             of them done, {} left a claim that the next job took over\nslowest return of the master {:.2?}, its recovery file {} KiB\nmaster, medians of each quarter \
             (KiB, descriptors) {:?}\nworker that was spared {:?}\n{}",
            self.flights.done,
            self.flights.slowest,
            self.claims,
            self.nemesis.slowest_return,
            recovery >> 10,
            self.master.quarters(),
            self.worker.quarters(),
            self.nemesis.report(),
        )
    }
}

#[test]
fn soak_of_random_faults_changes_no_output_and_leaves_nothing() {
    let number = |name: &str| std::env::var(name).ok().map(|text| text.parse::<u64>().unwrap());
    let seconds = number("GRISTMILL_SOAK_SECONDS").unwrap_or(SECONDS);
    let seed = number("GRISTMILL_SOAK_SEED").unwrap_or(1);
    let sandbox = Sandbox::new();
    let (fleet, nemesis) = fleet(&sandbox);
    let mut soak = Soak::start(&sandbox, (&fleet, nemesis), seed);
    soak.soak(Duration::from_secs(seconds));
    soak.settle();
    eprintln!("{}", soak.report());
    assert!(soak.nemesis.met() != 0, "no fault did anything");
    if SECONDS_OF_A_FULL_SOAK <= seconds {
        assert_eq!(soak.nemesis.not_met(), [], "faults that never did anything");
        let kept = u64::from(soak.flights.done) * KIB_OF_AN_ENDED_JOB / 2;
        assert_eq!(soak.master.judge(kept), Ok(()), "the master");
        assert_eq!(soak.worker.judge(0), Ok(()), "a worker");
    }
    assert_eq!(soak.cluster.end(), Vec::<String>::new());
    assert_eq!(facts::leftovers(&sandbox), Vec::<String>::new());
    // Neither the port nor the lock of the state directory is held.
    let alone = Fleet::default();
    assert_eq!(Cluster::start(&sandbox, &alone).end(), Vec::<String>::new());
}
