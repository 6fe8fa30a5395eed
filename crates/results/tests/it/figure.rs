//! Figures compared with golden files (`tests/golden/figure`). `UPDATE=1` rewrites them;
//! `KEEP_PNG=DIR` keeps the pictures for inspection.

use crate::golden::picture;
use fwdlab_model::units::FrameSize;
use fwdlab_results::plot::Draw;
use fwdlab_results::plot::{
    Chart, CurvePoint, Effect, Effects, Fit, Found, Point, Quantity, RightAxis, Series, Strip,
    XAxis, png,
};

fn point(median_pps: f64, spread: f64) -> Option<Point> {
    Some(Point {
        median_pps,
        min_pps: median_pps * (1.0 - spread),
        max_pps: median_pps * (1.0 + 0.6 * spread),
    })
}

fn series(name: &str, medians: &[f64], spread: f64) -> Series {
    let points = medians.iter().map(|&median| point(median, spread)).collect();
    Series { name: name.into(), points, fit: None }
}

fn categories(labels: &[&str]) -> XAxis {
    XAxis::Categories(labels.iter().map(|label| label.to_string()).collect())
}

fn numbers(levels: &[u32]) -> XAxis {
    XAxis::Numbers(levels.iter().map(|&n| (f64::from(n), n.to_string())).collect())
}

fn chart(title: &str, x_label: &str, x: XAxis, series: Vec<Series>) -> Chart {
    Chart {
        middle: "median",
        title: title.into(),
        x_label: x_label.into(),
        x,
        series,
        y: Quantity::Rate,
        right: Some(RightAxis::L2Rate(FrameSize::of(64))),
        ceiling_pps: None,
        footnote: None,
    }
}

fn effect(label: &str, [ratio, low, high]: [f64; 3], found: Found) -> Effect {
    let said = format!("{:+.1} %  {found:?}", 100.0 * (ratio - 1.0)).to_lowercase();
    let runs = (0..5).map(|n| ratio * (1.0 + 0.004 * f64::from(n - 2))).collect();
    Effect { label: label.into(), ratio, low, high, runs, found, said }
}

#[test]
fn figure_effects_with_intervals() {
    let rows = vec![
        effect("stateless against none", [0.95, 0.93, 0.972], Found::Worse),
        effect("offloads against none", [1.08, 1.05, 1.12], Found::Better),
        effect("hugepages against none", [1.001, 0.99, 1.012], Found::Equivalent),
        effect(
            "a <label> & \"more\" than there is room for, by far",
            [0.99, 0.9, 1.09],
            Found::Open,
        ),
    ];
    let footnote = "Change of the rate with 95 % intervals; points: single runs.".to_owned();
    let (title, what) = ("Effects".into(), "rate".into());
    let figure = Effects { title, rows, what, margin: 0.02, footnote };
    picture("figure/effects", &figure.render());
    // Large effects: the axis is logarithmic, and intervals beyond it are cut.
    let rows = vec![
        effect("one queue against eight", [0.16, 0.14, 0.18], Found::Worse),
        effect("batching against none", [3.4, 3.1, 3.9], Found::Better),
        effect("two noisy blocks", [1.2, 1e-9, 1e9], Found::Open),
    ];
    let figure = Effects { rows, ..figure };
    let svg = figure.render();
    assert!(svg.contains("+100 %") && svg.contains("-50 %"), "{svg}");
    assert!(svg.contains("change of the rate, logarithmic axis"), "{svg}");
    picture("figure/effects-large", &svg);
    // The number of rows is limited.
    let rows = vec![effect("x", [0.9, 0.8, 1.0], Found::Worse); 100];
    let svg = Effects { rows, ..figure }.render();
    assert!(svg.contains("The 40 largest of 100 effects."), "{svg}");
}

#[test]
fn figure_numeric_levels() {
    let queues = numbers(&[1, 2, 3, 4, 5, 6, 7, 8]);
    let rates = [0.74e6, 1.45e6, 2.19e6, 2.86e6, 3.52e6, 4.11e6, 4.4e6, 4.62e6];
    let mut chart = chart(
        "Impact of queue number on forwarding performance",
        "queues",
        queues,
        vec![series("inet", &rates, 0.04)],
    );
    chart.footnote = Some("netns testbed: virtual, not comparable with hardware".into());
    chart.ceiling_pps = Some(5.1e6);
    picture("figure/numeric", &chart.render());
}

#[test]
fn figure_several_lines_over_powers_of_ten() {
    let routes = numbers(&[2, 1000, 100_000, 1_000_000]);
    let chart = chart(
        "Forwarding by number of routes",
        "routes",
        routes,
        vec![
            series("inet", &[3.45e6, 3.4e6, 3.3e6, 3.03e6], 0.03),
            series("inet6", &[3.1e6, 3.0e6, 2.8e6, 2.2e6], 0.05),
            Series {
                name: "inet6, stateful".into(),
                points: vec![point(2.2e6, 0.02), None, point(1.9e6, 0.03), point(1.5e6, 0.1)],
                fit: None,
            },
        ],
    );
    picture("figure/lines", &chart.render());
}

/// Curve of the scalability law over 1 to 64 with a band of 4 %.
fn law(lambda: f64, sigma: f64, kappa: f64, best: f64, holds: bool) -> Option<Fit> {
    let at = |x: f64| lambda * x / (1.0 + sigma * (x - 1.0) + kappa * x * (x - 1.0));
    let curve = (0..=90).map(|i| 2f64.powf(f64::from(i) / 15.0)).map(|x| {
        let pps = at(x);
        CurvePoint { x, pps, low_pps: 0.96 * pps, high_pps: 1.04 * pps }
    });
    Some(Fit { curve: curve.collect(), best: Some((best, at(best))), confidence: 95.0, holds })
}

#[test]
fn figure_fitted_curves_over_powers_of_two() {
    let mut cores = chart(
        "Forwarding by number of cores",
        "cores",
        numbers(&[1, 2, 4, 8, 16, 32, 64]),
        vec![
            series("inet", &[1.0e6, 1.95e6, 3.6e6, 6.4e6, 9.5e6, 11.5e6, 9.7e6], 0.04),
            series("inet6", &[0.9e6, 1.0e6, 3.4e6, 3.3e6, 6.9e6, 6.8e6, 6.9e6], 0.05),
            series("stateful", &[0.5e6, 0.8e6, 1.2e6, 1.5e6, 1.7e6, 1.8e6, 1.8e6], 0.03),
        ],
    );
    cores.series[0].fit = law(1.0e6, 0.03, 0.0009, 33.0, true);
    cores.series[1].fit = law(0.8e6, 0.08, 0.0005, 43.0, false);
    cores.ceiling_pps = Some(12.0e6);
    picture("figure/fitted", &cores.render());
}

#[test]
fn figure_grouped_bars() {
    let chart = chart(
        "Impact of firewalls on forwarding performance",
        "firewall",
        categories(&["none", "stateless", "stateful"]),
        vec![
            series("inet", &[3.4e6, 3.13e6, 2.24e6], 0.03),
            series("inet6", &[2.9e6, 2.71e6, 1.92e6], 0.06),
        ],
    );
    picture("figure/grouped", &chart.render());
}

#[test]
fn figure_long_labels() {
    let names: Vec<String> = (1..=12)
        .map(|i| {
            let firewall = ["none", "stateless", "stateful", "rules:100"][i % 4];
            format!("{firewall}, net.ipv4.ip_early_demux={}, {} queues", i % 2, i)
        })
        .collect();
    let labels: Vec<&str> = names.iter().map(String::as_str).collect();
    let rates: Vec<f64> = (1..=12).map(|i| 3.4e6 - 0.21e6 * f64::from(i)).collect();
    let mut chart = chart(
        "Twelve variants <of> \"everything\" & more, with a title so long that it can't stand on one line of the figure",
        "variant",
        categories(&labels),
        vec![series("", &rates, 0.08)],
    );
    chart.ceiling_pps = Some(13.7e6);
    chart.footnote = Some("SIMULATED".into());
    picture("figure/long-labels", &chart.render());
}

#[test]
fn figure_wrapped_labels() {
    let chart = chart(
        "Six variants",
        "variant",
        categories(&[
            "none, inet",
            "none, inet6",
            "stateless, inet",
            "stateless, inet6",
            "stateful, inet",
            "stateful, inet6",
        ]),
        vec![series("", &[3.4e6, 2.9e6, 3.1e6, 2.7e6, 2.2e6, 1.9e6], 0.05)],
    );
    picture("figure/wrapped", &chart.render());
}

#[test]
fn figure_single_bar() {
    let mut one = chart("One variant", "", categories(&["all"]), vec![series("", &[1.488e6], 0.0)]);
    one.right = None;
    picture("figure/one", &one.render());
}

#[test]
fn figure_zero_and_missing_rates() {
    let rates = vec![
        series("broken", &[0.0, 0.0, 0.0], 0.0),
        Series { name: "missing".into(), points: vec![None, None, None], fit: None },
    ];
    picture(
        "figure/zero",
        &chart("No packets", "level", categories(&["a", "b", "c"]), rates).render(),
    );
}

#[test]
fn figure_rates_of_many_magnitudes() {
    let rates = vec![series("", &[12.0, 4.5e3, 0.9e6, 37.7e6, 148.8e6], 0.3)];
    let levels = categories(&["ping", "user space", "AF_PACKET", "XDP", "line rate of 100G"]);
    picture(
        "figure/magnitudes",
        &chart("From 12 pps to 149 Mpps", "sender", levels, rates).render(),
    );
}

#[test]
fn figure_many_categories_and_series() {
    let names: Vec<String> = (1..=60).map(|i| format!("revision r{}", 287_000 + 137 * i)).collect();
    let labels: Vec<&str> = names.iter().map(String::as_str).collect();
    let rates: Vec<f64> = (0..60).map(|i| 1.4e6 + 1e4 * f64::from(i % 7)).collect();
    let one = vec![series("", &rates, 0.02)];
    picture(
        "figure/many",
        &chart("Sixty revisions", "revision", categories(&labels), one).render(),
    );

    let ten: Vec<Series> = (1..=10)
        .map(|i| series(&format!("series number {i}"), &[1e6 + 1e5 * f64::from(i); 3], 0.1))
        .collect();
    picture(
        "figure/ten",
        &chart("Ten series", "level", categories(&["a", "b", "c"]), ten).render(),
    );
}

#[test]
fn figure_runs_in_order() {
    let variants = vec!["1 queue".into(), "2 queues".into(), "4 queues".into()];
    let mut runs = Vec::new();
    for block in 0..8u32 {
        for slot in 0..3u32 {
            let variant = ((block + 2 * slot) % 3) as usize;
            let drift = 1.0 - 0.004 * f64::from(3 * block + slot);
            runs.push((block, variant, drift * [1.7e6, 1.6e6, 1.45e6][variant]));
        }
    }
    picture("figure/runs", &Strip::of_runs("Runs in their order", variants, &runs).render());
}

#[test]
fn figure_stream_switched_live() {
    let samples: Vec<(f64, usize, f64)> = (0..360)
        .map(|i| {
            let variant = [0, 1, 1, 0][i / 15 % 4];
            let ripple = 1.0 + 0.01 * f64::from((i * 7919 % 13) as u32) - 0.06;
            (i as f64 * 0.016, variant, ripple * [2.45e6, 2.2e6][variant])
        })
        .collect();
    let variants = vec!["firewall none".into(), "firewall stateful".into()];
    picture(
        "figure/stream",
        &Strip::of_stream("One stream, switched live", variants, &samples).render(),
    );
}

#[test]
fn png_scales_the_figure() {
    let svg = Strip::of_runs("Empty", Vec::new(), &[]).render();
    let png = png::render(&svg, 2.0).unwrap();
    // Width and height in the IHDR chunk.
    let side = |at: usize| u32::from_be_bytes([png[at], png[at + 1], png[at + 2], png[at + 3]]);
    assert_eq!((side(16), side(20)), (1800, 1120));
}
