//! The program's own log on stderr: its level and form for masters, workers and clients.

use std::io::IsTerminal;
use std::os::fd::OwnedFd;
use std::{fs, io};

/// Logs warnings of a client to stderr, such as files that could not be removed.
pub fn log_of_client() {
    log_to(None, "warn");
}

/// True if the log is read by a program.
fn log_is_json() -> bool {
    std::env::var_os("GRISTMILL_LOG_FORMAT").is_some_and(|format| format == "json")
}

/// Prints a message on stderr, between the lines of the log; as an event of a log of JSON.
pub(super) fn print_message(words: &str) {
    match log_is_json() {
        true => tracing::info!("{words}"),
        false => crate::terminal::stderr_line(words),
    }
}

/// Sends the program's own log to stderr, or to the former stderr where user output took its place: as text, or as a
/// line of JSON for each event.
pub(super) fn log_to(stderr: Option<OwnedFd>, default: &str) {
    use tracing_subscriber::EnvFilter;
    use tracing_subscriber::fmt::writer::BoxMakeWriter;
    let filter = EnvFilter::try_from_env("GRISTMILL_LOG").unwrap_or_else(|_| EnvFilter::new(default));
    let has_colours = stderr.is_none() && io::stderr().is_terminal();
    let writer = match stderr {
        Some(fd) => BoxMakeWriter::new(std::sync::Mutex::new(fs::File::from(fd))),
        None => BoxMakeWriter::new(io::stderr),
    };
    let builder = tracing_subscriber::fmt().with_env_filter(filter).with_target(false).with_writer(writer);
    // A second subscriber in one process is refused; then the first one stays.
    let _ = match log_is_json() {
        true => builder.json().flatten_event(true).try_init(),
        false => builder.with_ansi(has_colours).try_init(),
    };
}
