//! Where routes come from.
