//! Kills a master at each line of its journal while workers run a small job for it. The next master ends the job with
//! the same counters, and no task runs twice.
//!
//! The workers follow the rules of `agent::control::link`: they keep numbered frames until these are confirmed, and
//! send them again.

use super::comeback::{header, replayed};
use super::*;
use crate::master::recovery::RecoveryJournal;
use crate::output_dir::OutputDirectory;
use gristmill_worker::protocol::{HeldAttempt, HeldHome, Holding, Rejoin};
use std::collections::VecDeque;
use std::path::PathBuf;

const MAPS: u32 = 3;
const REDUCES: u32 = 2;
const WORKERS: u32 = 2;

/// Far more iterations than a job takes.
const TURNS_MAX: u32 = 10_000;

/// A worker that executes orders at once.
#[derive(Default)]
struct Hand {
    worker: Option<WorkerId>,
    pid: u32,
    generation: u64,
    inbox: VecDeque<MasterFrame>,
    /// Numbered frames that are not confirmed; the first has the number after `heard`.
    unheard: VecDeque<WorkerFrame>,
    heard: u64,
    jobs: BTreeSet<JobId>,
    homes: BTreeMap<(JobId, u32), BTreeSet<u32>>,
    /// Attempts that wait for their permit.
    built: BTreeSet<AttemptId>,
    /// Number of starts of each attempt.
    begun: BTreeMap<AttemptId, u32>,
}

impl Hand {
    /// Frames in response to one order.
    fn obey(&mut self, order: MasterFrame) -> Vec<WorkerFrame> {
        match order {
            MasterFrame::Job(order) => drop(self.jobs.insert(order.job)),
            MasterFrame::Heard { through } => self.confirmed(through),
            MasterFrame::Home { job, reduce, .. } => drop(self.homes.entry((job, reduce)).or_default()),
            MasterFrame::Unhome { job, reduce } => drop(self.homes.remove(&(job, reduce))),
            MasterFrame::LaunchMap { attempt, .. } => {
                *self.begun.entry(attempt).or_default() += 1;
                let report = AttemptReport { bytes_out: 10, ..AttemptReport::default() };
                return vec![WorkerFrame::MapFinished {
                    attempt,
                    fingerprint: Fingerprint::default(),
                    report,
                }];
            }
            MasterFrame::LaunchReduce { attempt, .. } => {
                *self.begun.entry(attempt).or_default() += 1;
                self.built.insert(attempt);
                return vec![WorkerFrame::CommitRequest { attempt }];
            }
            MasterFrame::CommitGranted { attempt, .. } if self.built.remove(&attempt) => {
                let part = Part { name: String::new(), bytes: 5, records: 1, crc32c: 7, named: Vec::new() };
                let (stamp, report) =
                    (FileStamp { size: 5, modified_ns: 1, inode: 1 }, AttemptReport::default());
                return vec![WorkerFrame::PartFinished { attempt, part, stamp, report }];
            }
            MasterFrame::Announce { maps, from, .. } => return self.fetch(&maps, from),
            MasterFrame::Forget { job } => {
                self.jobs.remove(&job);
                self.homes.retain(|(of, _), _| *of != job);
            }
            MasterFrame::Kill { attempt } => panic!("{attempt} is wanted"),
            _ => {}
        }
        Vec::new()
    }

    fn fetch(&mut self, maps: &[AttemptId], from: WorkerId) -> Vec<WorkerFrame> {
        let fetched = maps.iter().map(|&map| {
            let lacking = |((job, partition), segments): (&(JobId, u32), &mut BTreeSet<u32>)| {
                (*job == map.task.job && segments.insert(map.task.index)).then_some(*partition)
            };
            let partitions = self.homes.iter_mut().filter_map(lacking).collect();
            let outputs = vec![FetchedOutput { map, partitions, bytes: 10, resent: 0 }];
            WorkerFrame::Fetched { outputs, from, started_ns: 0, ended_ns: 0 }
        });
        fetched.collect()
    }

    fn confirmed(&mut self, through: u64) {
        while self.heard < through {
            self.unheard.pop_front().expect("nothing is confirmed that was not said");
            self.heard += 1;
        }
    }

    fn holding(&self) -> Holding {
        let waiting =
            |attempt: &AttemptId| HeldAttempt { attempt: *attempt, suspended: false, awaits_permit: true };
        let home = |((job, partition), segments): (&(JobId, u32), &BTreeSet<u32>)| HeldHome {
            job: *job,
            partition: *partition,
            segments: segments.len() as u32,
        };
        Holding {
            jobs: self.jobs.iter().copied().collect(),
            attempts: self.built.iter().map(waiting).collect(),
            homes: self.homes.iter().map(home).collect(),
        }
    }
}

/// Point at which the master is killed: as soon as its journal has this many lines.
#[derive(Clone, Copy, Debug)]
struct Kill {
    line: usize,
    /// True if the frames queued when it had written that line are sent.
    spoken: bool,
}

/// A master with its journal, its workers and a client.
struct Stage {
    scene: Scene,
    directory: tempfile::TempDir,
    hands: Vec<Hand>,
    job: Option<JobId>,
    kill: Option<Kill>,
    generation: u64,
    claims: Vec<OutputDirectory>,
    /// True if the journal is compacted in each iteration.
    compacts: bool,
    /// Number of lines before the compaction, and of lines that it wrote.
    lines_before: usize,
    lines_begun_with: usize,
    /// Lines at which a master could be killed, counted from the first of all files.
    points: BTreeSet<usize>,
    /// Status of the ended job. The compacted journal does not hold it then.
    told: Option<String>,
}

impl Stage {
    fn new(kill: Option<Kill>, compacts: bool) -> Self {
        let directory = tempfile::tempdir().unwrap();
        let mut scene = Scene::new(&[]);
        scene.state.jobs.register = Register::open(&directory.path().join("jobs"), 10).unwrap();
        let journal = RecoveryJournal::create(directory.path().join("recovery"), &header()).unwrap();
        scene.state.journal.come_back_from(journal.compact_after(u64::MAX));
        scene.state.start_generation(Time(1), 1);
        let hands = (1..=WORKERS).map(|pid| Hand { pid, ..Hand::default() }).collect();
        let mut stage = Self {
            scene,
            directory,
            hands,
            job: None,
            kill,
            generation: 1,
            claims: Vec::new(),
            compacts,
            lines_before: 0,
            lines_begun_with: 1,
            points: BTreeSet::new(),
            told: None,
        };
        (0..WORKERS as usize).for_each(|index| stage.join(index));
        stage
    }

    fn journal(&self) -> PathBuf {
        self.directory.path().join("recovery")
    }

    fn join(&mut self, index: usize) {
        let hand = &self.hands[index];
        let rejoin = hand.worker.map(|worker| Rejoin { worker, generation: hand.generation });
        let hello = Hello { pid: hand.pid, rejoin, ..Scene::hello(1) };
        let (frames, inbox) = unbounded_channel();
        let joined = self.scene.state.join(self.scene.now, hello, frames);
        let hand = &mut self.hands[index];
        let Ok(worker) = joined else {
            // The journal does not contain its join: it starts again, without state.
            assert!(hand.begun.is_empty(), "{:?} had work and is not known", hand.worker);
            *hand = Hand { pid: hand.pid + WORKERS, ..Hand::default() };
            return self.join(index);
        };
        (hand.worker, hand.generation) = (Some(worker), self.generation);
        self.scene.inboxes.insert(worker, inbox);
        self.scene.settle();
        if rejoin.is_none() {
            return self.turn();
        }
        let greeting = self.scene.sent(worker);
        let Some(MasterFrame::Welcome { session, .. }) = greeting.first() else { panic!("{greeting:?}") };
        let hand = &mut self.hands[index];
        hand.confirmed(session.heard);
        let mut again: Vec<WorkerFrame> = hand.unheard.iter().map(copy).collect();
        again.push(WorkerFrame::Holding(hand.holding()));
        for frame in again {
            self.scene.deliver(worker, frame);
        }
        self.turn();
    }

    /// Delivers the queued frames to the workers and closes outputs, unless the master is killed here.
    fn turn(&mut self) {
        let closings: Vec<_> = self.scene.state.jobs.closings.drain(..).map(|closing| closing.job).collect();
        for job in closings {
            self.scene.state.closed(self.scene.now, job, None);
            self.scene.settle();
        }
        self.told = self.told.take().or_else(|| self.ended_status());
        if self.is_killed() {
            return;
        }
        if self.compacts {
            self.lines_before += self.lines();
            self.scene.state.compact(self.scene.now).unwrap();
            // The instant that follows is not part of it.
            self.lines_begun_with = self.lines() - 1;
            if self.is_killed() {
                return;
            }
        }
        self.pass_on(true);
    }

    /// Number of lines of the journal.
    fn lines(&self) -> usize {
        let written = std::fs::read(self.journal()).unwrap();
        written.iter().filter(|byte| **byte == b'\n').count()
    }

    fn pass_on(&mut self, spoken: bool) {
        for hand in &mut self.hands {
            let Some(worker) = hand.worker.filter(|worker| self.scene.inboxes.contains_key(worker)) else {
                continue;
            };
            let said = self.scene.sent(worker);
            hand.inbox.extend(said.into_iter().filter(|_| spoken));
        }
    }

    /// Kills the master here, if planned, and replaces it. Returns true if it did.
    fn is_killed(&mut self) -> bool {
        let lines = self.lines_before + self.lines();
        // The compacted content exists as a whole or not at all.
        self.points.extend(self.lines_before + self.lines_begun_with..=lines);
        let Some(kill) = self.kill.take_if(|kill| kill.line <= lines) else { return false };
        self.pass_on(kill.spoken && kill.line == lines);
        let line = kill.line - self.lines_before;
        let written = std::fs::read(self.journal()).unwrap();
        let ends = written.iter().enumerate().filter(|(_, byte)| **byte == b'\n').map(|(at, _)| at + 1);
        let end = ends.take(line).last().unwrap();
        std::fs::write(self.journal(), &written[..end]).unwrap();
        self.replace();
        true
    }

    /// Replaces the dead master.
    fn replace(&mut self) {
        let now = self.scene.now;
        let (scene, length) = replayed(&self.journal());
        self.scene = scene;
        self.scene.now = now;
        self.generation += 1;
        let register = Register::open(&self.directory.path().join("jobs"), 10).unwrap();
        let journal = RecoveryJournal::go_on(self.journal(), length).unwrap().compact_after(u64::MAX);
        self.scene.state.go_on(now, self.generation, register, journal);
        if self.told.is_none() {
            self.job = self.scene.state.jobs.entries.keys().next().copied();
        }
        for index in 0..self.hands.len() {
            // Frames in flight when the connection broke still arrive.
            let arrived: Vec<_> = self.hands[index].inbox.drain(..).collect();
            for order in arrived {
                self.obey(index, order, false);
            }
            if self.hands[index].worker.is_some() {
                self.join(index);
            }
        }
    }

    fn obey(&mut self, index: usize, order: MasterFrame, heard: bool) {
        let said = self.hands[index].obey(order);
        self.hands[index].unheard.extend(said.iter().map(copy));
        let (generation, worker) = (self.generation, self.hands[index].worker);
        for frame in said {
            // A master that came meanwhile has received the unconfirmed frames.
            if let Some(worker) = worker.filter(|_| heard && generation == self.generation) {
                self.scene.deliver(worker, frame);
                self.turn();
            }
        }
    }

    fn submit(&mut self) {
        let output = self.directory.path().join(format!("out-{}", self.claims.len()));
        let claim = OutputDirectory::claim(&output, false, false, "0123456789").unwrap();
        let probe = claim.probe().clone();
        self.claims.push(claim);
        let change = |submission: &mut Submission| {
            submission.splits = vec![submission.splits[0].clone(); MAPS as usize];
            (submission.attached, submission.output) = (false, FilePath::from(output.as_path()));
            (submission.reduces, submission.output_probe) = (REDUCES, probe);
        };
        self.job = Some(self.scene.submit(change).unwrap());
        self.turn();
    }

    /// Runs to the end of the job. Returns its final status, how many times each attempt was started, and the lines at
    /// which a master could be killed.
    fn run(mut self) -> (String, BTreeMap<TaskId, u32>, BTreeSet<usize>) {
        for _ in 0..TURNS_MAX {
            let Some(job) = self.job else {
                self.submit();
                continue;
            };
            let next = (0..self.hands.len()).find(|&index| !self.hands[index].inbox.is_empty());
            match next {
                Some(index) => {
                    let order = self.hands[index].inbox.pop_front().expect("it is not empty");
                    self.obey(index, order, true);
                }
                None if self.told.is_some() => return self.result(job),
                None => {
                    self.scene.state.ping(self.scene.now);
                    self.scene.pass(Span::milliseconds(10));
                    self.turn();
                }
            }
        }
        panic!(
            "the job does not end: {:?}",
            self.scene.state.queries().status(self.scene.now, self.job.unwrap())
        );
    }

    /// Status of the job, when it has ended.
    fn ended_status(&self) -> Option<String> {
        let job = self.job.filter(|job| self.scene.state.jobs.entries[job].state.ended())?;
        let status = self.scene.state.queries().status(self.scene.now, job)?;
        let parts = &self.scene.state.jobs.entries[&job].output.parts;
        let parts: Vec<_> = parts.iter().map(|(index, (part, _))| (index, part.bytes, &part.name)).collect();
        let (maps, reduces, counts, totals) = (status.maps, status.reduces, status.attempts, status.totals);
        Some(format!("{:?} {maps:?} {reduces:?} {counts:?} {totals:?} {parts:?}", status.state))
    }

    fn result(self, job: JobId) -> (String, BTreeMap<TaskId, u32>, BTreeSet<usize>) {
        #[cfg(debug_assertions)]
        self.scene.state.core.audit().unwrap();
        assert!(self.kill.is_none(), "the master was not killed");
        let status = self.scene.state.queries().status(self.scene.now, job);
        let status = status.as_ref().or_else(|| self.scene.state.jobs.register.past(job));
        assert_eq!(status.unwrap().state, JobState::Succeeded, "it is known how it ended");
        let mut begun: BTreeMap<TaskId, u32> = BTreeMap::new();
        for (attempt, times) in self.hands.iter().flat_map(|hand| &hand.begun) {
            let task = TaskId { job: JobId(0), ..attempt.task };
            *begun.entry(task).or_default() += times;
        }
        (self.told.expect("it has ended"), begun, self.points)
    }
}

/// Copies a frame. Frames can be copied only in tests.
fn copy(frame: &WorkerFrame) -> WorkerFrame {
    let mut bytes = Vec::new();
    codec::encode(frame, &mut bytes);
    codec::decode_message(&bytes, 1 << 20).unwrap()
}

/// Kills a master at each line of its journal, and compares with a run without kills and compaction.
fn kill_at_each_line(compacts: bool) {
    let (undisturbed, begun, _) = Stage::new(None, false).run();
    assert_eq!(begun.len() as u32, MAPS + REDUCES);
    assert!(begun.values().all(|times| *times == 1), "{begun:?}");
    let (told, again, points) = Stage::new(None, compacts).run();
    assert_eq!((told, again), (undisturbed.clone(), begun.clone()));
    assert!(20 < points.len(), "{} lines", points.len());
    for line in points.into_iter().filter(|line| 1 < *line) {
        for spoken in [false, true] {
            let kill = Kill { line, spoken };
            let (told, again, _) = Stage::new(Some(kill), compacts).run();
            assert_eq!(told, undisturbed, "{kill:?}");
            assert_eq!(again, begun, "{kill:?}");
        }
    }
}

#[test]
fn job_ends_the_same_and_no_task_runs_twice_whichever_line_a_master_is_killed_at() {
    kill_at_each_line(false);
}

#[test]
fn job_ends_the_same_when_a_master_that_begins_its_journal_anew_at_each_turn_is_killed_at_any_line() {
    kill_at_each_line(true);
}
