//! The files of a crate import each other in one direction, and so do its top-level modules.

use super::circles::{Modules, circles, closing, members, paths};
use super::root;
use std::collections::{BTreeMap, BTreeSet};
use std::path::{Path, PathBuf};

/// Words before the name of an item that a file defines.
const ITEMS: [&str; 9] = ["fn", "struct", "enum", "trait", "type", "const", "static", "union", "mod"];

/// Names and paths of a file.
#[derive(Default)]
struct ModuleFile {
    defined: BTreeSet<String>,
    /// Imported names and the paths that they stand for.
    aliases: Vec<(String, Vec<String>)>,
    /// Paths in its code, except for re-exports; the first is the path of the file itself.
    used: Vec<Vec<String>>,
}

impl ModuleFile {
    fn new(module: &[String], words: &[String], modules: &BTreeSet<&[String]>) -> Self {
        let words: Vec<&str> = words.iter().map(String::as_str).collect();
        let mut file = Self { used: vec![module.to_vec()], ..Self::default() };
        let mut inline: Vec<(usize, &str)> = Vec::new();
        let mut calls = Vec::new();
        for at in 1..words.len() {
            inline.retain(|(end, _)| at < *end);
            let (word, before) = (words[at], words[at - 1]);
            if words.get(at + 1) == Some(&"{") && before == "mod" {
                inline.push((closing(&words, at + 1), word));
            } else if ITEMS.contains(&before) && inline.is_empty() && words.get(at + 1) != Some(&";") {
                file.defined.insert(word.to_owned());
            }
            let is_import = before == "use";
            // `in` belongs to a visibility.
            if words.get(at + 1) != Some(&"::") && !is_import || ["::", "in"].contains(&before) {
                continue;
            }
            let is_exported = is_import && at > 1 && ["pub", ")"].contains(&words[at - 2]);
            let here: Vec<&str> =
                module.iter().map(String::as_str).chain(inline.iter().map(|(_, name)| *name)).collect();
            for named in paths(&words[at..]) {
                let up = named.iter().take_while(|word| **word == "super").count();
                let mut full: Vec<String> = match named[0] {
                    "crate" => named[1..].iter().map(|word| (*word).to_owned()).collect(),
                    "super" => here[..here.len().saturating_sub(up)]
                        .iter()
                        .chain(&named[up..])
                        .map(|word| (*word).to_owned())
                        .collect(),
                    "self" => here.iter().chain(&named[1..]).map(|word| (*word).to_owned()).collect(),
                    _ => here.iter().chain(&named).map(|word| (*word).to_owned()).collect(),
                };
                let is_own =
                    ["crate", "super", "self"].contains(&named[0]) || modules.contains(&full[..=here.len()]);
                if !is_own {
                    calls.extend(
                        (!is_import).then(|| named.iter().map(|word| (*word).to_owned()).collect::<Vec<_>>()),
                    );
                    continue;
                }
                let mut alias = full.last().cloned().unwrap_or_default();
                full.truncate(full.iter().position(|word| word == "as").unwrap_or(full.len()));
                if full.last().is_some_and(|last| last == "self") {
                    full.pop();
                    alias = full.last().cloned().unwrap_or(alias);
                }
                if is_import {
                    file.aliases.push((alias, full.clone()));
                }
                if !is_exported {
                    file.used.push(full);
                }
            }
        }
        for call in calls {
            if let Some((_, target)) = file.aliases.iter().find(|(alias, _)| *alias == call[0]) {
                file.used.push([&target[..], &call[1..]].concat());
            }
        }
        file
    }
}

/// Returns the file that defines what a path names: re-exports are followed, and so are imported modules.
fn owner(files: &BTreeMap<&[String], ModuleFile>, path: &[String], steps_max: u32) -> Option<Vec<String>> {
    let length = (0..=path.len()).rev().find(|&length| files.contains_key(&path[..length]))?;
    let (module, rest) = path.split_at(length);
    let (Some(name), Some(file)) = (rest.first(), files.get(module)) else { return Some(module.to_vec()) };
    let target = file.aliases.iter().find(|(alias, _)| alias == name && !file.defined.contains(name));
    match target.filter(|_| 0 < steps_max) {
        Some((_, target)) => owner(files, &[&target[..], &rest[1..]].concat(), steps_max - 1),
        None => Some(module.to_vec()),
    }
}

/// Imports between the files of a crate, and the path of the first file.
///
/// A file imports the files that define what the paths in its code name, in `use` and elsewhere. Three things
/// are no import: a declaration (`mod child;`) or re-export (`pub use child::Name;`), the name of a module
/// alone, and what a file takes from one that it is below, because a `mod.rs` stands for its directory. So
/// files beside each other, and all below them, import one way, also where they name each other through the
/// re-exports of their `mod.rs`.
fn imports(modules: &Modules) -> BTreeMap<(String, String), PathBuf> {
    let names: BTreeSet<&[String]> = modules.files.iter().map(|(module, ..)| &module[..]).collect();
    let file =
        |(module, _, words): &'_ (Vec<String>, PathBuf, Vec<String>)| ModuleFile::new(module, words, &names);
    let files: BTreeMap<&[String], ModuleFile> =
        modules.files.iter().map(|it| (&it.0[..], file(it))).collect();
    let mut imports = BTreeMap::new();
    for (module, path, _) in &modules.files {
        for named in &files[&module[..]].used {
            let Some(seen) = owner(&files, named, 8).filter(|seen| seen != named) else { continue };
            if !module.starts_with(&seen) {
                imports.entry((module.join("::"), seen.join("::"))).or_insert_with(|| path.clone());
            }
        }
    }
    imports
}

/// Imports between top-level modules, of these between files.
fn of_modules(imports: &BTreeMap<(String, String), PathBuf>) -> BTreeMap<(String, String), PathBuf> {
    let top = |file: &str| file.split("::").next().unwrap_or_default().to_owned();
    let modules = imports.iter().map(|((one, other), path)| ((top(one), top(other)), path.clone()));
    modules.filter(|((one, other), _)| one != other && !one.is_empty() && !other.is_empty()).collect()
}

#[test]
fn files_and_modules_import_one_way() {
    let mut found = String::new();
    let mut count = 0;
    for directory in members() {
        for start in ["src/lib.rs", "src/main.rs"] {
            let text = |path: &Path| std::fs::read_to_string(path).ok();
            let imports = imports(&Modules::below(&root().join(&directory).join(start), &text));
            count += imports.len();
            for imports in [of_modules(&imports), imports] {
                for circle in circles(&imports) {
                    let inside = imports
                        .iter()
                        .filter(|((one, other), _)| circle.contains(one) && circle.contains(other));
                    let lines = inside.map(|((one, other), path)| {
                        format!("  {one} imports {other} in {}\n", path.display())
                    });
                    found.push_str(&format!("in {directory}:\n{}", lines.collect::<String>()));
                }
            }
        }
    }
    assert!(found.is_empty(), "files import each other in circles\n{found}");
    assert!(1000 < count, "only {count} imports were found");
}

/// Checks the circles of a crate of the files `a/mod.rs`, `a/b.rs` and `a/c.rs` with these texts.
fn check(texts: [&str; 3], expected: &[&[&str]]) {
    let names = ["lib.rs", "a/mod.rs", "a/b.rs", "a/c.rs"];
    let texts: BTreeMap<&str, &str> = names.into_iter().zip(["mod a;"].into_iter().chain(texts)).collect();
    let text = |path: &Path| path.to_str().and_then(|path| texts.get(path)).map(|text| (*text).to_owned());
    let imports = imports(&Modules::below(Path::new("lib.rs"), &text));
    assert_eq!(circles(&imports), expected, "{texts:?}: {imports:?}");
}

#[test]
fn circle_of_files_is_found_by_every_way_of_naming_what_they_define() {
    let root = "mod b;\nmod c;\npub use b::B;\npub(crate) use self::c::{C, f};";
    let c = "use super::b::B;\npub struct C;\npub fn f() {}";
    for b in [
        "use super::c::C; pub struct B;",
        "use super::C; pub struct B;",
        "use crate::a::{C as Other}; pub struct B;",
        "pub struct B; fn g() { super::c::f() }",
        "pub struct B; fn g() { crate::a::f() }",
        "use super::c; pub struct B; fn g() { c::f() }",
    ] {
        check([root, b, c], &[&["a::b", "a::c"]]);
    }
    for b in [
        "const QUOTE: char = '\"'; use super::c::C; pub struct B; // '\"'",
        "fn g<'a>(x: &'a str) { \"\\\"\"; super::c::f::<'a>() } pub struct B;",
        "mod own { use super::super::c::C; } pub struct B;",
        "#[cfg(not(test))] use super::c::C; pub struct B;",
    ] {
        check([root, b, c], &[&["a::b", "a::c"]]);
    }
    // Into a directory and out of it again.
    check(["mod b;\nmod c;\nuse b::B; pub struct A;", "pub struct B;", "use super::A;"], &[]);
}

#[test]
fn declarations_re_exports_and_what_a_directory_defines_for_its_files_are_no_circle() {
    let root = "mod b;\nmod c;\npub use b::B;\nuse c::C;\nstruct A(C);\nfn f() -> B { c::g() }";
    check(
        [root, "use super::A; pub struct B;", "use super::{A, b::B}; pub struct C; pub fn g() -> B {}"],
        &[],
    );
    check([root, "#[cfg(test)] mod tests { use super::super::c::C; } pub struct B;", "use super::B;"], &[]);
    for b in [
        "//! See `super::c::C`.\n/* super::c::C /* nested */ super::c::C */ pub struct B;",
        "const TEXT: &str = \"super::c::C\"; const RAW: &str = r#\"\" super::c::C\"#; pub struct B;",
        "#[cfg(all(test, unix))]\n#[rustfmt::skip]\nuse super::c::C;\npub struct B;",
    ] {
        check([root, b, "use super::B; pub struct C;"], &[]);
    }
    check([root, "use super::c; pub struct B;", "use super::B; pub(in super::b) struct C;"], &[]);
}

#[test]
fn circle_of_modules_without_one_of_files_is_found() {
    let edge = |one: &str, other: &str| ((one.to_owned(), other.to_owned()), PathBuf::new());
    let files =
        BTreeMap::from([edge("a::x", "b::y"), edge("b::z", "a::w"), edge("b::z", "b::y"), edge("c", "")]);
    assert!(circles(&files).is_empty());
    assert_eq!(circles(&of_modules(&files)), [["a", "b"]]);
}
