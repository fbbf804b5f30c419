//! A job that is to be submitted, with its type erased.

use gristmill_worker::api::{Job, JobPlan, PlanError, Submitter};

/// A job with its parameters that is to be submitted.
pub trait PreparedJob: Send {
    /// [`Job::NAME`].
    fn name(&self) -> &'static str;
    /// [`Job::prepare`].
    ///
    /// # Errors
    /// Those of the job.
    fn prepare(&mut self, submitter: &dyn Submitter) -> Result<(), PlanError>;
    /// [`Job::plan`].
    ///
    /// # Errors
    /// Those of the job.
    fn plan(&self) -> Result<JobPlan, PlanError>;
    /// The job as JSON, in the form in which it is sent.
    ///
    /// # Errors
    /// A job that serde cannot write.
    fn parameters(&self) -> Result<String, PlanError>;
    /// [`Job::columns`].
    fn columns(&self) -> Option<Vec<String>>;
    /// [`Job::remarks`].
    fn remarks(&self) -> Vec<String>;
}

impl<J: Job> PreparedJob for J {
    fn name(&self) -> &'static str {
        J::NAME
    }
    fn prepare(&mut self, submitter: &dyn Submitter) -> Result<(), PlanError> {
        Job::prepare(self, submitter)
    }
    fn plan(&self) -> Result<JobPlan, PlanError> {
        Job::plan(self)
    }
    fn parameters(&self) -> Result<String, PlanError> {
        serde_json::to_string(self).map_err(|source| PlanError::Decode { job: J::NAME.to_owned(), source })
    }
    fn columns(&self) -> Option<Vec<String>> {
        Job::columns(self)
    }
    fn remarks(&self) -> Vec<String> {
        Job::remarks(self)
    }
}
