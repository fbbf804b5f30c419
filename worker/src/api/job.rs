//! Jobs: named parameters from which a plan is built.

use super::columns::Columns;
use super::error::PlanError;
use super::plan::JobPlan;
use crate::input::Input;
use crate::input::plan::FirstRecord;
use serde::Serialize;
use serde::de::DeserializeOwned;

/// A job is its parameters: a struct that is sent to every worker, where `plan` turns it into the same functions.
/// `plan` must depend on nothing but `self`.
///
/// Derive `serde::Serialize` and `serde::Deserialize` for sending and, to run it from the command line, `clap::Args`
/// for the flags. Fields are flags; a doc comment on a field is its help.
#[diagnostic::on_unimplemented(
    message = "`{Self}` is not a job",
    note = "a job implements `Job`, derives `Serialize` and `Deserialize` to travel, and `clap::Args` if it has flags of its own"
)]
pub trait Job: Serialize + DeserializeOwned + Send + Sync + 'static {
    /// Name of the job on the command line: lower case, digits and hyphens.
    const NAME: &'static str;

    /// Prepares the job. Called once, where the job is submitted, before its parameters are sent. It may inspect the
    /// inputs (a header, the size of a side) and store the results in `self`.
    ///
    /// # Errors
    /// Inputs or parameters that the job does not support.
    fn prepare(&mut self, _submitter: &dyn Submitter) -> Result<(), PlanError> {
        Ok(())
    }

    /// Returns inputs, mappers, combiner, order and reducer of this job. Called where the job is submitted and on every
    /// worker.
    ///
    /// # Errors
    /// Invalid parameters.
    fn plan(&self) -> Result<JobPlan, PlanError>;

    /// Returns the names of the output's columns, for `_SUCCESS`; parts have no header.
    fn columns(&self) -> Option<Vec<String>> {
        None
    }

    /// Returns remarks for the summary, such as the chosen strategy.
    fn remarks(&self) -> Vec<String> {
        Vec::new()
    }
}

/// Access of [`Job::prepare`] to the inputs, as the submitter sees them.
pub trait Submitter {
    /// Returns the total size in bytes of the files of an input, after directories are listed. Compressed files count
    /// with their compressed size.
    ///
    /// # Errors
    /// A path that is missing or unreadable.
    fn size(&self, input: &Input) -> Result<u64, PlanError>;

    /// Returns the first record of each non-empty file of an input, without its line end, in input order.
    ///
    /// # Errors
    /// A path that is missing or unreadable, or a first record over the limit.
    fn first_records(&self, input: &Input) -> Result<Vec<FirstRecord>, PlanError>;

    /// Returns the smallest memory of all workers, bytes.
    fn memory_bytes(&self) -> u64 {
        u64::MAX
    }

    /// Returns the positions of the columns of these names in a table with a header; see [`Columns`] for its use in a
    /// job.
    ///
    /// # Errors
    /// Files that are missing or unreadable, have no such column or several, or have them at different positions.
    fn columns(&self, input: &Input, names: &[&str]) -> Result<Columns, PlanError> {
        Columns::find(input, &self.first_records(input)?, names)
    }
}
