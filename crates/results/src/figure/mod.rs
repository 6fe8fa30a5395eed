//! Pictures: SVG written by hand, PNG rendered from it.
