//! Bad records of one job: those skipped by its maps, and the check against the maximum.
//!
//! Each map counts once, with the report of its last attempt, because attempts of a map read the same records.

use crate::api::NamedBadRecord;
use gristmill_worker::input::FileBadRecords;
use gristmill_worker::input::bad_records::{REASON_BYTES_MAX, count};
use gristmill_worker::protocol::AddedMap;
use gristmill_worker::sanitize;
use std::collections::BTreeMap;

/// Bad records skipped by the maps of one job.
#[derive(Default, serde::Serialize, serde::Deserialize)]
pub(super) struct JobBadRecords {
    by_map: BTreeMap<u32, Vec<FileBadRecords>>,
    /// Number of bad records of all maps.
    total: u64,
}

impl JobBadRecords {
    /// Enters the records skipped by an attempt of a map. Returns the first record beyond `max`, if there is one.
    pub(super) fn enter(
        &mut self,
        map: u32,
        mut files: Vec<FileBadRecords>,
        max: u64,
    ) -> Option<NamedBadRecord> {
        clip(&mut files, max.saturating_add(1));
        let before = self.by_map.remove(&map).map_or(0, |files| count(&files));
        let others = self.total - before;
        let here = count(&files);
        self.total = others + here;
        let first_too_many = usize::try_from(max.saturating_sub(others)).unwrap_or(usize::MAX);
        let too_many = (max < self.total).then(|| named(&files).nth(first_too_many)).flatten();
        if 0 < here {
            self.by_map.insert(map, files);
        }
        too_many
    }

    /// All bad records, in the order of the input: `place` returns that of a map.
    pub(super) fn named(&self, place: impl Fn(u32) -> AddedMap) -> Vec<NamedBadRecord> {
        let mut by_place: Vec<_> = self.by_map.iter().map(|(map, files)| (place(*map), files)).collect();
        by_place.sort_unstable_by_key(|(place, _)| *place);
        by_place.into_iter().flat_map(|(_, files)| named(files)).collect()
    }

    /// Number of bad records.
    pub(super) fn total(&self) -> u64 {
        self.total
    }
}

/// Longest path of a file with bad records, bytes: the limit of the operating system.
const PATH_BYTES_MAX: usize = 4096;

/// Cuts texts reported by a worker before they are written down.
pub(super) fn shorten(files: &mut [FileBadRecords]) {
    let cut = |text: &mut String, most| text.truncate(text.floor_char_boundary(most));
    for file in files {
        cut(&mut file.path, PATH_BYTES_MAX);
        file.records.iter_mut().for_each(|record| cut(&mut record.reason, REASON_BYTES_MAX));
    }
}

/// Drops the records beyond `max`: the number comes from a worker and is not trusted.
fn clip(files: &mut Vec<FileBadRecords>, max: u64) {
    let mut left = usize::try_from(max).unwrap_or(usize::MAX);
    for file in files.iter_mut() {
        file.records.truncate(left);
        left -= file.records.len();
    }
    files.retain(|file| !file.records.is_empty());
}

fn named(files: &[FileBadRecords]) -> impl Iterator<Item = NamedBadRecord> {
    files.iter().flat_map(|file| {
        file.records.iter().map(|record| NamedBadRecord {
            path: sanitize::message(&file.path),
            offset: record.offset,
            reason: sanitize::line(&record.reason, REASON_BYTES_MAX),
        })
    })
}

#[cfg(test)]
mod tests {
    use super::*;
    use gristmill_worker::input::BadRecord;

    fn files(offsets: &[u64]) -> Vec<FileBadRecords> {
        let record = |offset: &u64| BadRecord { offset: *offset, reason: "no number".to_owned() };
        let records = offsets.iter().map(record).collect();
        vec![FileBadRecords { path: "in".to_owned(), records }]
    }

    fn offsets(bad: &JobBadRecords) -> Vec<u64> {
        bad.named(|root| AddedMap { root, start: 0 }).iter().map(|record| record.offset).collect()
    }

    #[test]
    fn a_map_that_runs_again_counts_its_bad_records_once() {
        let mut bad = JobBadRecords::default();
        assert_eq!(bad.enter(1, files(&[50, 60]), 3), None);
        assert_eq!(bad.enter(0, files(&[5]), 3), None);
        assert_eq!(bad.enter(1, files(&[50, 60]), 3), None, "again");
        assert_eq!((bad.total(), offsets(&bad)), (3, vec![5, 50, 60]));
    }

    #[test]
    fn the_first_record_over_the_limit_is_named_whichever_map_has_it() {
        let mut bad = JobBadRecords::default();
        assert_eq!(bad.enter(1, files(&[50, 60]), 3), None);
        assert_eq!(bad.enter(0, files(&[5, 6, 7]), 3).map(|record| record.offset), Some(6));
        assert_eq!(offsets(&bad), [5, 6, 7, 50, 60]);
    }

    #[test]
    fn a_worker_that_names_without_end_is_cut_short() {
        let mut bad = JobBadRecords::default();
        let all: Vec<u64> = (0..100).collect();
        assert_eq!(bad.enter(0, files(&all), 3).map(|record| record.offset), Some(3));
        assert_eq!(bad.total(), 4);
    }
}
