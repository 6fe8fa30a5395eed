//! Content of a file: text, or a sequence of JSON values.

use super::Fault;
use serde_json::{Deserializer, Value};

/// Content of a file.
#[derive(Debug)]
pub(super) enum Content<'a> {
    /// Values, one after the other or in an array.
    Json(Vec<Value>),
    /// Any other text.
    Text(&'a str),
}

impl<'a> Content<'a> {
    /// Parses a text that begins as JSON does. Values may follow each other, as of a program that
    /// appends to a file; elements of an array at the top are separate values.
    pub(super) fn of(text: &'a str) -> Result<Content<'a>, Fault> {
        let text = text.strip_prefix('\u{feff}').unwrap_or(text);
        let start = text.trim_start();
        // Other texts begin with a bracket, too: `[Device: id=0]`.
        let is_array = start.strip_prefix('[').is_some_and(|rest| {
            rest.trim_start().starts_with(['{', '[', ']', '"', '-']) || begins_with_digit(rest)
        });
        if !start.starts_with('{') && !is_array {
            return Ok(Content::Text(text));
        }
        let mut values = Vec::new();
        for value in Deserializer::from_str(text).into_iter::<Value>() {
            match value {
                Ok(Value::Array(elements)) => values.extend(elements),
                Ok(value) => values.push(value),
                Err(error) if error.is_eof() => {
                    let what = format!("the file ends within JSON value {}", values.len() + 1);
                    return Err(Fault::at(error.line(), what, "write the file again, whole"));
                }
                Err(error) => {
                    let what = format!("this is no JSON: {}", reason(&error));
                    return Err(Fault::at(error.line(), what, "write the file again"));
                }
            }
        }
        Ok(Content::Json(values))
    }

    pub(super) fn is_json(&self) -> bool {
        matches!(self, Content::Json(_))
    }

    /// JSON values; empty for text.
    pub(super) fn values(&self) -> &[Value] {
        match self {
            Content::Json(values) => values,
            Content::Text(_) => &[],
        }
    }

    /// The text; empty for JSON.
    pub(super) fn text(&self) -> &'a str {
        match self {
            Content::Json(_) => "",
            Content::Text(text) => text,
        }
    }

    /// True for JSON of which a value fulfils the condition.
    pub(super) fn has_value(&self, is: impl Fn(&Value) -> bool) -> bool {
        self.values().iter().any(is)
    }
}

fn begins_with_digit(text: &str) -> bool {
    text.trim_start().starts_with(|c: char| c.is_ascii_digit())
}

/// Error of the parser without its position, which the message has already.
fn reason(error: &serde_json::Error) -> String {
    let text = error.to_string();
    text.split(" at line ").next().unwrap_or_default().to_owned()
}

/// Number at a path of members, e.g. `/end/sum_received/bits_per_second`.
pub(super) fn number(value: &Value, pointer: &str) -> Option<f64> {
    value.pointer(pointer)?.as_f64()
}

/// Text at a path of members.
pub(super) fn text<'v>(value: &'v Value, pointer: &str) -> Option<&'v str> {
    value.pointer(pointer)?.as_str()
}
