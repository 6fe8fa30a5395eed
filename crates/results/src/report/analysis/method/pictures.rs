//! Pictures of the trials beside the runs' own ones.

use super::Timed;
use super::{Method, MethodPoint, MethodRun};
use crate::figure::{Curve, Percentiles, Quantity, Strip};
use crate::format::percent;
use crate::report::safe_name;
use fwdlab_model::design::MethodKind;
use fwdlab_search::Goal;

impl Method {
    /// The pictures of it, one for each variant: how loads were found, or what was lost at
    /// which load or when; names in the report and SVG.
    pub(crate) fn pictures(&self) -> Vec<(String, String)> {
        pictures(self)
    }
}

fn pictures(method: &Method) -> Vec<(String, String)> {
    if !method.parts.is_empty() {
        return method.parts.iter().flat_map(pictures).collect();
    }
    if method.kind == MethodKind::Latency {
        return delays(&method.timed);
    }
    let mut variants: Vec<(usize, &str)> =
        method.runs.iter().map(|run| (run.variant, run.label.as_str())).collect();
    variants.sort_unstable();
    variants.dedup();
    let of = |&(variant, label): &(usize, &str)| {
        let runs: Vec<&MethodRun> =
            method.runs.iter().filter(|run| run.variant == variant).collect();
        let (what, strip) = match method.kind {
            MethodKind::LossCurve => ("curve", curve(&runs, label)),
            MethodKind::Soak => ("soak", soak(&runs, label)),
            MethodKind::Flood => ("flood", flood(&runs, label)),
            MethodKind::BackToBack => ("bursts", bursts(&runs, label)),
            MethodKind::Mlrsearch => ("search", progress(&method.goals, &runs, label)),
            MethodKind::EstablishmentRate => {
                ("establishment", progress(&method.goals, &runs, label))
            }
            MethodKind::TearDownRate => ("filled", filling(&runs, label)),
            MethodKind::TableCapacity => ("connections", filling(&runs, label)),
            _ => return None,
        };
        Some((format!("{what}-{}.svg", safe_name(label)), strip.render()))
    };
    variants.iter().filter_map(of).collect()
}

/// Delays by percentile, a picture for each variant.
fn delays(timed: &[Timed]) -> Vec<(String, String)> {
    let of_variant = |rows: &[Timed]| {
        let label = rows[0].label.as_str();
        let own = rows.iter().map(|row| Curve {
            name: format!("{} of the rate found", percent(row.share, 0)),
            points: row.curve.clone(),
            is_floor: false,
        });
        // At the greatest load, where the instrument has most to do.
        let floor = rows.last().filter(|row| !row.floor_curve.is_empty()).map(|row| Curve {
            name: "instrument alone, at the greatest load".to_owned(),
            points: row.floor_curve.clone(),
            is_floor: true,
        });
        let title = format!("{label}: one-way delay by percentile");
        let figure = Percentiles { title, curves: own.chain(floor).collect(), footnote: None };
        (format!("latency-{}.svg", safe_name(label)), figure.render())
    };
    timed.chunk_by(|one, next| one.variant == next.variant).map(of_variant).collect()
}

/// Load against time, coloured by what the goals say of each trial.
fn progress(goals: &[Goal], runs: &[&MethodRun], label: &str) -> Strip {
    let strictest = goals.iter().map(|goal| goal.loss_ratio).fold(1.0, f64::min);
    let mildest = goals.iter().map(|goal| goal.loss_ratio).fold(0.0, f64::max);
    // In the palette's order: blue, red, green, yellow.
    let within = |loss: f64| match loss {
        0.0 => "nothing lost".to_owned(),
        loss => format!("at most {} lost", percent(loss, 2)),
    };
    let beyond = match mildest {
        0.0 => "something lost".to_owned(),
        ratio => format!("more than {} lost", percent(ratio, 2)),
    };
    let mut verdicts = vec![within(strictest), beyond];
    verdicts.extend((mildest > strictest).then(|| within(mildest)));
    verdicts.push("says nothing of the device".to_owned());
    let verdict = |point: &MethodPoint| match point.loss_ratio {
        None => verdicts.len() - 1,
        Some(loss) if loss <= strictest => 0,
        Some(loss) if loss <= mildest => 2,
        Some(_) => 1,
    };
    let points = runs.iter().flat_map(|run| &run.points);
    let marks: Vec<(f64, usize, f64)> =
        points.map(|point| (point.at_s, verdict(point), point.load as f64)).collect();
    let title = format!("{label}: trials of the searches in their order");
    Strip {
        y: Quantity::Load,
        x_label: "seconds since the search began".to_owned(),
        ..Strip::of_stream(&title, verdicts, &marks)
    }
}

/// Loss against load.
fn curve(runs: &[&MethodRun], label: &str) -> Strip {
    let title = format!("{label}: frame loss rate");
    losses(runs, &title, "offered load (kpps)", |point| point.offered_pps / 1e3)
}

/// What was lost of the traffic and of the flood, against the flood.
fn flood(runs: &[&MethodRun], label: &str) -> Strip {
    let points = runs.iter().flat_map(|run| &run.points).filter(|point| point.invalid.is_none());
    let marks = points.flat_map(|point| {
        let flood = point.flood.as_ref();
        let x = flood.map_or(0.0, |flood| flood.pps.0 / 1e3);
        let lost = flood.filter(|flood| flood.packets.0 > 0).map(|flood| {
            let (offered, forwarded) = flood.packets;
            100.0 * (1.0 - forwarded as f64 / offered as f64)
        });
        let own = point.loss_ratio.map(|ratio| (x, 0, 100.0 * ratio));
        [own, lost.map(|lost| (x, 1, lost))].into_iter().flatten()
    });
    let marks: Vec<(f64, usize, f64)> = marks.collect();
    let series = ["of the traffic, by the device", "of the flood"].map(str::to_owned).into();
    Strip {
        y: Quantity::Loss,
        x_label: "flood, offered (thousand new flows a second)".to_owned(),
        ..Strip::of_stream(&format!("{label}: packets lost beside a flood"), series, &marks)
    }
}

/// Connections in the table against time, by what became of the trial.
fn filling(runs: &[&MethodRun], label: &str) -> Strip {
    let points = runs.iter().flat_map(|run| &run.points).flat_map(|point| {
        let series = match (&point.invalid, Some(point.forwarded) == point.connections) {
            (Some(_), _) => 2,
            (None, true) => 0,
            (None, false) => 1,
        };
        point.states.iter().map(move |&(at_s, states)| (at_s, series, states as f64))
    });
    let marks: Vec<(f64, usize, f64)> = points.collect();
    let series = ["all were held in the end", "not all were held", "says nothing of the device"];
    let title = format!("{label}: connections in the table while they are opened");
    Strip {
        y: Quantity::Connections,
        x_label: "seconds since the first packet of a trial".to_owned(),
        ..Strip::of_stream(&title, series.map(str::to_owned).into(), &marks)
    }
}

/// Length of bursts, in their order, by what became of them.
fn bursts(runs: &[&MethodRun], label: &str) -> Strip {
    let points = runs.iter().flat_map(|run| &run.points).filter_map(|point| {
        let series = match (&point.invalid, point.offered == point.forwarded) {
            (Some(_), _) => 2,
            (None, true) => 0,
            (None, false) => 1,
        };
        Some((point.at_s, series, point.burst? as f64))
    });
    let marks: Vec<(f64, usize, f64)> = points.collect();
    let series = ["arrived whole", "something was lost", "says nothing of the device"];
    Strip {
        y: Quantity::Frames,
        x_label: "seconds since the first burst".to_owned(),
        ..Strip::of_stream(&format!("{label}: bursts"), series.map(str::to_owned).into(), &marks)
    }
}

/// Loss over time.
fn soak(runs: &[&MethodRun], label: &str) -> Strip {
    let title = format!("{label}: packets lost, trial by trial");
    losses(runs, &title, "seconds since the first trial began", |point| point.at_s)
}

/// What each trial lost for sure, and with what was lost while others had the device's CPU.
fn losses(
    runs: &[&MethodRun],
    title: &str,
    x_label: &str,
    x: impl Fn(&MethodPoint) -> f64,
) -> Strip {
    let percent = |loss: Option<f64>| loss.map(|ratio| 100.0 * ratio);
    let marks = runs.iter().flat_map(|run| &run.points).flat_map(|point| {
        let (least, most) = (percent(point.loss_ratio), percent(point.loss_at_most));
        let doubt = most.filter(|most| Some(*most) != least).map(|most| (x(point), 1, most));
        [least.map(|least| (x(point), 0, least)), doubt].into_iter().flatten()
    });
    let marks: Vec<(f64, usize, f64)> = marks.collect();
    let mut series = vec!["lost by the device".to_owned()];
    if marks.iter().any(|(_, series, _)| *series == 1) {
        series.push("and while others had its CPU".to_owned());
    }
    Strip {
        y: Quantity::Loss,
        x_label: x_label.to_owned(),
        ..Strip::of_stream(title, series, &marks)
    }
}
