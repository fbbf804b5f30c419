//! Values of one group, read as the reducer requests them.

use super::tree::LoserTree;
use crate::attempt::{ReadMeter, TaskError, TaskFailure, TaskResult};
use crate::key::{GroupPrefix, Key};
use crate::value::Value;
use std::marker::PhantomData;

/// Values of one group, in the order of the input, or in key order if the job groups by a part of the key.
///
/// This is a stream: values are dropped after they were read, and unread ones are skipped when the reducer returns.
pub struct Values<'a, K: Key, V: Value> {
    source: ValueSource<'a, V>,
    /// First whole key of the group.
    group: &'a [u8],
    /// Length of its prefix that all keys of the group have in common; `None` unless the job groups by a part.
    prefix: Option<usize>,
    place: ValuePlace,
    meter: &'a mut ReadMeter,
    failure: Option<TaskFailure>,
    key: PhantomData<K>,
}

/// Source of values.
pub(crate) enum ValueSource<'a, V> {
    /// One combined value.
    One(Option<V>),
    /// The merge, at the group's first pair, and the rank of that pair.
    Tree(&'a mut LoserTree, u64),
}

/// Position within a group.
#[derive(Clone, Copy, PartialEq, Eq)]
enum ValuePlace {
    /// The first value is available and was not returned.
    First,
    /// The last returned value is that of the current pair.
    Within,
    /// The merge is at the first pair of the next group.
    NextGroup,
    /// There are no more pairs.
    End,
}

impl<'a, K: Key, V: Value> Values<'a, K, V> {
    pub(crate) fn new(
        source: ValueSource<'a, V>,
        group: &'a [u8],
        prefix: Option<GroupPrefix>,
        meter: &'a mut ReadMeter,
    ) -> Self {
        let prefix = prefix.map(|length| length(group));
        Self { source, group, prefix, place: ValuePlace::First, meter, failure: None, key: PhantomData }
    }

    /// Returns the next value; `None` after the last.
    ///
    /// # Errors
    /// A value that does not decode, or input of the merge that cannot be read. The reducer should return it: the task
    /// fails with the original error.
    #[inline]
    #[allow(
        clippy::should_implement_trait,
        reason = "values borrow from the merge, which Iterator cannot say"
    )]
    pub fn next(&mut self) -> TaskResult<Option<V::View<'_>>> {
        match self.step() {
            Ok(true) => {}
            Ok(false) => return Ok(None),
            Err(failure) => return Err(keep(&mut self.failure, failure)),
        }
        match &mut self.source {
            ValueSource::One(value) => Ok(V::view_of(value)),
            ValueSource::Tree(tree, _) => match V::decode(tree.value()) {
                Ok(value) => Ok(Some(value)),
                Err(error) => Err(keep(&mut self.failure, error.into())),
            },
        }
    }

    /// Returns the whole key of the value that was read last, or the group's first key before and after all values.
    ///
    /// # Errors
    /// A key that does not decode.
    pub fn key(&self) -> TaskResult<K::View<'_>> {
        let bytes = match &self.source {
            ValueSource::Tree(tree, _) if self.place == ValuePlace::Within => tree.key(),
            _ => self.group,
        };
        Ok(K::decode(bytes)?)
    }

    /// Returns the remaining values, owned. A failure ends the iteration; the task fails when the reducer returns.
    pub fn iter(&mut self) -> impl Iterator<Item = V> {
        std::iter::from_fn(move || self.next().ok().flatten().map(V::from_view))
    }

    /// Moves to the next value, if there is one.
    #[inline]
    fn step(&mut self) -> Result<bool, TaskFailure> {
        if self.failure.is_some() {
            return Ok(false);
        }
        match self.place {
            ValuePlace::First => self.place = ValuePlace::Within,
            ValuePlace::Within => {
                let ValueSource::Tree(tree, rank) = &mut self.source else {
                    self.place = ValuePlace::End;
                    return Ok(false);
                };
                if !tree.advance()? {
                    self.place = ValuePlace::End;
                    return Ok(false);
                }
                let same = match self.prefix {
                    None => tree.stands_at(self.group, *rank),
                    Some(length) => tree.key().starts_with(&self.group[..length]),
                };
                if !same {
                    self.place = ValuePlace::NextGroup;
                    return Ok(false);
                }
            }
            ValuePlace::NextGroup | ValuePlace::End => return Ok(false),
        }
        // A combined value was counted when its parts were read.
        if let ValueSource::Tree(tree, _) = &self.source {
            self.meter.pair(tree.key().len() + tree.value().len())?;
            if let Some(narrator) = &mut self.meter.narrator {
                narrator.read(tree.map(), tree.key(), tree.value());
            }
        }
        Ok(true)
    }

    /// Skips unread values. Returns true if the merge is at another group.
    pub(crate) fn finish(mut self) -> Result<bool, TaskFailure> {
        if let Some(failure) = self.failure {
            return Err(failure);
        }
        while self.step()? {}
        Ok(self.place == ValuePlace::NextGroup)
    }

    /// Returns the failure that occurred while the reducer read.
    pub(crate) fn failed(&mut self) -> Option<TaskFailure> {
        self.failure.take()
    }
}

/// Keeps a failure for the task and returns an error for the user's code.
#[cold]
fn keep(place: &mut Option<TaskFailure>, failure: TaskFailure) -> TaskError {
    let error = TaskError::new(failure.to_string());
    place.get_or_insert(failure);
    error
}
