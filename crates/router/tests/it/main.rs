//! Tests of the crate from outside: packets and routes in, packets out.

mod algorithms;
mod drop_log;
mod firewall;
mod firewall_errors;
mod firewall_local;
mod firewall_passed;
mod firewall_rules;
mod firewall_states;
mod full;
mod harvest;
mod host;
mod mrt;
mod neighbours;
mod path;
mod redirects;
mod shared;
mod slow;
mod slow_limits;
mod support;
