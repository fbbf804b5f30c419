//! Transfers between workers: the order of fetches, and their rates.
//!
//! A home has a few lanes. A free lane takes the first job in the order that has segments for the home at a worker that
//! no other lane fetches from. It fetches all of these segments at once, so transfers grow with the load. The rate of a
//! transfer is the smaller of the fair shares at both ends. It changes when other transfers start or end there.

mod end;

use crate::core::ShuffleOrder;
use crate::ids::{AttemptId, JobId};
use crate::sim::cluster::NetworkConfig;
use crate::sim::cluster::processors::Processors;
use crate::units::{Span, Time};
use end::{NetworkEnd, WaitingSegments};
use std::collections::{BTreeMap, BTreeSet};

/// Active transfer.
pub(super) struct SimTransfer {
    pub(super) job: JobId,
    pub(super) from: u32,
    pub(super) to: u32,
    pub(super) maps: Vec<AttemptId>,
    pub(super) bytes: f64,
    pub(super) began: Time,
    /// Time of the first byte.
    flows: Time,
    left: f64,
    rate: f64,
    since: Time,
    /// Number of rate changes, used to ignore an end that was predicted before the last change.
    version: u32,
}

/// Predicted end of a transfer, valid until its rate changes.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Debug)]
pub(super) struct Foreseen {
    slot: u32,
    version: u32,
}

/// State of all ends and transfers.
#[derive(Default)]
pub(super) struct Network {
    config: NetworkConfig,
    /// Bytes after which a transfer takes no further map.
    request_bytes: f64,
    latency: Span,
    ends: Vec<NetworkEnd>,
    /// Transfers by slot; slots are reused.
    transfers: Vec<Option<SimTransfer>>,
    spare: Vec<u32>,
    versions: Vec<u32>,
    /// Homes that may fill a lane, and ends where the number of transfers changed.
    hungry: BTreeSet<u32>,
    changed: BTreeSet<u32>,
    /// True if the last order excluded jobs, and its revision.
    shut_out: bool,
    revision: u64,
    pub(super) moved_bytes: f64,
}

impl Network {
    /// Creates a network of these workers, whose transfers take no further map from `request_bytes` on.
    pub(super) fn new(config: NetworkConfig, workers: usize, request_bytes: f64) -> Self {
        Self {
            config,
            request_bytes,
            latency: Span((config.latency * 1e9).round() as u64),
            ends: (0..workers).map(|_| NetworkEnd::default()).collect(),
            ..Self::default()
        }
    }

    /// True if transfers take no time, so that none are needed.
    pub(super) fn is_instant(&self) -> bool {
        self.config.in_rate.is_infinite() && self.config.out_rate.is_infinite() && self.latency == Span(0)
    }

    /// Makes this output available to the home.
    pub(super) fn offer(&mut self, map: AttemptId, from: u32, to: u32, bytes: f64) {
        let end = &mut self.ends[to as usize];
        let level = end.level;
        let waiting = end.waiting.entry(map.task.job);
        let waiting = waiting.or_insert_with(|| WaitingSegments { from: BTreeMap::new(), last: to, level });
        let load = waiting.from.entry(from).or_default();
        load.maps.push(map);
        load.bytes += bytes;
        self.hungry.insert(to);
    }

    /// Fills free lanes and updates changed rates. Reports the predicted ends.
    pub(super) fn settle(
        &mut self,
        now: Time,
        (order, revision): (&ShuffleOrder, u64),
        processors: &mut Option<Processors>,
        mut foresee: impl FnMut(Time, Foreseen),
    ) {
        // Jobs that an order excluded wait for another order, not for an event at their home.
        if self.shut_out && self.revision != revision {
            let waits = (0_u32..).zip(&self.ends).filter(|(_, end)| !end.waiting.is_empty());
            self.hungry.extend(waits.map(|(home, _)| home));
        }
        self.shut_out = order.only;
        self.revision = revision;
        while let Some(home) = self.hungry.pop_first() {
            while self.ends[home as usize].into.len() < self.config.lanes as usize
                && let Some((job, from)) =
                    self.ends[home as usize].choose(order, &self.transfers, self.request_bytes)
            {
                self.start_transfer(now, processors, job, (from, home));
            }
        }
        while let Some(end) = self.changed.pop_first() {
            for place in 0..self.ends[end as usize].out.len() {
                self.pace(now, self.ends[end as usize].out[place], &mut foresee);
            }
            for place in 0..self.ends[end as usize].into.len() {
                self.pace(now, self.ends[end as usize].into[place], &mut foresee);
            }
        }
    }

    fn start_transfer(
        &mut self,
        now: Time,
        processors: &mut Option<Processors>,
        job: JobId,
        (from, to): (u32, u32),
    ) {
        let end = &mut self.ends[to as usize];
        let waiting = end.waiting.get_mut(&job).expect("a job was chosen that waits here");
        let load = waiting.take(from, self.request_bytes);
        waiting.last = from;
        if waiting.from.is_empty() {
            end.waiting.remove(&job);
        }
        let asked = match processors {
            Some(processors) => processors.request(to as usize, now, load.bytes),
            None => now,
        };
        let slot = self.spare.pop().unwrap_or_else(|| {
            self.transfers.push(None);
            self.versions.push(0);
            (self.transfers.len() - 1) as u32
        });
        self.transfers[slot as usize] = Some(SimTransfer {
            job,
            from,
            to,
            maps: load.maps,
            bytes: load.bytes,
            began: now,
            flows: asked + self.latency,
            left: load.bytes,
            rate: 0.0,
            since: now,
            version: self.versions[slot as usize],
        });
        self.ends[from as usize].out.push(slot);
        self.ends[to as usize].into.push(slot);
        self.changed.extend([from, to]);
    }

    /// Recomputes the rate of a transfer, and predicts its end if the rate changed.
    fn pace(&mut self, now: Time, slot: u32, foresee: &mut impl FnMut(Time, Foreseen)) {
        let transfer = self.transfers[slot as usize].as_mut().expect("ends list transfers that flow");
        let part = |rate: f64, sharers: &[u32]| rate / sharers.len() as f64;
        let out = part(self.config.out_rate, &self.ends[transfer.from as usize].out);
        let into = part(self.config.in_rate, &self.ends[transfer.to as usize].into);
        let rate = out.min(into);
        #[expect(clippy::float_cmp, reason = "the same ends with the same sharers give the same bits")]
        if rate == transfer.rate {
            return;
        }
        let flowed = now.since(transfer.since.max(transfer.flows)).seconds() * transfer.rate;
        transfer.left = (transfer.left - flowed).max(0.0);
        transfer.rate = rate;
        transfer.since = now;
        transfer.version += 1;
        let rest = Span((transfer.left / rate * 1e9).ceil() as u64);
        foresee(now.max(transfer.flows) + rest, Foreseen { slot, version: transfer.version });
    }

    /// Returns the transfer that ends now, unless its rate changed after this prediction.
    pub(super) fn end(&mut self, foreseen: Foreseen) -> Option<SimTransfer> {
        let slot = foreseen.slot as usize;
        let transfer = self.transfers[slot].take_if(|transfer| transfer.version == foreseen.version)?;
        self.versions[slot] = transfer.version;
        self.spare.push(foreseen.slot);
        let (from, to) = (transfer.from as usize, transfer.to as usize);
        self.ends[from].out.retain(|&other| other != foreseen.slot);
        self.ends[to].into.retain(|&other| other != foreseen.slot);
        self.changed.extend([transfer.from, transfer.to]);
        self.hungry.insert(transfer.to);
        self.moved_bytes += transfer.bytes;
        Some(transfer)
    }
}

#[cfg(test)]
mod tests;
