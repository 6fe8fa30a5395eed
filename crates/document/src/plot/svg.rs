//! Writes SVG, one element per line.

use super::text::FONT_FAMILY;
use std::fmt::Write as _;

/// Colour of text and axes.
pub(super) const INK: &str = "#222222";
/// Colour of less important text and marks.
pub(super) const GREY: &str = "#666666";
/// Colour of gridlines.
pub(super) const PALE: &str = "#DDDDDD";

/// Alignment of a text relative to its point.
#[derive(Clone, Copy, Debug)]
pub(super) enum Anchor {
    Start,
    Middle,
    End,
}

/// A figure laid out for one width.
#[derive(Clone, Debug, PartialEq)]
pub struct Sheet {
    pub(super) svg: String,
    pub(super) width: f64,
}

/// Shapes of markers.
#[derive(Clone, Copy, Debug)]
pub(super) enum Shape {
    Circle,
    Square,
    /// A triangle that points up.
    Up,
    Diamond,
    /// A triangle that points down.
    Down,
}

impl Shape {
    /// Shape of a series: neighbours differ, as do series of one colour.
    fn of(series: usize) -> Shape {
        let shapes = [Shape::Circle, Shape::Square, Shape::Up, Shape::Diamond, Shape::Down];
        shapes[series % shapes.len()]
    }
}

/// A document being written.
pub(super) struct Svg {
    text: String,
    width: f64,
}

/// Style of a text.
#[derive(Clone, Copy, Debug)]
pub(super) struct TextStyle {
    pub(super) size: f64,
    pub(super) anchor: Anchor,
    pub(super) colour: &'static str,
    /// Clockwise rotation around the text's point, in degrees.
    pub(super) rotate: f64,
}

impl TextStyle {
    pub(super) fn new(size: f64, anchor: Anchor) -> TextStyle {
        TextStyle { size, anchor, colour: INK, rotate: 0.0 }
    }
}

impl Svg {
    /// Starts a white page of `width` by `height` pixels with a title for browsers.
    pub(super) fn page(width: f64, height: f64, title: &str) -> Svg {
        let (w, h, title) = (number(width), number(height), escape(title));
        let text = format!(
            "<svg xmlns=\"http://www.w3.org/2000/svg\" width=\"{w}\" height=\"{h}\" \
             viewBox=\"0 0 {w} {h}\" font-family=\"{FONT_FAMILY}\" role=\"img\">\n\
             <title>{title}</title>\n\
             <rect width=\"{w}\" height=\"{h}\" fill=\"#FFFFFF\"/>\n"
        );
        Svg { text, width }
    }

    pub(super) fn finish(mut self) -> Sheet {
        self.text.push_str("</svg>\n");
        Sheet { svg: self.text, width: self.width }
    }

    pub(super) fn line(&mut self, from: (f64, f64), to: (f64, f64), style: &str) {
        self.element(format_args!(
            "<line x1=\"{}\" y1=\"{}\" x2=\"{}\" y2=\"{}\" {style}/>",
            number(from.0),
            number(from.1),
            number(to.0),
            number(to.1)
        ));
    }

    pub(super) fn polyline(&mut self, points: &[(f64, f64)], colour: &str, style: &str) {
        self.element(format_args!(
            "<polyline points=\"{}\" fill=\"none\" stroke=\"{colour}\" {style}/>",
            point_list(points)
        ));
    }

    /// Draws a closed shape; nothing for fewer than three points.
    pub(super) fn polygon(&mut self, points: &[(f64, f64)], style: &str) {
        if points.len() > 2 {
            self.element(format_args!("<polygon points=\"{}\" {style}/>", point_list(points)));
        }
    }

    /// Draws a white diamond with an outline.
    pub(super) fn diamond(&mut self, (x, y): (f64, f64), radius: f64, colour: &str) {
        let corners = [(x, y - radius), (x + radius, y), (x, y + radius), (x - radius, y)];
        let style = format!("fill=\"#FFFFFF\" stroke=\"{colour}\" stroke-width=\"2\"");
        self.polygon(&corners, &style);
    }

    /// Draws a rectangle; `tip` is its tooltip in browsers.
    pub(super) fn rect(&mut self, corner: (f64, f64), size: (f64, f64), style: &str, tip: &str) {
        let (x, y, w, h) = (number(corner.0), number(corner.1), number(size.0), number(size.1));
        let tip = tip_of(tip);
        self.element(format_args!(
            "<rect x=\"{x}\" y=\"{y}\" width=\"{w}\" height=\"{h}\" {style}>{tip}</rect>"
        ));
    }

    /// Draws a shape around a point; `tip` is its tooltip in browsers.
    pub(super) fn shape(
        &mut self,
        (x, y): (f64, f64),
        radius: f64,
        shape: Shape,
        style: &str,
        tip: &str,
    ) {
        let (r, tip) = (radius, tip_of(tip));
        // Shapes have about the same area.
        let (side, corner) = (0.9 * r, 1.25 * r);
        let corners: &[(f64, f64)] = match shape {
            Shape::Circle => {
                let (x, y, r) = (number(x), number(y), number(r));
                return self.element(format_args!(
                    "<circle cx=\"{x}\" cy=\"{y}\" r=\"{r}\" {style}>{tip}</circle>"
                ));
            }
            Shape::Square => &[(-side, -side), (side, -side), (side, side), (-side, side)],
            Shape::Up => &[(0.0, -corner), (corner, r), (-corner, r)],
            Shape::Down => &[(0.0, corner), (corner, -r), (-corner, -r)],
            Shape::Diamond => &[(0.0, -corner), (corner, 0.0), (0.0, corner), (-corner, 0.0)],
        };
        let corners: Vec<(f64, f64)> = corners.iter().map(|(dx, dy)| (x + dx, y + dy)).collect();
        let corners = point_list(&corners);
        self.element(format_args!("<polygon points=\"{corners}\" {style}>{tip}</polygon>"));
    }

    /// Draws a marker around a point, in the colour and the shape of a series.
    pub(super) fn marker(&mut self, at: (f64, f64), radius: f64, series: usize, tip: &str) {
        let colour = super::colour(series);
        let style = format!("fill=\"{colour}\" stroke=\"#FFFFFF\" stroke-width=\"1\"");
        self.shape(at, radius, Shape::of(series), &style, tip);
    }

    /// Draws the shape of a series in white, on a bar of the series.
    pub(super) fn badge(&mut self, at: (f64, f64), radius: f64, series: usize) {
        self.shape(at, radius, Shape::of(series), "fill=\"#FFFFFF\"", "");
    }

    pub(super) fn text(&mut self, at: (f64, f64), text: &str, style: TextStyle) {
        let (x, y) = (number(at.0), number(at.1));
        let anchor = match style.anchor {
            Anchor::Start => "",
            Anchor::Middle => " text-anchor=\"middle\"",
            Anchor::End => " text-anchor=\"end\"",
        };
        let rotate = match style.rotate {
            0.0 => String::new(),
            degrees => format!(" transform=\"rotate({} {x} {y})\"", number(degrees)),
        };
        self.element(format_args!(
            "<text x=\"{x}\" y=\"{y}\" font-size=\"{}\" fill=\"{}\"{anchor}{rotate}>{}</text>",
            number(style.size),
            style.colour,
            escape(text)
        ));
    }

    fn element(&mut self, element: std::fmt::Arguments) {
        // Writing to a String cannot fail.
        let _ = writeln!(self.text, "{element}");
    }
}

/// Escapes text for XML: the five special characters as entities; characters that XML 1.0 forbids
/// are replaced.
pub(super) fn escape(text: &str) -> String {
    let mut escaped = String::with_capacity(text.len());
    for c in text.chars() {
        match c {
            '&' => escaped.push_str("&amp;"),
            '<' => escaped.push_str("&lt;"),
            '>' => escaped.push_str("&gt;"),
            '"' => escaped.push_str("&quot;"),
            '\'' => escaped.push_str("&#39;"),
            '\u{fffe}' | '\u{ffff}' => escaped.push('\u{fffd}'),
            c if c.is_control() => escaped.push(' '),
            c => escaped.push(c),
        }
    }
    escaped
}

fn tip_of(tip: &str) -> String {
    if tip.is_empty() { String::new() } else { format!("<title>{}</title>", escape(tip)) }
}

/// Points in the format of an attribute.
fn point_list(points: &[(f64, f64)]) -> String {
    let points: Vec<String> =
        points.iter().map(|(x, y)| format!("{},{}", number(*x), number(*y))).collect();
    points.join(" ")
}

/// A coordinate with at most one decimal: a tenth of a pixel is not visible.
fn number(value: f64) -> String {
    let text = format!("{value:.1}");
    match text.strip_suffix(".0") {
        Some("-0") => "0".into(),
        Some(whole) => whole.into(),
        None => text,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn escape_replaces_special_and_forbidden_characters() {
        assert_eq!(escape("a<b> & \"c\" 'd'\u{7}"), "a&lt;b&gt; &amp; &quot;c&quot; &#39;d&#39; ");
    }

    #[test]
    fn number_has_at_most_one_decimal() {
        assert_eq!(
            [1.0, -0.01, 2.25, 100.04].map(number),
            ["1", "0", "2.2", "100"].map(String::from)
        );
    }
}
