//! Tables of typed cells.
//!
//! A column is a function from a row's subject to a cell, so a new statistic is one more column.
//! People see its title and the cells as `Cell::shown` formats them; programs read the same cells
//! under the column's keys, unrounded.

use super::inline::Inline;
use super::judgement::Judgement;
use super::measure::Measure;
use crate::format;
use crate::text::Tone;
use fwdlab_model::units::format_pps;
use serde_json::Value;

/// Rows of one kind.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Table {
    /// Name for programs. `None` if the data already contain everything.
    pub name: Option<&'static str>,
    /// Columns.
    pub columns: Vec<Column>,
    /// Rows, each with one cell per column.
    pub rows: Vec<Row>,
    /// True if a terminal prints each row in words, whatever the width.
    pub in_words: bool,
    /// Index of the column that a narrow terminal shortens: the first column at its end, any other
    /// at its beginning.
    pub flexible: usize,
    /// Heading of the rows' asides.
    pub asides: &'static str,
    /// True if a terminal splits a table that is too wide into panels, repeating the first column.
    pub in_panels: bool,
    /// Maximum number of rows shown by forms without room for all. `None` if all are shown.
    pub brief: Option<usize>,
    /// Text of those forms for the other rows, with `{}` for their number; may be empty.
    pub rest: &'static str,
    /// Keys that come first in each line for programs, in this order.
    pub first_keys: &'static [&'static str],
    /// Metrics of each row that dashboards plot.
    pub measures: &'static [Measure],
}

/// A column.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Column {
    /// Title for people.
    pub title: String,
    /// Keys of the cell's values for programs; if empty, the title in lower case.
    pub keys: Vec<&'static str>,
    /// True if only programs get the column.
    pub is_hidden: bool,
    /// True for numbers, which are right-aligned.
    pub is_number: bool,
    /// True if the rows' words contain the column.
    pub is_said: bool,
    /// True if terminals omit the column.
    pub is_for_pages: bool,
    /// True if text omits the column when the table is too wide.
    pub is_spare: bool,
    /// Explanation shown when a page's reader points at the title; may be empty.
    pub about: &'static str,
}

/// A row.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Row {
    /// Cells.
    pub cells: Vec<Cell>,
    /// Name of the row in texts.
    pub name: String,
    /// The row in words and its consequences, one paragraph each; for terminals.
    pub words: Vec<String>,
    /// Asides: text too long for a cell.
    pub aside: String,
    /// Meaning of the row.
    pub tone: Tone,
    /// True for an unremarkable row, which pages can omit.
    pub is_same: bool,
    /// The result as a test. `None` if the row is no comparison.
    pub judgement: Option<Judgement>,
}

/// A cell.
#[derive(Clone, Debug, Default, PartialEq)]
pub enum Cell {
    /// No value.
    #[default]
    None,
    /// Text.
    Text(Inline),
    /// A count.
    Count(i128),
    /// A rate in packets per second.
    Rate(f64),
    /// A number formatted by [`Digits`], with its unit.
    Number(f64, Digits, &'static str),
    /// Lower and upper end.
    Interval(f64, f64, Digits),
    /// A verdict: its kind (a class in pages) and its words.
    Verdict(String, String),
    /// Values with a different text for people.
    Values(Inline, Vec<Value>),
}

/// Number format.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Digits {
    /// Share in percent with this number of decimals.
    Percent(usize),
    /// Relative change in percent, with its sign.
    Signed(usize),
    /// Ratio, formatted as a relative change.
    Ratio(usize),
    /// This number of decimals.
    Decimals(usize),
    /// Three significant digits.
    Significant,
    /// Three significant digits with a sign.
    SignedSignificant,
    /// A p-value.
    P,
}

/// Format of large counts and rates.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum CountFormat {
    /// All digits: `1022445`.
    Plain,
    /// In groups of three.
    Grouped,
    /// Rates in a unit appropriate to their size: `1.02 Mpps`.
    Short,
}

impl Digits {
    /// Formats a number.
    pub fn print(self, number: f64) -> String {
        match self {
            Digits::Percent(digits) => format::percent(number, digits),
            Digits::Signed(digits) => format::signed_percent(number, digits),
            Digits::Ratio(digits) => format::signed_percent(number - 1.0, digits),
            Digits::Decimals(digits) => format!("{number:.digits$}"),
            Digits::Significant => format::significant(number),
            Digits::SignedSignificant => format::signed(number),
            Digits::P => format::p_value(number),
        }
    }
}

impl Cell {
    /// Cell with text.
    pub fn text(text: impl Into<Inline>) -> Cell {
        Cell::Text(text.into())
    }

    /// Cell with a count. `Cell::None` if there is none.
    pub fn count(count: impl Integer) -> Cell {
        count.whole().map_or(Cell::None, Cell::Count)
    }

    /// Cell with a rate in packets per second. `Cell::None` if there is none.
    pub fn rate(rate: impl Into<Option<f64>>) -> Cell {
        rate.into().map_or(Cell::None, Cell::Rate)
    }

    /// Cell with a number. `Cell::None` if there is none.
    pub fn number(number: impl Into<Option<f64>>, digits: Digits) -> Cell {
        number.into().map_or(Cell::None, |number| Cell::Number(number, digits, ""))
    }

    /// Cell with an interval. `Cell::None` if there is none.
    pub fn interval(interval: impl Into<Option<(f64, f64)>>, digits: Digits) -> Cell {
        interval.into().map_or(Cell::None, |(low, high)| Cell::Interval(low, high, digits))
    }

    /// Text for people.
    pub fn shown(&self, wholes: CountFormat) -> Inline {
        let whole = |number: i128| match wholes {
            CountFormat::Plain | CountFormat::Short => number.to_string(),
            CountFormat::Grouped => format::grouped(number),
        };
        match self {
            Cell::None => "-".into(),
            Cell::Text(text) | Cell::Values(text, _) => text.clone(),
            Cell::Count(count) => whole(*count).into(),
            Cell::Rate(pps) if wholes == CountFormat::Short => format_pps(*pps).into(),
            Cell::Rate(pps) => whole(pps.round() as i128).into(),
            Cell::Number(number, digits, "") => digits.print(*number).into(),
            Cell::Number(number, digits, unit) => {
                format!("{} {unit}", digits.print(*number)).into()
            }
            Cell::Interval(low, high, digits) => {
                format!("[{}, {}]", digits.print(*low), digits.print(*high)).into()
            }
            Cell::Verdict(_, words) => Inline::default().strong(words),
        }
    }

    /// Values for programs, one for each key of the column.
    pub fn values(&self) -> Vec<Value> {
        match self {
            Cell::None => Vec::new(),
            Cell::Text(text) => vec![text.plain().into()],
            Cell::Count(count) => vec![i64::try_from(*count).map_or(Value::Null, Value::from)],
            Cell::Rate(number) | Cell::Number(number, ..) => vec![(*number).into()],
            Cell::Interval(low, high, _) => vec![(*low).into(), (*high).into()],
            Cell::Verdict(kind, _) => vec![kind.as_str().into()],
            Cell::Values(_, values) => values.clone(),
        }
    }
}

/// Integers of any size, or none.
pub trait Integer {
    /// Returns the integer. `None` if it is missing.
    fn whole(self) -> Option<i128>;
}

macro_rules! whole {
    ($($number:ty)*) => { $(impl Integer for $number {
        fn whole(self) -> Option<i128> {
            i128::try_from(self).ok()
        }
    })* };
}
whole!(usize u64 u32 u16 i64);

impl<T: Integer> Integer for Option<T> {
    fn whole(self) -> Option<i128> {
        self?.whole()
    }
}

/// A table builder with one row for each subject; each column maps subjects to cells.
pub struct Rows<'t, T> {
    subjects: Vec<&'t T>,
    table: Table,
}

impl Table {
    /// Starts a table with one row for each subject and no columns.
    pub fn of<'t, T>(subjects: impl IntoIterator<Item = &'t T>) -> Rows<'t, T> {
        let subjects: Vec<&T> = subjects.into_iter().collect();
        let table = Table { rows: vec![Row::default(); subjects.len()], ..Table::default() };
        Rows { subjects, table }
    }

    /// Rows that a form of this detail level shows.
    pub fn shown(&self, room: super::DetailLevel) -> &[Row] {
        match self.brief {
            Some(most) if room < super::DetailLevel::All => &self.rows[..most.min(self.rows.len())],
            _ => &self.rows,
        }
    }

    /// Text of a form of this detail level for the rows that it does not show.
    pub fn rest(&self, room: super::DetailLevel) -> Option<String> {
        let others = self.rows.len() - self.shown(room).len();
        (others > 0 && !self.rest.is_empty()).then(|| self.rest.replace("{}", &others.to_string()))
    }

    /// Columns that people see, with their indices; empty columns are omitted.
    pub fn titled(&self) -> impl Iterator<Item = (usize, &Column)> + Clone {
        let is_dash = |cell: &Cell| match cell {
            Cell::None => true,
            Cell::Text(text) => text.plain().is_empty(),
            Cell::Values(text, _) => text.plain() == "-",
            _ => false,
        };
        let is_empty = move |at: usize| self.rows.iter().all(|row| is_dash(&row.cells[at]));
        let columns = self.columns.iter().enumerate();
        columns.filter(move |(at, column)| {
            !column.is_hidden && (self.rows.is_empty() || *at == 0 || !is_empty(*at))
        })
    }

    /// Asides of the rows, with the rows' names.
    pub fn beside(&self, room: super::DetailLevel) -> Vec<String> {
        let rows = self.shown(room).iter().filter(|row| !row.aside.is_empty());
        rows.map(|row| format!("{}: {}", row.called(), row.aside)).collect()
    }

    /// Keys in the order for programs, and the values of each row.
    pub fn for_programs(&self) -> (Vec<String>, Vec<Vec<Value>>) {
        let keys = self.columns.iter().enumerate().flat_map(|(at, column)| {
            column.keys().into_iter().enumerate().map(move |(n, key)| (key, at, n))
        });
        let place = |key: &str| {
            let place = self.first_keys.iter().position(|first| *first == key);
            place.unwrap_or(self.first_keys.len())
        };
        let mut keys: Vec<(String, usize, usize)> = keys.collect();
        keys.sort_by_key(|(key, ..)| place(key));
        let of = |row: &Row| {
            let values: Vec<Vec<Value>> = row.cells.iter().map(Cell::values).collect();
            keys.iter().map(|&(_, at, n)| values[at].get(n).cloned().unwrap_or_default()).collect()
        };
        let rows = self.rows.iter().map(of).collect();
        (keys.into_iter().map(|(key, ..)| key).collect(), rows)
    }
}

impl Row {
    /// Verdict of the row: its kind and its words.
    pub fn verdict(&self) -> Option<(&str, &str)> {
        self.cells.iter().find_map(|cell| match cell {
            Cell::Verdict(kind, words) => Some((kind.as_str(), words.as_str())),
            _ => None,
        })
    }

    /// Non-empty cells of the row, each as `TITLE VALUE`.
    pub fn statistics<'d>(&'d self, table: &'d Table) -> impl Iterator<Item = String> + 'd {
        let known = table.titled().filter(|(at, _)| !matches!(self.cells[*at], Cell::None));
        known.map(|(at, column)| {
            format!("{} {}", column.title, self.cells[at].shown(CountFormat::Short).plain())
        })
    }

    /// Name of the row, else its first cell.
    pub fn called(&self) -> String {
        match (self.name.as_str(), self.cells.first()) {
            ("", Some(first)) => first.shown(CountFormat::Short).plain(),
            (name, _) => name.to_owned(),
        }
    }
}

impl Column {
    fn keys(&self) -> Vec<String> {
        match self.keys.as_slice() {
            [] => vec![self.title.to_lowercase().replace(|c: char| !c.is_alphanumeric(), "_")],
            keys => keys.iter().map(|key| (*key).to_owned()).collect(),
        }
    }
}

impl<'t, T> Rows<'t, T> {
    /// Adds a column. Each column has its own closure type; this common part is compiled once per
    /// type of subject.
    fn push(&mut self, column: Column, cell: &dyn Fn(&'t T) -> Cell) {
        self.table.columns.push(column);
        for (row, subject) in self.table.rows.iter_mut().zip(&self.subjects) {
            row.cells.push(cell(subject));
        }
    }

    /// Adds a column of text.
    #[must_use]
    pub fn words(mut self, title: impl Into<String>, cell: impl Fn(&'t T) -> Cell) -> Self {
        self.push(Column { title: title.into(), ..Column::default() }, &cell);
        self
    }

    /// Adds a column of numbers.
    #[must_use]
    pub fn numbers(mut self, title: impl Into<String>, cell: impl Fn(&'t T) -> Cell) -> Self {
        let column = Column { title: title.into(), is_number: true, ..Column::default() };
        self.push(column, &cell);
        self
    }

    /// Adds a column for programs only.
    #[must_use]
    pub fn hidden(mut self, key: &'static str, cell: impl Fn(&'t T) -> Cell) -> Self {
        self.push(Column { keys: vec![key], is_hidden: true, ..Column::default() }, &cell);
        self
    }

    /// Sets the keys of the last column's values for programs.
    #[must_use]
    pub fn keys(mut self, keys: &[&'static str]) -> Self {
        if let Some(column) = self.table.columns.last_mut() {
            column.keys = keys.to_vec();
        }
        self
    }

    /// Omits the last column in terminals.
    #[must_use]
    pub fn page_only(mut self) -> Self {
        if let Some(column) = self.table.columns.last_mut() {
            column.is_for_pages = true;
        }
        self
    }

    /// Omits the last column in text if the table is too wide.
    #[must_use]
    pub fn spare(mut self) -> Self {
        if let Some(column) = self.table.columns.last_mut() {
            column.is_spare = true;
        }
        self
    }

    /// Explains the last column, if its title is not sufficient.
    #[must_use]
    pub fn about(mut self, about: &'static str) -> Self {
        if let Some(column) = self.table.columns.last_mut() {
            column.about = about;
        }
        self
    }

    /// Restricts the last column to programs, unless people need it.
    #[must_use]
    pub fn when(mut self, needed: bool) -> Self {
        if let Some(column) = self.table.columns.last_mut() {
            column.is_hidden |= !needed;
        }
        self
    }

    /// Sets the words and other attributes of each row. The words cover the columns added so far.
    #[must_use]
    pub fn with_words(mut self, say: impl Fn(&'t T, &mut Row)) -> Self {
        self.table.columns.iter_mut().for_each(|column| column.is_said = true);
        for (row, subject) in self.table.rows.iter_mut().zip(&self.subjects) {
            say(subject, row);
        }
        self
    }

    /// Returns the table.
    pub fn table(self) -> Table {
        self.table
    }

    /// Returns the table as a part of a document.
    pub fn block(self) -> super::Block {
        super::Block::Table(self.table)
    }

    /// Changes attributes of the whole table.
    #[must_use]
    pub fn set(mut self, change: impl FnOnce(&mut Table)) -> Self {
        change(&mut self.table);
        self
    }
}
