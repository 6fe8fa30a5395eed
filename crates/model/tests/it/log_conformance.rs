//! Logs of the netbenches archive, read and compared with known values.
//!
//! The repository contains figures of some, from which logs are rendered, and five experiments. Two
//! larger collections may be next to it (see `fwdlab_testdata`): `conformance/logs`, one log per
//! line format with the expected values (`expected.json`, made with the archive's own shell
//! pipeline and ministat of FreeBSD 14), and `archive`, whole experiments.

use fwdlab_model::log::{
    self, DuringLog, GeneratorLog, Info, InfoForm, Interval, Layout, Log, NumberedLine, Trend,
};
use fwdlab_testdata::{FixtureLog, archives, larger};
use serde_json::Value;
use std::fs;
use std::path::Path;

#[test]
fn rendered_logs_have_their_source_values() {
    let logs = fwdlab_testdata::logs();
    assert!(logs.len() > 20);
    for FixtureLog { number, text, expected } in logs {
        let Log::Generator(log) = log::parse(text.as_bytes()).unwrap() else { panic!("{number}") };
        let layout = match expected.layout {
            fwdlab_testdata::Layout::F1 => Layout::F1,
            fwdlab_testdata::Layout::F2 => Layout::F2,
        };
        assert_eq!(log.form.map(|form| form.layout), Some(layout), "{number}");
        assert_eq!(log.newlines as u64, expected.lines, "{number}");
        assert_eq!(rates(log.intervals.iter()), expected.rates_pps, "{number}");
        let mut kept = rates(log.kept_by_netbenches_rule());
        kept.sort_unstable();
        assert_eq!(kept.len(), expected.kept, "{number}");
        assert_eq!(mean_even(&kept).map(printed), Some(expected.median), "{number}");
        assert_eq!(upper_even(&kept).map(printed), Some(expected.upper_median), "{number}");
        examine(&number, &log);
    }
}

#[test]
fn logs_have_the_expected_values() {
    let Some(folder) = larger("conformance/logs") else { return };
    let text = fs::read_to_string(folder.join("expected.json")).unwrap();
    let expected: Value = serde_json::from_str(&text).unwrap();
    let expected = expected.as_object().unwrap();
    for (name, expected) in expected {
        println!("{name}");
        let bytes = fs::read(folder.join(name)).unwrap();
        match expected["kind"].as_str().unwrap() {
            "info" => info(&bytes, expected),
            "during" => during(&bytes, expected),
            _ if expected["format"] == "equilibrium" => equilibrium(&bytes, expected),
            _ => generator(&bytes, expected),
        }
    }
    assert_eq!(expected.len(), 64);
}

fn generator(bytes: &[u8], expected: &Value) {
    let Log::Generator(log) = log::parse(bytes).unwrap() else { panic!("another family") };
    assert_eq!(expected["lines"], log.newlines);
    assert_eq!(expected["format"].as_str(), log.form.map(|form| form.layout.name()));
    assert_eq!(numbers(&expected["per_second_all_pps"]), rates(log.intervals.iter()));
    let kept = log.kept_by_netbenches_rule().map(|interval| interval.pps);
    let mut kept: Vec<u64> = kept.collect();
    match &expected["kept_pps"] {
        Value::Null => assert!(kept.is_empty() && log.newlines <= 25),
        rates => assert_eq!(numbers(rates), kept),
    }
    kept.sort_unstable();
    assert_eq!(expected["median"].as_str(), mean_even(&kept).map(printed).as_deref());
    assert_eq!(expected["median_upper_even"].as_str(), upper_even(&kept).map(printed).as_deref());
    assert_eq!(expected["total"].as_str(), log.total.as_ref().map(|total| total.text.as_str()));
    assert_eq!(expected["speed"].as_str(), log.speed.as_ref().map(|speed| speed.text.as_str()));
    let command = log.command.as_ref().unwrap();
    assert_eq!(expected["cmd"], command.text);
    assert_eq!(expected["cmd_host"].as_str(), command.host.as_deref());
    assert_eq!(log.unknown, [] as [NumberedLine; 0]);
}

fn rates<'a>(intervals: impl Iterator<Item = &'a Interval>) -> Vec<u64> {
    intervals.map(|interval| interval.pps).collect()
}

fn numbers(list: &Value) -> Vec<u64> {
    list.as_array().unwrap().iter().map(|number| number.as_u64().unwrap()).collect()
}

/// Returns the median of sorted values, the mean of two for an even number; `None` with fewer than
/// three values.
fn mean_even(sorted: &[u64]) -> Option<f64> {
    let middle = sorted.len() / 2;
    let mean = |pair: &[u64]| (pair[0] + pair[1]) as f64 / 2.0;
    match sorted.len() {
        0..3 => None,
        even if even % 2 == 0 => Some(mean(&sorted[middle - 1..=middle])),
        _ => Some(sorted[middle] as f64),
    }
}

/// Returns the median of sorted values, the upper one for an even number.
fn upper_even(sorted: &[u64]) -> Option<f64> {
    (sorted.len() > 2).then(|| sorted[sorted.len() / 2] as f64)
}

/// Formats values between 1 and 10^8 as `%.8g`.
fn printed(value: f64) -> String {
    assert!((1.0..99_999_999.5).contains(&value), "{value} needs an exponent");
    let digits = format!("{}", value.trunc()).len();
    let text = format!("{value:.*}", 8 - digits);
    if text.contains('.') {
        text.trim_end_matches('0').trim_end_matches('.').to_owned()
    } else {
        text
    }
}

fn equilibrium(bytes: &[u8], expected: &Value) {
    let Log::Equilibrium(log) = log::parse(bytes).unwrap() else { panic!("another family") };
    let estimate = log.estimate.unwrap();
    assert_eq!(expected["estimated_mbps"][0], estimate.mbps.to_string());
    assert_eq!(expected["max_mbps"][0], estimate.max_mbps.to_string());
    assert_eq!(expected["iterations"], log.steps.len());
    let offered: Option<Vec<u64>> = log.steps.iter().map(|step| step.offered_mbps).collect();
    let measured: Option<Vec<u64>> = log.steps.iter().map(|step| step.measured_mbps).collect();
    assert_eq!(Some(numbers(&expected["offered"])), offered);
    assert_eq!(Some(numbers(&expected["measured"])), measured);
    assert_eq!((log.unknown_count, log.steps[0].trend), (0, None));
    assert!(log.steps[1..].iter().all(|step| step.trend.is_some() && step.step_mbps.is_some()));
    assert!(log.steps.iter().any(|step| step.trend == Some(Trend::Decreasing)));
    assert!(log.command.unwrap().program().unwrap().starts_with("equilibrium"));
}

fn info(bytes: &[u8], expected: &Value) {
    let info = Info::parse(bytes).unwrap();
    assert_eq!(info.unknown, [] as [NumberedLine; 0]);
    let none = |value: &Value| value.as_str().filter(|&v| v != "none" && !v.is_empty()).is_none();
    let expect_value = |name: &str, value: &Option<String>| match value {
        None => assert!(none(&expected[name]), "{name}: {}", expected[name]),
        Some(value) => assert_eq!(expected[name], *value, "{name}"),
    };
    expect_value("CFG", &info.configuration_path);
    if expected["format"] == "shell" {
        assert_eq!(info.form, InfoForm::Shell);
        expect_value("IMAGE", &info.image);
        expect_value("PKTGEN", &info.traffic);
        expect_value("UNAME", &info.uname);
        assert_eq!(info.revision(), info.image.as_deref());
        return;
    }
    let cut = expected["end"].is_null();
    assert_eq!(info.form, if cut { InfoForm::TruncatedText } else { InfoForm::Text });
    expect_value("Image", &info.image);
    expect_value("uname", &info.uname);
    expect_value("start", &info.started);
    expect_value("end", &info.ended);
    assert!(info.started_at().is_some_and(|moment| moment.starts_with("201")));
    assert_eq!(info.ended_at().is_none(), cut);
    let revision = info.image.as_deref().map(|image| image.split('-').nth(1).unwrap());
    assert_eq!(info.revision(), revision);
}

fn during(bytes: &[u8], expected: &Value) {
    let log = DuringLog::parse(bytes).unwrap();
    assert_eq!(expected["data_lines"], log.rows.len());
    assert_eq!((log.unknown_count, log.rows[0].len()), (0, 11));
    let command = log.command.unwrap();
    assert!(command.text.contains("nstat") && command.host.is_some());
}

#[test]
fn whole_experiments_have_no_unknown_lines() {
    for archive in archives() {
        let known = if archive.is_larger() { (440, 33_519) } else { (440, 20_014) };
        assert_eq!(hold_no_unknown_line(archive.path()), known);
    }
}

/// Returns the number of logs, and the number of rates in them.
fn hold_no_unknown_line(folder: &Path) -> (usize, usize) {
    let (mut logs, mut intervals) = (0, 0);
    let mut visit = vec![folder.to_path_buf()];
    while let Some(folder) = visit.pop() {
        for entry in fs::read_dir(&folder).unwrap() {
            let path = entry.unwrap().path();
            let name = path.file_name().unwrap().to_string_lossy().into_owned();
            if path.is_dir() {
                visit.push(path);
            } else if name.ends_with(".receiver") || name.ends_with(".sender") {
                let log = GeneratorLog::parse(&fs::read(&path).unwrap()).unwrap();
                logs += 1;
                intervals += log.intervals.len();
                examine(&path.display().to_string(), &log);
            } else if name.ends_with(".info") {
                let info = Info::parse(&fs::read(&path).unwrap()).unwrap();
                assert_eq!(info.unknown, [] as [NumberedLine; 0], "{}", path.display());
            }
        }
    }
    (logs, intervals)
}

fn examine(name: &str, log: &GeneratorLog) {
    assert_eq!(log.unknown, [] as [NumberedLine; 0], "{name}");
    assert_eq!(log.errors, [] as [NumberedLine; 0], "{name}");
    for interval in &log.intervals {
        assert_eq!(Some(interval.pps), interval.computed_pps(), "{name}: {interval:?}");
        assert!(interval.exact);
    }
    let command = log.command.as_ref().unwrap();
    assert!(command.function().is_some() && command.interface().is_some(), "{name}");
    if name.ends_with(".sender") {
        let flows = command.flows().unwrap();
        assert!(flows > 1 && command.packet_bytes().is_some() && command.packets().is_some());
        if let Some(total) = &log.total {
            assert_eq!(total.packet_bytes, command.packet_bytes(), "{name}");
        }
    }
}
