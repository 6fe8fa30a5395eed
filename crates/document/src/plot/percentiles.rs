//! Figures of delays by percentile, both on logarithmic axes: each nine takes the same width, which
//! makes the tail visible (as in HdrHistogram's plots).

use super::axis::Axis;
use super::colour;
use super::draw::Draw;
use super::frame::{self, Frame, Item, LABEL_SIZE, LINE, Sample};
use super::svg::{GREY, Sheet};
use crate::format::duration;

/// Figure of delays by percentile.
#[derive(Clone, Debug, PartialEq)]
pub struct Percentiles {
    /// Title.
    pub title: String,
    /// Curves.
    pub curves: Vec<Curve>,
    /// Line under the figure.
    pub footnote: Option<String>,
}

/// Delays of one kind of trial.
#[derive(Clone, Debug, PartialEq)]
pub struct Curve {
    /// Name in the legend.
    pub name: String,
    /// Share of the packets, from 0 to below 1, and the delay in seconds that they do not exceed;
    /// ascending.
    pub points: Vec<(f64, f64)>,
    /// Intervals over runs: share of the packets, lower and upper end in seconds.
    pub intervals: Vec<(f64, f64, f64)>,
    /// True for the instrument's own delay: a dashed line in grey.
    pub is_floor: bool,
}

/// Distance between bars of different curves at one percentile, and half the width of their ends,
/// in pixels.
const ASIDE: f64 = 11.0;
const CAP: f64 = 4.0;
/// Radius of a marker.
const MARKER: f64 = 4.0;

impl Draw for Percentiles {
    fn draw(&self, width: f64) -> Sheet {
        let points = || self.curves.iter().flat_map(|curve| &curve.points);
        let ends = self.curves.iter().flat_map(|curve| &curve.intervals);
        let ends = ends.flat_map(|&(_, low, high)| [low, high]);
        let delays = points().map(|point| point.1).chain(ends).filter(|delay| *delay > 0.0);
        let (low, high) = delays
            .fold((f64::INFINITY, 0.0f64), |(low, high), delay| (low.min(delay), high.max(delay)));
        let y = Axis::logarithmic(low, high, duration);
        let nines = points().map(|point| nines(point.0)).fold(1.0f64, f64::max);
        let mut series = 0;
        let numbered: Vec<(&Curve, usize)> = self
            .curves
            .iter()
            .map(|curve| {
                series += usize::from(!curve.is_floor);
                (curve, series.saturating_sub(1))
            })
            .collect();
        let legend = numbered.iter().map(|(curve, number)| Item {
            label: curve.name.clone(),
            sample: if curve.is_floor { Sample::Dashes } else { Sample::Line(*number) },
        });
        let frame = Frame {
            title: &self.title,
            legend: legend.collect(),
            y_label: "one-way delay",
            y: &y,
            right: None,
            x_label: "percentile of the packets",
            footnote: self.footnote.as_deref(),
            width,
        };
        let (mut svg, plot) = frame.open(0.0, 7.0 + LABEL_SIZE * LINE);
        let x_of = |share: f64| plot.left + self::nines(share) / nines * (plot.right - plot.left);
        let ticks: Vec<(f64, String)> =
            (0..=nines as u32).map(tick).map(|(share, name)| (x_of(share), name)).collect();
        frame::draw_ticks(&mut svg, &plot, &ticks, true);
        let count = series as f64;
        for (curve, number) in numbered {
            // Next to each other, if several loads have an interval at one percentile.
            let aside = (number as f64 - (count - 1.0) / 2.0) * ASIDE;
            let style = format!("stroke=\"{}\" stroke-width=\"1.5\"", colour(number));
            for &(share, low, high) in &curve.intervals {
                if low <= 0.0 || high < low || self::nines(share) > nines + 1e-6 {
                    continue;
                }
                let x = x_of(share) + aside;
                let [low, high] = [low, high].map(|delay| plot.y(&y, delay.log10()));
                svg.line((x, low), (x, high), &style);
                for at in [low, high] {
                    svg.line((x - CAP, at), (x + CAP, at), &style);
                }
            }
            let places: Vec<(f64, f64)> = curve
                .points
                .iter()
                .filter(|point| point.1 > 0.0)
                .map(|&(share, delay)| (x_of(share), plot.y(&y, delay.log10())))
                .collect();
            match curve.is_floor {
                true => {
                    svg.polyline(&places, GREY, "stroke-width=\"1.5\" stroke-dasharray=\"6 4\"")
                }
                false => {
                    svg.polyline(&places, colour(number), "stroke-width=\"2\"");
                    // A marker at each tick distinguishes the curves without colours.
                    for (x, _) in &ticks {
                        let at = places.iter().find(|place| place.0 >= x - 0.1);
                        if let Some(&at) = at {
                            svg.marker(at, MARKER, number, &curve.name);
                        }
                    }
                }
            }
        }
        svg.finish()
    }
}

/// Number of nines in a share: one in 0.9, two in 0.99.
fn nines(share: f64) -> f64 {
    -(1.0 - share).max(1e-9).log10()
}

/// Share with this number of nines, and its label.
fn tick(nines: u32) -> (f64, String) {
    let share = 1.0 - 10f64.powi(-(nines as i32));
    let decimals = nines.saturating_sub(2) as usize;
    (share, format!("{:.decimals$} %", 100.0 * share))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn ticks_are_equidistant_in_nines() {
        let labels: Vec<String> = (0..6).map(|nines| tick(nines).1).collect();
        assert_eq!(labels, ["0 %", "90 %", "99 %", "99.9 %", "99.99 %", "99.999 %"]);
        for number in 0..6u32 {
            assert!((nines(tick(number).0) - f64::from(number)).abs() < 1e-6);
        }
    }

    #[test]
    fn percentiles_draw_curves_and_floor_or_an_empty_figure() {
        let points: Vec<(f64, f64)> = (0..80)
            .map(|k| (1.0 - 10f64.powf(-f64::from(k) / 20.0), 1e-6 * f64::from(k + 5)))
            .collect();
        let of = |name: &str, is_floor| Curve {
            name: name.into(),
            points: points.clone(),
            intervals: if is_floor {
                Vec::new()
            } else {
                vec![(0.9, 2e-5, 3e-5), (0.99999, 1.0, 1.0)]
            },
            is_floor,
        };
        let curves = vec![of("10 %", false), of("90 %", false), of("instrument", true)];
        let title = "delays".to_owned();
        let figure = Percentiles { title: title.clone(), curves, footnote: None }.render();
        assert_eq!(figure.matches("<polyline").count(), 3);
        // Three lines per bar; none beyond the percentiles of the curves.
        assert_eq!(figure.matches("stroke-width=\"1.5\"/>").count(), 6, "{figure}");
        for text in ["10.0 us", "99.9 %", "instrument", "delay"] {
            assert!(figure.contains(text), "{text}: {figure}");
        }
        let empty = Percentiles { title, curves: Vec::new(), footnote: None }.render();
        assert!(empty.contains("</svg>") && !empty.contains("NaN"), "{empty}");
    }
}
