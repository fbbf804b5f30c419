//! Buffers of ended tasks, reused by later ones of the same kind.
//!
//! Recently used memory is far cheaper than new memory, which the kernel has to clear page by page. A task
//! holds at most one such buffer, within what its slot may collect, and takes over or frees one at its start.
//! So running tasks and kept buffers together never exceed the worker's slots.

use std::any::Any;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

/// Kept buffers of a worker. Clones share them.
#[derive(Clone, Debug, Default)]
pub struct Recycler(Arc<Mutex<Vec<Box<dyn Any + Send>>>>);

impl Recycler {
    fn kept(&self) -> MutexGuard<'_, Vec<Box<dyn Any + Send>>> {
        // A push or a removal that panics leaves a well-formed list.
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Returns a kept buffer of this type. Without one, a buffer of another type is freed.
    pub(crate) fn take<T: Any + Send>(&self) -> Option<T> {
        let mut kept = self.kept();
        let found = kept.iter().rposition(|buffer| buffer.is::<T>());
        let buffer = match found {
            Some(at) => Some(kept.swap_remove(at)),
            None => kept.pop(),
        };
        drop(kept); // memory is given back outside the lock
        buffer?.downcast().ok().map(|buffer| *buffer)
    }

    /// Keeps a buffer for the next task.
    pub(crate) fn keep<T: Any + Send>(&self, buffer: T) {
        self.kept().push(Box::new(buffer));
    }

    /// Frees all buffers, because no task is expected soon.
    pub fn clear(&self) {
        let kept = std::mem::take(&mut *self.kept());
        drop(kept);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn recycler_gives_each_buffer_once_and_frees_one_of_another_type_instead() {
        let recycler = Recycler::default();
        assert_eq!(recycler.take::<Vec<u8>>(), None);
        recycler.keep(vec![1u8]);
        recycler.keep(vec![2u64]);
        assert_eq!(recycler.take::<Vec<u8>>(), Some(vec![1]));
        assert_eq!(recycler.take::<Vec<u8>>(), None);
        assert_eq!(recycler.take::<Vec<u64>>(), None, "it was freed when bytes were asked for");
        recycler.keep(vec![3u8]);
        recycler.clear();
        assert_eq!(recycler.take::<Vec<u8>>(), None);
    }
}
