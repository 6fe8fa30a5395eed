//! Pictures that an analysis draws.

/// Name in the report and SVG of each picture.
pub(crate) type Pictures = Vec<(String, String)>;
