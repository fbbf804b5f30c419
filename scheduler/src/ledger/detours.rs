//! Effects of cut routes between workers: which workers jobs stop using, and which outputs are made again.

use crate::command::{Cause, Command, Outcome};
use crate::event::FetchRate;
use crate::ids::{JobId, TaskId, TaskKind, WorkerId};
use crate::ledger::jobs::Job;
use crate::ledger::routes::RouteLoss;
use crate::ledger::worker::Worker;
use crate::ledger::{Ledger, Workers};
use crate::units::Time;
use std::collections::BTreeSet;

impl Ledger {
    /// Records that a home could not read from another worker.
    pub(crate) fn route_failed(&mut self, home: WorkerId, from: WorkerId, out: &mut Vec<Command>) {
        self.routes.cut_off((home, from), self.now, &self.config.routes, false);
        self.route_around(out);
    }

    /// Records the rates at which a home receives bytes. A route counts as cut if fetching what the home lacks would
    /// take longer than making it again elsewhere. If a worker is slow on all its routes, all of them count as cut.
    pub(crate) fn fetch_rates(&mut self, home: WorkerId, rates: &[FetchRate], out: &mut Vec<Command>) {
        let host = |worker| self.workers.get(worker).map(Worker::host);
        let Some(here) = host(home) else { return self.late() };
        // A route between workers of one host gives no information about networks.
        let apart = |rate: &&FetchRate| host(rate.from).is_some_and(|there| there != here);
        let rates: Vec<FetchRate> = rates.iter().filter(apart).copied().collect();
        for rate in &rates {
            self.rates.enter(home, rate, self.now);
        }
        if self.config.network.is_none() && self.rates.learn_inbound(&rates) {
            self.unseen.dirty.extend(self.jobs.values().filter(|job| !job.map_only()).map(|job| job.id));
        }
        let slow: Vec<_> = rates.iter().filter(|rate| self.is_worth_a_detour(home, rate)).collect();
        let mut news = false;
        for rate in slow {
            for route in self.slow_routes(home, rate.from) {
                news |= self.routes.cut_off(route, self.now, &self.config.routes, true);
            }
        }
        if news {
            self.route_around(out);
        }
    }

    /// Returns a slow route, by home and source, and all other routes of an end that is slow on all of them.
    fn slow_routes(&self, home: WorkerId, from: WorkerId) -> Vec<(WorkerId, WorkerId)> {
        let mut routes = vec![(home, from)];
        if let Some(end) = self.rates.slow_end((home, from), self.now, &self.config.routes) {
            let others = self.workers.iter().map(|worker| worker.id).filter(|&other| other != end);
            routes.extend(others.flat_map(|other| [(end, other), (other, end)]));
        }
        routes
    }

    /// True if a route is far slower than others and making the outputs behind it again is faster than fetching them.
    fn is_worth_a_detour(&self, home: WorkerId, rate: &FetchRate) -> bool {
        let limits = &self.config.routes;
        let Some(bytes_per_second) = self.rates.far_below_peers(home, rate, self.now, limits) else {
            return false;
        };
        let elsewhere = self.workers.iter().filter(|worker| worker.id != rate.from && worker.id != home);
        let slots: u32 = elsewhere.map(|worker| worker.slots().count(TaskKind::Map)).sum();
        let (mut bytes, mut work) = (0.0, 0.0);
        for job in self.jobs.values() {
            let behind = job.behind(home, rate.from);
            if behind.pinned {
                return false;
            }
            bytes += behind.bytes;
            work += behind.work;
        }
        limits.slow_gain.seconds() + work / f64::from(slots.max(1)) < bytes / bytes_per_second.max(1.0)
    }

    /// Retries cut routes whose time has come.
    pub(crate) fn try_routes(&mut self, before: Time, out: &mut Vec<Command>) {
        if self.routes.next_try(before).is_some_and(|due| due <= self.now) {
            self.route_around(out);
        }
    }

    /// Reacts to changed cut routes, draining workers or full disks: excludes workers, readmits others, and makes
    /// unreadable outputs again.
    pub(crate) fn route_around(&mut self, out: &mut Vec<Command>) {
        let mut aside = self.routes.choose(self.now, |worker| self.kept_at(worker));
        let avoided = |worker: &&Worker| worker.draining.is_some() || worker.disk_full;
        aside.extend(self.workers.iter().filter(avoided).map(|worker| worker.id));
        if self.routes.aside != aside {
            self.routes.aside = aside;
            let tolerated = self.config.worker_failures_tolerated;
            for (&id, job) in &mut self.jobs {
                if job.exclude(&self.routes.aside, tolerated, &mut self.workers, out) {
                    self.unseen.dirty.insert(id);
                }
            }
        }
        for id in self.jobs.keys().copied().collect::<Vec<_>>() {
            self.give_up_cut_off(id, out);
        }
    }

    /// Makes again what homes of a job lack behind cut routes.
    pub(crate) fn give_up_cut_off(&mut self, id: JobId, out: &mut Vec<Command>) {
        let rereads_max = self.config.rereads_max;
        let cuts: Vec<_> = self.routes.cut(self.now).collect();
        for (home, from) in cuts {
            let Some(job) = self.jobs.get_mut(&id) else { return };
            match job.lose_behind(home, from, rereads_max, &mut self.workers, out) {
                Ok(false) => {}
                Ok(true) => drop(self.unseen.dirty.insert(id)),
                Err(cause) => self.end(id, Outcome::Failed { cause }, out),
            }
        }
    }

    /// Returns what live jobs keep at a worker.
    fn kept_at(&self, worker: WorkerId) -> RouteLoss {
        let jobs = self.workers.get(worker).map(|worker| &worker.marks.jobs).into_iter().flatten();
        let mut loss = RouteLoss::default();
        for job in jobs.filter_map(|job| self.jobs.get(job)) {
            for &map in job.outputs.kept.get(&worker).into_iter().flatten() {
                loss.outputs += 1;
                loss.pinned |= job.map_spec(map).pinned;
            }
        }
        loss
    }
}

/// Outputs that a home lacks and another worker keeps.
struct Behind {
    bytes: f64,
    /// Slot-seconds of making them again.
    work: f64,
    /// True if some of them can be made only there.
    pinned: bool,
}

impl Job {
    /// Returns what this home lacks of the outputs at that worker, estimated from the job's mean output and map so far.
    fn behind(&self, home: WorkerId, from: WorkerId) -> Behind {
        let kept = self.outputs.kept.get(&from).into_iter().flatten();
        let lacked: Vec<u32> = kept.copied().filter(|&map| self.home_lacks(home, map)).collect();
        let part = self.homes.at.get(&home).map_or(0, |partitions| partitions.len()) as f64;
        let (maps, done) = (lacked.len() as f64, f64::from(self.counts.maps_done.max(1)));
        Behind {
            bytes: maps * self.work.maps_done.output.0 as f64 / done * part
                / (self.reduces.len().max(1) as f64),
            work: maps * self.work.maps_done.took.seconds() / done,
            pinned: lacked.iter().any(|&map| self.map_spec(map).pinned),
        }
    }

    /// Excludes workers that are set aside or have failed this job too often, and readmits others. Returns true if that
    /// changed anything.
    fn exclude(
        &mut self,
        aside: &BTreeSet<WorkerId>,
        tolerated: u32,
        workers: &mut Workers,
        out: &mut Vec<Command>,
    ) -> bool {
        let failed = self.workers.failures.iter().filter(|&(_, &failures)| tolerated <= failures);
        let excluded: BTreeSet<WorkerId> = failed
            .map(|(worker, _)| worker)
            .chain(aside)
            .copied()
            .filter(|&id| workers.is_live(id))
            .collect();
        let changes = self.workers.excluded != excluded;
        if changes {
            self.workers.excluded = excluded;
            self.leave_excluded(workers, out);
        }
        changes
    }

    /// Makes again what this home lacks of the outputs at that worker. Returns true if there were any.
    ///
    /// # Errors
    /// If the job cannot continue: a map was made again too often, or cannot run again.
    fn lose_behind(
        &mut self,
        home: WorkerId,
        from: WorkerId,
        rereads_max: u32,
        workers: &mut Workers,
        out: &mut Vec<Command>,
    ) -> Result<bool, Cause> {
        let Some(kept) = self.outputs.kept.get(&from).filter(|_| self.homes.at.contains_key(&home)) else {
            return Ok(false);
        };
        let lacked: Vec<u32> = kept.iter().copied().filter(|&map| self.home_lacks(home, map)).collect();
        let stays = self.may_use(from, workers);
        for &map in &lacked {
            let task = &mut self.maps[map as usize];
            task.unreadable += 1;
            if stays {
                task.tries.avoid(from);
            }
            if rereads_max < task.unreadable {
                return Err(Cause::OutputUnreadable { task: TaskId::map(self.id, map) });
            }
            self.lose_output(map, workers, out)?;
        }
        Ok(!lacked.is_empty())
    }
}
