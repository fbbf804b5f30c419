//! Disks that fill up, fail, are slow or corrupt data, and clocks that jump.

use super::cluster::{Cluster, Fleet, WorkerSpec};
use super::phase::Phase;
use super::row::{Effect, Scene, rows, three};
use super::shim;
use crate::support::data::tool;
use crate::support::{Sandbox, comes_within, is_root, say_skipped, until};
use serde_json::Value;
use std::collections::BTreeSet;
use std::fs::{self, File, OpenOptions};
use std::io::Write;
use std::os::unix::fs::FileExt;
use std::path::{Path, PathBuf};
use std::time::Duration;

rows! {
    /// The spill disk of one worker is full: other workers do its work.
    Disk full_spill_disk_of_one_worker_changes_nothing: ["D01", "D03"]
        at [Spill, ShuffleFromDisk]
        else "nothing is written to a spill disk"
        within 30 s on with_small_disks => fill_disk;
    /// The spill disk of one worker has no inodes left.
    Disk spill_disk_without_inodes_changes_nothing: ["D11"]
        at [Spill, ShuffleFromDisk]
        else "nothing is written to a spill disk"
        within 30 s on with_small_disks => fill_inodes;
    /// One write to a spill file fails.
    Disk write_that_fails_changes_nothing: ["D07"]
        at [Spill]
        else "nothing is written to a spill disk"
        within 30 s on with_shim => fail_write;
    /// Each write to a spill file takes half a second.
    Disk slow_disk_changes_nothing: ["D09"]
        at [Spill]
        else "nothing is written to a spill disk"
        within 60 s on with_shim => slow_writes;
    /// Bits of all map outputs on the disks of all workers change.
    Disk map_outputs_that_change_on_disk_change_nothing: ["D08"]
        at [ShuffleFromDisk]
        else "no map output lies on a disk"
        within 30 s on three => flip_bits_on_disk;
    /// All map outputs on the disks of all workers are truncated to 0 bytes. Their holders must not count as
    /// unreachable.
    Disk map_outputs_that_are_cut_to_nothing_change_nothing: ["D08"]
        at [ShuffleFromDisk]
        else "no map output lies on a disk"
        within 30 s on three => cut_files_on_disk;
    /// The wall clock of all workers jumps by ten years.
    Clock clock_that_jumps_changes_nothing: ["T01", "T02"]
        at [Map, Idle, Spill, Shuffle]
        else "no worker reads its wall clock any more"
        within 20 s on with_shim => jump;
}

/// Time that a process may take to look at its clock after the end of a job.
const MEETING_TIMEOUT: Duration = Duration::from_secs(3);

/// Error number of a device error.
const EIO: u32 = 5;

/// Returns the path of a worker's small disk, as its own processes see it.
pub fn small_disk(sandbox: &Sandbox, worker: usize) -> String {
    sandbox.text(&format!("disk-{worker}"))
}

/// Three workers whose spill directories are small file systems of their own.
fn with_small_disks(sandbox: &Sandbox) -> Result<Fleet, &'static str> {
    small_disks(sandbox, 3).map(Fleet::new)
}

/// The same for this many workers.
pub fn small_disks(sandbox: &Sandbox, workers: usize) -> Result<Vec<WorkerSpec>, &'static str> {
    if !is_root("small disks") || !tool("unshare", "small disks") {
        return Err("needs root and `unshare`");
    }
    let spec = |worker| {
        let disk = small_disk(sandbox, worker);
        fs::create_dir(&disk).unwrap();
        WorkerSpec {
            prepare: Some(format!("mount -t tmpfs -o size=64m,nr_inodes=200 none '{disk}'")),
            flags: ["--spill-dir", &disk, "--disk-reserve", "0"].map(str::to_owned).to_vec(),
            ..WorkerSpec::default()
        }
    };
    Ok((0..workers).map(spec).collect())
}

/// Three workers with the shim preloaded.
fn with_shim(sandbox: &Sandbox) -> Result<Fleet, &'static str> {
    // Every line of a log contains the wall-clock time.
    let log = ("GRISTMILL_LOG".to_owned(), "debug".to_owned());
    let environment = vec![shim::environment(sandbox).ok_or("needs a C compiler")?, log];
    Ok(Fleet::new(vec![WorkerSpec { environment, ..WorkerSpec::default() }; 3]))
}

/// Number of attempts of the disturbed job that ended with this text.
fn incidents(scene: &Scene<'_>, words: &str) -> u64 {
    let status = scene.cluster.standing.job("job-2");
    let incidents = status["incidents"].as_array().unwrap();
    incidents.iter().filter(|incident| incident.as_str().unwrap().contains(words)).count() as u64
}

/// Returns the small disk of the victim, as its process sees it.
fn disk_of_victim(scene: &Scene<'_>) -> PathBuf {
    let victim = scene.victim();
    let seen = small_disk(scene.cluster.sandbox, victim);
    PathBuf::from(format!("/proc/{}/root{seen}", scene.cluster.pid(victim)))
}

/// Fills a disk to its last byte by a file on it.
pub fn fill(filler: &Path) {
    let mut file = File::create(filler).unwrap();
    while file.write_all(&[0; 4096]).is_ok() {}
}

fn fill_disk<'s>(scene: &'s Scene<'s>) -> Effect<'s> {
    fill(&disk_of_victim(scene).join("filler"));
    // The worker fails at writing, or reports before that it has no space.
    Effect::at_least_once(|| {
        incidents(scene, "No space left on device") + incidents(scene, "the spill disks of worker-")
    })
}

fn fill_inodes<'s>(scene: &'s Scene<'s>) -> Effect<'s> {
    let disk = disk_of_victim(scene);
    let full = (0..1000).position(|number| File::create(disk.join(format!("filler-{number}"))).is_err());
    assert!(full.is_some(), "a small disk has room for 1000 files");
    Effect::at_least_once(|| incidents(scene, "No space left on device"))
}

fn token(scene: &Scene<'_>, name: &str) -> PathBuf {
    scene.cluster.sandbox.path("faults").join(name)
}

fn fail_write<'s>(scene: &'s Scene<'s>) -> Effect<'s> {
    let path = token(scene, "shim.write.1");
    fs::write(&path, format!("{EIO} .spill")).unwrap();
    Effect::once_if(move || !path.exists())
}

/// Returns true if a lasting token was met by now or is met within a moment; removes both files.
fn was_met(token: &Path) -> bool {
    let hit = token.with_added_extension("hit");
    let met = comes_within(MEETING_TIMEOUT, || hit.exists());
    fs::remove_file(token).unwrap();
    met && fs::remove_file(hit).is_ok()
}

fn slow_writes<'s>(scene: &'s Scene<'s>) -> Effect<'s> {
    let path = token(scene, "shim.slow");
    fs::write(&path, "500 .spill").unwrap();
    Effect::once_if(move || was_met(&path))
}

pub fn jump<'s>(scene: &'s Scene<'s>) -> Effect<'s> {
    let path = token(scene, "shim.clock");
    fs::write(&path, "315360000").unwrap();
    Effect::once_if(move || was_met(&path))
}

/// Returns all spill files below a directory.
fn spill_files(directory: &Path) -> Vec<PathBuf> {
    let mut found = Vec::new();
    // A directory may be removed meanwhile.
    for path in fs::read_dir(directory).into_iter().flatten().flatten().map(|entry| entry.path()) {
        if path.is_dir() {
            found.extend(spill_files(&path));
        } else if path.extension().is_some_and(|extension| extension == "spill") {
            found.push(path);
        }
    }
    found
}

/// Flips one bit in the middle of each spill file below a directory that still exists. Returns the number of
/// files changed.
pub fn flip_bits(directory: &Path) -> u64 {
    let mut flipped = 0;
    for path in spill_files(directory) {
        let Ok(file) = OpenOptions::new().read(true).write(true).open(path) else { continue };
        let (middle, mut byte) = (file.metadata().unwrap().len() / 2, [0]);
        if file.read_at(&mut byte, middle).unwrap() == 1 {
            file.write_all_at(&[byte[0] ^ 1], middle).unwrap();
            flipped += 1;
        }
    }
    flipped
}

fn cut_files_on_disk<'s>(scene: &'s Scene<'s>) -> Effect<'s> {
    let files = spill_files(&scene.cluster.sandbox.path("tmp"));
    let cut =
        |path: &PathBuf| OpenOptions::new().write(true).open(path).and_then(|file| file.set_len(0)).is_ok();
    let cut = files.iter().filter(|path| cut(path)).count();
    assert!(0 < cut, "no map output lies on a disk");
    // No route counts as cut. A route that fails twice would.
    Effect::at_least_once(move || {
        let blamed = incidents(scene, "do not reach each other");
        assert_eq!(blamed, 0, "ways are blamed for a disk");
        scene.cluster.standing.job("job-2")["attempts"]["maps_rerun"].as_u64().unwrap()
    })
}

fn flip_bits_on_disk<'s>(scene: &'s Scene<'s>) -> Effect<'s> {
    flip_bits(&scene.cluster.sandbox.path("tmp"));
    // Proven by the maps that run again.
    Effect::at_least_once(|| scene.cluster.standing.job("job-2")["attempts"]["maps_rerun"].as_u64().unwrap())
}

/// Runs a job of twelve maps and returns the workers that ran its attempts.
fn ran_on(cluster: &Cluster<'_>, number: u32) -> BTreeSet<String> {
    let sandbox = cluster.sandbox;
    let mut job = Phase::Map.job(sandbox);
    job.extend(["--output".to_owned(), sandbox.text(&format!("out-{number}"))]);
    sandbox.gristmill(job.iter().map(String::as_str)).finish().expect_code(0);
    let (code, trace) = cluster.standing.request("GET", &format!("jobs/job-{number}/trace"), "");
    assert_eq!(code, 200, "{trace}");
    let trace: Value = serde_json::from_str(&trace).unwrap();
    let attempts = trace["attempts"].as_array().unwrap();
    attempts.iter().map(|attempt| attempt["worker"].to_string()).collect()
}

#[test]
fn worker_whose_spill_disk_is_full_gets_nothing_new_until_there_is_room() {
    let sandbox = Sandbox::new();
    let workers = match small_disks(&sandbox, 2) {
        Ok(workers) => workers,
        Err(why) => return say_skipped("a full spill disk", why),
    };
    let fleet = Fleet::new(workers);
    let cluster = Cluster::start(&sandbox, &fleet);
    let is_full = || {
        let said = sandbox.gristmill(["status"]).finish().expect_code(0).stdout_text();
        said.lines().any(|line| line.contains("worker-1 (disk full)"))
    };
    let seen = small_disk(&sandbox, 0);
    let filler = PathBuf::from(format!("/proc/{}/root{seen}/filler", cluster.pid(0)));
    fill(&filler);
    until("a worker whose disk is full", || is_full().then_some(()));
    let log = cluster.standing.master.stderr();
    assert!(log.contains("the spill disks of worker-1 are full: 0 B are free"), "{log}");
    assert_eq!(ran_on(&cluster, 1), ["2".to_owned()].into());
    fs::remove_file(&filler).unwrap();
    until("a worker whose disk has room", || (!is_full()).then_some(()));
    assert_eq!(ran_on(&cluster, 2), ["1", "2"].map(str::to_owned).into());
    assert_eq!(cluster.end(), Vec::<String>::new());
}
