//! Form for programs: the data, and the named tables as rows of values.

use crate::{Document, Table};
use serde_json::{Map, Value};

/// Returns the fields of the data with `version`, and an array of rows for each named table.
///
/// # Errors
/// Never for a document of this crate.
pub fn value(document: &Document<'_>) -> Result<Value, serde_json::Error> {
    let mut value = document.data.fields()?;
    if let Some(fields) = value.as_object_mut() {
        fields.insert("version".to_owned(), document.version.into());
        for (name, tables) in document.tables() {
            // A field of the data takes precedence over a table of the same name.
            fields.entry(name).or_insert_with(|| tables.into_iter().flat_map(rows).collect());
        }
    }
    Ok(rounded(value))
}

/// Renders the value as text.
///
/// # Errors
/// Fails like [`value`].
pub fn render(document: &Document<'_>) -> Result<String, serde_json::Error> {
    Ok(format!("{:#}\n", value(document)?))
}

fn rows(table: &Table) -> Vec<Value> {
    let (keys, rows) = table.for_programs();
    let object = |row: Vec<Value>| -> Value {
        keys.iter().cloned().zip(row).collect::<Map<String, Value>>().into()
    };
    rows.into_iter().map(object).collect()
}

/// Rounds computed numbers to ten digits: more than their accuracy, and equal on machines whose
/// logarithm differs in the last bit.
pub fn rounded(value: Value) -> Value {
    match value {
        Value::Number(number) if number.is_f64() => {
            let rounded = number.as_f64().and_then(|n| format!("{n:.9e}").parse::<f64>().ok());
            rounded.map_or(Value::Null, Value::from)
        }
        Value::Array(items) => items.into_iter().map(rounded).collect(),
        Value::Object(fields) => {
            fields.into_iter().map(|(name, value)| (name, rounded(value))).collect()
        }
        other => other,
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::json;

    #[test]
    fn rounded_keeps_ten_digits_and_exact_counts() {
        let value = rounded(json!({"a": [0.1 + 0.2, 1.0], "b": u64::MAX}));
        assert_eq!(value.to_string(), r#"{"a":[0.3,1.0],"b":18446744073709551615}"#);
    }
}
