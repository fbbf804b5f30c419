//! What worker processes are made to be: their slots, how fast those are, what their network carries.
//!
//! Shared by `run`, whose workers are its own, and by `worker`. Not here: how many workers there are (`flags`), and how
//! a worker keeps to it.

use super::settings::Settings;
use super::usage;
use crate::rate::parse_rate;
use clap::Args;
use gristmill_worker::protocol::SLOTS_MAX;
use serde::Deserialize;
use std::num::NonZeroU64;

/// Speeds that can be given.
const SPEEDS_MAX: usize = 1000;

/// The slowest slots: a second of work takes 1,000 s.
const SPEED_MIN: f64 = 0.001;

/// Slots, speed and network of workers, as typed.
#[derive(Args, Clone, Debug, Default)]
pub struct ShapeFlags {
    /// Slots of each worker [default: 1, so that user code that aborts harms no other attempt]
    #[arg(long, global = true, value_name = "N")]
    pub slots: Option<u32>,
    /// Slots of each worker that only maps use, with --reduce-slots
    #[arg(long, global = true, value_name = "N")]
    pub map_slots: Option<u32>,
    /// Slots of each worker that only reduces use, with --map-slots
    #[arg(long, global = true, value_name = "N")]
    pub reduce_slots: Option<u32>,
    /// Slow the workers' slots down: 0.5 takes twice as long; a list such as 1,0.5 is for the workers in turn
    #[arg(long, global = true, value_name = "S,...")]
    pub speed: Option<String>,
    /// Slow each worker's shuffle down, in and out: 50MB/s, 64MiB/s, 400Mbit/s
    #[arg(long, global = true, value_name = "RATE")]
    pub nic_rate: Option<String>,
}

/// The same, with the settings file and the defaults.
#[derive(Clone, PartialEq, Debug)]
pub struct Shape {
    /// Slots for both kinds, unless there are pools.
    pub slots: u32,
    /// Slots for maps and for reduces.
    pub pools: Option<(u32, u32)>,
    /// Worker by worker; empty: as fast as they can.
    pub speeds: Vec<f64>,
    /// Bytes in a second, in each direction.
    pub nic_bytes_per_second: Option<NonZeroU64>,
}

/// Speeds in the settings file: one number or a list.
#[derive(Clone, PartialEq, Debug, Deserialize)]
#[serde(untagged)]
pub enum SpeedSetting {
    /// For all workers.
    All(f64),
    /// For the workers in turn.
    InTurn(Vec<f64>),
}

impl ShapeFlags {
    /// What workers are made to be.
    ///
    /// # Errors
    /// Numbers that make no worker.
    pub fn shape(&self, settings: &Settings) -> anyhow::Result<Shape> {
        let (slots, pools) = self.slots(settings)?;
        let speeds = match (&self.speed, &settings.speed) {
            (Some(text), _) => parse_speeds(text)?,
            (None, Some(SpeedSetting::All(speed))) => vec![*speed],
            (None, Some(SpeedSetting::InTurn(speeds))) => speeds.clone(),
            (None, None) => Vec::new(),
        };
        if let Some(speed) = speeds.iter().find(|speed| !(SPEED_MIN..=1.0).contains(*speed)) {
            return Err(usage(format!(
                "--speed {speed} must be from {SPEED_MIN} to 1: workers can be made slower, not faster"
            )));
        }
        if SPEEDS_MAX < speeds.len() {
            return Err(usage(format!("--speed lists {} speeds, more than {SPEEDS_MAX}", speeds.len())));
        }
        let rate = self.nic_rate.as_ref().or(settings.nic_rate.as_ref());
        let rate = rate.map(|text| parse_rate(text).map_err(|error| usage(format!("--nic-rate: {error}"))));
        Ok(Shape { slots, pools, speeds, nic_bytes_per_second: rate.transpose()? })
    }

    /// What was typed hides what the file says of the other kind of slots.
    fn slots(&self, settings: &Settings) -> anyhow::Result<(u32, Option<(u32, u32)>)> {
        let typed_pools = self.map_slots.is_some() || self.reduce_slots.is_some();
        let (slots, map, reduce) = match (self.slots, typed_pools) {
            (Some(slots), true) => (Some(slots), self.map_slots, self.reduce_slots),
            (Some(slots), false) => (Some(slots), None, None),
            (None, true) => {
                let reduce = self.reduce_slots.or(settings.reduce_slots);
                (None, self.map_slots.or(settings.map_slots), reduce)
            }
            (None, false) => (settings.slots, settings.map_slots, settings.reduce_slots),
        };
        let check = |flag: &str, slots: u32| match slots {
            1..=SLOTS_MAX => Ok(slots),
            _ => Err(usage(format!("{flag} {slots} must be from 1 to {SLOTS_MAX}"))),
        };
        match (slots, map, reduce) {
            (slots, None, None) => Ok((check("--slots", slots.unwrap_or(1))?, None)),
            (None, Some(map), Some(reduce)) => {
                let pools = (check("--map-slots", map)?, check("--reduce-slots", reduce)?);
                Ok((pools.0.saturating_add(pools.1), Some(pools)))
            }
            (Some(_), _, _) => Err(usage(
                "slots are either for both kinds, with --slots, or apart, with --map-slots and --reduce-slots"
                    .to_owned(),
            )),
            (None, Some(_), None) => Err(usage("--map-slots needs --reduce-slots beside it".to_owned())),
            (None, None, Some(_)) => Err(usage("--reduce-slots needs --map-slots beside it".to_owned())),
        }
    }
}

fn parse_speeds(text: &str) -> anyhow::Result<Vec<f64>> {
    let parse = |piece: &str| {
        piece.trim().parse::<f64>().map_err(|_| {
            usage(format!(
                "--speed {text}: `{piece}` is not a number; write one such as 0.5, or a list such as 1,0.5"
            ))
        })
    };
    text.split(',').map(parse).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn shape(flags: &ShapeFlags, settings: &str) -> Result<Shape, String> {
        let settings: Settings = toml::from_str(settings).unwrap();
        flags.shape(&settings).map_err(|error| error.to_string())
    }

    fn flags() -> ShapeFlags {
        ShapeFlags::default()
    }

    #[test]
    fn workers_have_one_slot_of_full_speed_and_no_rate_unless_told_otherwise() {
        let expected = Shape { slots: 1, pools: None, speeds: Vec::new(), nic_bytes_per_second: None };
        assert_eq!(shape(&flags(), ""), Ok(expected));
    }

    #[test]
    fn slots_are_for_both_kinds_or_apart() {
        let pools = ShapeFlags { map_slots: Some(2), reduce_slots: Some(1), ..flags() };
        let apart = shape(&pools, "slots = 7").unwrap();
        assert_eq!((apart.slots, apart.pools), (3, Some((2, 1))), "what is typed wins");
        let both = ShapeFlags { slots: Some(4), ..flags() };
        let both = shape(&both, "map-slots = 2\nreduce-slots = 2").unwrap();
        assert_eq!((both.slots, both.pools), (4, None), "what is typed wins");
        let filed = shape(&flags(), "map-slots = 2\nreduce-slots = 3").unwrap();
        assert_eq!(filed.pools, Some((2, 3)));
        let completed =
            shape(&ShapeFlags { map_slots: Some(5), ..flags() }, "map-slots = 2\nreduce-slots = 3");
        assert_eq!(completed.unwrap().pools, Some((5, 3)));
    }

    #[test]
    fn half_a_pair_of_pools_is_refused() {
        for (flags, settings, word) in [
            (ShapeFlags { map_slots: Some(2), ..flags() }, "", "--map-slots needs --reduce-slots"),
            (ShapeFlags { reduce_slots: Some(2), ..flags() }, "", "--reduce-slots needs --map-slots"),
            (ShapeFlags { slots: Some(1), map_slots: Some(1), ..flags() }, "", "either for both kinds"),
            (flags(), "slots = 1\nmap-slots = 2\nreduce-slots = 2", "either for both kinds"),
            (ShapeFlags { map_slots: Some(0), reduce_slots: Some(1), ..flags() }, "", "--map-slots 0"),
            (ShapeFlags { slots: Some(1001), ..flags() }, "", "--slots 1001"),
        ] {
            let error = shape(&flags, settings).unwrap_err();
            assert!(error.contains(word), "{error}");
        }
    }

    #[test]
    fn speeds_are_one_number_or_a_list_above_0_and_at_most_1() {
        let speeds = |text: &str| {
            shape(&ShapeFlags { speed: Some(text.to_owned()), ..flags() }, "speed = 0.25")
                .map(|shape| shape.speeds)
        };
        assert_eq!(speeds("0.8"), Ok(vec![0.8]));
        assert_eq!(speeds("1, 1,0.5,0.5"), Ok(vec![1.0, 1.0, 0.5, 0.5]));
        for text in ["0", "-1", "1.01", "2", "nan", "inf", "", "1,,1", "fast", "0.0001"] {
            let error = speeds(text).unwrap_err();
            assert!(error.contains("--speed"), "{text}: {error}");
        }
        assert_eq!(shape(&flags(), "speed = 0.25").unwrap().speeds, [0.25]);
        assert_eq!(shape(&flags(), "speed = [1, 0.5]").unwrap().speeds, [1.0, 0.5]);
    }

    #[test]
    fn nic_rates_are_read_from_flag_and_file() {
        let rate = |text: &str| {
            let flags = ShapeFlags { nic_rate: Some(text.to_owned()), ..flags() };
            shape(&flags, "nic-rate = '1MB/s'").map(|shape| shape.nic_bytes_per_second.map(NonZeroU64::get))
        };
        assert_eq!(rate("50MB/s"), Ok(Some(50_000_000)));
        assert!(rate("0").unwrap_err().contains("--nic-rate: 0 is not a rate"));
        let filed = shape(&flags(), "nic-rate = '1MB/s'").unwrap();
        assert_eq!(filed.nic_bytes_per_second, NonZeroU64::new(1_000_000));
    }
}
