//! Hadoop's aggregators, `-reducer aggregate`: keys such as `LongValueSum:id` select the aggregation of
//! their values.

use std::collections::{BTreeMap, BTreeSet};

/// Separator between the name of an aggregator and the key.
const TYPE_SEPARATOR: u8 = b':';

/// Key or value that no aggregator accepts.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
pub enum AggregateError {
    /// The key has no name of an aggregator.
    #[error("the key `{key}` names no aggregator: it must be AGGREGATOR:KEY, such as LongValueSum:{key}")]
    Key {
        /// Key of the pair.
        key: String,
    },
    /// No aggregator has this name.
    #[error(
        "there is no aggregator `{name}`; there is LongValueSum, LongValueMax, LongValueMin, DoubleValueSum, \
         StringValueMax, StringValueMin, UniqValueCount and ValueHistogram"
    )]
    Name {
        /// Name in the key.
        name: String,
    },
    /// The value is not a number.
    #[error("the value `{value}` is no {expected}")]
    Value {
        /// Value of the pair.
        value: String,
        /// Expected kind of value.
        expected: &'static str,
    },
}

/// Returns the name of the aggregator and the rest of a key.
///
/// # Errors
/// The key has no such name.
pub(super) fn split_type(key: &[u8]) -> Result<(&[u8], &[u8]), AggregateError> {
    match memchr::memchr(TYPE_SEPARATOR, key) {
        Some(at) => Ok((&key[..at], &key[at + 1..])),
        None => Err(AggregateError::Key { key: String::from_utf8_lossy(key).into_owned() }),
    }
}

/// Aggregated values of a key so far.
#[derive(Debug)]
pub(super) enum Aggregated {
    LongSum(i64),
    LongMax(i64),
    LongMin(i64),
    DoubleSum(f64),
    StringMax(Option<String>),
    StringMin(Option<String>),
    Unique(BTreeSet<String>),
    Histogram(BTreeMap<String, i64>),
}

impl Aggregated {
    /// Creates an aggregation without values.
    ///
    /// # Errors
    /// No aggregator has this name.
    pub fn new(name: &[u8]) -> Result<Self, AggregateError> {
        Ok(match name {
            b"LongValueSum" => Self::LongSum(0),
            b"LongValueMax" => Self::LongMax(i64::MIN),
            b"LongValueMin" => Self::LongMin(i64::MAX),
            b"DoubleValueSum" => Self::DoubleSum(0.0),
            b"StringValueMax" => Self::StringMax(None),
            b"StringValueMin" => Self::StringMin(None),
            b"UniqValueCount" => Self::Unique(BTreeSet::new()),
            b"ValueHistogram" => Self::Histogram(BTreeMap::new()),
            _ => return Err(AggregateError::Name { name: String::from_utf8_lossy(name).into_owned() }),
        })
    }

    /// Adds a value.
    ///
    /// # Errors
    /// The value is not a number where one is expected.
    pub fn add(&mut self, value: &[u8]) -> Result<(), AggregateError> {
        let text = String::from_utf8_lossy(value);
        match self {
            Self::LongSum(sum) => *sum = sum.wrapping_add(whole(&text)?),
            Self::LongMax(most) => *most = whole(&text)?.max(*most),
            Self::LongMin(least) => *least = whole(&text)?.min(*least),
            Self::DoubleSum(sum) => {
                let number: Result<f64, _> = text.trim().parse();
                *sum += number
                    .map_err(|_| AggregateError::Value { value: text.into_owned(), expected: "number" })?;
            }
            Self::StringMax(most) => {
                if most.as_deref().is_none_or(|most| most < &*text) {
                    *most = Some(text.into_owned());
                }
            }
            Self::StringMin(least) => {
                if least.as_deref().is_none_or(|least| &*text < least) {
                    *least = Some(text.into_owned());
                }
            }
            Self::Unique(values) => drop(values.insert(text.into_owned())),
            Self::Histogram(counts) => {
                let (value, count) = match text.rsplit_once('\t') {
                    Some((value, count)) => (value, whole(count)?),
                    None => (&*text, 1),
                };
                let sum = counts.entry(value.to_owned()).or_default();
                *sum = sum.wrapping_add(count);
            }
        }
        Ok(())
    }

    /// Returns the partial results that are sent in place of the values.
    pub fn partial(&self) -> Vec<String> {
        match self {
            Self::Unique(values) => values.iter().cloned().collect(),
            Self::Histogram(counts) => {
                counts.iter().map(|(value, count)| format!("{value}\t{count}")).collect()
            }
            Self::StringMax(None) | Self::StringMin(None) => Vec::new(),
            other => vec![other.report()],
        }
    }

    /// Returns the text of the result.
    pub fn report(&self) -> String {
        match self {
            Self::LongSum(number) | Self::LongMax(number) | Self::LongMin(number) => number.to_string(),
            Self::DoubleSum(sum) => java_double(*sum),
            Self::StringMax(text) | Self::StringMin(text) => text.clone().unwrap_or_default(),
            Self::Unique(values) => values.len().to_string(),
            Self::Histogram(counts) => histogram(counts),
        }
    }
}

/// Returns the number of distinct values, and the minimum, median, maximum, mean and standard deviation
/// of their counts.
fn histogram(counts: &BTreeMap<String, i64>) -> String {
    let mut sorted: Vec<i64> = counts.values().copied().collect();
    sorted.sort_unstable();
    let count = sorted.len();
    let (Some(least), Some(most)) = (sorted.first(), sorted.last()) else { return "0".to_owned() };
    let mean = sorted.iter().sum::<i64>() as f64 / count as f64;
    let squares: f64 = sorted.iter().map(|value| (*value as f64 - mean).powi(2)).sum();
    let deviation = (squares / count as f64).sqrt();
    let median = sorted[count / 2];
    format!("{count}\t{least}\t{median}\t{most}\t{}\t{}", java_double(mean), java_double(deviation))
}

fn whole(text: &str) -> Result<i64, AggregateError> {
    text.parse().map_err(|_| AggregateError::Value { value: text.to_owned(), expected: "whole number" })
}

/// Formats a number as Java does: `2.0`, `1.5E10`.
pub(super) fn java_double(number: f64) -> String {
    if number == 0.0 || (1e-3..1e7).contains(&number.abs()) || !number.is_finite() {
        return match number {
            number if number.is_nan() => "NaN".to_owned(),
            number if number.is_infinite() => if number < 0.0 { "-Infinity" } else { "Infinity" }.to_owned(),
            number => format!("{number:?}"),
        };
    }
    let text = format!("{number:E}");
    match text.split_once('E') {
        Some((digits, exponent)) if !digits.contains('.') => format!("{digits}.0E{exponent}"),
        _ => text,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn of(name: &str, values: &[&str]) -> Result<String, AggregateError> {
        let mut aggregated = Aggregated::new(name.as_bytes())?;
        values.iter().try_for_each(|value| aggregated.add(value.as_bytes()))?;
        // Values that were combined before give the same result.
        let mut again = Aggregated::new(name.as_bytes())?;
        aggregated.partial().iter().try_for_each(|value| again.add(value.as_bytes()))?;
        assert_eq!(again.report(), aggregated.report());
        Ok(aggregated.report())
    }

    #[test]
    fn aggregators_report_what_hadoops_do() {
        let check =
            |name, values: &[&str], expected| assert_eq!(of(name, values).unwrap(), expected, "{name}");
        check("LongValueSum", &["1", "2", "-5"], "-2");
        check("LongValueMax", &["1", "2", "-5"], "2");
        check("LongValueMin", &["1", "2", "-5"], "-5");
        check("DoubleValueSum", &["1", "0.5"], "1.5");
        check("DoubleValueSum", &["1", "1"], "2.0");
        check("DoubleValueSum", &["1e10", "5e9"], "1.5E10");
        check("StringValueMax", &["a", "c", "b"], "c");
        check("StringValueMin", &["b", "a", "c"], "a");
        check("UniqValueCount", &["a", "b", "a"], "2");
        check("ValueHistogram", &["a", "a", "b", "c\t3"], "3\t1\t2\t3\t2.0\t0.816496580927726");
    }

    #[test]
    fn what_is_no_number_and_names_no_aggregator_is_refused() {
        assert!(matches!(of("LongValueSum", &["x"]), Err(AggregateError::Value { .. })));
        assert!(matches!(of("Sum", &[]), Err(AggregateError::Name { .. })));
        assert!(matches!(split_type(b"plain"), Err(AggregateError::Key { .. })));
        assert_eq!(split_type(b"LongValueSum:a:b"), Ok((&b"LongValueSum"[..], &b"a:b"[..])));
    }
}
