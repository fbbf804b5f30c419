//! Building of parts: under `_temporary`, or locally and sent there once the master permits it. For an
//! object store they are uploaded then.
//!
//! A worker publishes nothing. An attempt that is too late, even with an earlier permit, has a file or an
//! object of its own that is ignored.

use super::assignment::{Assignment, Done, Permit, SlotEvent, SlotSetting};
use super::failed::{Destination, Failed};
use super::job::RunningJob;
use super::part_file::PartFile;
use crate::commit;
use crate::descriptors;
use crate::directory::Directory;
use crate::disk;
use crate::error_text::chain;
use crate::fault;
use crate::http::{self, Endpoint, HttpError, Secret};
use crate::input::FileStamp;
use crate::objects::{self, ObjectBucket, ObjectError, ObjectFault, ObjectUrl, attempt_object_name, is_url};
use crate::output::Output;
use crate::protocol::{FailureClass, Part};
use crate::sanitize::message as sanitize;
use crate::task::{PartDone, TaskStats};
use hyper::{Method, StatusCode};
use std::io;
use std::path::Path;
use std::sync::Arc;

/// Maximum bytes of a submitter's response to a part.
const STAMP_BYTES_MAX: usize = 4 << 10;

/// Returns the name under which a task's part is published.
fn part_name(assignment: &Assignment) -> String {
    let order = &assignment.job.order;
    let parts = if order.partitions == 0 { order.maps } else { order.partitions };
    commit::part_name(assignment.attempt.task.index, parts, order.part_format)
}

fn destination(job: &RunningJob) -> Result<&Destination, Failed> {
    if let Some(known) = job.destination.get() {
        return Ok(known);
    }
    let output = job.order.output.to_text();
    if is_url(&output) {
        let reached = ObjectUrl::parse(&output).and_then(|url| Ok((objects::open(&url)?, url)));
        let (bucket, url) = reached.map_err(|error| store_failed(&error))?;
        return Ok(job.destination.get_or_init(|| Destination::Store(bucket, url)));
    }
    let found = match (shared(job), &job.order.submitter) {
        (Ok(temporary), _) => Destination::Shared(Arc::new(temporary)),
        (Err(source), _) if descriptors::are_used_up(&source) => {
            return Err(output_failed(job.order.output.to_path(), &source));
        }
        (Err(_), Some(endpoint)) => Destination::Submitter(endpoint.clone()),
        (Err(error), None) => {
            let message = format!("the output directory {} is not visible here: {error}", job.order.output);
            let class = match error.kind() {
                io::ErrorKind::NotFound => FailureClass::OutputGone,
                _ => FailureClass::Output,
            };
            return Err(Failed { class, message: sanitize(&message) });
        }
    };
    Ok(job.destination.get_or_init(|| found))
}

/// Opens the directory in which parts are built, if this worker sees it and no other user can change its
/// content.
fn shared(job: &RunningJob) -> io::Result<Directory> {
    let directory = Directory::open(job.order.output.to_path())?;
    directory.refuse_foreign(true)?;
    let temporary = directory.directory(commit::TEMPORARY)?;
    temporary.refuse_shared()?;
    temporary.entry_metadata(job.order.output_probe.as_str())?;
    Ok(temporary)
}

impl PartFile {
    fn for_attempt(assignment: &Assignment, setting: &SlotSetting) -> Result<Self, Failed> {
        let name = commit::built_name(&assignment.job.order.output_probe, assignment.attempt);
        let directory = match destination(&assignment.job)? {
            Destination::Shared(temporary) => temporary.clone(),
            Destination::Submitter(_) | Destination::Store(..) => {
                let spill = setting.spill.first();
                let name = format!("{}-{name}", assignment.attempt.task.job);
                let directory = Directory::open(spill).map_err(|source| output_failed(spill, &source))?;
                return Ok(Self { directory: Arc::new(directory), name, in_output: false });
            }
        };
        Ok(Self { directory, name, in_output: true })
    }

    /// Returns the failure of a write. If the directory in the output was found before and is missing
    /// now, it was removed since.
    fn failed(&self, source: &io::Error) -> Failed {
        let failed = output_failed(&self.path(), source);
        match self.in_output && source.kind() == io::ErrorKind::NotFound {
            true => Failed { class: FailureClass::OutputGone, ..failed },
            false => failed,
        }
    }
}

/// Creates the empty file of a part, and the output that writes into it.
pub(super) fn open_output(
    assignment: &Assignment,
    setting: &SlotSetting,
) -> Result<(Output, PartFile), Failed> {
    let built = PartFile::for_attempt(assignment, setting)?;
    let job = assignment.job.clone();
    // No directory is created for it: if `_temporary` is missing, the job is over and must not come back.
    let file = built.create().map_err(|source| built.failed(&source))?;
    let (format, rows) = (job.order.part_format, &job.plan()?.rows);
    let mut output = Output::formatted(built.path(), Box::new(file), format, rows);
    let place = built.clone();
    output.open_named_with(Box::new(move |name| {
        job.named_outputs().insert(name.clone());
        let part = place.named(name);
        part.remove();
        (part.path(), part.create().map(|file| Box::new(file) as Box<dyn io::Write + Send>))
    }));
    Ok((output, built))
}

fn output_failed(path: &Path, source: &std::io::Error) -> Failed {
    let out_of_descriptors = descriptors::are_used_up(source);
    let remark = disk::remark(path, source).map_or_else(String::new, |remark| format!("; {remark}"));
    Failed {
        class: if out_of_descriptors { FailureClass::Worker } else { FailureClass::Output },
        message: sanitize(&format!("could not write {}: {source}{remark}", path.display())),
    }
}

pub(super) fn finish_part(
    assignment: &Assignment,
    setting: &SlotSetting,
    done: PartDone,
    built: &PartFile,
    stats: &mut TaskStats,
) -> Result<Done, Failed> {
    *stats = done.stats.clone();
    let name = part_name(assignment);
    let PartDone { bytes, records, crc32c, named, .. } = done;
    let part = Part { name, bytes, records, crc32c, named };
    let job = &assignment.job;
    job.named_outputs().extend(part.named.iter().map(|named| named.output.clone()));
    let shared = matches!(destination(job)?, Destination::Shared(_));
    if job.order.sync && shared {
        let named = part.named.iter().map(|named| built.named(&named.output));
        for file in std::iter::once(built.clone()).chain(named) {
            let sync = fault::error("part.sync").and_then(|()| file.open()?.sync_all());
            sync.map_err(|source| file.failed(&source))?;
        }
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
            let metadata = built.directory.entry_metadata(&built.name);
            let metadata = metadata.map_err(|source| built.failed(&source))?;
            (FileStamp::from_metadata(&metadata), false)
        }
        Destination::Submitter(endpoint) => {
            (send_parts(assignment, setting, endpoint, built, &part, &permit)?, true)
        }
        Destination::Store(bucket, url) => (upload_parts(assignment, (bucket, url), built, &part)?, true),
    };
    fault::place("commit.after");
    Ok(Done::Part { part, stamp, sent })
}

/// Uploads a part, after those of named outputs. Returns the stamp of its object.
///
/// The closer of the output finds it by the name composed of claim and attempt. Another attempt of this
/// task, and another job that writes there, has other names.
fn upload_parts(
    assignment: &Assignment,
    (bucket, url): (&Arc<dyn ObjectBucket>, &ObjectUrl),
    built: &PartFile,
    part: &Part,
) -> Result<FileStamp, Failed> {
    let order = &assignment.job.order;
    let nonce = commit::nonce_of(&order.output_probe);
    let name = attempt_object_name(&part.name, nonce, assignment.attempt.epoch);
    let upload = |built: &PartFile, key: String, expected| {
        let file = built.open().map_err(|source| output_failed(&built.path(), &source))?;
        bucket.upload(&key, file, expected).map_err(|error| store_failed(&error))
    };
    for named in &part.named {
        let key = url.child_key(&format!("{}/{name}", named.output));
        upload(&built.named(&named.output), key, (named.bytes, named.crc32c))?;
        fault::place("store.uploaded");
    }
    let stamp = upload(built, url.child_key(&name), (part.bytes, part.crc32c))?;
    fault::place("store.uploaded");
    Ok(FileStamp { size: stamp.size, modified_ns: 0, inode: stamp.tag })
}

/// Returns the failure of a store that refused a part.
fn store_failed(error: &ObjectError) -> Failed {
    let class = match error.cause.fault() {
        ObjectFault::Credentials => FailureClass::Credentials,
        ObjectFault::Settings => FailureClass::Config,
        ObjectFault::Machine => FailureClass::Worker,
        ObjectFault::Object | ObjectFault::Route => FailureClass::Output,
    };
    Failed { class, message: sanitize(&chain(error)) }
}

/// Sends a part to the attached submitter, which will publish it, after those of named outputs. Returns
/// the stamp of its file there.
fn send_parts(
    assignment: &Assignment,
    setting: &SlotSetting,
    endpoint: &Endpoint,
    built: &PartFile,
    part: &Part,
    permit: &Secret,
) -> Result<FileStamp, Failed> {
    let path = |bytes, crc: u32| format!("/parts/{}/{bytes}/{crc:08x}", assignment.attempt.file_name());
    for named in &part.named {
        let path = format!("{}/{}", path(named.bytes, named.crc32c), named.output);
        send_file(setting, endpoint, &built.named(&named.output), (&part.name, &path), permit)?;
    }
    send_file(setting, endpoint, built, (&part.name, &path(part.bytes, part.crc32c)), permit)
}

/// Sends one file of a part of this name.
fn send_file(
    setting: &SlotSetting,
    endpoint: &Endpoint,
    built: &PartFile,
    (part, path): (&str, &str),
    permit: &Secret,
) -> Result<FileStamp, Failed> {
    let file = built.open().map_err(|source| output_failed(&built.path(), &source))?;
    let fault = |message: String| Failed { class: FailureClass::Unreachable, message };
    setting.runtime.block_on(async {
        let (reading, body) = http::file_body(file);
        let response = setting.pool.request(endpoint, Some(permit), Method::PUT, path, body).await;
        // Reading ends with the request. Its own error appears as a body that ends early.
        let read = reading.await;
        match response {
            Ok(mut answer) => {
                let body = answer.body_mut().collect(STAMP_BYTES_MAX).await;
                let body = body.map_err(|source| fault(chain(&source)))?;
                serde_json::from_slice(&body).map_err(|error| {
                    fault(format!("the submitter at {endpoint} did not say what it made of {part}: {error}"))
                })
            }
            Err(HttpError::Status {
                status: status @ (StatusCode::INSUFFICIENT_STORAGE | StatusCode::GONE),
                message,
                ..
            }) => Err(Failed {
                class: match status {
                    StatusCode::GONE => FailureClass::OutputGone,
                    _ => FailureClass::Output,
                },
                message: format!("the submitter could not write {part}: {message}"),
            }),
            Err(source) => {
                let local = read.ok().and_then(Result::err).map_or_else(String::new, |e| format!(" ({e})"));
                Err(fault(format!("could not send {part} to the submitter at {endpoint}: {source}{local}")))
            }
        }
    })
}

pub(super) fn remove_built(assignment: &Assignment, setting: &SlotSetting) {
    if assignment.job.destination.get().is_some()
        && let Ok(built) = PartFile::for_attempt(assignment, setting)
    {
        for named in assignment.job.named_outputs().iter() {
            built.named(named).remove();
        }
        built.remove();
    }
}
