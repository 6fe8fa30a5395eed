//! Rectangles of a flame graph, with the data in their titles or in the texts for the pointer.

/// A drawn frame.
#[derive(Clone, Debug, PartialEq)]
pub(super) struct Rectangle {
    pub(super) name: String,
    pub(super) count: u64,
    /// Counted unit: `samples`.
    pub(super) unit: String,
    /// Left end in pixels, percent or samples, the same unit for all.
    pub(super) left: f64,
    /// Right end.
    pub(super) right: f64,
    /// Upper end in pixels.
    pub(super) y: f64,
    /// Maximum error of `left` and `right`.
    pub(super) tolerance: f64,
    /// True if the title also has a difference.
    pub(super) is_differential: bool,
}

/// All rectangles with a count, and the places (in bytes) of those whose count can't be read.
pub(super) fn drawn(text: &str) -> (Vec<Rectangle>, Vec<usize>) {
    // Each title is followed by its rectangle, before the next title.
    let titled = elements(text, "<title", titled);
    if !titled.0.is_empty() {
        return titled;
    }
    // Until 2013, flamegraph.pl had only texts to show under the pointer.
    elements(text, "onmouseover=\"s(", pointed)
}

/// Finds title and tag of a rectangle: from the beginning of the tag before a mark up to the mark,
/// and from there to the next mark. `None` if there is no rectangle.
type Finder = for<'a> fn(&'a str, &'a str) -> Option<(&'a str, &'a str)>;

fn elements(text: &str, mark: &str, find: Finder) -> (Vec<Rectangle>, Vec<usize>) {
    let (mut all, mut unreadable) = (Vec::new(), Vec::new());
    let mut places = text.match_indices(mark).map(|(at, _)| at).peekable();
    while let Some(at) = places.next() {
        let before = &text[text[..at].rfind('<').unwrap_or(at)..at];
        let after = &text[at + mark.len()..places.peek().copied().unwrap_or(text.len())];
        let Some((title, tag)) = find(before, after) else { continue };
        match rectangle(title, tag) {
            Some(rectangle) => all.push(rectangle),
            None => unreadable.push(at),
        }
    }
    (all, unreadable)
}

/// ` >name (12 samples, 3.4%)</title><rect x="1" .../>`.
fn titled<'a>(_: &'a str, text: &'a str) -> Option<(&'a str, &'a str)> {
    let (title, rest) = text.split_once("</title>")?;
    Some((title.split_once('>').map_or("", |(_, title)| title), next_rectangle(rest)?))
}

/// `<rect x="1" ... onmouseover="s('name (12 samples, 3.4%)')" />`, or the same in the group before
/// the rectangle.
fn pointed<'a>(before: &'a str, text: &'a str) -> Option<(&'a str, &'a str)> {
    let (info, rest) = text.split_once(")\"")?;
    let info = info.strip_prefix('\'').and_then(|info| info.strip_suffix('\'')).unwrap_or(info);
    // The label of a rectangle has the same text.
    let tag = match before.split_whitespace().next()? {
        "<rect" => before,
        "<g" => next_rectangle(rest)?,
        _ => return None,
    };
    Some((info, tag))
}

fn next_rectangle(text: &str) -> Option<&str> {
    let (_, tag) = text.split_once("<rect")?;
    Some(tag.split_once('>')?.0)
}

fn rectangle(title: &str, rect: &str) -> Option<Rectangle> {
    let title = unescape(title);
    let (name, count, unit, is_differential) = parse_title(&title)?;
    let (left, width, tolerance) = match (number(rect, "fg:x"), number(rect, "fg:w")) {
        // inferno gives samples exactly.
        (Some(x), Some(width)) => (x, width, 0.0),
        _ => (number(rect, "x")?, number(rect, "width")?, tolerance(rect)),
    };
    let y = number(rect, "y")?;
    let right = left + width;
    Some(Rectangle { name, count, unit, left, right, y, tolerance, is_differential })
}

/// `name (13,557,075 samples, 88.83%)`, `name (12 samples, 3.40%; +0.20%)`, and in differences of
/// 2011 `name (-3 sample weight, 12 samples, 3.40%)`.
fn parse_title(title: &str) -> Option<(String, u64, String, bool)> {
    let (name, rest) = title.trim().rsplit_once(" (")?;
    let (counted, share) = rest.strip_suffix(')')?.rsplit_once(", ")?;
    let weighed = counted.split_once(" sample weight, ");
    let (count, unit) = weighed.map_or(counted, |(_, counted)| counted).split_once(' ')?;
    let digits: String = count.chars().filter(|c| !matches!(c, ',' | '\u{a0}' | '_')).collect();
    let is_differential = share.contains(';') || weighed.is_some();
    share.contains('%').then_some(())?;
    Some((name.to_owned(), digits.parse().ok()?, unit.to_owned(), is_differential))
}

/// Value of an attribute without its unit. `None` unless it is finite.
fn number(tag: &str, name: &str) -> Option<f64> {
    let value = attribute(tag, name)?.trim();
    let value = value.strip_suffix('%').or_else(|| value.strip_suffix("px")).unwrap_or(value);
    value.parse::<f64>().ok().filter(|value| value.is_finite())
}

fn attribute<'a>(tag: &'a str, name: &str) -> Option<&'a str> {
    let at = tag.match_indices(name).map(|(at, _)| at).find(|&at| {
        tag[..at].ends_with(char::is_whitespace) && tag[at + name.len()..].starts_with("=\"")
    })?;
    tag[at + name.len() + 2..].split('"').next()
}

/// One unit in the last decimal place, because both ends are rounded.
fn tolerance(rect: &str) -> f64 {
    let decimals = |name| {
        let value = attribute(rect, name).unwrap_or_default().trim_end_matches(['%', 'p', 'x']);
        value.split_once('.').map_or(0, |(_, fraction)| fraction.len().min(9))
    };
    1.1 * 0.1_f64.powi(decimals("x").max(decimals("width")) as i32)
}

/// Decodes XML's five entities and numeric ones.
fn unescape(text: &str) -> String {
    let mut out = String::with_capacity(text.len());
    let mut rest = text;
    while let Some(at) = rest.find('&') {
        out.push_str(&rest[..at]);
        rest = &rest[at..];
        let entity = rest.find(';').and_then(|end| Some((character(&rest[1..end])?, end)));
        match entity {
            Some((c, end)) => {
                out.push(c);
                rest = &rest[end + 1..];
            }
            None => {
                out.push('&');
                rest = &rest[1..];
            }
        }
    }
    out + rest
}

fn character(entity: &str) -> Option<char> {
    Some(match entity {
        "amp" => '&',
        "lt" => '<',
        "gt" => '>',
        "quot" => '"',
        "apos" => '\'',
        _ => {
            let number = entity.strip_prefix('#')?;
            let code = match number.strip_prefix('x') {
                Some(hex) => u32::from_str_radix(hex, 16).ok()?,
                None => number.parse().ok()?,
            };
            char::from_u32(code)?
        }
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn parse_title_reads_counts_and_units() {
        for (title, expected) in [
            ("ip_rcv (2,771 samples, 0.02%)", Some(("ip_rcv", 2771, "samples", false))),
            ("f (int) (7 micro seconds, 100%)", Some(("f (int)", 7, "micro seconds", false))),
            ("f (7 samples, 1.20%; -0.30%)", Some(("f", 7, "samples", true))),
            ("f (-3 sample weight, 7 samples, 1.20%)", Some(("f", 7, "samples", true))),
            ("Flame Graph", None),
            ("f (x samples, 1%)", None),
        ] {
            let expected = expected.map(|(n, c, u, d)| (n.to_owned(), c, u.to_owned(), d));
            assert_eq!(parse_title(title), expected);
        }
    }

    #[test]
    fn unescaped_decodes_entities() {
        assert_eq!(unescape("a&lt;b&gt;&amp;amp;&#39;&#x41;&quot;&nope;&"), "a<b>&amp;'A\"&nope;&");
        assert_eq!(unescape("&#x110000;&;"), "&#x110000;&;");
    }

    #[test]
    fn drawn_reads_rectangles() {
        let text = "<title>Page</title><g class=\"f\"><title>f (3 samples, 1%)</title>\
                    <rect rx=\"2\" x=\"10.5\" y=\"7\" width=\"3.0\" height=\"15\"/></g>\
                    <g><title>g (1 samples, 1%)</title><rect x=\"1%\" y=\"7\" width=\"2%\" fg:x=\"5\" fg:w=\"6\"/></g>";
        let (all, unreadable) = drawn(text);
        assert_eq!((all.len(), unreadable.len()), (2, 0));
        assert_eq!((all[0].left, all[0].right, all[0].y), (10.5, 13.5, 7.0));
        assert!((all[0].tolerance - 0.11).abs() < 1e-12);
        assert_eq!((all[1].left, all[1].right, all[1].tolerance), (5.0, 11.0, 0.0));
    }
}
