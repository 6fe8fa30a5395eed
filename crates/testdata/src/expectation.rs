//! Expectations of a shipped experiment: comments that a program can check.

/// An expectation of an experiment file.
#[derive(Clone, Debug, PartialEq)]
pub enum Expectation {
    /// `# Range: LABEL LOW % to HIGH %`: the difference of a comparison, in per cent.
    Range {
        /// Label of the comparison in the results.
        label: String,
        /// Lower limit, per cent.
        low: f64,
        /// Upper limit, per cent.
        high: f64,
    },
    /// `# Prints: TEXT`: a part of the output.
    Prints(String),
}

/// Returns the expectations of an experiment file, in their order.
///
/// # Errors
/// Fails with the line if a line with one of the prefixes is malformed.
pub fn expectations(file: &str) -> Result<Vec<Expectation>, String> {
    let lines = file.lines().filter_map(|line| {
        let text = line.strip_prefix("# Prints: ");
        let range = line.strip_prefix("# Range: ");
        range
            .map(|range| read_range(range).ok_or_else(|| format!("`{line}` is not a range")))
            .or_else(|| text.map(|text| Ok(Expectation::Prints(text.to_owned()))))
    });
    lines.collect()
}

/// Reads `LABEL LOW % to HIGH %`.
fn read_range(text: &str) -> Option<Expectation> {
    let (low, high) = text.strip_suffix(" %")?.split_once(" % to ")?;
    let (label, low) = low.rsplit_once(' ')?;
    let (low, high) = (low.parse().ok()?, high.parse().ok()?);
    (low <= high).then(|| Expectation::Range { label: label.to_owned(), low, high })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn expectations_are_read_from_comments() {
        let file = "# Expect: less.\n# Range: on, inet -4.5 % to 3 %\n# Prints: r19\nversion = 1\n";
        let range = Expectation::Range { label: "on, inet".to_owned(), low: -4.5, high: 3.0 };
        assert_eq!(expectations(file), Ok(vec![range, Expectation::Prints("r19".to_owned())]));
    }

    #[test]
    fn malformed_range_is_named() {
        for line in ["# Range: on", "# Range: on 3 % to 1 %", "# Range: on -3 to 1 %"] {
            let error = expectations(line).expect_err("malformed");
            assert!(error.contains(line), "{error}");
        }
    }
}
