//! Text with marks.

/// Text in parts, each with its mark.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Inline(pub Vec<Span>);

/// A part of a text.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Span {
    /// As it is; never read as markup.
    Text(String),
    /// Stressed.
    Strong(String),
    /// Something to be typed.
    Code(String),
    /// A link to a file of the same directory, or elsewhere.
    Link {
        /// What is read.
        text: String,
        /// Where it leads.
        to: String,
    },
}

impl Inline {
    /// The same with text behind it.
    #[must_use]
    pub fn text(self, text: impl Into<String>) -> Inline {
        self.and(Span::Text(text.into()))
    }

    /// The same with stressed text behind it.
    #[must_use]
    pub fn strong(self, text: impl Into<String>) -> Inline {
        self.and(Span::Strong(text.into()))
    }

    /// The same with something to be typed behind it.
    #[must_use]
    pub fn code(self, text: impl Into<String>) -> Inline {
        self.and(Span::Code(text.into()))
    }

    /// The same with a link behind it.
    #[must_use]
    pub fn link(self, text: impl Into<String>, to: impl Into<String>) -> Inline {
        self.and(Span::Link { text: text.into(), to: to.into() })
    }

    fn and(mut self, span: Span) -> Inline {
        self.0.push(span);
        self
    }

    /// The text without its marks.
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
