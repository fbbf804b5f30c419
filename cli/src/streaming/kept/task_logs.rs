//! The last words of an attempt as two files, as Hadoop has them: `stderr` is what the command wrote, `syslog` what the
//! framework tells of it. mrjob takes a failure for real only where `syslog` has a line of a Java program's stack.

use super::super::log::{Level, record};
use std::fs;
use std::io;
use std::path::Path;

/// The line by which an attempt tells of its input.
const SPLIT: &str = "Processing split: ";

/// Where Hadoop says such things.
const STACK: &str = "\tat org.apache.hadoop.streaming.PipeMapRed.waitOutputThreads(PipeMapRed.java:326)";

/// Writes both files. The first line of `words` is what is wrong, the others are the command's, but for that of its split.
pub fn write(folder: &Path, words: &str) -> io::Result<()> {
    let mut lines = words.lines();
    let wrong = lines.next().unwrap_or_default();
    let (mut syslog, mut stderr) = (String::new(), String::new());
    for line in lines {
        if line.starts_with(SPLIT) && syslog.is_empty() {
            syslog = record(Level::Info, "mapred.MapTask", line) + "\n";
        } else {
            stderr.push_str(line);
            stderr.push('\n');
        }
    }
    let wrong = format!("Exception running child : java.lang.RuntimeException: {wrong}");
    syslog.push_str(&record(Level::Warn, "mapred.YarnChild", &wrong));
    syslog.push_str(&format!("\n{STACK}\n"));
    fs::write(folder.join("stderr"), stderr)?;
    fs::write(folder.join("syslog"), syslog)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn words_of_an_attempt_fall_into_those_of_the_command_and_of_the_framework() {
        let folder = tempfile::tempdir().unwrap();
        let words = "subprocess failed with code 1: `x`\nProcessing split: hdfs:///f:0+4\nTraceback\n  more";
        write(folder.path(), words).unwrap();
        assert_eq!(fs::read_to_string(folder.path().join("stderr")).unwrap(), "Traceback\n  more\n");
        let syslog = fs::read_to_string(folder.path().join("syslog")).unwrap();
        let lines: Vec<&str> = syslog.lines().collect();
        assert_eq!(lines.len(), 3, "{syslog}");
        assert!(lines[0].ends_with(" INFO mapred.MapTask: Processing split: hdfs:///f:0+4"), "{syslog}");
        assert!(lines[1].ends_with("RuntimeException: subprocess failed with code 1: `x`"), "{syslog}");
        assert!(lines[2].starts_with("\tat ") && lines[2].ends_with(".java:326)"), "{syslog}");
    }
}
