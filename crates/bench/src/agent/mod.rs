//! Agents: fwdlab's own senders and receiver on other machines of a laboratory.
//!
//! The same program is started there (`fwdlab send --control`, `fwdlab receive
//! --control`), is told by lines of JSON what to do, and answers each with its counters
//! ([`protocol`]). [`serve_send`] and [`serve_receive`] are the agents' side, [`open`]
//! what they open there; [`AgentTraffic`] is the controller's side, the traffic of a
//! trial; [`program()`] sees to it that a host has this fwdlab.
//!
//! An agent ends by itself when its input ends or when its time is over: a dead
//! controller leaves no traffic behind. What it has opened goes with its process.
//!
//! Left out: clocks are not set by each other. Packets say their phase, so counts need
//! no common time; the window's length is the senders' own.

mod burst;
mod conversation;
mod deploy;
#[cfg(test)]
mod fakes;
mod lines;
pub mod open;
pub mod protocol;
mod serve;
pub mod serve_receive;
pub mod serve_send;
mod traffic;

pub(crate) use burst::Burst;
pub use deploy::{Own, program};
pub use traffic::{AgentLoad, AgentTraffic, End};
