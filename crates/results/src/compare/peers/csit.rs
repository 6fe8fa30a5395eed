//! Test-case JSON of FD.io CSIT (model 1.4 and 1.5): each trial of an MRR test is a run; any other
//! test has one value, so that each file (or JSON value of a file) is a run.
//!
//! The rates of both directions together are read: `receive_rate` of MRR, `ndr` or `pdr` of
//! NDRPDR, `critical_rate` of soak tests (lower bounds), `bandwidth` or `rate` of host stack tests,
//! the lost time of reconfigurations. Source: `resources/model_schema/test_case.schema.yaml` of
//! FDio/csit.

use super::content::{Content, number, text};
use super::{Benchmark, Fault, Format, Reader, Reading, Request, excerpt};
use crate::quantity::Quantity;
use serde_json::Value;

pub(super) const READER: Reader =
    Reader { format: Format::Csit, file: "CSIT's test-case JSON", recognises, read };

/// A value of a result type.
struct Column {
    /// `result.type`.
    of: &'static str,
    name: &'static str,
    /// Object with `value` or `values`, and `unit`.
    pointer: &'static str,
    what: &'static str,
}

const fn column(
    of: &'static str,
    name: &'static str,
    pointer: &'static str,
    what: &'static str,
) -> Column {
    Column { of, name, pointer, what }
}

const COLUMNS: [Column; 8] = [
    column("mrr", "receive_rate", "/receive_rate/rate", "received (MRR)"),
    column("mrr", "bandwidth", "/receive_rate/bandwidth", "received (MRR)"),
    column("ndrpdr", "ndr", "/ndr/lower/rate", "(NDR, lower bound)"),
    column("ndrpdr", "pdr", "/pdr/lower/rate", "(PDR, lower bound)"),
    column("soak", "critical_rate", "/critical_rate/lower/rate", "(critical rate, lower bound)"),
    column("reconf", "loss", "/loss/time", "lost"),
    column("hoststack", "bandwidth", "/bandwidth", "of goodput"),
    column("hoststack", "rate", "/rate", ""),
];

fn recognises(content: &Content<'_>) -> bool {
    content.has_value(|value| text(value, "/result/type").is_some() && test_name(value).is_some())
}

fn test_name(value: &Value) -> Option<&str> {
    ["/test_id", "/test_name_long", "/test_name_short"]
        .iter()
        .find_map(|pointer| text(value, pointer))
}

fn read(content: &Content<'_>, request: Request<'_>) -> Result<Reading, Fault> {
    let mut reading = Reading::default();
    for case in content.values() {
        let (Some(name), Some(kind)) = (test_name(case), text(case, "/result/type")) else {
            let next = "give the files of different tools one by one";
            return Err(Fault::new("a JSON value that is no test case of CSIT", next));
        };
        let result = &case["result"];
        if case.get("passed").and_then(Value::as_bool) == Some(false) {
            reading.unusable(Some(name.to_owned()), "test cases that failed", runs(result));
            continue;
        }
        let known: Vec<&Column> = COLUMNS.iter().filter(|column| column.of == kind).collect();
        let Some(&first) = known.first() else {
            let kind = format!("test cases of type {}", excerpt(kind));
            reading.unusable(Some(name.to_owned()), kind, 1);
            continue;
        };
        let column = match request.column {
            Some(requested) => known.iter().find(|column| column.name == requested).copied(),
            None if kind == "ndrpdr" => {
                let what = format!("`{}` has an NDR and a PDR", excerpt(name));
                return Err(Fault::new(what, "give --column ndr or --column pdr"));
            }
            None => Some(first),
        };
        let Some(column) = column else {
            let names: Vec<&str> = known.iter().map(|column| column.name).collect();
            return Err(Fault::no_column(request.column.unwrap_or_default(), &names));
        };
        let (values, unit) = values(result, column, name)?;
        let benchmark = Benchmark::new(name, quantity(unit, name)?, column.what);
        reading.benchmark(benchmark).values.extend(values);
    }
    Ok(reading)
}

/// Number of runs of a result.
fn runs(result: &Value) -> usize {
    let trials = result.pointer("/receive_rate/rate/values").and_then(Value::as_array);
    trials.map_or(1, Vec::len)
}

fn values<'v>(
    result: &'v Value,
    column: &Column,
    name: &str,
) -> Result<(Vec<f64>, &'v str), Fault> {
    let found = result.pointer(column.pointer);
    let lacking = |what: &str| {
        let path = column.pointer.replace('/', ".");
        let what = format!("`{}` has no {what} in `result{path}`", excerpt(name));
        Fault::new(what, "export the result again, or give another --column")
    };
    let Some(found) = found else { return Err(lacking("value")) };
    let values = match found.get("values").and_then(Value::as_array) {
        Some(trials) => trials.iter().map(Value::as_f64).collect::<Option<Vec<f64>>>(),
        None => number(found, "/value").map(|value| vec![value]),
    };
    let values = values.ok_or_else(|| lacking("number"))?;
    let unit = text(found, "/unit").ok_or_else(|| lacking("unit"))?;
    Ok((values, unit))
}

/// Quantity of a unit of the schema.
fn quantity(unit: &str, name: &str) -> Result<Quantity, Fault> {
    Ok(match unit {
        "pps" => Quantity::PACKET_RATE,
        "bps" => Quantity::BIT_RATE,
        "cps" => Quantity::named("connections/s", false),
        "rps" => Quantity::named("requests/s", false),
        "s" => Quantity::TIME,
        unit => {
            let what = format!("`{}` is in the unknown unit `{}`", excerpt(name), excerpt(unit));
            return Err(Fault::new(what, "export it in pps, cps, rps, bps or s"));
        }
    })
}
