//! Memory control groups of this process: their files, and the memory they allow.
//!
//! `out_of_memory` in `gristmill-runtime` interprets the kernel's count of killed processes.

use std::fs;
use std::path::{Path, PathBuf};

/// Mount point of control groups on nearly every system.
const GROUPS: &str = "/sys/fs/cgroup";

/// Memory control group.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct MemoryGroup {
    /// Directory of the group, which need not be visible from here.
    pub directory: PathBuf,
    /// True if it is of the unified hierarchy, version 2.
    pub unified: bool,
}

/// Returns the groups of this process by `/proc/self/cgroup`: its own before its parents, up to the root, which is the
/// first one that is visible inside a container.
#[must_use]
pub fn memory_groups() -> Vec<MemoryGroup> {
    groups_in(&fs::read_to_string("/proc/self/cgroup").unwrap_or_default())
}

fn groups_in(text: &str) -> Vec<MemoryGroup> {
    let mut found = Vec::new();
    for line in text.lines() {
        let mut fields = line.splitn(3, ':').skip(1);
        let (Some(controllers), Some(path)) = (fields.next(), fields.next()) else { continue };
        let (root, unified) = match controllers {
            "" => (PathBuf::from(GROUPS), true),
            names if names.split(',').any(|name| name == "memory") => {
                (Path::new(GROUPS).join("memory"), false)
            }
            _ => continue,
        };
        let own = Path::new(path.trim_start_matches('/'));
        found.extend(own.ancestors().map(|path| MemoryGroup { directory: root.join(path), unified }));
    }
    found
}

/// Returns the smallest limit of these groups, bytes; `None` without any limit. A group without a limit has `max`, or a
/// number that exceeds the memory of any machine.
pub(crate) fn memory_limit(groups: &[MemoryGroup]) -> Option<u64> {
    let limit = |group: &MemoryGroup| -> Option<u64> {
        let file = if group.unified { "memory.max" } else { "memory.limit_in_bytes" };
        fs::read_to_string(group.directory.join(file)).ok()?.trim().parse().ok()
    };
    groups.iter().filter_map(limit).filter(|bytes| 0 < *bytes).min()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn groups_of_both_kinds_are_found_with_those_around_them() {
        let found = groups_in("4:cpu,memory:/a/b\n1:cpu:/c\n0::/d/e\n");
        let directories: Vec<&str> = found.iter().map(|group| group.directory.to_str().unwrap()).collect();
        assert_eq!(
            directories.iter().map(|directory| directory.trim_end_matches('/')).collect::<Vec<_>>(),
            [
                "/sys/fs/cgroup/memory/a/b",
                "/sys/fs/cgroup/memory/a",
                "/sys/fs/cgroup/memory",
                "/sys/fs/cgroup/d/e",
                "/sys/fs/cgroup/d",
                "/sys/fs/cgroup",
            ]
        );
        assert_eq!(found.iter().filter(|group| group.unified).count(), 3);
    }

    #[test]
    fn limit_is_the_least_of_a_group_and_those_around_it() {
        let place = tempfile::tempdir().unwrap();
        let group = |name: &str, file: &str, text: &str| {
            let directory = place.path().join(name);
            fs::create_dir_all(&directory).unwrap();
            fs::write(directory.join(file), text).unwrap();
            MemoryGroup { directory, unified: file == "memory.max" }
        };
        let none = group("own", "memory.max", "max\n");
        let around = group("around", "memory.max", "1073741824\n");
        let old = group("old", "memory.limit_in_bytes", "536870912\n");
        let unseen = MemoryGroup { directory: place.path().join("unseen"), unified: true };
        assert_eq!(memory_limit(&[none.clone(), unseen.clone()]), None);
        assert_eq!(memory_limit(&[none.clone(), around.clone(), unseen]), Some(1 << 30));
        assert_eq!(memory_limit(&[none, around, old]), Some(512 << 20));
    }
}
