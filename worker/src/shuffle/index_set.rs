//! Set of small numbers: of the maps whose segments a home has.

/// Set of numbers with one bit for each.
#[derive(Clone)]
pub(super) struct IndexSet {
    words: Vec<u64>,
    count: u32,
}

impl IndexSet {
    pub(super) fn new(count: u32) -> Self {
        Self { words: vec![0; count.div_ceil(64) as usize], count }
    }

    pub(super) fn grow(&mut self, count: u32) {
        self.words.resize(count.div_ceil(64) as usize, 0);
        self.count = count;
    }

    pub(super) fn get(&self, number: u32) -> Option<bool> {
        (number < self.count).then(|| self.words[number as usize / 64] >> (number % 64) & 1 == 1)
    }

    /// Sets a bit. Returns true if it is in range and was not set.
    pub(super) fn set(&mut self, number: u32) -> bool {
        let news = self.get(number) == Some(false);
        if news {
            self.words[number as usize / 64] |= 1 << (number % 64);
        }
        news
    }

    /// Clears a bit. Returns true if it was set.
    pub(super) fn clear(&mut self, number: u32) -> bool {
        let was = self.get(number) == Some(true);
        if was {
            self.words[number as usize / 64] &= !(1 << (number % 64));
        }
        was
    }

    /// Returns the numbers whose bit is set, ascending.
    pub(super) fn iter(&self) -> impl Iterator<Item = u32> {
        self.words.iter().zip((0..).step_by(64)).flat_map(|(word, first)| {
            let mut rest = *word;
            std::iter::from_fn(move || {
                let bit = (rest != 0).then(|| rest.trailing_zeros())?;
                rest &= rest - 1;
                Some(first + bit)
            })
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_number_costs_a_bit_and_is_there_once_it_was_set() {
        let mut set = IndexSet::new(1000);
        assert_eq!(set.words.len(), 16);
        assert!(set.set(64) && !set.set(64) && !set.set(1000));
        set.grow(1001);
        assert!(set.set(1000) && set.get(999) == Some(false) && set.get(1001).is_none());
        assert_eq!(set.iter().collect::<Vec<_>>(), [64, 1000]);
        assert!(set.clear(64) && !set.clear(64));
    }
}
