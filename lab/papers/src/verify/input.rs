//! Inputs of cases: texts, lists, and numbers within limits. Errors name the field.

use super::compare::number_of;
use serde_json::Value;

/// Value of an input and its place there.
pub(super) struct Input<'a> {
    value: &'a Value,
    place: String,
}

impl<'a> Input<'a> {
    pub(super) fn new(value: &'a Value, place: &str) -> Self {
        Self { value, place: place.to_owned() }
    }

    pub(super) fn value(&self) -> &'a Value {
        self.value
    }

    /// Returns a field; `None` if it is absent or null.
    pub(super) fn optional(&self, field: &str) -> Option<Self> {
        let value = self.value.get(field).filter(|value| !value.is_null())?;
        Some(Self { value, place: format!("{}.{field}", self.place) })
    }

    pub(super) fn field(&self, field: &str) -> Result<Self, String> {
        self.optional(field).ok_or_else(|| format!("`{}.{field}` is missing", self.place))
    }

    pub(super) fn text(&self) -> Result<&'a str, String> {
        self.value.as_str().ok_or_else(|| self.refuse("a text"))
    }

    /// Parses a number, `"inf"`, or a fraction such as `"5/2"`.
    pub(super) fn number(&self) -> Result<f64, String> {
        let parsed = |text: &str| text.trim().parse::<f64>().ok();
        let number = match self.value.as_str().and_then(|text| text.split_once('/')) {
            Some((above, below)) => parsed(above).zip(parsed(below)).map(|(above, below)| above / below),
            None => number_of(self.value),
        };
        number.ok_or_else(|| self.refuse("a number"))
    }

    pub(super) fn number_in(&self, least: f64, most: f64) -> Result<f64, String> {
        let number = self.number().ok().filter(|number| (least..=most).contains(number));
        number.ok_or_else(|| self.refuse(&format!("a number from {least} to {most:e}")))
    }

    pub(super) fn whole(&self, least: u64, most: u64) -> Result<u64, String> {
        let number = self.value.as_u64().filter(|number| (least..=most).contains(number));
        number.ok_or_else(|| self.refuse(&format!("a whole number from {least} to {most}")))
    }

    /// Returns the values of a list with at most this many.
    pub(super) fn items(&self, most: u64) -> Result<Vec<Self>, String> {
        let items = self.value.as_array().ok_or_else(|| self.refuse("a list"))?;
        if most < items.len() as u64 {
            return Err(format!("`{}` has {} values, more than {most}", self.place, items.len()));
        }
        let item = |(index, value)| Self { value, place: format!("{}[{index}]", self.place) };
        Ok(items.iter().enumerate().map(item).collect())
    }

    pub(super) fn numbers(&self, most: u64) -> Result<Vec<f64>, String> {
        self.items(most)?.iter().map(Self::number).collect()
    }

    pub(super) fn numbers_in(&self, count: u64, least: f64, most: f64) -> Result<Vec<f64>, String> {
        self.items(count)?.iter().map(|item| item.number_in(least, most)).collect()
    }

    /// Returns the values of a list of this length.
    pub(super) fn exactly<const LENGTH: usize>(&self) -> Result<[Self; LENGTH], String> {
        let items = self.items(u64::MAX)?;
        items.try_into().map_err(|_| self.refuse(&format!("a list of {LENGTH} values")))
    }

    fn refuse(&self, wanted: &str) -> String {
        format!("`{}` is {}, not {wanted}", self.place, self.value)
    }
}
