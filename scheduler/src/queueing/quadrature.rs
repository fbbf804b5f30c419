//! Adaptive integration by the 7-point Gauss and 15-point Kronrod rules.

/// Nodes of the Kronrod rule on (-1, 1), outermost first; the odd ones are those of the Gauss rule.
const NODES: [f64; 8] = [
    0.991_455_371_120_812_6,
    0.949_107_912_342_758_5,
    0.864_864_423_359_769_1,
    0.741_531_185_599_394_4,
    0.586_087_235_467_691_1,
    0.405_845_151_377_397_2,
    0.207_784_955_007_898_47,
    0.0,
];
const KRONROD: [f64; 8] = [
    0.022_935_322_010_529_224,
    0.063_092_092_629_978_56,
    0.104_790_010_322_250_18,
    0.140_653_259_715_525_92,
    0.169_004_726_639_267_9,
    0.190_350_578_064_785_4,
    0.204_432_940_075_298_89,
    0.209_482_141_084_727_82,
];
const GAUSS: [f64; 4] =
    [0.129_484_966_168_869_7, 0.279_705_391_489_276_64, 0.381_830_050_505_118_9, 0.417_959_183_673_469_4];

/// Maximum number of times that a panel is halved.
const HALVINGS_MAX: u32 = 30;

/// Point at which a function was evaluated, with its weight in the integral.
#[derive(Clone, Copy, Debug)]
pub(crate) struct QuadratureNode {
    pub(crate) at: f64,
    pub(crate) weight: f64,
}

/// Returns the integral from `low` to `high` with an absolute error of about `tolerance`. The points of the final sum
/// are passed to `points`.
pub(crate) fn integrate(
    function: &impl Fn(f64) -> f64,
    low: f64,
    high: f64,
    tolerance: f64,
    points: &mut impl FnMut(QuadratureNode),
) -> f64 {
    panel(function, low, high, tolerance, HALVINGS_MAX, points)
}

fn panel(
    function: &impl Fn(f64) -> f64,
    low: f64,
    high: f64,
    tolerance: f64,
    halvings: u32,
    points: &mut impl FnMut(QuadratureNode),
) -> f64 {
    let (center, half) = (f64::midpoint(low, high), 0.5 * (high - low));
    let (mut kronrod, mut gauss) = (0.0, 0.0);
    for (index, (node, weight)) in NODES.iter().zip(KRONROD).enumerate() {
        let value = if *node == 0.0 {
            function(center)
        } else {
            function(center - half * node) + function(center + half * node)
        };
        kronrod += weight * value;
        if index % 2 == 1 {
            gauss += GAUSS[index / 2] * value;
        }
    }
    let (kronrod, gauss) = (half * kronrod, half * gauss);
    // The difference of the rules is the error of Gauss; that of Kronrod is far smaller, and QUADPACK estimates it like
    // this.
    let (size, difference) = (kronrod.abs(), (kronrod - gauss).abs());
    let error = if 0.0 < size { size * (200.0 * difference / size).powf(1.5).min(1.0) } else { difference };
    let fine = error <= tolerance.max(1e-15 * size);
    if fine || halvings == 0 {
        for (node, weight) in NODES.iter().zip(KRONROD) {
            points(QuadratureNode { at: center - half * node, weight: half * weight });
            if *node != 0.0 {
                points(QuadratureNode { at: center + half * node, weight: half * weight });
            }
        }
        return kronrod;
    }
    let lower = panel(function, low, center, 0.5 * tolerance, halvings - 1, points);
    lower + panel(function, center, high, 0.5 * tolerance, halvings - 1, points)
}
