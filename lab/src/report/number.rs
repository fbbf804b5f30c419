//! Numbers formatted for readers, with as many digits as are significant. Never `NaN`.
//!
//! Not here: numbers for programs, which CSV and JSON contain in full.

/// Text for a missing number.
pub const NOTHING: &str = "–";

/// Number of digits shown of a number without interval.
const SIGNIFICANT: i32 = 4;

/// Smallest number that is written with a power of ten, including integers.
const LARGE: f64 = 1e7;

/// Number below which numbers are written with a power of ten.
const SMALL: f64 = 1e-3;

/// Share of their mean below which half widths are due to rounding.
const NEGLIGIBLE: f64 = 1e-12;

/// Time below which seconds have too many zeros to read, and time above which milliseconds have too many digits, seconds.
const MILLISECONDS: std::ops::Range<f64> = 0.01..10.0;

/// Maximum number of decimals.
const DECIMALS_MAX: i32 = 12;

/// Formats a number with four significant digits, and integers below ten million in full. Infinity is `∞`.
#[must_use]
pub fn number(value: f64) -> String {
    if let Some(words) = special(value) {
        return words;
    }
    let size = value.abs();
    if !(SMALL..LARGE).contains(&size) {
        let exponent = exponent(value);
        return format!("{}{}", trimmed(&fixed(scaled(value, exponent), SIGNIFICANT - 1)), power(exponent));
    }
    if value.fract().abs() < f64::EPSILON * size {
        return fixed(value, 0);
    }
    trimmed(&fixed(value, SIGNIFICANT - 1 - exponent(value)))
}

/// Formats a mean with the half width of its interval, which gets two significant digits: `6.557 ± 0.047`.
#[must_use]
pub fn with_interval(value: f64, half_width: Option<f64>) -> String {
    let Some(half_width) = half_width.filter(|half_width| half_width.is_finite()) else {
        return number(value);
    };
    if let Some(words) = special(value).filter(|_| value != 0.0) {
        return words;
    }
    if half_width.abs() <= value.abs() * NEGLIGIBLE {
        return format!("{} ± 0", number(value));
    }
    let size = value.abs().max(half_width.abs());
    if !(SMALL..LARGE).contains(&size) {
        let exponent = exponent(size);
        let decimals = decimals_for(scaled(half_width, exponent));
        let (value, half_width) = (scaled(value, exponent), scaled(half_width, exponent));
        return format!("({} ± {}){}", fixed(value, decimals), fixed(half_width, decimals), power(exponent));
    }
    let decimals = decimals_for(half_width);
    format!("{} ± {}", fixed(value, decimals), fixed(half_width, decimals))
}

/// Formats a relative difference with its sign: `+3.2 %`.
#[must_use]
pub fn percent(fraction: f64) -> String {
    if fraction.is_nan() {
        return NOTHING.to_owned();
    }
    let percent = fraction * 100.0;
    let sign = if percent.is_sign_negative() { "−" } else { "+" };
    let size = percent.abs();
    if size < 5e-4 {
        return "0 %".to_owned();
    }
    if size < 1e5 {
        let decimals = match size {
            size if size < 0.095 => 3,
            size if size < 0.95 => 2,
            size if size < 99.5 => 1,
            _ => 0,
        };
        return format!("{sign}{} %", fixed(size, decimals));
    }
    format!("{sign}{} %", number(size))
}

/// Returns the unit for times that are shown together, and how many of it a second has: milliseconds if one time is too
/// short for seconds and none too long for milliseconds.
pub(crate) fn unit_of_times(seconds: &[f64]) -> (&'static str, f64) {
    let has_short = seconds.iter().any(|&time| 0.0 < time && time < MILLISECONDS.start);
    if has_short && !seconds.iter().any(|&time| MILLISECONDS.end < time) { ("ms", 1e3) } else { ("s", 1.0) }
}

/// Returns the label of a tick where ticks are `step` apart and none is larger than `largest`.
pub(super) fn tick(value: f64, step: f64, largest: f64) -> String {
    if value.abs() < step * 1e-6 {
        return "0".to_owned();
    }
    let exponent = exponent(largest);
    if !(SMALL..1e6).contains(&largest) {
        let decimals = -self::exponent(scaled(step, exponent));
        return format!("{}{}", trimmed(&fixed(scaled(value, exponent), decimals)), power(exponent));
    }
    fixed(value, -self::exponent(step))
}

/// Returns the label of a power of ten, or of a small multiple of one.
pub(super) fn decade(multiple: u32, exponent: i32) -> String {
    if (-3..=5).contains(&exponent) {
        return fixed(f64::from(multiple) * 10_f64.powi(exponent), -exponent);
    }
    match multiple {
        1 => format!("10{}", superscript(exponent)),
        _ => format!("{multiple}{}", power(exponent)),
    }
}

/// Formats zero, infinity and NaN.
fn special(value: f64) -> Option<String> {
    if value.is_nan() {
        Some(NOTHING.to_owned())
    } else if value.is_infinite() {
        Some(if value < 0.0 { "−∞" } else { "∞" }.to_owned())
    } else if value == 0.0 {
        Some("0".to_owned())
    } else {
        None
    }
}

/// Returns the number of decimals that show two significant digits of a half width.
fn decimals_for(half_width: f64) -> i32 {
    1 - exponent(half_width)
}

/// Returns the power of ten below the magnitude of a number; 0 for one without.
fn exponent(value: f64) -> i32 {
    if value == 0.0 || !value.is_finite() {
        return 0;
    }
    let rounded = value.abs().log10().floor();
    // 1000 has a logarithm of 2.9999999999999996 on some machines.
    let next = 10_f64.powi(rounded as i32 + 1);
    if (value.abs() / next - 1.0).abs() < 1e-9 { rounded as i32 + 1 } else { rounded as i32 }
}

/// Divides by a power of ten, in two steps, as the power alone may overflow or underflow.
fn scaled(value: f64, exponent: i32) -> f64 {
    let half = exponent / 2;
    value / 10_f64.powi(half) / 10_f64.powi(exponent - half)
}

fn power(exponent: i32) -> String {
    if exponent == 0 { String::new() } else { format!("×10{}", superscript(exponent)) }
}

fn superscript(exponent: i32) -> String {
    const DIGITS: [char; 10] = ['⁰', '¹', '²', '³', '⁴', '⁵', '⁶', '⁷', '⁸', '⁹'];
    let sign = if exponent < 0 { "⁻" } else { "" };
    let digits = exponent.unsigned_abs().to_string();
    let raised = digits.bytes().map(|digit| DIGITS[usize::from(digit - b'0')]);
    sign.chars().chain(raised).collect()
}

/// Formats with this many decimals, a minus sign, and separated thousands from 10 000 on.
fn fixed(value: f64, decimals: i32) -> String {
    let decimals = decimals.clamp(0, DECIMALS_MAX) as usize;
    let text = format!("{:.decimals$}", value.abs());
    let (whole, fraction) = text.split_once('.').unwrap_or((&text, ""));
    let mut out = String::new();
    if value < 0.0 && text.bytes().any(|byte| (b'1'..=b'9').contains(&byte)) {
        out.push('−');
    }
    for (place, digit) in whole.chars().enumerate() {
        let left = whole.len() - place;
        if 4 < whole.len() && 0 < place && left.is_multiple_of(3) {
            out.push('\u{202f}');
        }
        out.push(digit);
    }
    if !fraction.is_empty() {
        out.push('.');
        out.push_str(fraction);
    }
    out
}

/// Removes zeros at the end of the decimals.
fn trimmed(text: &str) -> String {
    if !text.contains('.') {
        return text.to_owned();
    }
    text.trim_end_matches('0').trim_end_matches('.').to_owned()
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    #[test]
    fn numbers_have_four_significant_digits() {
        let cases = [
            (0.0, "0"),
            (6.5, "6.5"),
            (6.5567, "6.557"),
            (0.012_345_6, "0.01235"),
            (-0.5, "−0.5"),
            (1234.56, "1235"),
            (12_345.6, "12\u{202f}346"),
            (1_000_000.0, "1\u{202f}000\u{202f}000"),
            (5e7, "5×10⁷"),
            (1.2345e-5, "1.234×10⁻⁵"),
            (9.99996, "10"),
            (1000.0, "1000"),
            (f64::INFINITY, "∞"),
            (f64::NEG_INFINITY, "−∞"),
            (f64::NAN, "–"),
        ];
        for (value, expected) in cases {
            assert_eq!(number(value), expected, "{value}");
        }
    }

    #[test]
    fn interval_decides_how_many_digits_a_mean_is_worth() {
        let cases = [
            (6.557, Some(0.047), "6.557 ± 0.047"),
            (3.326_12, Some(0.012), "3.326 ± 0.012"),
            (16.8, Some(0.33), "16.80 ± 0.33"),
            (1234.5, Some(25.0), "1234 ± 25"),
            (6.5, None, "6.5"),
            (6.5, Some(0.0), "6.5 ± 0"),
            (0.0, Some(0.1), "0.00 ± 0.10"),
            (5.5e8, Some(1.2e7), "(5.50 ± 0.12)×10⁸"),
            (6.5, Some(f64::INFINITY), "6.5"),
            (f64::INFINITY, Some(1.0), "∞"),
        ];
        for (value, half_width, expected) in cases {
            assert_eq!(with_interval(value, half_width), expected, "{value} {half_width:?}");
        }
    }

    #[test]
    fn differences_carry_their_sign() {
        let cases = [
            (0.0, "0 %"),
            (0.032, "+3.2 %"),
            (-0.004_51, "−0.45 %"),
            (1.5, "+150 %"),
            (-2e4, "−2×10⁶ %"),
            (f64::NAN, "–"),
        ];
        for (fraction, expected) in cases {
            let expected = expected.replace("2×10⁶", "2\u{202f}000\u{202f}000");
            assert_eq!(percent(fraction), expected, "{fraction}");
        }
    }

    #[test]
    fn times_are_in_milliseconds_if_one_is_short_and_none_is_long() {
        let cases = [
            (&[8.498e-4, 0.2][..], "ms"),
            (&[0.02, 0.2], "s"),
            (&[0.0], "s"),
            (&[8e-4, 11.0], "s"),
            (&[], "s"),
        ];
        for (times, unit) in cases {
            assert_eq!(unit_of_times(times).0, unit, "{times:?}");
        }
    }

    #[test]
    fn ticks_share_their_decimals() {
        assert_eq!(
            ["0", "0.50", "1.00"].map(str::to_owned),
            [0.0, 0.5, 1.0].map(|value| tick(value, 0.05, 1.0))
        );
        assert_eq!(tick(20_000.0, 10_000.0, 50_000.0), "20\u{202f}000");
        assert_eq!(tick(2e7, 1e7, 5e7), "2×10⁷");
        assert_eq!(decade(1, 0), "1");
        assert_eq!(decade(2, -2), "0.02");
        assert_eq!(decade(1, 7), "10⁷");
        assert_eq!(decade(5, -6), "5×10⁻⁶");
    }

    proptest! {
        #[test]
        fn no_number_is_ever_printed_as_nan(value: f64, half_width: f64) {
            for text in [number(value), with_interval(value, Some(half_width)), percent(value)] {
                prop_assert!(!text.contains("NaN") && !text.contains("inf") && text.len() < 120, "{text}");
            }
        }
    }
}
