//! Parts of a document that other programs read as results: comparisons and metrics.

use super::judgement::Judgement;
use super::measure::Measure;
use super::table::Row;
use super::{Document, Table};
use serde_json::Value;

/// A value of a measure.
#[derive(Clone, Debug, PartialEq)]
pub struct Reading {
    /// Name of the row: a variant, or a comparison.
    pub benchmark: String,
    pub measure: Measure,
    pub value: f64,
    /// Lower and upper bound.
    pub bounds: Option<(f64, f64)>,
    /// The row in words; may be empty.
    pub words: String,
}

impl Document<'_> {
    /// Comparisons among the rows of all tables.
    pub fn comparisons(&self) -> Vec<(&Table, &Row, &Judgement)> {
        let rows = self.all_tables().into_iter();
        let rows = rows.flat_map(|table| table.rows.iter().map(move |row| (table, row)));
        rows.filter_map(|(table, row)| Some((table, row, row.judgement.as_ref()?))).collect()
    }

    /// Readings of all tables, in the order of the document. A row without a value, such as a
    /// variant without runs, has none.
    pub fn readings(&self) -> Vec<Reading> {
        let mut readings: Vec<Reading> = Vec::new();
        for table in self.all_tables() {
            for reading in table.readings() {
                let is_same = |known: &Reading| {
                    known.benchmark == reading.benchmark && known.measure == reading.measure
                };
                if !readings.iter().any(is_same) {
                    readings.push(reading);
                }
            }
        }
        readings
    }
}

impl Table {
    fn readings(&self) -> Vec<Reading> {
        let (keys, values) = self.for_programs();
        let column = |key: &str| keys.iter().position(|known| known == key);
        let mut readings = Vec::new();
        for (row, values) in self.rows.iter().zip(&values) {
            let number = |key: &str| values.get(column(key)?).and_then(Value::as_f64);
            readings.extend(self.measures.iter().filter_map(|measure| {
                let value = number(measure.value)?;
                // A sum of medians can be outside the range of the sums.
                let around = |[low, high]: [&str; 2]| {
                    Some((number(low)?.min(value), number(high)?.max(value)))
                };
                Some(Reading {
                    benchmark: row.called(),
                    measure: *measure,
                    value,
                    bounds: measure.bounds.and_then(around),
                    words: row.words.first().cloned().unwrap_or_default(),
                })
            }));
        }
        readings
    }
}
