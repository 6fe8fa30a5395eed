//! Places in the code: the parts of the differences that were found.

use crate::counts::{CountVerdict, signed};
use crate::format::{listed, signed as signed_number};
use crate::profile::compare::{Change, Changes};
use crate::report::analysis::Outcome;
use crate::report::results::Analysis;
use crate::report::sections::{DeviceEffect, ProfileDifference, ProfileKind};
use crate::stats::Verdict;

/// Maximum number of parts listed.
const PARTS: usize = 3;
/// Unit of profiles by time.
const NANOSECONDS: &str = "ns";

/// Returns the significant parts of each difference that was found.
pub(in crate::report::document) fn places(analysis: &Analysis) -> Vec<String> {
    let mut sentences = Vec::new();
    for compared in &analysis.core.comparisons {
        match &compared.outcome {
            Outcome::Compared(answer)
                if matches!(answer.verdict, Verdict::Better | Verdict::Worse) =>
            {
                let mut differences = analysis.profiles.iter().flat_map(|p| &p.differences);
                let of = |difference: &&ProfileDifference| {
                    difference.label == compared.label
                        && difference.baseline_label == compared.baseline_label
                };
                let mut measured = analysis.device.iter().flat_map(|device| &device.effects);
                let alone = measured.find(|effect| {
                    effect.label == compared.label
                        && effect.baseline_label == compared.baseline_label
                });
                sentences.extend(differences.find(of).and_then(|found| match found.kind {
                    ProfileKind::Runs => place_in_runs(found),
                    ProfileKind::Starts | ProfileKind::Published => place(found, alone),
                }));
            }
            Outcome::Counted(exact)
                if matches!(exact.verdict, CountVerdict::Fewer | CountVerdict::More) =>
            {
                let found = exact.functions.iter().flat_map(|functions| &functions.differing);
                let parts: Vec<String> = found
                    .take(PARTS)
                    .map(|part| format!("{} {}", part.name, signed(part.difference)))
                    .collect();
                if !parts.is_empty() {
                    let (label, baseline) = (&compared.label, &compared.baseline_label);
                    let parts = listed(&parts);
                    sentences.push(format!(
                        "{label} against {baseline}: {parts} instructions per packet"
                    ));
                }
            }
            _ => {}
        }
        if sentences.len() == PARTS {
            break;
        }
    }
    sentences
}

/// Names the largest parts of a difference between measured runs; `None` if their samples show no
/// difference. Only names parts that differ significantly, jointly over all parts.
fn place_in_runs(difference: &ProfileDifference) -> Option<String> {
    let is_significant =
        |change: &&Change| change.interval.is_some_and(|(low, high)| low > 0.0 || high < 0.0);
    let shown = |change: &Change| {
        let interval = change.interval.map_or(String::new(), |(low, high)| {
            format!(" [{}, {}]", signed_number(low), signed_number(high))
        });
        format!("{}{interval}", signed_number(change.difference))
    };
    let whole = Some(&difference.functions.whole).filter(is_significant)?;
    let same_sign = |part: &&Change| (part.difference > 0.0) == (whole.difference > 0.0);
    let significant = |changes: &Changes, most: usize| -> Vec<String> {
        let parts = changes.parts.iter().filter(is_significant).filter(same_sign).take(most);
        parts.map(|part| format!("{} {}", part.name, shown(part))).collect()
    };
    let subsystem = significant(&difference.subsystems, 1).into_iter();
    let functions = significant(&difference.functions, PARTS);
    let functions = match functions.is_empty() {
        true => "no single function is shown to differ".to_owned(),
        false => listed(&functions),
    };
    let parts = subsystem.map(|part| format!("subsystem {part}")).chain([functions]);
    let parts = parts.collect::<Vec<String>>().join("; ");
    let ProfileDifference { label, baseline_label, unit, .. } = difference;
    Some(format!("{label} against {baseline_label}: {} {unit} a packet; {parts}", shown(whole)))
}

/// Names the largest parts of a difference; `None` if the profile shows none.
///
/// A profile is from one start of each variant, and a slow period of the machine can shift it by
/// more than the difference itself. The difference of the measured runs has an interval over
/// blocks, so it is printed as the sum, and a profile outside that interval names no parts.
fn place(difference: &ProfileDifference, alone: Option<&DeviceEffect>) -> Option<String> {
    let whole = &difference.functions.whole;
    let pair = format!("{} against {}", difference.label, difference.baseline_label);
    let whole_ns = match (alone.filter(|_| difference.unit == NANOSECONDS), whole.difference) {
        (None, in_all) => format!("{} {} a packet in all", signed_number(in_all), difference.unit),
        (Some(alone), in_profile) => {
            let (low, high) = alone.interval_ns;
            if low <= 0.0 && high >= 0.0 {
                return None;
            }
            let measured = format!(
                "{:+.0} ns [{low:+.0}, {high:+.0}] a packet in the measured runs",
                alone.difference_ns
            );
            if in_profile < low || in_profile > high {
                let profiled = signed_number(in_profile);
                return Some(format!(
                    "{pair}: {measured}, {profiled} ns in the profiled ones, which therefore name \
                     no parts"
                ));
            }
            measured
        }
    };
    // Published profiles have no windows, and therefore no intervals.
    let is_significant = |part: &&Change| match part.interval {
        Some((low, high)) => low > 0.0 || high < 0.0,
        None => part.difference != 0.0,
    };
    let same_sign = |part: &&Change| (part.difference > 0.0) == (whole.difference > 0.0);
    let parts = difference.functions.parts.iter().filter(is_significant).filter(same_sign);
    let parts: Vec<String> = parts
        .take(PARTS)
        .map(|part| format!("{} {}", part.name, signed_number(part.difference)))
        .collect();
    (!parts.is_empty()).then(|| format!("{pair}: {whole_ns}; {}", listed(&parts)))
}

#[cfg(test)]
mod tests {
    use super::*;

    /// A profile with 100 ns more in one function, 0.5 less in another, and an insignificant 3 in a
    /// third.
    fn profiled() -> ProfileDifference {
        let change = |name: &str, difference: f64, interval| Change {
            name: name.into(),
            baseline: 500.0,
            candidate: 500.0 + difference,
            difference,
            interval: Some(interval),
        };
        let functions = Changes {
            confidence: 95.0,
            whole: change("all", 99.5, (90.0, 109.0)),
            parts: vec![
                change("nft_do_chain", 100.0, (95.0, 105.0)),
                change("ip_forward", 3.0, (-1.0, 7.0)),
                change("fib_table_lookup", -0.5, (-0.6, -0.4)),
            ],
            remarks: Vec::new(),
        };
        ProfileDifference {
            label: "stateful".into(),
            baseline_label: "none".into(),
            kind: ProfileKind::Starts,
            unit: NANOSECONDS.into(),
            scope: String::new(),
            subsystems: functions.clone(),
            functions,
            file: None,
        }
    }

    fn measured(difference_ns: f64, interval_ns: (f64, f64)) -> DeviceEffect {
        DeviceEffect {
            variant: 1,
            label: "stateful".into(),
            baseline_label: "none".into(),
            effect: 0.0,
            interval: (0.0, 0.0),
            difference_ns,
            interval_ns,
        }
    }

    #[test]
    fn profile_within_the_measured_interval_names_its_parts() {
        assert_eq!(
            place(&profiled(), Some(&measured(110.0, (80.0, 130.0)))).as_deref(),
            Some(
                "stateful against none: +110 ns [+80, +130] a packet in the measured runs; \
                 nft_do_chain +100"
            )
        );
        let alone = place(&profiled(), None).expect("parts");
        assert_eq!(alone, "stateful against none: +99.5 ns a packet in all; nft_do_chain +100");
    }

    #[test]
    fn profile_outside_the_measured_interval_names_no_parts() {
        let text = place(&profiled(), Some(&measured(381.0, (249.0, 534.0)))).expect("a sentence");
        assert!(text.contains("+381 ns [+249, +534]"), "{text}");
        assert!(text.ends_with("+99.5 ns in the profiled ones, which therefore name no parts"));
        assert!(!text.contains("nft_do_chain"), "{text}");
    }

    #[test]
    fn samples_of_measured_runs_name_significant_parts() {
        let mut sampled = ProfileDifference { kind: ProfileKind::Runs, ..profiled() };
        assert_eq!(
            place_in_runs(&sampled).as_deref(),
            Some(
                "stateful against none: +99.5 [+90.0, +109] ns a packet; subsystem nft_do_chain \
                 +100 [+95.0, +105]; nft_do_chain +100 [+95.0, +105]"
            )
        );
        sampled.functions.parts.remove(0);
        let without = place_in_runs(&sampled).expect("a sentence");
        assert!(without.ends_with("no single function is shown to differ"), "{without}");
        sampled.functions.whole.interval = Some((-3.0, 202.0));
        assert_eq!(place_in_runs(&sampled), None);
    }

    #[test]
    fn unmeasured_difference_names_no_parts() {
        assert_eq!(place(&profiled(), Some(&measured(50.0, (-30.0, 130.0)))), None);
    }
}
