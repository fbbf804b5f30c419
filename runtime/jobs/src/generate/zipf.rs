//! Draws ranks by Zipf's law in constant time, with Walker's alias method in integers.
//!
//! The weight of rank `r` (from 1) is `max(1, round(2^32 / r^exponent))`. Rounding to integers removes the last bits of
//! the power function, which differ between mathematical libraries. Everything after that is exact. With `n` ranks of
//! total weight `W`, each of the `n` columns has room for `W`. It holds `n * weight` of its own rank up to its
//! threshold and one other rank above it.

use super::chunks::Draws;

/// Weight of the first rank.
const UNIT: f64 = 4_294_967_296.0;

/// The tables of one law.
pub(super) struct Zipf {
    total: u64,
    columns: Vec<AliasColumn>,
}

struct AliasColumn {
    /// Below it the column's own rank is drawn. `0..=total`.
    threshold: u64,
    other: u32,
}

impl Zipf {
    /// Builds the tables. `ranks` is in `1..=2^24` and `exponent` in `0..=10`, so that `ranks * total` stays below
    /// 2^80.
    pub(super) fn new(ranks: u32, exponent: f64) -> Self {
        let ranks = ranks.max(1);
        let weight = |rank: u32| ((UNIT / f64::from(rank).powf(exponent)).round() as u64).max(1);
        let weights: Vec<u64> = (1..=ranks).map(weight).collect();
        let total: u64 = weights.iter().sum();
        let mut rest: Vec<u128> =
            weights.iter().map(|weight| u128::from(*weight) * u128::from(ranks)).collect();
        let mut columns: Vec<AliasColumn> =
            (0..ranks).map(|rank| AliasColumn { threshold: total, other: rank }).collect();
        let room = u128::from(total);
        let (mut poor, mut rich): (Vec<u32>, Vec<u32>) =
            (0..ranks).rev().partition(|rank| rest[*rank as usize] < room);
        while let (Some(taker), Some(giver)) = (poor.pop(), rich.last().copied()) {
            let own = rest[taker as usize];
            columns[taker as usize] = AliasColumn { threshold: own as u64, other: giver };
            rest[giver as usize] -= room - own;
            if rest[giver as usize] < room {
                rich.pop();
                poor.push(giver);
            }
        }
        Self { total, columns }
    }

    /// Draws a rank from 0. One random number chooses both the column (by its upper bits) and the place in it.
    pub(super) fn draw(&self, draws: &mut Draws) -> u32 {
        let place = u128::from(draws.bits()) * self.columns.len() as u128;
        let rank = (place >> 64) as u32;
        let height = ((u128::from(place as u64) * u128::from(self.total)) >> 64) as u64;
        let column = &self.columns[rank as usize];
        if height < column.threshold { rank } else { column.other }
    }

    /// The exact weight of each rank, summed from the columns.
    #[cfg(test)]
    pub(super) fn masses(&self) -> Vec<u128> {
        let mut masses = vec![0_u128; self.columns.len()];
        for (rank, column) in self.columns.iter().enumerate() {
            masses[rank] += u128::from(column.threshold);
            masses[column.other as usize] += u128::from(self.total - column.threshold);
        }
        masses
    }
}
