//! Words: runs of bytes between white space, or words as defined by Unicode.

/// Bytes that the fast implementation processes together: one bit each in a `u64`.
pub(super) const GROUP: usize = 64;

/// True if a byte is one of the six that separate words: space, `\t`, `\n`, vertical tab, form feed, `\r`.
#[inline]
#[must_use]
pub fn is_white_space(byte: u8) -> bool {
    byte == b' ' || byte.wrapping_sub(b'\t') <= b'\r' - b'\t'
}

/// Returns the words of some bytes: maximal runs without white space, in order.
pub fn words(bytes: &[u8]) -> impl Iterator<Item = &[u8]> {
    bytes.split(|&byte| is_white_space(byte)).filter(|word| !word.is_empty())
}

/// Returns the words of a text by Unicode's rules (UAX 29): runs that contain a letter or a digit, without the
/// punctuation around them.
///
/// The library deviates from them in one case. A letter, punctuation that may be within a word, a joiner
/// (U+200D) and an emoji stay one word (`a.\u{200d}🛑`), where the rules end the word after the letter.
pub fn unicode_words(text: &str) -> impl Iterator<Item = &str> {
    unicode_segmentation::UnicodeSegmentation::unicode_words(text)
}

/// Calls `word` for each word, in order: the same as [`words`], 64 bytes at a time.
///
/// White space becomes a mask of 64 bits whose set bits are the ends of words, so the cost is per word and not per
/// byte.
#[inline]
pub fn for_each_word<'a>(bytes: &'a [u8], word: impl FnMut(&'a [u8])) {
    #[cfg(target_arch = "x86_64")]
    if is_x86_feature_detected!("avx2")
        && is_x86_feature_detected!("bmi1")
        && is_x86_feature_detected!("bmi2")
    {
        #[allow(unsafe_code, reason = "the processor was asked at run time")]
        // SAFETY: the CPU has the features for which the function is compiled.
        return unsafe { for_each_word_avx2(bytes, word) };
    }
    walk(bytes, white_space_mask, word);
}

/// The same, compiled with CPU features available since about 2013, including the code of `word`.
#[cfg(target_arch = "x86_64")]
#[target_feature(enable = "avx2,bmi1,bmi2")]
fn for_each_word_avx2<'a>(bytes: &'a [u8], word: impl FnMut(&'a [u8])) {
    walk(bytes, |group| white_space_mask_avx2(group), word);
}

/// Main loop. `word` is called at one place only, so that it is inlined.
#[inline(always)]
fn walk<'a>(bytes: &'a [u8], mask: impl Fn(&[u8; GROUP]) -> u64, mut word: impl FnMut(&'a [u8])) {
    let (groups, tail) = bytes.as_chunks::<GROUP>();
    // Padding counts as white space, which ends the last word.
    let mut padded = [b' '; GROUP];
    padded[..tail.len()].copy_from_slice(tail);
    let mut begin = 0;
    for (number, group) in groups.iter().chain([&padded]).enumerate() {
        let mut white = mask(group);
        while white != 0 {
            let end = (number * GROUP + white.trailing_zeros() as usize).min(bytes.len());
            white &= white - 1;
            if begin < end {
                word(&bytes[begin..end]);
            }
            begin = end + 1;
        }
    }
}

/// Returns one bit per byte, the lowest for the first: 1 if it is white space.
#[cfg(target_arch = "x86_64")]
#[inline(always)]
#[allow(unsafe_code, reason = "the compiler does not see that every x86_64 has SSE2")]
pub(super) fn white_space_mask(group: &[u8; GROUP]) -> u64 {
    // SAFETY: SSE2 is part of x86_64. The function only reads its argument.
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
        // Comparisons are signed: adding 114 maps 9..=13 to 123..=127, the largest values, and no other byte.
        let control = _mm_cmpgt_epi8(_mm_add_epi8(bytes, _mm_set1_epi8(114)), _mm_set1_epi8(122));
        let found = _mm_movemask_epi8(_mm_or_si128(space, control));
        mask |= u64::from(found.cast_unsigned()) << (16 * index);
    }
    mask
}

#[cfg(target_arch = "x86_64")]
#[target_feature(enable = "avx2")]
#[inline]
pub(super) fn white_space_mask_avx2(group: &[u8; GROUP]) -> u64 {
    use std::arch::x86_64::{
        _mm256_add_epi8, _mm256_cmpeq_epi8, _mm256_cmpgt_epi8, _mm256_loadu_si256, _mm256_movemask_epi8,
        _mm256_or_si256, _mm256_set1_epi8,
    };
    let (halves, _) = group.as_chunks::<32>();
    let mut mask = 0;
    for (index, half) in halves.iter().enumerate() {
        #[allow(unsafe_code, reason = "the load takes a pointer")]
        // SAFETY: 32 bytes are available, and the load requires no alignment.
        let bytes = unsafe { _mm256_loadu_si256(std::ptr::from_ref(half).cast()) };
        let space = _mm256_cmpeq_epi8(bytes, _mm256_set1_epi8(0x20));
        // As above.
        let control = _mm256_cmpgt_epi8(_mm256_add_epi8(bytes, _mm256_set1_epi8(114)), _mm256_set1_epi8(122));
        let found = _mm256_movemask_epi8(_mm256_or_si256(space, control));
        mask |= u64::from(found.cast_unsigned()) << (32 * index);
    }
    mask
}

/// Returns one bit per byte, the lowest for the first: 1 if it is white space.
#[cfg(not(target_arch = "x86_64"))]
#[inline(always)]
pub(super) fn white_space_mask(group: &[u8; GROUP]) -> u64 {
    white_space_mask_plain(group)
}

/// Simple implementation of the mask.
#[cfg(any(test, not(target_arch = "x86_64")))]
pub(super) fn white_space_mask_plain(group: &[u8; GROUP]) -> u64 {
    group.iter().rev().fold(0, |mask, &byte| mask << 1 | u64::from(is_white_space(byte)))
}
