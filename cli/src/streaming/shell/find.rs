//! `hadoop fs -find PATH… [-name PATTERN]… [-print]`.

use super::trees::entries;
use super::{FileCall, Refused, io_refused};
use crate::streaming::lists::expand_braces;
use crate::terminal::{stdout_line, stdout_raw};
use gristmill_worker::input::wildcards::fits;
use std::fs::Metadata;
use std::io;
use std::os::unix::ffi::OsStrExt;
use std::path::Path;

/// What is looked for.
#[derive(Default)]
struct Wanted {
    /// All of which the name fits.
    names: Vec<WantedName>,
    /// Whether what is found ends with a zero byte, not with a line.
    ends_with_zero: bool,
}

/// What a name is to be.
struct WantedName {
    /// Patterns of which it fits one.
    patterns: Vec<String>,
    /// Whether capitals are as small letters.
    any_case: bool,
}

impl FileCall<'_> {
    pub(super) fn find_files(&self) -> anyhow::Result<u8> {
        let mut wanted = Wanted::default();
        let mut names = Vec::new();
        let mut words = self.paths.iter();
        while let Some(word) = words.next() {
            match *word {
                "-name" | "-iname" => {
                    let any_case = *word == "-iname";
                    let Some(pattern) = words.next() else {
                        self.refuse(&Refused(format!("{word} needs a pattern behind it")));
                        return Ok(u8::MAX);
                    };
                    match expand_braces(pattern) {
                        Ok(patterns) => wanted.names.push(WantedName { patterns, any_case }),
                        Err(error) => {
                            self.refuse(&Refused(error.to_string()));
                            return Ok(u8::MAX);
                        }
                    }
                }
                "-print0" => wanted.ends_with_zero = true,
                "-print" | "-a" | "-and" => {}
                word if word.starts_with('-') => {
                    self.refuse(&Refused(format!("Unexpected argument: {word}")));
                    return Ok(u8::MAX);
                }
                word => names.push(word),
            }
        }
        if names.is_empty() {
            names.push("");
        }
        for name in &names {
            match self.found(name) {
                Ok(found) => {
                    found.iter().try_for_each(|path| {
                        self.find_below(path, self.look_behind(&names, path), &wanted)
                    })?;
                }
                Err(refused) => self.refuse(&refused),
            }
        }
        Ok(self.code())
    }

    /// Links are followed where they are named themselves.
    fn find_below(&self, path: &Path, found: io::Result<Metadata>, wanted: &Wanted) -> anyhow::Result<()> {
        if wanted.takes(path) {
            match wanted.ends_with_zero {
                true => stdout_raw(&format!("{}\0", self.uri(path)))?,
                false => stdout_line(&self.uri(path))?,
            }
        }
        let below = found.and_then(|found| if found.is_dir() { entries(path) } else { Ok(Vec::new()) });
        match io_refused(&self.uri(path), below) {
            Ok(below) => {
                below.iter().try_for_each(|path| self.find_below(path, path.symlink_metadata(), wanted))
            }
            Err(refused) => {
                self.refuse(&refused);
                Ok(())
            }
        }
    }
}

impl Wanted {
    fn takes(&self, path: &Path) -> bool {
        let name = path.file_name().unwrap_or_default();
        self.names.iter().all(|wanted| {
            wanted.patterns.iter().any(|pattern| match wanted.any_case {
                true => {
                    fits(pattern.to_lowercase().as_bytes(), name.to_string_lossy().to_lowercase().as_bytes())
                }
                false => fits(pattern.as_bytes(), name.as_bytes()),
            })
        })
    }
}
