//! Reader of `-inputreader`: `StreamXmlRecordReader,begin=<page>,end=</page>`, and no other class. As in Hadoop its words
//! become properties, `stream.recordreader.begin` and the like.

use super::StreamError;
use super::names::Properties;
use gristmill_streaming::Marks;

/// Prefix of the properties.
const PREFIX: &str = "stream.recordreader.";

/// Sets the properties of `-inputreader`.
pub fn set(reader: &str, properties: &mut Properties) {
    let mut words = reader.split(',');
    properties.set(&format!("{PREFIX}class"), words.next().unwrap_or_default());
    for word in words {
        let (name, value) = word.split_once('=').unwrap_or((word, ""));
        properties.set(&format!("{PREFIX}{name}"), value);
    }
}

/// Returns the marks around records; `None` without a reader.
///
/// # Errors
/// Another reader, a missing mark, or patterns.
pub fn marks(properties: &Properties) -> Result<Option<Marks>, StreamError> {
    let property = |name: &str| properties.get(&format!("{PREFIX}{name}"));
    let Some(class) = property("class") else { return Ok(None) };
    let wrong = |why: &str| {
        let said = format!(
            "-inputreader {class}: {why}; available: \"StreamXmlRecordReader,begin=TEXT,end=TEXT\", where TEXT has no comma"
        );
        StreamError::configuration(said)
    };
    if class.rsplit('.').next() != Some("StreamXmlRecordReader") {
        return Err(wrong("this reader is not supported"));
    }
    if property("slowmatch") == Some("true") {
        return Err(wrong("its marks are text, not patterns"));
    }
    let mark = |name| property(name).filter(|text| !text.is_empty()).map(str::to_owned);
    match (mark("begin"), mark("end")) {
        (Some(begin), Some(end)) => Ok(Some(Marks { begin, end })),
        _ => Err(wrong("`begin` or `end` is missing")),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::streaming::code;

    fn read(reader: &str) -> Result<Option<Marks>, StreamError> {
        let mut properties = Properties::default();
        set(reader, &mut properties);
        marks(&properties)
    }

    #[test]
    fn marks_are_those_of_the_xml_reader() {
        let found =
            read("org.apache.hadoop.streaming.StreamXmlRecordReader,begin=<a b=\"c\">,end=</a>,maxrec=9");
        assert_eq!(found.unwrap(), Some(Marks { begin: "<a b=\"c\">".to_owned(), end: "</a>".to_owned() }));
        assert_eq!(marks(&Properties::default()).unwrap(), None);
        for wrong in [
            "Other,begin=a,end=b",
            "StreamXmlRecordReader,begin=a",
            "StreamXmlRecordReader,begin=,end=b",
            "StreamXmlRecordReader,begin=a,end=b,slowmatch=true",
        ] {
            assert_eq!(read(wrong).unwrap_err().code, code::CONFIGURATION, "{wrong}");
        }
    }
}
