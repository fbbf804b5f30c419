//! What becomes of a part: built under `_temporary`, or here and sent there once the master allows it.
//!
//! A worker publishes nothing. An attempt that comes to late, whatever it was once allowed to do, has a file of its own
//! that nobody looks at. Not here: what is in a part (`task`), publishing (whoever closes the output).

use super::slots::{
    Assignment, Destination, Done, Failed, Permit, RunningJob, SlotEvent, SlotSetting, clean,
};
use crate::commit;
use crate::descriptors;
use crate::disk;
use crate::fault;
use crate::http::{self, Endpoint, HttpError, Secret};
use crate::input::FileStamp;
use crate::output::Output;
use crate::protocol::{FailureClass, Part};
use crate::task::{PartDone, TaskStats};
use hyper::{Method, StatusCode};
use std::fs;
use std::io::Read;
use std::path::{Path, PathBuf};

/// Bytes of a part that are read at once to be sent.
const PART_CHUNK_BYTES: usize = 512 << 10;

/// Longest answer of a submitter to a part, bytes.
const STAMP_BYTES_MAX: usize = 4 << 10;

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
    let name = commit::built_name(&assignment.job.order.output_probe, assignment.attempt);
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
    let output = fault::error("part.write").and_then(|()| Output::create(&built));
    let output = output.map_err(|source| output_failed(&built, &source))?;
    Ok((output, built))
}

fn output_failed(path: &Path, source: &std::io::Error) -> Failed {
    let own_trouble = descriptors::are_used_up(source);
    let remark = disk::remark(path, source).map_or_else(String::new, |remark| format!("; {remark}"));
    Failed {
        class: if own_trouble { FailureClass::Worker } else { FailureClass::Output },
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
        let sync = fault::error("part.sync").and_then(|()| fs::File::open(built)?.sync_all());
        sync.map_err(|source| output_failed(built, &source))?;
    }
    let _ = setting.events.send(SlotEvent::WantsCommit(assignment.attempt));
    let cancelled =
        || Failed { class: FailureClass::Cancelled, message: "another attempt was preferred".into() };
    let permit = match assignment.permit.recv() {
        Ok(Permit::Granted(permit)) => permit,
        Ok(Permit::Refused) | Err(_) => return Err(cancelled()),
    };
    fault::place("commit.before");
    let (stamp, sent) = match destination(job)? {
        Destination::Shared(_) => {
            let metadata = fs::metadata(built).map_err(|source| output_failed(built, &source))?;
            (FileStamp::of(&metadata), false)
        }
        Destination::Submitter(endpoint) => {
            (send_part(assignment, setting, endpoint, built, &part, &permit)?, true)
        }
    };
    fault::place("commit.after");
    Ok(Done::Part { part, stamp, sent })
}

/// Sends a part to the attached submitter, which will publish it. Answers what its file is like there.
fn send_part(
    assignment: &Assignment,
    setting: &SlotSetting,
    endpoint: &Endpoint,
    built: &Path,
    part: &Part,
    permit: &Secret,
) -> Result<FileStamp, Failed> {
    let (attempt, bytes, crc) = (assignment.attempt, part.bytes, part.crc32c);
    let path = format!("/parts/{}/{bytes}/{crc:08x}", attempt.file_name());
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
        let response = setting.pool.request(endpoint, Some(permit), Method::PUT, &path, body).await;
        // Reading ends with the request; its own error shows as a body that breaks off.
        let read = reading.await;
        match response {
            Ok(mut answer) => {
                let body = answer.body_mut().collect(STAMP_BYTES_MAX).await;
                let body = body.map_err(|source| fault(super::chain(&source)))?;
                serde_json::from_slice(&body).map_err(|error| {
                    fault(format!(
                        "the submitter at {endpoint} did not say what it made of {}: {error}",
                        part.name
                    ))
                })
            }
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
        // What cannot be removed now goes with `_temporary` at the end of the job.
        let _ = fs::remove_file(built);
    }
}
