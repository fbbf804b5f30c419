//! One random draw per task, from the seed and the task's id alone, so that all policies see the same tasks. Speculative
//! attempts have a draw of their own.

use crate::ids::TaskKind;

/// Returns a number in `[0, 1)` for this task of the job that arrived as the `seq`-th, and its attempt of this number.
pub(super) fn of_task(seed: u64, seq: u64, kind: TaskKind, index: u32, epoch: u32) -> f64 {
    let kind = match kind {
        TaskKind::Map => 0,
        TaskKind::Reduce => 1 << 32,
    };
    let first = mix(mix(mix(seed) ^ seq) ^ (kind | u64::from(index)));
    let bits = if epoch == 0 { first } else { mix(first ^ u64::from(epoch)) };
    // A double below 1 holds 53 bits.
    (bits >> 11) as f64 / (1_u64 << 53) as f64
}

/// Step of the SplitMix64 generator: every input bit affects all output bits.
fn mix(bits: u64) -> u64 {
    let bits = bits.wrapping_add(0x9e37_79b9_7f4a_7c15);
    let bits = (bits ^ bits >> 30).wrapping_mul(0xbf58_476d_1ce4_e5b9);
    let bits = (bits ^ bits >> 27).wrapping_mul(0x94d0_49bb_1331_11eb);
    bits ^ bits >> 31
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn draws_are_even_and_differ_by_seed_job_kind_and_task() {
        let draw =
            |seed, seq, kind| -> Vec<f64> { (0..2_000).map(|i| of_task(seed, seq, kind, i, 0)).collect() };
        let base = draw(1, 0, TaskKind::Map);
        let mean = base.iter().sum::<f64>() / base.len() as f64;
        assert!((mean - 0.5).abs() < 0.03, "mean {mean}");
        assert!(base.iter().all(|x| (0.0..1.0).contains(x)));
        assert_eq!(base, draw(1, 0, TaskKind::Map));
        for other in [draw(2, 0, TaskKind::Map), draw(1, 1, TaskKind::Map), draw(1, 0, TaskKind::Reduce)] {
            let product: f64 = base.iter().zip(&other).map(|(a, b)| (a - 0.5) * (b - 0.5)).sum();
            assert!(product.abs() / 2_000.0 < 0.01, "correlated: {product}");
        }
    }
}
