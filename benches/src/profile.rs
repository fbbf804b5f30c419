//! CPU profile of one of our runs: samples of all its processes, by phase.
//!
//! `perf` takes the samples with whole stacks. [`OUTER`] and [`INNER`] map functions to phases. The
//! folded stacks are stored next to the results, for flame graphs. Not here: idle time.

use crate::archive::{BenchSection, Finding, PhaseSamples};
use crate::bench::{Bench, Task, words};
use crate::rows::BenchRow;
use anyhow::{Context, bail};
use std::collections::BTreeMap;
use std::fs::{self, File};
use std::io::{BufRead, BufReader, BufWriter, Write};
use std::process::{Command, Stdio};

/// Number of samples of each core per second, not a divisor of common timers.
const SAMPLES_PER_SECOND: u32 = 199;

/// Bytes of the stack stored with each sample, which is unwound afterwards.
const STACK_BYTES: u32 = 32_768;

/// Phases, in the order of the table.
pub const PHASES: [&str; 12] = [
    "start", "read", "map", "sort", "spill", "shuffle", "merge", "reduce", "write", "commit", "control",
    "other",
];

/// Functions whose phase includes everything they call; the first match wins.
const OUTER: [(&str, &str); 7] = [
    ("gristmill_runtime::submit::", "start"),
    ("gristmill_runtime::cluster::", "start"),
    ("gristmill_runtime::output_dir::", "commit"),
    ("gristmill_worker::commit::", "commit"),
    ("gristmill_worker::segment::spill", "spill"),
    ("gristmill_worker::collect::sort", "sort"),
    ("gristmill_worker::output::", "write"),
];

/// Functions whose phase includes only their own work: the innermost frame with one of these counts.
const INNER: [(&str, &str); 25] = [
    ("slice::sort", "sort"),
    ("gristmill_worker::shuffle::", "shuffle"),
    ("gristmill_worker::http::", "shuffle"),
    ("gristmill_worker::segment::", "shuffle"),
    ("gristmill_worker::merge::", "merge"),
    ("combine::merge_combining", "merge"),
    ("gristmill_worker::input::", "read"),
    ("run_reduce", "reduce"),
    ("task::reduce", "reduce"),
    ("api::task::Reducer", "reduce"),
    ("gristmill_worker::collect::", "map"),
    ("gristmill_worker::text::", "map"),
    ("api::task::Mapper", "map"),
    ("api::plan::MapOnlyRun", "map"),
    ("run_map", "map"),
    ("gristmill_worker::task::", "map"),
    ("gristmill_runtime::jobs::", "map"),
    ("gristmill_scheduler::", "control"),
    ("gristmill_runtime::master::", "control"),
    ("gristmill_runtime::client::", "control"),
    ("gristmill_worker::agent::", "control"),
    ("tokio::", "control"),
    ("gristmill::cli::", "start"),
    ("lang_start", "start"),
    ("execve", "start"),
];

/// Kernel functions that indicate the first touch of a page.
const PAGE_FAULTS: [&str; 2] = ["asm_exc_page_fault", "faultin_page"];

/// Sample with its frames from the innermost outwards.
#[derive(Clone, PartialEq, Eq, Debug, Default)]
struct Stack {
    thread: String,
    frames: Vec<StackFrame>,
}

#[derive(Clone, PartialEq, Eq, Debug)]
struct StackFrame {
    in_kernel: bool,
    symbol: String,
}

/// Runs a row of ours once under `perf` and stores the profile.
///
/// # Errors
/// `perf` does not exist, or the run fails.
pub fn measure_row(bench: &mut Bench, row: &BenchRow) -> anyhow::Result<()> {
    let mut command = words(&format!(
        "perf record --quiet --event cpu-clock --freq {SAMPLES_PER_SECOND} --call-graph dwarf,{STACK_BYTES} --output \
         $SPILL/perf.data --"
    ));
    command.extend(row.ours(false));
    let task = Task {
        section: BenchSection::Profile,
        row: row.name.to_owned(),
        contestant: "ours".to_owned(),
        command,
        environment: Vec::new(),
        inputs: row.input_paths(),
        slots: None,
    };
    let obstacle = match crate::places::find_program("perf") {
        None => Some("perf is not there".to_owned()),
        Some(_) => bench.obstacle(&task),
    };
    if let Some(reason) = obstacle {
        eprintln!("  {} is left out: {reason}", task.row);
        return bench.keep(&task, Finding::Absent { reason });
    }
    let measured = bench.run(&task)?;
    if !measured.ended.well() {
        bail!("the profile of {} failed: {}", row.name, measured.ended);
    }
    let folded = bench.archive.folder().join(format!("profile-{}.folded", row.name));
    let shares = read_samples(bench, &folded)?;
    let interval_s = 1.0 / f64::from(SAMPLES_PER_SECOND);
    bench.keep(&task, Finding::Profile { phases: shares, interval_s })?;
    bench.places.clean()
}

/// Reads the data that `perf` recorded, writes folded stacks, and sums up phases.
fn read_samples(bench: &Bench, folded: &std::path::Path) -> anyhow::Result<Vec<PhaseSamples>> {
    let data = bench.places.path("$SPILL").join("perf.data");
    let mut script = Command::new("perf")
        .args(["script", "--no-inline", "--fields", "comm,tid,time,event,ip,sym", "--input"])
        .arg(&data)
        .stdin(Stdio::null())
        .stdout(Stdio::piped())
        .stderr(Stdio::null())
        .spawn()
        .context("could not run perf script")?;
    let output = script.stdout.take().context("perf script has no output")?;
    let (mut shares, mut stacks) = (BTreeMap::<&str, PhaseSamples>::new(), BTreeMap::<String, u64>::new());
    each_stack(BufReader::new(output), |stack| {
        let phase = phase_of(stack);
        let share = shares.entry(phase).or_default();
        match stack.frames.first() {
            Some(frame) if frame.in_kernel && is_page_fault(stack) => share.page_faults += 1,
            Some(frame) if frame.in_kernel => share.kernel += 1,
            _ => share.user += 1,
        }
        *stacks.entry(fold(stack)).or_default() += 1;
    })?;
    if !script.wait()?.success() {
        bail!("perf script could not read what perf recorded");
    }
    let mut file = BufWriter::new(File::create(folded)?);
    for (stack, count) in stacks {
        writeln!(file, "{stack} {count}")?;
    }
    file.flush()?;
    fs::remove_file(data)?;
    let found = PHASES.iter().filter_map(|phase| shares.remove(phase).map(|share| (phase, share)));
    Ok(found.map(|(phase, share)| PhaseSamples { phase: (*phase).to_owned(), ..share }).collect())
}

/// Calls `seen` for each sample in the output of `perf script`.
fn each_stack(reader: impl BufRead, mut seen: impl FnMut(&Stack)) -> std::io::Result<()> {
    let mut stack: Option<Stack> = None;
    for line in reader.split(b'\n') {
        let line = line?;
        let line = String::from_utf8_lossy(&line);
        if line.trim().is_empty() {
            if let Some(stack) = stack.take() {
                seen(&stack);
            }
        } else if let Some(stack) = &mut stack {
            stack.frames.extend(parse_frame(&line));
        } else {
            stack = Some(Stack { thread: parse_thread(&line), frames: Vec::new() });
        }
    }
    if let Some(stack) = stack {
        seen(&stack);
    }
    Ok(())
}

/// Parses the name in `slot-0  1748 11706.765669: cpu-clock:`. It may contain blanks, and ends before the
/// number.
fn parse_thread(line: &str) -> String {
    let end = line.find(": ").unwrap_or(line.len());
    let mut words: Vec<&str> = line[..end].split_ascii_whitespace().collect();
    words.truncate(words.len().saturating_sub(2));
    words.join(" ")
}

/// Parses `ffffffff821f304b exc_page_fault`. An address in the upper half belongs to the kernel.
fn parse_frame(line: &str) -> Option<StackFrame> {
    let (address, symbol) = line.trim().split_once(' ')?;
    let address = u64::from_str_radix(address, 16).ok()?;
    // A stack that could not be unwound to its end is closed by an invalid address.
    if address == u64::MAX {
        return None;
    }
    Some(StackFrame { in_kernel: address >> 63 == 1, symbol: symbol.to_owned() })
}

fn is_page_fault(stack: &Stack) -> bool {
    let kernel = stack.frames.iter().take_while(|frame| frame.in_kernel);
    kernel.into_iter().any(|frame| PAGE_FAULTS.iter().any(|name| frame.symbol.contains(name)))
}

fn phase_of(stack: &Stack) -> &'static str {
    let frames = || stack.frames.iter().filter(|frame| !frame.in_kernel);
    let outer = OUTER.iter().find(|(name, _)| frames().any(|frame| frame.symbol.contains(name)));
    let inner = || {
        let of = |frame: &StackFrame| INNER.iter().find(|(name, _)| frame.symbol.contains(name));
        frames().find_map(of)
    };
    outer.or_else(inner).map_or("other", |(_, phase)| phase)
}

/// Returns the stack with the outermost frame first, as flame graphs need it.
fn fold(stack: &Stack) -> String {
    let frames = stack.frames.iter().rev().map(|frame| frame.symbol.replace(';', ","));
    std::iter::once(stack.thread.replace(';', ",")).chain(frames).collect::<Vec<_>>().join(";")
}

#[cfg(test)]
mod tests {
    use super::*;

    const SCRIPT: &str = "\
slot-0  1748 11706.765669: cpu-clock: 
\tffffffff821f304b exc_page_fault
\tffffffff81000c82 asm_exc_page_fault
\t          3e4e10 gristmill_worker::collect::combine::Combining<V>::flush

tokio rt  15387 12613.735751: cpu-clock: 
\t          7b594e memchr::arch::x86_64::avx2::memchr::One::find_raw_avx2
\t          6ceb58 gristmill_worker::input::border::first_record
\t          61bf72 gristmill_runtime::submit::sample
\tffffffffffffffff [unknown]
";

    fn stacks() -> Vec<Stack> {
        let mut stacks = Vec::new();
        each_stack(SCRIPT.as_bytes(), |stack| stacks.push(stack.clone())).unwrap();
        stacks
    }

    #[test]
    fn samples_are_read_with_their_threads_and_frames() {
        let stacks = stacks();
        let threads: Vec<&str> = stacks.iter().map(|stack| stack.thread.as_str()).collect();
        assert_eq!(threads, ["slot-0", "tokio rt"]);
        assert_eq!(stacks[1].frames.len(), 3);
        assert!(stacks[0].frames[0].in_kernel && !stacks[0].frames[2].in_kernel);
    }

    #[test]
    fn phase_is_that_of_the_innermost_frame_unless_an_outer_one_claims_it_all() {
        let stacks = stacks();
        assert_eq!(phase_of(&stacks[0]), "map");
        assert!(is_page_fault(&stacks[0]));
        // Reading for the sample of keys is part of the start.
        assert_eq!(phase_of(&stacks[1]), "start");
    }

    #[test]
    fn every_declared_phase_is_in_the_table() {
        let declared = OUTER.iter().chain(&INNER).map(|(_, phase)| phase);
        declared.for_each(|phase| assert!(PHASES.contains(phase), "{phase}"));
    }

    #[test]
    fn stacks_fold_from_the_outside_inwards() {
        let folded = fold(&stacks()[1]);
        assert!(folded.starts_with("tokio rt;gristmill_runtime::submit::sample;"), "{folded}");
    }
}
