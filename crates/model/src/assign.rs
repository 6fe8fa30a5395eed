//! Sets one value of a TOML file from outside, in the file's text.
//!
//! The text changes only at the value, or at the beginning of its table, so faults keep their
//! places and the file stored with the results is the one that was used.

use std::ops::Range;
use toml::de::{DeTable, DeValue};

/// Reason why a value cannot be set.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum AssignError {
    /// Not an assignment.
    #[error(
        "`{0}` is no assignment: write KEY=VALUE, e.g. design.blocks=7 or dut.firewall=stateful"
    )]
    NoAssignment(String),
    /// Words that cannot be a key.
    #[error(
        "`{0}` is no key: write the table's name and the key's with a point between them, e.g. \
         trial.duration=5s"
    )]
    NoKey(String),
    /// A table, where a value is expected.
    #[error("`{0}` is a table: set one of its keys, e.g. {0}.{1}=...")]
    Table(String, String),
    /// No element of a list has that name.
    #[error("there is no `{name}` in `{list}`; there are: {names}")]
    NoElement {
        /// The list of tables.
        list: String,
        /// The requested name.
        name: String,
        /// The existing names.
        names: String,
    },
    /// The file's notation has no place for the value.
    #[error("`{0}` can't be set from outside as this file is written: write it into the file")]
    NoPlace(String),
}

/// Returns `text` with `assignment`, `KEY=VALUE`. The key is a path: `design.blocks`. In a list of
/// tables the name of an element comes next: `factor.firewall.levels`. A value that is not TOML is
/// a string, so quotes may be omitted. Text that is not TOML is returned unchanged: its reader will
/// report the fault.
///
/// # Errors
/// See [`AssignError`].
pub fn assign(text: &str, assignment: &str) -> Result<String, AssignError> {
    let Some((key, value)) = assignment.split_once('=') else {
        return Err(AssignError::NoAssignment(assignment.to_owned()));
    };
    let (key, value) = (key.trim(), as_toml(value.trim()));
    let path: Vec<&str> = key.split('.').map(str::trim).collect();
    let is_bare = |word: &&str| {
        !word.is_empty() && word.chars().all(|c| c.is_alphanumeric() || matches!(c, '-' | '_'))
    };
    if !path.iter().all(is_bare) {
        return Err(AssignError::NoKey(key.to_owned()));
    }
    let Ok(root) = DeTable::parse(text) else { return Ok(text.to_owned()) };
    let changed = match place(root.get_ref(), &path, text)? {
        ValuePosition::Value(range) => replaced(text, range, &value),
        ValuePosition::Table(at, Style::Lines) => {
            let leaf = path[path.len() - 1];
            replaced(text, at..at, &format!("{leaf} = {value}\n"))
        }
        ValuePosition::Table(at, Style::Inline { is_empty }) => {
            let leaf = path[path.len() - 1];
            let comma = if is_empty { "" } else { "," };
            replaced(text, at..at, &format!(" {leaf} = {value}{comma}"))
        }
        ValuePosition::None => {
            let (leaf, tables) = (path[path.len() - 1], path[..path.len() - 1].join("."));
            let line_feed = if text.is_empty() || text.ends_with('\n') { "" } else { "\n" };
            format!("{text}{line_feed}\n[{tables}]\n{leaf} = {value}\n")
        }
    };
    // A result with an unexpected structure must not be accepted.
    let holds = DeTable::parse(&changed).is_ok_and(|root| {
        matches!(place(root.get_ref(), &path, &changed),
            Ok(ValuePosition::Value(range)) if changed[range.clone()] == value)
    });
    if holds { Ok(changed) } else { Err(AssignError::NoPlace(key.to_owned())) }
}

/// Place of a value, existing or new.
enum ValuePosition {
    /// An existing value.
    Value(Range<usize>),
    /// An existing table without the value: the place of its first key.
    Table(usize, Style),
    /// Neither exists.
    None,
}

/// Notation of a table.
enum Style {
    /// As lines, after its header if it has one.
    Lines,
    /// Within braces.
    Inline { is_empty: bool },
}

fn place(root: &DeTable, path: &[&str], text: &str) -> Result<ValuePosition, AssignError> {
    let mut table = root;
    // The first line of the file belongs to no table.
    let mut here = ValuePosition::Table(0, Style::Lines);
    let mut at = 0;
    loop {
        let Some((key, value)) = table.iter().find(|(key, _)| key.get_ref() == path[at]) else {
            return Ok(if at + 1 == path.len() { here } else { ValuePosition::None });
        };
        let so_far = path[..=at].join(".");
        at += 1;
        let (inner, span) = match value.get_ref() {
            // A table within braces is a value as a whole.
            DeValue::Table(_) if at == path.len() && text[value.span()].starts_with('{') => {
                return Ok(ValuePosition::Value(value.span()));
            }
            DeValue::Table(inner) => (inner, value.span()),
            DeValue::Array(list) if list.iter().any(|item| item.get_ref().is_table()) => {
                let named = |item: &DeTable| {
                    let name = item.iter().find(|(key, _)| key.get_ref() == "name");
                    name.and_then(|(_, name)| name.get_ref().as_str().map(str::to_owned))
                };
                let tables =
                    list.iter().filter_map(|item| Some((item.get_ref().as_table()?, item.span())));
                let tables: Vec<_> = tables.collect();
                let names = tables.iter().filter_map(|(item, _)| named(item));
                let names = names.collect::<Vec<_>>().join(", ");
                let Some(name) = path.get(at) else {
                    // A list within brackets is a value as a whole.
                    let written = &text[value.span()];
                    if written.starts_with('[') && !written.starts_with("[[") {
                        return Ok(ValuePosition::Value(value.span()));
                    }
                    return Err(AssignError::Table(so_far, names));
                };
                let found =
                    tables.into_iter().find(|(item, _)| named(item).as_deref() == Some(name));
                at += 1;
                found.ok_or_else(|| AssignError::NoElement {
                    list: so_far.clone(),
                    name: (*name).to_owned(),
                    names,
                })?
            }
            _ if at == path.len() => return Ok(ValuePosition::Value(value.span())),
            _ => return Err(AssignError::NoPlace(path.join("."))),
        };
        if at >= path.len() {
            let first = inner.keys().next().map_or("", |key| key.get_ref());
            return Err(AssignError::Table(path.join("."), first.to_owned()));
        }
        here = beginning(text, key.span(), span, inner.is_empty());
        table = inner;
    }
}

/// Returns the place for a new key of a table, whose value has this `span` and whose name is at
/// `key`.
fn beginning(text: &str, key: Range<usize>, span: Range<usize>, is_empty: bool) -> ValuePosition {
    if text[span.clone()].starts_with('{') {
        return ValuePosition::Table(span.start + 1, Style::Inline { is_empty });
    }
    // A header is alone on its line and ends with the table's name. So does an element's header,
    // but the name was found in another element's. Without a header (dotted keys, or only headers
    // of subtables) one may be added at the end.
    let is_element = text[span.clone()].starts_with("[[");
    let header = if is_element { span.start } else { key.start };
    let line = text[..header].rfind('\n').map_or(0, |at| at + 1);
    let end = text[header..].find('\n').map_or(text.len(), |at| header + at + 1);
    let is_header = text[line..end].trim_start().starts_with('[')
        && (is_element || text[key.end..].trim_start_matches([' ', '"', '\'']).starts_with(']'));
    match is_header && text[..end].ends_with('\n') {
        true => ValuePosition::Table(end, Style::Lines),
        false => ValuePosition::None,
    }
}

fn replaced(text: &str, range: Range<usize>, with: &str) -> String {
    [&text[..range.start], with, &text[range.end..]].concat()
}

/// Returns a value as TOML: unchanged if it is TOML, else as a string.
fn as_toml(value: &str) -> String {
    let line = format!("v = {value}");
    // A comment or another line would not be part of it.
    let is_value = DeTable::parse(&line)
        .is_ok_and(|root| root.get_ref().values().any(|written| written.span() == (4..line.len())));
    if is_value { value.to_owned() } else { toml::Value::String(value.to_owned()).to_string() }
}

#[cfg(test)]
mod tests {
    use super::*;

    const FILE: &str = "version = 1 # of the format\n\n[traffic]\nrate = \"max\"\n\n[design] # how often\n\
                        blocks = 5\n\n[[factor]]\nname = \"firewall\"\nlevels = [\"none\"]\n";

    fn set(text: &str, assignment: &str) -> String {
        assign(text, assignment).unwrap_or_else(|error| panic!("{assignment}: {error}"))
    }

    #[test]
    fn values_are_set_in_place() {
        assert_eq!(set(FILE, "design.blocks=7"), FILE.replace("blocks = 5", "blocks = 7"));
        assert_eq!(set(FILE, "traffic.rate = 1Mpps"), FILE.replace("\"max\"", "\"1Mpps\""));
        let levels = set(FILE, "factor.firewall.levels=[\"a\", \"b\"]");
        assert_eq!(levels, FILE.replace("[\"none\"]", "[\"a\", \"b\"]"));
        assert_eq!(set("a = {c = 2}", "a={}"), "a = {}");
        let tables = "levels = [\n  { label = \"a\" },\n]\n";
        assert_eq!(set(tables, "levels=[{ label = 'b' }]"), "levels = [{ label = 'b' }]\n");
    }

    #[test]
    fn missing_keys_are_added_to_their_table() {
        let seed = set(FILE, "design.seed=3");
        assert_eq!(seed, FILE.replace("blocks = 5", "seed = 3\nblocks = 5"));
        let role = set(FILE, "factor.firewall.unit=x");
        assert_eq!(role, FILE.replace("name = \"fire", "unit = \"x\"\nname = \"fire"));
        assert_eq!(set(FILE, "title=A title"), format!("title = \"A title\"\n{FILE}"));
        assert_eq!(set(FILE, "trial.duration=1s"), format!("{FILE}\n[trial]\nduration = \"1s\"\n"));
        assert_eq!(set("a = {}", "a.b=1"), "a = { b = 1}");
        assert_eq!(set("a = {c = 2}", "a.b=1"), "a = { b = 1,c = 2}");
        assert_eq!(set("[a.b]\nc = 1\n", "a.d=2"), "[a.b]\nc = 1\n\n[a]\nd = 2\n");
        assert_eq!(set("", "a.b=2"), "\n[a]\nb = 2\n");
    }

    #[test]
    fn values_keep_their_meaning() {
        for (value, toml) in [
            ("5", "5"),
            ("5s", "\"5s\""),
            ("true", "true"),
            ("[1, 2]", "[1, 2]"),
            ("", "\"\""),
            ("a \"b\"", "'a \"b\"'"),
            ("1 # no comment", "\"1 # no comment\""),
            ("1\nc = 2", "\"\"\"\n1\nc = 2\"\"\""),
        ] {
            let written = set("", &format!("a.b={value}"));
            assert_eq!(written, format!("\n[a]\nb = {toml}\n"), "{value}");
        }
    }

    #[test]
    fn keys_without_a_place_are_refused_by_name() {
        let refused =
            |text: &str, assignment: &str| assign(text, assignment).unwrap_err().to_string();
        assert!(refused(FILE, "blocks").contains("design.blocks=7"));
        assert!(refused(FILE, "a..b=1").contains("no key"));
        assert!(refused(FILE, "design=1").contains("design.blocks="));
        assert!(refused(FILE, "factor=1").contains("factor.firewall="));
        assert!(refused(FILE, "factor.fire.levels=[]").contains("there are: firewall"));
        assert!(refused("a.b = 1\n", "a.c=1").contains("write it into the file"));
        assert!(refused(FILE, "version.x=1").contains("write it into the file"));
        assert_eq!(assign("no TOML", "a=1").unwrap(), "no TOML", "its reader says why");
    }
}
