//! Form for documents and code reviews: GitHub's Markdown with tables.

use crate::table::CountFormat;
use crate::{Block, DetailLevel, Document, Inline, Item, List, Remark, Section, Span, Table};

/// Renders the document; parts that other forms fold are shown, or cut short.
pub fn render(document: &Document<'_>) -> String {
    let mut parts = vec![format!("# {}", escaped(&document.title))];
    parts.extend(blocks(&document.conclusion, 2));
    parts.extend(blocks(&document.blocks, 2));
    parts.join("\n\n") + "\n"
}

/// Renders the document as files: `name`, which is short enough to read, and one for each page that
/// a section specifies, linked from the first. Captions, which must accompany every number, are on
/// each page.
pub fn pages(document: &Document<'_>, name: &str) -> Vec<(String, String)> {
    let page_of = |block: &Block| match block {
        Block::Section(section) => section.page,
        // Optional sections are on the page of the first section inside.
        Block::Where(_, inner) => match inner.first() {
            Some(Block::Section(section)) => section.page,
            _ => None,
        },
        _ => None,
    };
    let mut moved: Vec<(&str, Vec<&Block>)> = Vec::new();
    let mut parts = vec![format!("# {}", escaped(&document.title))];
    let mut main_blocks = document.conclusion.clone();
    for block in &document.blocks {
        match page_of(block) {
            None => main_blocks.push(block.clone()),
            Some(page) => match moved.iter_mut().find(|(known, _)| *known == page) {
                Some((_, blocks)) => blocks.push(block),
                None => moved.push((page, vec![block])),
            },
        }
    }
    let captions = document.conclusion.iter().chain(&document.blocks);
    let is_caption = |block: &&Block| matches!(block, Block::Remark(Remark::Caption, _));
    let captions: Vec<Block> = captions.filter(is_caption).cloned().collect();
    let mut files = Vec::new();
    let mut links = List::default();
    for (page, sections) in moved {
        let sections: Vec<Block> = sections.into_iter().cloned().collect();
        let written = blocks(&sections, 2);
        // A page is not needed if this form omits its content.
        if written.is_empty() {
            continue;
        }
        let titles = sections.iter().filter_map(|block| match block {
            Block::Section(section) => Some(section.title.plain()),
            _ => None,
        });
        let titles = titles.collect::<Vec<String>>().join(", ");
        let link = Inline::default().link(page, page).text(format!(": {titles}"));
        links.items.push(Item { text: link, list: List::default() });
        let back = Inline::from("Part of ").link(&document.title, name).text(".");
        let mut text = vec![format!("# {}", escaped(&document.title)), inline(&back)];
        text.extend(blocks(&captions, 2));
        text.extend(written);
        files.push((page.to_owned(), text.join("\n\n") + "\n"));
    }
    if !links.items.is_empty() {
        main_blocks.push(Block::section("More", vec![Block::List(links)]));
    }
    parts.extend(blocks(&main_blocks, 2));
    files.insert(0, (name.to_owned(), parts.join("\n\n") + "\n"));
    files
}

/// Parts to be separated by empty lines; `level` is the level of section headings.
fn blocks(blocks: &[Block], level: usize) -> Vec<String> {
    let mut parts: Vec<String> = Vec::new();
    let mut follows_remark = false;
    for block in blocks {
        let is_remark = matches!(block, Block::Remark(kind, _) if *kind != Remark::Caption);
        match (parts.last_mut(), block) {
            (Some(last), Block::Remark(kind, text)) if follows_remark && is_remark => {
                *last += &format!("\n>\n{}", remark(*kind, text));
            }
            _ => parts.extend(part(block, level)),
        }
        follows_remark = is_remark;
    }
    parts
}

fn part(block: &Block, level: usize) -> Vec<String> {
    match block {
        Block::Paragraph(text, _) => vec![inline(text)],
        Block::Remark(kind, text) => vec![remark(*kind, text)],
        Block::List(points) => vec![list(points, "  ").trim_end().to_owned()],
        Block::Table(rows) => table(rows),
        Block::Figure(figure) => figure
            .file
            .iter()
            .map(|file| format!("![{}]({file})", escaped(&figure.title)))
            .collect(),
        Block::Preformatted(text) => vec![format!("```\n{text}```")],
        Block::Section(Section { title, blocks: inner, .. }) => {
            let heading = format!("{} {}", "#".repeat(level), inline(title));
            [vec![heading], blocks(inner, level + 1)].concat()
        }
        Block::Where(room, inner) if *room <= DetailLevel::Page => blocks(inner, level),
        Block::Screen(inner) => blocks(inner, level),
        Block::Brief { whole, .. } => blocks(whole, level),
        Block::Where(..) | Block::Mail(_) => Vec::new(),
    }
}

fn remark(kind: Remark, text: &Inline) -> String {
    let text = inline(text);
    match kind {
        Remark::Caption => format!("> **{text}**"),
        Remark::Note => format!("> Note: {text}"),
        Remark::Warning => format!("> Warning: {text}"),
        Remark::Caution => format!("> {text}"),
    }
}

fn list(list_: &List, indent: &str) -> String {
    let (items, rest) = list_.shown(DetailLevel::Page);
    let inner = format!("{indent}  ");
    let mut text = String::new();
    for item in items {
        text += &format!("{indent}- {}\n{}", inline(&item.text), list(&item.list, &inner));
    }
    rest.into_iter().fold(text, |text, rest| text + &format!("{indent}- {rest}\n"))
}

fn table(table: &Table) -> Vec<String> {
    let row = |cells: Vec<String>| {
        let cell =
            |text: String| if text.is_empty() { " |".to_owned() } else { format!(" {text} |") };
        format!("|{}", cells.into_iter().map(cell).collect::<String>())
    };
    let columns: Vec<_> = table.titled().collect();
    let mut lines = vec![row(columns.iter().map(|(_, column)| escaped(&column.title)).collect())];
    let rule = |is_number: bool| if is_number { "---:|" } else { "---|" };
    lines.push(columns.iter().fold("|".to_owned(), |text, (_, c)| text + rule(c.is_number)));
    lines.extend(table.shown(DetailLevel::Page).iter().map(|subject| {
        let cell = |&(at, _): &(usize, _)| inline(&subject.cells[at].shown(CountFormat::Plain));
        row(columns.iter().map(cell).collect())
    }));
    let mut parts = vec![lines.join("\n")];
    parts.extend(table.rest(DetailLevel::Page).map(|rest| escaped(&rest)));
    let asides = table.beside(DetailLevel::Page);
    if !asides.is_empty() {
        parts.push(format!("{}:", table.asides));
        parts.push(list(&List::of(asides), "  ").trim_end().to_owned());
    }
    parts
}

fn inline(text: &Inline) -> String {
    text.0
        .iter()
        .map(|span| match span {
            Span::Text(text) => escaped(text),
            Span::Strong(text) => format!("**{}**", escaped(text)),
            Span::Code(text) => format!("`{text}`"),
            Span::Link { text, to } => format!("[{}]({to})", escaped(text)),
        })
        .collect()
}

/// Escapes text for Markdown, also inside a table. Brackets alone are text; only the character
/// after a bracket makes it a link.
fn escaped(text: &str) -> String {
    let mut escaped = String::with_capacity(text.len());
    let mut rest = text.chars().peekable();
    while let Some(c) = rest.next() {
        let next = rest.peek().copied();
        let is_markup = match c {
            '\\' | '|' | '*' | '>' | '`' | '~' => true,
            '<' => next.is_some_and(|c| c.is_ascii_alphabetic() || matches!(c, '/' | '!' | '?')),
            ']' => matches!(next, Some('(' | '[' | ':')),
            _ => false,
        };
        if is_markup {
            escaped.push('\\');
        }
        escaped.push(if matches!(c, '\n' | '\r') { ' ' } else { c });
    }
    escaped
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn markdown_text_is_escaped() {
        assert_eq!(escaped("a|b *c*\n<d>"), "a\\|b \\*c\\* \\<d\\>");
        assert_eq!(escaped("[x](y) [z]: w"), "[x\\](y) [z\\]: w");
        assert_eq!(escaped("[-1 %, 2 %], p < 0.1"), "[-1 %, 2 %], p < 0.1");
    }
}
