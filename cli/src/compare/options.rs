//! Options of a comparison, from its flags, the settings file and the workload's `[cluster]`.

use super::flags::CompareFlags;
use crate::flags::{ClusterFlags, MasterFlags, Spread};
use crate::settings::Settings;
use crate::usage::usage;
use clap::parser::ValueSource;
use clap::{ArgMatches, Args, Command, FromArgMatches};
use gristmill_lab::compare::file::WorkloadFile;
use gristmill_lab::compare::{Contender, Options, Site};
use gristmill_runtime::cluster::ClusterConfig;
use gristmill_scheduler::catalogue::split_list;
use gristmill_scheduler::units::Span;
use std::collections::BTreeMap;
use std::ffi::OsString;
use std::num::NonZeroU32;
use std::path::PathBuf;
use std::time::Duration;

pub(super) fn options(
    flags: &CompareFlags,
    settings: &Settings,
    typed: &ArgMatches,
    file: &WorkloadFile,
) -> anyhow::Result<Options> {
    // The journal of each run is written to its directory.
    let settings = Settings { journal: None, ..settings.clone() };
    let cluster = ClusterFlags::from_arg_matches(typed)?;
    if cluster.deciders.journal.is_some() {
        return Err(usage("--journal: every run writes its journal into its own directory".to_owned()));
    }
    let contenders = contenders(&settings, &cluster)?;
    let divided = contenders.iter().find(|contender| contender.divides);
    let site = site(&settings, typed, file, flags.backup, divided)?;
    let limit: Span =
        flags.limit.parse().map_err(|error| usage(format!("--limit {}: {error}", flags.limit)))?;
    let directory =
        || PathBuf::from(format!("compare-{}", gristmill_lab::report::names::slug(&file.workload.name)));
    Ok(Options {
        contenders,
        against: flags.against.clone(),
        repetitions: flags.repeat,
        site,
        directory: flags.out.clone().unwrap_or_else(directory),
        resume: flags.resume,
        warm_up: !flags.no_warm_up,
        at_once: NonZeroU32::MIN,
        others_max: None,
        calibrate: !flags.no_calibration,
        isolated: flags.isolated,
        sync: flags.sync,
        run_limit: Duration::from_nanos(limit.0),
    })
}

/// Fresh clusters, or the one of a named master.
fn site(
    settings: &Settings,
    typed: &ArgMatches,
    file: &WorkloadFile,
    backups: bool,
    divided: Option<&Contender>,
) -> anyhow::Result<Site> {
    let master = MasterFlags::from_arg_matches(typed)?;
    if master.master.is_none() && master.join.is_none() {
        let config = merged(typed, file)?.config(settings, Spread::Apart)?;
        return Ok(Site::Embedded(ClusterConfig { backups, ..config }));
    }
    if backups {
        return Err(usage("--backup is for fresh clusters; the given one has its own setting".to_owned()));
    }
    if let Some(Contender { name, .. }) = divided {
        return Err(usage(format!("`{name}` is for fresh clusters; --divide of the given master decides")));
    }
    if let Some(flag) = shape_flags(typed).into_keys().next() {
        return Err(usage(format!("--{flag} is for fresh clusters; the given one has its shape")));
    }
    Ok(Site::Given(master.join_line(settings)?))
}

/// Every policy with every placement.
fn contenders(settings: &Settings, cluster: &ClusterFlags) -> anyhow::Result<Vec<Contender>> {
    let list = |text: Option<&String>| text.map(|text| split_list(text)).unwrap_or_default();
    let policies = list(cluster.deciders.policy.as_ref().or(settings.policy.as_ref()));
    if policies.is_empty() {
        return Err(usage("name the policies to compare, such as --policy fifo,fair".to_owned()));
    }
    let mut placements = list(cluster.deciders.placement.as_ref().or(settings.placement.as_ref()));
    if placements.is_empty() {
        placements.push("pull".to_owned());
    }
    let several = 1 < placements.len();
    let contenders = policies.iter().flat_map(|policy| {
        placements.iter().map(move |placement| {
            let name = if several { format!("{policy} on {placement}") } else { policy.clone() };
            Contender::new(name, policy, placement)
        })
    });
    Ok(contenders.collect())
}

/// Flags on the command line about the shape of the cluster: names and values.
fn shape_flags(typed: &ArgMatches) -> BTreeMap<String, Vec<OsString>> {
    let known = ClusterFlags::augment_args(Command::new("cluster"));
    let shape = known
        .get_arguments()
        .filter(|flag| !["policy", "placement", "journal", "no_backup"].contains(&flag.get_id().as_str()));
    let mut found = BTreeMap::new();
    for flag in shape {
        let id = flag.get_id().as_str();
        let given = typed.value_source(id) == Some(ValueSource::CommandLine);
        if let (true, Some(long), Some(values)) = (given, flag.get_long(), typed.get_raw(id)) {
            found.insert(long.to_owned(), values.map(OsString::from).collect());
        }
    }
    found
}

/// The workload's cluster, overridden by the command line.
fn merged(typed: &ArgMatches, file: &WorkloadFile) -> anyhow::Result<ClusterFlags> {
    let mut flags: BTreeMap<String, Vec<OsString>> = BTreeMap::new();
    let typed = shape_flags(typed);
    // Slots by kind and slots for both exclude each other, so typed ones replace all.
    let slots = ["slots", "map-slots", "reduce-slots"];
    let new_slots = slots.iter().any(|flag| typed.contains_key(*flag));
    for (key, value) in &file.cluster {
        if !(new_slots && slots.contains(key)) {
            flags.insert((*key).to_owned(), vec![value.into()]);
        }
    }
    flags.extend(typed);
    let arguments = flags.into_iter().flat_map(|(flag, values)| {
        values.into_iter().map(move |value| {
            let mut argument = OsString::from(format!("--{flag}="));
            argument.push(value);
            argument
        })
    });
    let command = ClusterFlags::augment_args(Command::new("[cluster]").no_binary_name(true));
    Ok(ClusterFlags::from_arg_matches(&command.try_get_matches_from(arguments)?)?)
}
