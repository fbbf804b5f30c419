//! That no claim of any page is without made-up results which refute it.

use super::judge::refuted::Rules;
use super::{asrpt, deadlines, overlap, pairs, real, stragglers};
use std::collections::BTreeMap;
use std::fs;
use std::path::Path;

fn all() -> Vec<Rules> {
    let papers = [
        asrpt::made_up::rules(),
        overlap::made_up::rules(),
        pairs::made_up::rules(),
        deadlines::made_up::rules(),
        stragglers::made_up::rules(),
        real::made_up::rules(),
    ];
    papers.into_iter().flatten().collect()
}

/// Places that show claims, by file.
fn shown(folder: &Path, below: &Path, found: &mut BTreeMap<String, usize>) {
    for entry in fs::read_dir(folder).unwrap() {
        let path = entry.unwrap().path();
        if path.is_dir() {
            shown(&path, below, found);
            continue;
        }
        let source = fs::read_to_string(&path).unwrap();
        let shows = |line: &&str| {
            line.contains("Block::Claims(") && !line.contains("let Block") && !line.contains("=>")
        };
        let name = path.strip_prefix(below).unwrap().to_str().unwrap().to_owned();
        let count = source.lines().filter(shows).count();
        if 0 < count && !name.ends_with("tests.rs") && !name.starts_with("judge/") {
            found.insert(name, count);
        }
    }
}

#[test]
fn every_place_that_shows_claims_lists_results_that_refute_them() {
    let folder = Path::new(env!("CARGO_MANIFEST_DIR")).join("src/paper");
    let mut found = BTreeMap::new();
    shown(&folder, &folder, &mut found);
    let mut listed: BTreeMap<String, usize> = BTreeMap::new();
    for rules in all() {
        *listed.entry(rules.file.to_owned()).or_default() += 1;
    }
    assert_eq!(listed, found);
}
