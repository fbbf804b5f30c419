//! What no command of `hadoop fs` removes or moves, under whatever name: the roots, and what holds where somebody is.

use super::{FileCall, Refused};
use gristmill_runtime::output_dir;
use std::fs;
use std::path::Path;

impl FileCall<'_> {
    /// Refuses a name that ends in `.` or `..`: what it means depends on where one is.
    pub(super) fn refuse_dots(&self, name: &str) -> Result<(), Refused> {
        match name.rsplit('/').find(|part| !part.is_empty()) {
            Some("." | "..") => Err(kept(name, "it ends in . or .. and")),
            _ => Ok(()),
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
