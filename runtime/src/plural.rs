//! Numbers of things in sentences: `1 job`, `2 jobs`.

/// The noun for this number: `one` or `many`.
#[must_use]
pub fn noun<'a>(number: u64, one: &'a str, many: &'a str) -> &'a str {
    if number == 1 { one } else { many }
}

/// `1` and the word `one`, or another number and the word `many`.
#[must_use]
pub fn counted(number: u64, one: &str, many: &str) -> String {
    format!("{number} {}", noun(number, one, many))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn one_thing_is_not_said_to_be_several() {
        for (number, words) in [(0, "0 jobs"), (1, "1 job"), (2, "2 jobs"), (21, "21 jobs")] {
            assert_eq!(counted(number, "job", "jobs"), words);
        }
    }
}
