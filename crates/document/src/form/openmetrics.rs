//! Form for Prometheus and other collectors: OpenMetrics text 1.0
//! (<https://prometheus.io/docs/specs/om/open_metrics_spec/>), e.g. for the textfile collector of
//! `node_exporter`.
//!
//! Each measure is a gauge with the row as label `benchmark`; separate gauges have its bounds.

use super::json::rounded;
use crate::Document;
use crate::readings::Reading;

/// Renders a gauge for each measure and each of its bounds.
pub fn render(document: &Document<'_>) -> String {
    let readings = document.readings();
    let mut names: Vec<&str> = Vec::new();
    for reading in &readings {
        if !names.contains(&reading.measure.name) {
            names.push(reading.measure.name);
        }
    }
    let mut text = String::new();
    for name in names {
        let of: Vec<&Reading> =
            readings.iter().filter(|reading| reading.measure.name == name).collect();
        text += &family(&of, "", "", |reading| Some(reading.value));
        let low = |reading: &Reading| reading.bounds.map(|(low, _)| low);
        text += &family(&of, "_lower", ", lower bound", low);
        let high = |reading: &Reading| reading.bounds.map(|(_, high)| high);
        text += &family(&of, "_upper", ", upper bound", high);
    }
    text + "# EOF\n"
}

/// Renders a gauge of the readings of one measure; empty if no reading has a value.
fn family(
    readings: &[&Reading],
    suffix: &str,
    bound: &str,
    value: impl Fn(&Reading) -> Option<f64>,
) -> String {
    let values = readings.iter().filter_map(|reading| Some((*reading, value(reading)?)));
    let values: Vec<(&Reading, f64)> = values.collect();
    let Some((first, _)) = values.first() else { return String::new() };
    let measure = &first.measure;
    let name = format!("fwdlab_{}{suffix}", measure.name.replace('-', "_"));
    let better = if measure.is_smaller_better { "smaller" } else { "bigger" };
    let unit = match measure.unit {
        "" => String::new(),
        unit => format!(" in {unit}"),
    };
    let help = format!("{}{unit}{bound}; {better} is better.", measure.name);
    let mut text = format!("# TYPE {name} gauge\n# HELP {name} {}\n", escaped(&help));
    for (reading, value) in values {
        let value = rounded(value.into()).as_f64().unwrap_or(value);
        text += &format!("{name}{{benchmark=\"{}\"}} {value}\n", escaped(&reading.benchmark));
    }
    text
}

/// Escapes a label or a help text.
fn escaped(text: &str) -> String {
    text.replace('\\', "\\\\").replace('"', "\\\"").replace('\n', "\\n")
}
