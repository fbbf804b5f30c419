//! The jobs of a soak in flight: submitted attached or detached, waited for again after an absence of the
//! master, and judged.

use super::super::cluster::Cluster;
use super::JOB_TIMEOUT;
use crate::support::data::Random;
use crate::support::sandbox::Running;
use crate::support::{Finished, Sandbox, oracle};
use std::path::Path;
use std::time::{Duration, Instant};

/// A job and its expected output.
struct Kind {
    arguments: Vec<String>,
    expected: Vec<Vec<u8>>,
}

/// A job in flight.
struct Flight {
    kind: usize,
    output: String,
    started: Instant,
    /// True if the program that submits it returns at once.
    detached: bool,
    /// Its name, once it was acknowledged to a program that returned.
    job: Option<String>,
    /// The program that submits it or waits for its end, if any.
    running: Option<Running>,
    /// Number of strikes at the master when that program was started.
    strikes: u32,
    /// True if that program was killed.
    killed: bool,
}

/// Jobs in flight, and the outcomes of all others.
pub struct Flights {
    kinds: Vec<Kind>,
    flying: Vec<Flight>,
    /// Outputs of jobs that may or may not run, since no program got the acknowledgement; see
    /// [`Flights::doubts`].
    doubtful: Vec<(usize, String)>,
    started: u32,
    /// Number of events at the master or a submitter that a program may report as an error.
    strikes: u32,
    /// Number of jobs that succeeded.
    pub done: u32,
    /// Longest time from submission to end.
    pub slowest: Duration,
}

/// Flags of all jobs.
const COMMON: [&str; 3] = ["--reduces", "3", "--no-sync"];

impl Flights {
    /// Runs each kind of job once without faults, and keeps its output.
    pub fn prepare(cluster: &Cluster<'_>, draw: &mut Random) -> Self {
        let sandbox = cluster.sandbox;
        let mut flights = Self {
            kinds: Vec::new(),
            flying: Vec::new(),
            doubtful: Vec::new(),
            started: 0,
            strikes: 0,
            done: 0,
            slowest: Duration::ZERO,
        };
        for arguments in jobs(sandbox, draw) {
            flights.kinds.push(Kind { arguments, expected: Vec::new() });
            let kind = flights.kinds.len() - 1;
            flights.launch(sandbox, kind, true);
            let Flight { running, output, .. } = flights.flying.pop().expect("it was launched");
            running.expect("attached").finish().expect_code(0);
            flights.kinds[kind].expected = oracle::parts(Path::new(&output));
        }
        let text = std::fs::read(sandbox.path("text")).unwrap();
        let counts = oracle::counts_of_parts(&flights.kinds[0].expected);
        assert_eq!(counts, oracle::word_counts(&text), "wrong without a fault");
        flights
    }

    fn launch(&mut self, sandbox: &Sandbox, kind: usize, attached: bool) {
        self.started += 1;
        let output = sandbox.text(&format!("out-{}", self.started));
        self.launch_into(sandbox, (kind, output), attached);
    }

    fn launch_into(&mut self, sandbox: &Sandbox, (kind, output): (usize, String), attached: bool) {
        let arguments = self.kinds[kind].arguments.iter().map(String::as_str).chain(["--output", &output]);
        let flags = if attached { &["--quiet"][..] } else { &["--detach"] };
        let running = sandbox.gristmill(arguments.chain(flags.iter().copied())).start();
        self.flying.push(Flight {
            kind,
            output,
            started: Instant::now(),
            detached: !attached,
            job: None,
            running: Some(running),
            strikes: self.strikes,
            killed: false,
        });
    }

    /// Notes an event at the master: programs that talk to it now may fail.
    pub fn master_is_struck(&mut self) {
        self.strikes += 1;
    }

    /// Kills a program that waits for the end of a job that it has submitted. Returns false if there is none.
    pub fn kill_submitter(&mut self) -> bool {
        let attached = self.flying.iter_mut().find(|flight| !flight.detached && !flight.killed);
        let Some(flight) = attached else { return false };
        flight.running.as_mut().expect("attached").kill();
        flight.killed = true;
        true
    }

    /// Number of jobs in flight.
    pub fn len(&self) -> usize {
        self.flying.len()
    }

    /// Submits a job of a random kind.
    pub fn submit_any(&mut self, sandbox: &Sandbox, draw: &mut Random) {
        let (kind, attached) = (draw.below(self.kinds.len()), draw.below(4) == 0);
        self.launch(sandbox, kind, attached);
    }

    /// Advances each job as far as possible, and judges those that have ended.
    pub fn go_on(&mut self, sandbox: &Sandbox, has_master: bool) {
        for mut flight in std::mem::take(&mut self.flying) {
            let late = JOB_TIMEOUT < flight.started.elapsed();
            assert!(!late, "a job has not ended within {JOB_TIMEOUT:?}: {}", self.told_of(&flight));
            match (flight.running.take(), &flight.job) {
                (None, Some(job)) if has_master => {
                    flight.strikes = self.strikes;
                    flight.running = Some(sandbox.gristmill(["wait", job, "--quiet"]).start());
                    self.flying.push(flight);
                }
                (Some(running), _) if running.has_ended() => self.take_over(flight, &running.finish()),
                (running, _) => self.flying.push(Flight { running, ..flight }),
            }
        }
    }

    /// Handles the end of a program that submitted a job or waited for it.
    fn take_over(&mut self, mut flight: Flight, finished: &Finished) {
        let well = finished.status.code() == Some(0);
        if well && flight.detached && flight.job.is_none() {
            flight.job = Some(finished.stdout_text().trim().to_owned());
            return self.flying.push(flight);
        }
        if well {
            return self.land(&flight);
        }
        // It may report that its master was absent, if it was.
        let cut_off = flight.strikes != self.strikes && finished.status.code() == Some(5);
        let (job, status) = (&flight.job, finished.status);
        assert!(flight.killed || cut_off, "{job:?} ended with {status}:\n{}", finished.stderr);
        match flight.job {
            Some(_) => self.flying.push(flight),
            None => self.doubtful.push((flight.kind, flight.output)),
        }
    }

    fn land(&mut self, Flight { kind, output, started, .. }: &Flight) {
        let kind = &self.kinds[*kind];
        let same = oracle::parts(Path::new(output)) == kind.expected;
        assert!(same, "{:?} has another output in {output}", kind.arguments);
        let names = oracle::names(Path::new(output));
        assert_eq!(names.len(), kind.expected.len() + 1, "something else lies in {output}: {names:?}");
        std::fs::remove_dir_all(output).unwrap();
        self.done += 1;
        self.slowest = self.slowest.max(started.elapsed());
    }

    fn told_of(&self, flight: &Flight) -> String {
        let said = flight.running.as_ref().map(Running::stderr).unwrap_or_default();
        format!("{:?}, {:?} to {}\n{said}", flight.job, self.kinds[flight.kind].arguments, flight.output)
    }

    /// Returns an error in the output of a job that was not acknowledged. The output may be whole, may not
    /// exist, or may hold only the claim of a program that was killed before the master received the job.
    pub fn doubts(&self) -> Option<String> {
        let wrong = self.doubtful.iter().find(|doubtful| !self.is_whole(doubtful) && !is_claim(doubtful));
        wrong.map(|(kind, output)| {
            let found = oracle::names(Path::new(output));
            format!("{:?} has left {output} in parts: {found:?}", self.kinds[*kind].arguments)
        })
    }

    fn is_whole(&self, (kind, output): &(usize, String)) -> bool {
        let output = Path::new(output);
        !output.exists() || oracle::parts(output) == self.kinds[*kind].expected
    }

    /// Submits the job again to each output that holds a dead program's claim, which the job takes over.
    /// Returns the number of such outputs.
    pub fn submit_over_claims(&mut self, sandbox: &Sandbox) -> usize {
        let claims: Vec<_> = self.doubtful.extract_if(.., |doubtful| is_claim(doubtful)).collect();
        let count = claims.len();
        for (kind, output) in claims {
            self.launch_into(sandbox, (kind, output), true);
        }
        count
    }

    /// Number of outputs in doubt, and number of those that exist.
    pub fn count_doubtful(&self) -> (usize, usize) {
        let there = self.doubtful.iter().filter(|(_, output)| Path::new(output).exists()).count();
        (self.doubtful.len(), there)
    }

    /// Submits each kind once.
    pub fn submit_each(&mut self, sandbox: &Sandbox) {
        (0..self.kinds.len()).for_each(|kind| self.launch(sandbox, kind, true));
    }
}

/// True if an output holds nothing but a claim.
fn is_claim((_, output): &(usize, String)) -> bool {
    let output = Path::new(output);
    output.exists() && oracle::names(output) == ["_temporary"]
}

/// Returns the arguments of each kind of job, and writes their inputs.
fn jobs(sandbox: &Sandbox, draw: &mut Random) -> Vec<Vec<String>> {
    let text = sandbox.write("text", draw.text(400_000, &[" ", "\n"]));
    let records = sandbox.text("records");
    sandbox.gristmill(["gen", "records", &records, "--size", "6MiB"]).finish().expect_code(0);
    let mut rows = |count: usize| -> String {
        (0..count).map(|row| format!("{},value {row}\n", draw.below(50))).collect()
    };
    let (left, right) = (sandbox.write("left.csv", rows(900)), sandbox.write("right.csv", rows(60)));
    let join = ["join", "--left", &left, "--right", &right, "--on", "1=1", "--strategy", "repartition"];
    let jobs: [(&[&str], &str); 5] = [
        (&["wordcount", &text], "40KiB"),
        (&["sort", &text], "40KiB"),
        (&["grep", "Word[ab]", &text], "40KiB"),
        // The reverse order is made of copies, which do not stay in the input: these are spilled.
        (&["sort", "-r", &records], "2MiB"),
        (&join, "4KiB"),
    ];
    let all = |(job, split): (&[&str], &str)| {
        let words = [&["submit"], job, &COMMON, &["--split-size", split]].concat();
        words.into_iter().map(str::to_owned).collect()
    };
    jobs.map(all).to_vec()
}
