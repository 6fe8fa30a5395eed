//! Stores, analyses and presents the results of runs.
//!
//! [`store`] keeps raw observations; [`stats`] computes with rates, [`counts`] with instructions;
//! [`plot`] draws; [`report`] writes reports, [`compare`] compares files and stores, [`history`]
//! follows a machine over revisions, [`catalogue`] lists many experiments. Their results are a
//! [`document`] in any output form. Nothing here measures, and nothing here depends on an operating
//! system's network: every report can be rebuilt from stores alone.

pub mod catalogue;
pub mod compare;
pub mod counts;
pub mod facts;
pub mod history;
mod quantity;
pub mod report;
mod short_names;

pub use fwdlab_document as document;
pub use fwdlab_document::{format, plot, text};
pub use fwdlab_profile as profile;
pub use fwdlab_stats as stats;
pub use fwdlab_store as store;
pub use fwdlab_store::{label, plans};
pub use short_names::short_names;
