//! `hadoop fs -find PATH… [-name PATTERN] [-print]`.

use super::trees::{DEPTH_MAX, entries};
use super::wildcards::fits;
use super::{FileCall, Refused};
use crate::terminal::{stdout_line, stdout_raw};
use gristmill_runtime::exit;
use std::path::Path;

/// What is looked for.
#[derive(Default)]
struct Wanted<'a> {
    name: Option<&'a str>,
    /// Whether capitals are as small letters.
    any_case: bool,
    /// Whether what is found ends with a zero byte, not with a line.
    ends_with_zero: bool,
}

impl FileCall<'_> {
    pub(super) fn find_files(&self) -> anyhow::Result<u8> {
        let mut wanted = Wanted::default();
        let mut names = Vec::new();
        let mut words = self.paths.iter();
        while let Some(word) = words.next() {
            match *word {
                "-name" | "-iname" => {
                    wanted.any_case = *word == "-iname";
                    wanted.name = words.next().copied();
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
        let mut code = exit::OK;
        for name in names {
            match self.found(name) {
                Ok(found) => found.iter().try_for_each(|path| self.find_below(path, &wanted, 0))?,
                Err(refused) => {
                    self.refuse(&refused);
                    code = exit::FAILED;
                }
            }
        }
        Ok(code)
    }

    fn find_below(&self, path: &Path, wanted: &Wanted<'_>, depth: usize) -> anyhow::Result<()> {
        if wanted.takes(path) {
            match wanted.ends_with_zero {
                true => stdout_raw(&format!("{}\0", self.uri(path)))?,
                false => stdout_line(&self.uri(path))?,
            }
        }
        let is_folder = path.symlink_metadata().is_ok_and(|found| found.is_dir());
        if is_folder && depth < DEPTH_MAX {
            for path in entries(path).unwrap_or_default() {
                self.find_below(&path, wanted, depth + 1)?;
            }
        }
        Ok(())
    }
}

impl Wanted<'_> {
    fn takes(&self, path: &Path) -> bool {
        let Some(pattern) = self.name else { return true };
        let name = path.file_name().unwrap_or_default().to_string_lossy();
        match self.any_case {
            true => fits(pattern.to_lowercase().as_bytes(), name.to_lowercase().as_bytes()),
            false => fits(pattern.as_bytes(), name.as_bytes()),
        }
    }
}
