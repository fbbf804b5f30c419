//! Import rules between directories and between modules, and the correctness of the names in ARCHITECTURE.md.

mod circles;
mod english;
mod files;
mod hints;
mod metrics;

use crate::support::sandbox::PROGRAM;
use std::fs;
use std::path::{Path, PathBuf};

fn root() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("..")
}

fn read(path: &Path) -> String {
    fs::read_to_string(path).unwrap_or_else(|error| panic!("{}: {error}", path.display()))
}

/// All Rust files below a directory of the repository.
fn sources(top: &str) -> Vec<PathBuf> {
    let mut found = Vec::new();
    let mut open = vec![root().join(top)];
    while let Some(directory) = open.pop() {
        for entry in fs::read_dir(&directory).unwrap() {
            let path = entry.unwrap().path();
            if path.is_dir() {
                open.push(path);
            } else if path.extension().is_some_and(|extension| extension == "rs") {
                found.push(path);
            }
        }
    }
    assert!(!found.is_empty(), "no sources below {top}");
    found
}

/// Names of workspace packages among the dependencies of a directory's manifest.
fn own_packages(directory: &str) -> Vec<String> {
    let manifest = read(&root().join(directory).join("Cargo.toml"));
    let (_, dependencies) = manifest.split_once("[dependencies]").expect("a manifest lists dependencies");
    let dependencies = dependencies.split("\n[").next().unwrap_or_default();
    let names = dependencies.lines().filter_map(|line| line.split(['.', ' ', '=']).next());
    names.filter(|name| name.starts_with("gristmill")).map(str::to_owned).collect()
}

#[test]
fn imports_go_one_way() {
    assert_eq!(own_packages("scheduler"), [""; 0]);
    assert_eq!(own_packages("worker"), ["gristmill-scheduler"]);
    assert_eq!(own_packages("runtime/jobs"), ["gristmill-worker"]);
    assert_eq!(own_packages("runtime"), ["gristmill-scheduler", "gristmill-worker", "gristmill-jobs"]);
    assert_eq!(
        own_packages("runtime/streaming"),
        ["gristmill-scheduler", "gristmill-worker", "gristmill-runtime"]
    );
    assert_eq!(own_packages("lab"), ["gristmill-scheduler", "gristmill-worker", "gristmill-runtime"]);
    let all = ["gristmill-scheduler", "gristmill-worker", "gristmill-runtime", "gristmill-lab"];
    let extensions = ["gristmill-papers", "gristmill-formats", "gristmill-stores"];
    assert_eq!(own_packages("worker/formats"), ["gristmill-worker"]);
    assert_eq!(own_packages("worker/stores"), ["gristmill-worker"]);
    assert_eq!(own_packages("lab/papers"), all);
    assert_eq!(own_packages("runtime/programs"), ["gristmill-scheduler"]);
    assert_eq!(own_packages("playground"), ["gristmill-scheduler"]);
    let beside = ["gristmill-programs", "gristmill-streaming"];
    assert_eq!(own_packages("cli"), [&all[..3], &beside, &all[3..], &extensions].concat());
    assert_eq!(own_packages("examples"), ["gristmill"]);
}

#[test]
fn the_scheduler_depends_on_pure_computation_alone() {
    let manifest = read(&root().join("scheduler/Cargo.toml"));
    let (_, dependencies) = manifest.split_once("[dependencies]").expect("a manifest lists dependencies");
    let lines = dependencies.split("\n[").next().unwrap_or_default().lines();
    let mut names: Vec<&str> = lines.filter_map(|line| line.split(['.', ' ', '=']).next()).collect();
    names.retain(|name| !name.is_empty() && !name.starts_with('#'));
    // Formats from text that the caller has read, errors, and randomness from seeds that are arguments.
    let pure =
        ["serde", "serde_json", "csv", "toml", "strsim", "thiserror", "rand", "rand_chacha", "rand_distr"];
    assert_eq!(names, pure);
    // Without its default features `rand` has neither a thread's generator nor the system's.
    let workspace = read(&root().join("Cargo.toml"));
    assert!(
        workspace
            .lines()
            .any(|line| line.starts_with("rand = ") && line.contains("default-features = false"))
    );
}

#[test]
fn worker_sees_only_ids_units_and_facts_of_events_of_the_scheduler() {
    for path in sources("worker/src") {
        for rest in read(&path).split("gristmill_scheduler::").skip(1) {
            let facts = ["Fingerprint", "FetchRate", "Slots", "{FetchRate, Slots}"];
            let is_fact = |name: &str| facts.iter().any(|fact| name.starts_with(fact));
            let allowed = rest.starts_with("ids")
                || rest.starts_with("units")
                || rest.strip_prefix("event::").is_some_and(is_fact);
            assert!(allowed, "{} imports {}", path.display(), rest.lines().next().unwrap_or_default());
        }
    }
}

#[test]
fn bincode_is_named_in_one_file_and_pinned() {
    let all =
        ["worker", "runtime", "lab", "cli", "scheduler", "examples", "benches"].into_iter().flat_map(sources);
    let others = all.filter(|path| !path.ends_with(file!()) && !path.ends_with("worker/src/codec/mod.rs"));
    let named: Vec<PathBuf> = others.filter(|path| read(path).contains("bincode")).collect();
    assert!(named.is_empty(), "{named:?}");
    assert!(read(&root().join("worker/src/codec/mod.rs")).contains("bincode::"));
    for directory in ["runtime", "lab", "cli", "scheduler", "examples", "benches"] {
        assert!(
            !read(&root().join(directory).join("Cargo.toml")).contains("bincode"),
            "{directory} depends on it"
        );
    }
    // It has no maintainer: any release under its name is reviewed before it is used.
    assert!(read(&root().join("Cargo.toml")).contains("\nbincode = { version = \"=2.0.1\""));
}

#[test]
fn connections_are_built_in_one_directory() {
    for path in
        ["worker/src", "runtime/src", "lab/src", "lab/papers/src", "cli/src"].into_iter().flat_map(sources)
    {
        let text = read(&path);
        let builds = text.contains("hyper::server::conn") || text.contains("hyper::client::conn");
        let inside = path.to_string_lossy().contains("worker/src/http");
        assert!(!builds || inside, "{} builds connections of its own", path.display());
    }
}

#[test]
fn command_line_prints_through_what_cleans_names_of_others() {
    for path in sources("cli/src") {
        let text = read(&path);
        let prints = ["print!(", "println!("].into_iter().any(|macro_name| text.contains(macro_name));
        assert!(!prints, "{} prints past what cleans", path.display());
    }
}

/// True if a source names code that starts processes. A `Command` outside a module `process` is clap's and
/// starts none.
fn starts_processes(text: &str) -> bool {
    let words = circles::words(text);
    let named = |path: &[&str]| {
        path.windows(2).any(|two| two[0] == "process" && ["Command", "*", "as"].contains(&two[1]))
    };
    let imports = words.iter().enumerate().filter(|(_, word)| **word == "use");
    let imported = imports.flat_map(|(at, _)| circles::paths(&words[at + 1..])).any(|path| named(&path));
    let called = words.windows(3).any(|three| three == ["process", "::", "Command"]);
    imported
        || called
        || words.iter().any(|word| word.starts_with("posix_spawn") || word.starts_with("execv"))
}

#[test]
fn every_way_of_naming_what_starts_processes_is_seen() {
    for text in [
        "fn f() { std::process::Command::new(\"true\"); }",
        "use std::process::Command;",
        "use std::process::{Child, Command};",
        "use tokio::process::{Command as Program, Child};",
        "use tokio::{io, process::{self, Command}};",
        "use std::{fs, process::*};",
        "use std::process; fn f() { process::Command::new(\"true\"); }",
        "use std::process as programs;",
        "fn f() { unsafe { libc::execvp(path, words) }; }",
    ] {
        assert!(starts_processes(text), "{text}");
    }
    for text in [
        "use clap::{Args, Command};",
        "use std::process::{ExitCode, Stdio}; use clap::Command;",
        "use rustix::process::{Pid, Signal, kill_process};",
        "//! See std::process::Command.",
    ] {
        assert!(!starts_processes(text), "{text}");
    }
}

#[test]
fn processes_are_started_in_one_file_and_by_no_shell() {
    for path in ["worker/src", "runtime/src", "lab/src", "lab/papers/src", "cli/src", "scheduler/src"]
        .into_iter()
        .flat_map(sources)
    {
        let text = read(&path);
        let own = path.ends_with("runtime/src/cluster/child.rs");
        assert_eq!(starts_processes(&text), own, "{}: only that file starts processes", path.display());
        assert!(!text.contains("\"sh\"") && !text.contains("/bin/sh"), "{} calls a shell", path.display());
    }
}

#[test]
fn fault_points_are_not_compiled_into_a_release() {
    // The rest without the functions of builds with debug assertions.
    let text = read(&root().join("worker/src/fault.rs"));
    let mut parts = text.split("#[cfg(debug_assertions)]\n");
    let rest: Vec<&str> =
        parts.next().into_iter().chain(parts.map(|part| part.split_once("\n}\n").unwrap().1)).collect();
    assert!(4 < rest.len(), "{rest:?}");
    let code = rest.concat().lines().filter(|line| !line.starts_with("//")).collect::<Vec<_>>().join("\n");
    for means in ["env::", "fs::", "panic!", "directory", "loop"] {
        assert!(!code.contains(means), "{means} in {code}");
    }
    // No other file reads the variable that switches them on.
    for path in ["worker/src", "runtime/src", "lab/src", "lab/papers/src", "cli/src", "scheduler/src"]
        .into_iter()
        .flat_map(sources)
    {
        let own = path.ends_with("worker/src/fault.rs");
        assert!(own || !read(&path).contains("GRISTMILL_FAULTS"), "{}", path.display());
    }
}

/// Returns the help of every command of the program.
fn help() -> String {
    let ask = |words: &[&str]| {
        let output = std::process::Command::new(PROGRAM).args(words).output().unwrap();
        String::from_utf8(output.stdout).unwrap()
    };
    let commands = ["run", "master", "worker", "submit", "logs", "page", "compare", "paper"];
    let commands = commands.iter().map(|command| ask(&[command, "--help-all"]));
    commands.chain([ask(&["token", "new", "--help-all"]), ask(&["--help"])]).collect()
}

#[test]
fn security_page_names_what_exists() {
    let page = read(&root().join("SECURITY.md"));
    let help = help();
    let tests: String = ["worker", "runtime", "lab", "cli", "scheduler"]
        .into_iter()
        .flat_map(sources)
        .map(|path| read(&path))
        .collect();
    let (mut functions, mut flags) = (0, 0);
    for quoted in page.split('`').skip(1).step_by(2) {
        if quoted.starts_with("--") && quoted != "--self-test" {
            assert!(help.contains(quoted), "SECURITY.md names {quoted}, which no command takes");
            flags += 1;
        } else if quoted.split('_').count() > 2 {
            let found = ["fn ", "async fn "].iter().any(|word| tests.contains(&format!("{word}{quoted}(")));
            assert!(found, "SECURITY.md names the test {quoted}, which does not exist");
            functions += 1;
        } else if quoted.contains(':') {
            assert!(help.contains(quoted), "SECURITY.md names {quoted}, which no help does");
        } else if quoted.contains('/') {
            assert!(root().join(quoted).exists(), "SECURITY.md names {quoted}, which does not exist");
        }
    }
    assert!(60 < functions && 8 < flags, "only {functions} tests and {flags} flags were found");
    // Flags that open an attack surface are named there.
    let risks = [
        "--listen",
        "--listen-everywhere",
        "--allow-root",
        "--allow-host",
        "--insecure-plaintext",
        "--print-join",
        "--allow-commands",
        "--may-cancel",
    ];
    for flag in risks.into_iter().chain(["--join", "--advertise", "--raw"]) {
        assert!(help.contains(flag) && page.contains(&format!("`{flag}`")), "{flag}");
    }
    let (_, roles) = page.split_once("\n## What a token may do\n").unwrap();
    for role in ["view", "submit", "work", "admin"] {
        assert_eq!(roles.matches(&format!("\n| `{role}` | ")).count(), 1, "{role}");
        assert!(help.contains(&format!(" {role}")), "{role}");
    }
    for control in 1..=24 {
        assert_eq!(page.matches(&format!("\n| S{control} | ")).count(), 1, "S{control}");
    }
}

/// Maximum number of lines of a Rust file.
const FILE_LINES_MAX: usize = 600;

#[test]
fn every_file_says_what_it_is_and_is_short() {
    let code = ["scheduler", "worker", "runtime", "lab", "cli", "examples", "benches"];
    for path in code.into_iter().flat_map(sources) {
        let (text, name) = (read(&path), path.display());
        let lines = text.lines().count();
        assert!(lines <= FILE_LINES_MAX, "{name} has {lines} lines, more than {FILE_LINES_MAX}");
        let is_library = path.components().any(|part| part.as_os_str() == "src");
        assert!(!is_library || text.starts_with("//!"), "{name} does not open by saying what it is");
    }
}

/// Paths of a line of a document that do not exist, and the number of those that do. Files that are named without a
/// directory are in the directory before them, or next to the file before them.
fn missing_paths(line: &str) -> (Vec<&str>, usize) {
    let directories =
        ["scheduler/", "worker/", "runtime/", "lab/", "cli/", "examples/", "docs/", "scripts/", "tests/"];
    let (mut near, mut missing, mut found) = (None, Vec::new(), 0);
    for quoted in line.split('`').skip(1).step_by(2) {
        let is_file = [".rs", ".toml", ".md"].iter().any(|suffix| quoted.ends_with(suffix));
        let path = if directories.iter().any(|directory| quoted.starts_with(directory)) {
            let path = root().join(quoted);
            near = if path.is_dir() { Some(path.clone()) } else { path.parent().map(Path::to_owned) };
            path
        } else {
            match &near {
                Some(near) if is_file => near.join(quoted),
                _ => continue,
            }
        };
        match path.exists() {
            true => found += 1,
            false => missing.push(quoted),
        }
    }
    (missing, found)
}

#[test]
fn files_named_without_a_directory_are_looked_up_next_to_the_one_before_them() {
    assert_eq!(
        missing_paths("| `init.toml` | `cli/src/settings.rs`, `init.toml`, `wrong.rs` |"),
        (vec!["wrong.rs"], 2)
    );
    assert_eq!(
        missing_paths("| `cli/src/nowhere.rs`, `Core`, `sim/mod.rs` |"),
        (vec!["cli/src/nowhere.rs"], 1)
    );
}

#[test]
fn architecture_names_only_what_exists() {
    let text = read(&root().join("ARCHITECTURE.md"));
    let all: String = ["scheduler/src", "worker/src", "runtime/src", "lab/src", "lab/papers/src", "cli/src"]
        .into_iter()
        .flat_map(sources)
        .map(|path| read(&path))
        .collect();
    let mut looked_up = 0;
    for line in text.lines() {
        let (missing, found) = missing_paths(line);
        assert!(missing.is_empty(), "ARCHITECTURE.md names {missing:?}, which do not exist");
        looked_up += found;
    }
    for quoted in text.split('`').skip(1).step_by(2) {
        let first = quoted.split("::").next().unwrap_or_default();
        let camel = first.chars().next().is_some_and(char::is_uppercase)
            && first.chars().any(char::is_lowercase)
            && first.chars().all(char::is_alphanumeric);
        if camel {
            let kinds = ["struct", "enum", "trait", "type"];
            let defined = kinds.iter().any(|kind| {
                all.match_indices(&format!("{kind} {first}")).any(|(at, found)| {
                    all[at + found.len()..].chars().next().is_some_and(|next| !next.is_alphanumeric())
                })
            });
            assert!(defined, "ARCHITECTURE.md names the type {first}, which does not exist");
            looked_up += 1;
        }
    }
    assert!(30 < looked_up, "only {looked_up} names were found in ARCHITECTURE.md");
}

/// The file of a module of the scheduler or of worked cases, with the tests below it.
fn module_text(module: &str) -> Option<String> {
    let places = ["scheduler/src", "lab/papers/src"]
        .map(|directory| root().join(directory).join(module.replace("::", "/")));
    let files = places
        .iter()
        .flat_map(|place| [place.with_extension("rs"), place.join("mod.rs"), place.join("tests.rs")]);
    let text: String = files.filter(|file| file.exists()).map(|file| read(&file)).collect();
    (!text.is_empty()).then_some(text)
}

#[test]
fn the_table_of_policies_has_a_row_for_each_and_names_tests_that_exist() {
    use gristmill::scheduler::{placement, policy};
    let page = read(&root().join("scheduler/POLICIES.md"));
    // Tables are between empty lines; tables other than these two are of measurements.
    let catalogues = page
        .split("\n\n")
        .filter(|table| table.lines().next().is_some_and(|head| head.ends_with("| tests |")));
    let rows: Vec<Vec<&str>> = catalogues
        .flat_map(str::lines)
        .filter(|line| line.starts_with("| `"))
        .map(|line| line.trim_matches('|').split(" | ").map(str::trim).collect())
        .collect();
    let named: Vec<&str> = rows.iter().map(|row| row[0].trim_matches('`')).collect();
    let policies = policy::catalogue().into_iter().map(|entry| entry.name);
    let called: Vec<&str> =
        policies.chain(placement::catalogue().into_iter().map(|entry| entry.name)).collect();
    assert!(30 <= called.len());
    assert_eq!(called.iter().filter(|name| !named.contains(name)).collect::<Vec<_>>(), [&""; 0], "no row");
    assert_eq!(
        named.iter().filter(|name| !called.contains(name)).collect::<Vec<_>>(),
        [&""; 0],
        "no such name"
    );
    for row in rows {
        assert_eq!(row.len(), 7, "columns of {}", row[0]);
        let quoted: Vec<&str> = row[6].split('`').skip(1).step_by(2).collect();
        let is_module = |name: &&&str| name.contains("::") || **name == "matching";
        let modules: Vec<&str> = quoted.iter().filter(is_module).copied().collect();
        let as_another = row[6].starts_with("as `") && quoted.iter().all(|name| named.contains(name));
        assert!(as_another || !modules.is_empty(), "{} names no tests", row[0]);
        for module in modules {
            let text = module_text(module)
                .unwrap_or_else(|| panic!("{} names {module}, which is no module", row[0]));
            let tested = text.contains("#[test]") || text.contains("mod tests");
            assert!(tested || module.contains("tests"), "{} names {module}, which has no tests", row[0]);
        }
    }
}

#[test]
fn scripts_that_the_gate_calls_can_be_executed() {
    use std::os::unix::fs::PermissionsExt;
    let mut called = 0;
    for gate in [".ci/run", "scripts/test.sh"] {
        for line in read(&root().join(gate)).lines() {
            let script = line.split_whitespace().next().unwrap_or_default();
            if script.starts_with("scripts/") || script.starts_with("tests/") {
                let mode = fs::metadata(root().join(script)).map(|found| found.permissions().mode());
                assert!(mode.is_ok_and(|mode| mode & 0o100 != 0), "{gate} cannot execute {script}");
                called += 1;
            }
        }
    }
    assert!(called > 8, "{called} scripts are named in the gate");
}
