//! Hadoop's properties under their old and new names, and which of them are refused.

use std::collections::BTreeMap;

/// Old and new names of properties that have an effect here or are refused.
const ALIASES: &[(&str, &str)] = &[
    ("fs.default.name", "fs.defaultFS"),
    ("mapred.reduce.tasks", "mapreduce.job.reduces"),
    ("mapred.map.tasks", "mapreduce.job.maps"),
    ("mapred.job.name", "mapreduce.job.name"),
    ("mapred.job.priority", "mapreduce.job.priority"),
    ("mapred.job.queue.name", "mapreduce.job.queuename"),
    ("mapred.text.key.partitioner.options", "mapreduce.partition.keypartitioner.options"),
    ("mapred.text.key.comparator.options", "mapreduce.partition.keycomparator.options"),
    ("mapred.output.key.comparator.class", "mapreduce.job.output.key.comparator.class"),
    ("map.output.key.field.separator", "mapreduce.map.output.key.field.separator"),
    ("mapred.output.value.groupfn.class", "mapreduce.job.output.group.comparator.class"),
    ("mapred.partitioner.class", "mapreduce.job.partitioner.class"),
    ("mapred.output.compress", "mapreduce.output.fileoutputformat.compress"),
    ("mapred.output.compression.codec", "mapreduce.output.fileoutputformat.compress.codec"),
    ("mapred.textoutputformat.separator", "mapreduce.output.textoutputformat.separator"),
    ("mapred.min.split.size", "mapreduce.input.fileinputformat.split.minsize"),
    ("mapred.max.split.size", "mapreduce.input.fileinputformat.split.maxsize"),
    ("mapred.line.input.format.linespermap", "mapreduce.input.lineinputformat.linespermap"),
    ("key.value.separator.in.input.line", "mapreduce.input.keyvaluelinerecordreader.key.value.separator"),
    ("mapred.input.dir.recursive", "mapreduce.input.fileinputformat.input.dir.recursive"),
    ("mapred.map.max.attempts", "mapreduce.map.maxattempts"),
    ("mapred.reduce.max.attempts", "mapreduce.reduce.maxattempts"),
    ("mapred.task.timeout", "mapreduce.task.timeout"),
    ("mapred.cache.files", "mapreduce.job.cache.files"),
    ("mapred.cache.archives", "mapreduce.job.cache.archives"),
    ("mapred.output.dir", "mapreduce.output.fileoutputformat.outputdir"),
    ("mapred.input.dir", "mapreduce.input.fileinputformat.inputdir"),
    ("user.name", "mapreduce.job.user.name"),
    // Hadoop's documentation and its code differ.
    ("stream.num.reduce.output.fields", "stream.num.reduce.output.key.fields"),
    ("mapred.linerecordreader.maxlength", "mapreduce.input.linerecordreader.line.maxlength"),
    ("mapred.input.pathFilter.class", "mapreduce.input.pathFilter.class"),
];

/// New names of properties that change the result in Hadoop and have no effect here, each with a value by which it changes
/// nothing, and with a replacement. A job with another value is refused. A name with `*` is a prefix. All
/// other properties change how a job runs, or are a job's own: commands see them.
const REFUSED: [(&str, &str, &str); 26] = [
    ("mapred.child.env", "", CMDENV),
    ("mapreduce.fileoutputcommitter.marksuccessfuljobs", "true", "remove _SUCCESS from the output"),
    ("mapreduce.input.fileinputformat.inputdir", "", "use -input"),
    ("mapreduce.input.linerecordreader.line.maxlength", "2147483647", "use --max-record"),
    ("mapreduce.input.multipleinputs.*", "", NOTHING),
    ("mapreduce.input.pathFilter.class", "", "name the files with wildcards"),
    ("mapreduce.job.cache.archives", "", "use -archives"),
    ("mapreduce.job.cache.files", "", "use -files"),
    ("mapreduce.job.combiner.group.comparator.class", "", NOTHING),
    ("mapreduce.job.output.group.comparator.class", "", NOTHING),
    ("mapreduce.map.env*", "", CMDENV),
    ("mapreduce.output.fileoutputformat.outputdir", "", "use -output"),
    ("mapreduce.reduce.env*", "", CMDENV),
    ("stream.addenvironment", "", CMDENV),
    ("stream.io.identifier.resolver.class", "", LINES),
    ("stream.map.input", "text", LINES),
    ("stream.map.input.writer.class", "", LINES),
    ("stream.map.output", "text", LINES),
    ("stream.map.output.reader.class", "", LINES),
    ("stream.recordreader.*", "", "convert the input so that each record is a line"),
    ("stream.reduce.input", "text", LINES),
    ("stream.reduce.input.writer.class", "", LINES),
    ("stream.reduce.output", "text", LINES),
    ("stream.reduce.output.reader.class", "", LINES),
    ("stream.stderr.reporter.prefix", "reporter:", NOTHING),
    ("textinputformat.record.delimiter", "", "convert the input so that each record is a line"),
];
const NOTHING: &str = "leave it out";
const CMDENV: &str = "use -cmdenv NAME=VALUE";
const LINES: &str = "leave it out and let the commands read and write lines, or use the Python package";

/// Properties by name.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Properties(BTreeMap<String, String>);

impl Properties {
    /// Sets a property under both of its names; a later one replaces an earlier one.
    pub fn set(&mut self, name: &str, value: &str) {
        for name in Self::names_of(name) {
            self.0.insert(name.to_owned(), value.to_owned());
        }
    }

    /// Returns all names of the property that has this name.
    pub fn names_of(name: &str) -> impl Iterator<Item = &str> {
        let other = ALIASES.iter().find_map(|(old, new)| match name {
            _ if name == *old => Some(*new),
            _ if name == *new => Some(*old),
            _ => None,
        });
        [Some(name), other].into_iter().flatten()
    }

    /// The value of this name.
    pub fn get(&self, name: &str) -> Option<&str> {
        self.0.get(name).map(String::as_str)
    }

    /// Returns all properties, under all names.
    pub fn all(&self) -> &BTreeMap<String, String> {
        &self.0
    }

    /// Refuses properties that would change the result and have no effect here.
    ///
    /// # Errors
    /// The first such property, and what to write instead.
    pub fn check(&self) -> Result<(), String> {
        let is_named = |name: &str, listed: &str| match listed.strip_suffix('*') {
            Some(beginning) => name.starts_with(beginning),
            None => name == listed,
        };
        for (name, value) in &self.0 {
            if value.contains("${") {
                return Err(format!(
                    "{name}={value}: names in ${{…}} are not replaced here; write the value"
                ));
            }
            let refused = REFUSED.iter().find(|(listed, harmless, _)| {
                is_named(name, listed) && !["", harmless].contains(&value.trim_matches(' '))
            });
            if let Some((_, _, instead)) = refused {
                let value = value.escape_debug();
                return Err(format!(
                    "{name}={value} would change the result and is not supported here: {instead}"
                ));
            }
        }
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn properties_have_both_of_their_names() {
        let mut properties = Properties::default();
        properties.set("mapred.reduce.tasks", "3");
        properties.set("stream.num.reduce.output.fields", "2");
        assert_eq!(properties.get("mapreduce.job.reduces"), Some("3"));
        assert_eq!(properties.get("stream.num.reduce.output.key.fields"), Some("2"));
        properties.set("mapreduce.job.reduces", "4");
        assert_eq!(properties.get("mapred.reduce.tasks"), Some("4"));
    }

    #[test]
    fn properties_that_would_change_the_result_are_refused_by_either_name() {
        let check = |name: &str, value: &str| {
            let mut properties = Properties::default();
            properties.set(name, value);
            properties.check()
        };
        for (name, value) in [
            ("textinputformat.record.delimiter", ";"),
            ("textinputformat.record.delimiter", "\n\n"),
            ("mapred.linerecordreader.maxlength", "80"),
            ("mapred.output.value.groupfn.class", "X"),
            ("mapreduce.map.env.LC_ALL", "C"),
            ("stream.reduce.input", "typedbytes"),
            ("stream.recordreader.class", "StreamXmlRecordReader"),
        ] {
            let said = check(name, value).unwrap_err();
            assert!(said.contains("would change the result and is not supported here: "), "{said}");
        }
        for (name, value) in [
            ("textinputformat.record.delimiter", ""),
            ("mapreduce.input.linerecordreader.line.maxlength", "2147483647"),
            ("stream.map.output", "text"),
            ("mapreduce.map.speculative", "true"),
            ("my.own", "x"),
        ] {
            assert_eq!(check(name, value), Ok(()), "{name}={value}");
        }
        assert!(check("my.own", "/${user.name}").unwrap_err().contains("write the value"));
    }
}
