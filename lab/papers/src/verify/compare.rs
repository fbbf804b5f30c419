//! Compares computed values with the expected values of a case, field by field.

use serde_json::{Map, Value};
use std::fmt;

/// Field that differs from its expected value.
#[derive(Clone, PartialEq, Debug)]
pub struct CaseDifference {
    /// Path of the field: `completion.FCFS[2]`; empty if the case could not be computed at all.
    pub place: String,
    /// Description of the difference.
    pub what: String,
}

impl fmt::Display for CaseDifference {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        if self.place.is_empty() {
            f.write_str(&self.what)
        } else {
            write!(f, "{}: {}", self.place, self.what)
        }
    }
}

/// Compares values and collects differences.
pub(super) struct Checker {
    tolerance: f64,
    differences: Vec<CaseDifference>,
    compared: usize,
}

impl Checker {
    /// Creates a checker without differences; numbers may differ by this much, absolutely or relatively.
    pub(super) fn new(tolerance: f64) -> Self {
        Self { tolerance, differences: Vec::new(), compared: 0 }
    }

    /// Records that the case cannot be computed.
    pub(super) fn refuse(&mut self, why: String) {
        self.differences.push(CaseDifference { place: String::new(), what: why });
    }

    fn differ(&mut self, place: &str, what: String) {
        self.differences.push(CaseDifference { place: place.to_owned(), what });
    }

    /// Compares a computed value with the expected one: numbers within the tolerance (`"inf"` is infinity, `"-inf"` its
    /// negative), lists element by element, objects by the expected fields, everything else exactly. Values by number of
    /// a job must be expected of all jobs that have one.
    pub(super) fn value(&mut self, place: &str, expected: &Value, computed: &Value) {
        match (expected, computed) {
            (Value::Array(expected), Value::Array(computed)) if expected.len() == computed.len() => {
                for (index, (expected, computed)) in expected.iter().zip(computed).enumerate() {
                    self.value(&format!("{place}[{index}]"), expected, computed);
                }
            }
            (Value::Array(expected), Value::Array(computed)) => {
                self.differ(
                    place,
                    format!("expected {} values, computed {}", expected.len(), computed.len()),
                );
            }
            (Value::Object(expected), Value::Object(computed)) => self.fields(place, expected, computed),
            _ => {
                self.compared += 1;
                match (number_of(expected), number_of(computed)) {
                    (Some(expected), Some(computed)) if self.is_near(expected, computed) => {}
                    (Some(expected), Some(computed)) => {
                        self.differ(place, format!("expected {expected}, computed {computed}"));
                    }
                    _ if expected == computed => {}
                    _ => self.differ(place, format!("expected {expected}, computed {computed}")),
                }
            }
        }
    }

    fn fields(&mut self, place: &str, expected: &Map<String, Value>, computed: &Map<String, Value>) {
        let place_of =
            |field: &str| if place.is_empty() { field.to_owned() } else { format!("{place}.{field}") };
        for (field, computed) in computed {
            if field.parse::<usize>().is_ok() && !expected.contains_key(field) {
                self.differ(&place_of(field), format!("nothing expected, computed {computed}"));
            }
        }
        for (field, expected) in expected {
            match computed.get(field) {
                Some(computed) => self.value(&place_of(field), expected, computed),
                None => {
                    self.differ(&place_of(field), "is expected, but nothing like it is computed".to_owned());
                }
            }
        }
    }

    fn is_near(&self, expected: f64, computed: f64) -> bool {
        // Infinity differs from every other number by infinity, and any fraction of it would be a sufficient tolerance.
        let near = || (expected - computed).abs() <= self.tolerance * expected.abs().max(1.0);
        expected == computed || expected.is_finite() && near()
    }

    /// Returns the differences; a case that compared nothing counts as one.
    pub(super) fn into_differences(mut self) -> Vec<CaseDifference> {
        if self.compared == 0 && self.differences.is_empty() {
            self.refuse("nothing is expected of it that could be compared".to_owned());
        }
        self.differences
    }
}

/// Converts a number to JSON of this format: infinities are strings.
pub(super) fn json_of(number: f64) -> Value {
    match number {
        f64::INFINITY => Value::from("inf"),
        f64::NEG_INFINITY => Value::from("-inf"),
        number => Value::from(number),
    }
}

/// Converts numbers to a list of this format.
pub(super) fn list(numbers: impl IntoIterator<Item = f64>) -> Value {
    numbers.into_iter().map(json_of).collect::<Vec<Value>>().into()
}

/// Converts a value of this format to a number.
fn number_of(value: &Value) -> Option<f64> {
    match value.as_str() {
        Some("inf") => Some(f64::INFINITY),
        Some("-inf") => Some(f64::NEG_INFINITY),
        _ => value.as_f64(),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::json;

    fn differences(tolerance: f64, expected: &Value, computed: &Value) -> Vec<String> {
        let mut checker = Checker::new(tolerance);
        checker.value("", expected, computed);
        checker.into_differences().iter().map(ToString::to_string).collect()
    }

    #[test]
    fn numbers_may_differ_absolutely_or_relatively() {
        assert_eq!(
            differences(0.1, &json!({"a": [0.05, 100.0]}), &json!({"a": [0.1, 109.0], "b": 1})),
            [""; 0]
        );
        assert_eq!(differences(0.1, &json!({"a": 0.0}), &json!({"a": 0.2})), ["a: expected 0, computed 0.2"]);
        assert_eq!(differences(0.0, &json!({"a": "inf"}), &json!({"a": json_of(f64::INFINITY)})), [""; 0]);
        assert_eq!(differences(0.0, &json!({"a": "inf"}), &json!({"a": 1})), ["a: expected inf, computed 1"]);
        assert!(!differences(0.0, &json!({"a": 1}), &json!({"a": json_of(f64::NAN)})).is_empty());
        for (expected, computed) in [("inf", json!(1)), ("-inf", json!(1)), ("inf", json!("-inf"))] {
            let found = differences(0.1, &json!({"a": expected}), &json!({"a": computed}));
            assert_eq!(found.len(), 1, "{expected} is not {computed} within a tenth");
        }
    }

    #[test]
    fn what_is_missing_or_of_another_shape_is_a_difference() {
        assert_eq!(differences(0.0, &json!({"a": {"b": 1}}), &json!({"a": {}})).len(), 1);
        assert_eq!(differences(0.0, &json!({"a": [1]}), &json!({"a": [1, 2]})).len(), 1);
        assert_eq!(differences(0.0, &json!({"a": "x"}), &json!({"a": 1})).len(), 1);
        assert_eq!(differences(0.0, &json!({}), &json!({"a": 1})).len(), 1, "nothing was compared");
    }
}
