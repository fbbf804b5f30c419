//! `hadoop fs -cat`, `-text`, `-tail` and `-head`: files as they are, on stdout.

use super::copying::is_same;
use super::{FileOutcome, Refused, io_refused};
use crate::terminal::written;
use gristmill_worker::output::open_part;
use std::fs::{self, File};
use std::io::{self, Read, Seek, SeekFrom, Write as _};
use std::os::fd::AsFd as _;
use std::path::Path;

/// Bytes that `-tail` and `-head` show.
const END_BYTES: u64 = 1024;
/// Bytes that are shown at once.
const SHOWN_BYTES: usize = 64 << 10;

pub(super) fn print_file(path: &Path, name: &str, unpack: bool) -> FileOutcome {
    if path.is_dir() {
        return Ok(Err(Refused(format!("`{name}': Is a directory"))));
    }
    if is_own_output(path) {
        // It would grow for ever.
        return Ok(Err(Refused(format!("`{name}': is the file that standard output goes to"))));
    }
    let opened: io::Result<Box<dyn Read>> = match unpack {
        // By its name, as all of this program reads packed files.
        true => open_part(path).map(|file| -> Box<dyn Read> { file }),
        false => File::open(path).map(|file| -> Box<dyn Read> { Box::new(file) }),
    };
    let mut source = match opened {
        Ok(source) => source,
        Err(error) => return Ok(io_refused(name, Err(error))),
    };
    show(name, &mut source)
}

/// Whether standard output goes to this file.
fn is_own_output(path: &Path) -> bool {
    let out = io::stdout().as_fd().try_clone_to_owned().and_then(|out| File::from(out).metadata());
    let found = fs::metadata(path);
    matches!((out, found), (Ok(out), Ok(found)) if out.is_file() && is_same(&out, &found))
}

/// Writes all of a file to stdout. Which of both fails is told apart.
fn show(name: &str, source: &mut impl Read) -> FileOutcome {
    let mut out = io::stdout().lock();
    let mut buffer = vec![0; SHOWN_BYTES];
    loop {
        match source.read(&mut buffer) {
            Ok(0) => break,
            Ok(count) => written(out.write_all(&buffer[..count]))?,
            Err(error) if error.kind() == io::ErrorKind::Interrupted => {}
            Err(error) => return Ok(io_refused(name, Err(error))),
        }
    }
    written(out.flush())?;
    Ok(Ok(()))
}

pub(super) fn print_end(path: &Path, name: &str, front: bool) -> FileOutcome {
    if path.is_dir() {
        return Ok(Err(Refused(format!("`{name}': Is a directory"))));
    }
    let opened = File::open(path).and_then(|mut file| {
        let length = file.metadata()?.len();
        file.seek(SeekFrom::Start(if front { 0 } else { length.saturating_sub(END_BYTES) }))?;
        Ok(file.take(END_BYTES))
    });
    match opened {
        Ok(mut file) => show(name, &mut file),
        Err(error) => Ok(io_refused(name, Err(error))),
    }
}
