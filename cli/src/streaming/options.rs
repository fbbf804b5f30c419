//! Command line of Hadoop Streaming, `-input x -mapper cat -D a=b`, and the job that it describes.
//!
//! Generic options may be anywhere; Hadoop wants them first.

use super::code;
use super::error::StreamError;
use super::file_names::{DefaultSystem, FileNames};
use super::glob;
use super::names::Properties;
use gristmill_scheduler::units::REDUCES_MAX;
use gristmill_streaming::{
    FieldRule, KeySpecs, LineInput, PartRule, ShippedFile, StreamingJob, split_command,
};
use gristmill_worker::input::Compression;
use gristmill_worker::objects::Scheme;
use std::collections::BTreeMap;
use std::fs;
use std::path::{Path, PathBuf};

/// Options with a value behind them.
const WITH_VALUE: &str = "input output mapper combiner reducer file dfs inputformat outputformat \
                          partitioner numReduceTasks inputreader jobconf cmdenv cacheFile \
                          cacheArchive io D fs jt files libjars archives tokenCacheFile numMapTasks";

/// Options that set a property.
const PROPERTIES: [(&str, &str); 9] = [
    ("fs", DEFAULT_SYSTEM),
    ("dfs", DEFAULT_SYSTEM),
    ("inputformat", INPUT_FORMAT),
    ("inputreader", "stream.recordreader.class"),
    ("io", "stream.map.input"),
    ("numMapTasks", "mapreduce.job.maps"),
    ("numReduceTasks", "mapreduce.job.reduces"),
    ("outputformat", OUTPUT_FORMAT),
    ("partitioner", PARTITIONER),
];
const INPUT_FORMAT: &str = "mapred.input.format.class";
const OUTPUT_FORMAT: &str = "mapred.output.format.class";
const PARTITIONER: &str = "mapreduce.job.partitioner.class";

/// Maximum bytes of a file's name.
const FILE_NAME_BYTES_MAX: usize = 255;

/// Property with the file system of names without a scheme.
const DEFAULT_SYSTEM: &str = "fs.defaultFS";

/// Property of jobs of the Python package: `lines` or `pairs`, the mapper's input. All other pairs have lengths.
const PAIRS: &str = "gristmill.streaming.pairs";

/// Property of such jobs: true if keys are tuples whose first part is the number of their part.
const PLACED: &str = "gristmill.streaming.placed";

/// Time without progress after which a command is killed unless `mapreduce.task.timeout` is set, milliseconds.
const TIMEOUT_MS: u64 = 600_000;

/// Options as typed.
#[derive(Debug, Default, PartialEq, Eq)]
pub struct TypedOptions {
    pub inputs: Vec<String>,
    pub output: Option<String>,
    pub mapper: Option<String>,
    pub combiner: Option<String>,
    pub reducer: Option<String>,
    /// Files for the working directory, each with an optional `#NAME`.
    pub files: Vec<String>,
    pub archives: Vec<String>,
    pub properties: Properties,
    pub variables: BTreeMap<String, String>,
    pub lazy_output: bool,
    pub help: bool,
    /// Options without an effect, each with the reason.
    pub remarks: Vec<String>,
}

/// Reads the words. Where several set one property, the last counts, and `-fs` only where `-D` does not.
///
/// # Errors
/// A word that is not an option, or an option without its value.
pub fn read(words: &[String]) -> Result<TypedOptions, StreamError> {
    let mut typed = TypedOptions::default();
    let mut options: Vec<(&str, &str)> = Vec::new();
    let mut words = words.iter();
    while let Some(word) = words.next() {
        let Some(name) = word.strip_prefix('-').filter(|name| !name.is_empty()) else {
            return Err(StreamError::usage(format!(
                "Found 1 unexpected arguments on the command line [{word}]"
            )));
        };
        match name.strip_prefix('-').unwrap_or(name) {
            "lazyOutput" => typed.lazy_output = true,
            "help" | "info" | "h" => typed.help = true,
            "background" => {
                typed.remarks.push("-background has no effect: the job is followed to its end".to_owned());
            }
            "verbose" | "debug" => {}
            name if name.starts_with('D') && name.contains('=') => options.push(("D", &name[1..])),
            name if WITH_VALUE.split(' ').any(|known| known == name) => {
                let missing = || StreamError::usage(format!("Missing argument for option: {name}"));
                options.push((name, words.next().ok_or_else(missing)?));
            }
            "conf" | "additionalconfspec" => {
                return Err(StreamError::usage(format!(
                    "{word}: files of properties are not supported; write each property as -D NAME=VALUE"
                )));
            }
            _ => {
                let hint = match word.starts_with("--") {
                    true => "; write flags of `gristmill streaming` before all of Hadoop's options",
                    false => "",
                };
                return Err(StreamError::usage(format!("Unrecognized option: {word}{hint}")));
            }
        }
    }
    options.sort_by_key(|(name, _)| !matches!(*name, "fs" | "dfs"));
    options.iter().try_for_each(|(name, value)| typed.option(name, value))?;
    Ok(typed)
}

impl TypedOptions {
    fn option(&mut self, name: &str, value: &str) -> Result<(), StreamError> {
        let owned = || Some(value.to_owned());
        match name {
            "input" => self.inputs.push(value.to_owned()),
            "output" => self.output = owned(),
            "mapper" => self.mapper = owned(),
            "combiner" => self.combiner = owned(),
            "reducer" => self.reducer = owned(),
            "files" | "file" | "cacheFile" => self.files.extend(named_in_list(name, value)?),
            "archives" | "cacheArchive" => self.archives.extend(named_in_list(name, value)?),
            "D" | "jobconf" => {
                let (name, value) = value.split_once('=').unwrap_or((value, ""));
                if name.trim().is_empty() {
                    return Err(StreamError::usage(format!("-D {name}={value}: it must be NAME=VALUE")));
                }
                self.properties.set(name.trim(), value);
            }
            "cmdenv" => {
                let pair = value.split_once('=').filter(|(name, _)| !name.is_empty());
                let (name, value) = pair
                    .ok_or_else(|| StreamError::usage(format!("-cmdenv {value}: it must be NAME=VALUE")))?;
                self.variables.insert(name.to_owned(), value.to_owned());
            }
            _ => match PROPERTIES.iter().find(|(option, _)| *option == name) {
                Some((_, property)) => self.properties.set(property, value),
                None => self.remarks.push(format!("-{name} {value} has no effect")),
            },
        }
        Ok(())
    }

    /// Returns the system of names without a scheme, if it is set.
    ///
    /// # Errors
    /// An unknown system.
    pub(super) fn default_system(&self) -> Result<Option<DefaultSystem>, StreamError> {
        let system = self.properties.get(DEFAULT_SYSTEM).map(DefaultSystem::parse).transpose();
        system.map_err(StreamError::configuration)
    }
}

/// The names of a list of what is shipped.
fn named_in_list(option: &str, list: &str) -> Result<Vec<String>, StreamError> {
    // As in Hadoop, a trailing comma adds no name.
    let names: Vec<String> = list.trim_end_matches(',').split(',').map(str::to_owned).collect();
    match names.iter().any(String::is_empty) {
        true => Err(StreamError::usage(format!("-{option} `{list}': a name in it is empty"))),
        false => Ok(names),
    }
}

/// Job with the data that its submitter needs.
#[derive(Debug)]
pub struct TypedJob {
    pub job: StreamingJob,
    pub output: PathBuf,
    pub inputs: Vec<PathBuf>,
    pub lazy_output: bool,
    /// Archives to be unpacked, each with the name of its directory.
    pub archives: Vec<ShippedFile>,
}

/// Splits a comma-separated list; commas within braces are no separators.
fn split_list(text: &str) -> impl Iterator<Item = &str> {
    let mut depth = 0_usize;
    text.split(move |letter| {
        match letter {
            '{' => depth += 1,
            '}' => depth = depth.saturating_sub(1),
            _ => {}
        }
        letter == ',' && depth == 0
    })
}

/// Returns the paths of one name of `-input`. Braces are replaced here, as inputs of other jobs have none.
fn input_paths(name: &str, places: &FileNames) -> Result<Vec<PathBuf>, StreamError> {
    if name.is_empty() {
        // The usual cause is an unset variable.
        return Err(StreamError::usage(
            "Can not create a Path from an empty string: a name of -input is empty",
        ));
    }
    if Scheme::from_url(name).is_some() {
        // The job lists what is there, as `run` does.
        return Ok(vec![PathBuf::from(name)]);
    }
    let pattern = places.pattern(name).map_err(StreamError::configuration)?;
    if !name.contains('{') {
        return Ok(vec![pattern]);
    }
    let is_shown =
        |path: &PathBuf| path.file_name().is_some_and(|name| !name.to_string_lossy().starts_with(['_', '.']));
    let mut found =
        glob::matching(&pattern).map_err(|error| StreamError::new(code::INPUT, format!("{error:#}")))?;
    found.retain(is_shown);
    match found.is_empty() {
        true => Err(StreamError::new(code::INPUT, format!("Input Pattern {name} matches 0 files"))),
        false => Ok(found),
    }
}

impl TypedOptions {
    /// Returns the described job.
    ///
    /// # Errors
    /// A missing or invalid option.
    pub fn job(&self, places: &FileNames, stamp: u64) -> Result<TypedJob, StreamError> {
        let property = |name: &str| self.properties.get(name);
        let mut paths = Vec::new();
        for name in self.inputs.iter().flat_map(|list| split_list(list)) {
            paths.extend(input_paths(name, places)?);
        }
        if paths.is_empty() {
            return Err(StreamError::usage("Required argument: -input <name>"));
        }
        let Some(output) = &self.output else {
            return Err(StreamError::usage("Required argument: -output "));
        };
        let output = places.local(output).map_err(StreamError::configuration)?;
        self.check_output_format()?;
        let line_input = self.line_input()?;
        let reduces = self.reduces()?;
        let mapper = step("-mapper", self.mapper.as_deref())?;
        let reducer = step("-reducer", self.reducer.as_deref().filter(|_| reduces > 0))?;
        let combiner = step("-combiner", self.combiner.as_deref().filter(|_| reduces > 0))?;
        if line_input == LineInput::Pairs && mapper.is_none() {
            return Err(StreamError::configuration(format!("{PAIRS}: a mapper is missing")));
        }
        let (files, archives) = self.shipped(places)?;
        let tab = || "\t".to_owned();
        let text = |name: &str| property(name).map_or_else(tab, str::to_owned);
        let job = StreamingJob {
            inputs: paths.iter().map(|path| path.to_string_lossy().into_owned()).collect(),
            line_input,
            has_lengths: property(PAIRS).is_some(),
            ignore_key: self.truth("stream.map.input.ignoreKey"),
            map_input_separator: text("stream.map.input.field.separator"),
            mapper,
            combiner,
            reducer,
            reduces,
            map_output: self
                .field_rule("stream.map.output.field.separator", "stream.num.map.output.key.fields")?,
            reduce_input_separator: text("stream.reduce.input.field.separator"),
            reduce_output: self
                .field_rule("stream.reduce.output.field.separator", "stream.num.reduce.output.key.fields")?,
            output_separator: text("mapreduce.output.textoutputformat.separator"),
            partition: self.partition()?,
            order: self.order()?,
            non_zero_exit_fails: self.truth("stream.non.zero.exit.is.failure").unwrap_or(true),
            early_close_after: self.number("stream.minRecWrittenToEnableSkip_")?,
            timeout_ms: Some(self.number("mapreduce.task.timeout")?.unwrap_or(TIMEOUT_MS))
                .filter(|ms| 0 < *ms),
            properties: self.told_properties(places, &paths, &output, reduces),
            variables: self.variables.clone(),
            files,
            bundle: None,
            stamp,
            hdfs_root: places.known_root().map(Path::to_owned),
        };
        Ok(TypedJob { job, output, inputs: paths, lazy_output: self.lazy_output, archives })
    }

    /// Returns the properties that commands receive.
    fn told_properties(
        &self,
        places: &FileNames,
        inputs: &[PathBuf],
        output: &Path,
        reduces: u32,
    ) -> BTreeMap<String, String> {
        let mut told = Properties::default();
        let inputs: Vec<String> = inputs.iter().map(|path| places.uri(path)).collect();
        told.set("mapreduce.input.fileinputformat.inputdir", &inputs.join(","));
        told.set("mapreduce.output.fileoutputformat.outputdir", &places.uri(output));
        told.set("mapreduce.job.user.name", &places.user);
        told.set("mapreduce.job.priority", "NORMAL");
        told.set("mapreduce.job.name", "streamjob");
        told.set("mapreduce.job.maps", "2");
        told.set("stream.num.map.output.key.fields", "1");
        for (name, value) in self.properties.all() {
            told.set(name, value);
        }
        told.set("mapreduce.job.reduces", &reduces.to_string());
        told.all().clone()
    }

    /// Returns the files and the archives for the working directory, each name once.
    fn shipped(&self, places: &FileNames) -> Result<(Vec<ShippedFile>, Vec<ShippedFile>), StreamError> {
        let mut taken = BTreeMap::new();
        let mut add = |names: &[String]| {
            let mut shipped = Vec::new();
            for text in names {
                let file = named_file(text, places)?;
                match taken.insert(file.name.clone(), file.path.clone()) {
                    None => shipped.push(file),
                    Some(other) if fs::canonicalize(&other).ok() == fs::canonicalize(&file.path).ok() => {}
                    Some(other) => {
                        return Err(StreamError::configuration(format!(
                            "{text}: {} is already shipped as `{}'; append #NAME to one of them",
                            other.display(),
                            file.name
                        )));
                    }
                }
            }
            Ok(shipped)
        };
        Ok((add(&self.files)?, add(&self.archives)?))
    }

    fn reduces(&self) -> Result<u32, StreamError> {
        if self.reducer.as_deref() == Some("NONE") {
            return Ok(0);
        }
        let wrong = |text: &str| {
            StreamError::configuration(format!(
                "mapreduce.job.reduces={text}: it must be from 0 to {REDUCES_MAX}"
            ))
        };
        let text = self.properties.get("mapreduce.job.reduces").unwrap_or("1");
        text.trim().parse().ok().filter(|reduces| *reduces <= REDUCES_MAX).ok_or_else(|| wrong(text))
    }

    /// Returns the class that a property names, without its package.
    fn class(&self, property: &str) -> Option<&str> {
        self.properties.get(property).and_then(|class| class.trim().rsplit(['.', '$']).next())
    }

    fn line_input(&self) -> Result<LineInput, StreamError> {
        match self.class(INPUT_FORMAT) {
            None if self.properties.get(PAIRS) == Some("pairs") => Ok(LineInput::Pairs),
            None | Some("TextInputFormat") => Ok(LineInput::Text),
            Some("KeyValueTextInputFormat") => Ok(LineInput::KeyValue),
            Some("NLineInputFormat") => Ok(LineInput::Numbered),
            Some(other) => {
                let available = "TextInputFormat, KeyValueTextInputFormat and NLineInputFormat";
                Err(not_found("-inputformat", other, available))
            }
        }
    }

    fn check_output_format(&self) -> Result<(), StreamError> {
        match self.class(OUTPUT_FORMAT) {
            None | Some("TextOutputFormat") => Ok(()),
            Some(other) => Err(not_found("-outputformat", other, "TextOutputFormat")),
        }
    }

    /// Separator of the fields of a key.
    fn key_separator(&self) -> &str {
        self.properties.get("mapreduce.map.output.key.field.separator").unwrap_or("\t")
    }

    fn specs(&self, name: &str) -> Result<KeySpecs, StreamError> {
        KeySpecs::parse(self.properties.get(name).unwrap_or_default(), self.key_separator())
            .map_err(|error| StreamError::configuration(format!("{name}: {error}")))
    }

    fn partition(&self) -> Result<PartRule, StreamError> {
        match self.class(PARTITIONER) {
            None if self.truth(PLACED) == Some(true) => Ok(PartRule::Chosen),
            None | Some("HashPartitioner") => Ok(PartRule::Hash),
            Some("KeyFieldBasedPartitioner") => {
                Ok(PartRule::Fields(match self.number("num.key.fields.for.partition")? {
                    Some(fields) => KeySpecs::first_fields(fields as usize, self.key_separator()),
                    None => self.specs("mapreduce.partition.keypartitioner.options")?,
                }))
            }
            Some(other) => {
                Err(not_found("-partitioner", other, "HashPartitioner and KeyFieldBasedPartitioner"))
            }
        }
    }

    fn order(&self) -> Result<Option<KeySpecs>, StreamError> {
        match self.class("mapreduce.job.output.key.comparator.class") {
            None => Ok(None),
            Some("KeyFieldBasedComparator") => {
                self.specs("mapreduce.partition.keycomparator.options").map(Some)
            }
            Some(other) => Err(not_found("comparator", other, "KeyFieldBasedComparator")),
        }
    }

    fn field_rule(&self, separator: &str, fields: &str) -> Result<FieldRule, StreamError> {
        let key_fields = self.number(fields)?.unwrap_or(1);
        let separator = self.properties.get(separator).unwrap_or("\t").to_owned();
        Ok(FieldRule { separator, key_fields: u32::try_from(key_fields).unwrap_or(u32::MAX) })
    }

    /// Returns the compression of parts, if any.
    ///
    /// # Errors
    /// An unknown codec.
    pub fn compression(&self) -> Result<Option<Compression>, StreamError> {
        if self.truth("mapreduce.output.fileoutputformat.compress") != Some(true) {
            return Ok(None);
        }
        match self.class("mapreduce.output.fileoutputformat.compress.codec") {
            // Few other programs read Hadoop's own default, `.deflate`.
            None | Some("GzipCodec" | "DefaultCodec") => Ok(Some(Compression::Gzip)),
            Some("ZStandardCodec") => Ok(Some(Compression::Zstd)),
            Some("BZip2Codec") => Ok(Some(Compression::Bzip2)),
            Some(other) => Err(not_found("codec", other, "GzipCodec, BZip2Codec and ZStandardCodec")),
        }
    }

    /// Returns the whole number of a property.
    pub fn number(&self, name: &str) -> Result<Option<u64>, StreamError> {
        let invalid = |text: &str| StreamError::configuration(format!("{name}={text} is not a whole number"));
        let read = |text: &str| text.trim().parse().map_err(|_| invalid(text));
        self.properties.get(name).map(read).transpose()
    }

    /// Returns the truth value of a property; other values count as none, as in Hadoop.
    pub fn truth(&self, name: &str) -> Option<bool> {
        self.properties.get(name).and_then(|text| text.trim().to_ascii_lowercase().parse().ok())
    }
}

/// Returns the words of the typed step; `None` if it passes pairs on unchanged.
///
/// # Errors
/// An unsupported class, or a command without words.
fn step(option: &str, typed: Option<&str>) -> Result<Option<Vec<String>>, StreamError> {
    let Some(typed) = typed else { return Ok(None) };
    let is_class = match typed {
        "IdentityMapper"
        | "IdentityReducer"
        | "org.apache.hadoop.mapred.lib.IdentityMapper"
        | "org.apache.hadoop.mapred.lib.IdentityReducer" => return Ok(None),
        "FieldSelectionMapReduce" => true,
        _ if option == "-reducer" && typed.eq_ignore_ascii_case("aggregate") => true,
        _ => typed.starts_with("org.apache.hadoop.") && !typed.contains(' '),
    };
    if is_class {
        let available =
            "IdentityMapper, IdentityReducer, and commands (`awk` sums values, `cut` selects fields)";
        return Err(not_found(option, typed, available));
    }
    match split_command(typed) {
        words if words.is_empty() => Err(StreamError::usage(format!("{option}: the command is empty"))),
        words => Ok(Some(words)),
    }
}

/// Error of a class that does not exist here.
fn not_found(option: &str, class: &str, available: &str) -> StreamError {
    StreamError::configuration(format!("{option} : class not found : {class}; available: {available}"))
}

/// Returns the file of `PATH#NAME`, with its name for tasks.
fn named_file(text: &str, places: &FileNames) -> Result<ShippedFile, StreamError> {
    let (path, name) = text.rsplit_once('#').unwrap_or((text, ""));
    // A file of this machine unless its name has another scheme.
    let path = places.with_default(DefaultSystem::Local).local(path).map_err(StreamError::usage)?;
    let own = path.file_name().unwrap_or_default().to_string_lossy().into_owned();
    let name = if name.is_empty() { own } else { name.to_owned() };
    if !(path.is_file() || path.is_dir()) {
        let path = path.display();
        return Err(StreamError::usage(format!("File: {path} does not exist, or is not readable.")));
    }
    if name.len() > FILE_NAME_BYTES_MAX || name.contains('/') || ["", ".", "..", "tmp"].contains(&&*name) {
        return Err(StreamError::usage(format!(
            "{text}: `{name}` cannot be the name of a file in a task's directory"
        )));
    }
    Ok(ShippedFile { name, path })
}

#[cfg(test)]
mod tests {
    use super::*;

    fn words(text: &str) -> Vec<String> {
        split_command(text)
    }

    fn job(text: &str) -> Result<TypedJob, StreamError> {
        let typed = read(&words(&format!("-input /in -output /out {text}")))?;
        typed.job(&FileNames::new(DefaultSystem::Local).unwrap(), 1)
    }

    #[test]
    fn words_of_mrjob_are_understood() {
        let text = "-files hdfs:///f/wd/job.py#job.py,hdfs:///f/wd/m.zip#m.zip -D a=b -D mapred.reduce.tasks=3 -partitioner \
             org.apache.hadoop.mapred.lib.KeyFieldBasedPartitioner -cmdenv TZ=UTC -input hdfs:///in -output hdfs:///out \
             -mapper 'python3 job.py --step-num=0 --mapper' -reducer cat";
        let typed = read(&words(text)).unwrap();
        assert_eq!(typed.files, ["hdfs:///f/wd/job.py#job.py", "hdfs:///f/wd/m.zip#m.zip"]);
        assert_eq!(typed.properties.get("mapreduce.job.reduces"), Some("3"));
        assert_eq!(typed.variables, [("TZ".to_owned(), "UTC".to_owned())].into());
        assert_eq!(typed.mapper.as_deref(), Some("python3 job.py --step-num=0 --mapper"));
        assert_eq!(typed.output.as_deref(), Some("hdfs:///out"));
    }

    #[test]
    fn steps_are_commands_or_the_classes_there_are() {
        let steps =
            |text: &str| job(text).map(|typed| (typed.job.mapper, typed.job.combiner, typed.job.reducer));
        let command = |word: &str| Some(vec![word.to_owned()]);
        assert_eq!(steps("").unwrap(), (None, None, None));
        assert_eq!(steps("-mapper cat -reducer wc").unwrap(), (command("cat"), None, command("wc")));
        assert_eq!(steps("-mapper org.apache.hadoop.mapred.lib.IdentityMapper").unwrap().0, None);
        for class in ["org.apache.hadoop.mapred.lib.aggregate.X", "aggregate", "FieldSelectionMapReduce"] {
            let error = steps(&format!("-reducer {class}")).unwrap_err();
            assert!(error.code == code::CONFIGURATION && error.message.contains("`awk`"), "{error:?}");
        }
        assert_eq!(job("-reducer NONE").unwrap().job.reduces, 0);
        assert_eq!(job("-numReduceTasks 0 -combiner cat").unwrap().job.combiner, None);
        assert_eq!(job("").unwrap().job.reduces, 1);
    }

    #[test]
    fn what_makes_no_job_is_refused_with_the_code_of_hadoop() {
        let refused = |text: &str| job(text).unwrap_err().code;
        assert_eq!(refused("-nope x"), code::FAILED);
        assert_eq!(refused("stray"), code::FAILED);
        assert_eq!(refused("-mapper"), code::FAILED);
        for empty in [
            "-cmdenv x",
            "-cmdenv =x",
            "-D =x",
            "-input a,,b",
            "-input ''",
            "-file ''",
            "-files a,",
            "-archives ,a",
        ] {
            assert_eq!(refused(empty), code::FAILED, "{empty}");
        }
        assert_eq!(refused("-numReduceTasks many"), code::CONFIGURATION);
        assert_eq!(refused("-inputformat org.example.Mine"), code::CONFIGURATION);
        assert_eq!(refused("-partitioner Mine"), code::CONFIGURATION);
        assert_eq!(refused("-file /not/there"), code::FAILED);
        assert_eq!(refused("-file /dev/null"), code::FAILED);
        let directory = tempfile::tempdir().unwrap();
        let [one, two] = ["one", "two"].map(|name| directory.path().join(name).display().to_string());
        [&one, &two].iter().for_each(|name| std::fs::write(name, "").unwrap());
        assert_eq!(refused(&format!("-files {one}#x,{two}#x")), code::CONFIGURATION);
        assert_eq!(refused(&format!("-files {one}#{}", "x".repeat(FILE_NAME_BYTES_MAX + 1))), code::FAILED);
        let again = one
            .replace("/one", "/../x/one")
            .replace("/x/", &format!("/{}/", directory.path().file_name().unwrap().display()));
        assert_eq!(job(&format!("-files {one}#x,{again}#x, -file {two}")).unwrap().job.files.len(), 2);
        let places = FileNames::new(DefaultSystem::Local).unwrap();
        for (text, missing) in [("-output /o", "-input"), ("-input /i", "-output")] {
            let error = read(&words(text)).unwrap().job(&places, 1).unwrap_err();
            assert!(error.message.contains(missing) && error.code == code::FAILED, "{error:?}");
        }
    }

    #[test]
    fn lists_and_braces_name_several_files() {
        let directory = tempfile::tempdir().unwrap();
        let path = |name: &str| directory.path().join(name).to_str().unwrap().to_owned();
        ["c1", "c2"].iter().for_each(|name| std::fs::write(path(name), "").unwrap());
        let typed = |inputs: &str| job(&format!("-input {inputs}"));
        let expected = ["/in".to_owned(), "/b".to_owned(), path("c1"), path("c2")];
        assert_eq!(typed(&format!("/b,{}", path("c{2,1,*,3}"))).unwrap().job.inputs, expected);
        assert_eq!(typed(&path("c{3,x*}")).unwrap_err().code, code::INPUT);
        let objects = ["s3://bucket/logs/", "https://host/one.gz"];
        assert_eq!(typed(&objects.join(",")).unwrap().job.inputs[1..], objects);
        assert_eq!(typed("ftp://host/one").unwrap_err().code, code::CONFIGURATION);
    }
}
