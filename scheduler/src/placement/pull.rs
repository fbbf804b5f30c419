//! Pull placement: an idle worker takes the nearest waiting task; work and homes are spread by free slots.
//!
//! Favours locality over order: among the maps of a job the one near an idle worker goes first. It never leaves a slot
//! idle for a better place, as delay scheduling does. Maps that a placement assigned go to their worker. A retry goes
//! where the task has not failed yet, and waits for such a worker if one is live.

use crate::ids::{TaskKind, WorkerId};
use crate::job::Locality;
use crate::ledger::{Job, Workers};
use crate::placement::interface::{Choice, HomeRequest, Offer, Placement};
use std::cmp::Reverse;

/// Pull placement. Its only state is the worker of the last home, so that ties rotate over the workers.
#[derive(Debug, Default)]
pub struct Pull {
    last_home: Option<WorkerId>,
}

impl Pull {
    /// Creates a placement without state.
    #[must_use]
    pub fn new() -> Self {
        Self::default()
    }
}

impl Placement for Pull {
    fn name(&self) -> &'static str {
        "pull"
    }

    fn choose(&mut self, offer: Offer<'_>) -> Option<Choice> {
        match offer.kind {
            TaskKind::Map => choose_map(offer.job, offer.workers),
            TaskKind::Reduce => choose_reduce(offer.job, offer.workers),
        }
    }

    /// Returns the map nearest to the worker with the shortest queue.
    fn choose_ahead(&mut self, offer: Offer<'_>, depth: u32) -> Option<Choice> {
        let Offer { job, workers, .. } = offer;
        let worker = workers.behind(depth).find(|worker| job.may_use(worker.id(), workers))?;
        let near = || Some((job.first_near(worker.id())?, Locality::Local));
        let host = || Some((job.first_near_host(worker.host())?, Locality::SameHost));
        let (index, locality) = near().or_else(host).or_else(|| first_anywhere(job))?;
        Some(Choice { worker: worker.id(), index, locality })
    }

    /// Returns the worker with the fewest homes of this job per slot, scaled by its speed if it is slow. Ties go to the
    /// next worker after that of the last home, over all jobs. Workers where the reduce failed are avoided.
    fn home(&mut self, request: HomeRequest<'_>) -> WorkerId {
        let HomeRequest { job, partition, workers } = request;
        let key = |id: WorkerId, slots: u32| {
            let load = homes_load(job.homes_at(id) + 1, slots, workers.delay(id));
            let avoided = job.avoids(TaskKind::Reduce, partition, id);
            (avoided, load, self.last_home.is_some_and(|last| id <= last), id)
        };
        let home = workers
            .iter()
            .filter(|worker| job.may_use(worker.id(), workers))
            .min_by_key(|worker| key(worker.id(), worker.slots().count(TaskKind::Reduce)))
            .expect("homes are asked for while there are workers")
            .id();
        self.last_home = Some(home);
        home
    }
}

/// Returns the time of the reduces of this many homes, as a fraction of one reduce on a typical worker.
pub(crate) fn homes_load(homes: u32, slots: u32, delay: f64) -> u64 {
    let common = (u64::from(homes) << 32) / u64::from(slots.max(1));
    if delay <= 1.0 { common } else { (common as f64 * delay) as u64 }
}

fn choose_map(job: &Job, workers: &Workers) -> Option<Choice> {
    choose_retrying(job, workers)
        .or_else(|| choose_assigned(job, workers))
        .or_else(|| choose_local(job, workers))
        .or_else(|| choose_host(job, workers))
        .or_else(|| choose_any(job, workers))
}

/// Retries come first: a task that always fails should do so early.
fn choose_retrying(job: &Job, workers: &Workers) -> Option<Choice> {
    for index in job.retrying() {
        let fitting = workers.idle(TaskKind::Map).filter(|worker| job.fits(index, worker.id(), workers));
        // `min_by_key` takes the first of equals, so the order of idle workers breaks ties.
        let nearest = fitting.map(|worker| (job.locality(index, worker.id(), workers), worker.id()));
        if let Some((locality, worker)) = nearest.min_by_key(|&(locality, _)| locality) {
            return Some(Choice { worker, index, locality });
        }
    }
    None
}

/// Returns the first map assigned to the emptiest idle worker that has one.
fn choose_assigned(job: &Job, workers: &Workers) -> Option<Choice> {
    let assigned = |worker: WorkerId| {
        let index = job.first_assigned(worker)?;
        Some(Choice { worker, index, locality: job.locality(index, worker, workers) })
    };
    if job.assigned_to().len() < workers.idle_count(TaskKind::Map) {
        let free = |worker: WorkerId| workers.get(worker).map_or(0, |worker| worker.free(TaskKind::Map));
        let idle = job.assigned_to().filter(|&worker| 0 < free(worker));
        return assigned(idle.min_by_key(|&worker| (Reverse(free(worker)), worker))?);
    }
    if job.assigned_to().len() == 0 {
        return None;
    }
    workers.idle(TaskKind::Map).find_map(|worker| assigned(worker.id()))
}

fn choose_local(job: &Job, workers: &Workers) -> Option<Choice> {
    if !job.has_near() {
        return None;
    }
    workers.idle(TaskKind::Map).find_map(|worker| {
        let worker = worker.id();
        let pinned = job.first_pinned(worker).filter(|&index| job.fits(index, worker, workers));
        let near = || job.first_near(worker).filter(|_| job.may_use(worker, workers));
        let index = pinned.or_else(near)?;
        Some(Choice { worker, index, locality: Locality::Local })
    })
}

fn choose_host(job: &Job, workers: &Workers) -> Option<Choice> {
    job.first_preferring()?;
    workers.idle(TaskKind::Map).filter(|worker| job.may_use(worker.id(), workers)).find_map(|worker| {
        let index = job.first_near_host(worker.host())?;
        Some(Choice { worker: worker.id(), index, locality: Locality::SameHost })
    })
}

fn choose_any(job: &Job, workers: &Workers) -> Option<Choice> {
    let (index, locality) = first_anywhere(job)?;
    let worker = workers.idle(TaskKind::Map).find(|worker| job.may_use(worker.id(), workers))?.id();
    Some(Choice { worker, index, locality })
}

/// Maps without a preferred worker go first: they lose nothing by it.
fn first_anywhere(job: &Job) -> Option<(u32, Locality)> {
    let open = job.first_open().map(|index| (index, Locality::NoPreference));
    open.or_else(|| Some((job.first_preferring()?, Locality::Remote)))
}

fn choose_reduce(job: &Job, workers: &Workers) -> Option<Choice> {
    let free = |home: WorkerId| workers.get(home).map_or(0, |worker| worker.free(TaskKind::Reduce));
    let home =
        job.ready_homes().filter(|&home| 0 < free(home)).min_by_key(|&home| (Reverse(free(home)), home))?;
    let index = job.first_ready(home)?;
    Some(Choice { worker: home, index, locality: Locality::Local })
}
