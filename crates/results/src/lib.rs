//! Keeps, counts and shows what runs found.
//!
//! [`store`] keeps raw observations; [`stats`] reckons with rates, [`counts`] with instructions; [`figure`] draws;
//! [`report`] writes, [`compare`] answers what is asked of files and stores at
//! once, [`history`] follows a machine over revisions, [`catalogue`] lists many experiments; what they say is a [`document`]
//! in whatever form. Nothing here measures,
//! and nothing here knows an operating system's network: every report can be
//! rebuilt from stores alone.

pub mod catalogue;
pub mod compare;
pub mod counts;
pub mod document;
pub mod facts;
pub mod figure;
mod format;
pub mod history;
pub mod label;
mod plans;
pub mod profile;
pub mod report;
mod short_names;
pub mod store;
pub mod text;

pub use fwdlab_stats as stats;
pub use short_names::short_names;
