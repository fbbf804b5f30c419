//! Steps of workers: they carry out commands, run attempts and fetch.

use super::*;

impl RandomHistory {
    /// Queues a launched attempt, or refuses a reduce whose input is not complete.
    fn launch(&mut self, worker: WorkerId, attempt: AttemptId) {
        let sim_worker = self.sim_workers.get_mut(&worker).expect("picked among the live");
        sim_worker.inbox.pop_front();
        let (job, partition) = (attempt.task.job, attempt.task.index);
        let maps = self.specs[&job].maps.len();
        let empty = sim_worker.empty.remove(&attempt).unwrap_or_default();
        if let Some(has) = sim_worker.homes.get_mut(&(job, partition)) {
            has.extend(empty);
        }
        let has = sim_worker.homes.get(&(job, partition)).map(BTreeSet::len);
        if attempt.task.kind == TaskKind::Reduce && has != Some(maps) {
            // Only a partition that returned to a former home can be mistaken for complete.
            assert!(1 < self.housed[&(job, partition, worker)], "{attempt} has {has:?} of {maps} segments");
            sim_worker.outbox.push_back(Event::AttemptFailed { attempt, class: Failure::Fetch });
        } else {
            if attempt.task.kind == TaskKind::Reduce {
                self.coverage.check(worker, attempt.task, &self.specs[&job]);
            }
            sim_worker.queue.push_back(attempt);
        }
        sim_worker.start_queued();
    }

    /// Lets some worker process a command.
    #[expect(clippy::collapsible_match, reason = "a guard should not change anything")]
    pub(super) fn obey(&mut self) {
        let Some(worker) = self.some_worker() else { return };
        match self.sim_workers[&worker].inbox.front().cloned() {
            Some(Command::Divide { attempt, .. }) => return self.divide(worker, attempt),
            Some(Command::Launch { attempt, .. }) => return self.launch(worker, attempt),
            _ => {}
        }
        let housed = &mut self.housed;
        let mut granted = None;
        let sim_worker = self.sim_workers.get_mut(&worker).expect("picked among the live");
        match sim_worker.inbox.pop_front() {
            Some(Command::Home { job, partition, .. }) => {
                sim_worker.homes.insert((job, partition), BTreeSet::new());
                *housed.entry((job, partition, worker)).or_default() += 1;
            }
            Some(Command::ReduceAdded { attempt, rest, .. }) => {
                let AttemptId { task: TaskId { job, index, .. }, .. } = attempt;
                let segments = sim_worker.homes.get(&(job, index)).cloned().unwrap_or_default();
                sim_worker.homes.insert((job, rest), segments);
                *housed.entry((job, rest, worker)).or_default() += 1;
                self.coverage.same_segments(worker, attempt.task, rest);
            }
            Some(Command::Unhome { job, partition, .. }) => {
                sim_worker.homes.remove(&(job, partition)).expect("unhomed where it was at home");
            }
            Some(Command::GrantCommit { attempt, .. }) => {
                if sim_worker.running.get(&attempt) == Some(&Phase::Asked) {
                    sim_worker.running.insert(attempt, Phase::Granted);
                    self.published.insert((attempt.task.job, attempt.task.index));
                    self.coverage.permitted(attempt);
                    granted = Some(attempt.task);
                }
            }
            Some(Command::Resume { attempt, .. }) => {
                // It may have failed in the meantime.
                if sim_worker.parked.remove(&attempt) {
                    self.moves[1] += 1;
                    sim_worker.queue.push_back(attempt);
                }
            }
            Some(command) => sim_worker.obey(&command),
            None => {}
        }
        sim_worker.start_queued();
        self.one_publishes(granted);
    }

    /// Checks that at most one attempt of a task publishes.
    pub(super) fn one_publishes(&self, task: Option<TaskId>) {
        let publishing = |sim_worker: &SimWorker| {
            let of_task = sim_worker.running.iter().filter(|(attempt, _)| Some(attempt.task) == task);
            of_task.filter(|(_, phase)| **phase == Phase::Granted).count()
        };
        let count: usize = self.sim_workers.values().map(publishing).sum();
        assert!(count <= 1, "{count} attempts of {task:?} publish at once");
    }

    /// Advances some attempt by a step.
    pub(super) fn work(&mut self) {
        let Some(worker) = self.some_worker() else { return };
        if self.faults && self.chance(self.wild.failure / 4) {
            self.fail_parked(worker);
        }
        let running: Vec<AttemptId> = self.sim_workers[&worker].running.keys().copied().collect();
        let Some(attempt) = self.pick(&running) else { return };
        if self.suspend(worker, attempt) {
            return;
        }
        let odds = if attempt.task.kind == TaskKind::Reduce { 300 } else { 100 };
        if self.chance(odds) {
            let read = Bytes(self.rng.random_range(0..100));
            let of = Bytes(if attempt.task.kind == TaskKind::Reduce { 100 } else { 0 });
            let sim_worker = self.sim_workers.get_mut(&worker).expect("picked among the live");
            return sim_worker.outbox.push_back(Event::AttemptProgressed { attempt, read, of });
        }
        // Under a preemptive policy reduces are longer, or none would be suspended.
        if self.slow && attempt.task.kind == TaskKind::Reduce && self.chance(850) {
            return;
        }
        let fails = self.faults && self.chance(self.wild.failure);
        let class = self.failure();
        let took = Span(self.rng.random_range(0..CoreConfig::default().ahead.mean_max.0 * 3 / 2));
        let publishes = attempt.task.kind == TaskKind::Reduce || self.specs[&attempt.task.job].reduces == 0;
        let sim_worker = self.sim_workers.get_mut(&worker).expect("picked among the live");
        let phase = sim_worker.running[&attempt];
        if fails {
            sim_worker.running.remove(&attempt);
            sim_worker.outbox.push_back(Event::AttemptFailed { attempt, class });
        } else if publishes && phase == Phase::Working {
            sim_worker.running.insert(attempt, Phase::Asked);
            sim_worker.outbox.push_back(Event::CommitRequested { attempt });
        } else if !publishes || phase == Phase::Granted {
            sim_worker.running.remove(&attempt);
            // Some maps of a job have no output in any attempt.
            let empty = attempt.task.index % 3 == attempt.task.job.0 % 3;
            let output_bytes = if empty { Bytes::ZERO } else { Bytes(7) };
            let fingerprint = (!publishes).then(Fingerprint::default);
            sim_worker.outbox.push_back(match attempt.task.kind {
                TaskKind::Map => Event::MapFinished { attempt, output_bytes, took, fingerprint },
                TaskKind::Reduce => Event::ReduceFinished { attempt, output_bytes, took: Span::default() },
            });
            if !publishes && !empty {
                sim_worker.outputs.insert(attempt);
            }
        }
        sim_worker.start_queued();
    }

    /// Makes a suspended attempt fail.
    pub(super) fn fail_parked(&mut self, worker: WorkerId) {
        let parked: Vec<AttemptId> = self.sim_workers[&worker].parked.iter().copied().collect();
        let (attempt, class) = (self.pick(&parked), self.failure());
        let sim_worker = self.sim_workers.get_mut(&worker).expect("picked among the live");
        if let Some(attempt) = attempt {
            sim_worker.parked.remove(&attempt);
            sim_worker.outbox.push_back(Event::AttemptFailed { attempt, class });
        }
    }

    /// Suspends an attempt that was ordered to suspend, unless it ends first.
    pub(super) fn suspend(&mut self, worker: WorkerId, attempt: AttemptId) -> bool {
        let (border, room) = (self.chance(700), !self.faults || !self.chance(100));
        let sim_worker = self.sim_workers.get_mut(&worker).expect("picked among the live");
        let told = sim_worker.running[&attempt] == Phase::Working && sim_worker.asked.remove(&attempt);
        if told && border && !room {
            sim_worker.outbox.push_back(Event::SuspensionRefused { attempt });
        } else if told && border {
            self.moves[0] += 1;
            sim_worker.running.remove(&attempt);
            sim_worker.parked.insert(attempt);
            sim_worker.outbox.push_back(Event::AttemptSuspended { attempt });
            assert!(sim_worker.parked.len() <= SUSPENDED_MAX, "{worker} keeps too many suspended attempts");
            sim_worker.start_queued();
        }
        told && border && room
    }

    pub(super) fn failure(&mut self) -> Failure {
        match self.rng.random_range(0..100) {
            0..50 => Failure::User,
            50..80 => Failure::Worker,
            80..90 => Failure::Corrupt,
            90..98 => Failure::Fetch,
            98 => Failure::Input,
            _ => Failure::Config,
        }
    }

    /// Lets some home fetch, or fail to.
    pub(super) fn fetch(&mut self) {
        let Some(worker) = self.some_worker() else { return };
        let wanted: Vec<_> = self.sim_workers[&worker].wanted.values().copied().collect();
        let Some((map, from)) = self.pick(&wanted) else { return };
        let job = map.task.job;
        let there = self.sim_workers.get(&from).is_some_and(|sim_worker| sim_worker.outputs.contains(&map));
        let class = match self.rng.random_range(0..3) {
            _ if !there => Failure::Fetch,
            0 => Failure::Worker,
            1 => Failure::Corrupt,
            _ => Failure::Fetch,
        };
        let fails = !there || self.faults && self.chance(self.wild.failure);
        let all = self.chance(700);
        let sim_worker = self.sim_workers.get_mut(&worker).expect("picked among the live");
        let index = map.task.index;
        let lacking = sim_worker.homes.iter_mut().filter(|(key, has)| key.0 == job && !has.contains(&index));
        let mut lacking: Vec<_> = lacking.collect();
        if lacking.is_empty() {
            sim_worker.wanted.remove(&(job, index));
        } else if fails {
            sim_worker.wanted.remove(&(job, index));
            sim_worker.outbox.push_back(Event::FetchFailed { job, home: worker, map, class });
        } else {
            lacking.truncate(if all { usize::MAX } else { 1 });
            let got = |(key, has): (&(JobId, u32), &mut BTreeSet<u32>)| {
                has.insert(index);
                key.1
            };
            let partitions: Vec<u32> = lacking.into_iter().map(got).collect();
            self.coverage.fetched(worker, map, &partitions);
            sim_worker.outbox.push_back(Event::Fetched { job, home: worker, map, partitions });
        }
    }
}
