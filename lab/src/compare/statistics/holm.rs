//! Correction for several comparisons on one page. If nothing differs, at most one page in twenty reports
//! a difference.
//!
//! Holm, *A simple sequentially rejective multiple test procedure*, Scandinavian Journal of Statistics 6
//! (1979), with weights (its section 4). Under any dependence, the probability of at least one false
//! rejection is at most [`FALSE_MAX`]. Not here: the computation of the probabilities (`paired`), and
//! words (`difference`).

/// Maximum probability that a page reports at least one false difference.
pub(crate) const FALSE_MAX: f64 = 0.05;

/// Initial share of [`FALSE_MAX`] of the planned comparison, if other comparisons exist. It needs about 7
/// % more repetitions than it would alone, and the others can still be significant where it is not.
pub(crate) const PLANNED_SHARE: f64 = 0.8;

/// Comparison before it is judged.
#[derive(Clone, Copy, PartialEq, Debug)]
pub(super) struct Candidate {
    /// Probability of the observed difference, or a larger one, if nothing differs; `None` without a test.
    pub chance: Option<f64>,
    /// True for the planned comparison.
    pub planned: bool,
}

/// Result for a comparison.
#[derive(Clone, Copy, PartialEq, Debug)]
pub(super) struct Judgement {
    /// Probability below which it is significant. The matching interval has a confidence of 1 minus this.
    pub level: f64,
    /// True if it is significant.
    pub shows: bool,
}

/// Judges comparisons of one page together, in their order. At most one is planned.
pub(super) fn judge(candidates: &[Candidate]) -> Vec<Judgement> {
    let weights = weights(candidates);
    let chance = |place: usize| candidates[place].chance.unwrap_or(1.0);
    let mut order: Vec<usize> = (0..candidates.len()).collect();
    order.sort_by(|&one, &other| {
        (chance(one) / weights[one]).total_cmp(&(chance(other) / weights[other])).then(one.cmp(&other))
    });
    let mut judged = vec![Judgement { level: FALSE_MAX, shows: false }; candidates.len()];
    let mut stopped = false;
    let mut left: f64 = weights.iter().sum();
    for place in order {
        judged[place].level = (FALSE_MAX * weights[place] / left).min(FALSE_MAX);
        let shows = candidates[place].chance.is_some_and(|chance| chance < judged[place].level);
        stopped |= !shows;
        judged[place].shows = !stopped;
        if !stopped {
            left -= weights[place];
        }
    }
    judged
}

/// Returns equal weights, except for the planned comparison.
fn weights(candidates: &[Candidate]) -> Vec<f64> {
    let others = candidates.iter().filter(|candidate| !candidate.planned).count();
    let planned = others < candidates.len();
    let weight = |candidate: &Candidate| match (candidate.planned, planned && 0 < others) {
        (true, true) => PLANNED_SHARE,
        (false, true) => (1.0 - PLANNED_SHARE) / others as f64,
        (_, false) => 1.0 / candidates.len() as f64,
    };
    candidates.iter().map(weight).collect()
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    fn open(chance: f64) -> Candidate {
        Candidate { chance: Some(chance), planned: false }
    }

    fn planned(chance: f64) -> Candidate {
        Candidate { chance: Some(chance), planned: true }
    }

    fn shown(candidates: &[Candidate]) -> Vec<bool> {
        judge(candidates).into_iter().map(|judged| judged.shows).collect()
    }

    #[test]
    fn single_comparison_is_judged_at_five_percent_planned_or_not() {
        for one in [open, planned] {
            assert_eq!(shown(&[one(0.049)]), [true]);
            assert_eq!(shown(&[one(0.05)]), [false]);
        }
        assert_eq!(shown(&[Candidate { chance: None, planned: true }]), [false]);
        assert!(judge(&[]).is_empty());
    }

    #[test]
    fn smallest_of_five_must_pass_a_fifth_and_the_next_a_fourth() {
        // 5 % over 5, 4, 3, 2, 1.
        assert_eq!(shown(&[0.011, 0.011, 0.011, 0.011, 0.011].map(open)), [false; 5]);
        assert_eq!(shown(&[0.2, 0.009, 0.012, 0.02, 0.3].map(open)), [false, true, true, false, false]);
        assert_eq!(shown(&[0.009, 0.012, 0.016, 0.024, 0.049].map(open)), [true; 5]);
    }

    #[test]
    fn comparison_after_the_first_that_shows_nothing_shows_nothing_however_small() {
        // The second fails its 0.0125, so the third is not significant though it passes 5 % over 3.
        assert_eq!(shown(&[0.009, 0.013, 0.0135, 0.9, 0.9].map(open)), [true, false, false, false, false]);
    }

    #[test]
    fn planned_comparison_has_four_fifths_and_the_others_share_one() {
        assert_eq!(shown(&[planned(0.039), open(0.2), open(0.2)]), [true, false, false]);
        assert_eq!(shown(&[planned(0.041), open(0.2), open(0.2)]), [false; 3]);
        // The others have half a percent each while the planned one is not significant, and all five once
        // it is.
        assert_eq!(shown(&[planned(0.5), open(0.006), open(0.2)]), [false; 3]);
        assert_eq!(shown(&[planned(0.5), open(0.004), open(0.2)]), [false, true, false]);
        assert_eq!(shown(&[planned(0.01), open(0.024), open(0.2)]), [true, true, false]);
        assert_eq!(shown(&[planned(0.01), open(0.026), open(0.2)]), [true, false, false]);
        // The planned one has all five once the others are significant.
        assert_eq!(shown(&[planned(0.049), open(0.001), open(0.001)]), [true; 3]);
    }

    proptest! {
        #[test]
        fn level_agrees_with_what_is_shown(chances in prop::collection::vec(0.0..0.2_f64, 1..12), plan in any::<bool>()) {
            let mut candidates: Vec<Candidate> = chances.iter().map(|&chance| open(chance)).collect();
            candidates[0].planned = plan;
            for (judged, candidate) in judge(&candidates).iter().zip(&candidates) {
                prop_assert!(judged.level <= FALSE_MAX);
                prop_assert_eq!(judged.shows, candidate.chance.unwrap() < judged.level);
            }
        }

        #[test]
        fn all_that_shows_shows_also_without_any_correction(chances in prop::collection::vec(0.0..0.2_f64, 1..12)) {
            let candidates: Vec<Candidate> = chances.iter().map(|&chance| open(chance)).collect();
            for (judged, candidate) in judge(&candidates).iter().zip(&candidates) {
                prop_assert!(!judged.shows || candidate.chance.unwrap() < FALSE_MAX);
            }
        }
    }
}
