//! Measurements of the router's parts on this machine, for `cargo bench` and `fwdlab bench`:
//! lookups per second of the tables, packets per second of the path.

mod fib;
pub mod route;

pub use fib::{
    Algorithm, BATCH, DESTINATIONS, FibFigure, PUBLISHED_TABLES, Pattern, Published, Question,
    Table, fib,
};
