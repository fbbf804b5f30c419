//! Ends and best orders of small batches that are served in one order, by trying all orders.

/// Returns the ends of the jobs of a batch, served in this order at both stations: `F_i = max(F_(i-1) + y_i, M_i)` with
/// `M_i = M_(i-1) + x_i`, in the given order.
#[must_use]
pub fn completions_in_order(order: &[[f64; 2]]) -> Vec<f64> {
    let (mut maps_end, mut end) = (0.0_f64, 0.0_f64);
    order
        .iter()
        .map(|[map, shuffle]| {
            maps_end += map;
            end = (end + shuffle).max(maps_end);
            end
        })
        .collect()
}

/// Maximum number of jobs whose orders are all tried.
const BATCH_MAX: usize = 9;

/// Returns the smallest total response time and the smallest makespan of a batch over all orders that are the same at
/// both stations; `None` if there are more than `BATCH_MAX` jobs.
#[must_use]
pub fn best_in_order(jobs: &[[f64; 2]]) -> Option<[f64; 2]> {
    fn extend(rest: &mut Vec<[f64; 2]>, state: [f64; 3], best: &mut [f64; 2]) {
        let [maps_end, end, total] = state;
        if rest.is_empty() {
            *best = [best[0].min(total), best[1].min(end)];
        }
        for at in 0..rest.len() {
            let job = rest.swap_remove(at);
            let maps_end = maps_end + job[0];
            let end = (end + job[1]).max(maps_end);
            extend(rest, [maps_end, end, total + end], best);
            rest.push(job);
            let last = rest.len() - 1;
            rest.swap(at, last);
        }
    }
    let mut best = [f64::INFINITY; 2];
    (jobs.len() <= BATCH_MAX).then(|| extend(&mut jobs.to_vec(), [0.0; 3], &mut best))?;
    Some(best)
}

/// Returns all orders of `n` things, lexicographically.
#[must_use]
pub fn orders(n: usize) -> Vec<Vec<usize>> {
    let mut all = vec![Vec::new()];
    for _ in 0..n {
        let longer = |order: &Vec<usize>| {
            let order = order.clone();
            (0..n).filter(move |index| !order.contains(index)).collect::<Vec<_>>()
        };
        all = all
            .iter()
            .flat_map(|order| {
                longer(order).into_iter().map(move |index| [order.as_slice(), &[index]].concat())
            })
            .collect();
    }
    all
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_best_order_is_found_by_trying_all() {
        let jobs = [[3.0, 1.0], [1.0, 4.0], [2.0, 2.0], [5.0, 3.0], [1.0, 1.0]];
        assert_eq!(best_in_order(&jobs).map(|[_, makespan]| makespan), Some(12.0));
        assert_eq!(best_in_order(&[[1.0, 2.0], [3.0, 1.0]]), Some([6.0, 4.0]));
        assert_eq!(completions_in_order(&[[1.0, 2.0], [3.0, 1.0]]), [2.0, 4.0]);
        assert_eq!(best_in_order(&[[1.0, 1.0]; BATCH_MAX + 1]), None);
    }

    #[test]
    fn the_reduction_of_numerical_matching_meets_its_threshold() {
        // One triple of the reduction in the paper's appendix: order F, G, H, E1, E2.
        let order = [[70.0, 71.0], [70.0, 75.0], [70.0, 64.0], [70.0, 700.0], [70.0, 700.0]];
        assert_eq!(completions_in_order(&order).iter().sum::<f64>(), 2947.0);
    }
}
