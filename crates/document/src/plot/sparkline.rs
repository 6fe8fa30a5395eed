//! Small line of a value over a few dozen points, without axes: the values at both ends of the
//! scale, the names of the first and the last point, and marks for steps. One layout fits windows
//! of any width.

use super::draw::Drawing;
use super::svg::{Anchor, GREY, Shape, Svg, TextStyle};
use super::text::{shorten, widest};

/// Size of the picture in pixels.
const WIDTH: f64 = 340.0;
const HEIGHT: f64 = 92.0;
/// Space at the edges.
const MARGIN: f64 = 10.0;
/// Size of all texts.
const SIZE: f64 = 11.0;
/// Radius of points, and of steps.
const RADIUS: f64 = 2.0;
const STEP_RADIUS: f64 = 4.5;
/// Colours of steps: the palette's vermilion and green.
const UP: &str = "#D55E00";
const DOWN: &str = "#009E73";

/// A value over points in order.
#[derive(Clone, Debug, PartialEq)]
pub struct Sparkline {
    /// Title for browsers.
    pub title: String,
    /// Points in order.
    pub points: Vec<Spark>,
}

/// A point of a small line.
#[derive(Clone, Debug, PartialEq)]
pub struct Spark {
    /// Name of the point.
    pub label: String,
    /// Value; `None` leaves a gap.
    pub value: Option<f64>,
    /// Size of the step that ends here; `None` if no step ends here.
    pub step: Option<f64>,
}

impl Sparkline {
    /// Renders the picture for windows of any width.
    pub fn drawing(&self) -> Drawing {
        Drawing { wide: self.render(), narrow: None, is_small: true }
    }

    fn render(&self) -> String {
        let mut svg = Svg::page(WIDTH, HEIGHT, &self.title);
        let finite = |point: &Spark| point.value.filter(|value| value.is_finite());
        let all = self.points.iter().enumerate();
        let points: Vec<(usize, &Spark, f64)> =
            all.filter_map(|(at, point)| Some((at, point, finite(point)?))).collect();
        let values = || points.iter().map(|(.., value)| *value);
        let (low, high) = (values().reduce(f64::min), values().reduce(f64::max));
        let (Some(low), Some(high)) = (low, high) else { return svg.finish().svg };
        let ends = [high, low].map(|value| format!("{value:+.1}"));
        let left = MARGIN + widest(&ends, SIZE) + 8.0;
        let (right, top, bottom) = (WIDTH - MARGIN, MARGIN + 6.0, HEIGHT - MARGIN - SIZE - 10.0);
        let y_of = |value: f64| match high > low {
            true => bottom - (value - low) / (high - low) * (bottom - top),
            false => (top + bottom) / 2.0,
        };
        let slot = (right - left - 2.0 * STEP_RADIUS) / (self.points.len().max(2) - 1) as f64;
        let x_of = |at: usize| left + STEP_RADIUS + at as f64 * slot;
        let scale: &[(usize, f64)] = if high > low { &[(0, high), (1, low)] } else { &[(0, high)] };
        for (end, value) in scale {
            let style = TextStyle { colour: GREY, ..TextStyle::new(SIZE, Anchor::End) };
            svg.text((left - 8.0, y_of(*value) + 0.36 * SIZE), &ends[*end], style);
        }
        for line in points.chunk_by(|a, b| a.0 + 1 == b.0) {
            let line: Vec<(f64, f64)> =
                line.iter().map(|(at, _, v)| (x_of(*at), y_of(*v))).collect();
            svg.polyline(&line, super::colour(0), "stroke-width=\"1.5\"");
        }
        for (at, point, value) in &points {
            let place = (x_of(*at), y_of(*value));
            let tip = format!("{}: {value:+.1}", point.label);
            match point.step {
                Some(step) => {
                    let is_up = step > 0.0;
                    let (shape, colour) = if is_up { (Shape::Up, UP) } else { (Shape::Down, DOWN) };
                    let tip = format!("{tip}, step of {step:+.1}");
                    svg.shape(place, STEP_RADIUS, shape, &format!("fill=\"{colour}\""), &tip);
                }
                None => {
                    let style = format!("fill=\"{}\"", super::colour(0));
                    svg.shape(place, RADIUS, Shape::Circle, &style, &tip);
                }
            }
        }
        self.name_ends(&mut svg, (left, right), HEIGHT - MARGIN);
        svg.finish().svg
    }

    /// Names the first and the last point.
    fn name_ends(&self, svg: &mut Svg, (left, right): (f64, f64), y: f64) {
        let room = (right - left) / 2.0 - 6.0;
        let style = |anchor| TextStyle { colour: GREY, ..TextStyle::new(SIZE, anchor) };
        let name = |point: &Spark| shorten(&point.label, SIZE, room);
        if let Some(first) = self.points.first() {
            svg.text((left, y), &name(first), style(Anchor::Start));
        }
        if let [_, .., last] = self.points.as_slice() {
            svg.text((right, y), &name(last), style(Anchor::End));
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn line(values: &[Option<f64>], steps: &[(usize, f64)]) -> String {
        let point = |(at, value): (usize, &Option<f64>)| Spark {
            label: format!("6.{at}"),
            value: *value,
            step: steps.iter().find(|(end, _)| *end == at).map(|(_, size)| *size),
        };
        let points = values.iter().enumerate().map(point).collect();
        Sparkline { title: "Price of <vlan>".into(), points }.render()
    }

    #[test]
    fn sparkline_marks_steps_and_leaves_gaps() {
        let values = [Some(610.0), Some(610.5), None, Some(720.0), Some(700.0)];
        let svg = line(&values, &[(3, 110.0), (4, -20.0)]);
        assert!(svg.contains("<title>Price of &lt;vlan&gt;</title>"), "{svg}");
        assert_eq!(svg.matches("<polyline").count(), 2, "{svg}");
        assert_eq!(svg.matches("<circle").count(), 2, "{svg}");
        assert!(svg.contains("6.3: +720.0, step of +110.0"), "{svg}");
        assert!(svg.contains("6.4: +700.0, step of -20.0"), "{svg}");
        assert_eq!((svg.matches(UP).count(), svg.matches(DOWN).count()), (1, 1), "{svg}");
        for text in [">+720.0<", ">+610.0<", ">6.0<", ">6.4<"] {
            assert!(svg.contains(text), "{text} in {svg}");
        }
    }

    #[test]
    fn sparkline_of_equal_or_missing_values_is_valid() {
        let flat = line(&[Some(5.0), Some(5.0)], &[]);
        assert_eq!(flat.matches(">+5.0<").count(), 1, "{flat}");
        for values in [&[][..], &[None], &[Some(f64::NAN)], &[Some(1.0)]] {
            let svg = line(values, &[]);
            assert!(svg.ends_with("</svg>\n") && !svg.contains("NaN"), "{svg}");
        }
    }
}
