//! The answer for terminals, documents and programs.

mod csv;
mod json;
mod markdown;
mod text;

pub use csv::csv;
pub use json::json;
pub use markdown::markdown;
pub use text::{Line, Tone, text};
