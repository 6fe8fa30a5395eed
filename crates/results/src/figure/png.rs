//! SVG to PNG, with the vendored font and no other: the same pixels everywhere.

use resvg::{tiny_skia, usvg};

/// DejaVu Sans, Latin only (licence: `assets/DejaVuSans-LICENSE.txt`).
const FONT: &[u8] = include_bytes!("../../assets/DejaVuSans-Latin.ttf");
/// Largest side of a picture in pixels: 16384 squared is a gigabyte of memory.
const MAX_SIDE: f32 = 16384.0;

/// Why there is no picture.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum PngError {
    /// The text isn't SVG.
    #[error("not an SVG document: {0}")]
    Svg(String),
    /// Nothing to see, or more than memory should hold.
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

/// A PNG file of an SVG document, `scale` pixels to each of its units.
///
/// # Errors
/// What isn't SVG, and pictures of less than one or more than 16384 pixels a side.
pub fn render(svg: &str, scale: f32) -> Result<Vec<u8>, PngError> {
    rendered(&parse(svg)?, scale)
}

/// The same with fewer pixels where a side would have too many: a picture of a
/// thousand variants is small print, but a picture.
///
/// # Errors
/// What isn't SVG, and a document without size.
pub fn render_at_most(svg: &str, scale: f32) -> Result<Vec<u8>, PngError> {
    let tree = parse(svg)?;
    let longest = tree.size().width().max(tree.size().height());
    // A pixel less, so that rounding up stays within.
    rendered(&tree, scale.min((MAX_SIDE - 1.0) / longest))
}

fn rendered(tree: &usvg::Tree, scale: f32) -> Result<Vec<u8>, PngError> {
    let size = tree.size();
    let (width, height) = ((size.width() * scale).ceil(), (size.height() * scale).ceil());
    let refused = PngError::Size { width: width as u32, height: height as u32 };
    if !(1.0..=MAX_SIDE).contains(&width) || !(1.0..=MAX_SIDE).contains(&height) {
        return Err(refused);
    }
    let mut pixels = tiny_skia::Pixmap::new(width as u32, height as u32).ok_or(refused)?;
    resvg::render(tree, tiny_skia::Transform::from_scale(scale, scale), &mut pixels.as_mut());
    pixels.encode_png().map_err(|error| PngError::Encode(error.to_string()))
}

fn parse(svg: &str) -> Result<usvg::Tree, PngError> {
    let mut options = usvg::Options::default();
    options.fontdb_mut().load_font_data(FONT.to_vec());
    // Whatever family a document names, this is the font there is.
    options.fontdb_mut().set_sans_serif_family("DejaVu Sans");
    options.font_family = "DejaVu Sans".into();
    usvg::Tree::from_str(svg, &options).map_err(|error| PngError::Svg(error.to_string()))
}

/// Width in pixels of a line of text as laid out with the font.
#[cfg(test)]
pub(super) fn text_width(text: &str, size: f64) -> f64 {
    let svg = format!(
        "<svg xmlns=\"http://www.w3.org/2000/svg\" width=\"900\" height=\"50\">\
         <text x=\"0\" y=\"30\" font-family=\"DejaVu Sans\" font-size=\"{size}\">{text}</text></svg>"
    );
    f64::from(parse(&svg).unwrap().root().abs_layer_bounding_box().width())
}

#[cfg(test)]
mod tests {
    use super::*;

    const SQUARE: &str = "<svg xmlns=\"http://www.w3.org/2000/svg\" width=\"10\" height=\"20\"/>";

    #[test]
    fn scale_multiplies_the_size() {
        let png = render(SQUARE, 2.0).unwrap();
        assert_eq!(&png[..8], b"\x89PNG\r\n\x1a\n");
        // Width and height of the IHDR chunk.
        assert_eq!(png[16..24], [0, 0, 0, 20, 0, 0, 0, 40]);
    }

    #[test]
    fn wide_pictures_are_made_smaller() {
        let wide = "<svg xmlns=\"http://www.w3.org/2000/svg\" width=\"40000\" height=\"20\"/>";
        let png = render_at_most(wide, 2.0).unwrap();
        let width = u32::from_be_bytes([png[16], png[17], png[18], png[19]]);
        assert!((16_300..=16_384).contains(&width), "{width}");
        assert_eq!(render_at_most(SQUARE, 2.0), render(SQUARE, 2.0));
    }

    #[test]
    fn refusals() {
        assert!(matches!(render("no", 1.0), Err(PngError::Svg(_))));
        assert!(matches!(render(SQUARE, 0.0), Err(PngError::Size { .. })));
        assert!(matches!(render(SQUARE, 1e9), Err(PngError::Size { .. })));
        assert!(matches!(render(SQUARE, f32::NAN), Err(PngError::Size { .. })));
    }
}
