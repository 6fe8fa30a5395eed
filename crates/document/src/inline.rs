//! Text with markup.

/// Text in parts, each with its markup.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Inline(pub Vec<Span>);

/// A part of a text.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Span {
    /// Plain text; never parsed as markup.
    Text(String),
    /// Emphasised text.
    Strong(String),
    /// Text to be typed.
    Code(String),
    /// Link to a file in the same directory, or to a URL.
    Link {
        /// Link text.
        text: String,
        /// Link target.
        to: String,
    },
}

impl Inline {
    /// Appends plain text.
    #[must_use]
    pub fn text(self, text: impl Into<String>) -> Inline {
        self.and(Span::Text(text.into()))
    }

    /// Appends emphasised text.
    #[must_use]
    pub fn strong(self, text: impl Into<String>) -> Inline {
        self.and(Span::Strong(text.into()))
    }

    /// Appends text to be typed.
    #[must_use]
    pub fn code(self, text: impl Into<String>) -> Inline {
        self.and(Span::Code(text.into()))
    }

    /// Appends a link.
    #[must_use]
    pub fn link(self, text: impl Into<String>, to: impl Into<String>) -> Inline {
        self.and(Span::Link { text: text.into(), to: to.into() })
    }

    fn and(mut self, span: Span) -> Inline {
        self.0.push(span);
        self
    }

    /// Text without markup.
    pub fn plain(&self) -> String {
        self.0
            .iter()
            .map(|span| match span {
                Span::Text(text) | Span::Strong(text) | Span::Code(text) => text.as_str(),
                Span::Link { text, .. } => text.as_str(),
            })
            .collect()
    }
}

impl From<String> for Inline {
    fn from(text: String) -> Inline {
        Inline(vec![Span::Text(text)])
    }
}

impl From<&str> for Inline {
    fn from(text: &str) -> Inline {
        text.to_owned().into()
    }
}

impl From<&String> for Inline {
    fn from(text: &String) -> Inline {
        text.clone().into()
    }
}
