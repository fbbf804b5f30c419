//! What a person sees while simulations run for more than two seconds: a bar on a terminal, lines elsewhere, each
//! further apart than the last.
//!
//! The clock is here; simulators count only what has ended.

use gristmill_scheduler::sim::cluster::{Observer, TaskRun};
use indicatif::{ProgressBar, ProgressStyle};
use std::io::IsTerminal;
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::mpsc::{self, Receiver, RecvTimeoutError};
use std::thread;
use std::time::{Duration, Instant};

/// Nothing is shown before.
const SHOWN_AFTER: Duration = Duration::from_secs(2);
/// How often a bar is drawn.
const DRAWN_EVERY: Duration = Duration::from_millis(200);

/// What has ended so far, in all runs together.
#[derive(Debug, Default)]
pub struct Steps(AtomicU64);

impl Steps {
    /// So many more have ended.
    pub fn add(&self, steps: u64) {
        self.0.fetch_add(steps, Ordering::Relaxed);
    }

    fn done(&self) -> u64 {
        self.0.load(Ordering::Relaxed)
    }
}

/// Counts the tasks of a simulated cluster.
pub struct Counted<'a> {
    pub steps: &'a Steps,
}

impl Observer for Counted<'_> {
    fn task(&mut self, _: &TaskRun) {
        self.steps.add(1);
    }
}

/// Does this work and shows meanwhile how many of the steps are done. How many there will be is asked for when it is
/// first shown.
pub fn watched<R>(
    steps: &Steps,
    unit: &str,
    expected: impl FnOnce() -> f64 + Send,
    work: impl FnOnce() -> R,
) -> R {
    let start = Instant::now();
    let (end, ended) = mpsc::channel::<()>();
    thread::scope(|scope| {
        scope.spawn(move || show(steps, unit, expected, (start, &ended)));
        let result = work();
        // The other thread ends when this is gone, also where the work panics.
        drop(end);
        result
    })
}

fn show(steps: &Steps, unit: &str, expected: impl FnOnce() -> f64, (start, ended): (Instant, &Receiver<()>)) {
    let goes_on = |pause: Duration| matches!(ended.recv_timeout(pause), Err(RecvTimeoutError::Timeout));
    if !goes_on(SHOWN_AFTER) {
        return;
    }
    let expected = expected();
    let words = || words(steps.done() as f64, expected, unit, start.elapsed());
    if std::io::stderr().is_terminal() {
        let bar = ProgressBar::new(expected.max(1.0) as u64);
        let style = ProgressStyle::with_template("{bar:28.green/black.bright} {msg}");
        bar.set_style(style.unwrap_or_else(|_| ProgressStyle::default_bar()).progress_chars("━━─"));
        while goes_on(DRAWN_EVERY) {
            bar.set_position(steps.done());
            bar.set_message(words());
        }
        return bar.finish_and_clear();
    }
    loop {
        say!("{}", words());
        // Lines for hours are a screen full.
        if !goes_on(start.elapsed() / 2) {
            return;
        }
    }
}

/// How much is done after this time, and how long the rest will take if it goes on like that.
fn words(done: f64, expected: f64, unit: &str, elapsed: Duration) -> String {
    let all = match expected < 1e6 {
        true => format!("{expected}"),
        false => format!("{:.1} million", expected / 1e6),
    };
    if done <= 0.0 || expected <= 0.0 {
        return format!("simulating {all} {unit}, none of which has ended yet");
    }
    // A draw of another seed may have more.
    let part = (done / expected).min(1.0);
    let left = elapsed.as_secs_f64() * (1.0 - part) / part;
    let left = match left {
        minutes if (120.0..7_200.0).contains(&minutes) => format!("{:.0} min", minutes / 60.0),
        hours if 7_200.0 <= hours => format!("{:.0} h", hours / 3_600.0),
        seconds => format!("{seconds:.0} s"),
    };
    format!("simulated {:.0} % of {all} {unit}, about {left} left", 100.0 * part)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn time_left_is_what_the_rest_takes_at_the_pace_so_far() {
        let after = |done: f64, seconds: u64| words(done, 400.0, "tasks", Duration::from_secs(seconds));
        assert_eq!(after(0.0, 9), "simulating 400 tasks, none of which has ended yet");
        assert_eq!(after(100.0, 10), "simulated 25 % of 400 tasks, about 30 s left");
        assert_eq!(after(1.0, 10), "simulated 0 % of 400 tasks, about 67 min left");
        assert_eq!(after(1.0, 100), "simulated 0 % of 400 tasks, about 11 h left");
        assert_eq!(after(401.0, 10), "simulated 100 % of 400 tasks, about 0 s left");
        let millions = words(9e6, 36e6, "tasks", Duration::from_secs(10));
        assert_eq!(millions, "simulated 25 % of 36.0 million tasks, about 30 s left");
    }

    #[test]
    fn work_that_ends_soon_shows_nothing_and_gives_its_result() {
        let steps = Steps::default();
        let never = || unreachable!("asked for before two seconds are over");
        assert_eq!(watched(&steps, "jobs", never, || 7), 7);
    }
}
