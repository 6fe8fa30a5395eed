//! The answer for programs.

use crate::compare::Results;
use crate::report::rounded;
use serde_json::Value;

/// Version of the shape; raised when something that was there is named
/// otherwise or means something else.
const VERSION: u32 = 1;

/// All of the answer: the fields of [`Results`], and `version`.
///
/// # Errors
/// Never for an answer that was made by this crate.
pub fn json(results: &Results) -> Result<Value, serde_json::Error> {
    let mut value = serde_json::to_value(results)?;
    if let Some(fields) = value.as_object_mut() {
        fields.insert("version".to_owned(), VERSION.into());
    }
    Ok(rounded(value))
}
