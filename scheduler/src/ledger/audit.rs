//! Every invariant of the books, recounted from scratch: what tests ask after each event.
//!
//! Not here: repair; a violation is a bug of ours. Cost: all of the books, so the live master never calls it.

use crate::ids::{AttemptId, TaskId, TaskKind, WorkerId};
use crate::ledger::Books;
use crate::ledger::jobs::Job;
use crate::ledger::queue::{Bound, places as places_of};
use crate::ledger::suspensions::Hold;
use crate::ledger::tasks::{MapState, ReduceState};
use crate::ledger::workers::{KINDS, Workers};
use std::cmp::Reverse;
use std::collections::{BTreeMap, BTreeSet};
use std::fmt;

/// An invariant that does not hold.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Violation {
    /// Whose: a job, task, attempt, worker.
    pub subject: String,
    /// What should hold.
    pub rule: &'static str,
}

impl fmt::Display for Violation {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}: {}", self.subject, self.rule)
    }
}

/// Collects what does not hold.
#[derive(Default)]
struct Findings(Vec<Violation>);

impl Findings {
    fn rule(&mut self, holds: bool, subject: impl fmt::Display, rule: &'static str) {
        if !holds {
            self.0.push(Violation { subject: subject.to_string(), rule });
        }
    }
}

impl Books {
    /// Recounts everything.
    ///
    /// # Errors
    /// The invariants that do not hold.
    pub(crate) fn audit(&self) -> Result<(), Vec<Violation>> {
        let mut findings = Findings::default();
        self.audit_workers(&mut findings);
        self.audit_attempts(&mut findings);
        self.audit_suspensions(&mut findings);
        for job in self.jobs.values() {
            audit_counts(job, &mut findings);
            audit_maps(job, &self.workers, &mut findings);
            audit_reduces(job, &self.workers, &mut findings);
            self.audit_marks(job, &mut findings);
        }
        if findings.0.is_empty() { Ok(()) } else { Err(findings.0) }
    }

    fn audit_workers(&self, findings: &mut Findings) {
        let workers = &self.workers;
        let holds_up = |worker: &&crate::ledger::Worker| worker.holds_up();
        let holding_up: BTreeSet<WorkerId> =
            workers.iter().filter(holds_up).map(|worker| worker.id).collect();
        findings.rule(holding_up == workers.holding_up, "workers", "list those that hold up ready reduces");
        let mut idle = [BTreeSet::new(), BTreeSet::new()];
        let mut counted = [[0; 4]; 2];
        let mut behind = BTreeSet::new();
        for (id, worker) in &workers.live {
            findings.rule(*id == worker.id, id, "is filed under its own id");
            let mut used = [0; 2];
            for attempt in &worker.running {
                used[worker.pool(attempt.task.kind)] += 1;
            }
            findings.rule(used == worker.used, id, "counts what runs in its pools");
            let within = KINDS.iter().all(|&kind| used[worker.pool(kind)] <= worker.slots.of(kind));
            findings.rule(within, id, "runs no more than its slots");
            findings.rule(worker.slots.unified() != workers.pooled, id, "has slots like all others");
            let idle_queue = 0 < worker.free(TaskKind::Map) && 0 < worker.queued();
            findings.rule(!idle_queue, id, "queues nothing while it has a free slot");
            let mut quick = 0;
            for (attempts, queued) in
                [(worker.running.iter().collect::<Vec<_>>(), false), (worker.queued.iter().collect(), true)]
            {
                for attempt in attempts {
                    let record = self.attempts.get(attempt);
                    let known = record.is_some_and(|record| record.worker == *id && record.queued == queued);
                    findings.rule(known, attempt, "runs or is queued where the table has it");
                    quick += u32::from(record.is_some_and(|record| record.quick));
                }
            }
            let mut awaited = [0; 2];
            let bounds = |job: &'_ Job| {
                [&job.ready, &job.parked, &job.queue.pinned, &job.queue.dealt]
                    .map(|bound| (bound.kind, bound.at.get(id).map_or(0, BTreeSet::len)))
            };
            for (kind, count) in self.jobs.values().flat_map(bounds) {
                awaited[worker.pool(kind)] += count as u32;
            }
            let ready: usize =
                self.jobs.values().map(|job| job.ready.at.get(id).map_or(0, BTreeSet::len)).sum();
            findings.rule(ready as u32 == worker.ready, id, "counts the ready reduces that wait for it");
            findings.rule(awaited == worker.awaited, id, "counts the tasks that wait for it alone");
            findings.rule(quick == worker.quick, id, "counts its quick attempts");
            if let Some(level) = worker.level() {
                behind.insert((level, *id));
            }
            let known = worker.jobs.iter().chain(&worker.bound).chain(&worker.named);
            findings.rule(
                known.into_iter().all(|job| self.jobs.contains_key(job)),
                id,
                "knows only live jobs",
            );
            for (pool, &kind) in KINDS.iter().enumerate().filter(|&(pool, &kind)| workers.pool(kind) == pool)
            {
                if 0 < worker.free(kind) {
                    idle[pool].insert((Reverse(worker.free(kind)), *id));
                }
                counted[pool][0] += worker.slots.of(kind);
                counted[pool][1] += worker.free(kind);
                counted[pool][2] += worker.usable(kind);
                counted[pool][3] += worker.awaited[pool];
            }
        }
        findings.rule(idle == workers.idle, "idle", "lists exactly the workers with free slots");
        findings.rule(behind == workers.behind, "behind", "lists exactly the workers that may queue");
        for (pool, [slots, free, usable, awaited]) in counted.into_iter().enumerate() {
            findings.rule(free == workers.free[pool], "workers", "free slots are counted");
            findings.rule(slots == workers.slots[pool], "workers", "slots are counted");
            findings.rule(awaited == workers.awaited[pool], "workers", "tasks bound to them are counted");
            findings.rule(
                usable == workers.usable[pool],
                "workers",
                "slots that bound tasks can use are counted",
            );
        }
        let loose: u64 = self.jobs.values().map(|job| u64::from(job.queue.loose())).sum();
        findings.rule(loose == workers.loose, "workers", "maps that are not bound are counted");
    }

    fn audit_attempts(&self, findings: &mut Findings) {
        let mut held: [BTreeMap<u32, u32>; 3] = Default::default();
        for (attempt, record) in &self.attempts {
            let worker = self.workers.get(record.worker);
            findings.rule(
                worker.is_some_and(|worker| match record.hold.is_parked() {
                    true => worker.suspended.contains(attempt),
                    false => worker.running.contains(attempt) || worker.queued.contains(attempt),
                }),
                attempt,
                "holds a slot of a live worker, waits for one, or is suspended there",
            );
            let alone = !record.queued || record.line.is_none() && attempt.task.kind == TaskKind::Map;
            findings.rule(alone, attempt, "is a map outside of lines, as it is queued");
            let listed = self.ahead.recalled.contains(attempt)
                || self.ahead.waiting.contains(&(record.started, *attempt));
            findings.rule(record.queued || !listed, attempt, "is not listed as queued, as it runs");
            if let Some(line) = record.line {
                let station = super::attempts::station_of(attempt.task.kind);
                *held[station.index()].entry(line.0).or_default() += 1;
            }
            let Some(job) = self.jobs.get(&attempt.task.job) else {
                findings.rule(record.dying, attempt, "is dying, as its job is over");
                continue;
            };
            let tries = job.tries(attempt.task);
            findings.rule(!record.dying, attempt, "is not dying, as its job is live");
            findings.rule(attempt.epoch + 1 == tries.launched, attempt, "is the current attempt");
            findings.rule(job.running.contains(attempt), attempt, "is known to its job");
            let running = match attempt.task.kind {
                TaskKind::Map => job.maps[attempt.task.index as usize].state == MapState::Running,
                TaskKind::Reduce => {
                    let reduce = &job.reduces[attempt.task.index as usize];
                    let parked = record.hold.is_parked();
                    let state = if parked { ReduceState::Suspended } else { ReduceState::Running };
                    reduce.state == state && reduce.home == Some(record.worker)
                }
            };
            findings.rule(
                running,
                attempt,
                "belongs to a task that runs or is suspended, a reduce at its home",
            );
            let firm = attempt.task.kind == TaskKind::Map || tries.permit == Some(attempt.epoch);
            findings.rule(
                firm == (record.hold == Hold::Firm),
                attempt,
                "has its slot for good if it may publish",
            );
        }
        for (station, lines) in self.lines.iter().enumerate() {
            let counted = lines.held.iter().enumerate();
            let right = counted
                .into_iter()
                .all(|(line, &n)| held[station].get(&(line as u32)).copied().unwrap_or(0) == n);
            findings.rule(right, "lines", "hold the attempts granted in them");
        }
    }

    fn audit_suspensions(&self, findings: &mut Findings) {
        let with = |wanted: Hold| self.attempts.iter().filter(move |(_, record)| record.hold == wanted);
        let suspendable: BTreeSet<_> = with(Hold::Suspendable).map(|(&attempt, _)| attempt).collect();
        findings.rule(suspendable == self.suspendable, "books", "list the reduces that can be suspended");
        let movable = with(Hold::Suspended { stays: false }).filter(|(_, record)| !record.dying);
        let movable: BTreeSet<_> = movable.map(|(&attempt, _)| attempt).collect();
        let stranded: BTreeSet<_> = self.stranded.keys().copied().collect();
        findings.rule(movable == stranded, "books", "list the suspended attempts that can be handed over");
        let mut sums = [0, 0];
        for worker in self.workers.iter() {
            let count =
                |hold: Hold| with(hold).filter(|(_, record)| record.worker == worker.id).count() as u32;
            let counts = [count(Hold::Suspendable), count(Hold::Leaving)];
            findings.rule(
                counts == [worker.suspendable, worker.leaving],
                worker.id,
                "counts the reduces that can be suspended, and those that were told to",
            );
            sums = [sums[0] + counts[0], sums[1] + counts[1]];
            let parked = |attempt: &AttemptId| {
                self.attempts.get(attempt).is_some_and(|record| record.hold.is_parked())
            };
            findings.rule(worker.suspended.iter().all(parked), worker.id, "keeps only suspended attempts");
        }
        let counted = [self.workers.suspendable, self.workers.leaving];
        findings.rule(sums == counted, "workers", "reduces that can be suspended are counted");
        for job in self.jobs.values() {
            let own =
                |attempt: &&AttemptId| self.attempts.get(attempt).is_some_and(|record| record.hold.yields());
            let yielding = job.running.iter().filter(own).count() as u32;
            findings.rule(
                yielding == job.yielding,
                job.id,
                "counts its reduces whose slot can be taken back",
            );
        }
    }

    fn audit_marks(&self, job: &Job, findings: &mut Findings) {
        let told: BTreeSet<WorkerId> = self
            .workers
            .iter()
            .filter(|worker| worker.jobs.contains(&job.id))
            .map(|worker| worker.id)
            .collect();
        findings.rule(told == job.told, job.id, "and the workers agree on who was told of it");
        let touches = job.homes.keys().chain(job.outputs.keys());
        findings.rule(
            touches.into_iter().all(|worker| told.contains(worker)),
            job.id,
            "lives only on workers told of it",
        );
        findings.rule(!job.complete(), job.id, "is not complete, as it is live");
        let since = job.orphaned_since.is_some_and(|since| self.orphaned.contains(&(since, job.id)));
        let orphaned = !job.queue.orphans.is_empty();
        findings.rule(since == orphaned, job.id, "is listed with the time since which it has orphans");
        findings.rule(
            job.running.iter().all(|attempt| self.attempts.contains_key(attempt)),
            job.id,
            "runs only attempts of the table",
        );
        let placed = job.runs.iter().enumerate().all(|(place, run)| {
            self.attempts.get(run).is_some_and(|record| !record.queued && record.place as usize == place)
        });
        findings.rule(placed, job.id, "knows the places of its running maps");
        let began = job.runs.len() as u32;
        findings.rule(began == job.maps_running - job.maps_queued, job.id, "lists all its running maps");
        let reduces =
            [ReduceState::Running, ReduceState::Suspended].map(|state| job.reduce_counts[state as usize]);
        let begun = job.maps_running + reduces.iter().sum::<u32>();
        findings.rule(
            job.running.len() as u32 == begun,
            job.id,
            "has one attempt for each task that has begun",
        );
        let settled = self.workers.count() == 0 || job.homeless.is_empty();
        findings.rule(settled, job.id, "has a home for every partition while there are workers");
        findings.rule(
            job.barred.iter().all(|&worker| self.workers.is_live(worker)),
            job.id,
            "bars only live workers",
        );
    }
}

fn audit_counts(job: &Job, findings: &mut Findings) {
    let maps =
        |wanted: fn(&MapState) -> bool| job.maps.iter().filter(|map| wanted(&map.state)).count() as u32;
    let waiting = maps(|state| *state == MapState::Waiting);
    let running = maps(|state| *state == MapState::Running);
    let done = maps(|state| matches!(state, MapState::Done { .. }));
    let counted = (job.maps_waiting, job.maps_running, job.maps_done);
    findings.rule(counted == (waiting, running, done), job.id, "counts its maps by state");
    let mut states = [0; 5];
    for reduce in &job.reduces {
        states[reduce.state as usize] += 1;
    }
    findings.rule(states == job.reduce_counts, job.id, "counts its reduces by state");
    let fetched: u64 = job.reduces.iter().map(|reduce| u64::from(reduce.gathered.count())).sum();
    findings.rule(fetched == job.segments_fetched, job.id, "counts its segments");
}

fn audit_maps(job: &Job, workers: &Workers, findings: &mut Findings) {
    let mut outputs: BTreeMap<WorkerId, BTreeSet<u32>> = BTreeMap::new();
    for (index, map) in job.maps.iter().enumerate() {
        let index = index as u32;
        let task = TaskId::map(job.id, index);
        let lacking = job.reduces.iter().filter(|reduce| !reduce.gathered.get(index)).count() as u32;
        findings.rule(map.lacking == lacking, task, "counts the partitions that lack it");
        let queue = &job.queue;
        let pinned = queue.pinned.at.iter().filter(|(_, line)| line.contains(&index)).count();
        let places = [
            queue.open.contains(&index),
            queue.preferring.contains(&index),
            queue.wary.contains(&index),
            queue.resting.contains(&index),
            queue.orphans.contains(&index),
            0 < pinned,
            map.dealt.is_some_and(|to| queue.dealt.at.get(&to).is_some_and(|line| line.contains(&index))),
        ];
        let waits = usize::from(map.state == MapState::Waiting);
        let stands = places.iter().filter(|&&stands| stands).count();
        findings.rule(stands == waits, task, "stands in line once if it waits, else not");
        if queue.orphans.contains(&index) {
            let nowhere = map.spec.pinned && places_of(&map.spec, workers).is_empty();
            findings.rule(nowhere, task, "is pinned to where nobody is, as it is an orphan");
        }
        if 0 < pinned {
            findings.rule(
                pinned == places_of(&map.spec, workers).len(),
                task,
                "waits at all its live workers, as it is pinned",
            );
        }
        for (worker, line) in &queue.near {
            let near = places[1] && map.spec.preferred.contains(worker);
            // A worker that joined after the map was put in line is not in its index.
            findings.rule(!line.contains(&index) || near, task, "waits near its input only");
            findings.rule(workers.is_live(*worker), worker, "is live, as maps wait near it");
        }
        if let MapState::Done { output } = map.state {
            match output {
                Some(worker) => {
                    outputs.entry(worker).or_default().insert(index);
                }
                None if job.empty.get(index) => {
                    findings.rule(map.lacking == 0, task, "is lacked by nobody, as it is empty");
                }
                None if !job.map_only() && 0 < map.lacking => {
                    findings.rule(!job.homeless.is_empty(), task, "is made again, as a home lacks it");
                }
                None => {}
            }
        }
        let permit = map.tries.permit.is_none_or(|epoch| epoch + 1 == map.tries.launched && job.map_only());
        findings.rule(permit, task, "gave its permit to its current attempt");
    }
    findings.rule(outputs == job.outputs, job.id, "knows who keeps its outputs");
    findings.rule(
        outputs.keys().all(|&worker| workers.is_live(worker)),
        job.id,
        "keeps outputs on live workers",
    );
    audit_bound(job, &job.queue.pinned, workers, findings);
    audit_bound(job, &job.queue.dealt, workers, findings);
    let dealt: usize = job.queue.dealt.at.values().map(BTreeSet::len).sum();
    let named = job.maps.iter().filter(|map| map.dealt.is_some()).count();
    findings.rule(dealt == named, job.id, "knows where its maps were dealt to");
}

fn audit_reduces(job: &Job, workers: &Workers, findings: &mut Findings) {
    let mut homes: BTreeMap<WorkerId, BTreeSet<u32>> = BTreeMap::new();
    let mut homeless = BTreeSet::new();
    for (partition, reduce) in job.reduces.iter().enumerate() {
        let partition = partition as u32;
        let task = TaskId::reduce(job.id, partition);
        let complete = reduce.gathered.count() as usize == job.maps.len() && reduce.home.is_some();
        let ready =
            reduce.home.is_some_and(|home| job.ready.at.get(&home).is_some_and(|l| l.contains(&partition)));
        let rests = job.resting.contains(&partition);
        let stands = reduce.state == ReduceState::Ready && !rests;
        findings.rule(ready == stands, task, "stands in line if it is ready and does not rest");
        let rightly = !rests || reduce.state == ReduceState::Ready;
        findings.rule(rightly, task, "is ready, as it rests");
        let parked =
            reduce.home.is_some_and(|home| job.parked.at.get(&home).is_some_and(|l| l.contains(&partition)));
        findings.rule(
            !parked || reduce.state == ReduceState::Suspended,
            task,
            "may be resumed only if suspended",
        );
        let continued =
            reduce.continues.is_none_or(|continued| continued.attempt.epoch < reduce.tries.launched);
        findings.rule(
            continued && (reduce.continues.is_none() || reduce.state != ReduceState::Done),
            task,
            "goes on from an earlier attempt while it is not done",
        );
        match (reduce.state, reduce.home) {
            (ReduceState::Done, home) => findings.rule(home.is_none(), task, "has no home, as it is done"),
            (state, Some(home)) => {
                homes.entry(home).or_default().insert(partition);
                findings.rule(
                    complete == (state != ReduceState::Gathering),
                    task,
                    "gathers until it is complete",
                );
                findings.rule(workers.is_live(home), task, "has a live home");
                let begun = matches!(state, ReduceState::Running | ReduceState::Suspended);
                let good = job.may_use(home, workers) || begun;
                findings.rule(good, task, "is not gathered on a barred worker");
            }
            (state, None) => {
                homeless.insert(partition);
                findings.rule(state == ReduceState::Gathering, task, "gathers, as it has no home");
                let nothing = reduce.gathered.count() == job.empty.count();
                findings.rule(nothing, task, "has nothing but empty segments, as it has no home");
            }
        }
        let permit = reduce.tries.permit;
        let held_right = permit.is_none_or(|epoch| epoch + 1 == reduce.tries.launched);
        findings.rule(held_right, task, "gave its permit to its current attempt");
        let published = reduce.state != ReduceState::Done || permit.is_some();
        findings.rule(published, task, "was allowed to publish, as it is done");
    }
    for (&home, partitions) in &homes {
        let lacks = |map: u32| partitions.iter().any(|&p| !job.reduces[p as usize].gathered.get(map));
        let right = (0..job.maps.len() as u32).all(|map| job.home_lacks(home, map) == lacks(map));
        findings.rule(right, home, "is known to lack what its partitions lack");
    }
    findings.rule(homes == job.homes, job.id, "knows its homes");
    findings.rule(homeless == job.homeless, job.id, "knows its homeless partitions");
    audit_bound(job, &job.ready, workers, findings);
    audit_bound(job, &job.parked, workers, findings);
}

fn audit_bound(job: &Job, bound: &Bound, workers: &Workers, findings: &mut Findings) {
    let mut startable = 0;
    for (worker, line) in &bound.at {
        let record = workers.get(*worker);
        findings.rule(!line.is_empty(), job.id, "keeps no empty lines");
        findings.rule(
            record.is_some_and(|record| record.bound.contains(&job.id)),
            job.id,
            "is known to workers that its tasks are bound to",
        );
        if workers.shown_idle(*worker, bound.kind) {
            startable += line.len() as u32;
        }
    }
    findings.rule(startable == bound.startable, job.id, "counts its bound tasks at idle workers");
}
