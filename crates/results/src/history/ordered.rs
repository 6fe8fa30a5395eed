//! Input of the search for changes.

use super::place::Place;
use super::results::SeriesResult;

/// A series whose points are in order.
pub(super) struct Ordered {
    pub(super) places: Vec<Place>,
    pub(super) result: SeriesResult,
}
