//! Steps of `-mapper`, `-combiner` and `-reducer`: a command, or one of the supported classes of Hadoop.

use super::StreamError;
use super::options::not_found;
use gristmill_streaming::{StreamStep, split_command};

/// Returns the typed step. A word that names one of Hadoop's classes is that class.
///
/// # Errors
/// An unsupported class, or a command without words.
pub fn step(option: &str, typed: Option<&str>) -> Result<StreamStep, StreamError> {
    let Some(typed) = typed else { return Ok(StreamStep::Identity) };
    if option == "-reducer" && typed.eq_ignore_ascii_case("aggregate") {
        return Ok(StreamStep::Aggregate);
    }
    match typed {
        "org.apache.hadoop.mapred.lib.IdentityMapper"
        | "org.apache.hadoop.mapred.lib.IdentityReducer"
        | "IdentityMapper"
        | "IdentityReducer" => return Ok(StreamStep::Identity),
        "FieldSelectionMapReduce" => {
            return Err(not_found(option, typed, "commands, such as `cut` and `awk`, select fields"));
        }
        class if class.starts_with("org.apache.hadoop.") && !class.contains(' ') => {
            return Err(not_found(
                option,
                class,
                "IdentityMapper, IdentityReducer, the reducer `aggregate`, and commands (`cut` and `awk` select fields)",
            ));
        }
        _ => {}
    }
    match split_command(typed) {
        words if words.is_empty() => Err(StreamError::usage(format!("{option}: the command is empty"))),
        words => Ok(StreamStep::Command(words)),
    }
}
