//! Form for browsers: one self-contained page, wide and narrow, light and dark. It contains
//! everything; rarely needed parts are folded. All text is escaped, so nothing from an experiment
//! file can become markup.

use crate::plot::Drawing;
use crate::table::{Cell, CountFormat};
use crate::text::Tone;
use crate::{Block, Document, Inline, List, Remark, Section, Span, Table};

const STYLE: &str = include_str!("../../assets/style.css");
/// Sorts and filters tables; the page has the same content without it.
const SCRIPT: &str = include_str!("../../assets/page.js");
/// Minimum number of sections for a table of contents.
const CONTENTS: usize = 5;
/// Number of characters above which text in a cell may wrap.
const LONG_TEXT: usize = 32;

/// Renders the page.
pub fn render(document: &Document<'_>) -> String {
    let title = escaped(&document.title);
    let contents = contents(&document.blocks);
    let body = blocks(&document.conclusion, 2) + &contents + &blocks(&document.blocks, 2);
    format!(
        "<!DOCTYPE html>\n<html lang=\"en\">\n<head>\n<meta charset=\"utf-8\">\n<meta \
         name=\"viewport\" content=\"width=device-width, initial-scale=1\">\n<title>{title}\
         </title>\n<style>\n{STYLE}</style>\n</head>\n<body>\n<h1>{title}</h1>\n{body}<script>\n\
         {SCRIPT}</script>\n</body>\n</html>\n"
    )
}

/// Renders blocks; `level` is the level of section headings.
fn blocks(blocks: &[Block], level: usize) -> String {
    let is_note =
        |block: &Block| matches!(block, Block::Remark(kind, _) if *kind != Remark::Caption);
    // Consecutive notes share a box.
    let groups = blocks.chunk_by(|a, b| is_note(a) && is_note(b));
    let group = |group: &[Block]| {
        let parts: String = group.iter().map(|block| part(block, level)).collect();
        match group.first().is_some_and(is_note) {
            true => format!("<div class=\"note\">\n{parts}</div>\n"),
            false => parts,
        }
    };
    groups.map(group).collect()
}

/// Links to the sections of the page, if there are many.
fn contents(blocks: &[Block]) -> String {
    let mut titles: Vec<&Inline> = Vec::new();
    fn collect<'d>(blocks: &'d [Block], titles: &mut Vec<&'d Inline>) {
        for block in blocks {
            match block {
                Block::Section(section) => titles.push(&section.title),
                Block::Where(_, inner)
                | Block::Screen(inner)
                | Block::Brief { whole: inner, .. } => collect(inner, titles),
                _ => {}
            }
        }
    }
    collect(blocks, &mut titles);
    if titles.len() < CONTENTS {
        return String::new();
    }
    let links = titles.into_iter().map(|title| {
        let title = title.plain();
        format!("<a href=\"#{}\">{}</a>\n", anchor(&title), escaped(&title))
    });
    format!("<nav class=\"contents\">\n{}</nav>\n", links.collect::<String>())
}

/// Anchor of a section.
fn anchor(title: &str) -> String {
    let word = |c: char| if c.is_ascii_alphanumeric() { c.to_ascii_lowercase() } else { '-' };
    title.chars().map(word).collect()
}

fn part(block: &Block, level: usize) -> String {
    match block {
        Block::Paragraph(text, Tone::Heading) => {
            format!("<p class=\"lead\">{}</p>\n", inline(text))
        }
        Block::Paragraph(text, _) => format!("<p>{}</p>\n", inline(text)),
        Block::Remark(Remark::Caption, text) => {
            format!("<p class=\"caption\">{}</p>\n", inline(text))
        }
        Block::Remark(_, text) => format!("<p>{}</p>\n", inline(text)),
        Block::List(points) => list(points),
        Block::Table(rows) => table(rows),
        Block::Figure(figure) => figure_element(&figure.drawing),
        Block::Preformatted(text) => format!("<pre>{}</pre>\n", escaped(text)),
        Block::Section(Section { title, blocks: inner, folded: is_folded, .. }) => {
            // Only sections of the page have anchors, not sections within them.
            let id = match level {
                2 => format!(" id=\"{}\"", anchor(&title.plain())),
                _ => String::new(),
            };
            let heading = format!("<h{level}{id}>{}</h{level}>", inline(title));
            match is_folded {
                true => details_element(&heading, &blocks(inner, level + 1), false),
                false => format!("\n{heading}\n{}", blocks(inner, level + 1)),
            }
        }
        Block::Where(_, inner) | Block::Brief { whole: inner, .. } | Block::Screen(inner) => {
            blocks(inner, level)
        }
        Block::Mail(_) => String::new(),
    }
}

/// Renders a picture in each of its layouts; the style sheet shows the one that fits.
fn figure_element(drawing: &Drawing) -> String {
    let wide = element(&drawing.wide);
    match &drawing.narrow {
        Some(narrow) => format!(
            "<figure>\n<div class=\"wide\">{wide}</div>\n<div class=\"narrow\">{}</div>\n\
             </figure>\n",
            element(narrow)
        ),
        None if drawing.is_small => format!("<figure class=\"small\">\n{wide}\n</figure>\n"),
        None => format!("<figure class=\"scrolls\">\n{wide}\n</figure>\n"),
    }
}

fn details_element(summary: &str, content: &str, open: bool) -> String {
    let open = if open { " open" } else { "" };
    format!("<details{open}><summary>{summary}</summary>\n{content}</details>\n")
}

fn list(points: &List) -> String {
    let items = points.items.iter().map(|item| match item.list.items.is_empty() {
        true => format!("<li>{}</li>\n", inline(&item.text)),
        false => {
            let inner = details_element(&inline(&item.text), &list(&item.list), item.list.open);
            format!("<li>{inner}</li>\n")
        }
    });
    format!("<ul>\n{}</ul>\n", items.collect::<String>())
}

fn table(table: &Table) -> String {
    let heads = table.titled().map(|(_, column)| {
        let class = if column.is_number { " class=\"n\"" } else { "" };
        let about = match column.about {
            "" => String::new(),
            about => format!(" title=\"{}\"", escaped(about)),
        };
        format!("<th{class}{about}>{}</th>", escaped(&column.title))
    });
    let heads: String = heads.collect();
    let rows = table.rows.iter().map(|row| {
        let cells = table.titled().map(|(at, column)| cell(&row.cells[at], column.is_number));
        let same = if row.is_same { " class=\"same\"" } else { "" };
        format!("<tr{same}>{}</tr>\n", cells.collect::<String>())
    });
    let rows: String = rows.collect();
    let asides = table.beside(crate::DetailLevel::All);
    let asides = match asides.is_empty() {
        true => String::new(),
        false => details_element(&escaped(table.asides), &list(&List::of(asides)), false),
    };
    format!(
        "<div class=\"scroll\"><table>\n<thead><tr>{heads}</tr></thead>\n<tbody>\n{rows}</tbody>\n\
         </table></div>\n{asides}"
    )
}

fn cell(cell: &Cell, is_number: bool) -> String {
    let shown = cell.shown(CountFormat::Grouped);
    let class = match cell {
        Cell::Verdict(kind, words) => {
            let class = escaped(&kind.replace(' ', "-"));
            return format!("<td class=\"verdict {class}\">{}</td>", escape_joined(words));
        }
        _ if is_number => " class=\"n\"",
        Cell::Text(text) | Cell::Values(text, _) if text.plain().chars().count() > LONG_TEXT => {
            " class=\"text\""
        }
        _ => "",
    };
    // Value to sort by, if the text does not contain it.
    let by = match cell {
        Cell::Values(_, values) if is_number => values.first().and_then(serde_json::Value::as_f64),
        Cell::Interval(low, ..) => Some(*low),
        _ => None,
    };
    let by = by.filter(|by| !(is_number && is_value(&shown.plain(), *by)));
    let by = by.map_or(String::new(), |by| format!(" data-v=\"{by}\""));
    format!("<td{class}{by}>{}</td>", inline(&shown))
}

/// True if the text begins with this value, rounded to the digits in the text. The page's script
/// then sorts by the text.
fn is_value(text: &str, value: f64) -> bool {
    let text: String = text.chars().filter(|c| !"<>[".contains(*c) && !c.is_whitespace()).collect();
    let is_digit = |c: char| c.is_ascii_digit() || c == '.';
    let unsigned = text.trim_start_matches(['+', '-']);
    let number = &text[..text.len() - unsigned.trim_start_matches(is_digit).len()];
    let rest = &text[number.len()..];
    let decimals = number.split_once('.').map_or(0, |(_, decimals)| decimals.len());
    // The difference of a rounded number, and of its binary representation.
    let difference = 0.500_001 * 0.1_f64.powi(decimals as i32);
    let is_near = number.parse().is_ok_and(|read: f64| (read - value).abs() <= difference);
    is_near && !rest.starts_with(['e', 'E'])
}

fn inline(text: &Inline) -> String {
    text.0
        .iter()
        .map(|span| match span {
            Span::Text(text) => escape_joined(text),
            Span::Strong(text) => format!("<strong>{}</strong>", escape_joined(text)),
            Span::Code(text) => format!("<code>{}</code>", escaped(text)),
            Span::Link { text, to } => {
                format!("<a href=\"{}\">{}</a>", escaped(to), escaped(text))
            }
        })
        .collect()
}

/// Escapes text, and keeps a number on one line with its unit.
fn escape_joined(text: &str) -> String {
    const JOINED: [(&str, &str); 5] = [
        (" %", "\u{a0}%"),
        ("p < ", "p\u{a0}<\u{a0}"),
        (" Mpps", "\u{a0}Mpps"),
        (" kpps", "\u{a0}kpps"),
        (" ns", "\u{a0}ns"),
    ];
    let is_sum = text.split(" + ").count() > 1 && !text.contains(|c: char| c.is_alphabetic());
    let text = match text.strip_prefix("< ") {
        Some(limit) => format!("<\u{a0}{limit}"),
        None if is_sum => text.replace(' ', "\u{a0}"),
        None => text.to_owned(),
    };
    escaped(&JOINED.iter().fold(text, |text, (apart, joined)| text.replace(apart, joined)))
}

/// Escapes text for HTML and XML.
pub(super) fn escaped(text: &str) -> String {
    let mut escaped = String::with_capacity(text.len());
    for c in text.chars() {
        match c {
            '&' => escaped.push_str("&amp;"),
            '<' => escaped.push_str("&lt;"),
            '>' => escaped.push_str("&gt;"),
            '"' => escaped.push_str("&quot;"),
            '\'' => escaped.push_str("&#39;"),
            _ => escaped.push(c),
        }
    }
    escaped
}

/// An SVG document as an element of a page: without its XML declaration.
fn element(svg: &str) -> &str {
    svg.find("<svg").map_or(svg, |start| &svg[start..])
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn value_is_an_attribute_only_if_the_text_differs() {
        for (text, value) in [
            ("+1050.0", 1050.0),
            ("-0.4", -0.36),
            ("[12.5, 13.0]", 12.52),
            ("7", 7.0),
            ("1\u{202f}234", 1234.0),
        ] {
            assert!(is_value(text, value), "{text} {value}");
        }
        for (text, value) in
            [("+1.05 kpps", 1050.0), ("-", 0.0), ("", 0.0), ("1e6", 1e6), ("0.4", -0.36)]
        {
            assert!(!is_value(text, value), "{text} {value}");
        }
        let of =
            |text: &str, value: f64| cell(&Cell::Values(text.into(), vec![value.into()]), true);
        assert_eq!(of("+12.0", 12.04), "<td class=\"n\">+12.0</td>");
        assert_eq!(of("2 min", 120.0), "<td class=\"n\" data-v=\"120\">2 min</td>");
    }

    #[test]
    fn html_text_is_escaped_and_joined() {
        assert_eq!(escaped("<a href='x'>&\""), "&lt;a href=&#39;x&#39;&gt;&amp;&quot;");
        assert_eq!(escape_joined("-4.7 % of 5 kpps"), "-4.7\u{a0}% of 5\u{a0}kpps");
        assert_eq!(escape_joined("< 0.0001"), "&lt;\u{a0}0.0001");
        assert_eq!(
            (escape_joined("5 + 5"), escape_joined("a + b")),
            ("5\u{a0}+\u{a0}5".into(), "a + b".into())
        );
        assert_eq!(element("<?xml version=\"1.0\"?>\n<svg/>"), "<svg/>");
    }
}
