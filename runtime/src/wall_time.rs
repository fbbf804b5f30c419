//! Times by the clock on the wall, in UTC, as people and programs read them.

/// Milliseconds since 1970 as RFC 3339 has them: `2026-11-24T11:23:32.007Z`.
#[must_use]
pub fn rfc3339(ms: u64) -> String {
    let seconds = ms / 1000;
    format!("{}T{}.{:03}Z", date(seconds), clock(seconds), ms % 1000)
}

/// The date of this second since 1970, in UTC.
#[must_use]
pub fn date(seconds: u64) -> String {
    // Days are counted from March of the year 0, so that leap days come last.
    let days = seconds / 86_400 + 719_468;
    let (era, day_of_era) = (days / 146_097, days % 146_097);
    let year_of_era = (day_of_era - day_of_era / 1_460 + day_of_era / 36_524 - day_of_era / 146_096) / 365;
    let day_of_year = day_of_era - (365 * year_of_era + year_of_era / 4 - year_of_era / 100);
    let march_month = (5 * day_of_year + 2) / 153;
    let day = day_of_year - (153 * march_month + 2) / 5 + 1;
    let month = if march_month < 10 { march_month + 3 } else { march_month - 9 };
    let year = year_of_era + era * 400 + u64::from(month <= 2);
    format!("{year:04}-{month:02}-{day:02}")
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
