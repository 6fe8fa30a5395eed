//! Reports rebuilt from a store.
