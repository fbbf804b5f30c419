//! Runs independent simulations on several threads. The results do not depend on their number.
//!
//! Not here: the simulations.

use std::num::NonZero;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::mpsc;
use std::thread;

/// Calls `run` for every item, on as many threads as the machine has processors, and returns the results
/// in the order of the items. A panic in one of them continues in the caller.
pub fn each<T: Sync, R: Send>(items: &[T], run: impl Fn(&T) -> R + Sync) -> Vec<R> {
    let threads = thread::available_parallelism().map_or(1, NonZero::get).min(items.len().max(1));
    let next = AtomicUsize::new(0);
    let (sender, receiver) = mpsc::channel();
    let work = |sender: mpsc::Sender<(usize, R)>| {
        loop {
            let index = next.fetch_add(1, Ordering::Relaxed);
            let Some(item) = items.get(index) else { break };
            // The receiver outlives the scope.
            let _ = sender.send((index, run(item)));
        }
    };
    thread::scope(|scope| {
        for _ in 1..threads {
            let sender = sender.clone();
            // The existing threads do the work of a thread that the system refuses.
            let _ = thread::Builder::new().spawn_scoped(scope, || work(sender));
        }
        work(sender.clone());
    });
    drop(sender);
    let mut results: Vec<(usize, R)> = receiver.into_iter().collect();
    results.sort_unstable_by_key(|&(index, _)| index);
    results.into_iter().map(|(_, result)| result).collect()
}

#[cfg(test)]
mod tests {
    use super::each;

    #[test]
    fn results_come_in_the_order_of_the_items() {
        let items: Vec<u64> = (0..1000).collect();
        assert_eq!(each(&items, |item| item * 2), items.iter().map(|item| item * 2).collect::<Vec<_>>());
        assert_eq!(each(&[0_u64; 0], |item| *item), [0; 0]);
    }
}
