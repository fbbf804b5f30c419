//! `lab replay`: compares the orders of a journal with those of the present core.

use crate::files::InputFileError;
use crate::terminal::{stdout_json, stdout_text};
use clap::Args;
use gristmill_runtime::exit;
use gristmill_runtime::journal::JournalReader;
use gristmill_runtime::plural::counted;
use gristmill_runtime::registry::Registry;
use gristmill_runtime::replay::{ReplayDifference, ReplayError, Replayed, replay};
use serde_json::{Value, json};
use std::fmt::Write;
use std::path::{Path, PathBuf};

/// Replay a journal through the scheduler and compare the orders
///
/// Exits with 1 if any order differs, and shows the first that does.
#[derive(Args)]
#[command(after_help = "\
Example:
  gristmill run --journal run.journal wordcount book.txt
  gristmill lab replay run.journal")]
pub struct ReplayCommand {
    /// Journal that a master wrote
    #[arg(value_name = "JOURNAL")]
    journal: PathBuf,
    /// Print JSON
    #[arg(long)]
    json: bool,
}

/// `gristmill lab replay`.
pub fn run(registry: &Registry, flags: &ReplayCommand) -> anyhow::Result<u8> {
    let unreadable =
        |error: &dyn std::error::Error| InputFileError::new(&flags.journal, gristmill_runtime::chain(error));
    let mut journal = JournalReader::open(&flags.journal).map_err(|error| unreadable(&error))?;
    let replayed = match replay(registry, &mut journal) {
        Ok(replayed) => replayed,
        Err(ReplayError::Read { source }) => return Err(unreadable(&source).into()),
        Err(error) => return Err(unreadable(&error).into()),
    };
    if journal.header().version != env!("CARGO_PKG_VERSION") {
        say!("the journal was written by gristmill {}", journal.header().version);
    }
    say_torn(&flags.journal, replayed.torn);
    if !replayed.ended && replayed.torn.is_none() && replayed.difference.is_none() {
        let path = flags.journal.display();
        say!("{path}: its master was killed, so its last instants may be missing");
    }
    match flags.json {
        true => stdout_json(&as_json(&replayed))?,
        false => {
            let header = journal.header();
            let who = format!(
                "{} / {} / {}, gristmill {}",
                header.policy, header.placement, header.estimator, header.version
            );
            stdout_text(&as_text(&who, &replayed))?;
        }
    }
    Ok(if replayed.difference.is_some() { exit::FAILED } else { exit::OK })
}

/// Prints on stderr that the last line of a journal was cut off.
pub fn say_torn(path: &Path, torn: Option<u64>) {
    if let Some(line) = torn {
        say!("{}: line {line} was cut off and is left out: the master was killed", path.display());
    }
}

fn as_text(who: &str, replayed: &Replayed) -> String {
    let Replayed { instants, facts, orders, shuffles, changes, .. } = replayed;
    let mut text = format!("decided by  {who}\n");
    if 0 < *changes {
        text.push_str(&format!("changed     {}\n", counted(*changes, "time", "times")));
    }
    text.push_str(&format!(
        "agree       {instants} instants, {facts} facts, {orders} orders, {shuffles} orders of the shuffle\n"
    ));
    match &replayed.difference {
        None if *instants == 0 => {
            text.push_str("result      nothing to compare: the master received no events\n");
        }
        None => text.push_str("result      every order is the recorded one\n"),
        Some(difference) => text.push_str(&different(difference)),
    }
    text
}

fn different(difference: &ReplayDifference) -> String {
    let ReplayDifference { line, at, order, recorded, replayed } = difference;
    let words = |order: &Option<Value>| order.as_ref().map_or_else(|| "nothing".to_owned(), Value::to_string);
    let which = order.map_or_else(|| "the shuffle's order".to_owned(), |order| format!("order {order}"));
    let mut text = format!("result      {which} of line {line}, at {at}, differs\n");
    // Writing to a string cannot fail.
    let _ = writeln!(text, "  recorded  {}\n  replayed  {}", words(recorded), words(replayed));
    text
}

fn as_json(replayed: &Replayed) -> Value {
    let difference = replayed.difference.as_ref().map(|difference| {
        json!({
            "line": difference.line,
            "at_ns": difference.at,
            "order": difference.order,
            "recorded": difference.recorded,
            "replayed": difference.replayed,
        })
    });
    json!({
        "instants": replayed.instants,
        "facts": replayed.facts,
        "orders": replayed.orders,
        "shuffle_orders": replayed.shuffles,
        "policy_changes": replayed.changes,
        "torn_line": replayed.torn,
        "ended": replayed.ended,
        "agrees": 0 < replayed.instants && replayed.difference.is_none(),
        "difference": difference,
    })
}
