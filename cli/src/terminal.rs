//! Output of the program: sanitized lines on stdout and stderr. A closed stdout ends the program without an error.

use gristmill_runtime::exit;
use gristmill_worker::directory::id_of;
use gristmill_worker::sanitize;
use gristmill_worker::streams::stdout_is_closed;
use std::fmt;
use std::fs::File;
use std::io::{BufRead, BufReader, ErrorKind, IsTerminal, Read, Write};
use std::os::fd::AsFd;
use std::path::Path;

/// The reader of stdout has closed it, which is not an error. Only writing to stdout makes it, not a broken pipe to a
/// child.
#[derive(Debug)]
pub(crate) struct StdoutClosed;

impl fmt::Display for StdoutClosed {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("stdout was closed")
    }
}

impl std::error::Error for StdoutClosed {}

/// Converts the result of a write to stdout.
pub(crate) fn written<T>(result: std::io::Result<T>) -> anyhow::Result<T> {
    result.map_err(|error| match error.kind() {
        ErrorKind::BrokenPipe => StdoutClosed.into(),
        ErrorKind::StorageFull if stdout_is_closed() => {
            std::io::Error::new(error.kind(), "could not write to standard output: it is closed").into()
        }
        _ => anyhow::Error::new(error).context("could not write to standard output"),
    })
}

/// Returns this process's own standard output or standard error, if a path of any name leads there. It
/// continues after what others have written, also in a file.
///
/// # Errors
/// A process that has no free file descriptor.
pub(crate) fn own_stream(target: &Path) -> std::io::Result<Option<File>> {
    let Ok(there) = std::fs::metadata(target) else { return Ok(None) };
    let streams =
        [std::io::stdout().as_fd().try_clone_to_owned(), std::io::stderr().as_fd().try_clone_to_owned()];
    for stream in streams {
        let stream = File::from(stream?);
        let is_it = stream.metadata().is_ok_and(|found| id_of(&found) == id_of(&there));
        if is_it {
            return Ok(Some(stream));
        }
    }
    Ok(None)
}

/// Returns the printable part of a text: lines without control sequences.
pub(crate) fn shown(text: &dyn fmt::Display) -> String {
    sanitize::lines(&text.to_string()).into_owned()
}

/// Returns the number of columns of the terminal that stdout is; `None` for a pipe or a file.
pub(crate) fn stdout_columns() -> Option<usize> {
    let stdout = std::io::stdout();
    let size = rustix::termios::tcgetwinsize(stdout.as_fd()).ok()?;
    // A terminal that knows no width says 0.
    (0 < size.ws_col).then_some(size.ws_col.into())
}

/// Prints a value as JSON on several lines.
pub(crate) fn stdout_json<T: serde::Serialize + ?Sized>(value: &T) -> anyhow::Result<()> {
    stdout_line(&serde_json::to_string_pretty(value)?)
}

/// Prints a result as JSON or as text, and returns the exit code of success.
pub(crate) fn stdout_result<T: serde::Serialize>(
    as_json: bool,
    json: impl FnOnce() -> T,
    text: impl FnOnce() -> String,
) -> anyhow::Result<u8> {
    match as_json {
        true => stdout_json(&json())?,
        false => stdout_text(&text())?,
    }
    Ok(exit::OK)
}

/// Writes a line to stdout, cleaned: names in it are those that others gave. Unlike with `println!`, a closed pipe is an
/// error and not a panic.
pub(crate) fn stdout_line(text: &dyn fmt::Display) -> anyhow::Result<()> {
    written(writeln!(std::io::stdout(), "{}", shown(text)))
}

/// Bytes of a record that are sanitized at once.
const SHOWN_AT_ONCE: u64 = 64 << 10;

/// Copies records to stdout: sanitized on a terminal, unchanged into a pipe or a file.
pub(crate) fn stdout_records(records: impl Read) -> anyhow::Result<()> {
    let mut out = std::io::stdout().lock();
    let mut records = BufReader::new(records);
    if !out.is_terminal() {
        return written(std::io::copy(&mut records, &mut out).map(drop));
    }
    let mut line = Vec::new();
    loop {
        line.clear();
        if records.by_ref().take(SHOWN_AT_ONCE).read_until(b'\n', &mut line)? == 0 {
            return Ok(());
        }
        written(out.write_all(sanitize::lines(&String::from_utf8_lossy(&line)).as_bytes()))?;
    }
}

/// Writes a text to stdout unchanged, on the user's explicit request.
pub(crate) fn stdout_raw(text: &str) -> anyhow::Result<()> {
    written(std::io::stdout().write_all(text.as_bytes()))
}

/// Writes a sanitized text to stdout.
pub(crate) fn stdout_text(text: &dyn fmt::Display) -> anyhow::Result<()> {
    written(write!(std::io::stdout(), "{}", shown(text)))
}

/// Writes a sanitized line to stderr. An error is ignored: it could only be printed there.
pub(crate) fn stderr_line(text: &str) {
    let _ = writeln!(std::io::stderr(), "{}", sanitize::lines(text));
}

/// Writes a sanitized text to stderr.
pub(crate) fn stderr_text(text: &str) {
    let _ = write!(std::io::stderr(), "{}", sanitize::lines(text));
}

/// Prints an error or a warning on stderr: its kind in colour, then the message. Further lines are indented.
pub(crate) fn complain(kind: &str, words: &str) {
    // Errors of clap start with the kind.
    let words = words.strip_prefix("error: ").unwrap_or(words).trim_end().replace('\n', "\n  ");
    let _ = writeln!(std::io::stderr(), "{}{kind}:{} {words}", style("1;31"), style("0"));
}

/// Returns a terminal's colour code, or nothing if stderr is not a terminal.
pub(crate) fn style(code: &str) -> String {
    let colour = std::io::stderr().is_terminal() && std::env::var_os("NO_COLOR").is_none();
    if colour { format!("\x1b[{code}m") } else { String::new() }
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::json;

    #[test]
    fn what_is_printed_drives_no_terminal_and_json_stays_json() {
        let name = "\u{1b}]0;x\u{7}\u{9b}2J\u{202e}";
        let shown = shown(&format!("JOB NAME\njob-1 {name}"));
        assert_eq!(shown, "JOB NAME\njob-1 \\u001b]0;x\\u0007\\u009b2J\\u202e");
        let json = super::shown(&json!([{"name": name}]));
        assert!(!json.chars().any(char::is_control), "{json:?}");
        assert_eq!(serde_json::from_str::<serde_json::Value>(&json).unwrap(), json!([{"name": name}]));
    }
}
