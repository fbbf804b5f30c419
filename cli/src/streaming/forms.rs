//! Forms of pairs on the command line: `-io`, `stream.map.input` and its like, formats of typed bytes.
//!
//! The forms themselves are in `gristmill_streaming`.

use super::StreamError;
use super::names::Properties;
use super::options::not_found;
use gristmill_streaming::{
    FieldRule, LineInput, PairForm, PairForms, PartContent, PartRule, StreamStep, StreamingJob,
};

/// Properties of the forms, in the order in which a pair meets them.
const NAMES: [&str; 4] =
    ["stream.map.input", "stream.map.output", "stream.reduce.input", "stream.reduce.output"];

/// Sets one form for all directions, as `-io` does.
pub fn set_all(properties: &mut Properties, form: &str) {
    NAMES.iter().for_each(|name| properties.set(name, form));
}

/// Returns the forms that properties name.
pub fn pair_forms(properties: &Properties) -> Result<PairForms, StreamError> {
    let form = |name: &str| {
        let typed = properties.get(name).unwrap_or("text");
        PairForm::named(typed.trim()).ok_or_else(|| {
            StreamError::configuration(format!(
                "{name}={typed}: available: text, keyonlytext, rawbytes and typedbytes"
            ))
        })
    };
    let [map_input, map_output, reduce_input, reduce_output] = NAMES.map(form);
    Ok(PairForms {
        map_input: map_input?,
        map_output: map_output?,
        reduce_input: reduce_input?,
        reduce_output: reduce_output?,
    })
}

/// Content of parts by the output format.
pub fn part_content(class: Option<&str>) -> Result<PartContent, StreamError> {
    match class {
        None | Some("TextOutputFormat") => Ok(PartContent::Text),
        Some("TypedBytesOutputFormat") => Ok(PartContent::TypedBytes),
        Some(other) => Err(not_found("-outputformat", other, "TextOutputFormat and TypedBytesOutputFormat")),
    }
}

/// Rule by which lines of this form are split into key and value.
pub fn line_rule(form: PairForm, rule: FieldRule) -> FieldRule {
    match form {
        // Without a separator the whole line is the key.
        PairForm::KeyOnlyText => FieldRule { separator: String::new(), key_fields: 1 },
        _ => rule,
    }
}

/// Refuses forms that other parts of the job cannot read.
pub fn check(job: &StreamingJob) -> Result<(), StreamError> {
    let forms = &job.forms;
    if !forms.map_output.is_text() {
        if job.order.is_some() || matches!(job.partition, PartRule::Fields(_)) {
            return Err(StreamError::configuration(
                "stream.map.output: comparators and partitioners by fields of keys are for keys that are text; leave them out, \
                 or let the mapper write text",
            ));
        }
        if job.reducer == StreamStep::Aggregate {
            return Err(StreamError::configuration(
                "stream.map.output: the reducer `aggregate` reads text; let the mapper write text",
            ));
        }
    }
    let hands_on_typed = job.line_input == LineInput::TypedBytes && job.mapper == StreamStep::Identity;
    if hands_on_typed && forms.map_output != PairForm::TypedBytes {
        return Err(StreamError::configuration(
            "-inputformat TypedBytesInputFormat without a mapper needs -D stream.map.output=typedbytes, which is what it hands \
             on",
        ));
    }
    Ok(())
}
