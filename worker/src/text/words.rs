//! Words: runs of bytes between white space, or what Unicode calls words.
//!
//! Not here: folding of case; that is the job's business.

/// Bytes that the fast form looks at together: one bit each in a `u64`.
const GROUP: usize = 64;

/// Whether a byte is one of the six that separate words: space, `\t`, `\n`, vertical tab, form feed, `\r`.
#[inline]
#[must_use]
pub fn is_white_space(byte: u8) -> bool {
    byte == b' ' || byte.wrapping_sub(b'\t') <= b'\r' - b'\t'
}

/// The words of some bytes: longest runs without white space, in order.
pub fn words(bytes: &[u8]) -> impl Iterator<Item = &[u8]> {
    bytes.split(|&byte| is_white_space(byte)).filter(|word| !word.is_empty())
}

/// The words of a text by Unicode's rules (UAX 29): runs that hold a letter or a digit, without the
/// punctuation around them.
pub fn unicode_words(text: &str) -> impl Iterator<Item = &str> {
    unicode_segmentation::UnicodeSegmentation::unicode_words(text)
}

/// Calls `word` for each word, in order. The plain twin of [`for_each_word`].
pub fn for_each_word_plain<'a>(bytes: &'a [u8], mut word: impl FnMut(&'a [u8])) {
    let mut begin = 0;
    for (at, &byte) in bytes.iter().enumerate() {
        if is_white_space(byte) {
            if begin < at {
                word(&bytes[begin..at]);
            }
            begin = at + 1;
        }
    }
    if begin < bytes.len() {
        word(&bytes[begin..]);
    }
}

/// Calls `word` for each word, in order: the same as [`for_each_word_plain`], 64 bytes at a time.
///
/// White space becomes a mask of 64 bits, and the places where the mask changes are where words begin and
/// end, so the cost is by the word and not by the byte.
#[inline]
pub fn for_each_word<'a>(bytes: &'a [u8], mut word: impl FnMut(&'a [u8])) {
    let (groups, tail) = bytes.as_chunks::<GROUP>();
    let mut begin = None;
    let mut base = 0;
    for group in groups {
        changes(white_space_mask(group), base, bytes, &mut begin, &mut word);
        base += GROUP;
    }
    let mut padded = [b' '; GROUP];
    padded[..tail.len()].copy_from_slice(tail);
    changes(white_space_mask(&padded), base, bytes, &mut begin, &mut word);
    // The padding ends a last word, unless there is no room for padding, and then the tail was empty.
    debug_assert!(begin.is_none());
}

/// Walks over the begins and ends of words in one group. `begin` is where a word began that has not ended.
#[inline(always)]
fn changes<'a>(
    white: u64,
    base: usize,
    bytes: &'a [u8],
    begin: &mut Option<usize>,
    word: &mut impl FnMut(&'a [u8]),
) {
    let inside = u64::from(begin.is_some());
    // Bit i is set where byte i and the byte before it are not both inside or both outside a word.
    let mut changes = !white ^ (!white << 1 | inside);
    let mut next = || {
        let at = (changes != 0).then(|| base + changes.trailing_zeros() as usize);
        changes &= changes.wrapping_sub(1);
        at
    };
    if let Some(from) = *begin {
        let Some(to) = next() else { return };
        word(&bytes[from..to]);
    }
    loop {
        *begin = next();
        let Some(from) = *begin else { return };
        let Some(to) = next() else { return };
        word(&bytes[from..to]);
    }
}

/// One bit for each byte, the lowest for the first: whether it is white space.
#[cfg(target_arch = "x86_64")]
#[inline(always)]
#[allow(unsafe_code, reason = "the compiler does not see that every x86_64 has SSE2")]
pub(super) fn white_space_mask(group: &[u8; GROUP]) -> u64 {
    // SAFETY: SSE2 is part of x86_64 itself. The function touches no memory but its argument.
    unsafe { white_space_mask_sse2(group) }
}

#[cfg(target_arch = "x86_64")]
#[target_feature(enable = "sse2")]
#[inline]
fn white_space_mask_sse2(group: &[u8; GROUP]) -> u64 {
    use std::arch::x86_64::{
        _mm_add_epi8, _mm_cmpeq_epi8, _mm_cmpgt_epi8, _mm_movemask_epi8, _mm_or_si128, _mm_set_epi64x,
        _mm_set1_epi8,
    };
    let (quarters, _) = group.as_chunks::<16>();
    let mut mask = 0;
    for (index, quarter) in quarters.iter().enumerate() {
        let both = u128::from_le_bytes(*quarter);
        let bytes = _mm_set_epi64x((both >> 64) as i64, both as i64);
        let space = _mm_cmpeq_epi8(bytes, _mm_set1_epi8(0x20));
        // Comparisons are signed: adding 114 takes 9..=13 to 123..=127, the largest values, and no other byte.
        let control = _mm_cmpgt_epi8(_mm_add_epi8(bytes, _mm_set1_epi8(114)), _mm_set1_epi8(122));
        let found = _mm_movemask_epi8(_mm_or_si128(space, control));
        mask |= u64::from(found.cast_unsigned()) << (16 * index);
    }
    mask
}

/// One bit for each byte, the lowest for the first: whether it is white space.
#[cfg(not(target_arch = "x86_64"))]
#[inline(always)]
pub(super) fn white_space_mask(group: &[u8; GROUP]) -> u64 {
    white_space_mask_plain(group)
}

/// The plain twin of the mask.
#[cfg(any(test, not(target_arch = "x86_64")))]
pub(super) fn white_space_mask_plain(group: &[u8; GROUP]) -> u64 {
    group.iter().rev().fold(0, |mask, &byte| mask << 1 | u64::from(is_white_space(byte)))
}
