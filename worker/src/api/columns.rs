//! Columns of a table by their names.

use super::error::PlanError;
use crate::attempt::{TaskError, TaskResult};
use crate::input::plan::FirstRecord;
use crate::input::{Input, Record, RecordFormat};
use crate::text::csv_fields;
use serde::{Deserialize, Serialize};
use std::borrow::Cow;

/// Positions of some columns in the rows of a table, found by their names in its header where the job is submitted
/// ([`Submitter::columns`](super::Submitter::columns)). It is sent with the job's parameters.
///
/// ```
/// # use gristmill_worker as gristmill;
/// # use gristmill_worker::testing::Trial;
/// use gristmill::prelude::*;
///
/// /// Adds up a column of numbers for each value of another
/// #[derive(serde::Serialize, serde::Deserialize)]
/// struct Totals {
///     table: String,
///     #[serde(default)]
///     columns: Columns,
/// }
///
/// impl Job for Totals {
///     const NAME: &'static str = "totals";
///
///     fn prepare(&mut self, files: &dyn Submitter) -> Result<(), PlanError> {
///         self.columns = files.columns(&Input::csv([&self.table], b',', true), &["city", "amount"])?;
///         Ok(())
///     }
///
///     fn plan(&self) -> Result<JobPlan, PlanError> {
///         let columns = self.columns.clone();
///         let map = move |row: Record<'_>, out: &mut Emitter<String, u64>| {
///             let [city, amount] = columns.fields(&row)?;
///             out.emit(&city, parse(&amount)?);
///             Ok(())
///         };
///         Ok(JobPlan::map_each(Input::csv([&self.table], b',', true), map)
///             .combine(Sum::new)
///             .reduce(WriteTotal::<String, Sum<u64>>::default))
///     }
/// }
///
/// let job = Totals { table: "sales.csv".to_owned(), columns: Columns::default() };
/// let written = Trial::new(job).file("sales.csv", "id,amount,city\n1,5,Oslo\n2,3,Quito\n3,4,Oslo\n").run()?;
/// assert_eq!(written.lines(), ["Oslo\t9", "Quito\t3"]);
/// # Ok::<(), gristmill_worker::testing::TrialError>(())
/// ```
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Columns {
    /// Indexes in a row, from 0, in the order of the requested columns.
    places: Vec<usize>,
    delimiter: u8,
}

impl Columns {
    /// Finds the columns of these names in the headers of an input's files, which must all have them at the same
    /// positions.
    pub(super) fn find(input: &Input, headers: &[FirstRecord], names: &[&str]) -> Result<Self, PlanError> {
        let RecordFormat::Csv { delimiter, header: true } = input.format else {
            let reason = "it is not a table with a header, so its columns have no names".to_owned();
            return Err(PlanError::Input { path: input.paths.join(", "), reason });
        };
        let mut places: Option<Vec<usize>> = None;
        for first in headers {
            let path = first.path.to_string();
            let here = places_of(&first.bytes, delimiter, names)
                .map_err(|reason| PlanError::Input { path: path.clone(), reason })?;
            match &places {
                Some(before) if *before != here => {
                    let reason =
                        format!("its columns stand in another order than those of {}", headers[0].path);
                    return Err(PlanError::Input { path, reason });
                }
                _ => places = Some(here),
            }
        }
        Ok(Self { places: places.unwrap_or_default(), delimiter })
    }

    /// Returns the fields of a row in these columns, without quotes, in the order of the requested columns; bytes that
    /// are not UTF-8 are replaced. `N` is the number of requested names.
    ///
    /// # Errors
    /// A row that ends before one of them, as a [bad record](TaskError::bad_record); a number of columns other than
    /// requested.
    pub fn fields<'a, const N: usize>(&self, row: &Record<'a>) -> TaskResult<[Cow<'a, str>; N]> {
        if self.places.len() != N {
            let count = self.places.len();
            return Err(TaskError::config(format!(
                "{count} columns were asked for by name, but {N} are taken"
            )));
        }
        let mut found: [Option<Cow<'a, str>>; N] = [const { None }; N];
        let mut count = 0;
        for (place, field) in csv_fields(row.bytes(), self.delimiter).enumerate() {
            count = place + 1;
            for (wanted, found) in self.places.iter().zip(&mut found) {
                if *wanted == place {
                    *found = Some(text(field.clone()));
                }
            }
        }
        if found.iter().any(Option::is_none) {
            let least = self.places.iter().max().map_or(0, |last| last + 1);
            return Err(TaskError::bad_record(format!("a row of {count} fields, where {least} are needed")));
        }
        Ok(found.map(Option::unwrap_or_default))
    }
}

fn text(field: Cow<'_, [u8]>) -> Cow<'_, str> {
    match field {
        Cow::Borrowed(bytes) => String::from_utf8_lossy(bytes),
        Cow::Owned(bytes) => Cow::Owned(String::from_utf8_lossy(&bytes).into_owned()),
    }
}

/// Returns the positions of these names in a header, or an error message.
fn places_of(header: &[u8], delimiter: u8, names: &[&str]) -> Result<Vec<usize>, String> {
    let there: Vec<String> = csv_fields(header, delimiter).map(|name| text(name).into_owned()).collect();
    let place = |name: &&str| {
        let mut places = (0..there.len()).filter(|at| there[*at] == *name);
        match (places.next(), places.next()) {
            (Some(place), None) => Ok(place),
            (Some(_), Some(_)) => Err(format!("it has several columns `{name}`")),
            (None, _) => Err(format!("it has no column `{name}`; there is {}", there.join(", "))),
        }
    };
    names.iter().map(place).collect()
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::input::Source;

    fn find(headers: &[&str], names: &[&str]) -> Result<Columns, String> {
        let input = Input::csv(["t.csv"], b',', true);
        let headers: Vec<FirstRecord> = headers
            .iter()
            .map(|header| FirstRecord { path: "t.csv".into(), bytes: header.as_bytes().to_vec() })
            .collect();
        Columns::find(&input, &headers, names).map_err(|error| error.to_string())
    }

    fn fields<const N: usize>(columns: &Columns, row: &str) -> Result<[String; N], String> {
        let source = Source { path: "t.csv".to_owned(), input: 0 };
        let found = columns.fields(&Record::new(row.as_bytes(), 0, &source));
        found.map(|fields| fields.map(Cow::into_owned)).map_err(|error| error.to_string())
    }

    #[test]
    fn columns_are_found_by_name_wherever_they_stand_also_in_quotes() {
        let columns = find(&["id,\"full, name\",city"], &["city", "id", "full, name"]).unwrap();
        let row = fields(&columns, "7,\"Ada \"\"L\"\"\",Oslo,more").unwrap();
        assert_eq!(row, ["Oslo", "7", "Ada \"L\""]);
    }

    #[test]
    fn columns_that_cannot_be_told_are_refused_with_what_there_is() {
        let none = find(&["id,city"], &["town"]).unwrap_err();
        assert_eq!(none, "cannot use input t.csv: it has no column `town`; there is id, city");
        assert!(find(&["id,id"], &["id"]).unwrap_err().contains("several columns `id`"));
        let other = find(&["id,city", "city,id"], &["id"]).unwrap_err();
        assert!(other.contains("another order than those of t.csv"), "{other}");
        let input = Input::csv(["t.csv"], b',', false);
        assert!(
            Columns::find(&input, &[], &["id"])
                .unwrap_err()
                .to_string()
                .contains("not a table with a header")
        );
    }

    #[test]
    fn a_row_that_is_too_short_is_a_bad_record() {
        let columns = find(&["id,city"], &["city"]).unwrap();
        assert_eq!(fields::<1>(&columns, "7").unwrap_err(), "a row of 1 fields, where 2 are needed");
        assert!(fields::<2>(&columns, "7,Oslo").unwrap_err().contains("1 columns were asked for"));
    }
}
