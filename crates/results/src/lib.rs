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
pub mod facts;
pub mod history;
pub mod report;
mod short_names;

pub use fwdlab_document as document;
pub use fwdlab_document::{format, plot, text};
pub use fwdlab_profile as profile;
pub use fwdlab_stats as stats;
pub use fwdlab_store as store;
pub use fwdlab_store::{label, plans};
pub use short_names::short_names;
