//! Lists of values, one a line: `X.pps`, `pps.X` or a name without an ending.

use serde::Serialize;

/// A list as published.
#[derive(Clone, Debug, Default, PartialEq, Serialize)]
pub struct List {
    /// The values in order.
    pub values: Vec<Value>,
    /// Lines, from 1, that are neither blank nor a number.
    pub others: Vec<usize>,
}

/// A value and how it is written.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct Value {
    /// The number.
    pub value: f64,
    /// Its text.
    pub text: String,
}

impl List {
    /// Reads a file's bytes; none when they are no list.
    pub fn read(content: &[u8]) -> Option<List> {
        let list = List::parse(std::str::from_utf8(content).ok()?);
        list.is_list().then_some(list)
    }

    /// Reads a list; blank lines (runs that failed) are skipped.
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

    /// The numbers alone.
    pub fn numbers(&self) -> Vec<f64> {
        self.values.iter().map(|value| value.value).collect()
    }

    /// Whether this is a list at all: files of lists have no common ending.
    pub fn is_list(&self) -> bool {
        !self.values.is_empty() && self.others.is_empty()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn values_keep_their_text() {
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
