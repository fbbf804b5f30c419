//! Names of the files with a job's output, its parts: while an attempt builds one, and once it is published.
//!
//! Every attempt builds its part in its own file in `DIR/_temporary`; into an object store it is uploaded under its own
//! name (`objects`). The code that closes the output publishes the files that contain the parts of the job, and workers
//! never touch published files.

use crate::directory::PlainName;
pub use crate::input::private::TEMPORARY;
use crate::part_format::PartFormat;
use gristmill_scheduler::ids::AttemptId;

/// Minimum digits in the name of a part.
const PART_DIGITS_MIN: usize = 5;

/// Returns the name of a part of this many: with as many digits as the last one needs, at least five, so that names
/// sort like parts. The format is its extension.
#[must_use]
pub fn part_name(index: u32, parts: u32, format: PartFormat) -> String {
    let last = parts.saturating_sub(1).max(index);
    let digits = last.checked_ilog10().map_or(1, |log| log as usize + 1).max(PART_DIGITS_MIN);
    format!("part-{index:0digits$}{}", format.suffix())
}

/// Maximum number of named outputs of a job.
pub const NAMED_OUTPUTS_MAX: usize = 16;

/// True if an output may have this name: its parts are stored in a directory of that name, which Gristmill does not
/// otherwise use.
#[must_use]
pub fn is_output_name(name: &PlainName) -> bool {
    let name = name.as_str();
    name.as_bytes()[0].is_ascii_alphanumeric() && !name.starts_with("part-") && !name.starts_with("arriving-")
}

/// Returns the name of the file in [`TEMPORARY`] in which an attempt builds its part of a named output, next to that of
/// its main part.
#[must_use]
pub fn named_built_name(built: &str, output: &PlainName) -> String {
    format!("{built}.{output}")
}

/// Prefix of a claim's name, before its nonce.
pub const PROBE: &str = "probe-";

/// Returns the nonce, which distinguishes the files and objects of a claim from those of any other.
#[must_use]
pub fn nonce_of(probe: &PlainName) -> &str {
    probe.as_str().strip_prefix(PROBE).unwrap_or_default()
}

/// Returns the name of the file in [`TEMPORARY`] in which an attempt builds its part. The probe's name
/// differs from job to job, also between jobs of different masters. An attempt that lingers after its job has
/// ended must not conflict with one of the next job in the same output directory.
#[must_use]
pub fn built_name(probe: &PlainName, attempt: AttemptId) -> String {
    format!("{probe}-{}", attempt.file_name())
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::input::Compression;

    #[test]
    fn part_names_are_in_the_order_of_parts_for_any_number_of_them() {
        for parts in [1, 2, 10, 99_999, 100_000, 100_001, 999_999, 1_000_000, 1_000_001, 1 << 20, u32::MAX] {
            // Around every change of the number of digits, and at the end.
            let borders = (0..10).map(|power| 10_u32.pow(power)).chain([parts]);
            let around = borders.flat_map(|border| border.saturating_sub(2)..border.saturating_add(2));
            let mut indices: Vec<u32> = around.filter(|index| *index < parts).collect();
            indices.sort_unstable();
            indices.dedup();
            let names: Vec<String> =
                indices.iter().map(|index| part_name(*index, parts, PartFormat::default())).collect();
            assert!(names.is_sorted(), "of {parts} parts: {names:?}");
        }
        let plain = |index, parts| part_name(index, parts, PartFormat::default());
        assert_eq!([plain(0, 1), plain(99_999, 100_000)], ["part-00000", "part-99999"]);
        assert_eq!(plain(7, 100_001), "part-000007");
        assert_eq!(part_name(7, 9, Compression::Gzip.into()), "part-00007.gz");
        assert_eq!(part_name(7, 9, Compression::Zstd.into()), "part-00007.zst");
        assert_eq!(part_name(7, 9, Compression::Bzip2.into()), "part-00007.bz2");
    }
}
