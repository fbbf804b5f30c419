//! `lab sim --list`: all names of policies, placements, estimators, workloads and metrics.

use super::source::generators;
use gristmill_runtime::registry::Registry;
use gristmill_scheduler::catalogue::{Entry, Parameter};
use gristmill_scheduler::metrics::{Metric, System};
use std::fmt::Write;

/// The list.
pub fn text(registry: &Registry) -> String {
    let mut text = String::new();
    part(&mut text, "Policies", &registry.policies());
    part(&mut text, "Placements (live clusters and the cluster model)", &registry.placements());
    part(&mut text, "Estimators (live clusters and the cluster model)", &registry.estimators());
    part(&mut text, "Workloads", &generators());
    text.push_str("Metrics:\n");
    for metric in Metric::ALL {
        let declaration = metric.declaration();
        let unit =
            if declaration.unit.is_empty() { String::new() } else { format!(" [{}]", declaration.unit) };
        let systems = match declaration.systems {
            all if all.len() == System::ALL.len() => String::new(),
            some => format!(" ({})", some.iter().map(|system| system.name()).collect::<Vec<_>>().join(", ")),
        };
        line(&mut text, declaration.name, &format!("{}{unit}{systems}", declaration.meaning));
    }
    text
}

fn part<T: ?Sized>(text: &mut String, title: &str, entries: &[&Entry<T>]) {
    line_break(text, title);
    for entry in entries {
        let mut words = entry.summary.to_owned();
        if !entry.aliases.is_empty() {
            // Writing to a String cannot fail.
            let _ = write!(words, "; also {}", entry.aliases.join(", "));
        }
        let _ = write!(words, " ({})", entry.paper);
        line(text, entry.name, &words);
        for Parameter { name, default, meaning } in entry.parameters {
            let _ = writeln!(text, "      {name}={default}: {meaning}");
        }
        if let Some(reason) = entry.only_simulated {
            let _ = writeln!(text, "      only simulated: {reason}");
        }
    }
    text.push('\n');
}

fn line_break(text: &mut String, title: &str) {
    text.push_str(title);
    text.push_str(":\n");
}

fn line(text: &mut String, name: &str, words: &str) {
    let _ = writeln!(text, "  {name:<20} {words}");
}
