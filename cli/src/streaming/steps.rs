//! Steps of `-mapper`, `-combiner` and `-reducer`: a command, or one of the supported classes of Hadoop.

use super::StreamError;
use super::names::Properties;
use super::options::not_found;
use gristmill_streaming::{FieldSelection, StreamStep, split_command};

/// Returns the typed step. A word that names one of Hadoop's classes is that class.
///
/// # Errors
/// An unknown class, an invalid list of fields, an empty command.
pub fn step(option: &str, typed: Option<&str>, properties: &Properties) -> Result<StreamStep, StreamError> {
    let Some(typed) = typed else { return Ok(StreamStep::Identity) };
    if option == "-reducer" && typed.eq_ignore_ascii_case("aggregate") {
        return Ok(StreamStep::Aggregate);
    }
    match typed {
        "org.apache.hadoop.mapred.lib.IdentityMapper"
        | "org.apache.hadoop.mapred.lib.IdentityReducer"
        | "IdentityMapper"
        | "IdentityReducer" => return Ok(StreamStep::Identity),
        "org.apache.hadoop.mapred.lib.FieldSelectionMapReduce" | "FieldSelectionMapReduce"
            if option != "-combiner" =>
        {
            return selection(option, properties).map(StreamStep::Select);
        }
        class if class.starts_with("org.apache.hadoop.") && !class.contains(' ') => {
            return Err(not_found(
                option,
                class,
                "IdentityMapper, IdentityReducer, FieldSelectionMapReduce, the reducer `aggregate`, and commands",
            ));
        }
        _ => {}
    }
    match split_command(typed) {
        words if words.is_empty() => Err(StreamError::usage(format!("{option}: the command is empty"))),
        words => Ok(StreamStep::Command(words)),
    }
}

/// Returns the fields that properties select.
fn selection(option: &str, properties: &Properties) -> Result<FieldSelection, StreamError> {
    let name = match option {
        "-mapper" => "mapreduce.fieldsel.map.output.key.value.fields.spec",
        _ => "mapreduce.fieldsel.reduce.output.key.value.fields.spec",
    };
    let separator = properties.get("mapreduce.fieldsel.data.field.separator").unwrap_or("\t");
    FieldSelection::parse(properties.get(name).unwrap_or("0-:"), separator)
        .map_err(|error| StreamError::configuration(format!("{name}: {error}")))
}
