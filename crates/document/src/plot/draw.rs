//! Layouts of a figure: for files, paper and wide windows, and for phones.

use super::frame::WIDTH;
use super::svg::Sheet;

/// Width of a figure for narrow windows, pixels.
pub(super) const NARROW: f64 = 380.0;

/// A figure that can be laid out for any width.
pub trait Draw {
    /// Lays the figure out for `width` pixels, or more if the data need it.
    fn draw(&self, width: f64) -> Sheet;

    /// Renders the figure as SVG text, in the width of files.
    fn render(&self) -> String {
        self.draw(WIDTH).svg
    }

    /// Renders the figure for windows of any width.
    fn drawing(&self) -> Drawing {
        let narrow = self.draw(NARROW);
        Drawing {
            wide: self.render(),
            narrow: (narrow.width <= NARROW).then_some(narrow.svg),
            is_small: false,
        }
    }
}

/// A figure as SVG text, for windows of any width.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Drawing {
    /// Layout for files, paper and wide windows.
    pub wide: String,
    /// Layout for narrow windows. `None` if the figure needs more room.
    pub narrow: Option<String>,
    /// True if the first layout fits windows of any width.
    pub is_small: bool,
}

impl From<String> for Drawing {
    fn from(wide: String) -> Drawing {
        Drawing { wide, narrow: None, is_small: false }
    }
}
