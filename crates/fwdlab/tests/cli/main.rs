//! The built program, as a user meets it.

mod compare;
mod connections;
mod coverage;
mod directions;
mod flood;
mod history;
mod import;
mod import_lab;
mod lab;
mod methods;
mod ministat;
mod netns;
mod output;
mod planning;
mod profile;
mod refusals;
mod resume;
mod route;
mod run;
mod run_profile;
mod search;
mod send;
mod send_ssh;
mod serve;
mod stopping;
mod support;
