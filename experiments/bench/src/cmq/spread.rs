//! A sample of one quantity, summed up as criterion does.

use serde::Serialize;

/// Mean, median, and how far the values lie apart.
#[derive(Debug, Clone, Copy, PartialEq, Serialize)]
pub(crate) struct Spread {
    /// How many values.
    pub n: usize,
    /// Arithmetic mean.
    pub mean: f64,
    /// Median.
    pub median: f64,
    /// Standard deviation.
    pub deviation: f64,
    /// Median absolute deviation from the median, scaled to a normal distribution's deviation.
    pub mad: f64,
    /// The mean's 95 % confidence interval, by Student's t.
    pub mean_95_low: f64,
    /// Its upper end.
    pub mean_95_high: f64,
    /// The least value.
    pub least: f64,
    /// The greatest.
    pub most: f64,
}

/// Makes a median absolute deviation comparable to a standard deviation.
const MAD_SCALE: f64 = 1.4826;

impl Spread {
    /// Sums up a sample. Returns `None` of no values.
    pub(crate) fn of(values: impl IntoIterator<Item = f64>) -> Option<Self> {
        let mut values: Vec<f64> = values.into_iter().collect();
        values.sort_by(f64::total_cmp);
        let (least, most) = (*values.first()?, *values.last()?);
        let n = values.len();
        let mean = values.iter().sum::<f64>() / n as f64;
        let squares: f64 = values.iter().map(|value| (value - mean).powi(2)).sum();
        let deviation = if n > 1 { (squares / (n - 1) as f64).sqrt() } else { 0.0 };
        let median = middle(&values);
        let mut apart: Vec<f64> = values.iter().map(|value| (value - median).abs()).collect();
        apart.sort_by(f64::total_cmp);
        let half = student_95(n - 1) * deviation / (n as f64).sqrt();
        Some(Self {
            n,
            mean,
            median,
            deviation,
            mad: MAD_SCALE * middle(&apart),
            mean_95_low: mean - half,
            mean_95_high: mean + half,
            least,
            most,
        })
    }
}

/// Returns the median of sorted values.
fn middle(sorted: &[f64]) -> f64 {
    let half = sorted.len() / 2;
    if sorted.len().is_multiple_of(2) {
        f64::midpoint(sorted[half - 1], sorted[half])
    } else {
        sorted[half]
    }
}

/// Returns the 97.5 % quantile of Student's t with so many degrees of freedom: the expansion of
/// Cornish and Fisher, exact to 1 % from three degrees on.
fn student_95(freedom: usize) -> f64 {
    let z: f64 = 1.959_964;
    let f = freedom as f64;
    match freedom {
        0 => 0.0,
        1 => 12.706,
        2 => 4.303,
        _ => {
            z + (z.powi(3) + z) / (4.0 * f)
                + (5.0 * z.powi(5) + 16.0 * z.powi(3) + 3.0 * z) / (96.0 * f.powi(2))
                + (3.0 * z.powi(7) + 19.0 * z.powi(5) + 17.0 * z.powi(3) - 15.0 * z)
                    / (384.0 * f.powi(3))
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_known_sample_gives_its_known_figures() {
        let found = Spread::of([2.0, 4.0, 4.0, 4.0, 5.0, 5.0, 7.0, 9.0]).unwrap();
        assert_eq!((found.n, found.mean, found.median), (8, 5.0, 4.5));
        assert_eq!((found.least, found.most), (2.0, 9.0));
        assert!((found.deviation - 2.138).abs() < 0.001, "{found:?}");
        assert!((found.mad - 0.741).abs() < 0.001, "{found:?}");
        // t(7) = 2.365; 2.365 · 2.138 / √8 = 1.788
        assert!((found.mean_95_high - 6.788).abs() < 0.01, "{found:?}");
        assert!((found.mean_95_low - 3.212).abs() < 0.01, "{found:?}");
    }

    #[test]
    fn one_value_has_no_spread_and_none_has_nothing() {
        let found = Spread::of([3.0]).unwrap();
        assert_eq!((found.median, found.deviation, found.mad), (3.0, 0.0, 0.0));
        assert_eq!((found.mean_95_low, found.mean_95_high), (3.0, 3.0));
        assert_eq!(Spread::of([]), None);
    }

    #[test]
    fn the_quantiles_are_those_of_the_tables() {
        for (freedom, expected) in [(3, 3.182), (4, 2.776), (9, 2.262), (29, 2.045)] {
            let found = student_95(freedom);
            assert!((found - expected).abs() / expected < 0.01, "{freedom}: {found}");
        }
    }
}
