//! Form for mailing lists and code reviews: plain text of at most 45 lines in 72 columns, whatever
//! the document and the width of the terminal. A document with more lines is shortened until it
//! fits: first tables of more than twenty rows, then text, if that is enough. Otherwise its longest
//! parts are shortened and its last ones omitted.

use super::text::{self, Detail, Item, Part, Unit};
use crate::Document;
use crate::text::cut;

/// Line width that stays below 80 columns when a mail is quoted a few times.
const WIDTH: usize = 72;
/// Maximum number of lines: a screen.
const LINES: usize = 45;
/// Number of lines that a part keeps while others are longer.
const LEAST: usize = 4;
/// Number of lines that a text keeps if the tables then fit.
const TEXT: usize = 1;
/// Number of lines that a table keeps while text can be shortened: twenty rows.
const TABLE: usize = 22;
/// Mark of an omission.
const OMITTED: &str = "[...]";

/// Renders the document.
pub fn render(document: &Document<'_>) -> String {
    let laid_out = text::laid_out(document, WIDTH, Detail::Mail);
    if laid_out.lines.len() <= LINES {
        return text::text(laid_out.lines);
    }
    let lines: Vec<String> = laid_out.lines.into_iter().map(|line| line.text).collect();
    shortened(&lines, &laid_out.parts).into_iter().map(|line| line + "\n").collect()
}

/// Shortens the parts of a document to the available lines.
fn shortened(lines: &[String], parts: &[Part]) -> Vec<String> {
    let is_table = |number: &usize| parts[*number].unit == Unit::Row;
    let mut room = Room { lines: parts.iter().map(length).collect(), omitted: 0 };
    let last = parts.len().saturating_sub(1);
    room.shorten(TABLE, is_table);
    let mut brief = room.clone();
    brief.shorten(TEXT, |number| !is_table(number) && *number != last);
    // Text makes room for tables only.
    if brief.excess() == 0 && (0..parts.len()).any(|number| is_table(&number)) {
        room = brief;
    } else {
        room.shorten(LEAST, |_| true);
        room.omit(1..last);
    }
    let Room { lines: room, omitted } = room;
    let (mut shown, mut at) = (Vec::new(), 0);
    for (number, (part, room)) in parts.iter().zip(&room).enumerate() {
        let part_lines = &lines[at..at + length(part)];
        at += part_lines.len();
        if omitted > 0 && number + 1 == parts.len() {
            shown.push(format!("{OMITTED} {omitted} more parts"));
        }
        shown.extend(first(part_lines, part, *room));
    }
    shown
}

/// Number of lines of each part.
#[derive(Clone)]
struct Room {
    lines: Vec<usize>,
    /// Number of omitted parts, for which one line is needed.
    omitted: usize,
}

impl Room {
    fn excess(&self) -> usize {
        let lines = self.lines.iter().sum::<usize>() + usize::from(self.omitted > 0);
        lines.saturating_sub(LINES)
    }

    /// Takes lines from the parts of one kind until all fit or have `least` lines: from the longest
    /// part, of equal ones from the last.
    fn shorten(&mut self, least: usize, is_one: impl Fn(&usize) -> bool) {
        for _ in 0..self.excess() {
            let ones = (0..self.lines.len()).filter(&is_one);
            let longest = ones.max_by_key(|number| self.lines[*number]);
            let Some(longest) = longest.filter(|number| self.lines[*number] > least) else { break };
            self.lines[longest] -= 1;
        }
    }

    /// Omits parts, the last one first, until the others fit.
    fn omit(&mut self, parts: impl DoubleEndedIterator<Item = usize>) {
        for number in parts.rev() {
            if self.excess() == 0 {
                break;
            }
            self.omitted += usize::from(self.lines[number] > 0);
            self.lines[number] = 0;
        }
    }
}

fn length(part: &Part) -> usize {
    part.items.iter().map(|item| item.lines).sum()
}

/// Returns a part in at most `room` lines: its first items, the last line with the number of the
/// others.
fn first(lines: &[String], part: &Part, room: usize) -> Vec<String> {
    if lines.len() <= room {
        return lines.to_vec();
    }
    // The only line is not an empty one.
    let is_empty = |line: &&String| line.is_empty();
    let empty = if room == 1 { lines.iter().take_while(is_empty).count() } else { 0 };
    let lines = &lines[empty.min(lines.len().saturating_sub(1))..];
    let Some(room) = room.checked_sub(1) else { return Vec::new() };
    let (mut shown, mut used) = (0, 0);
    for Item { lines, .. } in &part.items {
        if used + lines > room {
            break;
        }
        used += lines;
        shown += 1;
    }
    let is_title_only = part.items[..shown].iter().all(|item| item.is_head);
    let more = part.items.len() - shown;
    // An item that is too long is itself shortened, rather than leave its part without any.
    if is_title_only || more == 1 {
        let mut some = lines[..room].to_vec();
        some.push(marked(&lines[room]));
        return some;
    }
    let unit = match part.unit {
        Unit::Line => "lines",
        Unit::Remark => "remarks",
        Unit::Warning => "warnings",
        Unit::Row => "rows",
        Unit::Entry => "entries",
    };
    let begin = lines.iter().find(|line| !line.is_empty()).map_or("", String::as_str);
    let indent: String = begin.chars().take_while(|c| *c == ' ').collect();
    let mut some = lines[..used].to_vec();
    some.push(format!("{indent}{OMITTED} {more} more {unit}"));
    some
}

/// Returns a line that ends with the mark of an omission.
fn marked(line: &str) -> String {
    format!("{} {OMITTED}", cut(line, WIDTH - OMITTED.len() - 1))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::table::Cell;
    use crate::{Block, List, Remark, Table};
    use proptest::prelude::*;

    fn word() -> impl Strategy<Value = String> {
        prop_oneof!["[a-z]{1,9}", "[a-z0-9/]{60,200}", "([a-z]{1,12} ){1,60}"]
    }

    fn table((rows, columns): (Vec<String>, usize)) -> Block {
        let cells = Table::of(&rows).words("name", Cell::text);
        let cells = (0..columns).fold(cells, |table, n| {
            table.words(format!("column {n}"), move |row| Cell::count(row.len().pow(n as u32 % 4)))
        });
        cells.set(|table| table.in_panels = columns > 6).block()
    }

    fn block() -> impl Strategy<Value = Block> {
        let words = || prop::collection::vec(word(), 1..70);
        let leaf = prop_oneof![
            word().prop_map(Block::text),
            word().prop_map(|text| Block::remark(Remark::Warning, text)),
            word().prop_map(|text| Block::remark(Remark::Note, text)),
            words().prop_map(|items| Block::List(List::of(items))),
            words().prop_map(|lines| Block::Preformatted(lines.join("\n") + "\n")),
            (words(), 0_usize..20).prop_map(table),
        ];
        leaf.prop_recursive(3, 60, 12, |inner| {
            let blocks = prop::collection::vec(inner, 0..12);
            prop_oneof![
                (word(), blocks.clone()).prop_map(|(title, blocks)| Block::section(title, blocks)),
                blocks.clone().prop_map(Block::Mail),
                blocks.prop_map(Block::Screen),
            ]
        })
    }

    proptest! {
        #![proptest_config(ProptestConfig { cases: 40, ..ProptestConfig::default() })]

        #[test]
        fn mail_of_any_document_fits_its_limits(
            title in word(),
            conclusion in prop::collection::vec(block(), 0..3),
            blocks in prop::collection::vec(block(), 0..20),
        ) {
            let document = Document { title, conclusion, blocks, data: &(), version: 1 };
            let mail = render(&document);
            prop_assert!(mail.lines().count() <= LINES, "{}\n{mail}", mail.lines().count());
            for line in mail.lines() {
                prop_assert!(line.chars().count() <= WIDTH, "{line}");
            }
        }
    }

    fn numbered(what: &str, count: usize) -> impl Iterator<Item = Block> {
        (0..count).map(move |n| Block::text(format!("{what} {n}")))
    }

    #[test]
    fn longest_part_is_shortened_and_others_stay_whole() {
        let rows: Vec<String> = (0..60).map(|n| format!("row {n}")).collect();
        let mut blocks: Vec<Block> = numbered("line", 8).collect();
        blocks.push(table((rows, 1)));
        blocks.push(Block::Mail(vec![Block::text("repeat: this")]));
        let title = "Made up".to_owned();
        let mail = render(&Document { title, conclusion: vec![], blocks, data: &(), version: 1 });
        let lines: Vec<&str> = mail.lines().collect();
        assert_eq!(lines.len(), LINES, "{mail}");
        assert!(lines.contains(&"line 7") && lines.contains(&"repeat: this"), "{mail}");
        assert!(lines.contains(&"[...] 29 more rows") && !mail.contains("row 31"), "{mail}");
    }

    #[test]
    fn last_parts_are_omitted_if_there_are_too_many() {
        let sections =
            (0..30).map(|n| Block::section(format!("Section {n}"), numbered("point", 5).collect()));
        let blocks = sections.chain([Block::Mail(vec![Block::text("repeat: this")])]).collect();
        let title = "Made up".to_owned();
        let mail = render(&Document { title, conclusion: vec![], blocks, data: &(), version: 1 });
        assert!(mail.lines().count() <= LINES, "{mail}");
        assert!(mail.starts_with("Made up\n\nSection 0\n  point 0\n"), "{mail}");
        assert!(mail.contains(" more lines\n") && mail.contains(" more parts\n"), "{mail}");
        assert!(mail.ends_with("repeat: this\n"), "{mail}");
    }

    #[test]
    fn words_longer_than_a_line_are_split() {
        let blocks = vec![Block::text(format!("see {}", "x".repeat(100)))];
        let title = "Made up".to_owned();
        let mail = render(&Document { title, conclusion: vec![], blocks, data: &(), version: 1 });
        assert_eq!(mail.matches('x').count(), 100, "{mail}");
        assert!(mail.lines().all(|line| line.chars().count() <= WIDTH), "{mail}");
    }
}
