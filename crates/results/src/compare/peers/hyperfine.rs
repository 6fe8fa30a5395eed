//! `hyperfine --export-json`: each command is a benchmark, each element of `times` a run in
//! seconds.
//!
//! Source: `src/benchmark/benchmark_result.rs` and `src/export/json.rs` of sharkdp/hyperfine.

use super::content::{Content, text};
use super::{Benchmark, Fault, Format, Reader, Reading, Request, excerpt};
use crate::quantity::Quantity;
use serde_json::Value;

pub(super) const READER: Reader =
    Reader { format: Format::Hyperfine, file: "hyperfine --export-json", recognises, read };

const COLUMNS: [&str; 2] = ["times", "memory_usage_byte"];

fn recognises(content: &Content<'_>) -> bool {
    content.has_value(|value| {
        let results = value.get("results").and_then(Value::as_array);
        results.is_some_and(|all| all.iter().any(|one| text(one, "/command").is_some()))
    })
}

fn read(content: &Content<'_>, request: Request<'_>) -> Result<Reading, Fault> {
    let column = request.column.unwrap_or(COLUMNS[0]);
    let quantity = match column {
        "times" => Quantity::TIME,
        "memory_usage_byte" => Quantity::MEMORY,
        _ => return Err(Fault::no_column(column, &COLUMNS)),
    };
    let mut reading = Reading::default();
    for value in content.values() {
        let Some(results) = value.get("results").and_then(Value::as_array) else {
            let next = "give the files of different tools one by one";
            return Err(Fault::new("a JSON value without `results`", next));
        };
        for result in results {
            let name = name(result)?;
            if reading.benchmarks.iter().any(|known| known.name.as_deref() == Some(&*name)) {
                let what = format!("`{}` was measured twice", excerpt(&name));
                let next = "give the measurements as two files, or measure once with more runs";
                return Err(Fault::new(what, next));
            }
            let (values, failed) = runs(result, &name, column)?;
            let kind = "runs with an exit code other than 0";
            reading.unusable(Some(name.clone()), kind, failed);
            reading.benchmarks.push(Benchmark {
                name: Some(name),
                is_identity: false,
                is_secondary: false,
                quantity: quantity.clone(),
                what: "",
                values,
            });
        }
    }
    Ok(reading)
}

/// The command, with the parameters that distinguish it from other results of the same command.
fn name(result: &Value) -> Result<String, Fault> {
    let Some(command) = text(result, "/command") else {
        return Err(Fault::new("a result without `command`", "write the file again"));
    };
    let parameters = result.get("parameters").and_then(Value::as_object);
    let unused = parameters.into_iter().flatten().filter_map(|(name, value)| {
        let value = value.as_str()?;
        (!command.contains(value)).then(|| format!("{name} = {value}"))
    });
    let unused: Vec<String> = unused.collect();
    Ok(match unused.is_empty() {
        true => command.to_owned(),
        false => format!("{command} ({})", unused.join(", ")),
    })
}

/// Values of the successful runs, and the number of failed ones.
fn runs(result: &Value, name: &str, column: &str) -> Result<(Vec<f64>, usize), Fault> {
    let Some(values) = result.get(column).and_then(Value::as_array) else {
        let what = format!("the result of `{}` has no `{column}`", excerpt(name));
        return Err(Fault::new(what, "export the single runs, not only the summary"));
    };
    let values: Option<Vec<f64>> = values.iter().map(Value::as_f64).collect();
    let Some(values) = values else {
        let what = format!("`{column}` of `{}` has an element that is no number", excerpt(name));
        return Err(Fault::new(what, "write the file again"));
    };
    let codes = result.get("exit_codes").and_then(Value::as_array);
    let codes = codes.filter(|codes| codes.len() == values.len());
    let is_good = |at: usize| codes.is_none_or(|codes| codes[at] == 0);
    let good: Vec<f64> =
        values.iter().enumerate().filter(|(at, _)| is_good(*at)).map(|(_, value)| *value).collect();
    let failed = values.len() - good.len();
    Ok((good, failed))
}
