//! The compact form of the fixtures: lines of `KEYWORD REST`, each followed by the lines of its
//! body, which begin with a tab.

/// A line of a fixture with its body.
pub(crate) struct Entry<'a> {
    pub(crate) keyword: &'a str,
    pub(crate) rest: &'a str,
    pub(crate) body: Vec<&'a str>,
}

impl Entry<'_> {
    /// Returns the body as text, with a newline after each line.
    pub(crate) fn text(&self) -> String {
        self.body.iter().flat_map(|line| [line, "\n"]).collect()
    }
}

/// Returns the entries of a fixture. Lines that begin with `#` are comments.
pub(crate) fn entries(text: &str) -> Vec<Entry<'_>> {
    let mut entries: Vec<Entry<'_>> = Vec::new();
    for line in text.lines().filter(|line| !line.starts_with('#')) {
        if let Some(line) = line.strip_prefix('\t') {
            entries.last_mut().expect("an entry before its body").body.push(line);
        } else if !line.is_empty() {
            let (keyword, rest) = line.split_once(' ').unwrap_or((line, ""));
            entries.push(Entry { keyword, rest, body: Vec::new() });
        }
    }
    entries
}
