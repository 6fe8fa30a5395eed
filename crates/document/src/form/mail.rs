//! For mailing lists and the comments of a code review: plain text in 72 columns, whatever
//! the terminal has.

use super::text::{self, Detail};
use crate::Document;

/// Columns that stay below 80 when a mail is quoted a few times.
const WIDTH: usize = 72;

/// The document.
pub fn render(document: &Document<'_>) -> String {
    text::text(text::lines(document, WIDTH, Detail::Mail))
}
