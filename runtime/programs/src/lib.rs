//! A policy that is another program, such as a Python function: it reads what has changed and answers with an order.
//!
//! A file is started and talks through its standard input and output; a Unix socket is connected to, so that a program that
//! runs already decides. Both sides write JSON, one object per line. Before a plan the program gets the jobs that changed since the last line and
//! those that left: `{"now": 12.5, "capacity": [8, 1, 8], "jobs": [{"seq": 3, ...}], "left": [1]}`, with the fields of
//! `ShownJob`. It answers with the numbers (`seq`) of jobs, most urgent first: `{"order": [3, 2]}`. Every job gets all
//! that it can use in this order, reduces before maps; jobs that it leaves out come last, by age.
//!
//! A program that does not start, ends, answers something else or not in time is ended, and jobs go by age from then on:
//! [`Policy::failure`] says why. A simulation then fails; a master writes it to its log.

use gristmill_scheduler::catalogue::{ArgumentError, Entry, Parameter};
use gristmill_scheduler::plan::{Plan, Reason};
use gristmill_scheduler::policy::{Ordered, Policy, ShuffleRule};
use gristmill_scheduler::view::{Change, Handle, Row, View};
use rustix::net::{RecvFlags, recv};
use rustix::process::{Pid, Signal, kill_process_group};
use serde::{Deserialize, Serialize};
use std::collections::{BTreeMap, BTreeSet};
use std::io::{self, Read as _, Write as _};
use std::os::fd::OwnedFd;
use std::os::unix::fs::FileTypeExt as _;
use std::os::unix::net::UnixStream;
use std::os::unix::process::CommandExt as _;
use std::path::{Path, PathBuf};
use std::process::{Child, Command};
use std::time::{Duration, Instant};

/// Name of the policy, before the parameters.
const NAME: &str = "program";

/// Default and maximum seconds that a program may take for an answer: a master decides nothing in the meantime.
const PATIENCE: f64 = 0.5;
const PATIENCE_MAX: f64 = 3600.0;
/// Minimum time that it may take for its first answer, which includes its start.
const START_PATIENCE: Duration = Duration::from_secs(10);

/// Maximum bytes of an answer: 20 for each of a hundred thousand jobs.
const ANSWER_BYTES_MAX: usize = 2 << 20;

/// Catalogue entry of the policy.
pub const ENTRY: Entry<dyn Policy> = Entry {
    starts_program: true,
    parameters: &[
        Parameter {
            name: "path",
            default: "",
            meaning: "the program, or the Unix socket on which one listens; one that ends in .py is run by python3",
        },
        Parameter { name: "patience", default: "0.5", meaning: "time that an answer may take, s" },
    ],
    ..Entry::new(NAME, "the order that another program gives, for instance a Python function", |arguments| {
        let path = arguments.text("path").unwrap_or_default();
        let wanted = "a number of seconds above 0, at most 3600";
        let patience = arguments
            .value("patience", PATIENCE, wanted, |seconds| 0.0 < seconds && seconds <= PATIENCE_MAX)?;
        // Absolute, so that it is the same file for every process, and neither an option nor looked up.
        match std::fs::canonicalize(path).ok().filter(|path| path.exists() && !path.is_dir()) {
            Some(path) => Ok(Box::new(ProgramPolicy::new(path, Duration::from_secs_f64(patience)))),
            None => {
                let (value, wanted) = (path.to_owned(), "a file that exists".to_owned());
                Err(ArgumentError::Value { name: "path", value, wanted })
            }
        }
    })
};

/// Job as the program sees it. Amounts are per station: map, shuffle, reduce, as in [`Row`].
#[derive(Serialize)]
struct ShownJob {
    seq: u64,
    arrival: f64,
    deadline: Option<f64>,
    weight: f64,
    priority: i32,
    pool: Option<u32>,
    started: bool,
    known: bool,
    whole: [f64; 3],
    left: [f64; 3],
    can: [f64; 3],
    held: [f64; 3],
    done: u32,
    done_time: f64,
}

impl ShownJob {
    fn new(row: &Row) -> Self {
        // JSON has no infinity.
        let finite = |number: f64| if number.is_finite() { number } else { f64::MAX };
        Self {
            seq: row.seq,
            arrival: row.arrival.seconds(),
            deadline: row.deadline.map(|at| at.seconds()),
            weight: row.weight,
            priority: row.priority,
            pool: row.pool,
            started: row.started,
            known: row.known,
            whole: row.whole.map(finite).0,
            left: row.left.map(finite).0,
            can: row.can.map(finite).0,
            held: row.held.map(finite).0,
            done: row.done,
            done_time: row.done_time,
        }
    }
}

#[derive(Serialize)]
struct Question {
    now: f64,
    capacity: [f64; 3],
    jobs: Vec<ShownJob>,
    left: Vec<u64>,
}

#[derive(Deserialize)]
struct Answer {
    order: Vec<u64>,
}

/// Connection to the program: its standard input and output, or the socket on which it listens.
struct PolicyProcess {
    stream: UnixStream,
    /// Set if it was started here.
    child: Option<Child>,
    answered: bool,
    /// Timeout of its reads and writes.
    limit: Duration,
}

impl PolicyProcess {
    fn start(path: &Path) -> Result<Self, String> {
        let failed = |error: io::Error| format!("it does not start: {error}");
        if path.metadata().is_ok_and(|found| found.file_type().is_socket()) {
            let stream =
                UnixStream::connect(path).map_err(|error| format!("nothing listens there: {error}"))?;
            return Ok(Self { stream, child: None, answered: false, limit: Duration::ZERO });
        }
        let mut command = if path.extension().is_some_and(|ending| ending == "py") {
            let mut python = Command::new("python3");
            python.arg(path);
            python
        } else {
            Command::new(path)
        };
        let (stream, its_end) = UnixStream::pair().map_err(failed)?;
        let its_input = its_end.try_clone().map_err(failed)?;
        // A group of its own, which ends as a whole.
        command.process_group(0).stdin(OwnedFd::from(its_input)).stdout(OwnedFd::from(its_end));
        let child = command.spawn().map_err(failed)?;
        Ok(Self { stream, child: Some(child), answered: false, limit: Duration::ZERO })
    }

    fn ask(&mut self, question: &Question, patience: Duration) -> Result<Answer, String> {
        let mut line = serde_json::to_vec(question).map_err(|error| error.to_string())?;
        line.push(b'\n');
        let looks = RecvFlags::DONTWAIT | RecvFlags::PEEK;
        if recv(&self.stream, &mut [0], looks).is_ok_and(|(_, bytes)| bytes != 0) {
            return Err("it answered more often than it was asked".to_owned());
        }
        let patience = if self.answered { patience } else { patience.max(START_PATIENCE) };
        if self.limit != patience {
            let both = |stream: &UnixStream| {
                stream
                    .set_read_timeout(Some(patience))
                    .and_then(|()| stream.set_write_timeout(Some(patience)))
            };
            both(&self.stream).map_err(|error| format!("its socket cannot be limited: {error}"))?;
            self.limit = patience;
        }
        let until = Instant::now() + patience;
        self.write(&line, until)?;
        let answer = self.read(until)?.ok_or_else(|| {
            format!("it did not answer with a line, ended by a newline, within {} s", patience.as_secs_f64())
        })?;
        self.answered = true;
        let start = || String::from_utf8_lossy(&answer[..answer.len().min(80)]).trim_end().to_owned();
        serde_json::from_slice(&answer).map_err(|error| format!("it answered `{}`: {error}", start()))
    }

    fn write(&mut self, mut line: &[u8], until: Instant) -> Result<(), String> {
        while !line.is_empty() {
            match self.stream.write(line) {
                Ok(written) => line = &line[written..],
                Err(error) if error.kind() == io::ErrorKind::Interrupted => {}
                Err(error) if !is_timeout(&error) => return Err("it ended".to_owned()),
                Err(_) => return Err("it does not read what it is asked".to_owned()),
            }
            if !line.is_empty() && until < Instant::now() {
                return Err("it does not read what it is asked".to_owned());
            }
        }
        Ok(())
    }

    /// Reads a line; `None` if it does not come in time. A call may wait for
    /// the whole time, so all together wait for twice that at most.
    fn read(&mut self, until: Instant) -> Result<Option<Vec<u8>>, String> {
        let (mut line, mut part) = (Vec::new(), [0; 4096]);
        while line.last() != Some(&b'\n') {
            match self.stream.read(&mut part) {
                Ok(0) => return Err("it ended".to_owned()),
                Ok(read) => line.extend_from_slice(&part[..read]),
                Err(error) if error.kind() == io::ErrorKind::Interrupted => {}
                Err(error) if is_timeout(&error) => return Ok(None),
                Err(_) => return Err("it ended".to_owned()),
            }
            if ANSWER_BYTES_MAX < line.len() {
                return Err(format!("its answer is longer than {ANSWER_BYTES_MAX} bytes"));
            }
            if until < Instant::now() {
                return Ok(None);
            }
        }
        Ok(Some(line))
    }
}

fn is_timeout(error: &io::Error) -> bool {
    matches!(error.kind(), io::ErrorKind::WouldBlock | io::ErrorKind::TimedOut)
}

impl Drop for PolicyProcess {
    fn drop(&mut self) {
        let Some(child) = &mut self.child else { return };
        // The program and what it started may have ended.
        if let Some(group) = Pid::from_raw(child.id() as i32) {
            let _ = kill_process_group(group, Signal::KILL);
        }
        let _ = child.wait();
    }
}

/// Policy of another program.
struct ProgramPolicy {
    path: PathBuf,
    patience: Duration,
    process: Option<PolicyProcess>,
    failure: Option<String>,
    /// Live jobs, with their place in the last order; jobs without one come last.
    places: BTreeMap<Handle, u64>,
    seqs: BTreeMap<u64, Handle>,
    changed: BTreeSet<Handle>,
    left: Vec<u64>,
    jobs: Ordered<(u64, u64)>,
}

impl ProgramPolicy {
    fn new(path: PathBuf, patience: Duration) -> Self {
        Self {
            path,
            patience,
            process: None,
            failure: None,
            places: BTreeMap::new(),
            seqs: BTreeMap::new(),
            changed: BTreeSet::new(),
            left: Vec::new(),
            jobs: Ordered::default(),
        }
    }

    fn place(&mut self, view: View<'_>, change: Change) {
        let places = &self.places;
        self.jobs.observe(view, change, |view, job| {
            (places.get(&job).copied().unwrap_or(u64::MAX), view.row(job).seq)
        });
    }

    /// Asks the program if anything has changed, and puts the jobs into its order.
    fn reorder(&mut self, view: View<'_>) -> Result<(), String> {
        if self.changed.is_empty() && self.left.is_empty() {
            return Ok(());
        }
        let jobs = std::mem::take(&mut self.changed).into_iter().map(|job| ShownJob::new(view.row(job)));
        let question = Question {
            now: view.now.seconds(),
            capacity: view.cap.map(|capacity| if capacity.is_finite() { capacity } else { f64::MAX }).0,
            jobs: jobs.collect(),
            left: std::mem::take(&mut self.left),
        };
        if self.process.is_none() {
            self.process = Some(PolicyProcess::start(&self.path)?);
        }
        let Some(process) = &mut self.process else { return Ok(()) };
        let Answer { order } = process.ask(&question, self.patience)?;
        let mut places = BTreeMap::new();
        for (place, seq) in (0..).zip(&order) {
            // An unknown job is an error of the program: it would wait forever for one that it means.
            let job = self.seqs.get(seq).ok_or_else(|| format!("it named job {seq}, which is not there"))?;
            if places.insert(*job, place).is_some() {
                return Err(format!("it named job {seq} twice"));
            }
        }
        let moved: Vec<Handle> =
            self.seqs.values().copied().filter(|job| places.get(job) != self.places.get(job)).collect();
        self.places = places;
        self.place(View { touched: &moved, ..view }, Change::Progress);
        Ok(())
    }

    /// Ends the program, and orders all jobs by age.
    fn fail(&mut self, view: View<'_>, why: &str) {
        self.process = None;
        self.failure = Some(format!("policy program {}: {why}; jobs go by age", self.path.display()));
        self.places.clear();
        let all: Vec<Handle> = self.seqs.values().copied().collect();
        self.place(View { touched: &all, ..view }, Change::Progress);
    }
}

impl Policy for ProgramPolicy {
    fn name(&self) -> &'static str {
        NAME
    }

    fn counts_slots(&self) -> bool {
        true
    }

    fn failure(&self) -> Option<&str> {
        self.failure.as_deref()
    }

    fn observe(&mut self, view: View<'_>, change: Change) {
        if let Change::Left(job) = change {
            let seq = view.row(job).seq;
            self.seqs.remove(&seq);
            self.places.remove(&job);
            self.changed.remove(&job);
            self.left.push(seq);
        }
        for &job in view.touched {
            self.seqs.insert(view.row(job).seq, job);
            self.changed.insert(job);
        }
        if self.failure.is_some() {
            self.changed.clear();
            self.left.clear();
        }
        self.place(view, change);
    }

    fn explain(&self, _view: View<'_>, _job: Handle) -> Vec<String> {
        self.failure.iter().cloned().collect()
    }

    fn plan(&mut self, view: View<'_>, plan: &mut Plan<'_>) {
        if self.failure.is_none()
            && let Err(why) = self.reorder(view)
        {
            self.fail(view, &why);
        }
        let places = &self.places;
        self.jobs.plan(view, plan, ShuffleRule::All, |_, job| match places.get(&job) {
            Some(&place) => Reason::Place { order: "of the policy program", place: place as u32 + 1 },
            None => Reason::Oldest,
        });
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use gristmill_scheduler::estimate::Oracle;
    use gristmill_scheduler::event::Slots;
    use gristmill_scheduler::policy::by_name;
    use gristmill_scheduler::sim::SimError;
    use gristmill_scheduler::sim::cluster::{Config, Deciders, Observer, TaskRun, run};
    use gristmill_scheduler::workload::Job;
    use rand::{RngExt as _, SeedableRng as _};
    use rand_chacha::ChaCha8Rng;
    use std::fs;
    use std::io::{BufRead as _, BufReader};

    /// Long, as a busy machine may run nothing of the program for a while.
    const PATIENCE: Duration = Duration::from_secs(60);

    /// Simulations that the program decides too; 1,000 with this variable.
    const CASES: &str = "GRISTMILL_POLICY_CASES";

    #[derive(Default)]
    struct Tasks(Vec<TaskRun>);

    impl Observer for Tasks {
        fn task(&mut self, run: &TaskRun) {
            self.0.push(*run);
        }
    }

    fn simulate(policy: Box<dyn Policy>, jobs: Vec<Job>) -> Result<Vec<TaskRun>, SimError> {
        let deciders = Deciders { estimator: Some(Box::new(Oracle)), ..Deciders::with_policy(policy) };
        let mut tasks = Tasks::default();
        run(&Config::uniform(2, Slots::Unified(2)), deciders, jobs, &mut tasks, &mut |_| {}).map(|_| tasks.0)
    }

    fn jobs(seed: u64) -> Vec<Job> {
        let mut random = ChaCha8Rng::seed_from_u64(seed);
        let mut arrival = 0.0;
        let job = |_| {
            arrival += random.random_range(0.0..3.0);
            let mut tasks = |most: usize| -> Vec<f64> {
                (0..random.random_range(0..most)).map(|_| random.random_range(0.1..3.0)).collect()
            };
            let maps = [vec![1.0], tasks(6)].concat();
            Job { arrival, reduces: tasks(3), maps, ..Job::default() }
        };
        (0..12).map(job).collect()
    }

    /// Answers with the order of a function, which gets the present jobs by their numbers.
    const SERVE: &str = r#"
import json, sys, time
def serve(order):
    jobs = {}
    for line in sys.stdin:
        question = json.loads(line)
        jobs.update((job["seq"], job) for job in question["jobs"])
        for seq in question["left"]: jobs.pop(seq, None)
        print(json.dumps({"order": order(jobs)}), flush=True)
"#;

    /// Program of this text, and the policy that it is.
    struct Script {
        directory: tempfile::TempDir,
    }

    impl Script {
        fn new(text: &str) -> Self {
            let directory = tempfile::tempdir().unwrap();
            fs::write(directory.path().join("policy.py"), format!("{SERVE}{text}")).unwrap();
            Self { directory }
        }

        fn policy(&self) -> Box<dyn Policy> {
            self.patient_policy(PATIENCE)
        }

        fn patient_policy(&self, patience: Duration) -> Box<dyn Policy> {
            Box::new(ProgramPolicy::new(self.directory.path().join("policy.py"), patience))
        }
    }

    #[test]
    fn shortest_job_first_in_python_decides_as_the_one_in_rust() {
        let shortest = Script::new(
            "serve(lambda jobs: sorted(jobs, key=lambda seq: (jobs[seq]['whole'][0] + jobs[seq]['whole'][2], seq)))",
        );
        let cases = std::env::var(CASES).ok().and_then(|cases| cases.parse().ok()).unwrap_or(50);
        for seed in 0..cases {
            let wanted = simulate(by_name("psjf").unwrap(), jobs(seed)).unwrap();
            let found = simulate(shortest.policy(), jobs(seed)).unwrap();
            assert_eq!(found, wanted, "seed {seed}");
        }
    }

    #[test]
    fn a_program_that_fails_ends_a_simulation_with_its_reason() {
        let after_one = |then: &str| {
            format!(
                "calls = []\ndef order(jobs):\n    calls.append(1)\n    if len(calls) > 1: {then}\n    return list(jobs)\nserve(order)"
            )
        };
        let nonsense =
            "import json\nfor line in sys.stdin: print(json.dumps({'order': 'first'}), flush=True)";
        for (text, reason) in [
            (after_one("sys.exit(3)"), "it ended"),
            (after_one("raise KeyError(1)"), "it ended"),
            (after_one("return [99]"), "it named job 99, which is not there"),
            (after_one("return list(jobs) + list(jobs)"), "twice"),
            (
                "for line in sys.stdin: print('{\"order\": []}\\n' * 2, end='', flush=True)".to_owned(),
                "it answered `{\"order\": []}",
            ),
            (
                after_one("print(3 * 1024 * 1024 * 'x', flush=True); time.sleep(600)"),
                "its answer is longer than",
            ),
            (nonsense.to_owned(), "it answered `{\"order\": \"first\"}`"),
            ("syntax error".to_owned(), "it ended"),
        ] {
            let script = Script::new(&text);
            let error = simulate(script.policy(), jobs(1)).unwrap_err().to_string();
            assert!(error.contains(reason) && error.ends_with("jobs go by age"), "{text}: {error}");
        }
        let slow = Script::new(&after_one("time.sleep(600)"));
        let policy = slow.patient_policy(Duration::from_millis(500));
        let late = simulate(policy, jobs(1)).unwrap_err().to_string();
        let reason = "it did not answer with a line, ended by a newline, within 0.5 s";
        assert!(late.contains(reason), "{late}");
        let absent = simulate(Box::new(ProgramPolicy::new("/absent/program".into(), PATIENCE)), jobs(1))
            .unwrap_err()
            .to_string();
        assert!(absent.contains("it does not start"), "{absent}");
    }

    #[test]
    fn an_answer_that_lies_there_before_its_question_is_refused() {
        let (stream, mut its_end) = UnixStream::pair().unwrap();
        its_end.write_all(b"{\"order\": []}\n").unwrap();
        let mut process = PolicyProcess { stream, child: None, answered: false, limit: Duration::ZERO };
        let question = Question { now: 0.0, capacity: [1.0; 3], jobs: vec![], left: vec![] };
        let refused = process.ask(&question, PATIENCE).err();
        assert_eq!(refused.as_deref(), Some("it answered more often than it was asked"));
    }

    #[test]
    fn a_program_that_listens_on_a_socket_decides_without_being_started() {
        let directory = tempfile::tempdir().unwrap();
        let path = directory.path().join("socket");
        let listener = std::os::unix::net::UnixListener::bind(&path).unwrap();
        let answers = std::thread::spawn(move || {
            let (stream, _) = listener.accept().unwrap();
            let (mut lines, mut answered) = (BufReader::new(stream.try_clone().unwrap()).lines(), 0);
            while let Some(Ok(_)) = lines.next() {
                (&stream).write_all(b"{\"order\": []}\n").unwrap();
                answered += 1;
            }
            answered
        });
        let found = simulate(Box::new(ProgramPolicy::new(path.clone(), PATIENCE)), jobs(2)).unwrap();
        assert_eq!(found, simulate(by_name("fifo").unwrap(), jobs(2)).unwrap());
        assert!(20 < answers.join().unwrap());
        let deaf = simulate(Box::new(ProgramPolicy::new(path, PATIENCE)), jobs(2)).unwrap_err().to_string();
        assert!(deaf.contains("nothing listens there"), "{deaf}");
    }

    #[test]
    fn jobs_that_an_order_leaves_out_come_last_by_age() {
        let nothing = Script::new("serve(lambda jobs: [])");
        let fifo = simulate(by_name("fifo").unwrap(), jobs(2)).unwrap();
        assert_eq!(simulate(nothing.policy(), jobs(2)).unwrap(), fifo);
    }
}
