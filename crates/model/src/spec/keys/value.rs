//! Readers of single values: each function takes a key and a node, and returns the value or reports
//! a fault.

use super::super::kind::{CONFIDENCES, FRAME_MAX, FRAME_MIN, Kind, RULES_MAX};
use super::super::{Loader, quantity};
use super::Key;
use crate::diagnostic::Diagnostic;
use crate::settings::{Firewall, Flows, Rate};
use crate::suggest::nearest;
use crate::units::FrameSize;
use serde::de::value::{Error as WordError, StrDeserializer};
use serde::de::{Deserialize, IntoDeserializer};
use std::ops::Range;
use toml::Spanned;
use toml::de::DeValue;

/// A value of the file with its place.
pub(crate) type Node<'i> = Spanned<DeValue<'i>>;

/// Reads values and collects faults.
pub(crate) struct Reader<'a> {
    /// The tables of the file, its top first.
    pub(crate) file: &'static [super::Section],
    pub(crate) loader: &'a Loader<'a>,
    pub(crate) faults: Vec<Diagnostic>,
}

impl Reader<'_> {
    /// Reports a fault; returns `None`, so callers can end with it.
    pub(crate) fn fault<T>(&mut self, fault: Diagnostic) -> Option<T> {
        self.faults.push(fault);
        None
    }

    /// Reports that `key` does not accept `node`.
    pub(crate) fn wrong<T>(&mut self, key: &Key, node: &Node) -> Option<T> {
        let message = format!("`{}` must be {}", key.name, key.kind.expected());
        self.fault(Diagnostic::new(node.span(), message).label(format!("this is {}", found(node))))
    }

    /// Reports why a text of the right type is not a valid value.
    pub(crate) fn refused<T>(&mut self, key: &Key, node: &Node, why: String) -> Option<T> {
        let message = format!("`{}` must be {}", key.name, key.kind.expected());
        self.fault(Diagnostic::new(node.span(), message).label(why))
    }

    pub(crate) fn integer<T: TryFrom<i64>>(&mut self, key: &Key, node: &Node) -> Option<T> {
        let Kind::Integer { min, max } = key.kind else { return self.wrong(key, node) };
        let Some(integer) = node.get_ref().as_integer() else { return self.wrong(key, node) };
        match i64::from_str_radix(integer.as_str(), integer.radix()) {
            Ok(value) if value < min => self.refused(key, node, format!("less than {min}")),
            Ok(value) if value <= max => T::try_from(value).ok(),
            _ => self.refused(key, node, format!("more than {max}")),
        }
    }

    pub(in crate::spec) fn number(&mut self, key: &Key, node: &Node) -> Option<f64> {
        let Kind::Number { min, max } = key.kind else { return self.wrong(key, node) };
        match plain_number(node) {
            None => self.wrong(key, node),
            Some(value) if value < min => self.refused(key, node, format!("less than {min}")),
            Some(value) if value <= max => Some(value),
            Some(_) => self.refused(key, node, format!("more than {max}")),
        }
    }

    pub(crate) fn boolean(&mut self, key: &Key, node: &Node) -> Option<bool> {
        node.get_ref().as_bool().or_else(|| self.wrong(key, node))
    }

    pub(crate) fn text(&mut self, key: &Key, node: &Node) -> Option<String> {
        match node.get_ref().as_str() {
            None => self.wrong(key, node),
            Some(text) if text.trim().is_empty() => {
                self.refused(key, node, "this is empty".to_owned())
            }
            Some(text) if text.chars().any(char::is_control) => {
                self.refused(key, node, "this has a line break or control character".to_owned())
            }
            Some(text) => Some(text.to_owned()),
        }
    }

    /// Reads a word that is a serde name of the type `T`.
    pub(crate) fn word<T: for<'de> Deserialize<'de>>(
        &mut self,
        key: &Key,
        node: &Node,
    ) -> Option<T> {
        let Kind::Word { words, absent } = key.kind else { return self.wrong(key, node) };
        let Some(word) = node.get_ref().as_str() else { return self.wrong(key, node) };
        if words.contains(&word) {
            let word: StrDeserializer<'_, WordError> = word.into_deserializer();
            return T::deserialize(word).ok();
        }
        let fault = if absent.contains(&word) {
            Diagnostic::new(node.span(), format!("this build has no {} \"{word}\"", key.name))
                .help(format!("use {}", key.kind.expected()))
        } else {
            let message = format!("`{}` must be {}", key.name, key.kind.expected());
            Diagnostic::new(node.span(), message)
                .label(format!("this is \"{word}\""))
                .help_near(word, words)
        };
        self.fault(fault)
    }

    pub(crate) fn duration_ns(&mut self, key: &Key, node: &Node) -> Option<u64> {
        const SECOND: u64 = 1_000_000_000;
        let (min_ns, whole) = match key.kind {
            Kind::Duration { min_ns } => (min_ns, false),
            Kind::Seconds => (SECOND, true),
            _ => return self.wrong(key, node),
        };
        let text = match node.get_ref() {
            DeValue::String(text) => text.to_string(),
            DeValue::Integer(integer) => integer.to_string(),
            _ => return self.wrong(key, node),
        };
        match quantity::duration_ns(&text) {
            Err(why) => self.refused(key, node, why),
            Ok(ns) if ns < min_ns => {
                let message = format!("`{}` is too short", key.name);
                self.fault(
                    Diagnostic::new(node.span(), message)
                        .label(format!("shorter than {}", format_ns(min_ns))),
                )
            }
            Ok(ns) if whole && !ns.is_multiple_of(SECOND) => {
                self.refused(key, node, "a part of a second".to_owned())
            }
            Ok(ns) => Some(ns),
        }
    }

    /// Reads a ratio from a percentage.
    pub(in crate::spec) fn percent(&mut self, key: &Key, node: &Node) -> Option<f64> {
        match (node.get_ref().as_str(), plain_number(node)) {
            (Some(text), _) => match quantity::percent(text) {
                Ok(ratio) if ratio > 0.0 && ratio < 1.0 => Some(ratio),
                Ok(_) => self.refused(key, node, "outside of that".to_owned()),
                Err(why) => self.refused(key, node, why),
            },
            (None, Some(number)) => {
                self.refused(key, node, format!("the unit is missing: write \"{number}%\""))
            }
            _ => self.wrong(key, node),
        }
    }

    pub(in crate::spec) fn confidence(&mut self, key: &Key, node: &Node) -> Option<f64> {
        plain_number(node)
            .filter(|value| CONFIDENCES.contains(value))
            .or_else(|| self.wrong(key, node))
    }

    pub(in crate::spec) fn packet_rate(&mut self, key: &Key, node: &Node) -> Option<f64> {
        let pps = match (plain_number(node), node.get_ref().as_str()) {
            (Some(number), _) => number,
            (None, Some(text)) => match quantity::pps(text) {
                Ok(pps) => pps,
                Err(why) => return self.refused(key, node, why),
            },
            _ => return self.wrong(key, node),
        };
        if (1.0..=1e12).contains(&pps) {
            Some(pps)
        } else {
            self.refused(key, node, "outside of 1 to 10^12 pps".to_owned())
        }
    }

    /// Reads whole bits per second of a link.
    pub(crate) fn bit_rate(&mut self, key: &Key, node: &Node) -> Option<u64> {
        match node.get_ref().as_str().map(quantity::rate) {
            Some(Ok(Rate::Bps(bps))) if (1e3..=1e13).contains(&bps) => Some(bps.round() as u64),
            Some(Ok(Rate::Bps(_))) => {
                self.refused(key, node, "outside of 1 kbit/s to 10^13 bit/s".to_owned())
            }
            _ => self.wrong(key, node),
        }
    }

    pub(in crate::spec) fn rate(&mut self, key: &Key, node: &Node) -> Option<Rate> {
        let rate = match (plain_number(node), node.get_ref().as_str()) {
            (Some(pps), _) => Ok(Rate::Pps(pps)),
            (None, Some(text)) => quantity::rate(text),
            _ => return self.wrong(key, node),
        };
        match rate {
            Err(why) => self.refused(key, node, why),
            Ok(Rate::Pps(v) | Rate::Bps(v)) if !(1.0..=1e15).contains(&v) => {
                self.refused(key, node, "less than one a second, or more than 10^15".to_owned())
            }
            Ok(rate) => Some(rate),
        }
    }

    pub(in crate::spec) fn frame_size(&mut self, key: &Key, node: &Node) -> Option<FrameSize> {
        if let Some(text) = node.get_ref().as_str() {
            return match FrameSize::parse(text) {
                Ok(mix) => Some(mix),
                Err(why) => self.refused(key, node, why),
            };
        }
        let Some(integer) = node.get_ref().as_integer() else { return self.wrong(key, node) };
        match u16::from_str_radix(integer.as_str(), integer.radix()) {
            Ok(60) => self.refused(key, node, "60 is 64 without the FCS: write 64".to_owned()),
            Ok(bytes) if (FRAME_MIN..=FRAME_MAX).contains(&bytes) => Some(FrameSize::of(bytes)),
            _ => self.refused(key, node, "outside of that".to_owned()),
        }
    }

    pub(in crate::spec) fn flows(&mut self, key: &Key, node: &Node) -> Option<Flows> {
        let Some(table) = node.get_ref().as_table() else { return self.wrong(key, node) };
        let section = self.section(&super::FLOWS, table, node.span());
        let mut side = |name: &str, default: u32| match section.get(name) {
            None => Some(default),
            Some((key, node)) => self.integer(key, node),
        };
        let (sources, destinations) = (side("sources", 20), side("destinations", 100));
        let flows = Flows { sources: sources?, destinations: destinations? };
        if i64::from(flows.count()) <= super::FLOWS_MAX {
            return Some(flows);
        }
        let message = format!("`flows` must be at most {} in all", super::FLOWS_MAX);
        self.fault(Diagnostic::new(node.span(), message).label(format!("this is {flows}")))
    }

    pub(in crate::spec) fn firewall(&mut self, key: &Key, node: &Node) -> Option<Firewall> {
        let Some(text) = node.get_ref().as_str() else { return self.wrong(key, node) };
        match text {
            "none" => return Some(Firewall::None),
            "stateless" => return Some(Firewall::Stateless),
            "stateful" => return Some(Firewall::Stateful),
            _ => {}
        }
        if let Some(rules) = text.strip_prefix("rules:") {
            return match rules.parse() {
                Ok(rules) if rules <= RULES_MAX => Some(Firewall::Rules(rules)),
                _ => self.refused(key, node, format!("N must be from 0 to {RULES_MAX}")),
            };
        }
        // A name without dot and slash is a misspelt word, not a file.
        if !text.contains(['.', '/']) {
            let message = format!("`{}` must be {}", key.name, key.kind.expected());
            let fault = Diagnostic::new(node.span(), message)
                .label(format!("this is \"{text}\""))
                .help_near(text, &["none", "stateless", "stateful", "rules:1"]);
            return self.fault(fault);
        }
        let ruleset = self.text_file("the ruleset", text, node)?;
        Some(Firewall::Ruleset { file: text.to_owned(), text: ruleset })
    }

    pub(in crate::spec) fn mask(&mut self, key: &Key, node: &Node) -> Option<String> {
        let Some(text) = node.get_ref().as_str() else { return self.wrong(key, node) };
        let group = |group: &str| {
            (1..=8).contains(&group.len()) && group.bytes().all(|b| b.is_ascii_hexdigit())
        };
        if text.is_empty() || text.split(',').all(group) {
            Some(text.to_owned())
        } else {
            self.refused(key, node, format!("this is \"{text}\""))
        }
    }

    /// Reads the entries of a table of sysctls, in the order of their names.
    pub(in crate::spec) fn sysctls(
        &mut self,
        key: &Key,
        node: &Node,
    ) -> Vec<(Range<usize>, String, String)> {
        let refuse = |span, name: &str| {
            Diagnostic::new(span, format!("`{name}` is no name of a sysctl"))
                .help("a sysctl is named with dots, e.g. \"net.ipv4.ip_early_demux\"")
        };
        self.entries(key, node, is_sysctl_name, refuse, Reader::sysctl_value)
    }

    /// Reads the value of a sysctl: an integer, or text of one line.
    pub(in crate::spec) fn sysctl_value(&mut self, name: &str, node: &Node) -> Option<String> {
        let label = match node.get_ref() {
            DeValue::Integer(integer) => {
                match i64::from_str_radix(integer.as_str(), integer.radix()) {
                    Ok(value) => return Some(value.to_string()),
                    Err(_) => "this does not fit into 64 bits".to_owned(),
                }
            }
            DeValue::String(text) if !text.chars().any(|c| c.is_control() && c != '\t') => {
                return Some(text.to_string());
            }
            DeValue::Boolean(value) => format!("write {}", u8::from(*value)),
            _ => format!("this is {}", found(node)),
        };
        let message = format!("the sysctl `{name}` must be an integer or one line of text");
        self.fault(Diagnostic::new(node.span(), message).label(label))
    }
}

impl Diagnostic {
    /// Adds a hint only if one of `words` is similar.
    fn help_near(self, word: &str, words: &[&str]) -> Self {
        match nearest(word, words.iter().copied()) {
            Some(near) => self.help(format!("did you mean \"{near}\"?")),
            None => self,
        }
    }
}

/// True for dotted parts of letters, digits, `_` and `-`. No slash and no empty part: the name
/// becomes a path below /proc/sys, and must not leave it.
pub(in crate::spec) fn is_sysctl_name(name: &str) -> bool {
    let part = |part: &str| {
        !part.is_empty() && part.bytes().all(|b| b.is_ascii_alphanumeric() || b"_-".contains(&b))
    };
    name.contains('.') && name.split('.').all(part)
}

/// Returns the value of an integer or float.
pub(in crate::spec) fn plain_number(node: &Node) -> Option<f64> {
    let number = match node.get_ref() {
        DeValue::Integer(integer) => {
            i64::from_str_radix(integer.as_str(), integer.radix()).ok()? as f64
        }
        DeValue::Float(float) => float.as_str().parse().ok()?,
        _ => return None,
    };
    number.is_finite().then_some(number)
}

/// Returns a scalar in the notation of labels.
pub(in crate::spec) fn scalar_text(node: &Node) -> Option<String> {
    match node.get_ref() {
        DeValue::String(text) => Some(text.to_string()),
        DeValue::Integer(integer) => {
            let value = i64::from_str_radix(integer.as_str(), integer.radix()).ok()?;
            Some(value.to_string())
        }
        DeValue::Float(float) => Some(float.as_str().to_owned()),
        DeValue::Boolean(value) => Some(value.to_string()),
        _ => None,
    }
}

/// Describes the value of a node.
pub(crate) fn found(node: &Node) -> String {
    match node.get_ref() {
        DeValue::String(text) if text.chars().count() <= 30 => format!("the text \"{text}\""),
        DeValue::String(_) => "text".to_owned(),
        DeValue::Integer(integer) => format!("the integer {integer}"),
        DeValue::Float(float) => format!("the number {}", float.as_str()),
        DeValue::Boolean(value) => value.to_string(),
        DeValue::Datetime(_) => "a date or time".to_owned(),
        DeValue::Array(_) => "a list".to_owned(),
        DeValue::Table(_) => "a table".to_owned(),
    }
}

/// Formats a duration with the largest unit that leaves it an integer.
pub fn format_ns(ns: u64) -> String {
    match ns {
        0 => "0s".to_owned(),
        _ if ns.is_multiple_of(1_000_000_000) => format!("{}s", ns / 1_000_000_000),
        _ if ns.is_multiple_of(1_000_000) => format!("{}ms", ns / 1_000_000),
        _ if ns.is_multiple_of(1_000) => format!("{}us", ns / 1_000),
        _ => format!("{ns}ns"),
    }
}
