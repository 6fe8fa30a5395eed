//! Form for terminals, including narrow ones: tables if they fit, else one phrase per row.

use crate::table::{Column, CountFormat, Row};
use crate::text::{Line, Tone, cut_apart, cut_front, wrap};
use crate::{Block, DetailLevel, Document, Inline, List, Remark, Section, Table};

/// Minimum layout width.
const MIN_WIDTH: usize = 20;
/// Minimum width of a shortened first column.
const MIN_LABEL: usize = 16;
/// Blanks between two columns of a table.
const GAP: usize = 2;

/// Level of detail.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Detail {
    /// Only the result.
    #[default]
    Brief,
    /// The result and how it was obtained.
    Whole,
    /// The result, for a reader without any context.
    Mail,
}

/// Lays the document out in lines of at most `width` columns (longer words are not split), with the
/// conclusion last, in a mail first.
pub fn lines(document: &Document<'_>, width: usize, detail: Detail) -> Vec<Line> {
    laid_out(document, width, detail).lines
}

/// Lays the document out as [`lines`] does.
pub(super) fn laid_out(document: &Document<'_>, width: usize, detail: Detail) -> Lines {
    let width = width.max(MIN_WIDTH);
    let (lines, parts) = (Vec::new(), Vec::new());
    let mut out = Lines { width, detail, indent: 0, gap: false, lines, parts, apart: true };
    out.part(Unit::Line);
    out.paragraph(Tone::Heading, &document.title);
    out.apart = true;
    // A terminal ends with the conclusion, a mail begins with it.
    let parts = [&document.blocks, &document.conclusion];
    let order = if detail == Detail::Mail { [parts[1], parts[0]] } else { parts };
    out.blocks(order[0]);
    out.gap |= !document.conclusion.is_empty();
    out.apart = true;
    out.blocks(order[1]);
    out
}

/// Renders the document as one text.
pub fn render(document: &Document<'_>, width: usize) -> String {
    text(lines(document, width, Detail::Brief))
}

/// Joins lines, without their colours.
pub(super) fn text(lines: Vec<Line>) -> String {
    lines.into_iter().map(|line| line.text + "\n").collect()
}

/// Lines written so far.
pub(super) struct Lines {
    width: usize,
    detail: Detail,
    /// Blanks before each line.
    indent: usize,
    /// True if an empty line precedes the next line.
    gap: bool,
    pub(super) lines: Vec<Line>,
    /// The same lines by part.
    pub(super) parts: Vec<Part>,
    /// True if the next item begins a part.
    apart: bool,
}

/// Items of one kind that follow each other, such as the rows of a table.
pub(super) struct Part {
    pub(super) unit: Unit,
    pub(super) items: Vec<Item>,
}

/// Number of lines of an item.
pub(super) struct Item {
    pub(super) lines: usize,
    /// True for the heading of a section, and for the titles of a table.
    pub(super) is_head: bool,
}

/// Kind of the items of a part.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Unit {
    Line,
    Remark,
    Warning,
    Row,
    Entry,
}

impl Lines {
    fn push(&mut self, tone: Tone, text: String) {
        if std::mem::take(&mut self.gap) && !self.lines.is_empty() {
            self.add(Line { text: String::new(), tone: Tone::Plain });
        }
        let fits = self.detail != Detail::Mail || text.chars().count() <= self.width;
        let pieces = if fits { vec![text] } else { split(&text, self.width) };
        pieces.into_iter().for_each(|text| self.add(Line { text, tone }));
    }

    fn add(&mut self, line: Line) {
        self.lines.push(line);
        if let Some(item) = self.parts.last_mut().and_then(|part| part.items.last_mut()) {
            item.lines += 1;
        }
    }

    /// Begins an item, in a new part if its kind differs from the previous one's.
    fn part(&mut self, unit: Unit) {
        let apart = std::mem::take(&mut self.apart);
        match self.parts.last_mut() {
            // A heading belongs to the part that follows it.
            Some(part) if part.items.iter().all(|item| item.is_head) => part.unit = unit,
            Some(part) if part.unit == unit && !apart => (),
            _ => self.parts.push(Part { unit, items: Vec::new() }),
        }
        self.item(false);
    }

    /// Begins an item of the same part.
    fn item(&mut self, is_head: bool) {
        if let Some(part) = self.parts.last_mut() {
            part.items.push(Item { lines: 0, is_head });
        }
    }

    /// Appends each block as a separate part.
    fn separate(&mut self, blocks: &[Block]) {
        self.apart = true;
        self.blocks(blocks);
        self.apart = true;
    }

    /// Appends a paragraph; lines after the first are indented.
    fn paragraph(&mut self, tone: Tone, text: &str) {
        let begin = " ".repeat(self.indent);
        for line in wrap(&format!("{begin}{text}"), self.width, &format!("{begin}  ")) {
            self.push(tone, line);
        }
    }

    fn indented(&mut self, write: impl FnOnce(&mut Lines)) {
        self.indent += 2;
        write(self);
        self.indent -= 2;
    }

    fn blocks(&mut self, blocks: &[Block]) {
        blocks.iter().for_each(|block| self.block(block));
    }

    fn block(&mut self, block: &Block) {
        match block {
            Block::Paragraph(text, tone) => {
                self.part(Unit::Line);
                self.paragraph(*tone, &text.plain());
            }
            Block::Remark(kind, text) => {
                let is_warning = *kind == Remark::Warning;
                self.part(if is_warning { Unit::Warning } else { Unit::Remark });
                self.remark(*kind, text);
            }
            Block::List(list) => {
                self.apart = true;
                self.list(list);
            }
            Block::Table(table) if table.rows.is_empty() => (),
            Block::Table(table) => {
                // Parts of a section are not separated.
                let apart = !table.in_words || self.indent == 0;
                self.gap |= apart;
                self.table(table);
                self.gap |= apart;
            }
            // Terminals show no pictures.
            Block::Figure(_) => (),
            Block::Preformatted(text) => {
                self.apart = true;
                for line in text.lines() {
                    self.part(Unit::Line);
                    self.push(Tone::Plain, line.to_owned());
                }
            }
            Block::Section(Section { title, blocks, .. }) => {
                self.gap = true;
                self.parts.push(Part { unit: Unit::Line, items: Vec::new() });
                self.item(true);
                self.paragraph(Tone::Heading, &title.plain());
                self.indented(|lines| lines.separate(blocks));
                self.gap = true;
            }
            Block::Brief { whole, .. } if self.detail == Detail::Whole => self.separate(whole),
            Block::Mail(blocks) if self.detail == Detail::Mail => self.separate(blocks),
            Block::Screen(blocks) if self.detail != Detail::Mail => self.separate(blocks),
            Block::Brief { brief: blocks, .. } | Block::Where(DetailLevel::Terminal, blocks) => {
                self.separate(blocks);
            }
            Block::Where(..) | Block::Mail(_) | Block::Screen(_) => (),
        }
    }

    fn remark(&mut self, kind: Remark, text: &Inline) {
        let text = text.plain();
        let text = match kind {
            Remark::Caption | Remark::Caution => text,
            Remark::Note => format!("note: {text}"),
            Remark::Warning => format!("warning: {text}"),
        };
        self.paragraph(Tone::Doubt, &text);
    }

    fn list(&mut self, list: &List) {
        let (items, rest) = list.shown(DetailLevel::Terminal);
        for item in items {
            self.part(Unit::Entry);
            self.paragraph(Tone::Plain, &format!("- {}", item.text.plain()));
            self.indented(|lines| lines.list(&item.list));
        }
        if let Some(rest) = rest {
            self.part(Unit::Entry);
            self.paragraph(Tone::Plain, &format!("- {rest}"));
        }
    }

    fn table(&mut self, table: &Table) {
        let width = self.width - self.indent;
        let grid = Grid::that_fits(table, width, self.detail == Detail::Mail);
        let is_in_words = table.in_words && self.detail != Detail::Mail;
        self.apart = true;
        match grid {
            Some(grid) if !is_in_words => {
                let tones = table.shown(DetailLevel::Terminal).iter().map(|row| row.tone);
                let tones: Vec<Tone> = std::iter::once(Tone::Plain).chain(tones).collect();
                for panel in grid.panels(self.width - self.indent) {
                    self.gap |= !panel.is_first;
                    self.apart |= !panel.is_first;
                    self.rows(panel.rows, &tones);
                }
            }
            _ => table.shown(DetailLevel::Terminal).iter().for_each(|row| self.phrase(table, row)),
        }
        if let Some(rest) = table.rest(DetailLevel::Terminal) {
            self.part(Unit::Row);
            self.paragraph(Tone::Plain, &rest);
        }
        self.apart = true;
    }

    fn rows(&mut self, rows: Vec<String>, tones: &[Tone]) {
        let begin = " ".repeat(self.indent);
        for (number, (row, tone)) in rows.into_iter().zip(tones).enumerate() {
            self.part(Unit::Row);
            if let Some(item) = self.parts.last_mut().and_then(|part| part.items.last_mut()) {
                item.is_head = number == 0;
            }
            self.push(*tone, format!("{begin}{row}"));
        }
    }

    /// Appends a row in words: its own words and the cells that they do not contain, else its cells
    /// with their titles.
    fn phrase(&mut self, table: &Table, row: &Row) {
        let all_titled =
            table.titled().filter(|(_, column)| row.words.is_empty() || !column.is_said);
        let all_titled = all_titled.filter(|(_, column)| !column.is_for_pages);
        let cells = all_titled.filter_map(|(at, column)| {
            let shown = row.cells[at].shown(CountFormat::Short).plain();
            let is_name = at == 0 && row.words.is_empty();
            (!is_name).then(|| format!("{} {shown}", column.title).trim().to_owned())
        });
        let cells: Vec<String> = cells.collect();
        let text = match row.words.first() {
            Some(words) => {
                std::iter::once(words.clone()).chain(cells).collect::<Vec<_>>().join("; ")
            }
            None => cells.join(", "),
        };
        self.part(Unit::Row);
        self.paragraph(row.tone, &format!("{}: {text}", row.called()));
        for more in row.words.iter().skip(1) {
            self.indented(|lines| lines.paragraph(Tone::Plain, more));
        }
    }
}

/// Splits a line, also within words; the other pieces have its indent.
fn split(line: &str, width: usize) -> Vec<String> {
    let indent: String = line.chars().take_while(|c| *c == ' ').take(width / 2).collect();
    let characters: Vec<char> = line.chars().skip(indent.len()).collect();
    let pieces = characters.chunks(width - indent.len());
    pieces.map(|piece| indent.clone() + &String::from_iter(piece)).collect()
}

/// Layout of a table, in one or several panels.
struct Grid {
    /// Cells of the title row and of each row.
    cells: Vec<Vec<String>>,
    widths: Vec<usize>,
    numbers: Vec<bool>,
    /// True if labels are shortened.
    is_cut: bool,
}

/// Columns that fit next to each other.
struct Panel {
    is_first: bool,
    rows: Vec<String>,
}

impl Grid {
    /// Lays the table out. `None` if it is too wide, even with shorter labels that are still
    /// distinct, and has no panels.
    fn new(table: &Table, width: usize, left_out: &[usize]) -> Option<Grid> {
        let columns: Vec<_> =
            Grid::columns(table).filter(|(at, _)| !left_out.contains(at)).collect();
        let mut cells: Vec<Vec<String>> =
            vec![columns.iter().map(|(_, column)| column.title.clone()).collect()];
        cells.extend(table.shown(DetailLevel::Terminal).iter().map(|row| {
            columns.iter().map(|&(at, _)| row.cells[at].shown(CountFormat::Short).plain()).collect()
        }));
        let widest = |column: usize| {
            cells.iter().map(|row: &Vec<String>| row[column].chars().count()).max().unwrap_or(0)
        };
        let mut widths: Vec<usize> = (0..columns.len()).map(widest).collect();
        let whole = widths.iter().sum::<usize>() + GAP * widths.len().saturating_sub(1);
        let too_much = if table.in_panels { 0 } else { whole.saturating_sub(width) };
        let flexible = columns.iter().position(|(at, _)| *at == table.flexible).unwrap_or(0);
        let cut = widths.get_mut(flexible)?;
        if too_much > 0 {
            *cut = cut.checked_sub(too_much).filter(|left| *left >= MIN_LABEL)?;
        }
        if too_much > 0 {
            let width = widths[flexible];
            let whole: Vec<&str> = cells.iter().map(|row| row[flexible].as_str()).collect();
            let shorter = match flexible {
                0 => cut_apart(&whole, width)?,
                // Paths differ at their ends.
                _ => whole.iter().map(|text| cut_front(text, width)).collect(),
            };
            for (row, shorter) in cells.iter_mut().zip(shorter) {
                row[flexible] = shorter;
            }
        }
        let numbers = columns.iter().map(|(_, column)| column.is_number).collect();
        Some(Grid { cells, widths, numbers, is_cut: too_much > 0 })
    }

    /// Lays the table out without the columns that do not fit: first the spare ones from the last
    /// on, then, if `in_any_case`, the others. `None` if that does not suffice, or leaves fewer
    /// than two columns, or fewer than four for a table whose rows have their own words.
    fn that_fits(table: &Table, width: usize, in_any_case: bool) -> Option<Grid> {
        let all: Vec<(usize, bool)> =
            Grid::columns(table).map(|(at, column)| (at, column.is_spare)).collect();
        let of = |is_spare| all.iter().rev().filter(move |column| column.1 == is_spare);
        let order: Vec<usize> = of(true).chain(of(false)).map(|(at, _)| *at).collect();
        let most = match in_any_case {
            true => all.len().saturating_sub(if table.in_words { 4 } else { 2 }),
            false => of(true).count(),
        };
        // A label is shortened only if dropping spare columns does not suffice.
        let whole = (0..=of(true).count().min(most))
            .find_map(|count| Grid::new(table, width, &order[..count]).filter(|grid| !grid.is_cut));
        whole.or_else(|| (0..=most).find_map(|count| Grid::new(table, width, &order[..count])))
    }

    /// Columns shown in text, with their indices.
    fn columns(table: &Table) -> impl Iterator<Item = (usize, &Column)> {
        table.titled().filter(|(_, column)| !column.is_for_pages)
    }

    /// Rows in the required number of panels; each panel begins with the first column.
    fn panels(&self, width: usize) -> Vec<Panel> {
        let label = self.widths.first().copied().unwrap_or(0);
        let mut panels: Vec<Vec<usize>> = vec![vec![0]];
        let mut used = label;
        for (column, column_width) in self.widths.iter().enumerate().skip(1) {
            let Some(panel) = panels.last_mut() else { continue };
            if used + GAP + column_width > width && panel.len() > 1 {
                used = label + GAP + column_width;
                panels.push(vec![0, column]);
            } else {
                used += GAP + column_width;
                panel.push(column);
            }
        }
        let shown = panels.iter().enumerate();
        shown
            .map(|(number, columns)| Panel { is_first: number == 0, rows: self.rows(columns) })
            .collect()
    }

    /// Rows of some columns.
    fn rows(&self, columns: &[usize]) -> Vec<String> {
        let padded = |row: &[String], column: usize| {
            let (text, width) = (&row[column], self.widths[column]);
            match self.numbers[column] {
                true => format!("{text:>width$}"),
                false => format!("{text:width$}"),
            }
        };
        let row = |row: &Vec<String>| {
            let cells: Vec<String> = columns.iter().map(|&column| padded(row, column)).collect();
            cells.join(&" ".repeat(GAP)).trim_end().to_owned()
        };
        self.cells.iter().map(row).collect()
    }
}
