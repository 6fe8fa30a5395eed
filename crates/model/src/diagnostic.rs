//! Faults of an experiment file: each contains the subject, the place and the next step.
//!
//! Reading a file never stops at the first fault; [`Diagnostics`] collects all of them and renders
//! each with its line and a caret.

use annotate_snippets::{AnnotationKind, Level, Renderer, Snippet};
use std::fmt;
use std::ops::Range;

/// One fault.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Diagnostic {
    /// The fault and its subject.
    pub message: String,
    /// Place: bytes of the file's text.
    pub span: Range<usize>,
    /// Description of the place, next to the caret; may be empty.
    pub label: String,
    /// A second relevant place, with a description.
    pub context: Option<(Range<usize>, String)>,
    /// Next step.
    pub help: Option<String>,
}

impl Diagnostic {
    /// Creates a fault at `span`.
    pub fn new(span: Range<usize>, message: impl Into<String>) -> Self {
        let message = message.into();
        Self { message, span, label: String::new(), context: None, help: None }
    }
    /// Sets the description of the place.
    pub fn label(mut self, label: impl Into<String>) -> Self {
        self.label = label.into();
        self
    }
    /// Adds a second place.
    pub fn context(mut self, span: Range<usize>, label: impl Into<String>) -> Self {
        self.context = Some((span, label.into()));
        self
    }
    /// True if `span` is its second place.
    pub(crate) fn points_to(&self, span: &Range<usize>) -> bool {
        self.context.as_ref().is_some_and(|(place, _)| place == span)
    }
    /// Sets the next step.
    pub fn help(mut self, help: impl Into<String>) -> Self {
        self.help = Some(help.into());
        self
    }
    /// Sets the next step: the nearest valid word if there is one, else all of them.
    pub fn suggest(self, word: &str, candidates: &[&str], what: &str) -> Self {
        match crate::suggest::nearest(word, candidates.iter().copied()) {
            Some(near) => self.help(format!("did you mean `{near}`?")),
            None if candidates.is_empty() => self,
            None => self.help(format!("{what}: {}", candidates.join(", "))),
        }
    }
}

/// All faults of one file, in the order of their places. Never empty as a returned error.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Diagnostics {
    /// The path given by the user.
    pub path: String,
    /// Text of the file.
    pub text: String,
    /// The faults.
    pub list: Vec<Diagnostic>,
}

impl Diagnostics {
    /// Collects faults in the order of their places.
    pub fn new(path: &str, text: &str, mut list: Vec<Diagnostic>) -> Self {
        list.sort_by_key(|fault| fault.span.start);
        Self { path: path.to_owned(), text: text.to_owned(), list }
    }

    /// Renders all faults as text for a terminal, with or without colour, followed by their number.
    pub fn render(&self, colour: bool) -> String {
        let renderer = if colour { Renderer::styled() } else { Renderer::plain() };
        let mut out = String::new();
        for fault in &self.list {
            out.push_str(&self.render_one(fault, &renderer));
            out.push_str("\n\n");
        }
        let noun = if self.list.len() == 1 { "fault" } else { "faults" };
        out.push_str(&format!("{} {noun} in {}\n", self.list.len(), self.path));
        out
    }

    fn render_one(&self, fault: &Diagnostic, renderer: &Renderer) -> String {
        let lines = self.lines(fault);
        let within = |span: &Range<usize>| {
            let span = self.clamp(span);
            span.start - lines.start..span.end - lines.start
        };
        let mut primary = AnnotationKind::Primary.span(within(&fault.span));
        if !fault.label.is_empty() {
            primary = primary.label(fault.label.as_str());
        }
        let before = self.text[..lines.start].bytes().filter(|&byte| byte == b'\n').count();
        let mut snippet = Snippet::source(&self.text[lines.clone()])
            .line_start(before + 1)
            .path(self.path.as_str())
            .annotation(primary);
        if let Some((span, label)) = &fault.context {
            snippet = snippet
                .annotation(AnnotationKind::Context.span(within(span)).label(label.as_str()));
        }
        let mut group = Level::ERROR.primary_title(fault.message.as_str()).element(snippet);
        if let Some(help) = &fault.help {
            group = group.element(Level::HELP.message(help.as_str()));
        }
        renderer.render(&[group])
    }

    /// Returns the lines that a fault points to, and those between. The renderer reads everything
    /// that it is given, which would be too much for a long file with many faults.
    fn lines(&self, fault: &Diagnostic) -> Range<usize> {
        let other = fault.context.as_ref().map_or(&fault.span, |(span, _)| span);
        let (one, other) = (self.clamp(&fault.span), self.clamp(other));
        let (start, end) = (one.start.min(other.start), one.end.max(other.end));
        let start = self.text[..start].rfind('\n').map_or(0, |at| at + 1);
        start..self.text[end..].find('\n').map_or(self.text.len(), |at| end + at + 1)
    }

    /// Clamps a span: the renderer slices the text, so a span outside it, or within a character,
    /// would panic.
    fn clamp(&self, span: &Range<usize>) -> Range<usize> {
        let inside = |at: usize| {
            let at = at.min(self.text.len());
            (0..=at).rev().find(|&i| self.text.is_char_boundary(i)).unwrap_or(0)
        };
        let start = inside(span.start);
        start..inside(span.end).max(start)
    }
}

impl fmt::Display for Diagnostics {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.render(false))
    }
}

impl std::error::Error for Diagnostics {}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn spans_outside_the_text_or_inside_a_character_do_not_panic() {
        let text = "title = \"é\"\n";
        for start in 0..text.len() + 3 {
            for end in start..text.len() + 5 {
                let fault = Diagnostic::new(start..end, "fault").context(end..end + 1, "here");
                let all = Diagnostics::new("x.toml", text, vec![fault]);
                assert!(all.render(false).contains("fault"));
            }
        }
        assert!(
            Diagnostics::new("x.toml", "", vec![Diagnostic::new(0..0, "empty")])
                .render(true)
                .contains("empty")
        );
    }

    /// Each with its own lines: passing the whole file to the renderer for each fault is slow.
    #[test]
    fn faults_of_a_long_file_are_rendered_with_their_lines() {
        let text = "[[host]]\nname = \"a\"\n".repeat(3000);
        let faults = crate::Lab::parse("lab.toml", &text).expect_err("faults");
        let shown = faults.to_string();
        assert!(faults.list.len() > 3000 && shown.contains("--> lab.toml:5999:1"));
    }

    #[test]
    fn colour_is_optional() {
        let all = Diagnostics::new("x.toml", "a = 1\n", vec![Diagnostic::new(0..1, "fault")]);
        assert!(all.render(true).contains('\u{1b}'));
        assert!(!all.render(false).contains('\u{1b}'));
    }
}
