//! Usual time of tasks of one job and kind, from the last ones that succeeded.
//!
//! Medians are used so that a single slow worker or tiny split has little effect.

use crate::units::{Bytes, Span};

/// Number of recent tasks remembered.
const TASKS_KEPT: usize = 31;

/// Times of recent tasks.
#[derive(Debug, Default, serde::Serialize, serde::Deserialize)]
pub(crate) struct UsualTime {
    /// Time and input bytes of each task; 0 bytes if the input size is unknown.
    tasks: Vec<(Span, Bytes)>,
    /// Number of tasks seen so far.
    count: u32,
}

impl UsualTime {
    pub(crate) fn add(&mut self, took: Span, input: Bytes) {
        let place = self.count as usize % TASKS_KEPT;
        match self.tasks.get_mut(place) {
            Some(task) => *task = (took, input),
            None => self.tasks.push((took, input)),
        }
        self.count = self.count.wrapping_add(1);
    }

    /// Returns the expected time of a task with this input on a typical worker; `None` before `peers_min` tasks have
    /// ended. It is the longer of two estimates: a constant time per task, and a time proportional to the input.
    pub(crate) fn span(&self, input: Bytes, peers_min: u32) -> Option<Span> {
        if self.tasks.is_empty() || self.tasks.len() < peers_min as usize {
            return None;
        }
        let whole = median(self.tasks.iter().map(|(took, _)| took.0 as f64));
        let sized = self.tasks.iter().filter(|(_, bytes)| 0 < bytes.0);
        let by_byte = median(sized.map(|(took, bytes)| took.0 as f64 / bytes.0 as f64));
        Some(Span(whole.max(by_byte * input.0 as f64) as u64))
    }
}

/// Returns the median, the upper of the two middle values for an even count; 0 if empty.
fn median(values: impl Iterator<Item = f64>) -> f64 {
    let mut values: Vec<f64> = values.collect();
    values.sort_unstable_by(f64::total_cmp);
    values.get(values.len() / 2).copied().unwrap_or(0.0)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn usual(tasks: &[(u64, u64)]) -> UsualTime {
        let mut usual = UsualTime::default();
        tasks.iter().for_each(|&(ms, bytes)| usual.add(Span::milliseconds(ms), Bytes(bytes)));
        usual
    }

    #[test]
    fn usual_time_is_not_known_before_some_tasks_have_ended() {
        assert_eq!(usual(&[]).span(Bytes(0), 0), None);
        assert_eq!(usual(&[(100, 10)]).span(Bytes(10), 2), None);
        assert_eq!(usual(&[(100, 10); 2]).span(Bytes(10), 2), Some(Span::milliseconds(100)));
    }

    #[test]
    fn usual_time_heeds_neither_one_slow_task_nor_one_tiny_one() {
        let tasks = [(100, 10), (1_000, 10), (100, 10), (3, 1), (110, 10)];
        assert_eq!(usual(&tasks).span(Bytes(10), 2), Some(Span::milliseconds(100)));
    }

    #[test]
    fn usual_time_of_a_large_task_is_longer() {
        let usual = usual(&[(100, 10), (100, 10), (100, 10)]);
        assert_eq!(usual.span(Bytes(50), 2), Some(Span::milliseconds(500)));
        assert_eq!(
            usual.span(Bytes(1), 2),
            Some(Span::milliseconds(100)),
            "there is more to a task than its input"
        );
    }

    #[test]
    fn usual_time_is_that_of_the_last_tasks() {
        let mut usual = usual(&[(900, 0); 40]);
        (0..40).for_each(|_| usual.add(Span::milliseconds(20), Bytes(0)));
        assert_eq!(usual.span(Bytes(0), 2), Some(Span::milliseconds(20)));
    }
}
