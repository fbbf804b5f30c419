//! A job: named parameters that know how to become a plan.

use super::columns::Columns;
use super::error::PlanError;
use super::plan::JobPlan;
use crate::input::Input;
use crate::input::plan::FirstRecord;
use serde::Serialize;
use serde::de::DeserializeOwned;

/// A job is its parameters: a struct that travels to every worker, where `plan` turns it into the same
/// functions. `plan` must depend on nothing but `self`.
///
/// Derive `serde::Serialize` and `serde::Deserialize` for the travel and, to be run from the command line,
/// `clap::Args` for the flags. Fields are flags; a doc comment on a field is its help.
#[diagnostic::on_unimplemented(
    message = "`{Self}` is not a job",
    note = "a job implements `Job`, derives `Serialize` and `Deserialize` to travel, and `clap::Args` if it has flags of its own"
)]
pub trait Job: Serialize + DeserializeOwned + Send + Sync + 'static {
    /// The name people type: lower case, digits and hyphens.
    const NAME: &'static str;

    /// Called once, where the job is submitted, before its parameters travel: look at the inputs (a header,
    /// the size of a side) and write what you find into yourself.
    ///
    /// # Errors
    /// Inputs or parameters that the job cannot use.
    fn prepare(&mut self, _submitter: &dyn Submitter) -> Result<(), PlanError> {
        Ok(())
    }

    /// Inputs, mappers, combiner, order and reducer of this job. Called where the job is submitted and on
    /// every worker.
    ///
    /// # Errors
    /// Parameters that do not make sense.
    fn plan(&self) -> Result<JobPlan, PlanError>;

    /// What the columns of the output mean, for `_SUCCESS`; parts carry no header of their own.
    fn columns(&self) -> Option<Vec<String>> {
        None
    }

    /// Remarks for the summary, such as which strategy was chosen.
    fn remarks(&self) -> Vec<String> {
        Vec::new()
    }
}

/// What [`Job::prepare`] may look at: the inputs as the submitter sees them.
pub trait Submitter {
    /// Total size in bytes of the files of an input, after directories are listed. Compressed files count
    /// with their compressed size.
    ///
    /// # Errors
    /// A path that is missing or unreadable.
    fn size(&self, input: &Input) -> Result<u64, PlanError>;

    /// The first record of each file of an input that has one, without its line end, in input order.
    ///
    /// # Errors
    /// A path that is missing or unreadable, or a first record over the limit.
    fn first_records(&self, input: &Input) -> Result<Vec<FirstRecord>, PlanError>;

    /// Memory of the worker that has the least, bytes.
    fn memory_bytes(&self) -> u64 {
        u64::MAX
    }

    /// Where the columns of these names stand in a table with a header; see [`Columns`] for how a job uses it.
    ///
    /// # Errors
    /// Files that are missing or unreadable, have no such column or several, or have them in different places.
    fn columns(&self, input: &Input, names: &[&str]) -> Result<Columns, PlanError> {
        Columns::find(input, &self.first_records(input)?, names)
    }
}
