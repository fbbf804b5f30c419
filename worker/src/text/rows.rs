//! Rows of a table without quotes: fields between delimiters, rows between line breaks, 64 bytes at a time.

use super::words::GROUP;
use memchr::memchr2;

/// Row of a table without quotes.
#[derive(Clone, Copy, Debug)]
pub struct PlainRow<'a, 'e> {
    bytes: &'a [u8],
    /// Ends of the fields, relative to the start of the row.
    ends: &'e [usize],
}

impl<'a> PlainRow<'a, '_> {
    /// Returns the row without its line break.
    #[inline]
    #[must_use]
    pub fn bytes(&self) -> &'a [u8] {
        self.bytes
    }

    /// Number of fields, at least 1.
    #[inline]
    #[must_use]
    pub fn fields(&self) -> usize {
        self.ends.len()
    }

    /// Returns field `index`, from 0.
    ///
    /// # Panics
    /// If there are fewer fields.
    #[inline]
    #[must_use]
    pub fn field(&self, index: usize) -> &'a [u8] {
        let begin = if index == 0 { 0 } else { self.ends[index - 1] + 1 };
        &self.bytes[begin..self.ends[index]]
    }
}

/// True if rows in these bytes are plain: no quotes, and no carriage returns, which may belong to line breaks.
#[must_use]
pub fn is_plain(bytes: &[u8]) -> bool {
    memchr2(b'"', b'\r', bytes).is_none()
}

/// Counts the non-blank rows, if the bytes are [plain](is_plain).
pub(crate) fn count_plain_rows(bytes: &[u8]) -> Option<u64> {
    #[cfg(target_arch = "x86_64")]
    if is_x86_feature_detected!("avx2")
        && is_x86_feature_detected!("bmi1")
        && is_x86_feature_detected!("popcnt")
    {
        #[allow(unsafe_code, reason = "the processor was asked at run time")]
        // SAFETY: the CPU has the features for which the function is compiled.
        return unsafe { count_plain_rows_avx2(bytes) };
    }
    count(bytes, survey_plain)
}

#[cfg(target_arch = "x86_64")]
#[target_feature(enable = "avx2,bmi1,popcnt")]
fn count_plain_rows_avx2(bytes: &[u8]) -> Option<u64> {
    count(bytes, |group| survey_avx2(group))
}

/// Counts rows. `survey` returns the mask of line breaks in a group, and true if the group has anything that is not
/// plain.
#[inline(always)]
fn count(bytes: &[u8], survey: impl Fn(&[u8; GROUP]) -> (u64, bool)) -> Option<u64> {
    let (groups, tail) = bytes.as_chunks::<GROUP>();
    // Padding with line breaks: the first ends a last row that lacks its own, the others are blank lines.
    let mut padded = [b'\n'; GROUP];
    padded[..tail.len()].copy_from_slice(tail);
    let (mut rows, mut after_break) = (0, 1);
    for group in groups.iter().chain([&padded]) {
        let (breaks, odd) = survey(group);
        if odd {
            return None;
        }
        // A break ends a row unless another break or the start is right before it.
        rows += u64::from((breaks & !(breaks << 1 | after_break)).count_ones());
        after_break = breaks >> (GROUP - 1);
    }
    Some(rows)
}

fn survey_plain(group: &[u8; GROUP]) -> (u64, bool) {
    let breaks = group.iter().rev().fold(0, |mask, &byte| mask << 1 | u64::from(byte == b'\n'));
    (breaks, !is_plain(group))
}

#[cfg(target_arch = "x86_64")]
#[target_feature(enable = "avx2")]
#[inline]
fn survey_avx2(group: &[u8; GROUP]) -> (u64, bool) {
    use std::arch::x86_64::{
        _mm256_cmpeq_epi8, _mm256_loadu_si256, _mm256_movemask_epi8, _mm256_or_si256, _mm256_set1_epi8,
    };
    let (halves, _) = group.as_chunks::<32>();
    let (mut mask, mut odd) = (0, 0);
    for (index, half) in halves.iter().enumerate() {
        #[allow(unsafe_code, reason = "the load takes a pointer")]
        // SAFETY: 32 bytes are available, and the load requires no alignment.
        let bytes = unsafe { _mm256_loadu_si256(std::ptr::from_ref(half).cast()) };
        let is = |byte: u8| _mm256_cmpeq_epi8(bytes, _mm256_set1_epi8(byte.cast_signed()));
        mask |= u64::from(_mm256_movemask_epi8(is(b'\n')).cast_unsigned()) << (32 * index);
        odd |= _mm256_movemask_epi8(_mm256_or_si256(is(b'"'), is(b'\r')));
    }
    (mask, odd != 0)
}

/// Calls `row` for each non-blank row, in order, until it returns an error. The bytes must be [plain](is_plain) and
/// contain whole rows; the last one may lack its line break.
///
/// # Errors
/// The error of `row`.
#[inline]
pub fn for_each_plain_row<'a, E>(
    bytes: &'a [u8],
    delimiter: u8,
    row: impl FnMut(PlainRow<'a, '_>) -> Result<(), E>,
) -> Result<(), E> {
    #[cfg(target_arch = "x86_64")]
    if is_x86_feature_detected!("avx2")
        && is_x86_feature_detected!("bmi1")
        && is_x86_feature_detected!("bmi2")
    {
        #[allow(unsafe_code, reason = "the processor was asked at run time")]
        // SAFETY: the CPU has the features for which the function is compiled.
        return unsafe { for_each_plain_row_avx2(bytes, delimiter, row) };
    }
    walk(bytes, |group| ends_mask_plain(group, delimiter), row)
}

#[cfg(target_arch = "x86_64")]
#[target_feature(enable = "avx2,bmi1,bmi2")]
fn for_each_plain_row_avx2<'a, E>(
    bytes: &'a [u8],
    delimiter: u8,
    row: impl FnMut(PlainRow<'a, '_>) -> Result<(), E>,
) -> Result<(), E> {
    walk(bytes, |group| ends_mask_avx2(group, delimiter), row)
}

#[inline(always)]
fn walk<'a, E>(
    bytes: &'a [u8],
    mask: impl Fn(&[u8; GROUP]) -> u64,
    mut row: impl FnMut(PlainRow<'a, '_>) -> Result<(), E>,
) -> Result<(), E> {
    let (groups, tail) = bytes.as_chunks::<GROUP>();
    let mut padded = [0; GROUP];
    padded[..tail.len()].copy_from_slice(tail);
    // A last row without its line break ends with the bytes.
    if let Some(behind) = padded.get_mut(tail.len()) {
        *behind = b'\n';
    }
    let mut ends: Vec<usize> = Vec::with_capacity(64);
    let mut begin = 0;
    for (number, group) in groups.iter().chain([&padded]).enumerate() {
        let mut found = mask(group);
        while found != 0 {
            let within = found.trailing_zeros() as usize;
            let at = (number * GROUP + within).min(bytes.len());
            let row_ends = group[within] == b'\n';
            found &= found - 1;
            ends.push(at - begin);
            if row_ends {
                if begin < at {
                    row(PlainRow { bytes: &bytes[begin..at], ends: &ends })?;
                }
                ends.clear();
                begin = at + 1;
                if bytes.len() <= begin {
                    return Ok(());
                }
            }
        }
    }
    Ok(())
}

/// Returns one bit per byte, the lowest for the first: 1 if a field ends there.
fn ends_mask_plain(group: &[u8; GROUP], delimiter: u8) -> u64 {
    group.iter().rev().fold(0, |mask, &byte| mask << 1 | u64::from(byte == delimiter || byte == b'\n'))
}

#[cfg(target_arch = "x86_64")]
#[target_feature(enable = "avx2")]
#[inline]
fn ends_mask_avx2(group: &[u8; GROUP], delimiter: u8) -> u64 {
    use std::arch::x86_64::{
        _mm256_cmpeq_epi8, _mm256_loadu_si256, _mm256_movemask_epi8, _mm256_or_si256, _mm256_set1_epi8,
    };
    let (halves, _) = group.as_chunks::<32>();
    let mut mask = 0;
    for (index, half) in halves.iter().enumerate() {
        #[allow(unsafe_code, reason = "the load takes a pointer")]
        // SAFETY: 32 bytes are available, and the load requires no alignment.
        let bytes = unsafe { _mm256_loadu_si256(std::ptr::from_ref(half).cast()) };
        let field = _mm256_cmpeq_epi8(bytes, _mm256_set1_epi8(delimiter.cast_signed()));
        let line = _mm256_cmpeq_epi8(bytes, _mm256_set1_epi8(b'\n'.cast_signed()));
        let found = _mm256_movemask_epi8(_mm256_or_si256(field, line));
        mask |= u64::from(found.cast_unsigned()) << (32 * index);
    }
    mask
}

#[cfg(test)]
mod tests {
    use super::super::fields;
    use super::*;
    use proptest::prelude::*;

    proptest! {
        #[test]
        fn plain_rows_have_the_fields_between_delimiters(
            bytes in proptest::collection::vec(prop_oneof![4 => Just(b'x'), 2 => Just(b','), 1 => Just(b'\n')], 0..400)
        ) {
            let lines = bytes.split(|byte| *byte == b'\n').filter(|line| !line.is_empty());
            let expected: Vec<Vec<&[u8]>> = lines.map(|line| fields(line, b',').collect()).collect();
            let mut seen = Vec::new();
            for_each_plain_row(&bytes, b',', |row| {
                seen.push((0..row.fields()).map(|index| row.field(index)).collect::<Vec<_>>());
                Ok::<(), ()>(())
            }).unwrap();
            prop_assert_eq!(&seen, &expected);
            prop_assert_eq!(count_plain_rows(&bytes), Some(expected.len() as u64));
            prop_assert_eq!(count(&bytes, survey_plain), Some(expected.len() as u64));
            let mut seen = Vec::new();
            walk(&bytes, |group| ends_mask_plain(group, b','), |row| {
                seen.push((0..row.fields()).map(|index| row.field(index)).collect::<Vec<_>>());
                Ok::<(), ()>(())
            }).unwrap();
            prop_assert_eq!(&seen, &expected);
        }
    }

    #[test]
    fn plain_rows_end_with_the_first_error() {
        let mut rows = 0;
        let result = for_each_plain_row(b"a\nb\nc\n", b',', |row| {
            rows += 1;
            if row.bytes() == b"b" { Err("b") } else { Ok(()) }
        });
        assert_eq!((result, rows), (Err("b"), 2));
    }

    #[test]
    fn quotes_and_carriage_returns_are_not_plain() {
        assert!(is_plain(b"a,b\nc\n"));
        assert!(!is_plain(b"a,\"b\"\n"));
        assert!(!is_plain(b"a,b\r\n"));
        for at in [0, 63, 64, 130] {
            let mut bytes = vec![b'x'; 131];
            bytes[at] = b'"';
            assert_eq!((count_plain_rows(&bytes), count(&bytes, survey_plain)), (None, None));
        }
    }
}
