//! `hadoop fs -rm` and `-rmdir`, and what no command removes or moves, under whatever name: the roots, and what holds
//! where somebody is.

use super::{FileCall, FileOutcome, NOT_FOUND, Refused, io_refused};
use crate::streaming::lists::expand_braces;
use crate::terminal::stdout_line;
use gristmill_runtime::output_dir;
use std::fs;
use std::io;
use std::path::Path;

impl FileCall<'_> {
    /// `-rm [-f] [-r] PATH…`.
    pub(super) fn remove(&self, recursive: bool) -> anyhow::Result<u8> {
        if self.paths.is_empty() {
            return Ok(self.too_few(1));
        }
        // Judged before anything goes: what is kept may be told by what is removed.
        let mut judged = Vec::new();
        for name in &self.paths {
            match self.refuse_dots(name).and_then(|()| self.named(name)) {
                Ok(found) if found.is_empty() && !self.has(&["f"]) => {
                    self.refuse(&Refused(format!("`{name}': {NOT_FOUND}")));
                }
                Ok(found) => judged.extend(found.into_iter().map(|path| {
                    let judged = self.refuse_kept(name, &path);
                    (name, path, judged)
                })),
                Err(refused) => self.refuse(&refused),
            }
        }
        for (name, path, judged) in judged {
            let removed = match judged {
                Ok(()) => self.remove_one(name, &path, recursive)?,
                refused => refused,
            };
            if let Err(refused) = removed {
                self.refuse(&refused);
            }
        }
        Ok(self.code())
    }

    /// `-rmdir [--ignore-fail-on-non-empty] PATH…`.
    pub(super) fn remove_empty(&self) -> anyhow::Result<u8> {
        if let Some(Err(refused)) = self.paths.iter().map(|name| self.refuse_dots(name)).find(Result::is_err)
        {
            self.refuse(&refused);
            return Ok(self.code());
        }
        self.each_path(|path| {
            let name = self.uri(path);
            let may_be_full = self.has(&["-ignore-fail-on-non-empty"]);
            Ok(self.refuse_kept(&name, path).and_then(|()| match fs::remove_dir(path) {
                Err(error) if may_be_full && error.kind() == io::ErrorKind::DirectoryNotEmpty => Ok(()),
                removed => io_refused(&name, removed),
            }))
        })
    }

    fn remove_one(&self, name: &str, path: &Path, recursive: bool) -> FileOutcome {
        let is_folder = fs::symlink_metadata(path).is_ok_and(|metadata| metadata.is_dir());
        let removed = match (is_folder, recursive) {
            (true, false) => return Ok(Err(Refused(format!("`{name}': Is a directory")))),
            (true, true) => fs::remove_dir_all(path),
            (false, _) => fs::remove_file(path),
        };
        // Gone already, perhaps with a folder that was named before it.
        if let Err(error) = &removed
            && error.kind() == io::ErrorKind::NotFound
            && self.has(&["f"])
        {
            return Ok(Ok(()));
        }
        if removed.is_ok() {
            stdout_line(&format!("Deleted {}", self.uri(path)))?;
        }
        Ok(io_refused(name, removed))
    }

    /// Refuses a name that ends in `.` or `..`, as it was typed or as it is meant: what it means depends on where one is.
    pub(super) fn refuse_dots(&self, name: &str) -> Result<(), Refused> {
        let names = expand_braces(name).map_err(|error| Refused(error.to_string()))?;
        let ends_so = |name: &str| matches!(name.rsplit('/').find(|part| !part.is_empty()), Some("." | ".."));
        if ends_so(name) || names.iter().any(|name| ends_so(name)) {
            Err(kept(name, "it ends in . or .. and"))
        } else {
            Ok(())
        }
    }

    /// Refuses a place that is to stay. A link there is itself, not what it leads to.
    pub(super) fn refuse_kept(&self, name: &str, path: &Path) -> Result<(), Refused> {
        match why_kept(path, self.places.root()) {
            Some(what) => Err(kept(name, what)),
            None => Ok(()),
        }
    }
}

fn kept(name: &str, what: &str) -> Refused {
    Refused(format!("`{name}': {what} is not removed or moved; name what is in it"))
}

/// What is at this path, or within, that makes it stay.
fn why_kept(path: &Path, root: &Path) -> Option<&'static str> {
    let (Some(folder), Some(name)) = (path.parent(), path.file_name()) else {
        return Some("the root of this machine, or what ends in ..,");
    };
    let is_root = |whole: &Path| {
        root.starts_with(whole) || fs::canonicalize(root).is_ok_and(|root| root.starts_with(whole))
    };
    if is_root(path) {
        return Some("the root of hdfs:");
    }
    // What cannot be found is not removed either.
    let whole = fs::canonicalize(folder).ok()?.join(name);
    if is_root(&whole) {
        return Some("the root of hdfs:");
    }
    output_dir::why_kept(&whole)
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::os::unix::fs::symlink;
    use std::path::PathBuf;

    #[test]
    fn roots_homes_and_what_holds_them_are_kept_under_all_their_names() {
        let sandbox = tempfile::tempdir().unwrap();
        let at = |name: &str| sandbox.path().join(name);
        fs::create_dir_all(at("data/hdfs/below")).unwrap();
        symlink("data", at("linked")).unwrap();
        symlink("/", at("to-root")).unwrap();
        let here = std::env::current_dir().unwrap();
        let kept = [
            PathBuf::from("/"),
            PathBuf::from("/.."),
            PathBuf::from("/usr/.."),
            PathBuf::from("/root"),
            PathBuf::from("/root/../root"),
            here.parent().unwrap().to_owned(),
            here,
            std::env::temp_dir(),
            at("data"),
            at("data/hdfs"),
            at("linked/hdfs"),
            at("data/../data/hdfs"),
            at("to-root/root"),
        ];
        for path in &kept {
            assert!(why_kept(path, &at("data/hdfs")).is_some(), "{}", path.display());
        }
        for path in [at("data/hdfs/below"), at("linked"), at("to-root"), at("none")] {
            assert_eq!(why_kept(&path, &at("data/hdfs")), None, "{}", path.display());
        }
    }
}
