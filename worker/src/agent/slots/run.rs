//! One attempt on the thread of its slot, from its launch to its report.

use super::panics::catch_panic;
use crate::agent::assignment::{Assignment, AttemptInput, Done, EndedAttempt, SlotEvent, SlotSetting};
use crate::agent::capture::CaptureMark;
use crate::agent::crash;
use crate::agent::failed::{Failed, failed};
use crate::agent::publish::{finish_part, open_output, remove_built};
use crate::attempt::AttemptContext;
use crate::machine::thread_cpu_ns;
use crate::protocol::{AttemptReport, FailureClass, MemoryUse};
use crate::sanitize::message as sanitize;
use crate::task::{Progress, TaskFailure, TaskStats};
use crate::{fault, task};
use gristmill_scheduler::ids::TaskKind;
use std::borrow::Cow;
use std::sync::Arc;
use std::sync::atomic::Ordering;

pub(super) fn run(assignment: &Assignment, setting: &SlotSetting) {
    let attempt = assignment.attempt;
    crash::runs(Some(attempt));
    let started_ns = setting.epoch.elapsed().as_nanos() as u64;
    let cpu_before = thread_cpu_ns();
    let mut stats = TaskStats::default();
    let result = catch_panic(|| execute(assignment, setting, &mut stats));
    if matches!(result, Ok(Done::Part { sent: true, .. }) | Err(_)) {
        in_engine(&assignment.progress, || remove_built(assignment, setting));
    }
    let progress = &assignment.progress;
    let ended_ns = setting.epoch.elapsed().as_nanos() as u64;
    let report = AttemptReport {
        started_ns,
        ended_ns,
        records_in: progress.records_in.load(Ordering::Relaxed),
        bytes_in: progress.bytes_in.load(Ordering::Relaxed),
        records_out: progress.records_out.load(Ordering::Relaxed),
        bytes_out: progress.bytes_out.load(Ordering::Relaxed),
        spills: progress.spills.load(Ordering::Relaxed),
        spilled_bytes: progress.spilled_bytes.load(Ordering::Relaxed),
        local_bytes: stats.local_bytes,
        counters: stats.counters,
        cpu_ns: thread_cpu_ns().saturating_sub(cpu_before),
        memory: MemoryUse {
            peak_bytes: setting.memory_peak.bytes(ended_ns, attempt.task.kind == TaskKind::Reduce),
            budget_bytes: setting.memory.get(),
            kept_peak_bytes: setting.budget.peak_bytes() as u64,
        },
        paced_ns: progress.paced_ns.load(Ordering::Relaxed),
        suspended_ns: progress.suspended_ns.load(Ordering::Relaxed),
        suspensions: progress.suspensions.load(Ordering::Relaxed),
        bad_records: progress.left_out(),
    };
    let written = setting.written.as_ref().map_or(0, CaptureMark::now);
    crash::runs(None);
    // Fails only if the process is ending, as the loop outlives its slots otherwise.
    let _ =
        setting.events.send(SlotEvent::Ended(Box::new(EndedAttempt { attempt, result, report, written })));
}

/// Executes an attempt, except for reporting its result.
fn execute(assignment: &Assignment, setting: &SlotSetting, stats: &mut TaskStats) -> Result<Done, Failed> {
    let job = &assignment.job;
    let plan = job.plan()?;
    let progress = &assignment.progress;
    let settings = match assignment.alone {
        true => Cow::Owned(job.settings.in_less_memory()),
        false => Cow::Borrowed(&job.settings),
    };
    let context = AttemptContext {
        attempt: assignment.attempt,
        side: job.side.clone(),
        settings: &settings,
        budget: &setting.budget,
        progress,
    };
    match &assignment.input {
        AttemptInput::Split(split) if !plan.is_map_only() => {
            fault::place("map");
            let done =
                task::run_map(plan, context, split, &*job.files).map_err(|failure| failed(&failure))?;
            progress.settle();
            *stats = done.stats;
            Ok(Done::Output(done.output))
        }
        AttemptInput::Split(split) => {
            let (output, built) = in_engine(progress, || open_output(assignment, setting))?;
            let done = task::run_map_only(plan, &context, split, &*job.files, output)
                .map_err(|failure| failed(&failure))?;
            progress.settle();
            in_engine(progress, || finish_part(assignment, setting, done, &built, stats))
        }
        AttemptInput::Segments(held, part) => {
            fault::place("reduce");
            let (output, built) = in_engine(progress, || open_output(assignment, setting))?;
            let segments = held.iter().map(|held| held.data.clone()).collect();
            let done = task::run_reduce(plan, context, segments, output, part.clone())
                .map_err(|failure| in_engine(progress, || unread(assignment, setting, &failure)))?;
            progress.settle();
            in_engine(progress, || finish_part(assignment, setting, done, &built, stats))
        }
    }
}

/// Converts the failure of a reduce. Unreadable outputs of this worker are discarded here, because they
/// were not verified since they were written. The maps run again when the segments are requested next.
fn unread(assignment: &Assignment, setting: &SlotSetting, failure: &TaskFailure) -> Failed {
    let mut failed = failed(failure);
    if failed.class == FailureClass::Corrupt {
        let task = assignment.attempt.task;
        for (map, path) in setting.store.drop_unreadable(task.job, task.index) {
            let place = path.map_or_else(|| "memory".to_owned(), |path| path.display().to_string());
            tracing::error!(%task, map, place, "the output of a map is damaged where it is kept; the map runs again");
            let remark = format!("the output of map {map} is damaged on this worker, in {place}");
            failed.message = sanitize(&format!("{}; {remark}", failed.message));
        }
    }
    failed
}

/// Runs file operations before and after user code: a slow disk, or an `fsync` of many bytes, is not a
/// fault of user code.
pub(super) fn in_engine<T>(progress: &Arc<Progress>, work: impl FnOnce() -> T) -> T {
    let _engine = progress.engine();
    work()
}
