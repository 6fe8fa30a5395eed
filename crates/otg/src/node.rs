//! JSON values with their paths.

use serde_json::Value;
use std::fmt::Display;

/// Faults of a request; each begins with the path of a field.
pub(crate) type Faults = Vec<String>;

/// A value and its path, e.g. `flows[0].rate.pps`.
#[derive(Clone, Debug)]
pub(crate) struct Node<'v> {
    path: String,
    value: &'v Value,
}

impl<'v> Node<'v> {
    /// The whole body of a request.
    pub(crate) fn root(value: &'v Value) -> Node<'v> {
        Node { path: String::new(), value }
    }

    /// Adds a fault of this field.
    pub(crate) fn fault(&self, faults: &mut Faults, what: impl Display) {
        let path = if self.path.is_empty() { "the body" } else { &self.path };
        faults.push(format!("{path}: {what}"));
    }

    /// Adds a fault of the member of this name.
    pub(crate) fn fault_at(&self, name: &str, faults: &mut Faults, what: impl Display) {
        faults.push(format!("{}: {what}", self.member(name)));
    }

    /// The member of this name. `None` if it is absent or empty.
    pub(crate) fn get(&self, name: &str) -> Option<Node<'v>> {
        let value = self.value.get(name).filter(|value| !is_empty(value))?;
        Some(Node { path: self.member(name), value })
    }

    /// The member of this name.
    pub(crate) fn required(&self, name: &str, faults: &mut Faults) -> Option<Node<'v>> {
        let found = self.get(name);
        if found.is_none() {
            self.fault_at(name, faults, "is required");
        }
        found
    }

    /// Refuses a value that is no object, and every member that is not empty and not in `known`.
    pub(crate) fn only(&self, known: &[&str], faults: &mut Faults) {
        let Some(members) = self.value.as_object() else {
            return self.fault(faults, "is no object");
        };
        for (name, value) in members {
            if !known.contains(&name.as_str()) && !is_empty(value) {
                self.fault_at(name, faults, "is not supported");
            }
        }
    }

    /// Returns the choice of an object; refuses choices that are not in `known`.
    pub(crate) fn choice(
        &self,
        known: &[&'static str],
        default: &'static str,
        faults: &mut Faults,
    ) -> Option<&'static str> {
        let Some(choice) = self.get("choice") else { return Some(default) };
        let text = choice.text(faults)?;
        let found = known.iter().copied().find(|known| *known == text);
        if found.is_none() {
            let what = format!("`{text}` is not supported; supported: {}", known.join(", "));
            choice.fault(faults, what);
        }
        found
    }

    /// Elements of a list; empty for an absent one.
    pub(crate) fn items(&self, name: &str, faults: &mut Faults) -> Vec<Node<'v>> {
        let Some(list) = self.get(name) else { return Vec::new() };
        let Some(values) = list.value.as_array() else {
            list.fault(faults, "is no list");
            return Vec::new();
        };
        let item = |(at, value)| Node { path: format!("{}[{at}]", list.path), value };
        values.iter().enumerate().map(item).collect()
    }

    /// A text.
    pub(crate) fn text(&self, faults: &mut Faults) -> Option<&'v str> {
        let text = self.value.as_str();
        if text.is_none() {
            self.fault(faults, "is no text");
        }
        text
    }

    /// A truth value; `false` for an absent member.
    pub(crate) fn is_set(&self, name: &str, faults: &mut Faults) -> bool {
        let Some(member) = self.get(name) else { return false };
        let value = member.value.as_bool();
        if value.is_none() {
            member.fault(faults, "is neither true nor false");
        }
        value.unwrap_or_default()
    }

    /// A whole number from `least` to `most`. The API writes 64-bit numbers as text.
    pub(crate) fn whole(&self, least: u64, most: u64, faults: &mut Faults) -> Option<u64> {
        let number = self.value.as_u64().or_else(|| self.value.as_str()?.parse().ok());
        let number = number.filter(|number| (least..=most).contains(number));
        if number.is_none() {
            self.fault(faults, format!("is no whole number from {least} to {most}"));
        }
        number
    }

    /// A finite number of at least 0.
    pub(crate) fn number(&self, faults: &mut Faults) -> Option<f64> {
        let number = self.value.as_f64().filter(|number| number.is_finite() && *number >= 0.0);
        if number.is_none() {
            self.fault(faults, "is no number of at least 0");
        }
        number
    }

    /// A text that parses, e.g. as an address.
    pub(crate) fn parsed<T: std::str::FromStr>(
        &self,
        what: &str,
        faults: &mut Faults,
    ) -> Option<T> {
        let parsed = self.text(faults)?.parse().ok();
        if parsed.is_none() {
            self.fault(faults, format!("is no {what}"));
        }
        parsed
    }

    fn member(&self, name: &str) -> String {
        let dot = if self.path.is_empty() { "" } else { "." };
        format!("{}{dot}{name}", self.path)
    }
}

/// True for null and for lists and objects without content, which clients write for defaults.
fn is_empty(value: &Value) -> bool {
    match value {
        Value::Null => true,
        Value::Array(values) => values.is_empty(),
        Value::Object(members) => members.is_empty(),
        _ => false,
    }
}
