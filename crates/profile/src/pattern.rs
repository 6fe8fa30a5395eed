//! Names with wildcards.

use std::fmt;

/// A name in which `*` matches any text, including none: `mwait_idle*`. Case-sensitive, as in C.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Pattern(String);

impl Pattern {
    /// Creates a pattern; leading and trailing blanks are ignored.
    pub fn new(text: &str) -> Pattern {
        Pattern(text.trim().to_owned())
    }

    /// Returns true if the pattern matches the whole of `name`.
    pub fn matches(&self, name: &str) -> bool {
        fits(&self.0, name)
    }
}

impl fmt::Display for Pattern {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.0)
    }
}

/// Returns true if `name` matches one of `patterns`.
pub(super) fn any(patterns: &[Pattern], name: &str) -> bool {
    patterns.iter().any(|pattern| pattern.matches(name))
}

/// Patterns from a table.
pub(super) fn table(texts: &[&str]) -> Vec<Pattern> {
    texts.iter().map(|text| Pattern::new(text)).collect()
}

/// The leftmost match of each piece between stars is as good as any later one, so no backtracking
/// is needed.
fn fits(pattern: &str, name: &str) -> bool {
    let Some((head, rest)) = pattern.split_once('*') else {
        return pattern == name;
    };
    let Some(mut name) = name.strip_prefix(head) else {
        return false;
    };
    let mut pieces = rest.split('*').peekable();
    while let Some(piece) = pieces.next() {
        if pieces.peek().is_none() {
            return name.ends_with(piece);
        }
        match name.find(piece) {
            Some(at) => name = &name[at + piece.len()..],
            None => return false,
        }
    }
    true
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    #[test]
    fn star_matches_any_text() {
        for (pattern, name, matches) in [
            ("ip_rcv", "ip_rcv", true),
            ("ip_rcv", "ip_rcv_core", false),
            ("ip_rcv*", "ip_rcv", true),
            ("*_lock", "rw_lock", true),
            ("*_lock", "rw_lock_slow", false),
            ("a*b*c", "abc", true),
            ("a*b*c", "axxbyyc", true),
            ("a*b*c", "acb", false),
            ("*", "", true),
            ("", "", true),
            ("ab*ab", "ab", false),
        ] {
            assert_eq!(Pattern::new(pattern).matches(name), matches, "{pattern} {name}");
        }
    }

    /// Matches one character after another by exhaustive backtracking.
    fn slow(pattern: &[u8], name: &[u8]) -> bool {
        match (pattern.first(), name.first()) {
            (None, None) => true,
            (Some(b'*'), _) => {
                slow(&pattern[1..], name) || (!name.is_empty() && slow(pattern, &name[1..]))
            }
            (Some(p), Some(n)) => p == n && slow(&pattern[1..], &name[1..]),
            _ => false,
        }
    }

    proptest! {
        #[test]
        fn matches_agrees_with_backtracking(pattern in "[ab*]{0,7}", name in "[ab]{0,9}") {
            let expected = slow(pattern.as_bytes(), name.as_bytes());
            prop_assert_eq!(Pattern::new(&pattern).matches(&name), expected);
        }
    }
}
