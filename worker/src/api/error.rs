//! Errors of plans.

/// A job that cannot be planned from its parameters or inputs. The first two are the user's mistake in the
/// command (exit code 2), the third is the input's (exit code 4).
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum PlanError {
    /// A parameter has a value that the job cannot use.
    #[error("{parameter} cannot be {value}: {reason}")]
    Parameter {
        /// The flag or field, as the user writes it.
        parameter: String,
        /// The value as given.
        value: String,
        /// Why not, and what would do.
        reason: String,
    },
    /// Parameters that do not decode into the job's type.
    #[error("the parameters of job {job} do not fit its type")]
    Decode {
        /// The job's name.
        job: String,
        /// Where and why.
        #[source]
        source: serde_json::Error,
    },
    /// An input that the plan has to look into (a header, a size) is not as needed.
    #[error("cannot use input {path}: {reason}")]
    Input {
        /// The input's path.
        path: String,
        /// What is wrong with it.
        reason: String,
    },
}
