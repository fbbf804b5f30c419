//! Reasons for which the parameters or inputs of a job make no plan.

/// Error of planning a job from its parameters or inputs. The first two are errors of the command (exit code 2), the
/// third is an error of the input (exit code 4).
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum PlanError {
    /// A parameter has a value that the job does not support.
    #[error("{parameter} cannot be {value}: {reason}")]
    Parameter {
        /// Name of the flag or field, as the user writes it.
        parameter: String,
        /// Given value.
        value: String,
        /// Reason, and valid values.
        reason: String,
    },
    /// The parameters do not decode into the job's type.
    #[error("the parameters of job {job} do not fit its type")]
    Decode {
        /// Name of the job.
        job: String,
        /// Error of decoding.
        #[source]
        source: serde_json::Error,
    },
    /// An input that the plan has to inspect (a header, a size) is not as needed.
    #[error("cannot use input {path}: {reason}")]
    Input {
        /// Path of the input.
        path: String,
        /// Description of the error.
        reason: String,
    },
}
