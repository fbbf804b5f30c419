//! Publishing small parts, in parts/s (10 Kelem/s are 100 µs a part).
//!
//! Checks that a part costs one rename: some µs, so that a job of thousands of small parts does not wait for its
//! commits. It uses a directory in memory if the system has one: some file systems write a file to disk when it
//! replaces another. The permit of the master is measured by `decision`; building a part and the disk are not included.

use crate::data::SHRINK;
use crate::slow_group;
use criterion::{BatchSize, Criterion, Throughput};
use gristmill::worker::commit::TEMPORARY;
use gristmill::worker::folder::Folder;
use std::fs;
use std::path::Path;
use tempfile::TempDir;

/// Number of parts of the job.
const PARTS: u64 = 128 / SHRINK;
/// Mount point of a file system in memory on most systems.
const MEMORY_FOLDER: &str = "/dev/shm";

/// Runs all benchmarks of this file.
pub fn benches(criterion: &mut Criterion) {
    let mut group = slow_group(criterion, "commit");
    group.throughput(Throughput::Elements(PARTS));
    group.bench_function("new parts", |bencher| {
        bencher.iter_batched(
            built_parts,
            |directory| {
                let output = Folder::open(directory.path()).expect("it was just made");
                let temporary = output.folder(TEMPORARY).expect("it was just made");
                for part in 0..PARTS {
                    let (built, published) = (format!("probe-reduce-{part}.0"), format!("part-{part:05}"));
                    temporary.publish(built, &output, published).expect("the part was just built");
                }
                directory
            },
            BatchSize::PerIteration,
        );
    });
    group.finish();
}

/// Creates an output directory with parts that can be published.
fn built_parts() -> TempDir {
    let in_memory = Path::new(MEMORY_FOLDER);
    let parent = if in_memory.is_dir() { in_memory.to_owned() } else { std::env::temp_dir() };
    let directory = tempfile::tempdir_in(parent).expect("the folder for temporary files can be written");
    let temporary = directory.path().join(TEMPORARY);
    fs::create_dir(&temporary).expect("a folder can be created");
    for part in 0..PARTS {
        let built = temporary.join(format!("probe-reduce-{part}.0"));
        fs::write(built, "word\t1\n").expect("a part can be written");
    }
    directory
}
