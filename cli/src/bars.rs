//! Progress of a running job: live bars on a terminal, one line for each phase elsewhere.

use gristmill_runtime::api::{JobStatus, TaskCounts};
use gristmill_runtime::plural::counted;
use gristmill_scheduler::units::{Bytes, Span};
use indicatif::{MultiProgress, ProgressBar, ProgressStyle};
use std::io::IsTerminal;
use std::time::Duration;

/// Display of a job's progress.
pub enum JobProgress {
    /// Nothing.
    Quiet,
    /// Three bars.
    Bars(Box<Bars>),
    /// A line when a phase ends.
    Lines(PhaseLines),
}

impl JobProgress {
    /// Bars if stderr is a terminal, lines if not.
    pub fn new(quiet: bool) -> Self {
        if quiet {
            JobProgress::Quiet
        } else if std::io::stderr().is_terminal() {
            JobProgress::Bars(Box::new(Bars::new()))
        } else {
            JobProgress::Lines(PhaseLines::default())
        }
    }

    /// Shows a new status.
    pub fn show(&mut self, status: &JobStatus) {
        match self {
            JobProgress::Quiet => {}
            JobProgress::Bars(bars) => bars.show(status),
            JobProgress::Lines(lines) => lines.show(status),
        }
    }

    /// Prints, once, that a job waits because the master has no workers.
    pub fn say_if_no_workers(&mut self, status: &JobStatus, said: &mut bool) {
        if status.workers == 0 && !status.state.ended() && !std::mem::replace(said, true) {
            self.print_line(&format!(
                "{} waits: the master has no workers; start one with `gristmill cluster worker`, on another machine with --join FILE",
                status.job
            ));
        }
    }

    /// Prints a line, above the bars if there are any.
    pub fn print_line(&mut self, words: &str) {
        match self {
            JobProgress::Quiet => {}
            JobProgress::Bars(bars) => {
                let _ = bars.all.println(gristmill_worker::sanitize::lines(words));
            }
            JobProgress::Lines(_) => say!("{words}"),
        }
    }

    /// Removes the bars of a job that has ended.
    pub fn clear(&mut self) {
        if let JobProgress::Bars(bars) = self {
            let _ = bars.all.clear();
        }
    }
}

/// Bars for map, shuffle and reduce.
pub struct Bars {
    all: MultiProgress,
    map: ProgressBar,
    shuffle: ProgressBar,
    reduce: ProgressBar,
}

/// Time after which the forecast of the time left is shown.
const LEFT_AFTER: Duration = Duration::from_secs(2);

/// Unit of the time left that is shown.
const SECOND_NS: u64 = 1_000_000_000;

impl Bars {
    fn new() -> Self {
        let all = MultiProgress::new();
        let bar = |name: &'static str| {
            let bar = all.add(ProgressBar::new(1));
            let style =
                ProgressStyle::with_template("{prefix:>8} {bar:28.green/black.bright} {percent:>3}% {msg}");
            bar.set_style(style.unwrap_or_else(|_| ProgressStyle::default_bar()).progress_chars("━━─"));
            bar.set_prefix(name);
            bar
        };
        let (map, shuffle, reduce) = (bar("map"), bar("shuffle"), bar("reduce"));
        Self { all, map, shuffle, reduce }
    }

    fn show(&mut self, status: &JobStatus) {
        let (left, mapped) = (remaining(status), status.maps.done == status.maps.total);
        let elapsed = status.flow_ns().saturating_sub(status.waiting_ns());
        // Progress counts tasks if there is no input, else bytes read.
        let (read, all) = match status.input_bytes {
            0 => (u64::from(status.maps.done), u64::from(status.maps.total)),
            bytes => (status.input_bytes_read.min(bytes), bytes),
        };
        set(&self.map, read, all, || {
            let rate = if status.input_bytes == 0 { String::new() } else { rate(read, elapsed) };
            format!("{}{rate}{}", tasks(status.maps), if mapped { "" } else { &left })
        });
        if status.reduces.total == 0 {
            self.shuffle.finish_and_clear();
            self.reduce.finish_and_clear();
            return;
        }
        let (got, all) = (status.totals.shuffle_segments.min(status.segments_total), status.segments_total);
        set(&self.shuffle, got, all, || {
            format!("{got}/{all} segments, {} over HTTP", Bytes(status.totals.shuffle_bytes))
        });
        let (done, total) = (u64::from(status.reduces.done), u64::from(status.reduces.total));
        set(&self.reduce, done, total, || {
            format!("{}{}", tasks(status.reduces), if mapped { &left } else { "" })
        });
    }
}

fn tasks(tasks: TaskCounts) -> String {
    format!("{}/{} tasks, {} running", tasks.done, tasks.total, tasks.running)
}

fn set(bar: &ProgressBar, done: u64, total: u64, message: impl Fn() -> String) {
    bar.set_length(total.max(1));
    bar.set_position(done);
    bar.set_message(message());
}

fn rate(bytes: u64, elapsed_ns: u64) -> String {
    if elapsed_ns == 0 {
        return String::new();
    }
    let each_second = bytes as f64 / (elapsed_ns as f64 / 1e9);
    format!(", {}/s", Bytes(each_second as u64))
}

/// Forecast of the time left of a job that runs for longer than a moment.
fn remaining(status: &JobStatus) -> String {
    let shown = Span(LEFT_AFTER.as_nanos() as u64).0 <= status.flow_ns();
    let whole = |left: u64| Span(left - left % SECOND_NS);
    let Some(left) = status.time_left_ns.filter(|_| shown).map(whole) else { return String::new() };
    let interval = status.time_left_interval_ns.map(|ends| ends.map(whole));
    let interval = interval.map_or_else(String::new, |[least, most]| format!(" ({least} to {most})"));
    format!(", about {left} left{interval}")
}

/// One line when a phase ends.
#[derive(Default)]
pub struct PhaseLines {
    started: bool,
    mapped: bool,
    shuffled: bool,
}

impl PhaseLines {
    fn show(&mut self, status: &JobStatus) {
        // The time of the event, not of the message about it.
        let after =
            |at: Option<u64>| Span(at.map_or(status.flow_ns(), |at| at.saturating_sub(status.arrived_ns)));
        if !self.started && status.started_ns.is_some() {
            self.started = true;
            say!(
                "{} {}: {} over {}, {}, {} with {}",
                status.job,
                status.name,
                counted(status.maps.total.into(), "map", "maps"),
                Bytes(status.input_bytes),
                counted(status.reduces.total.into(), "reduce", "reduces"),
                counted(status.workers.into(), "worker", "workers"),
                counted(status.slots.into(), "slot", "slots")
            );
        }
        if !self.mapped && status.maps_done_ns.is_some() && status.maps.done == status.maps.total {
            self.mapped = true;
            say!("{}: maps done after {}", status.job, after(status.maps_done_ns));
        }
        if self.mapped && !self.shuffled && status.shuffle_done_ns.is_some() {
            self.shuffled = true;
            say!("{}: shuffle done after {}", status.job, after(status.shuffle_done_ns));
        }
    }
}
