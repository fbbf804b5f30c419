//! Whole jobs compared with other systems: rounds in which each contestant runs once, in a rotating order.

use crate::archive::{BenchSection, Finding};
use crate::bench::{Bench, RunOutcome, Task};
use crate::check::Digest;
use crate::rows::BenchRow;
use anyhow::bail;

/// Options of a table.
#[derive(Clone, Copy, Debug)]
pub struct TableOptions {
    /// Number of counted rounds. One more before them does not count.
    pub rounds: u32,
    /// True for only ours and the limit.
    pub no_peers: bool,
}

/// Measures one row.
///
/// # Errors
/// Outputs that differ, and errors that prevent measurements.
pub fn measure_row(bench: &mut Bench, row: &BenchRow, options: TableOptions) -> anyhow::Result<()> {
    eprintln!("{}: {}", row.name, row.title);
    let mut tasks = tasks(bench, row, options)?;
    let mut agreed: Option<(String, Digest)> = None;
    for round in 0..=options.rounds {
        if tasks.is_empty() {
            break;
        }
        let first = round as usize % tasks.len();
        let mut order = tasks.clone();
        order.rotate_left(first);
        for task in order {
            let kind = (round == 0).then_some(row.kind);
            match bench.run_and_keep(&task, round, kind)? {
                RunOutcome::Failed => tasks.retain(|other| other.contestant != task.contestant),
                RunOutcome::Well(Some(digest)) => agree(&mut agreed, &task.contestant, digest)?,
                RunOutcome::Well(None) => {}
            }
        }
    }
    bench.places.clean()
}

/// Returns the contestants that can run. For the others the reason is stored.
fn tasks(bench: &Bench, row: &BenchRow, options: TableOptions) -> anyhow::Result<Vec<Task>> {
    let mut tasks = Vec::new();
    for contestant in row.contestants() {
        if options.no_peers && !crate::rows::NOT_PEERS.contains(&contestant.name) {
            continue;
        }
        let task = Task {
            section: BenchSection::Table,
            row: row.name.to_owned(),
            contestant: contestant.name.to_owned(),
            command: contestant.command,
            environment: contestant.environment,
            inputs: row.input_paths(),
        };
        match bench.obstacle(&task) {
            None => tasks.push(task),
            Some(reason) => {
                eprintln!("  {} is left out: {reason}", task.contestant);
                bench.keep(&task, Finding::Absent { reason })?;
            }
        }
    }
    Ok(tasks)
}

/// Compares the output with that of the first contestant.
fn agree(agreed: &mut Option<(String, Digest)>, who: &str, digest: Digest) -> anyhow::Result<()> {
    if digest.wrong != 0 || digest.lines == 0 {
        bail!("the output of {who} is wrong: {digest}");
    }
    match agreed {
        Some((first, expected)) if expected.result() != digest.result() => {
            bail!("{who} and {first} wrote different things:\n  {who}: {digest}\n  {first}: {expected}")
        }
        Some(_) => {}
        None => *agreed = Some((who.to_owned(), digest)),
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;

    fn digest(lines: u64, parts: u32) -> Digest {
        Digest {
            parts,
            lines,
            bytes: 1,
            multiset: 1,
            sum: 0,
            key_sequence: 0,
            content: parts.into(),
            wrong: 0,
        }
    }

    #[test]
    fn outputs_agree_when_only_their_parts_differ() {
        let mut agreed = None;
        agree(&mut agreed, "limit", digest(5, 2)).unwrap();
        agree(&mut agreed, "ours", digest(5, 1)).unwrap();
        let (first, expected) = agreed.unwrap();
        assert_eq!((first.as_str(), expected.parts), ("limit", 2), "what the others are compared with stays");
    }

    #[test]
    fn outputs_that_differ_are_named() {
        let mut agreed = None;
        agree(&mut agreed, "limit", digest(5, 1)).unwrap();
        let words = agree(&mut agreed, "ours", digest(6, 1)).unwrap_err().to_string();
        assert!(words.starts_with("ours and limit wrote different things"), "{words}");
    }

    #[test]
    fn output_with_a_wrong_line_is_refused_though_it_is_the_first() {
        let wrong = Digest { wrong: 1, ..digest(5, 1) };
        for refused in [wrong, digest(0, 0)] {
            let mut agreed = None;
            let words = agree(&mut agreed, "ours", refused).unwrap_err().to_string();
            assert!(words.starts_with("the output of ours is wrong: "), "{words}");
            assert!(agreed.is_none(), "others are not compared with it");
        }
    }
}
