//! Gauges of a running master and its workers, for Prometheus and for probes. Each gauge is declared once, with its
//! unit and meaning; `GET /metrics` returns all of them.
//!
//! Metrics of jobs, as used by `lab sim` and `lab compare`, are in the scheduler.

use super::state::MasterState;
use crate::api::{JobState, WorkerStatus};
use gristmill_scheduler::units::Time;
use std::fmt::Write as _;

/// Content type of the text in HTTP.
pub(super) const CONTENT_TYPE: &str = "text/plain; version=0.0.4; charset=utf-8";

/// One gauge: its name with its unit, its meaning, and its values with their labels.
pub struct Gauge {
    /// Name in Prometheus.
    pub name: &'static str,
    /// Meaning.
    pub help: &'static str,
    values: fn(&GaugeFacts<'_>, &mut GaugeValues),
}

/// Data from which gauges are computed.
struct GaugeFacts<'a> {
    state: &'a MasterState,
    now: Time,
    workers: Vec<WorkerStatus>,
}

/// Labels and values of one gauge.
type GaugeValues = Vec<(String, f64)>;

/// All gauges.
pub static GAUGES: [Gauge; 12] = [
    Gauge {
        name: "gristmill_clock_seconds",
        help: "Seconds since the master started; it goes on when a master comes back",
        values: |facts, values| values.push((String::new(), facts.now.seconds())),
    },
    Gauge {
        name: "gristmill_workers",
        help: "Workers by whether their connection stands (connected) or is gone and they are expected back (away)",
        values: |facts, values| {
            let away = facts.workers.iter().filter(|worker| worker.away).count();
            values.push((label("state", "connected"), (facts.workers.len() - away) as f64));
            values.push((label("state", "away"), away as f64));
        },
    },
    Gauge {
        name: "gristmill_slots",
        help: "Attempts that all workers can run at once",
        values: |facts, values| {
            let slots: u32 = facts.workers.iter().map(|worker| worker.slots).sum();
            values.push((String::new(), f64::from(slots)));
        },
    },
    Gauge {
        name: "gristmill_slots_running",
        help: "Slots in which an attempt runs, by kind of task",
        values: |facts, values| {
            for (kind, running) in ["map", "reduce"].into_iter().zip(facts.state.queries().running_by_kind())
            {
                values.push((label("kind", kind), f64::from(running)));
            }
        },
    },
    Gauge {
        name: "gristmill_jobs",
        help: "Jobs that the master remembers, by state",
        values: |facts, values| {
            let states = facts.state.jobs.states();
            for (state, word) in [
                (JobState::Waiting, "waiting"),
                (JobState::Running, "running"),
                (JobState::Publishing, "publishing"),
                (JobState::Succeeded, "succeeded"),
                (JobState::Failed, "failed"),
                (JobState::Cancelled, "cancelled"),
            ] {
                let jobs = states.iter().filter(|known| **known == state).count();
                values.push((label("state", word), jobs as f64));
            }
        },
    },
    Gauge {
        name: "gristmill_policy_panics",
        help: "Times that the policy panicked since it decides; fifo decided in its place",
        values: |facts, values| values.push((String::new(), facts.state.policy_panics().count as f64)),
    },
    Gauge {
        name: "gristmill_worker_slots_running",
        help: "Slots of a worker in which an attempt runs",
        values: |facts, values| of_workers(facts, values, |worker| f64::from(worker.running)),
    },
    Gauge {
        name: "gristmill_worker_memory_bytes",
        help: "Anonymous and shared memory that a worker uses",
        values: |facts, values| of_workers(facts, values, |worker| worker.memory_bytes as f64),
    },
    Gauge {
        name: "gristmill_worker_processors",
        help: "Processors that a worker's process uses, without its children",
        values: |facts, values| of_workers(facts, values, |worker| worker.processors),
    },
    Gauge {
        name: "gristmill_worker_memory_budget_bytes",
        help: "What a worker may use for pairs and map outputs",
        values: |facts, values| of_workers(facts, values, |worker| worker.memory_budget_bytes as f64),
    },
    Gauge {
        name: "gristmill_worker_disk_free_bytes",
        help: "Free bytes on the fullest spill directory of a worker",
        values: |facts, values| of_workers(facts, values, |worker| worker.disk_free_bytes as f64),
    },
    Gauge {
        name: "gristmill_worker_clock_offset_seconds",
        help: "A worker's clock minus the master's, as measured",
        values: |facts, values| of_workers(facts, values, |worker| worker.clock_offset_ns as f64 / 1e9),
    },
];

fn of_workers(facts: &GaugeFacts<'_>, values: &mut GaugeValues, value: fn(&WorkerStatus) -> f64) {
    for worker in &facts.workers {
        values.push((label("worker", &worker.worker.to_string()), value(worker)));
    }
}

/// Formats a label. Its value is a fixed word and needs no escaping.
fn label(name: &str, value: &str) -> String {
    format!("{{{name}=\"{value}\"}}")
}

/// All gauges in the text format of Prometheus.
pub(super) fn text(state: &MasterState, now: Time) -> String {
    let facts = GaugeFacts { state, now, workers: state.queries().workers() };
    let mut text = String::new();
    for Gauge { name, help, values: measure } in &GAUGES {
        let _ = writeln!(text, "# HELP {name} {help}\n# TYPE {name} gauge");
        let mut values = Vec::new();
        measure(&facts, &mut values);
        for (labels, value) in values {
            let _ = writeln!(text, "{name}{labels} {value}");
        }
    }
    text
}

#[cfg(test)]
mod tests {
    use super::*;

    /// If this is set, the test writes the table instead of comparing it, as the test of the scheduler's metrics does.
    const WRITE: &str = "GRISTMILL_WRITE_TABLES";
    const BEGIN: &str = "<!-- Measures of the master, from their declarations -->\n";
    const END: &str = "<!-- End of measures -->\n";

    #[test]
    fn table_of_measures_in_the_reference_is_that_of_their_declarations() {
        let path = concat!(env!("CARGO_MANIFEST_DIR"), "/../docs/book/reference.md");
        let page = std::fs::read_to_string(path).unwrap();
        let (before, rest) = page.split_once(BEGIN).expect("the reference says where the table begins");
        let (found, after) = rest.split_once(END).expect("the reference says where the table ends");
        let row = |Gauge { name, help, .. }: &Gauge| format!("| `{name}` | {help} |\n");
        let rows: String = GAUGES.iter().map(row).collect();
        let table = format!("| measure | meaning |\n|---|---|\n{rows}");
        if std::env::var_os(WRITE).is_some() {
            std::fs::write(path, [before, BEGIN, &table, END, after].concat()).unwrap();
            return;
        }
        let command = format!("{WRITE}=1 cargo test -p gristmill-runtime --lib gauges");
        assert_eq!(found, table, "the table is not that of the declarations; `{command}` writes it");
    }
}
