//! Directories and files that a claim refuses to replace.

use super::*;

/// Error of a claim of this directory with `overwrite`; `None` if the directory may be replaced. The directory is left
/// unchanged.
fn refusal(out: &Path) -> Option<OutputError> {
    match OutputDirectory::claim(out, true, false, "1") {
        Ok(claimed) => {
            claimed.abandon();
            None
        }
        Err(error) => Some(error),
    }
}

#[test]
fn claim_refuses_to_replace_what_no_job_has_put_there() {
    for other in [
        "part-two.md",
        "part-1",
        "part-00000.PARQUET",
        "part-00000.feather",
        "part-x-00000",
        "part-r-",
        "_data/f",
        "_config.yml",
        "_SUCCESS.bak",
        ".part-two.crc",
        ".thesis.crc",
        "part-00000/f",
        "_BAD_RECORDS/f",
        "named/part-00000",
        "_replaced-1",
        "_replaced-1/thesis",
    ] {
        let dir = tempfile::tempdir().unwrap();
        let out = dir.path().join("out");
        old_output(&out);
        fs::create_dir_all(out.join(other).parent().unwrap()).unwrap();
        fs::write(out.join(other), "mine").unwrap();
        let refused = refusal(&out);
        let first = Path::new(other).iter().next().unwrap();
        let is_named = matches!(&refused, Some(OutputError::NotAnOutput { name, .. }) if name == first);
        assert!(is_named, "{other}: {refused:?}");
        assert_eq!(fs::read_to_string(out.join(other)).unwrap(), "mine");
    }
}

#[test]
fn claim_refuses_to_replace_links_whatever_they_are_called() {
    for name in ["part-00000", "part-00000.gz", ".part-00009.crc", "_BAD_RECORDS", "errors", "_replaced-1"] {
        let dir = tempfile::tempdir().unwrap();
        let out = dir.path().join("out");
        let claimed = OutputDirectory::claim(&out, false, false, "1").unwrap();
        let (part, built, path) = built(&out, "it");
        fs::write(format!("{}.errors", path.display()), "this").unwrap();
        let parts =
            vec![Part { name: "part-00000".to_owned(), named: vec![named("errors", "this")], ..part }];
        drop(claimed.finish(&Success { parts, ..success() }, &[built], false).unwrap());
        assert!(refusal(&out).is_none());
        let _ = fs::rename(out.join(name), dir.path().join("elsewhere"));
        std::os::unix::fs::symlink(dir.path().join("elsewhere"), out.join(name)).unwrap();
        let refused = refusal(&out);
        assert!(matches!(refused, Some(OutputError::NotAnOutput { .. })), "{name}: {refused:?}");
        assert!(fs::symlink_metadata(out.join(name)).unwrap().is_symlink());
    }
}

#[test]
fn claim_refuses_to_replace_a_named_output_with_anything_else_in_it() {
    for (other, good) in
        [("part-00001", true), (".part-00000.crc", true), ("thesis", false), ("deep/f", false)]
    {
        let dir = tempfile::tempdir().unwrap();
        let out = dir.path().join("out");
        let claimed = OutputDirectory::claim(&out, false, false, "1").unwrap();
        let (part, built, path) = built(&out, "it");
        fs::write(format!("{}.errors", path.display()), "this").unwrap();
        let parts = vec![Part { named: vec![named("errors", "this")], ..part }];
        drop(claimed.finish(&Success { parts, ..success() }, &[built], false).unwrap());
        let other = out.join("errors").join(other);
        fs::create_dir_all(other.parent().unwrap()).unwrap();
        fs::write(&other, "mine").unwrap();
        assert_eq!(refusal(&out).is_none(), good, "{}", other.display());
        assert_eq!(fs::read_to_string(&other).unwrap(), "mine");
    }
}

#[test]
fn claim_refuses_to_replace_parts_without_success() {
    let dir = tempfile::tempdir().unwrap();
    let out = dir.path().join("out");
    old_output(&out);
    assert!(refusal(&out).is_none());
    fs::remove_file(out.join(SUCCESS)).unwrap();
    let refused = refusal(&out);
    assert!(matches!(refused, Some(OutputError::NoSuccess { .. })), "{refused:?}");
    fs::write(out.join(SUCCESS), "passed").unwrap();
    let refused = refusal(&out);
    assert!(matches!(refused, Some(OutputError::NotAnOutput { .. })), "none of ours: {refused:?}");
    assert_eq!(names(&out), [SUCCESS, "part-00009"]);
}

#[test]
fn claim_replaces_what_a_job_that_died_has_left_moved_aside() {
    let dir = tempfile::tempdir().unwrap();
    let out = dir.path().join("out");
    old_output(&out.join("_replaced-0"));
    assert!(refusal(&out).is_none());
}
