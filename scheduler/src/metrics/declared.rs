//! Every metric, declared once: name, unit, meaning, and which way is better.

use crate::catalogue::nearest;
use std::fmt;
use std::str::FromStr;

/// Which way is better.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Better {
    /// Less.
    Lower,
    /// More.
    Higher,
    /// Neither; it describes.
    Neither,
}

/// What a metric is called and means.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Declaration {
    /// As in `--metrics` and in JSON.
    pub name: &'static str,
    /// `s`, `jobs`, or empty for a ratio. In the fluid and slotted models a second is their unit of time.
    pub unit: &'static str,
    /// Which way is better.
    pub better: Better,
    /// In one line.
    pub meaning: &'static str,
}

macro_rules! metrics {
    ($($metric:ident, $name:literal, $unit:literal, $better:ident, $meaning:literal;)*) => {
        /// Something measured of a simulation or of a live run.
        #[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Debug)]
        pub enum Metric {
            $(#[doc = $meaning] $metric,)*
        }

        impl Metric {
            /// All metrics, in the order of tables.
            pub const ALL: &'static [Metric] = &[$(Metric::$metric,)*];

            /// What it is called and means.
            #[must_use]
            pub fn declaration(self) -> Declaration {
                match self {
                    $(Metric::$metric => Declaration {
                        name: $name,
                        unit: $unit,
                        better: Better::$better,
                        meaning: $meaning,
                    },)*
                }
            }
        }
    };
}

metrics! {
    Jobs, "jobs", "jobs", Neither, "jobs that ended";
    Flow, "flow", "s", Lower, "mean flow time: from the arrival of a job to its end";
    FlowTotal, "flow-total", "s", Lower, "sum of the flow times of all jobs";
    FlowMedian, "flow-p50", "s", Lower, "flow time that half the jobs do not exceed, within 0.4 %";
    FlowP90, "flow-p90", "s", Lower, "flow time that 90 % of the jobs do not exceed, within 0.4 %";
    FlowP99, "flow-p99", "s", Lower, "flow time that 99 % of the jobs do not exceed, within 0.4 %";
    FlowLargest, "flow-max", "s", Lower, "largest flow time";
    Waiting, "waiting", "s", Lower, "mean time from the arrival of a job until it is first given anything";
    Execution, "execution", "s", Lower, "mean time from when a job is first given anything to its end";
    MapSojourn, "mst", "s", Lower, "mean sojourn time of the maps of a job, from its arrival to the end of its last map (MST)";
    Makespan, "makespan", "s", Lower, "from the first arrival to the end of the last job";
    Slowdown, "slowdown", "", Lower, "mean of flow time / time that the job takes alone on the whole system";
    Fairness, "fairness", "", Higher, "Jain's index of the slowdowns: 1 if all jobs are slowed down alike";
    Efficiency, "efficiency-ratio", "", Lower, "total flow time / a total that no schedule can beat";
    DeadlinesMet, "goals-met", "", Higher, "part of the jobs with a goal that end by it";
    Tardiness, "tardiness", "s", Lower, "mean of how much later than its goal a job ends, 0 if in time";
    TardinessLargest, "tardiness-max", "s", Lower, "largest tardiness";
    MapUtilisation, "map-use", "", Neither, "part of the map capacity used, from the first arrival to the last end";
    ShuffleUtilisation, "shuffle-use", "", Neither, "part of the network used, from the first arrival to the last end";
    ReduceUtilisation, "reduce-use", "", Neither, "part of the reduce capacity used, from the first arrival to the last end";
}

impl Metric {
    /// The place in tables by metric.
    #[must_use]
    pub fn index(self) -> usize {
        self as usize
    }

    /// Its name.
    #[must_use]
    pub fn name(self) -> &'static str {
        self.declaration().name
    }
}

impl fmt::Display for Metric {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.name())
    }
}

/// A metric that there is not.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct MetricError {
    /// As given.
    pub name: String,
}

impl fmt::Display for MetricError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let names: Vec<&str> = Metric::ALL.iter().map(|metric| metric.name()).collect();
        write!(f, "there is no metric `{}`; ", self.name)?;
        if let Some(near) = nearest(&self.name, names.iter().copied()) {
            write!(f, "did you mean `{near}`? ")?;
        }
        write!(f, "There is {}", names.join(", "))
    }
}

impl std::error::Error for MetricError {}

impl FromStr for Metric {
    type Err = MetricError;

    fn from_str(name: &str) -> Result<Self, MetricError> {
        let metric = Metric::ALL.iter().find(|metric| metric.name() == name);
        metric.copied().ok_or_else(|| MetricError { name: name.to_owned() })
    }
}

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
            assert_eq!(metric.name().parse(), Ok(metric));
        }
    }

    #[test]
    fn an_unknown_metric_names_the_nearest() {
        let error = "flow-p9".parse::<Metric>().unwrap_err().to_string();
        assert!(
            error.starts_with("there is no metric `flow-p9`; did you mean `flow-p90`? There is jobs, flow,"),
            "{error}"
        );
    }
}
