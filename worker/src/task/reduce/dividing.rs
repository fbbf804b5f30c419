//! Division of a running reduce: it keeps its next keys, and another reduce of its partition gets the others.

use crate::attempt::{Division, TaskFailure};
use crate::input::KeptPart;
use crate::key::GroupPrefix;
use crate::merge::{LoserTree, MergeError, MergeRest};
use crate::segment::{BLOCK_BYTES, CUT_KEY_BYTES_MAX, RestLimits};

/// Limits of looking for a key. Reading so many blocks takes about 10 ms.
const KEYS_MAX: usize = 128;
const HEADERS_MAX: usize = 4096;

/// Maximum headers of blocks read for an estimate of all bytes, or one of each segment. Only compressed blocks need more
/// than one.
const ESTIMATE_HEADERS_MAX: usize = 64;

/// Minimum bytes that are given, and that are kept of a half: less is reduced sooner than another reduce starts.
const PIECE_BYTES_MIN: f64 = BLOCK_BYTES as f64;

/// End of a merge that is reduced.
pub(super) struct MergeEnd {
    /// First key that is not reduced; `None` if all are.
    pub(super) until: Option<Vec<u8>>,
    pub(super) group: Option<GroupPrefix>,
    /// True if another reduce may get the last keys.
    pub(super) may_divide: bool,
}

impl MergeEnd {
    /// Estimates the bytes of keys and values from the current pair to this end.
    pub(super) fn bytes(&self, tree: &LoserTree) -> Result<u64, TaskFailure> {
        let (keys, headers) =
            if self.until.is_some() { (KEYS_MAX, HEADERS_MAX) } else { (0, ESTIMATE_HEADERS_MAX) };
        Ok(self.bytes_within(&rest(tree, keys, headers)?) as u64)
    }

    fn bytes_within(&self, rest: &MergeRest) -> f64 {
        self.until.as_ref().map_or(rest.bytes(), |until| rest.bytes_before(until))
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
        let rest = rest(tree, KEYS_MAX, HEADERS_MAX)?;
        let bytes = self.bytes_within(&rest);
        let (wanted, kept_min) = match part {
            KeptPart::Half => (bytes / 2.0, PIECE_BYTES_MIN),
            KeptPart::Least => (0.0, 0.0),
        };
        let cuts = rest.keys().filter_map(|key| self.cut(tree.key(), key));
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

fn rest(tree: &LoserTree, keys: usize, headers: usize) -> Result<MergeRest, MergeError> {
    tree.rest(RestLimits { keys, headers, key_bytes: CUT_KEY_BYTES_MAX + 1 })
}
