//! What becomes of a part: built under `_temporary` or near it, published once the master allows it.
//!
//! Not here: what is in it (`task`), the rename itself (`commit`).

use super::slots::{
    Assignment, Destination, Done, Failed, Permit, RunningJob, SlotEvent, SlotSetting, clean,
};
use crate::commit;
use crate::disk;
use crate::fault;
use crate::http::{self, Endpoint, HttpError, Secret};
use crate::output::Output;
use crate::protocol::{FailureClass, Part};
use crate::task::{PartDone, TaskStats};
use hyper::{Method, StatusCode};
use std::fs;
use std::io::Read;
use std::path::{Path, PathBuf};

/// Bytes of a part that are read at once to be sent.
const PART_CHUNK_BYTES: usize = 512 << 10;

/// Such chunks that wait for the socket.
const PART_CHUNKS_AHEAD: usize = 2;

/// The name under which a task's part is published.
fn part_name(assignment: &Assignment) -> String {
    let order = &assignment.job.order;
    let parts = if order.partitions == 0 { order.maps } else { order.partitions };
    commit::part_name(assignment.attempt.task.index, parts)
}

fn destination(job: &RunningJob) -> Result<&Destination, Failed> {
    if let Some(known) = job.destination.get() {
        return Ok(known);
    }
    let directory = job.order.output.to_path();
    let probe = directory.join(commit::TEMPORARY).join(&job.order.output_probe);
    let found = match (probe.exists(), &job.order.submitter) {
        (true, _) => Destination::Shared(directory.to_path_buf()),
        (false, Some(endpoint)) => Destination::Submitter(endpoint.clone()),
        (false, None) => {
            return Err(Failed {
                class: FailureClass::Output,
                message: format!("the output directory {} is not visible here", job.order.output),
            });
        }
    };
    Ok(job.destination.get_or_init(|| found))
}

/// Where an attempt builds its part.
fn built_path(assignment: &Assignment, setting: &SlotSetting) -> Result<PathBuf, Failed> {
    // The probe's name differs from job to job, also between jobs of different masters: an attempt that lingers
    // after its job has ended must not meet one of the next job in the same output directory.
    let name = format!("{}-{}", assignment.job.order.output_probe, assignment.attempt.file_name());
    Ok(match destination(&assignment.job)? {
        Destination::Shared(directory) => directory.join(commit::TEMPORARY).join(name),
        Destination::Submitter(_) => {
            setting.spill.first().join(format!("{}-{name}", assignment.attempt.task.job))
        }
    })
}

pub(super) fn open_output(
    assignment: &Assignment,
    setting: &SlotSetting,
) -> Result<(Output, PathBuf), Failed> {
    let built = built_path(assignment, setting)?;
    // No folder is made for it: if `_temporary` is gone, the job is over and must not come back.
    let output = Output::create(&built).map_err(|source| output_failed(&built, &source))?;
    Ok((output, built))
}

fn output_failed(path: &Path, source: &std::io::Error) -> Failed {
    let remark = disk::remark(path, source).map_or_else(String::new, |remark| format!("; {remark}"));
    Failed {
        class: FailureClass::Output,
        message: clean(&format!("could not write {}: {source}{remark}", path.display())),
    }
}

pub(super) fn finish_part(
    assignment: &Assignment,
    setting: &SlotSetting,
    done: PartDone,
    built: &Path,
    stats: &mut TaskStats,
) -> Result<Done, Failed> {
    *stats = done.stats;
    let name = part_name(assignment);
    let part = Part { name, bytes: done.bytes, records: done.records, crc32c: done.crc32c };
    let job = &assignment.job;
    let shared = matches!(destination(job)?, Destination::Shared(_));
    if job.order.sync && shared {
        let sync = fs::File::open(built).and_then(|file| file.sync_all());
        sync.map_err(|source| output_failed(built, &source))?;
    }
    let _ = setting.events.send(SlotEvent::WantsCommit(assignment.attempt));
    let cancelled =
        || Failed { class: FailureClass::Cancelled, message: "another attempt was preferred".into() };
    let replace = match assignment.permit.recv() {
        Ok(Permit::Granted { replace }) => replace,
        Ok(Permit::Refused) | Err(_) => return Err(cancelled()),
    };
    fault::place("commit.before");
    match destination(job)? {
        Destination::Shared(directory) => {
            let published = directory.join(&part.name);
            commit::publish(built, &published, replace)
                .map_err(|source| output_failed(&published, &source))?;
            if job.order.sync {
                commit::sync_directory(directory).map_err(|source| output_failed(directory, &source))?;
            }
        }
        Destination::Submitter(endpoint) => send_part(assignment, setting, endpoint, built, &part, replace)?,
    }
    fault::place("commit.after");
    Ok(Done::Part(part))
}

/// Sends a part to the attached submitter, which publishes it.
fn send_part(
    assignment: &Assignment,
    setting: &SlotSetting,
    endpoint: &Endpoint,
    built: &Path,
    part: &Part,
    replace: bool,
) -> Result<(), Failed> {
    let key: &Secret = &assignment.job.order.key;
    let path = format!(
        "/parts/{}/{}/{}/{}/{:08x}/{}",
        assignment.attempt.task.job,
        assignment.attempt.file_name(),
        part.name,
        part.bytes,
        part.crc32c,
        u8::from(replace),
    );
    let file = fs::File::open(built).map_err(|source| output_failed(built, &source))?;
    let fault = |message: String| Failed { class: FailureClass::Unreachable, message };
    setting.runtime.block_on(async {
        let (sender, body) = http::stream(PART_CHUNKS_AHEAD);
        let reading = tokio::task::spawn_blocking(move || {
            let mut file = file;
            loop {
                let mut chunk = Vec::with_capacity(PART_CHUNK_BYTES);
                let got = (&mut file).take(PART_CHUNK_BYTES as u64).read_to_end(&mut chunk)?;
                if got == 0 {
                    return sender.finish_blocking();
                }
                sender.send_blocking(chunk.into())?;
            }
        });
        let response = setting.pool.request(endpoint, Some(key), Method::PUT, &path, body).await;
        // Reading ends with the request; its own error shows as a body that breaks off.
        let read = reading.await;
        match response {
            Ok(_) => Ok(()),
            Err(HttpError::Status { status: StatusCode::INSUFFICIENT_STORAGE, message, .. }) => Err(Failed {
                class: FailureClass::Output,
                message: format!("the submitter could not write {}: {message}", part.name),
            }),
            Err(source) => {
                let local = read.ok().and_then(Result::err).map_or_else(String::new, |e| format!(" ({e})"));
                let name = &part.name;
                Err(fault(format!("could not send {name} to the submitter at {endpoint}: {source}{local}")))
            }
        }
    })
}

pub(super) fn remove_built(assignment: &Assignment, setting: &SlotSetting) {
    if assignment.job.destination.get().is_some()
        && let Ok(built) = built_path(assignment, setting)
    {
        // A published part is not there any more. What cannot be removed now goes with `_temporary` at the end of
        // the job.
        let _ = fs::remove_file(built);
    }
}
