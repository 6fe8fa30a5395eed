//! Lists of values, one per line: `X.pps`, `pps.X` or a name without an extension.

use serde::Serialize;

/// A list as published.
#[derive(Clone, Debug, Default, PartialEq, Serialize)]
pub struct List {
    /// The values in order.
    pub values: Vec<Value>,
    /// Numbers of the lines, from 1, that are neither blank nor a number.
    pub others: Vec<usize>,
}

/// A value and its text.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct Value {
    /// The number.
    pub value: f64,
    /// Its text.
    pub text: String,
}

impl List {
    /// Reads a file's bytes; `None` if they are not a list.
    pub fn read(content: &[u8]) -> Option<List> {
        let list = List::parse(std::str::from_utf8(content).ok()?);
        list.is_list().then_some(list)
    }

    /// Reads a list; skips blank lines, which are failed runs.
    pub fn parse(text: &str) -> List {
        let mut list = List::default();
        for (number, line) in (1..).zip(text.lines()) {
            let text = line.trim();
            match text.parse::<f64>() {
                Ok(value) if value.is_finite() => {
                    list.values.push(Value { value, text: text.to_owned() });
                }
                _ if text.is_empty() => {}
                _ => list.others.push(number),
            }
        }
        list
    }

    /// Returns the numbers without their texts.
    pub fn numbers(&self) -> Vec<f64> {
        self.values.iter().map(|value| value.value).collect()
    }

    /// Returns true if this is a list. List files have no common extension.
    pub fn is_list(&self) -> bool {
        !self.values.is_empty() && self.others.is_empty()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn parse_keeps_texts_and_reports_other_lines() {
        let list = List::parse("2108683.5\r\n\n 2553645\n2e6\nfailed\nnan");
        assert_eq!(list.numbers(), [2_108_683.5, 2_553_645.0, 2e6]);
        assert_eq!(list.values[2].text, "2e6");
        assert_eq!(list.others, [5, 6]);
        assert!(!list.is_list());
        assert!(List::parse("1\n2\n").is_list());
        assert!(!List::parse("\n").is_list(), "nothing is no list");
        for other in [&b""[..], b"\n", b"1 2\n", b"x\n", b"nan\n", b"\xff"] {
            assert_eq!(List::read(other), None);
        }
    }
}
