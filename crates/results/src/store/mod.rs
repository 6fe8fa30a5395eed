//! The store: one SQLite file per experiment.
