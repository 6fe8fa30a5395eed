//! For browsers: one page that needs nothing beside it, wide and narrow, light and dark.
//! Everything is in it; what few need is folded away. All text is escaped: what comes from an
//! experiment file can't become markup.

use crate::document::table::{Cell, Wholes};
use crate::document::{Block, Document, Inline, List, Remark, Section, Span, Table};

const STYLE: &str = include_str!("../../../assets/style.css");
/// Longer text may break within a cell.
const LONG_TEXT: usize = 48;

/// The page.
pub fn render(document: &Document<'_>) -> String {
    let title = escaped(&document.title);
    let body = blocks(&document.conclusion, 2) + &blocks(&document.blocks, 2);
    format!(
        "<!DOCTYPE html>\n<html lang=\"en\">\n<head>\n<meta charset=\"utf-8\">\n<meta \
         name=\"viewport\" content=\"width=device-width, initial-scale=1\">\n<title>{title}\
         </title>\n<style>\n{STYLE}</style>\n</head>\n<body>\n<h1>{title}</h1>\n{body}</body>\n\
         </html>\n"
    )
}

/// The parts; headings of sections are of this level.
fn blocks(blocks: &[Block], level: usize) -> String {
    blocks.iter().map(|block| part(block, level)).collect()
}

fn part(block: &Block, level: usize) -> String {
    match block {
        Block::Paragraph(text, _) => format!("<p>{}</p>\n", inline(text)),
        Block::Remark(kind, text) => {
            let class = if *kind == Remark::Caption { "caption" } else { "note" };
            format!("<p class=\"{class}\">{}</p>\n", inline(text))
        }
        Block::List(points) => list(points),
        Block::Table(rows) => table(rows),
        Block::Figure(figure) => format!("<figure>\n{}\n</figure>\n", element(&figure.svg)),
        Block::Preformatted(text) => format!("<pre>{}</pre>\n", escaped(text)),
        Block::Section(Section { title, blocks: inner, folded: true }) => {
            folded(&inline(title), &blocks(inner, level), false)
        }
        Block::Section(Section { title, blocks: inner, .. }) => {
            format!("\n<h{level}>{}</h{level}>\n{}", inline(title), blocks(inner, level + 1))
        }
        Block::Where(_, inner) | Block::Brief { whole: inner, .. } => blocks(inner, level),
        Block::Mail(_) => String::new(),
    }
}

fn folded(summary: &str, content: &str, open: bool) -> String {
    let open = if open { " open" } else { "" };
    format!("<details{open}><summary>{summary}</summary>\n{content}</details>\n")
}

fn list(points: &List) -> String {
    let items = points.items.iter().map(|item| match item.list.items.is_empty() {
        true => format!("<li>{}</li>\n", inline(&item.text)),
        false => {
            let inner = folded(&inline(&item.text), &list(&item.list), item.list.open);
            format!("<li>{inner}</li>\n")
        }
    });
    format!("<ul>\n{}</ul>\n", items.collect::<String>())
}

fn table(table: &Table) -> String {
    let heads = table.titled().map(|(_, column)| {
        let class = if column.is_number { " class=\"n\"" } else { "" };
        format!("<th{class}>{}</th>", escaped(&column.title))
    });
    let heads: String = heads.collect();
    let rows = table.rows.iter().map(|row| {
        let cells = table.titled().map(|(at, column)| cell(&row.cells[at], column.is_number));
        format!("<tr>{}</tr>\n", cells.collect::<String>())
    });
    let rows: String = rows.collect();
    let beside = table.beside(crate::document::Room::All);
    let beside = match beside.is_empty() {
        true => String::new(),
        false => folded(&escaped(table.asides), &list(&List::of(beside)), false),
    };
    format!(
        "<div class=\"scroll\"><table>\n<thead><tr>{heads}</tr></thead>\n<tbody>\n{rows}</tbody>\n\
         </table></div>\n{beside}"
    )
}

fn cell(cell: &Cell, is_number: bool) -> String {
    let shown = cell.shown(Wholes::Grouped);
    let class = match cell {
        Cell::Verdict(kind, words) => {
            return format!("<td class=\"verdict {}\">{}</td>", escaped(kind), escaped(words));
        }
        _ if is_number => " class=\"n\"",
        Cell::Text(text) | Cell::Values(text, _) if text.plain().chars().count() > LONG_TEXT => {
            " class=\"text\""
        }
        _ => "",
    };
    format!("<td{class}>{}</td>", inline(&shown))
}

fn inline(text: &Inline) -> String {
    text.0
        .iter()
        .map(|span| match span {
            Span::Text(text) => escaped(text),
            Span::Strong(text) => format!("<strong>{}</strong>", escaped(text)),
            Span::Code(text) => format!("<code>{}</code>", escaped(text)),
            Span::Link { text, to } => {
                format!("<a href=\"{}\">{}</a>", escaped(to), escaped(text))
            }
        })
        .collect()
}

fn escaped(text: &str) -> String {
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
    fn labels_stay_text() {
        assert_eq!(escaped("<a href='x'>&\""), "&lt;a href=&#39;x&#39;&gt;&amp;&quot;");
        assert_eq!(element("<?xml version=\"1.0\"?>\n<svg/>"), "<svg/>");
    }
}
