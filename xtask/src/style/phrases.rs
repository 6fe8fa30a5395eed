//! Phrases that docs/STYLE.md avoids. Single words are in `_typos.toml`.

/// Phrases in lower case with their usual replacements.
pub(super) const PHRASES: &[(&str, &str)] = &[
    ("held against", "compared with"),
    ("hold against", "compare with"),
    ("holds against", "compares with"),
    ("as it was", "unchanged"),
    ("as they were", "unchanged"),
    ("as they are", "unchanged"),
    ("at once", "immediately, or simultaneously"),
    ("goes on", "continues"),
    ("go on", "continue"),
    ("went on", "continued"),
    ("otherwise than", "differently from"),
    ("that of", "the noun again"),
    ("those of", "the noun again"),
    ("of its own", "its own X"),
    ("of their own", "their own X"),
    ("of theirs", "their own X"),
    ("is none", "`None` if"),
    ("are none", "`None` if"),
    ("none where", "`None` if"),
    ("none when", "`None` if"),
    ("none without", "`None` if"),
    ("so many", "the number"),
    ("as many as", "the number"),
];

/// Words that turn a doc comment or a heading into a question clause.
pub(super) const QUESTIONS: &[&str] =
    &["What", "Whether", "Who", "Whom", "Whose", "How", "Why", "Where", "When", "Which"];
