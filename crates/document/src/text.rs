//! Text for terminals: breaks and shortens lines.

/// A line of text and its meaning.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Line {
    /// The line, without a line feed.
    pub text: String,
    /// Meaning, for colours.
    pub tone: Tone,
}

/// Meaning of a line.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Tone {
    /// Ordinary text.
    #[default]
    Plain,
    /// A heading.
    Heading,
    /// The rate is higher, or the cost lower.
    Better,
    /// The rate is lower, or the cost higher.
    Worse,
    /// A remark, or an inconclusive result.
    Doubt,
}

/// Wraps a paragraph to lines of at most `width` columns; lines after the first begin with
/// `indent`. Leading blanks are kept, as are repeated blanks, which align columns. A number stays
/// with its unit, and longer words are not split. Styles (escape sequences) count as zero columns.
pub fn wrap(paragraph: &str, width: usize, indent: &str) -> Vec<String> {
    let text = paragraph.trim_start_matches(' ');
    let begin = &paragraph[..paragraph.len() - text.len()];
    fill(&words(text), " ", [begin, indent], |line| columns(line) <= width)
}

/// Distributes pieces over lines, separated by `between`: as many per line as `fits` admits, and at
/// least one. The indents are those of the first and of the other lines.
pub fn fill(
    pieces: &[String],
    between: &str,
    [first, other]: [&str; 2],
    fits: impl Fn(&str) -> bool,
) -> Vec<String> {
    let mut lines = Vec::new();
    let mut line: Option<String> = None;
    for piece in pieces {
        let longer = line.as_ref().map(|line| format!("{line}{between}{piece}"));
        line = match (longer, line) {
            (Some(longer), _) if fits(longer.trim_end()) => Some(longer),
            (_, None) => Some(format!("{first}{piece}")),
            (_, Some(full)) => {
                lines.push(full.trim_end().to_owned());
                Some(format!("{other}{piece}"))
            }
        };
    }
    lines.push(line.unwrap_or_default().trim_end().to_owned());
    lines
}

/// Cuts the text where it no longer `fits`, and appends an ellipsis.
pub fn cut_to(text: &str, fits: impl Fn(&str) -> bool) -> String {
    if fits(text) {
        return text.to_owned();
    }
    let mut kept = String::new();
    for c in text.chars() {
        if !fits(&format!("{kept}{c}…")) {
            break;
        }
        kept.push(c);
    }
    kept + "…"
}

/// Cuts a text that is longer than `width` columns.
pub fn cut(text: &str, width: usize) -> String {
    cut_to(text, |text| text.chars().count() <= width)
}

/// Cuts texts to `width` columns so that distinct texts stay distinct: at the end, else within the
/// longest comma-separated part, else at the beginning. `None` if no method keeps them distinct.
pub fn cut_apart(texts: &[&str], width: usize) -> Option<Vec<String>> {
    let distinct = |texts: &[&str]| texts.iter().collect::<std::collections::BTreeSet<_>>().len();
    let expected = distinct(texts);
    [cut as fn(&str, usize) -> String, cut_within, cut_front].into_iter().find_map(|cut_by| {
        let shorter: Vec<String> = texts.iter().map(|text| cut_by(text, width)).collect();
        let is_clear =
            distinct(&shorter.iter().map(String::as_str).collect::<Vec<_>>()) == expected;
        is_clear.then_some(shorter)
    })
}

/// Cuts the longest part of a text in the middle, if the text is longer than `width` columns.
fn cut_within(text: &str, width: usize) -> String {
    let count = |text: &str| text.chars().count();
    let parts: Vec<&str> = text.split(", ").collect();
    let longest = parts.iter().copied().max_by_key(|part| count(part)).unwrap_or_default();
    let room = (count(longest) + width).saturating_sub(count(text));
    // Fewer characters would not be recognisable.
    if count(text) <= width || room < 5 {
        return cut(text, width);
    }
    let tail = (room - 1) / 2;
    let end: String = longest.chars().skip(count(longest) - tail).collect();
    let begin: String = longest.chars().take(room - 1 - tail).collect();
    text.replacen(longest, &format!("{begin}…{end}"), 1)
}

/// Keeps the end of a text that is longer than `width` columns: paths differ at their ends.
pub fn cut_front(text: &str, width: usize) -> String {
    let count = text.chars().count();
    if count <= width {
        return text.to_owned();
    }
    std::iter::once('…').chain(text.chars().skip(count + 1 - width)).collect()
}

/// Number of columns of a text, without its styles.
pub fn columns(text: &str) -> usize {
    let mut in_style = false;
    let counts = |c: &char| match *c {
        '\u{1b}' => {
            in_style = true;
            false
        }
        c if in_style => {
            in_style = c != 'm';
            false
        }
        _ => true,
    };
    text.chars().filter(counts).count()
}

/// Words of a paragraph; a number stays with its unit, as do the two sides of an equals sign.
/// Repeated blanks leave empty words.
fn words(paragraph: &str) -> Vec<String> {
    let mut words: Vec<String> = Vec::new();
    for word in paragraph.split([' ', '\n', '\r', '\t']) {
        let is_unit = |c: char| c == '%' || c == '=';
        let belongs = ["kpps", "Mpps", "Gpps", "pps"].iter().any(|unit| word.starts_with(unit))
            || word.starts_with(is_unit);
        match words.last_mut() {
            Some(last) if !last.is_empty() && (belongs || last.ends_with(" =")) => {
                last.push(' ');
                last.push_str(word);
            }
            _ => words.push(word.to_owned()),
        }
    }
    words
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn wrap_uses_a_hanging_indent() {
        assert_eq!(
            wrap("one two three four incomprehensibilities five", 12, "  "),
            ["one two", "  three four", "  incomprehensibilities", "  five"]
        );
        assert_eq!(
            wrap("it grew by 2.5 %, p = 0.01", 12, ""),
            ["it grew by", "2.5 %,", "p = 0.01"]
        );
        assert_eq!(wrap("  one  two", 80, ""), ["  one  two"]);
        assert_eq!(wrap("  one two", 6, "    "), ["  one", "    two"]);
        assert_eq!(wrap("", 9, ""), [""]);
        assert_eq!(wrap("incomprehensibilities", 9, ""), ["incomprehensibilities"]);
    }

    #[test]
    fn cut_apart_keeps_texts_distinct() {
        let texts = ["r368606D27401v3, inet4", "r368606D27401v3, inet6", "r1, inet4"];
        let shorter = cut_apart(&texts, 16).expect("a way");
        assert_eq!(shorter, ["r368…01v3, inet4", "r368…01v3, inet6", "r1, inet4"]);
        assert_eq!(cut_apart(&["abcdef", "xbcdef"], 4).expect("a way"), ["abc…", "xbc…"]);
        assert_eq!(cut_apart(&["a/b/cdef", "a/b/cdeg"], 4).expect("a way"), ["…def", "…deg"]);
        assert_eq!(cut_apart(&["abcdef0hijkl", "abcdef1hijkl"], 5), None);
        assert_eq!(cut_apart(&["same", "same"], 3).expect("a way"), ["sa…", "sa…"]);
    }

    #[test]
    fn styles_have_no_width() {
        let bold = "\u{1b}[1mone\u{1b}[0m";
        assert_eq!(columns(bold), 3);
        assert_eq!(wrap(&format!("{bold} two"), 7, ""), [format!("{bold} two")]);
    }

    #[test]
    fn cut_shortens_long_texts() {
        assert_eq!(cut("stateful", 8), "stateful");
        assert_eq!(cut("stateful", 5), "stat…");
        assert_eq!(cut("", 0), "");
    }
}
