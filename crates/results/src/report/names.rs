//! File names from labels.

use std::collections::BTreeSet;

/// Returns one name of a file of values per label, `<label>.<suffix>`, distinct even on
/// case-insensitive file systems.
pub(crate) fn list_files<'a>(
    labels: impl IntoIterator<Item = &'a str>,
    suffix: &str,
) -> Vec<String> {
    let mut used = BTreeSet::new();
    labels
        .into_iter()
        .map(|label| {
            let stem = safe(label);
            let mut name = format!("{stem}.{suffix}");
            let mut number = 2;
            while !used.insert(name.to_ascii_lowercase()) {
                name = format!("{stem}-{number}.{suffix}");
                number += 1;
            }
            name
        })
        .collect()
}

/// Converts a label to a part of a file name that never needs quoting: letters, digits, `.`, `_`,
/// `-`; any other sequence becomes one `-`.
pub fn safe(label: &str) -> String {
    let mut name = String::new();
    for c in label.chars() {
        if c.is_ascii_alphanumeric() || matches!(c, '.' | '_') {
            name.push(c);
        } else if !name.ends_with('-') {
            name.push('-');
        }
    }
    // A leading dot hides a file, a leading dash looks like a flag.
    let name = name.trim_matches(['-', '.']);
    // File names are limited to 255 bytes on common systems, and the suffixes need space.
    let name: String = name.chars().take(120).collect();
    if name.is_empty() { "variant".to_owned() } else { name }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn safe_keeps_only_plain_characters() {
        assert_eq!(safe("4, inet6"), "4-inet6");
        assert_eq!(safe("../../etc/passwd"), "etc-passwd");
        assert_eq!(safe("rules:100"), "rules-100");
        assert_eq!(safe("-rf .."), "rf");
        assert_eq!(safe("größer"), "gr-er");
        assert_eq!(safe("///"), "variant");
        assert_eq!(safe(&"x".repeat(400)).len(), 120);
    }

    #[test]
    fn list_files_returns_distinct_names() {
        let names = list_files(["a:b", "a/b", "a-b-2", "A-B", "c"], "pps");
        assert_eq!(names, ["a-b.pps", "a-b-2.pps", "a-b-2-2.pps", "A-B-3.pps", "c.pps"]);
    }
}
