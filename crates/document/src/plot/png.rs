//! Converts a figure's SVG to PNG, with the vendored font only: the same pixels everywhere.
//!
//! It supports the SVG that `svg.rs` writes: a renderer for any document, which lays out any
//! script, would be a sixth of the program and of its build time. Tests compare the pixels with
//! such a renderer. Out of scope: kerning, so that text is as wide as `text.rs` computes.

use std::collections::BTreeMap;
use tiny_skia::{
    Color, FillRule, LineJoin, Paint, Path, PathBuilder, Pixmap, Rect, Stroke, StrokeDash,
    Transform,
};
use ttf_parser::{Face, OutlineBuilder};

/// DejaVu Sans, Latin only (licence: `assets/DejaVuSans-LICENSE.txt`).
const FONT: &[u8] = include_bytes!("../../assets/DejaVuSans-Latin.ttf");
/// Maximum side of a picture in pixels: 16384 squared takes a gigabyte of memory.
const MAX_SIDE: f32 = 16384.0;
/// Level of deflate, 1 to 9: higher ones take longer for a few per cent.
const DEFLATE: u8 = 3;

/// Error of converting a picture.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum PngError {
    /// The text is not the SVG of a figure.
    #[error("not the SVG document of a figure: {0}")]
    Svg(String),
    /// The picture has no size, or takes too much memory.
    #[error("a picture must be 1 to 16384 pixels wide and high, not {width} by {height}")]
    Size {
        /// Width in pixels.
        width: u32,
        /// Height in pixels.
        height: u32,
    },
    /// The encoder failed.
    #[error("the picture can't be written as PNG: {0}")]
    Encode(String),
}

/// Converts a figure to a PNG file, with `scale` pixels per unit.
///
/// # Errors
/// Fails for text that is not a figure, and for pictures of less than one or more than 16384 pixels
/// a side.
pub fn render(svg: &str, scale: f32) -> Result<Vec<u8>, PngError> {
    encode(&pixels(&elements(svg)?, scale)?)
}

/// Converts a figure to a PNG file, with fewer pixels per unit if a side would be too long: a
/// picture of a thousand variants is small, but complete.
///
/// # Errors
/// Fails for text that is not a figure, and for a figure without size.
pub fn render_at_most(svg: &str, scale: f32) -> Result<Vec<u8>, PngError> {
    let elements = elements(svg)?;
    let (width, height) = size(&elements)?;
    // One pixel less, so that rounding up stays within the limit.
    encode(&pixels(&elements, scale.min((MAX_SIDE - 1.0) / width.max(height)))?)
}

/// Encodes an opaque picture. Large areas of one colour are compressed in a fifth of the time
/// without filters, which predict a pixel from its neighbours, and to fewer bytes.
fn encode(pixels: &Pixmap) -> Result<Vec<u8>, PngError> {
    let rgb = pixels.pixels().iter().flat_map(|pixel| [pixel.red(), pixel.green(), pixel.blue()]);
    let rgb: Vec<u8> = rgb.collect();
    let mut bytes = Vec::new();
    let mut encoder = png::Encoder::new(&mut bytes, pixels.width(), pixels.height());
    encoder.set_color(png::ColorType::Rgb);
    encoder.set_depth(png::BitDepth::Eight);
    encoder.set_filter(png::Filter::NoFilter);
    encoder.set_deflate_compression(png::DeflateCompression::Level(DEFLATE));
    let written = encoder.write_header().and_then(|mut writer| writer.write_image_data(&rgb));
    written.map_err(|error| PngError::Encode(error.to_string()))?;
    Ok(bytes)
}

/// An SVG element.
#[derive(Default)]
struct Element<'a> {
    name: &'a str,
    attributes: BTreeMap<&'a str, &'a str>,
    /// Text after the tag, up to the next tag.
    text: &'a str,
}

/// Elements of a document in their order, without titles and end tags.
fn elements(svg: &str) -> Result<Vec<Element<'_>>, PngError> {
    let invalid = |part: &str| PngError::Svg(part.chars().take(40).collect());
    let mut elements = Vec::new();
    let mut parts = svg.split('<');
    if parts.next().is_none_or(|before| !before.trim().is_empty()) {
        return Err(invalid(svg));
    }
    for part in parts.filter(|part| !part.starts_with(['/'])) {
        let (tag, text) = part.split_once('>').ok_or_else(|| invalid(part))?;
        let (name, mut rest) = tag.trim_end_matches('/').split_once(' ').unwrap_or((tag, ""));
        if name == "title" {
            continue;
        }
        let mut attributes = BTreeMap::new();
        while let Some((name, value)) = rest.trim_start().split_once("=\"") {
            let (value, after) = value.split_once('"').ok_or_else(|| invalid(part))?;
            attributes.insert(name, value);
            rest = after;
        }
        elements.push(Element { name, attributes, text });
    }
    Ok(elements)
}

impl Element<'_> {
    fn wrong(&self, what: &str) -> PngError {
        PngError::Svg(format!("{what} of <{}>", self.name))
    }

    /// A number, or SVG's default if it is missing.
    fn number(&self, name: &str, default: f32) -> Result<f32, PngError> {
        let Some(text) = self.attributes.get(name) else { return Ok(default) };
        text.parse().map_err(|_| self.wrong(name))
    }

    /// Numbers of an attribute, with any separators.
    fn numbers(&self, name: &str) -> Result<Vec<f32>, PngError> {
        let text = self.attributes.get(name).copied().unwrap_or_default();
        let parts = text.split(|c: char| !matches!(c, '0'..='9' | '.' | '-'));
        let parts = parts.filter(|part| !part.is_empty());
        parts.map(|part| part.parse().map_err(|_| self.wrong(name))).collect()
    }

    /// Paint for filling or stroking. `None` if the attribute has no colour.
    fn paint(&self, name: &str, opacity: &str) -> Result<Option<Paint<'static>>, PngError> {
        let Some(hex) = self.attributes.get(name).and_then(|colour| colour.strip_prefix('#'))
        else {
            return Ok(None);
        };
        let value = u32::from_str_radix(hex, 16).map_err(|_| self.wrong(name))?;
        let [_, red, green, blue] = value.to_be_bytes();
        let alpha = (self.number(opacity, 1.0)? * 255.0).round() as u8;
        let mut paint = Paint { anti_alias: true, ..Paint::default() };
        paint.set_color(Color::from_rgba8(red, green, blue, alpha));
        Ok(Some(paint))
    }

    fn stroke(&self) -> Result<Stroke, PngError> {
        let is_round = self.attributes.get("stroke-linejoin") == Some(&"round");
        Ok(Stroke {
            width: self.number("stroke-width", 1.0)?,
            line_join: if is_round { LineJoin::Round } else { LineJoin::Miter },
            dash: StrokeDash::new(self.numbers("stroke-dasharray")?, 0.0),
            ..Stroke::default()
        })
    }

    /// Path of the element. `None` if it is empty, such as a bar without height.
    fn path(&self, font: &Face<'_>) -> Result<Option<Path>, PngError> {
        let number = |name| self.number(name, 0.0);
        Ok(match self.name {
            "rect" => {
                let (x, y) = (number("x")?, number("y")?);
                let rect = Rect::from_xywh(x, y, number("width")?, number("height")?);
                rect.filter(|rect| rect.width() > 0.0 && rect.height() > 0.0)
                    .map(PathBuilder::from_rect)
            }
            "circle" => PathBuilder::from_circle(number("cx")?, number("cy")?, number("r")?),
            "line" => {
                let ends = [number("x1")?, number("y1")?, number("x2")?, number("y2")?];
                corners(&ends, false)
            }
            "polyline" => corners(&self.numbers("points")?, false),
            "polygon" => corners(&self.numbers("points")?, true),
            "text" => self.letters(font)?,
            _ => return Err(PngError::Svg(format!("<{}>", self.name))),
        })
    }

    /// Outlines of a text.
    fn letters(&self, font: &Face<'_>) -> Result<Option<Path>, PngError> {
        let text = unescape(self.text);
        let scale = self.number("font-size", 16.0)? / f32::from(font.units_per_em());
        let width = |text: &str| -> f32 { text.chars().map(|c| advance(font, c)).sum() };
        let back = match self.attributes.get("text-anchor").copied() {
            Some("middle") => 0.5 * width(&text),
            Some("end") => width(&text),
            _ => 0.0,
        };
        let (x, y) = (self.number("x", 0.0)?, self.number("y", 0.0)?);
        let mut outline = Outline { path: PathBuilder::new(), x: x - back * scale, y, scale };
        for c in text.chars() {
            font.outline_glyph(font.glyph_index(c).unwrap_or_default(), &mut outline);
            outline.x += advance(font, c) * scale;
        }
        Ok(outline.path.finish())
    }
}

/// Advance width of a letter, in units of the font.
fn advance(font: &Face<'_>, c: char) -> f32 {
    font.glyph_hor_advance(font.glyph_index(c).unwrap_or_default()).map_or(0.0, f32::from)
}

/// Width in pixels of a rendered line of text.
#[cfg(test)]
pub(super) fn text_width(text: &str, size: f64) -> f64 {
    let font = Face::parse(FONT, 0).unwrap();
    let units: f32 = text.chars().map(|c| advance(&font, c)).sum();
    f64::from(units) * size / f64::from(font.units_per_em())
}

/// Converts a letter's outline, whose y axis points upwards.
struct Outline {
    path: PathBuilder,
    x: f32,
    y: f32,
    scale: f32,
}

impl Outline {
    fn at(&self, x: f32, y: f32) -> (f32, f32) {
        (self.x + x * self.scale, self.y - y * self.scale)
    }
}

impl OutlineBuilder for Outline {
    fn move_to(&mut self, x: f32, y: f32) {
        let (x, y) = self.at(x, y);
        self.path.move_to(x, y);
    }
    fn line_to(&mut self, x: f32, y: f32) {
        let (x, y) = self.at(x, y);
        self.path.line_to(x, y);
    }
    fn quad_to(&mut self, x1: f32, y1: f32, x: f32, y: f32) {
        let ((x1, y1), (x, y)) = (self.at(x1, y1), self.at(x, y));
        self.path.quad_to(x1, y1, x, y);
    }
    fn curve_to(&mut self, x1: f32, y1: f32, x2: f32, y2: f32, x: f32, y: f32) {
        let ((x1, y1), (x2, y2), (x, y)) = (self.at(x1, y1), self.at(x2, y2), self.at(x, y));
        self.path.cubic_to(x1, y1, x2, y2, x, y);
    }
    fn close(&mut self) {
        self.path.close();
    }
}

/// Lines between points given as alternating x and y.
fn corners(points: &[f32], is_closed: bool) -> Option<Path> {
    let mut path = PathBuilder::new();
    for (index, point) in points.chunks_exact(2).enumerate() {
        match index {
            0 => path.move_to(point[0], point[1]),
            _ => path.line_to(point[0], point[1]),
        }
    }
    if is_closed {
        path.close();
    }
    path.finish()
}

/// Reverts `svg::escape`.
fn unescape(text: &str) -> String {
    let named = [("&lt;", "<"), ("&gt;", ">"), ("&quot;", "\""), ("&#39;", "'"), ("&amp;", "&")];
    named.iter().fold(text.to_owned(), |text, (name, c)| text.replace(name, c))
}

/// Width and height of the document.
fn size(elements: &[Element<'_>]) -> Result<(f32, f32), PngError> {
    let page = elements.first().filter(|first| first.name == "svg");
    let page = page.ok_or_else(|| PngError::Svg("it does not begin with <svg>".to_owned()))?;
    Ok((page.number("width", 0.0)?, page.number("height", 0.0)?))
}

fn pixels(elements: &[Element<'_>], scale: f32) -> Result<Pixmap, PngError> {
    let (width, height) = size(elements)?;
    let (width, height) = ((width * scale).ceil(), (height * scale).ceil());
    let out_of_range = PngError::Size { width: width as u32, height: height as u32 };
    if !(1.0..=MAX_SIDE).contains(&width) || !(1.0..=MAX_SIDE).contains(&height) {
        return Err(out_of_range);
    }
    let font = Face::parse(FONT, 0).map_err(|error| PngError::Svg(error.to_string()))?;
    let mut pixels = Pixmap::new(width as u32, height as u32).ok_or(out_of_range)?;
    pixels.fill(Color::WHITE);
    for element in &elements[1..] {
        let Some(path) = element.path(&font)? else { continue };
        let mut transform = Transform::from_scale(scale, scale);
        if let [degrees, x, y] = *element.numbers("transform")? {
            transform = transform.pre_concat(Transform::from_rotate_at(degrees, x, y));
        }
        if let Some(paint) = element.paint("fill", "fill-opacity")? {
            pixels.fill_path(&path, &paint, FillRule::Winding, transform, None);
        }
        if let Some(paint) = element.paint("stroke", "stroke-opacity")? {
            pixels.stroke_path(&path, &paint, &element.stroke()?, transform, None);
        }
    }
    Ok(pixels)
}

#[cfg(test)]
mod tests {
    use super::*;
    use resvg::usvg;

    const SQUARE: &str = "<svg xmlns=\"http://www.w3.org/2000/svg\" width=\"10\" height=\"20\"/>";

    /// Pixels from a renderer for any SVG document.
    fn by_resvg(svg: &str, scale: f32) -> Pixmap {
        let mut options = usvg::Options::default();
        options.fontdb_mut().load_font_data(FONT.to_vec());
        options.fontdb_mut().set_sans_serif_family("DejaVu Sans");
        options.font_family = "DejaVu Sans".into();
        let tree = usvg::Tree::from_str(svg, &options).unwrap();
        let size = tree.size().to_int_size();
        let side = |side: u32| (side as f32 * scale).ceil() as u32;
        let mut pixels = Pixmap::new(side(size.width()), side(size.height())).unwrap();
        pixels.fill(Color::WHITE);
        resvg::render(&tree, Transform::from_scale(scale, scale), &mut pixels.as_mut());
        pixels
    }

    /// Mean difference of the channels of two pictures, of 255.
    fn difference(a: &Pixmap, b: &Pixmap) -> f64 {
        assert_eq!((a.width(), a.height()), (b.width(), b.height()));
        let each = a.data().iter().zip(b.data()).map(|(a, b)| a.abs_diff(*b));
        each.map(u64::from).sum::<u64>() as f64 / a.data().len() as f64
    }

    #[test]
    fn png_agrees_with_resvg() {
        let folder = concat!(env!("CARGO_MANIFEST_DIR"), "/../results/tests/golden/figure");
        let files = std::fs::read_dir(folder).unwrap().flatten().map(|file| file.path());
        let golden = files.map(|path| (std::fs::read_to_string(&path).unwrap(), path));
        let mut seen = std::collections::BTreeSet::new();
        for (svg, file) in golden {
            let rendered = |svg: &str| pixels(&elements(svg).unwrap(), 2.0).unwrap();
            // resvg applies kerning.
            let mean = difference(&rendered(&svg), &by_resvg(&svg, 2.0));
            assert!(mean < 1.5, "{file:?}: {mean}");
            let is_text = |line: &&str| line.starts_with("<text");
            let shapes: String = svg.lines().filter(|line| !is_text(line)).collect();
            // Edges of small circles differ.
            let mean = difference(&rendered(&shapes), &by_resvg(&shapes, 2.0));
            assert!(mean < 0.01, "{file:?} without its text: {mean}");
            seen.extend(elements(&svg).unwrap().iter().map(|element| element.name.to_owned()));
        }
        let all = ["circle", "line", "polygon", "polyline", "rect", "svg", "text"];
        assert!(seen.iter().eq(all.iter()), "{seen:?}");
    }

    #[test]
    fn png_contains_every_pixel() {
        let bar =
            |n: usize| format!("<rect x=\"{n}\" width=\"1\" height=\"9\" fill=\"#{n:06x}\"/>");
        let bars: String = (0..300).map(bar).collect();
        let svg = SQUARE.replace("\"10\"", "\"300\"").replace("/>", &format!(">{bars}</svg>"));
        let drawn = pixels(&elements(&svg).unwrap(), 2.0).unwrap();
        assert_eq!(Pixmap::decode_png(&encode(&drawn).unwrap()).unwrap(), drawn);
    }

    #[test]
    fn png_scale_multiplies_the_size() {
        let png = render(SQUARE, 2.0).unwrap();
        assert_eq!(&png[..8], b"\x89PNG\r\n\x1a\n");
        // Width and height in the IHDR chunk.
        assert_eq!(png[16..24], [0, 0, 0, 20, 0, 0, 0, 40]);
    }

    #[test]
    fn png_wide_pictures_are_scaled_down() {
        let wide = "<svg xmlns=\"http://www.w3.org/2000/svg\" width=\"40000\" height=\"20\"/>";
        let png = render_at_most(wide, 2.0).unwrap();
        let width = u32::from_be_bytes([png[16], png[17], png[18], png[19]]);
        assert!((16_300..=16_384).contains(&width), "{width}");
        assert_eq!(render_at_most(SQUARE, 2.0), render(SQUARE, 2.0));
    }

    #[test]
    fn png_rejects_invalid_input() {
        let within = |inner: &str| SQUARE.replace("/>", &format!(">{inner}</svg>"));
        assert!(matches!(render("no", 1.0), Err(PngError::Svg(_))));
        for inner in ["<ellipse/>", "<rect x=\"a\"/>", "<path/>", "<rect x=\"1"] {
            assert!(matches!(render(&within(inner), 1.0), Err(PngError::Svg(_))), "{inner}");
        }
        assert!(matches!(render(SQUARE, 0.0), Err(PngError::Size { .. })));
        assert!(matches!(render(SQUARE, 1e9), Err(PngError::Size { .. })));
        assert!(matches!(render(SQUARE, f32::NAN), Err(PngError::Size { .. })));
    }
}
