//! Division of a running reduce: it keeps its next keys, and another reduce of its partition gets the others.

use crate::attempt::{Division, TaskFailure};
use crate::input::KeptPart;
use crate::key::GroupPrefix;
use crate::merge::{LoserTree, MergeRest};
use crate::segment::{BLOCK_BYTES, CUT_KEY_BYTES_MAX, RestLimits};

/// Limits of the search for a key. Reading this many blocks takes about 10 ms.
const SEARCH_LIMITS: RestLimits = RestLimits { keys: 128, headers: 4096 };

/// Limits of an estimate of all bytes. Only compressed blocks need more than one header.
const BYTES_LIMITS: RestLimits = RestLimits { keys: 0, headers: 64 };

/// Minimum bytes that are given, and that are kept of a half: less is reduced sooner than another reduce starts.
const PIECE_BYTES_MIN: f64 = BLOCK_BYTES as f64;

/// End of the keys that a reduce processes. A division moves it to an earlier key.
pub(super) struct ReduceEnd {
    /// First key that is not reduced; `None` if all are.
    pub(super) until: Option<Vec<u8>>,
    pub(super) group: Option<GroupPrefix>,
    /// True if another reduce may get the last keys.
    pub(super) may_divide: bool,
}

impl ReduceEnd {
    /// Estimates the bytes of keys and values from the current pair to this end.
    pub(super) fn bytes(&self, tree: &LoserTree) -> Result<u64, TaskFailure> {
        let limits = if self.until.is_some() { SEARCH_LIMITS } else { BYTES_LIMITS };
        Ok(self.bytes_within(&tree.rest(limits)?) as u64)
    }

    fn bytes_within(&self, rest: &MergeRest) -> f64 {
        self.until.as_ref().map_or(rest.bytes, |until| rest.bytes_before(until))
    }

    /// Sets the end to a key after the current group, such that this part of the bytes is kept. Returns the division;
    /// `None` if there is no such key, or too little would be given.
    pub(super) fn divide(
        &mut self,
        tree: &LoserTree,
        part: KeptPart,
    ) -> Result<Option<Division>, TaskFailure> {
        if !self.may_divide {
            return Ok(None);
        }
        let rest = tree.rest(SEARCH_LIMITS)?;
        let bytes = self.bytes_within(&rest);
        let (wanted, kept_min) = match part {
            KeptPart::Half => (bytes / 2.0, PIECE_BYTES_MIN),
            KeptPart::Least => (0.0, 0.0),
        };
        let cuts = rest.keys.iter().filter_map(|key| self.cut(tree.key(), key));
        let cuts = cuts.map(|key| (key, rest.bytes_before(key)));
        let best = cuts.min_by(|(_, a), (_, b)| (a - wanted).abs().total_cmp(&(b - wanted).abs()));
        let Some((key, kept)) = best.filter(|(_, kept)| *kept >= kept_min && bytes - kept >= PIECE_BYTES_MIN)
        else {
            return Ok(None);
        };
        let (kept, given) = (kept as u64, (bytes - kept) as u64);
        self.until = Some(key.to_vec());
        Ok(Some(Division::Key { key: key.to_vec(), kept, given }))
    }

    /// Returns the first bytes of this key that are the start of its group, if the merge can end before that.
    fn cut<'a>(&self, current: &[u8], key: &'a [u8]) -> Option<&'a [u8]> {
        // The group of a key that was cut off may be unknown.
        if key.len() > CUT_KEY_BYTES_MAX {
            return None;
        }
        let cut = &key[..self.group.map_or(key.len(), |prefix| prefix(key))];
        (cut > current && self.until.as_deref().is_none_or(|until| cut < until)).then_some(cut)
    }
}
