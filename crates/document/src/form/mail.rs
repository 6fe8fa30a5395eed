//! Form for mailing lists and code reviews: plain text in 72 columns, whatever the width of the
//! terminal.

use super::text::{self, Detail};
use crate::Document;

/// Line width that stays below 80 columns when a mail is quoted a few times.
const WIDTH: usize = 72;

/// Renders the document.
pub fn render(document: &Document<'_>) -> String {
    text::text(text::lines(document, WIDTH, Detail::Mail))
}
