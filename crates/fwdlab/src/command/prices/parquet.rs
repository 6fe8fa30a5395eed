//! Prices as Parquet files, for queries over many kernels: counts, functions and steps, one row
//! each.

use super::findings::{FeaturePrices, Findings, Kernel, Price};
use super::history::{PLAIN, Step};
use anyhow::{Context, Result};
use fwdlab_export::columns::Columns;
use fwdlab_export::rows::{Row, Value};
use fwdlab_export::tables::{Column, Kind, Table};
use std::fs;
use std::path::Path;

const fn text(name: &'static str, meaning: &'static str) -> Column {
    Column { name, kind: Kind::Text, meaning }
}

const fn number(name: &'static str, meaning: &'static str) -> Column {
    Column { name, kind: Kind::Number, meaning }
}

const fn integer(name: &'static str, meaning: &'static str) -> Column {
    Column { name, kind: Kind::Integer, meaning }
}

const KERNEL: Column = text("kernel", "name of the kernel, as in all tables");
const FEATURE: Column = text("feature", "the feature, or `plain forwarding`");

static PRICES: Table = Table {
    name: "prices",
    meaning: "a feature, or plain forwarding, in a kernel",
    columns: &[
        KERNEL,
        integer("position", "position of the kernel in the order given, from 0"),
        text("release", "release that the kernel reports"),
        text("file", "file of the kernel"),
        text("traffic", "options of the traffic"),
        FEATURE,
        text("group", "heading of the feature; null for plain forwarding"),
        number("instructions", "instructions per packet; null if not counted"),
        number("price", "instructions per packet in addition to plain forwarding"),
        integer("sent", "packets sent while counting"),
        integer("lost", "packets lost of them"),
        text("reason", "why there is no count; null if there is one"),
    ],
};

static FUNCTIONS: Table = Table {
    name: "functions",
    meaning: "a function that a feature changes in a kernel",
    columns: &[
        KERNEL,
        FEATURE,
        text("function", "its name"),
        text("subsystem", "part of the kernel that it belongs to"),
        number("plain", "instructions per packet of plain forwarding"),
        number("instructions", "instructions per packet with the feature"),
        number("difference", "their difference"),
    ],
};

static STEPS: Table = Table {
    name: "steps",
    meaning: "a change between two kernels",
    columns: &[
        FEATURE,
        text("from", "the older kernel"),
        text("to", "the newer kernel"),
        text("kind", "step, drift, gained or lost"),
        number("before", "price in the older kernel"),
        number("after", "price in the newer kernel"),
        number("difference", "instructions per packet, sum over the functions that differ"),
        number("change", "the difference as a ratio of all instructions of a packet"),
        text("reason", "why one of the kernels lacks the feature"),
    ],
};

/// Writes the files `prices.parquet`, `functions.parquet` and `steps.parquet` into a directory.
///
/// # Errors
/// If a file can't be written.
pub(super) fn write(directory: &Path, findings: &Findings) -> Result<()> {
    fs::create_dir_all(directory).with_context(|| directory.display().to_string())?;
    let steps = findings.history.iter().flat_map(|history| &history.steps).map(step).collect();
    for (table, rows) in
        [(&PRICES, prices(findings)), (&FUNCTIONS, functions(findings)), (&STEPS, steps)]
    {
        let path = directory.join(table.name).with_extension("parquet");
        let bytes = Columns::of(table, rows)?.file()?;
        fs::write(&path, bytes).with_context(|| path.display().to_string())?;
    }
    Ok(())
}

/// Reads one of the files.
#[cfg(test)]
pub(super) fn read(directory: &Path, name: &str) -> Result<Columns> {
    let table = [&PRICES, &FUNCTIONS, &STEPS].into_iter().find(|table| table.name == name);
    let path = directory.join(name).with_extension("parquet");
    Ok(Columns::read(&path, table.context("a table")?)?)
}

fn word(text: &str) -> Value {
    Value::from(text.to_owned())
}

/// A row per kernel for plain forwarding, and one for each feature.
fn prices(findings: &Findings) -> Vec<Row> {
    let begin = |at: usize, kernel: &Kernel, feature: &str| {
        vec![
            word(&kernel.label),
            Value::Integer(at as i64),
            word(&kernel.release),
            word(&kernel.file),
            word(&findings.traffic),
            word(feature),
        ]
    };
    let mut rows = Vec::new();
    for (at, kernel) in findings.kernels.iter().enumerate() {
        let mut plain = begin(at, kernel, PLAIN);
        plain.push(Value::Null);
        plain.extend(match kernel.range {
            Some(_) => {
                let total = Value::Number(kernel.instructions);
                [total, Value::Null, Value::Null, Value::Null, Value::Null]
            }
            None => without_count("not counted"),
        });
        rows.push(plain);
        for feature in &findings.features {
            let mut row = begin(at, kernel, &feature.name);
            row.push(word(&feature.group));
            row.extend(match &feature.prices[at] {
                Price::Counted { price, instructions, sent, lost, .. } => [
                    Value::Number(*instructions),
                    Value::Number(*price),
                    Value::Integer(*sent as i64),
                    Value::Integer(*lost as i64),
                    Value::Null,
                ],
                Price::Absent { why } => without_count(why),
                Price::Missing => without_count("not counted"),
            });
            rows.push(row);
        }
    }
    rows
}

fn without_count(why: &str) -> [Value; 5] {
    [Value::Null, Value::Null, Value::Null, Value::Null, word(why)]
}

fn functions(findings: &Findings) -> Vec<Row> {
    let of = |feature: &FeaturePrices| -> Vec<Row> {
        let mut rows = Vec::new();
        for (price, kernel) in feature.prices.iter().zip(&findings.kernels) {
            let Price::Counted { functions, .. } = price else { continue };
            rows.extend(functions.iter().map(|function| {
                let numbers = [function.before, function.after, function.difference];
                let words = [&kernel.label, &feature.name, &function.name, &function.subsystem];
                let words = words.into_iter().map(|text| word(text));
                words.chain(numbers.map(Value::Number)).collect::<Row>()
            }));
        }
        rows
    };
    findings.features.iter().flat_map(of).collect()
}

fn step(step: &Step) -> Row {
    let words = [&step.feature, &step.from, &step.to].into_iter().map(|text| word(text));
    let numbers = match step.difference() {
        Some(found) => {
            [found.before, found.after, found.difference, found.change].map(Value::Number)
        }
        None => [Value::Null, Value::Null, Value::Null, Value::Null],
    };
    let kind = std::iter::once(word(step.change.name()));
    words.chain(kind).chain(numbers).chain([step.why().map_or(Value::Null, word)]).collect()
}
