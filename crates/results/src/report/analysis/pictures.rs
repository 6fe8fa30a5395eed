//! Pictures that an analysis draws.

use crate::plot::Drawing;

/// Name in the report and layouts of each picture.
pub(crate) type Pictures = Vec<(String, Drawing)>;
