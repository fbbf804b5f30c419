//! Workloads of the ASRPT paper (section VII): Poisson arrivals in slots, sizes in whole units, in four settings.
//!
//! The paper does not define how a job's reduce work is split into tasks ("up to 10"), which matters when reduces keep
//! their machine. So there are three ways to split. Arrivals and sizes of a seed do not depend on the way.

use gristmill_scheduler::catalogue::{ArgumentError, Arguments, Entry, Parameter};
use gristmill_scheduler::station::PerStation;
use gristmill_scheduler::workload::{Generator, Job};
use rand::{RngExt, SeedableRng, seq};
use rand_chacha::ChaCha8Rng;
use rand_distr::{Distribution, Exp, Poisson};

/// Machines of the paper's data centre.
pub const MACHINES: u32 = 100;

/// Mean number of jobs per slot.
pub const RATE: f64 = 2.0;

/// Number of slots in which jobs arrive.
pub const SLOTS: u32 = 500;

/// Maximum number of reduces of a job.
pub const REDUCES_MAX: u64 = 10;

/// Maximum number of slots in which jobs arrive, in generated workloads.
const SLOTS_MAX: u32 = 100_000_000;

/// Maximum mean number of jobs per slot.
const RATE_MAX: f64 = 1e6;

/// Distribution of the units of a job at a station.
#[derive(Clone, Copy, PartialEq, Debug)]
pub enum Units {
    /// Exponential with this mean, rounded to an integer, at least 1.
    Exponential(f64),
    /// Every integer from the first to the second, equally likely.
    Uniform(u64, u64),
}

impl Units {
    /// Returns the mean, without the rounding of exponential sizes.
    #[must_use]
    pub fn mean(self) -> f64 {
        match self {
            Units::Exponential(mean) => mean,
            Units::Uniform(least, most) => (least + most) as f64 / 2.0,
        }
    }

    fn draw(self, random: &mut ChaCha8Rng) -> u64 {
        match self {
            Units::Exponential(mean) => {
                let draw =
                    Exp::new(1.0 / mean).expect("the means of the settings are above 0").sample(random);
                (draw.round() as u64).max(1)
            }
            Units::Uniform(least, most) => random.random_range(least..=most),
        }
    }
}

/// Distributions of the sizes of jobs.
#[derive(Clone, Copy, PartialEq, Debug)]
#[allow(missing_docs, reason = "the names of some fields say all there is to say")]
pub struct AsrptSetting {
    /// Its name, as in `asrpt:setting=exp-large`.
    pub name: &'static str,
    /// Title as in the paper.
    pub title: &'static str,
    pub maps: Units,
    pub reduces: Units,
}

/// Settings of the paper, in the order of figures 5 to 8.
pub const SETTINGS: [AsrptSetting; 4] = [
    AsrptSetting::new(
        "exp-large",
        "Exp(5) map, Exp(40) reduce",
        [Units::Exponential(5.0), Units::Exponential(40.0)],
    ),
    AsrptSetting::new(
        "exp-small",
        "Exp(30) map, Exp(15) reduce",
        [Units::Exponential(30.0), Units::Exponential(15.0)],
    ),
    AsrptSetting::new(
        "uniform-large",
        "U[1,9] map, U[10,70] reduce",
        [Units::Uniform(1, 9), Units::Uniform(10, 70)],
    ),
    AsrptSetting::new(
        "uniform-small",
        "U[10,50] map, U[10,20] reduce",
        [Units::Uniform(10, 50), Units::Uniform(10, 20)],
    ),
];

impl AsrptSetting {
    const fn new(name: &'static str, title: &'static str, [maps, reduces]: [Units; 2]) -> Self {
        Self { name, title, maps, reduces }
    }
}

/// Division of the reduce work of a job into tasks, each of at least one unit.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum AsrptCut {
    /// Up to ten tasks, each number equally likely, as equal as whole units allow.
    Even,
    /// Up to ten tasks, each number equally likely, cut at random places.
    Random,
    /// Ten tasks, or one per unit if there are fewer units, as equal as whole units allow.
    Ten,
}

impl AsrptCut {
    /// All ways to split.
    pub const ALL: [AsrptCut; 3] = [AsrptCut::Even, AsrptCut::Random, AsrptCut::Ten];

    /// Returns its name, as in `asrpt:cut=even`.
    #[must_use]
    pub fn name(self) -> &'static str {
        ["even", "random", "ten"][self as usize]
    }

    fn lengths(self, units: u64, random: &mut ChaCha8Rng) -> Vec<f64> {
        let most = REDUCES_MAX.min(units);
        let count = if self == AsrptCut::Ten { most } else { random.random_range(1..=most) };
        let mut ends: Vec<u64> = match self {
            AsrptCut::Even | AsrptCut::Ten => {
                (1..=count).map(|task| (task * units).div_ceil(count)).collect()
            }
            AsrptCut::Random => {
                // Cuts are between units, so that no task is empty.
                let places = seq::index::sample(random, units as usize - 1, count as usize - 1);
                places.into_iter().map(|place| place as u64 + 1).chain([units]).collect()
            }
        };
        ends.sort_unstable();
        let starts = [0].into_iter().chain(ends.iter().copied());
        ends.iter().zip(starts).map(|(end, start)| (end - start) as f64).collect()
    }
}

/// Arrivals of jobs of one setting.
#[derive(Clone, Copy, PartialEq, Debug)]
pub struct AsrptArrivals {
    /// Setting of the sizes.
    pub setting: AsrptSetting,
    /// Division of reduces into tasks.
    pub cut: AsrptCut,
    /// Mean number of jobs per slot; above 0 and at most a million.
    pub rate: f64,
    /// Number of slots in which jobs arrive.
    pub slots: u32,
}

impl AsrptArrivals {
    /// Creates the arrivals of the paper.
    #[must_use]
    pub fn new(setting: AsrptSetting, cut: AsrptCut) -> Self {
        Self { setting, cut, rate: RATE, slots: SLOTS }
    }

    /// Returns the work that arrives per slot and machine; below 1 there is a steady state. Ignores the rounding of
    /// exponential sizes.
    #[must_use]
    pub fn load(&self, machines: u32) -> f64 {
        self.rate * (self.setting.maps.mean() + self.setting.reduces.mean()) / f64::from(machines)
    }
}

impl Generator for AsrptArrivals {
    /// # Panics
    /// If the rate is out of range.
    fn jobs(&self, seed: u64) -> Box<dyn Iterator<Item = Job> + Send + '_> {
        assert!(0.0 < self.rate && self.rate <= RATE_MAX, "{} jobs in a slot", self.rate);
        let poisson = Poisson::new(self.rate).expect("a rate in range");
        let mut sizes = ChaCha8Rng::seed_from_u64(seed);
        let mut cuts = ChaCha8Rng::seed_from_u64(seed);
        cuts.set_stream(1);
        let slots = (0..self.slots).flat_map(move |slot| {
            let jobs: f64 = poisson.sample(&mut sizes);
            let sizes: Vec<[u64; 2]> = (0..jobs as u64)
                .map(|_| [self.setting.maps.draw(&mut sizes), self.setting.reduces.draw(&mut sizes)])
                .collect();
            sizes.into_iter().map(move |sizes| (slot, sizes))
        });
        Box::new(slots.map(move |(slot, [maps, reduces])| Job {
            arrival: f64::from(slot),
            work: PerStation::new(maps as f64, 0.0, reduces as f64),
            maps: vec![1.0; maps as usize],
            reduces: self.cut.lengths(reduces, &mut cuts),
            ..Job::default()
        }))
    }
}

/// Catalogue entry of the generator.
pub(super) const ENTRY: Entry<dyn Generator> = Entry {
    name: "asrpt",
    aliases: &[],
    paper: "ASRPT VII",
    summary: "Poisson arrivals of jobs of whole units, for the slotted model",
    parameters: &[
        Parameter {
            name: "setting",
            default: "exp-large",
            meaning: "sizes: exp-large, exp-small, uniform-large or uniform-small, of the reduce work",
        },
        Parameter { name: "cut", default: "even", meaning: "how reduce work is cut: even, random or ten" },
        Parameter { name: "rate", default: "2", meaning: "jobs in a slot, on average" },
        Parameter { name: "slots", default: "500", meaning: "slots in which jobs arrive" },
    ],
    only_simulated: None,
    starts_program: false,
    make,
};

fn make(arguments: &mut Arguments<'_>) -> Result<Box<dyn Generator>, ArgumentError> {
    let setting = SETTINGS[arguments.choice("setting", &SETTINGS.map(|setting| setting.name))?];
    let cut = AsrptCut::ALL[arguments.choice("cut", &AsrptCut::ALL.map(AsrptCut::name))?];
    let rate = arguments
        .value("rate", RATE, "a number above 0, at most 1e6", |rate| 0.0 < rate && rate <= RATE_MAX)?;
    let slots = arguments
        .value("slots", SLOTS, "a whole number from 1 to 1e8", |slots| (1..=SLOTS_MAX).contains(&slots))?;
    Ok(Box::new(AsrptArrivals { setting, cut, rate, slots }))
}

#[cfg(test)]
mod tests {
    use super::*;
    use gristmill_scheduler::station::Station;

    fn jobs(setting: usize, cut: AsrptCut, seed: u64) -> Vec<Job> {
        AsrptArrivals::new(SETTINGS[setting], cut).jobs(seed).collect()
    }

    #[test]
    fn a_seed_gives_the_same_jobs_and_every_cut_cuts_the_same() {
        for setting in 0..4 {
            let even = jobs(setting, AsrptCut::Even, 7);
            assert_eq!(even, jobs(setting, AsrptCut::Even, 7));
            assert_ne!(even, jobs(setting, AsrptCut::Even, 8));
            for cut in [AsrptCut::Random, AsrptCut::Ten] {
                let other = jobs(setting, cut, 7);
                let sizes = |jobs: &[Job]| jobs.iter().map(|job| (job.arrival, job.work)).collect::<Vec<_>>();
                assert_eq!(sizes(&even), sizes(&other));
            }
        }
    }

    #[test]
    fn reduces_are_whole_units_and_add_up() {
        for cut in AsrptCut::ALL {
            for job in jobs(0, cut, 1).into_iter().chain(jobs(3, cut, 1)) {
                let most = 10.0_f64.min(job.work[Station::Reduce]);
                assert!(job.reduces.iter().all(|units| 1.0 <= *units && units.fract() == 0.0), "{job:?}");
                assert_eq!(job.reduces.iter().sum::<f64>(), job.work[Station::Reduce]);
                assert!(job.reduces.len() as f64 <= most);
                let spread = job.reduces.iter().fold(0.0_f64, |most, &units| most.max(units))
                    - job.reduces.iter().fold(f64::INFINITY, |least, &units| least.min(units));
                assert!(cut == AsrptCut::Random || spread <= 1.0);
                assert!(cut != AsrptCut::Ten || job.reduces.len() as f64 == most);
            }
        }
    }

    #[test]
    fn sizes_and_arrivals_have_the_means_of_the_paper() {
        for setting in SETTINGS {
            let long = AsrptArrivals { slots: 20_000, ..AsrptArrivals::new(setting, AsrptCut::Ten) };
            let jobs: Vec<Job> = long.jobs(3).collect();
            let mean =
                |station: Station| jobs.iter().map(|job| job.work[station]).sum::<f64>() / jobs.len() as f64;
            let near = |value: f64, wanted: f64| (value / wanted - 1.0).abs() < 0.03;
            assert!(near(jobs.len() as f64, 40_000.0), "{} jobs", jobs.len());
            assert!(
                near(mean(Station::Map), setting.maps.mean()),
                "{} maps in {}",
                mean(Station::Map),
                setting.name
            );
            assert!(
                near(mean(Station::Reduce), setting.reduces.mean()),
                "{} reduces in {}",
                mean(Station::Reduce),
                setting.name
            );
            assert!((0.89..=0.9).contains(&AsrptArrivals::new(setting, AsrptCut::Ten).load(MACHINES)));
        }
    }

    #[test]
    fn it_is_called_by_name_and_refuses_what_makes_no_sense() {
        let make = |text: &str| {
            gristmill_scheduler::catalogue::call(&[&ENTRY], "workload", text).map(|made| made.jobs(1).count())
        };
        assert!(
            make("asrpt:setting=uniform-small,cut=ten,rate=1,slots=10")
                .is_ok_and(|count| (1..50).contains(&count))
        );
        for wrong in ["rate=0", "rate=nan", "slots=0", "cut=odd", "setting=exp"] {
            assert!(make(&format!("asrpt:{wrong}")).is_err(), "{wrong}");
        }
    }
}
