//! Integration tests of the crate: stores and records in, statistics and text out.

#[path = "../../../archive/tests/it/archive_writer.rs"]
mod archive_writer;
#[path = "method_figures/mod.rs"]
mod figures;
#[path = "support/golden.rs"]
mod golden;
#[path = "support/revisions.rs"]
mod revisions;

mod answers;
mod around;
mod beds;
mod browser;
mod catalogue;
mod change_points;
mod compare;
mod corrections;
mod counts;
mod diagnoses;
mod document;
mod figure;
mod figure_history;
mod first_screen;
mod history;
mod history_of_many;
mod labels;
mod left_out;
mod mail;
mod merge;
mod methods;
mod ministat_conformance;
mod oracles;
mod profile;
mod profile_archive;
mod report;
mod scaling;
mod steady_conformance;
mod stopping;
mod store;
mod support;
mod verdicts;
