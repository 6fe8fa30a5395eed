//! Tables of typed cells.
//!
//! A column says how a cell is made of a row's subject, so a further statistic is one more
//! `column`. People read its title and the cells as `Cell::shown` words them; programs read
//! the same cells under the column's keys, unrounded.

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
    /// What programs call it; none for a table that says nothing that the data don't.
    pub name: Option<&'static str>,
    /// The columns.
    pub columns: Vec<Column>,
    /// The rows, each with a cell for each column.
    pub rows: Vec<Row>,
    /// True where a terminal says each row in its own words, however wide it is.
    pub in_words: bool,
    /// The column that a terminal cuts where there is little room: the first at its end, another
    /// at its beginning.
    pub flexible: usize,
    /// What the asides of the rows are about.
    pub asides: &'static str,
    /// True if a terminal repeats the first column above groups of the others where the table is
    /// too wide for one.
    pub in_panels: bool,
    /// Rows that forms without room for all show; none for all.
    pub brief: Option<usize>,
    /// What those forms say of the others, with `{}` for their number; empty for nothing.
    pub rest: &'static str,
    /// Keys with which a line for programs begins, in this order; others follow.
    pub first_keys: &'static [&'static str],
    /// The figures of each row that dashboards plot.
    pub measures: &'static [Measure],
}

/// A column.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Column {
    /// What people call it.
    pub title: String,
    /// What programs call the values of its cells; none for the title in lower case.
    pub keys: Vec<&'static str>,
    /// True for one that programs alone get.
    pub is_hidden: bool,
    /// True for numbers, which stand below each other by their last digit.
    pub is_number: bool,
    /// True where the rows' own words hold it.
    pub is_said: bool,
    /// True for one that terminals leave out.
    pub is_for_pages: bool,
    /// True for one that text leaves out if the table is too wide.
    pub is_spare: bool,
    /// What it means, for pages that show it when it is pointed at; empty for what its title says.
    pub about: &'static str,
}

/// A row.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Row {
    /// The cells.
    pub cells: Vec<Cell>,
    /// How it is called in words.
    pub name: String,
    /// The row in words, and what follows from it, a paragraph each; for terminals.
    pub words: Vec<String>,
    /// Asides: text too long for a cell.
    pub aside: String,
    /// How it is meant.
    pub tone: Tone,
    /// True for a row without news: pages can leave those out.
    pub is_same: bool,
    /// The result as a test. `None` if the row is no comparison.
    pub judgement: Option<Judgement>,
}

/// A cell.
#[derive(Clone, Debug, Default, PartialEq)]
pub enum Cell {
    /// Nothing to say.
    #[default]
    None,
    /// Words.
    Text(Inline),
    /// A count.
    Count(i128),
    /// A rate in packets per second.
    Rate(f64),
    /// A number as [`Digits`] print it, with its unit.
    Number(f64, Digits, &'static str),
    /// From, to.
    Interval(f64, f64, Digits),
    /// A verdict: its kind (a class in pages) and its words.
    Verdict(String, String),
    /// Values that people read otherwise than programs.
    Values(Inline, Vec<Value>),
}

/// How a number is printed.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Digits {
    /// A share as percent with so many decimals.
    Percent(usize),
    /// A change as percent with its sign.
    Signed(usize),
    /// A ratio as the change that it is.
    Ratio(usize),
    /// So many decimals.
    Decimals(usize),
    /// Three significant digits.
    Significant,
    /// The same with a sign.
    SignedSignificant,
    /// A p-value.
    P,
}

/// How large counts and rates are printed.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum CountFormat {
    /// All digits: `1022445`.
    Plain,
    /// In groups of three.
    Grouped,
    /// Rates in a unit that suits their size: `1.02 Mpps`.
    Short,
}

impl Digits {
    /// The number as text.
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
    /// Words, where there are any.
    pub fn text(text: impl Into<Inline>) -> Cell {
        Cell::Text(text.into())
    }

    /// A count, where there is one.
    pub fn count(count: impl Integer) -> Cell {
        count.whole().map_or(Cell::None, Cell::Count)
    }

    /// A rate in packets per second, where there is one.
    pub fn rate(rate: impl Into<Option<f64>>) -> Cell {
        rate.into().map_or(Cell::None, Cell::Rate)
    }

    /// A number, where there is one.
    pub fn number(number: impl Into<Option<f64>>, digits: Digits) -> Cell {
        number.into().map_or(Cell::None, |number| Cell::Number(number, digits, ""))
    }

    /// An interval, where there is one.
    pub fn interval(interval: impl Into<Option<(f64, f64)>>, digits: Digits) -> Cell {
        interval.into().map_or(Cell::None, |(low, high)| Cell::Interval(low, high, digits))
    }

    /// What a person reads.
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

    /// What programs read, a value for each key of the column.
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

/// Whole numbers of every size, and none.
pub trait Integer {
    /// The number.
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

/// A table in the making: a row for each subject, and columns that say what of it they show.
pub struct Rows<'t, T> {
    subjects: Vec<&'t T>,
    table: Table,
}

impl Table {
    /// A table with a row for each subject, still without columns.
    pub fn of<'t, T>(subjects: impl IntoIterator<Item = &'t T>) -> Rows<'t, T> {
        let subjects: Vec<&T> = subjects.into_iter().collect();
        let table = Table { rows: vec![Row::default(); subjects.len()], ..Table::default() };
        Rows { subjects, table }
    }

    /// The rows that a form of this room shows.
    pub fn shown(&self, room: super::DetailLevel) -> &[Row] {
        match self.brief {
            Some(most) if room < super::DetailLevel::All => &self.rows[..most.min(self.rows.len())],
            _ => &self.rows,
        }
    }

    /// What a form of this room says of the rows that it doesn't show.
    pub fn rest(&self, room: super::DetailLevel) -> Option<String> {
        let others = self.rows.len() - self.shown(room).len();
        (others > 0 && !self.rest.is_empty()).then(|| self.rest.replace("{}", &others.to_string()))
    }

    /// The columns that people see, with their positions: none of those that are empty.
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

    /// Names and asides of the rows.
    pub fn beside(&self, room: super::DetailLevel) -> Vec<String> {
        let rows = self.shown(room).iter().filter(|row| !row.aside.is_empty());
        rows.map(|row| format!("{}: {}", row.called(), row.aside)).collect()
    }

    /// The keys in the order in which programs get them, and the values of each row.
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
    /// The verdict of the row: its kind and its words.
    pub fn verdict(&self) -> Option<(&str, &str)> {
        self.cells.iter().find_map(|cell| match cell {
            Cell::Verdict(kind, words) => Some((kind.as_str(), words.as_str())),
            _ => None,
        })
    }

    /// The cells of the row, each as `TITLE VALUE`, without empty ones.
    pub fn statistics<'d>(&'d self, table: &'d Table) -> impl Iterator<Item = String> + 'd {
        let known = table.titled().filter(|(at, _)| !matches!(self.cells[*at], Cell::None));
        known.map(|(at, column)| {
            format!("{} {}", column.title, self.cells[at].shown(CountFormat::Short).plain())
        })
    }

    /// How the row is called: by its name, else by its first cell.
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
    /// Adds a column. Every column is a closure of its own type: what they have in common is
    /// compiled once for each kind of subject.
    fn push(&mut self, column: Column, cell: &dyn Fn(&'t T) -> Cell) {
        self.table.columns.push(column);
        for (row, subject) in self.table.rows.iter_mut().zip(&self.subjects) {
            row.cells.push(cell(subject));
        }
    }

    /// A column of words.
    #[must_use]
    pub fn words(mut self, title: impl Into<String>, cell: impl Fn(&'t T) -> Cell) -> Self {
        self.push(Column { title: title.into(), ..Column::default() }, &cell);
        self
    }

    /// A column of numbers.
    #[must_use]
    pub fn numbers(mut self, title: impl Into<String>, cell: impl Fn(&'t T) -> Cell) -> Self {
        let column = Column { title: title.into(), is_number: true, ..Column::default() };
        self.push(column, &cell);
        self
    }

    /// A column that programs alone get.
    #[must_use]
    pub fn hidden(mut self, key: &'static str, cell: impl Fn(&'t T) -> Cell) -> Self {
        self.push(Column { keys: vec![key], is_hidden: true, ..Column::default() }, &cell);
        self
    }

    /// What programs call the values of the last column.
    #[must_use]
    pub fn keys(mut self, keys: &[&'static str]) -> Self {
        if let Some(column) = self.table.columns.last_mut() {
            column.keys = keys.to_vec();
        }
        self
    }

    /// The last column is left out of terminals.
    #[must_use]
    pub fn page_only(mut self) -> Self {
        if let Some(column) = self.table.columns.last_mut() {
            column.is_for_pages = true;
        }
        self
    }

    /// Text leaves the last column out if the table is too wide.
    #[must_use]
    pub fn spare(mut self) -> Self {
        if let Some(column) = self.table.columns.last_mut() {
            column.is_spare = true;
        }
        self
    }

    /// What the last column means, where its title doesn't say it.
    #[must_use]
    pub fn about(mut self, about: &'static str) -> Self {
        if let Some(column) = self.table.columns.last_mut() {
            column.about = about;
        }
        self
    }

    /// The last column is for programs alone, unless it is `needed` by people.
    #[must_use]
    pub fn when(mut self, needed: bool) -> Self {
        if let Some(column) = self.table.columns.last_mut() {
            column.is_hidden |= !needed;
        }
        self
    }

    /// What else is to be said of each row. Columns that stand before this are in its words.
    #[must_use]
    pub fn said(mut self, say: impl Fn(&'t T, &mut Row)) -> Self {
        self.table.columns.iter_mut().for_each(|column| column.is_said = true);
        for (row, subject) in self.table.rows.iter_mut().zip(&self.subjects) {
            say(subject, row);
        }
        self
    }

    /// The table.
    pub fn table(self) -> Table {
        self.table
    }

    /// The table as a part of a document.
    pub fn block(self) -> super::Block {
        super::Block::Table(self.table)
    }

    /// The same with what belongs to the table as a whole.
    #[must_use]
    pub fn set(mut self, change: impl FnOnce(&mut Table)) -> Self {
        change(&mut self.table);
        self
    }
}
