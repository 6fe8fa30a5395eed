//! The built program, as a user meets it.

mod coverage;
mod output;
mod refusals;
mod resume;
mod run;
mod support;
