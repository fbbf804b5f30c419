//! Hadoop's properties under their old and new names, and which of them mean something here.

use std::collections::{BTreeMap, BTreeSet};

/// Old and new names of one property.
const ALIASES: [(&str, &str); 56] = [
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
    ("mapred.compress.map.output", "mapreduce.map.output.compress"),
    ("mapred.map.output.compression.codec", "mapreduce.map.output.compress.codec"),
    ("mapred.output.compress", "mapreduce.output.fileoutputformat.compress"),
    ("mapred.output.compression.codec", "mapreduce.output.fileoutputformat.compress.codec"),
    ("mapred.output.compression.type", "mapreduce.output.fileoutputformat.compress.type"),
    ("mapred.textoutputformat.separator", "mapreduce.output.textoutputformat.separator"),
    ("mapred.min.split.size", "mapreduce.input.fileinputformat.split.minsize"),
    ("mapred.max.split.size", "mapreduce.input.fileinputformat.split.maxsize"),
    ("mapred.line.input.format.linespermap", "mapreduce.input.lineinputformat.linespermap"),
    ("key.value.separator.in.input.line", "mapreduce.input.keyvaluelinerecordreader.key.value.separator"),
    ("mapred.input.dir.recursive", "mapreduce.input.fileinputformat.input.dir.recursive"),
    ("mapred.map.max.attempts", "mapreduce.map.maxattempts"),
    ("mapred.reduce.max.attempts", "mapreduce.reduce.maxattempts"),
    ("mapred.max.map.failures.percent", "mapreduce.map.failures.maxpercent"),
    ("mapred.max.reduce.failures.percent", "mapreduce.reduce.failures.maxpercent"),
    ("mapred.map.tasks.speculative.execution", "mapreduce.map.speculative"),
    ("mapred.reduce.tasks.speculative.execution", "mapreduce.reduce.speculative"),
    ("mapred.reduce.slowstart.completed.maps", "mapreduce.job.reduce.slowstart.completedmaps"),
    ("mapred.reduce.parallel.copies", "mapreduce.reduce.shuffle.parallelcopies"),
    ("mapred.task.timeout", "mapreduce.task.timeout"),
    ("mapred.map.task.debug.script", "mapreduce.map.debug.script"),
    ("mapred.reduce.task.debug.script", "mapreduce.reduce.debug.script"),
    ("io.sort.mb", "mapreduce.task.io.sort.mb"),
    ("io.sort.factor", "mapreduce.task.io.sort.factor"),
    ("mapred.cache.files", "mapreduce.job.cache.files"),
    ("mapred.cache.archives", "mapreduce.job.cache.archives"),
    ("mapred.output.dir", "mapreduce.output.fileoutputformat.outputdir"),
    ("mapred.input.dir", "mapreduce.input.fileinputformat.inputdir"),
    ("user.name", "mapreduce.job.user.name"),
    ("mapred.child.java.opts", "mapreduce.child.java.opts"),
    ("mapred.linerecordreader.maxlength", "mapreduce.input.linerecordreader.line.maxlength"),
    ("mapred.input.pathFilter.class", "mapreduce.input.pathFilter.class"),
    ("mapred.local.dir", "mapreduce.cluster.local.dir"),
    ("mapred.job.tracker", "mapreduce.jobtracker.address"),
    ("mapred.job.reuse.jvm.num.tasks", "mapreduce.job.jvm.numtasks"),
    ("mapred.tasktracker.map.tasks.maximum", "mapreduce.tasktracker.map.tasks.maximum"),
    ("mapred.userlog.limit.kb", "mapreduce.task.userlog.limit.kb"),
    ("mapred.create.symlink", "mapreduce.job.cache.symlink.create"),
    ("mapred.data.field.separator", "mapreduce.fieldsel.data.field.separator"),
    ("map.output.key.value.fields.spec", "mapreduce.fieldsel.map.output.key.value.fields.spec"),
    ("reduce.output.key.value.fields.spec", "mapreduce.fieldsel.reduce.output.key.value.fields.spec"),
    ("mapreduce.inputformat.class", "mapreduce.job.inputformat.class"),
    ("mapred.job.map.memory.mb", "mapreduce.map.memory.mb"),
    ("mapred.job.reduce.memory.mb", "mapreduce.reduce.memory.mb"),
];

/// New names of what has an effect on a job.
const HEEDED: [&str; 50] = [
    "fs.default.name",
    "fs.defaultFS",
    "gristmill.streaming.end.mark",
    "mapreduce.fieldsel.data.field.separator",
    "mapreduce.fieldsel.map.output.key.value.fields.spec",
    "mapreduce.fieldsel.reduce.output.key.value.fields.spec",
    "mapreduce.fileoutputcommitter.marksuccessfuljobs",
    "mapreduce.input.fileinputformat.input.dir.recursive",
    "mapreduce.input.fileinputformat.inputdir",
    "mapreduce.input.fileinputformat.split.maxsize",
    "mapreduce.input.fileinputformat.split.minsize",
    "mapreduce.input.keyvaluelinerecordreader.key.value.separator",
    "mapreduce.input.lineinputformat.linespermap",
    "mapreduce.job.cache.files",
    "mapreduce.job.maps",
    "mapreduce.job.name",
    "mapreduce.job.output.key.comparator.class",
    "mapreduce.job.partitioner.class",
    "mapreduce.job.priority",
    "mapreduce.job.reduces",
    "mapreduce.map.maxattempts",
    "mapreduce.map.output.key.field.separator",
    "mapreduce.output.fileoutputformat.compress",
    "mapreduce.output.fileoutputformat.compress.codec",
    "mapreduce.output.fileoutputformat.outputdir",
    "mapreduce.output.textoutputformat.separator",
    "mapreduce.partition.keycomparator.options",
    "mapreduce.partition.keypartitioner.options",
    "mapreduce.reduce.maxattempts",
    "mapreduce.task.io.sort.mb",
    "mapreduce.task.timeout",
    "num.key.fields.for.partition",
    "stream.jobconf.truncate.limit",
    "stream.map.input",
    "stream.map.input.field.separator",
    "stream.map.input.ignoreKey",
    "stream.map.output",
    "stream.map.output.field.separator",
    "stream.minRecWrittenToEnableSkip_",
    "stream.non.zero.exit.is.failure",
    "stream.num.map.output.key.fields",
    "stream.num.reduce.output.key.fields",
    "stream.recordreader.begin",
    "stream.recordreader.class",
    "stream.recordreader.end",
    "stream.reduce.input",
    "stream.reduce.input.field.separator",
    "stream.reduce.output",
    "stream.reduce.output.field.separator",
    "stream.stderr.reporter.prefix",
];

/// New names of what has no effect here and changes the result in Hadoop, each with a value by which it does not, and with
/// what to write instead. A job with another value is refused. A name with `*` stands for all that begin so. All that stand
/// neither here nor in [`HEEDED`] change how a job runs and not its result, or are a job's own, of which commands are told:
/// they cause a warning.
const REFUSED: [(&str, &str, &str); 20] = [
    ("aggregate.max.num.unique.values", "9223372036854775807", NOTHING),
    ("mapred.child.env", "", CMDENV),
    ("mapreduce.input.linerecordreader.line.maxlength", "2147483647", "use --max-record"),
    ("mapreduce.input.multipleinputs.*", "", NOTHING),
    ("mapreduce.input.pathFilter.class", "", "name the files with wildcards"),
    ("mapreduce.job.cache.archives", "", "use -archives"),
    ("mapreduce.job.combiner.group.comparator.class", "", NOTHING),
    ("mapreduce.job.output.group.comparator.class", "", NOTHING),
    ("mapreduce.map.env", "", CMDENV),
    ("mapreduce.map.env.*", "", CMDENV),
    ("mapreduce.reduce.env", "", CMDENV),
    ("mapreduce.reduce.env.*", "", CMDENV),
    ("stream.addenvironment", "", CMDENV),
    ("stream.io.identifier.resolver.class", "", IO),
    ("stream.map.input.writer.class", "", IO),
    ("stream.map.output.reader.class", "", IO),
    ("stream.recordreader.slowmatch", "false", NOTHING),
    ("stream.reduce.input.writer.class", "", IO),
    ("stream.reduce.output.reader.class", "", IO),
    ("textinputformat.record.delimiter", "", "convert the input so that each record is a line"),
];
const NOTHING: &str = "leave it out";
const CMDENV: &str = "use -cmdenv NAME=VALUE";
const IO: &str = "use -io";

/// Names in a value that others stand for, as in Hadoop.
const EXPANSIONS_MAX: usize = 20;

/// Bytes that are written for names that others stand for, in all properties.
const EXPANDED_BYTES_MAX: usize = 64 << 20;

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

    /// All names of the property that has this one.
    pub fn names_of(name: &str) -> impl Iterator<Item = &str> {
        let other = ALIASES.iter().find_map(|(old, new)| match name {
            _ if name == *old => Some(*new),
            _ if name == *new => Some(*old),
            _ => None,
        });
        [Some(name), other, both_spellings(name)].into_iter().flatten()
    }

    /// Puts the values of properties in the place of `${NAME}` in others, as Hadoop does when it reads them, and what
    /// `outer` says of names that are none. What neither knows stays, and so does all of a value in which names stand for
    /// themselves.
    ///
    /// # Errors
    /// More names than Hadoop takes, or more bytes than anybody writes.
    pub fn expand(&mut self, outer: impl Fn(&str) -> Option<String>) -> Result<(), String> {
        let raw = self.0.clone();
        let mut bytes = 0;
        for (name, value) in &mut self.0 {
            let (mut from, mut count) = (0, 0);
            let mut seen = BTreeSet::new();
            while let Some((begin, end)) = variable(value, from) {
                let inner = &value[begin + 2..end - 1];
                match outer(inner).or_else(|| raw.get(inner).cloned()) {
                    Some(_) if count == EXPANSIONS_MAX && seen.len() < count => {
                        value.clone_from(&raw[name]);
                        break;
                    }
                    Some(_) if count == EXPANSIONS_MAX => {
                        return Err(format!(
                            "{name}: more than {EXPANSIONS_MAX} names stand for others in it"
                        ));
                    }
                    Some(found) => {
                        count += 1;
                        seen.insert(inner.to_owned());
                        // All that is moved for it.
                        bytes += value.len() + found.len();
                        if EXPANDED_BYTES_MAX < bytes {
                            return Err(format!(
                                "{name}: what names in braces stand for has more than {EXPANDED_BYTES_MAX} bytes in all"
                            ));
                        }
                        value.replace_range(begin..end, &found);
                    }
                    None => from = end,
                }
            }
        }
        Ok(())
    }

    /// The value of this name.
    pub fn get(&self, name: &str) -> Option<&str> {
        self.0.get(name).map(String::as_str)
    }

    /// All of them, under all names.
    pub fn all(&self) -> &BTreeMap<String, String> {
        &self.0
    }

    /// Refuses what would change the result and has no effect here.
    ///
    /// # Errors
    /// The first such property, and what to write instead.
    pub fn check(&self) -> Result<(), String> {
        let is_named = |name: &str, listed: &str| match listed.strip_suffix('*') {
            Some(beginning) => name.starts_with(beginning),
            None => name == listed,
        };
        for (name, value) in &self.0 {
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

    /// What has no effect here, under its new name.
    pub fn unheeded(&self) -> impl Iterator<Item = &str> {
        let is_old = |name: &str| ALIASES.iter().any(|(old, _)| *old == name);
        let names = self.0.keys().map(String::as_str);
        names.filter(move |name| !is_old(name) && !HEEDED.contains(name) && both_spellings(name).is_none())
    }
}

/// Where the first `${NAME}` behind this place begins and ends.
fn variable(value: &str, mut from: usize) -> Option<(usize, usize)> {
    loop {
        let begin = from + value[from..].find("${")?;
        let length = value[begin + 2..].find(['}', '$', ' '])?;
        let end = begin + 2 + length;
        if 0 < length && value.as_bytes()[end] == b'}' {
            return Some((begin, end + 1));
        }
        from = begin + 2;
    }
}

/// The document and the code of Hadoop call this by different names.
fn both_spellings(name: &str) -> Option<&'static str> {
    (name == "stream.num.reduce.output.fields").then_some("stream.num.reduce.output.key.fields")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn properties_have_both_of_their_names_and_those_without_effect_are_told() {
        let mut properties = Properties::default();
        properties.set("mapred.reduce.tasks", "3");
        properties.set("stream.num.reduce.output.fields", "2");
        properties.set("mapreduce.map.speculative", "true");
        properties.set("my.own", "x");
        assert_eq!(properties.get("mapreduce.job.reduces"), Some("3"));
        assert_eq!(properties.get("mapred.map.tasks.speculative.execution"), Some("true"));
        assert_eq!(properties.get("stream.num.reduce.output.key.fields"), Some("2"));
        assert_eq!(properties.unheeded().collect::<Vec<_>>(), ["mapreduce.map.speculative", "my.own"]);
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
        ] {
            let said = check(name, value).unwrap_err();
            assert!(said.contains("would change the result and is not supported here: "), "{said}");
        }
        for (name, value) in [
            ("textinputformat.record.delimiter", ""),
            ("mapreduce.input.linerecordreader.line.maxlength", "2147483647"),
            ("stream.recordreader.slowmatch", "false"),
            ("mapreduce.map.speculative", "true"),
            ("my.own", "x"),
        ] {
            assert_eq!(check(name, value), Ok(()), "{name}={value}");
        }
        assert!(REFUSED.iter().all(|(name, ..)| !HEEDED.contains(name)));
    }

    #[test]
    fn names_in_braces_stand_for_their_values_if_they_have_one_and_never_for_themselves() {
        let expanded = |pairs: &[(&str, &str)]| {
            let mut properties = Properties::default();
            pairs.iter().for_each(|(name, value)| properties.set(name, value));
            let outer = |name: &str| (name == "user.name").then(|| "me".to_owned());
            properties.expand(outer).map(|()| properties.get("a").unwrap().to_owned())
        };
        let b = ("b", "${c}/x");
        assert_eq!(expanded(&[("a", "/${b}/${user.name}"), b, ("c", "d")]).unwrap(), "/d/x/me");
        assert_eq!(
            expanded(&[("a", "${none}${}${${b}}$${b }${c"), ("b", "x"), ("x", "y")]).unwrap(),
            "${none}${}y$${b }${c"
        );
        for pairs in [&[("a", "${a} -x")][..], &[("a", "${b}"), ("b", "x${a}")]] {
            assert_eq!(expanded(pairs).unwrap(), pairs[0].1);
        }
        let many = "${b}".repeat(EXPANSIONS_MAX);
        assert_eq!(expanded(&[("a", &many), ("b", "x")]).unwrap(), "x".repeat(EXPANSIONS_MAX));
        let names: Vec<String> = (0..=EXPANSIONS_MAX).map(|number| format!("n{number}")).collect();
        let all: String = names.iter().map(|name| format!("${{{name}}}")).collect();
        let pairs = names.iter().map(|name| (name.as_str(), "x")).chain([("a", all.as_str())]);
        assert!(expanded(&pairs.collect::<Vec<_>>()).is_err());
        assert!(expanded(&[("a", &many), ("b", &"x".repeat(8 << 20))]).is_err());
        assert_eq!(expanded(&[("a", &"${".repeat(1 << 20))]).unwrap().len(), 2 << 20);
        assert_eq!(expanded(&[("a", "é${b}é${é}"), ("b", "ß"), ("é", "ü")]).unwrap(), "éßéü");
    }
}
