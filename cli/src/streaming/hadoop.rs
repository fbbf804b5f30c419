//! The program under Hadoop's names: `hadoop`, `hdfs`, `yarn` and `mapred`.
//!
//! It has the commands that jobs of Hadoop Streaming need: `jar`, `fs`, `job`, `application` and `version`. Names of files
//! without a scheme are in `hdfs:`, as on a cluster.

use super::file_names::FileNames;
use super::kept::KeptJobs;
use super::{DefaultSystem, run_with_flags_of_environment, shell};
use crate::settings;
use crate::terminal::{self, stderr_line};
use gristmill_runtime::exit;
use std::ffi::OsString;
use std::path::Path;

/// Names of Hadoop's programs.
const NAMES: [&str; 4] = ["hadoop", "hdfs", "yarn", "mapred"];

/// Version that is printed: drivers read the first number, which decides which options they use.
const VERSION: &str = "3.3.6";

/// Exit code of a call that did nothing: the value -1 as an exit code.
const NOT_DONE: u8 = u8::MAX;

/// True if the program was called by one of Hadoop's names.
#[must_use]
pub fn is_called_as_hadoop(arguments: &[OsString]) -> bool {
    let name = arguments.first().and_then(|program| Path::new(program).file_name());
    name.and_then(|name| name.to_str()).is_some_and(|name| NAMES.contains(&name))
}

/// Runs the program under the name it was called by, and returns the exit code.
#[must_use]
pub fn main(arguments: &[OsString]) -> u8 {
    let words: Option<Vec<String>> = arguments.iter().map(|word| word.to_str().map(str::to_owned)).collect();
    let Some(words) = words else {
        terminal::complain("error", "an argument is not UTF-8");
        return exit::FAILED;
    };
    let name = words.first().and_then(|program| Path::new(program).file_name()?.to_str()).unwrap_or_default();
    let name = name.to_owned();
    call(&name, &words[1..]).unwrap_or_else(|error| {
        if error.is::<terminal::StdoutClosed>() {
            return exit::OK;
        }
        stderr_line(&format!("{name}: {error:#}"));
        NOT_DONE
    })
}

fn call(name: &str, words: &[String]) -> anyhow::Result<u8> {
    let (word, rest) = match words {
        [word, rest @ ..] => (word.as_str(), rest),
        [] => ("", words),
    };
    match (name, word) {
        (_, "version" | "--version" | "-version") => version(),
        ("hadoop" | "yarn", "jar") => jar(rest),
        ("mapred", "streaming") => stream(rest),
        ("hadoop", "fs" | "dfs") | ("hdfs", "dfs" | "fs") => shell::run(rest),
        ("hadoop" | "mapred", "job") => kill("job", rest),
        ("yarn", "application" | "app") => kill("application", rest),
        _ => {
            stderr_line(&format!(
                "{name}: `{word}` is not supported; available: hadoop jar|fs|job|version, hdfs dfs, yarn jar|application, mapred streaming|job"
            ));
            Ok(exit::FAILED)
        }
    }
}

fn version() -> anyhow::Result<u8> {
    terminal::stdout_line(&format!("Hadoop {VERSION} (gristmill {})", env!("CARGO_PKG_VERSION")))?;
    Ok(exit::OK)
}

/// `jar FILE OPTIONS`: the file is that of Hadoop Streaming, and may be empty.
fn jar(words: &[String]) -> anyhow::Result<u8> {
    let Some((jar, rest)) = words.split_first() else {
        stderr_line("RunJar jarFile [mainClass] args...");
        return Ok(NOT_DONE);
    };
    if !Path::new(jar).is_file() {
        stderr_line(&format!("JAR does not exist or is not a normal file: {jar}"));
        stderr_line(&format!("Not a valid JAR: {jar}"));
        return Ok(NOT_DONE);
    }
    match rest {
        [class, rest @ ..] if class == "streamjob" || class.ends_with(".HadoopStreaming") => stream(rest),
        _ => stream(rest),
    }
}

fn stream(words: &[String]) -> anyhow::Result<u8> {
    let settings = settings::load(None)?;
    Ok(run_with_flags_of_environment(&settings, words, DefaultSystem::Hdfs))
}

/// `mapred job -kill` (`kind` is `job`) and `yarn application -kill`: end a job that was started under
/// Hadoop's names on this machine.
fn kill(kind: &str, words: &[String]) -> anyhow::Result<u8> {
    let jobs = KeptJobs::new(&FileNames::new(DefaultSystem::Hdfs)?);
    let [command, name] = words else { return Ok(refuse(kind)) };
    if command != "-kill" {
        return Ok(refuse(kind));
    }
    let killed = name.split_once('_').map(|(_, number)| jobs.kill(number)).transpose()?.flatten();
    let (words, code) = match killed {
        None => (format!("Could not find {kind} {name}"), NOT_DONE),
        Some(true) => (format!("Killed {kind} {name}"), exit::OK),
        Some(false) => (format!("Could not kill {kind} {name}, as it has already ended"), NOT_DONE),
    };
    terminal::stdout_line(&words)?;
    Ok(code)
}

fn refuse(kind: &str) -> u8 {
    stderr_line(&format!(
        "Usage: {kind} -kill NAME; other commands are not supported: `hadoop jar` prints the job's state, progress and counters"
    ));
    NOT_DONE
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn hadoops_names_are_known() {
        let called = |words: &[&str]| {
            let words: Vec<OsString> = words.iter().map(OsString::from).collect();
            is_called_as_hadoop(&words)
        };
        assert!(called(&["/opt/h/bin/hadoop", "jar", "x.jar"]));
        assert!(called(&["hdfs"]));
        assert!(!called(&["gristmill", "streaming"]));
        assert!(!called(&[]));
    }
}
