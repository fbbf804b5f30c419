//! The way of a path along links, as the system would go it: which links it crosses, and where it ends.
//!
//! For what decides before anything is opened or replaced. Not here: what is at the end, there or not.

use std::ffi::OsString;
use std::fs;
use std::path::{Component, Path, PathBuf};

/// Links that a path may lead along, as the system has it.
const LINKS_MAX: usize = 40;

/// Where a path leads.
pub(super) struct Way {
    /// The links on it, each by a name without links below where it began.
    pub links: Vec<PathBuf>,
    /// Where it ends, likewise; `None` if it leaves where it began, by `..` or a link to a whole path.
    pub end: Option<PathBuf>,
    /// Names that were looked at.
    pub steps: usize,
}

/// Follows a path from a folder on: `/` is the whole system, another folder has nothing above it. A way of more than
/// `steps_max` names ends where it is then, as does one of more links than the system follows.
pub(super) fn way(root: &Path, path: &Path, steps_max: usize) -> Way {
    let parts = |path: &Path| -> Vec<OsString> {
        path.components().rev().map(|part| part.as_os_str().to_owned()).collect()
    };
    let is_all = root == Path::new("/");
    // Where one is, and what is still to go, the next part last.
    let (mut within, mut ahead) = (PathBuf::new(), parts(path));
    let (mut links, mut steps) = (Vec::new(), 0);
    while let Some(part) = ahead.pop().filter(|_| steps < steps_max) {
        steps += 1;
        match Path::new(&part).components().next() {
            Some(Component::Normal(name)) => within.push(name),
            Some(Component::ParentDir) if within.pop() || is_all => continue,
            Some(Component::CurDir) | None => continue,
            Some(Component::RootDir) if is_all => {
                within.clear();
                continue;
            }
            Some(_) => return Way { links, end: None, steps },
        }
        if let Ok(target) = fs::read_link(root.join(&within)) {
            if links.len() == LINKS_MAX {
                // Nobody follows it further.
                break;
            }
            links.push(within.clone());
            within.pop();
            ahead.extend(parts(&target));
        }
    }
    Way { links, end: Some(within), steps }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::os::unix::fs::symlink;

    #[test]
    fn way_crosses_links_and_ends_where_the_system_would() {
        let folder = tempfile::tempdir().unwrap();
        let root = fs::canonicalize(folder.path()).unwrap();
        let link = |to: &str, name: &str| symlink(to, root.join(name)).unwrap();
        fs::create_dir_all(root.join("a/b")).unwrap();
        link("a/b", "l");
        link("../l/../x", "a/m");
        link(root.join("a").to_str().unwrap(), "whole");
        link("..", "out");
        link("loop", "loop");
        let of = |path: &str| {
            let Way { links, end, .. } = way(&root, Path::new(path), 1000);
            (links.iter().map(|link| link.to_str().unwrap().to_owned()).collect::<Vec<_>>(), end)
        };
        let end = |path: &str| Some(PathBuf::from(path));
        assert_eq!(of("./a/b/../n"), (vec![], end("a/n")));
        assert_eq!(of("l/n"), (vec!["l".to_owned()], end("a/b/n")));
        assert_eq!(of("a/m"), (vec!["a/m".to_owned(), "l".to_owned()], end("a/x")));
        for path in ["whole", "out", "..", "/a", "a/../../a"] {
            assert_eq!(of(path).1, None, "{path}");
        }
        assert_eq!(of("loop").0.len(), LINKS_MAX);
        // From the root of all there is no way out.
        let Way { links, end, .. } = way(Path::new("/"), &root.join("whole/m"), 1000);
        assert_eq!(links.len(), 3);
        assert_eq!(Path::new("/").join(end.unwrap()), root.join("a/x"));
        assert_eq!(way(&root, &Path::new("a/..").join("a/..").join("a"), 3).steps, 3);
    }
}
