//! C's `%g`, the number format of ministat and of ten years of its logs.
//!
//! Only the needed subset: a precision and a minimum width, no flags.

/// Formats like C's `%.{precision}g` (ISO C 7.23.6.1), with `nan` and `inf` in FreeBSD's spelling:
/// the sign of a NaN is not printed.
pub fn general(value: f64, precision: usize) -> String {
    if value.is_nan() {
        return "nan".into();
    }
    if value.is_infinite() {
        return if value > 0.0 { "inf".into() } else { "-inf".into() };
    }
    let precision = precision.max(1);
    // The relevant exponent is the one after rounding, as in Rust's scientific notation (exact,
    // ties to even).
    let scientific = format!("{value:.*e}", precision - 1);
    let Some((mantissa, exponent)) = scientific.split_once('e') else {
        return scientific;
    };
    let exponent: i32 = exponent.parse().unwrap_or(0);
    if exponent < -4 || exponent >= precision as i32 {
        let sign = if exponent < 0 { '-' } else { '+' };
        return format!("{}e{sign}{:02}", without_trailing_zeros(mantissa), exponent.abs());
    }
    let decimals = (precision as i32 - 1 - exponent).max(0) as usize;
    without_trailing_zeros(&format!("{value:.decimals$}")).to_owned()
}

fn without_trailing_zeros(digits: &str) -> &str {
    if digits.contains('.') { digits.trim_end_matches('0').trim_end_matches('.') } else { digits }
}

#[cfg(test)]
mod tests {
    use super::general;

    #[test]
    fn general_matches_printf() {
        // Each text is the output of printf(3).
        for (value, precision, text) in [
            (0.0, 6, "0"),
            (-0.0, 6, "-0"),
            (1.0, 6, "1"),
            (100000.0, 6, "100000"),
            (1e6, 6, "1e+06"),
            (999999.5, 6, "1e+06"),
            (0.0001, 6, "0.0001"),
            (0.00001, 6, "1e-05"),
            (0.000099999995, 6, "0.0001"),
            (123456789.5, 8, "1.2345679e+08"),
            (14880951.5, 8, "14880952"),
            (14880950.5, 8, "14880950"),
            (1e302, 6, "1e+302"),
            (0.811504, 6, "0.811504"),
            (-1164.4, 6, "-1164.4"),
            (5e-324, 6, "4.94066e-324"),
            (f64::NAN, 8, "nan"),
            (-f64::NAN, 8, "nan"),
            (f64::INFINITY, 8, "inf"),
            (f64::NEG_INFINITY, 8, "-inf"),
        ] {
            assert_eq!(general(value, precision), text, "{value:e}");
        }
    }

    #[test]
    fn general_keeps_trailing_zeros_of_integers() {
        assert_eq!(general(1_200_000.0, 8), "1200000");
        assert_eq!(general(10.0, 2), "10");
        assert_eq!(general(10.0, 1), "1e+01");
    }
}
