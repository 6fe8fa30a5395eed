//! Measurements of the router's parts on this machine, for `cargo bench` and `fwdlab
//! bench` alike: lookups a second of the tables, packets a second of the path.

mod fib;
pub mod route;

pub use fib::{
    Algorithm, BATCH, DESTINATIONS, FibFigure, PUBLISHED_TABLES, Pattern, Published, Question,
    Table, fib,
};
