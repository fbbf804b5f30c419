//! One worker's end of the network: waiting segments, and the next transfer.

use super::SimTransfer;
use crate::core::ShuffleOrder;
use crate::ids::{AttemptId, JobId};
use crate::plan::{Line, Share};
use std::collections::BTreeMap;
use std::ops::Bound::{Excluded, Unbounded};

/// Segments of one job that one worker has for one home.
#[derive(Default)]
pub(super) struct Load {
    pub(super) maps: Vec<AttemptId>,
    pub(super) bytes: f64,
}

/// Segments of one job that wait at a home.
pub(super) struct WaitingSegments {
    /// Segments by the worker that has them.
    pub(super) from: BTreeMap<u32, Load>,
    /// Worker of the last fetch, for round-robin order.
    pub(super) last: u32,
    /// Bytes fetched divided by the weight, for jobs that share.
    pub(super) level: f64,
}

impl WaitingSegments {
    /// Returns the next transfer from this worker: maps in the order of their ends, until there are enough bytes.
    pub(super) fn next(&self, from: u32, enough: f64) -> (usize, f64) {
        let load = &self.from[&from];
        let each = load.bytes / load.maps.len() as f64;
        // Empty segments are all taken at once.
        let count = if 0.0 < each { (enough / each).ceil().max(1.0) } else { f64::INFINITY };
        if load.maps.len() as f64 <= count {
            return (load.maps.len(), load.bytes);
        }
        (count as usize, each * count)
    }

    pub(super) fn take(&mut self, from: u32, enough: f64) -> Load {
        let (count, bytes) = self.next(from, enough);
        let load = self.from.get_mut(&from).expect("a worker was chosen that has something");
        if count == load.maps.len() {
            return self.from.remove(&from).expect("it was there");
        }
        load.bytes -= bytes;
        Load { maps: load.maps.drain(..count).collect(), bytes }
    }
}

/// One worker's end of the network.
#[derive(Default)]
pub(super) struct NetworkEnd {
    /// Outgoing and incoming transfers.
    pub(super) out: Vec<u32>,
    pub(super) into: Vec<u32>,
    pub(super) waiting: BTreeMap<JobId, WaitingSegments>,
    /// Level of the job served last: new jobs start at this level.
    pub(super) level: f64,
    /// Bytes fetched in each line divided by its fraction, and the level of the line served last.
    pub(super) lines: Vec<f64>,
    pub(super) line_level: f64,
}

impl NetworkEnd {
    /// Chooses the job and the worker that a free lane fetches from, by the order.
    pub(super) fn choose(
        &mut self,
        order: &ShuffleOrder,
        transfers: &[Option<SimTransfer>],
        enough: f64,
    ) -> Option<(JobId, u32)> {
        if self.waiting.is_empty() {
            return None;
        }
        let busy: Vec<u32> =
            self.into.iter().filter_map(|&slot| Some(transfers[slot as usize].as_ref()?.from)).collect();
        let mut rest = &order.grants[..];
        while let Some(&(job, share)) = rest.first() {
            let alike = |other: &(JobId, Share)| {
                let kinds = (share, other.1);
                matches!(kinds, (Share::Weight(_), Share::Weight(_)) | (Share::In(_), Share::In(_)))
            };
            let tier = 1 + rest[1..].iter().take_while(|other| alike(other)).count();
            let found = match share {
                Share::All | Share::Slots(_) => self.source(job, &busy).map(|from| (job, from)),
                Share::Weight(_) => self.by_weight(&rest[..tier], &busy, enough),
                Share::In(_) => self.by_line(&rest[..tier], &order.lines, &busy, enough),
            };
            if found.is_some() {
                return found;
            }
            rest = &rest[tier..];
        }
        if order.only {
            return None;
        }
        self.waiting.keys().find_map(|&job| Some((job, self.source(job, &busy)?)))
    }

    /// Returns the next worker in round-robin order that has segments of the job and that no lane here fetches from.
    pub(super) fn source(&self, job: JobId, busy: &[u32]) -> Option<u32> {
        let waiting = self.waiting.get(&job)?;
        let after = waiting.from.range((Excluded(waiting.last), Unbounded)).map(|(&from, _)| from);
        let before = waiting.from.range(..=waiting.last).map(|(&from, _)| from);
        after.chain(before).find(|from| !busy.contains(from))
    }

    /// Returns the job of the tier with the fewest bytes per weight.
    pub(super) fn by_weight(
        &mut self,
        tier: &[(JobId, Share)],
        busy: &[u32],
        enough: f64,
    ) -> Option<(JobId, u32)> {
        let candidate = |&(job, share): &(JobId, Share)| {
            let Share::Weight(weight) = share else { return None };
            let level = self.waiting.get(&job)?.level.max(self.level);
            Some((level, job, self.source(job, busy)?, weight))
        };
        let least = tier.iter().filter_map(candidate).min_by(|a, b| a.0.total_cmp(&b.0));
        let (level, job, from, weight) = least?;
        self.level = level;
        let waiting = self.waiting.get_mut(&job).expect("the candidate waits here");
        waiting.level = level + waiting.next(from, enough).1 / weight;
        Some((job, from))
    }

    /// Returns the first job of the line with the fewest bytes per fraction.
    pub(super) fn by_line(
        &mut self,
        tier: &[(JobId, Share)],
        fractions: &[f64],
        busy: &[u32],
        enough: f64,
    ) -> Option<(JobId, u32)> {
        self.lines.resize(self.lines.len().max(fractions.len()), 0.0);
        let mut best: Option<(f64, usize, JobId, u32)> = None;
        for &(job, share) in tier {
            let Share::In(Line(line)) = share else { continue };
            let line = line as usize;
            // A line without a fraction gets only what all others leave.
            let open = fractions.get(line).is_some_and(|&fraction| 0.0 < fraction);
            let level = if open { self.lines[line].max(self.line_level) } else { f64::INFINITY };
            if best.is_none_or(|(least, ..)| level < least)
                && let Some(from) = self.source(job, busy)
            {
                best = Some((level, line, job, from));
            }
        }
        let (level, line, job, from) = best?;
        if level.is_finite() {
            self.line_level = level;
            self.lines[line] = level + self.waiting[&job].next(from, enough).1 / fractions[line];
        }
        Some((job, from))
    }
}
