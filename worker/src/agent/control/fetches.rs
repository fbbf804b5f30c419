//! Gathers segments: sends the requests of the plan and reports the fetched ones.

use super::Agent;
use crate::agent::config::WorkerConfig;
use crate::descriptors;
use crate::error_text::chain;
use crate::http::Endpoint;
use crate::protocol::{FailureClass, FetchRate, FetchedOutput, WorkerFrame};
use crate::shuffle::fetch::{FetchError, FetchOutcome, Fetcher};
use crate::shuffle::meter::Meters;
use crate::shuffle::pace::InPace;
use crate::shuffle::plan::{Fetch, FetchPlan, Retry};
use gristmill_scheduler::ids::{AttemptId, WorkerId};
use gristmill_scheduler::units::Time;
use tokio::sync::mpsc::{UnboundedReceiver, UnboundedSender, unbounded_channel};

/// Maximum number of partitions named in one frame, if they are not of one output: much less than a frame
/// can hold.
const FRAME_PARTITIONS_MAX: usize = 1 << 18;

/// State of gathering: segments to fetch next, and results.
pub(super) struct Fetching {
    pub(super) plan: FetchPlan,
    fetcher: Fetcher,
    /// Rate limit of incoming data; `None` for unlimited.
    pub(super) pace: Option<InPace>,
    meters: Meters,
    pub(super) results: UnboundedReceiver<Fetched>,
    sender: UnboundedSender<Fetched>,
}

impl Fetching {
    pub(super) fn new(config: &WorkerConfig, fetcher: Fetcher) -> Self {
        let (pace, limits) = match config.settings.nic_bytes_per_second {
            Some(rate) => (Some(InPace::start(rate)), config.fetch.clone().paced(rate.get())),
            None => (None, config.fetch.clone()),
        };
        let sees = if config.settings.sends_all() { None } else { crate::machine::files_seen() };
        let fetcher = Fetcher { sees, ..fetcher };
        let (sender, results) = unbounded_channel();
        Self { plan: FetchPlan::new(limits), fetcher, pace, meters: Meters::default(), results, sender }
    }
}

impl Fetching {
    /// Returns the rates of incoming data; empty on a network with a rate limit, where segments wait for
    /// the limiter.
    pub(super) fn rates(&mut self, now: Time) -> Vec<FetchRate> {
        let rates = self.meters.sample(now);
        if self.pace.is_some() { Vec::new() } else { rates }
    }
}

/// Result of a fetching task.
pub(super) struct Fetched {
    fetch: Fetch,
    outcomes: Vec<FetchOutcome>,
    started_ns: u64,
    ended_ns: u64,
}

impl Agent {
    /// Handles outputs of this worker: their segments are added to the gathers directly.
    pub(super) fn read_in_place(&mut self, maps: &[AttemptId], endpoint: &Endpoint) {
        let now = self.now_ns();
        let mut outputs = Vec::with_capacity(maps.len());
        for &map in maps {
            let Some(partitions) = self.store.fill_own(map) else {
                self.send(&WorkerFrame::FetchFailed {
                    map,
                    from: self.worker,
                    class: FailureClass::Missing,
                    message: format!("{map} is not held at {endpoint} any more"),
                });
                continue;
            };
            outputs.push(FetchedOutput { map, partitions, bytes: 0, resent: 0 });
        }
        self.send_fetched(outputs, self.worker, (now, now));
    }

    /// Reports fetched segments, in as many frames as necessary: outputs times partitions may exceed one
    /// frame.
    fn send_fetched(
        &mut self,
        outputs: Vec<FetchedOutput>,
        from: WorkerId,
        (started_ns, ended_ns): (u64, u64),
    ) {
        let mut outputs = outputs.into_iter().peekable();
        while outputs.peek().is_some() {
            let (mut some, mut partitions) = (Vec::new(), 0);
            while let Some(next) = outputs.next_if(|_| partitions < FRAME_PARTITIONS_MAX) {
                // The output itself takes space too, even if none of its segments are new.
                partitions += 1 + next.partitions.len();
                self.store.mark_reported(next.map.task.job, &next.partitions);
                some.push(next);
            }
            self.send(&WorkerFrame::Fetched { outputs: some, from, started_ns, ended_ns });
        }
    }

    pub(super) fn start_fetches(&mut self) {
        while let Some(fetch) = self.fetching.plan.next(Time(self.now_ns())) {
            let Some(job) = self.jobs.get(&fetch.job) else {
                self.fetching.plan.forget(fetch.job);
                self.fetching.plan.ended(fetch.id);
                continue;
            };
            let (fetcher, key, results) =
                (self.fetching.fetcher.clone(), job.order.key.clone(), self.fetching.sender.clone());
            let received = self.fetching.meters.began(fetch.from, Time(self.now_ns()));
            let stream = self.fetching.pace.as_ref().map(|pace| pace.open(fetch.job, fetch.id));
            let epoch = self.epoch;
            tokio::spawn(async move {
                let started_ns = epoch.elapsed().as_nanos() as u64;
                let outcomes = fetcher.fetch_through(&fetch, &key, stream.as_ref(), &received).await;
                drop(stream);
                let ended_ns = epoch.elapsed().as_nanos() as u64;
                let _ = results.send(Fetched { fetch, outcomes, started_ns, ended_ns });
            });
        }
    }

    pub(super) fn fetched(&mut self, fetched: Fetched) {
        let Fetched { fetch, outcomes, started_ns, ended_ns } = fetched;
        let from = fetch.from;
        self.fetching.meters.ended(from, Time(self.now_ns()));
        let mut outputs = Vec::with_capacity(outcomes.len());
        let mut failures = Vec::new();
        for FetchOutcome { map, filled, bytes, resent, error } in outcomes {
            if !filled.is_empty() {
                outputs.push(FetchedOutput { map, partitions: filled, bytes, resent });
            }
            let Some(error) = error else {
                self.fetching.plan.arrived(fetch.id, map, bytes);
                continue;
            };
            if error.is_preempted() {
                self.fetching.plan.preempted(fetch.id, map, Time(self.now_ns()));
                continue;
            }
            tracing::debug!(%map, %from, %error, "fetch failed");
            // An output that does not exist will not come back, but the route to it may.
            let retry = match error {
                FetchError::Missing { .. } | FetchError::Damaged { .. } => {
                    let wanted = self.fetching.plan.wants(fetch.id, map);
                    self.fetching.plan.arrived(fetch.id, map, 0);
                    if wanted { Retry::GiveUp } else { Retry::NotWanted }
                }
                _ if descriptors::caused(&error) => {
                    self.fetching.plan.lacked_means(fetch.id, map, Time(self.now_ns()))
                }
                FetchError::Request { .. } | FetchError::Garbled { .. } => {
                    self.fetching.plan.unreachable(fetch.id, map, Time(self.now_ns()))
                }
                _ => self.fetching.plan.failed(fetch.id, map, Time(self.now_ns())),
            };
            if retry == Retry::GiveUp {
                let class = fetch_class(&error);
                let message = crate::sanitize::message(&chain(&error));
                failures.push(WorkerFrame::FetchFailed { map, from, class, message });
            }
        }
        self.send_fetched(outputs, from, (started_ns, ended_ns));
        for failure in &failures {
            self.send(failure);
        }
        self.fetching.plan.ended(fetch.id);
    }
}

/// Returns the class under which a failed fetch is reported to the master.
pub(in crate::agent) fn fetch_class(error: &FetchError) -> FailureClass {
    match error {
        // The output is fine if this worker has no descriptor left for a connection.
        _ if descriptors::caused(error) => FailureClass::Worker,
        // The other worker has checked it.
        FetchError::Damaged { .. } => FailureClass::Corrupt,
        FetchError::Garbled { .. } => FailureClass::Fetch,
        FetchError::Disk { .. } => FailureClass::Worker,
        // The other worker has responded, so the route to it works.
        FetchError::Missing { .. } => FailureClass::Missing,
        FetchError::Request { .. } => FailureClass::Fetch,
    }
}
