//! Estimates of job sizes over time, and of the feasibility of deadlines at arrival.

use crate::api::{DeadlineOutlook, ESTIMATES_MAX, EstimateRecord};
use gristmill_scheduler::core::{self, Core};
use gristmill_scheduler::ids::JobId;
use gristmill_scheduler::station::Station;
use gristmill_scheduler::units::{Span, Time};

/// Estimates of one job over time, thinned as they become many.
#[derive(Default, serde::Serialize, serde::Deserialize)]
pub(super) struct Estimates {
    records: Vec<EstimateRecord>,
    /// Exponent of the thinning: one estimate of two to the power of this is kept.
    thinned: u32,
    /// Number of estimates dropped since the last one kept.
    skipped: u32,
}

impl Estimates {
    /// True if the next estimate is to be kept; counts it otherwise.
    fn wants(&mut self) -> bool {
        let skip = self.skipped + 1 < 1 << self.thinned;
        self.skipped = if skip { self.skipped + 1 } else { 0 };
        !skip || self.records.is_empty()
    }

    fn push(&mut self, record: EstimateRecord) {
        if self.records.len() == ESTIMATES_MAX {
            let mut place = 0;
            self.records.retain(|_| {
                place += 1;
                place % 2 == 1
            });
            self.thinned += 1;
        }
        self.records.push(record);
    }

    /// Adds the current estimate of a job's size, if the next one is to be kept.
    pub(super) fn sample(&mut self, now: Time, id: JobId, maps_done: u32, core: &Core) {
        if !self.wants() {
            return;
        }
        let Some(sizes) = core.sizes(id) else { return };
        self.push(EstimateRecord { at_ns: now.0, maps_done, whole: sizes.whole.0, left: sizes.left.0 });
    }

    /// Estimates that were kept, in the order of time.
    pub(super) fn records(&self) -> Vec<EstimateRecord> {
        self.records.clone()
    }
}

/// Outlook on the deadline of a job that arrives now.
pub(super) fn outlook(now: Time, id: JobId, deadline: Option<Time>, core: &Core) -> Option<DeadlineOutlook> {
    let (deadline, outlook) = deadline.zip(core.outlook(id))?;
    Some(in_words(deadline.since(now), &outlook))
}

/// Converts an outlook to the form shown to users.
fn in_words(span: Span, outlook: &core::Outlook) -> DeadlineOutlook {
    let seconds = span.seconds();
    let needs = format!(
        "it needs {:.1} map slots of {:.0}, and then {:.1} reduce slots of {:.0}",
        outlook.map_slots,
        outlook.slots[Station::Map],
        outlook.reduce_slots,
        outlook.slots[Station::Reduce]
    );
    let finite = |slots: f64| Some(slots).filter(|slots| slots.is_finite());
    let words = match outlook.feasible {
        _ if finite(outlook.map_slots).is_none() => {
            format!("a deadline of {seconds:.1} s does not look feasible: it has passed already")
        }
        Some(true) => format!("a deadline of {seconds:.1} s looks feasible: {needs}"),
        Some(false) => format!("a deadline of {seconds:.1} s does not look feasible: {needs}"),
        None => format!("nothing is known of the job's work yet, so {seconds:.1} s may or may not be enough"),
    };
    DeadlineOutlook {
        feasible: outlook.feasible,
        map_slots: finite(outlook.map_slots),
        reduce_slots: finite(outlook.reduce_slots),
        words,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_outlook_on_a_deadline_that_has_passed_can_be_read_by_the_client() {
        let need = gristmill_scheduler::estimate::completion::need([1.0, 0.0, 1.0].into(), [1.0, 1.0], 0.0);
        let slots = [1.0; 3].into();
        let outlook = core::Outlook {
            feasible: Some(false),
            map_slots: need.map_slots,
            reduce_slots: need.reduce_slots,
            slots,
            free: slots,
        };
        let seen = in_words(Span(0), &outlook);
        let read: DeadlineOutlook = serde_json::from_str(&serde_json::to_string(&seen).unwrap()).unwrap();
        assert_eq!(read, seen);
        assert!(read.words.contains("has passed"), "{}", read.words);
    }

    #[test]
    fn estimates_are_thinned_evenly_when_there_are_more_than_fit() {
        let mut estimates = Estimates::default();
        for at_ns in 0..5 * ESTIMATES_MAX as u64 {
            if estimates.wants() {
                estimates.push(EstimateRecord { at_ns, maps_done: 0, whole: [0.0; 3], left: [0.0; 3] });
            }
        }
        let times: Vec<u64> = estimates.records().iter().map(|record| record.at_ns).collect();
        assert!(ESTIMATES_MAX / 2 <= times.len() && times.len() <= ESTIMATES_MAX, "{}", times.len());
        assert_eq!(times[0], 0);
        let gaps: Vec<u64> = times.windows(2).map(|two| two[1] - two[0]).collect();
        assert!(gaps.iter().all(|gap| (4..=16).contains(gap)), "{gaps:?}");
    }
}
