//! Declarations of all metrics: name, unit, better direction, source, and meaning.
//!
//! Tables, pages, JSON, `--metrics` and the table in README.md read these declarations. Values are computed by
//! `collect`, and by the laboratory's `compare::metrics` for metrics of real processes.

use crate::catalogue::listed;
use serde::{Serialize, Serializer};
use std::fmt;

/// Better direction of a metric.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Better {
    /// Lower values are better.
    Lower,
    /// Higher values are better.
    Higher,
    /// Neither; the metric is descriptive.
    Neither,
}

/// System that runs jobs: one of the simulated models, or real processes.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum System {
    /// `lab sim --model fluid`.
    Fluid,
    /// `lab sim --model slotted`.
    Slotted,
    /// `lab sim --model cluster`.
    Cluster,
    /// Real processes, as `lab compare` measures them.
    Live,
}

impl System {
    /// All systems, in the order of tables.
    pub const ALL: [System; 4] = [System::Fluid, System::Slotted, System::Cluster, System::Live];

    /// Returns its name as in tables; models as on the command line.
    #[must_use]
    pub fn name(self) -> &'static str {
        match self {
            System::Fluid => "fluid",
            System::Slotted => "slotted",
            System::Cluster => "cluster",
            System::Live => "live",
        }
    }

    /// Returns its name for a sentence.
    fn words(self) -> String {
        match self {
            System::Live => "`lab compare`".to_owned(),
            model => format!("the {} model", model.name()),
        }
    }
}

const ALL: &[System] = &System::ALL;
const NOT_FLUID: &[System] = &[System::Slotted, System::Cluster, System::Live];
const NOT_SLOTTED: &[System] = &[System::Fluid, System::Cluster, System::Live];
const LIVE: &[System] = &[System::Live];

/// Name and meaning of a metric.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Declaration {
    /// Name as in `--metrics`, JSON, CSV and on pages.
    pub name: &'static str,
    /// Unit: `s`, `ms`, `%`, `jobs`, `slots`; empty for a ratio or a count.
    pub unit: &'static str,
    /// Better direction.
    pub better: Better,
    /// Systems that can measure it.
    pub systems: &'static [System],
    /// Meaning in one line.
    pub meaning: &'static str,
}

impl Declaration {
    /// Returns the name followed by the unit, for text tables.
    #[must_use]
    pub fn title(&self) -> String {
        match self.unit {
            "" => self.name.to_owned(),
            unit => format!("{}, {unit}", self.name),
        }
    }
}

macro_rules! metrics {
    ($($metric:ident, $name:literal, $unit:literal, $better:ident, $systems:ident, $meaning:literal;)*) => {
        /// Metric of a simulation or of a live run.
        #[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Debug)]
        pub enum Metric {
            $(#[doc = $meaning] $metric,)*
        }

        impl Metric {
            /// All metrics, in the order of tables.
            pub const ALL: &'static [Metric] = &[$(Metric::$metric,)*];

            /// Returns its declaration.
            #[must_use]
            pub fn declaration(self) -> Declaration {
                match self {
                    $(Metric::$metric => Declaration {
                        name: $name,
                        unit: $unit,
                        better: Better::$better,
                        systems: $systems,
                        meaning: $meaning,
                    },)*
                }
            }
        }
    };
}

metrics! {
    Jobs, "jobs", "jobs", Neither, ALL, "jobs that ended";
    Flow, "flow", "s", Lower, ALL, "mean flow time: from the arrival of a job to its end";
    FlowTotal, "flow-total", "s", Lower, ALL, "sum of the flow times of all jobs";
    FlowP50, "flow-p50", "s", Lower, ALL, "flow time that 50 % of the jobs do not exceed";
    FlowP90, "flow-p90", "s", Lower, ALL, "flow time that 90 % of the jobs do not exceed, of 10 jobs or more";
    FlowP95, "flow-p95", "s", Lower, ALL, "flow time that 95 % of the jobs do not exceed, of 20 jobs or more";
    FlowP99, "flow-p99", "s", Lower, ALL, "flow time that 99 % of the jobs do not exceed, of 100 jobs or more";
    FlowMax, "flow-max", "s", Lower, ALL, "largest flow time";
    Waiting, "waiting", "s", Lower, ALL, "mean time from the arrival of a job until it is first given anything";
    Execution, "execution", "s", Lower, ALL, "mean time from when a job is first given anything to its end";
    MapSojourn, "mst", "s", Lower, ALL, "mean time from the arrival of a job to the end of its last map (mean sojourn time of maps)";
    Makespan, "makespan", "s", Lower, ALL, "from the first arrival to the end of the last job";
    Slowdown, "slowdown", "", Lower, ALL, "mean of flow time / time alone, over jobs that take any time alone";
    SlowdownP99, "slowdown-p99", "", Lower, ALL, "slowdown that 99 % of those jobs do not exceed, of 100 or more";
    SlowdownMax, "slowdown-max", "", Lower, ALL, "largest slowdown";
    Fairness, "fairness", "", Higher, ALL, "Jain's index of the slowdowns: 1 if all jobs are slowed down alike";
    EfficiencyRatio, "efficiency-ratio", "", Lower, ALL, "total flow time / a total that no schedule can beat";
    DeadlinesMet, "deadlines-met", "%", Higher, ALL, "jobs that end by their deadline, of those that have one";
    Tardiness, "tardiness", "s", Lower, ALL, "mean of how much later than its deadline a job ends, 0 if in time, over jobs that have one";
    TardinessMax, "tardiness-max", "s", Lower, ALL, "largest tardiness";
    MapUse, "map-use", "%", Neither, ALL, "used part of the capacity for maps, from the first arrival to the last end; live: slots that held a map, of those that may";
    ShuffleUse, "shuffle-use", "%", Neither, NOT_SLOTTED, "used part of the network, likewise; live: workers that something was on its way to";
    ReduceUse, "reduce-use", "%", Neither, NOT_FLUID, "used part of the capacity for reduces, likewise; live: slots that held a reduce, of those that may";
    FreeSlots, "free-slots", "slots", Neither, LIVE, "mean number of free slots while any job was there";
    Suspensions, "suspensions", "", Neither, LIVE, "times that an attempt was suspended";
    Suspended, "suspended", "s", Neither, LIVE, "time for which attempts were suspended, all together";
    SlotCpu, "slot-cpu", "%", Neither, LIVE, "time on a processor, of the time for which slots were held";
    SlotPaced, "slot-paced", "%", Neither, LIVE, "time in which attempts were made to wait because their slot is slow, likewise";
    SlotWaiting, "slot-waiting", "%", Neither, LIVE, "the rest of that time: asleep, or waiting for bytes, a disk or a processor";
    Overcommitted, "overcommitted", "%", Lower, LIVE, "time with more working slots than cores";
    OthersBusy, "others-busy", "%", Lower, LIVE, "time of the cores that others than the slots used, master and workers themselves too";
    Lateness, "lateness", "ms", Lower, LIVE, "how much later than planned the latest job was submitted, beside the most punctual one";
    WastedAttempts, "wasted-attempts", "", Lower, LIVE, "attempts that failed or were lost, and maps that ran again";
}

impl Metric {
    /// Returns its index in tables by metric.
    #[must_use]
    pub fn index(self) -> usize {
        self as usize
    }

    /// Returns its name.
    #[must_use]
    pub fn name(self) -> &'static str {
        self.declaration().name
    }

    /// True if it depends on the times of jobs alone.
    #[must_use]
    pub fn needs_alone(self) -> bool {
        matches!(self, Metric::Slowdown | Metric::SlowdownP99 | Metric::SlowdownMax | Metric::Fairness)
    }

    /// True if this system can measure it.
    #[must_use]
    pub fn is_of(self, system: System) -> bool {
        self.declaration().systems.contains(&system)
    }

    /// Returns the metric of this name, if this system can measure it.
    ///
    /// # Errors
    /// An unknown metric, or one that this system cannot measure.
    pub fn named(name: &str, system: System) -> Result<Metric, MetricError> {
        let metric = Metric::ALL.iter().find(|metric| metric.name() == name);
        match metric {
            Some(metric) if metric.is_of(system) => Ok(*metric),
            _ => Err(MetricError { name: name.to_owned(), system, elsewhere: metric.copied() }),
        }
    }
}

impl fmt::Display for Metric {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.name())
    }
}

/// Serialized as its name, also as a key.
impl Serialize for Metric {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        serializer.serialize_str(self.name())
    }
}

/// Metric that does not exist or cannot be measured here.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct MetricError {
    /// Given name.
    pub name: String,
    /// System for which it was requested.
    pub system: System,
    /// Metric of that name, if other systems can measure it.
    pub elsewhere: Option<Metric>,
}

impl fmt::Display for MetricError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Self { name, system, elsewhere } = self;
        let metrics = Metric::ALL.iter().filter(|metric| metric.is_of(*system));
        let names: Vec<&str> = metrics.map(|metric| metric.name()).collect();
        if let Some(metric) = elsewhere {
            let others: Vec<String> = metric.declaration().systems.iter().map(|one| one.words()).collect();
            return write!(
                f,
                "metric `{name}` is measured by {}, not by {}; There is {}",
                others.join(", "),
                system.words(),
                names.join(", ")
            );
        }
        write!(f, "there is no metric `{name}`; {}", listed(name, &names))
    }
}

impl std::error::Error for MetricError {}

#[cfg(test)]
mod tests {
    use super::*;
    use std::collections::BTreeSet;

    #[test]
    fn every_metric_has_a_name_of_its_own_by_which_it_is_found() {
        let names: BTreeSet<&str> = Metric::ALL.iter().map(|metric| metric.name()).collect();
        assert_eq!(names.len(), Metric::ALL.len());
        for (place, &metric) in Metric::ALL.iter().enumerate() {
            assert_eq!(metric.index(), place);
            let well_formed =
                |letter: char| letter.is_ascii_lowercase() || letter.is_ascii_digit() || letter == '-';
            assert!(metric.name().chars().all(well_formed), "{metric}");
            for system in System::ALL {
                assert_eq!(Metric::named(metric.name(), system).is_ok(), metric.is_of(system), "{metric}");
            }
        }
    }

    #[test]
    fn an_unknown_metric_names_the_nearest() {
        let error = Metric::named("flow-p91", System::Fluid).unwrap_err().to_string();
        assert!(
            error.starts_with("there is no metric `flow-p91`; did you mean `flow-p90`? There is jobs, flow,"),
            "{error}"
        );
    }

    #[test]
    fn a_metric_of_another_system_is_refused_and_says_whose_it_is() {
        let error = Metric::named("lateness", System::Fluid).unwrap_err().to_string();
        assert!(
            error.starts_with(
                "metric `lateness` is measured by `lab compare`, not by the fluid model; There is jobs"
            ),
            "{error}"
        );
        assert!(!error.contains("overcommitted"), "{error}");
    }
}
