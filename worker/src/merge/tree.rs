//! Loser tree over segment readers: one comparison per level for each pair.

use super::rest::MergeRest;
use crate::attempt::TaskFailure;
use crate::segment::{KeyBounds, RestLimits, SegmentData, SegmentError, SegmentReader};

/// Merges readers whose pairs are sorted by (rank, key).
///
/// Invariant: `losers[n]` lost the last match at inner node `n`; reader `r` is the leaf `readers + r`; the
/// children of node `n` are `2n` and `2n + 1`.
pub(crate) struct LoserTree {
    readers: Vec<SegmentReader>,
    /// Ranks of the current pairs; the maximum for a reader that has ended.
    ranks: Vec<u64>,
    live: Vec<bool>,
    losers: Vec<u32>,
    winner: usize,
    started: bool,
}

/// Error of a segment in a merge, with its map.
#[derive(Debug)]
pub(crate) struct MergeError {
    pub map: Option<u32>,
    pub source: SegmentError,
}

impl From<SegmentError> for MergeError {
    /// Converts an error of opening a segment, whose map is known if its header was read.
    fn from(source: SegmentError) -> Self {
        let map = match &source {
            SegmentError::Block { id, .. } | SegmentError::Pairs { id, .. } => Some(id.map),
            _ => None,
        };
        Self { map, source }
    }
}

impl From<MergeError> for TaskFailure {
    fn from(error: MergeError) -> Self {
        Self::Corrupt { map: error.map, source: error.source }
    }
}

impl LoserTree {
    /// Opens non-empty segments, in the order of equal keys.
    pub fn open(segments: Vec<SegmentData>) -> Result<Self, MergeError> {
        Self::open_within(segments, &KeyBounds::default())
    }

    /// Opens non-empty segments, in the order of equal keys, and skips the pairs before the bounds. The caller stops at
    /// the end of the bounds.
    pub fn open_within(segments: Vec<SegmentData>, bounds: &KeyBounds) -> Result<Self, MergeError> {
        let open = |data| SegmentReader::open_from(data, &bounds.from).map_err(MergeError::from);
        let readers = segments.into_iter().map(open).collect::<Result<Vec<_>, _>>()?;
        let count = readers.len();
        let (ranks, live, losers) = (vec![0; count], vec![true; count], vec![0; count]);
        Ok(Self { readers, ranks, live, losers, winner: 0, started: false })
    }

    /// Moves to the next pair; false after the last.
    #[inline]
    pub fn advance(&mut self) -> Result<bool, MergeError> {
        if !self.started {
            return self.start();
        }
        let winner = self.winner;
        if !self.live.get(winner).is_some_and(|live| *live) {
            return Ok(false);
        }
        self.step(winner)?;
        self.replay(winner);
        Ok(self.live[self.winner])
    }

    #[inline]
    fn step(&mut self, reader: usize) -> Result<(), MergeError> {
        match self.readers[reader].advance() {
            Ok(more) => {
                self.live[reader] = more;
                self.ranks[reader] = if more { self.readers[reader].rank() } else { u64::MAX };
                Ok(())
            }
            Err(source) => Err(MergeError { map: Some(self.readers[reader].header().id.map), source }),
        }
    }

    #[cold]
    fn start(&mut self) -> Result<bool, MergeError> {
        self.started = true;
        let count = self.readers.len();
        for reader in 0..count {
            self.step(reader)?;
        }
        if count == 0 {
            return Ok(false);
        }
        let mut winners = vec![0u32; 2 * count];
        for reader in 0..count {
            winners[count + reader] = reader as u32;
        }
        for node in (1..count).rev() {
            let (a, b) = (winners[2 * node], winners[2 * node + 1]);
            let (winner, loser) = if self.beats(a as usize, b as usize) { (a, b) } else { (b, a) };
            winners[node] = winner;
            self.losers[node] = loser;
        }
        self.winner = winners[1] as usize;
        Ok(self.live[self.winner])
    }

    /// Moves a reader up from its leaf as long as it wins.
    #[inline]
    fn replay(&mut self, reader: usize) {
        let mut winner = reader;
        let mut node = (self.readers.len() + reader) / 2;
        while 0 < node {
            let loser = self.losers[node] as usize;
            if self.beats(loser, winner) {
                self.losers[node] = winner as u32;
                winner = loser;
            }
            node /= 2;
        }
        self.winner = winner;
    }

    /// True if the pair of reader `a` comes before that of `b`.
    #[inline]
    fn beats(&self, a: usize, b: usize) -> bool {
        let (x, y) = (self.ranks[a], self.ranks[b]);
        if x != y { x < y } else { self.beats_with_equal_rank(a, b) }
    }

    /// Handles equal ranks, also for an ended reader, whose rank is the maximum.
    #[inline(never)]
    fn beats_with_equal_rank(&self, a: usize, b: usize) -> bool {
        if !(self.live[a] && self.live[b]) {
            return self.live[a];
        }
        (self.readers[a].key(), a) < (self.readers[b].key(), b)
    }

    /// Estimates the pairs from the current one on. The limits are for all segments together, but at least one key and
    /// one header of each are read if any are.
    pub fn rest(&self, limits: RestLimits) -> Result<MergeRest, MergeError> {
        let live = self.live.iter().filter(|live| **live).count().max(1);
        let keys = if limits.keys == 0 { 0 } else { (limits.keys / live).max(1) };
        let limits = RestLimits { keys, headers: (limits.headers / live).max(1) };
        let live = self.readers.iter().zip(&self.live).filter(|(_, live)| **live);
        let rest = live.map(|(reader, _)| {
            let map = Some(reader.header().id.map);
            reader.rest(limits).map_err(|source| MergeError { map, source })
        });
        Ok(MergeRest::new(rest.collect::<Result<_, _>>()?))
    }

    /// Checks that pairs in the input have not changed, as readers do at their ends. For a merge that stops before.
    pub fn check_unchanged(&self) -> Result<(), MergeError> {
        let check = |reader: &SegmentReader| {
            let map = Some(reader.header().id.map);
            reader.check_unchanged().map_err(|source| MergeError { map, source })
        };
        self.readers.iter().try_for_each(check)
    }

    /// True if the key of the current pair is `key`, which has this rank: most different keys differ in their rank.
    #[inline]
    pub(crate) fn stands_at(&self, key: &[u8], rank: u64) -> bool {
        self.ranks[self.winner] == rank && self.key() == key
    }

    /// Returns the rank of the current pair; see [`SegmentReader::rank`].
    #[inline]
    pub fn rank(&self) -> u64 {
        self.ranks[self.winner]
    }

    /// Returns the key of the current pair.
    #[inline]
    pub fn key(&self) -> &[u8] {
        self.readers[self.winner].key()
    }

    /// Returns the value of the current pair.
    #[inline]
    pub fn value(&self) -> &[u8] {
        self.readers[self.winner].value()
    }

    /// Returns the map of the current pair.
    pub(crate) fn map(&self) -> u32 {
        self.readers[self.winner].header().id.map
    }
}
