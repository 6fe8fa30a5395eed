//! The normal distribution.

use std::f64::consts::TAU;

/// Returns the probability of a value below `z`, by its series; 0 or 1 beyond eight deviations.
pub(crate) fn below(z: f64) -> f64 {
    if z.abs() > 8.0 {
        return if z > 0.0 { 1.0 } else { 0.0 };
    }
    let (mut term, mut sum) = (z, z);
    for number in 1..150 {
        term *= z * z / (2 * number + 1) as f64;
        sum += term;
    }
    0.5 + sum * (-z * z / 2.0).exp() / TAU.sqrt()
}

/// Returns the quantile of a probability, by halving.
pub(crate) fn quantile(share: f64) -> f64 {
    let (mut low, mut high) = (-8.0, 8.0);
    for _ in 0..60 {
        let middle = (low + high) / 2.0;
        if below(middle) < share { low = middle } else { high = middle }
    }
    (low + high) / 2.0
}

/// Returns by how much the mean of the values above `z` exceeds the mean of all, in deviations.
pub(crate) fn hazard(z: f64) -> f64 {
    match z {
        z if z < -8.0 => 0.0,
        z if z > 5.0 => z + 1.0 / z,
        z => (-z * z / 2.0).exp() / TAU.sqrt() / (1.0 - below(z)),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn values_match_published_tables() {
        for (z, share) in [(0.0, 0.5), (1.0, 0.841_344_7), (-1.959_964, 0.025), (3.0, 0.998_650_1)]
        {
            assert!((below(z) - share).abs() < 1e-7, "{z}");
            assert!((quantile(share) - z).abs() < 1e-5, "{z}");
        }
        // Mills' ratio at 1 is 0.65568.
        assert!((hazard(1.0) - 1.0 / 0.655_68).abs() < 1e-4);
        assert!((hazard(4.999) - hazard(5.001)).abs() < 0.02);
    }
}
