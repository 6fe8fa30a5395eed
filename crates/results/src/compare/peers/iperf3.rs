//! `iperf3 -J` and `--json-stream`: each test is a run, in bits per second.
//!
//! With `--json-stream-full-output` the report of a test follows its events; both have the same
//! cookie and are one run. Read is `end.sum_received.bits_per_second`, or another sum by `--column`.
//! Intervals are parts of a test. Tests of another protocol, direction or number of streams are other benchmarks. Source:
//! `src/iperf_api.c` of esnet/iperf (the report of results, `test_start`, `error`).

use super::content::{Content, number, text};
use super::{Benchmark, Fault, Format, Reader, Reading, Request};
use crate::quantity::Quantity;
use serde_json::{Value, json};
use std::borrow::Cow;
use std::collections::HashSet;

pub(super) const READER: Reader =
    Reader { format: Format::Iperf3, file: "iperf3 -J", recognises, read };

/// Columns with their member of `end` and their meaning.
const COLUMNS: [(&str, &str, &str); 3] = [
    ("received", "sum_received", "received"),
    ("sent", "sum_sent", "sent"),
    ("sum", "sum", "in iperf3's old sum of sender and receiver"),
];

/// End of the names of the other direction's sums.
const REVERSE: &str = "_bidir_reverse";

fn recognises(content: &Content<'_>) -> bool {
    content.has_value(|value| {
        let is_whole = ["start", "intervals", "end"].iter().all(|name| value.get(name).is_some());
        let is_event = matches!(text(value, "/event"), Some("start" | "interval" | "end"));
        is_whole || is_event && value.get("data").is_some()
    })
}

fn read(content: &Content<'_>, request: Request<'_>) -> Result<Reading, Fault> {
    let requested = request.column.unwrap_or(COLUMNS[0].0);
    let Some((_, member, what)) = COLUMNS.into_iter().find(|(name, ..)| *name == requested) else {
        return Err(Fault::no_column(requested, &COLUMNS.map(|(name, ..)| name)));
    };
    let mut reading = Reading::default();
    let mut intervals = 0;
    let (tests, repeated) = tests(content.values())?;
    reading.leave_out("reports of tests that were read already", repeated);
    for test in tests {
        let parts = test.get("intervals").and_then(Value::as_array);
        intervals += parts.map_or(0, Vec::len);
        if test.get("error").is_some() {
            reading.unusable(None, "tests that failed", 1);
            continue;
        }
        let start = test.pointer("/start/test_start");
        let (Some(start), Some(end)) = (start, test.get("end").and_then(Value::as_object)) else {
            return Err(Fault::new(
                "a JSON value that is no test of iperf3",
                "give the files of different tools one by one",
            ));
        };
        if end.is_empty() {
            reading.unusable(None, "tests without an end", 1);
            continue;
        }
        // Old versions do not state in `test_start` that a test is bidirectional.
        let is_both = end.keys().any(|name| name.ends_with(REVERSE));
        let directions = match is_both {
            true => [("", "from the client"), (REVERSE, "from the server")].as_slice(),
            false => [("", "")].as_slice(),
        };
        for (suffix, direction) in directions {
            let sum = end.get(&format!("{member}{suffix}"));
            let Some(rate) = sum.and_then(|sum| number(sum, "/bits_per_second")) else {
                let names: Vec<&str> = COLUMNS
                    .iter()
                    .filter(|(_, member, _)| end.contains_key(*member))
                    .map(|(name, ..)| *name)
                    .collect();
                let what = format!("a test without `end.{member}{suffix}.bits_per_second`");
                let next = match names.is_empty() {
                    true => "measure again with `iperf3 -J`".to_owned(),
                    false => format!("give --column with one of {}", names.join(", ")),
                };
                return Err(Fault::new(what, next));
            };
            let benchmark = Benchmark::new(name(start, direction), Quantity::BIT_RATE, what);
            reading.benchmark(benchmark).values.push(rate);
        }
    }
    reading.parts = (intervals > 0).then_some(("intervals", intervals));
    Ok(reading)
}

/// Tests of a file, and the number of reports of tests that the file already has. The events of
/// `--json-stream` are collected into tests as `-J` writes them.
fn tests(values: &[Value]) -> Result<(Vec<Cow<'_, Value>>, usize), Fault> {
    let mut tests: Vec<Cow<'_, Value>> = Vec::new();
    let mut open: Option<Value> = None;
    let cut = || Fault::new("a test without its end", "remove it, or write the file again");
    for value in values {
        let (Some(event), Some(data)) = (text(value, "/event"), value.get("data")) else {
            tests.push(Cow::Borrowed(value));
            continue;
        };
        match (event, &mut open) {
            ("start", None) => open = Some(json!({ "start": data, "intervals": [] })),
            ("start", Some(_)) => return Err(cut()),
            ("interval", Some(test)) => {
                if let Some(intervals) = test["intervals"].as_array_mut() {
                    intervals.push(data.clone());
                }
            }
            ("error", Some(test)) => test["error"] = data.clone(),
            ("end", Some(test)) => {
                test["end"] = data.clone();
                tests.extend(open.take().map(Cow::Owned));
            }
            ("interval" | "end", None) => {
                let what = format!("an event `{event}` without the start of its test");
                return Err(Fault::new(what, "write the file again, whole"));
            }
            _ => {}
        }
    }
    if open.is_some() {
        return Err(cut());
    }
    let all = tests.len();
    let mut cookies = HashSet::new();
    tests.retain(|test| match text(test, "/start/cookie") {
        Some(cookie) if !cookie.is_empty() => cookies.insert(cookie.to_owned()),
        _ => true,
    });
    let repeated = all - tests.len();
    Ok((tests, repeated))
}

/// Name of a test by its settings: `TCP, 4 streams, reverse`.
fn name(start: &Value, direction: &str) -> String {
    let mut name = text(start, "/protocol").unwrap_or("unknown protocol").to_owned();
    match number(start, "/num_streams").unwrap_or(1.0) {
        1.0 => {}
        streams => name += &format!(", {streams} streams"),
    }
    if number(start, "/reverse").is_some_and(|reverse| reverse != 0.0) {
        name += ", reverse";
    }
    match direction {
        "" => name,
        direction => format!("{name}, {direction}"),
    }
}
