//! Wall-clock times in UTC as text.

use time::UtcDateTime;

/// Milliseconds since 1970 as RFC 3339 has them: `2026-11-24T11:23:32.007Z`.
#[must_use]
pub(crate) fn rfc3339(ms: u64) -> String {
    let seconds = ms / 1000;
    format!("{}T{}.{:03}Z", date(seconds), clock(seconds), ms % 1000)
}

/// The date of this second since 1970, in UTC.
#[must_use]
pub fn date(seconds: u64) -> String {
    let at = i64::try_from(seconds).ok().and_then(|seconds| UtcDateTime::from_unix_timestamp(seconds).ok());
    let date = at.unwrap_or(UtcDateTime::MAX).date();
    format!("{:04}-{:02}-{:02}", date.year(), u8::from(date.month()), date.day())
}

/// The time of day of this second since 1970, in UTC.
#[must_use]
pub fn clock(seconds: u64) -> String {
    format!("{:02}:{:02}:{:02}", seconds / 3_600 % 24, seconds / 60 % 60, seconds % 60)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn times_are_those_of_the_calendar() {
        assert_eq!(rfc3339(1_795_519_412_007), "2026-11-24T11:23:32.007Z");
        let dates = [
            (0, "1970-01-01"),
            (951_782_400, "2000-02-29"),
            (1_709_164_800, "2024-02-29"),
            (4_107_542_400, "2100-03-01"),
        ];
        for (seconds, expected) in dates {
            assert_eq!(date(seconds), expected);
        }
    }
}
