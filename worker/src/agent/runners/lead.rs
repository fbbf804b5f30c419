//! A slot leads a runner through one attempt: it sends the input and takes over the result.

use super::link::Heard;
use super::message::{
    LentSegment, RunnerEnd, RunnerInput, RunnerOrder, RunnerProgress, RunnerResult, RunnerTask, RunnerWord,
};
use super::process::{Runner, end};
use super::{LISTEN_TIME, failed};
use crate::agent::assignment::{Assignment, AttemptInput, Done, SlotSetting};
use crate::agent::failed::Failed;
use crate::agent::failed::failed as task_failed;
use crate::agent::publish::{finish_part, make_built};
use crate::agent::slots::ENGINE_TIMEOUT;
use crate::input::FilePath;
use crate::protocol::{FailureClass, ShippedProgram};
use crate::sanitize::message as sanitize;
use crate::segment::{GivenUpOutput, MapOutput, SegmentData, SpillFile};
use crate::shuffle::store::HeldSegment;
use crate::task::{PartDone, TaskStats};
use std::io;
use std::os::unix::process::ExitStatusExt;
use std::process::ExitStatus;
use std::time::{Duration, Instant};

/// Delay of a slot's wake-up that shows a stall of its machine, after which no attempt counts as hanging.
const STALL: Duration = Duration::from_secs(1);

/// Executes an attempt of a shipped job, except for reporting its result.
pub(in crate::agent) fn execute(
    assignment: &Assignment,
    setting: &SlotSetting,
    program: &ShippedProgram,
    stats: &mut TaskStats,
) -> Result<Done, Failed> {
    let progress = &assignment.progress;
    // The runner is watched here, and user code with it.
    let _engine = progress.engine();
    let runners = &setting.runners;
    let file = runners.0.programs.get(program, progress, |sum| runners.is_in_use(sum))?;
    let mut runner = runners.take(program.sum, assignment.attempt.task.job, &file)?;
    let order = &assignment.job.order;
    let makes_part = order.partitions == 0 || matches!(assignment.input, AttemptInput::Segments(_));
    let built = if makes_part { Some(make_built(assignment, setting)?.1) } else { None };
    let (input, loan) = lend(assignment, setting)?;
    let task = RunnerTask {
        attempt: assignment.attempt,
        alone: assignment.alone,
        input,
        output: built.as_ref().map(|built| built.place()),
    };
    let ended = runner.run(task, assignment)?;
    drop(loan);
    *stats = TaskStats { counters: ended.counters, measures: ended.measures, local_bytes: ended.local_bytes };
    progress.ran_elsewhere(ended.cpu_ns, ended.peak_bytes, ended.bad_records);
    let done = match (ended.result, built) {
        (RunnerResult::Failed { class, message }, _) => Err(failed(class, &message)),
        (RunnerResult::Mapped(given), None) => runner.take_over(given, order.partitions).map(Done::Output),
        (RunnerResult::Built(part), Some(built)) => {
            let stats_of_part = std::mem::take(stats);
            let part = PartDone {
                bytes: part.bytes,
                records: part.records,
                crc32c: part.crc32c,
                named: part.named,
                stats: stats_of_part,
            };
            // Other slots may use the runner while this one waits for the permit to publish.
            runners.give_back(runner);
            return finish_part(assignment, setting, part, &built, stats);
        }
        _ => Err(failed(FailureClass::Engine, "its process has made what its kind does not make")),
    };
    if done.is_ok() {
        runners.give_back(runner);
    }
    done
}

/// Returns the attempt's input in a form for another process, and the file with the data that was only in
/// memory.
fn lend(assignment: &Assignment, setting: &SlotSetting) -> Result<(RunnerInput, Option<SpillFile>), Failed> {
    let held = match &assignment.input {
        AttemptInput::Split(split) => return Ok((RunnerInput::Split(split.clone()), None)),
        AttemptInput::Segments(held) => held,
    };
    let unwritable = |source: io::Error| {
        failed(FailureClass::Worker, &format!("its segments could not be handed to its process: {source}"))
    };
    let loan = write_down(held, assignment, setting).map_err(unwritable)?;
    let mut written = 0;
    let mut lent = Vec::with_capacity(held.len());
    for HeldSegment { data, .. } in held.iter().filter(|held| !held.data.is_empty()) {
        let (file, offset, length) = match (data, &loan) {
            (SegmentData::File { file, offset, length }, _) => (&**file, *offset, *length),
            (SegmentData::Memory(bytes), Some(loan)) => {
                let offset = written;
                written += bytes.len() as u64;
                (loan, offset, bytes.len() as u64)
            }
            _ => return Err(failed(FailureClass::Engine, "a segment of a shipped job lies in its input")),
        };
        let path = FilePath::from(file.path());
        lent.push(LentSegment { path, file_bytes: file.length(), offset, length });
    }
    Ok((RunnerInput::Segments(lent), loan))
}

/// Writes the segments in memory one after another.
fn write_down(
    held: &[HeldSegment],
    assignment: &Assignment,
    setting: &SlotSetting,
) -> io::Result<Option<SpillFile>> {
    let in_memory = held.iter().filter_map(|held| match &held.data {
        SegmentData::Memory(bytes) if !bytes.is_empty() => Some(bytes),
        _ => None,
    });
    let mut writer = None;
    for bytes in in_memory {
        let writer = match &mut writer {
            Some(writer) => writer,
            none => none.insert(setting.spill.create(&format!("lent-{}", assignment.attempt.file_name()))?),
        };
        writer.write(bytes)?;
    }
    writer.map(|writer| writer.finish()).transpose()
}

/// Time of the last observed progress of an attempt.
struct LastMove {
    seen: RunnerProgress,
    at: Instant,
    looked: Instant,
}

impl LastMove {
    fn new() -> Self {
        let now = Instant::now();
        Self { seen: RunnerProgress::default(), at: now, looked: now }
    }

    fn note(&mut self, progress: RunnerProgress) {
        if progress != self.seen {
            (self.seen, self.at) = (progress, Instant::now());
        }
    }

    /// Returns the failure if there was no progress for too long.
    fn hangs(&mut self, hang: Duration) -> Option<Failed> {
        let now = Instant::now();
        if STALL < now - std::mem::replace(&mut self.looked, now) {
            self.at = now;
        }
        let limit = if self.seen.engine { hang.max(ENGINE_TIMEOUT) } else { hang };
        if now - self.at <= limit {
            return None;
        }
        let seconds = limit.as_secs_f64();
        Some(match self.seen.engine {
            true => failed(
                FailureClass::Worker,
                &format!("sorting, reading or writing stood still for {seconds} s"),
            ),
            false => failed(FailureClass::Hang, &format!("no record read or written for {seconds} s")),
        })
    }
}

impl Runner {
    /// Runs an attempt to its end. After an error the runner must not be used.
    fn run(&mut self, task: RunnerTask, assignment: &Assignment) -> Result<RunnerEnd, Failed> {
        let (job, progress) = (&assignment.job, &assignment.progress);
        let told = (|| {
            if self.job != Some(job.order.job) {
                self.link.say(&RunnerOrder::Job(Box::new(job.order.clone())))?;
                self.job = Some(job.order.job);
            }
            self.link.say(&RunnerOrder::Run(Box::new(task)))
        })();
        if told.is_err() {
            return Err(self.how_it_died());
        }
        let hang = Duration::from_millis(job.order.hang_ms);
        let mut last = LastMove::new();
        loop {
            match self.link.hear(LISTEN_TIME) {
                Ok(Heard::Frame(RunnerWord::Progress(news))) => {
                    news.show_in(progress);
                    last.note(news);
                }
                Ok(Heard::Frame(RunnerWord::Ended(end))) => {
                    end.progress.show_in(progress);
                    return Ok(*end);
                }
                Ok(Heard::Frame(RunnerWord::Broken { why })) => {
                    let sum = self.sum;
                    let words =
                        format!("the process of program {sum} ended by a mistake of the engine: {why}");
                    return Err(failed(FailureClass::Engine, &words));
                }
                Ok(Heard::Frame(RunnerWord::OverMemory { why })) => {
                    let words = format!("the process of program {} was ended: {}", self.sum, sanitize(&why));
                    return Err(failed(FailureClass::User, &words));
                }
                Ok(Heard::Nothing) => {}
                Ok(Heard::Frame(RunnerWord::Ready { .. })) | Err(_) => {
                    return Err(failed(FailureClass::User, "its process says what makes no sense"));
                }
                Ok(Heard::End) => return Err(self.how_it_died()),
            }
            // Signals that this slot is alive. If cancelled, the process ends with the attempt.
            progress.step().map_err(|failure| task_failed(&failure))?;
            if let Some(hangs) = last.hangs(hang) {
                return Err(hangs);
            }
        }
    }

    fn how_it_died(&self) -> Failed {
        match end(&self.child) {
            Ok(status) => death(self.sum, status),
            Err(error) => failed(FailureClass::Lost, &format!("its process is gone: {error}")),
        }
    }

    /// Takes over a map output in one of the runner's directories.
    fn take_over(&self, given: GivenUpOutput, partitions: u32) -> Result<MapOutput, Failed> {
        let unusable = |source: io::Error| {
            failed(FailureClass::Worker, &format!("the output of its process cannot be used: {source}"))
        };
        let Some(name) = given.name.clone() else {
            return MapOutput::take_over(given, Default::default(), partitions).map_err(unusable);
        };
        let found = self.folders.pairs.iter().find(|(_, inner)| inner.look(&name).is_ok());
        let (outer, inner) = found.ok_or_else(|| unusable(io::ErrorKind::NotFound.into()))?;
        // Names of other runners' files, and of this process's own, are different.
        let ours = format!("{}-{name}", self.folders.name);
        inner.publish(&name, outer, &ours).map_err(unusable)?;
        MapOutput::take_over(given, outer.path(&ours), partitions).map_err(unusable)
    }
}

/// Attributes the end of a process that ran an attempt.
fn death(sum: crate::protocol::ProgramSum, status: ExitStatus) -> Failed {
    const SIGKILL: i32 = rustix::process::Signal::KILL.as_raw();
    let from_outside = status.signal() == Some(SIGKILL);
    let class = if from_outside { FailureClass::Lost } else { FailureClass::User };
    let remark = if from_outside { ", by somebody or for lack of memory" } else { "" };
    failed(class, &format!("the process of program {sum} ended while it ran this: {status}{remark}"))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn process_that_ends_itself_is_user_code_and_one_that_is_killed_is_lost() {
        let sum = crate::protocol::ProgramSumming::default().finish();
        let class = |raw| death(sum, ExitStatus::from_raw(raw)).class;
        assert_eq!(class(9), FailureClass::Lost);
        assert_eq!(class(6), FailureClass::User, "abort");
        assert_eq!(class(11), FailureClass::User, "a wild pointer");
        assert_eq!(class(3 << 8), FailureClass::User, "exit");
        assert_eq!(class(81 << 8), FailureClass::User, "the engine would have said that it was the engine");
    }

    #[test]
    fn attempt_hangs_when_nothing_moves_for_so_long_and_no_sooner() {
        let mut last = LastMove::new();
        let hang = Duration::from_millis(1);
        assert!(last.hangs(Duration::from_secs(60)).is_none());
        last.at -= Duration::from_millis(2);
        assert_eq!(last.hangs(hang).unwrap().class, FailureClass::Hang);
        last.looked -= 2 * STALL;
        assert!(last.hangs(hang).is_none(), "this process itself stood still");
        last.note(RunnerProgress { engine: true, steps: 1, ..RunnerProgress::default() });
        last.at -= Duration::from_millis(2);
        assert!(last.hangs(hang).is_none(), "the engine has longer");
    }
}
