//! Plots that an analysis draws.

use crate::plot::Drawing;

/// Name in the report and layouts of each plot.
pub(crate) type Pictures = Vec<(String, Drawing)>;
