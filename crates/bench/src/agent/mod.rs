//! Agents: fwdlab's own senders and receiver on other machines of a laboratory.
//!
//! The controller starts the same program there (`fwdlab send --control`, `fwdlab receive
//! --control`). An agent receives orders as lines of JSON and answers each with its counters
//! ([`protocol`]). [`serve_send`] and [`serve_receive`] are the agents' side, [`open`] opens their
//! senders and receivers; [`AgentTraffic`] is the controller's side, the traffic of a trial;
//! [`program()`] deploys fwdlab to a host.
//!
//! An agent exits when its input ends or its time limit is reached, so a dead controller leaves no
//! traffic running. Sockets and XDP programs are released with the agent's process.
//!
//! Clocks are not synchronised. Packets carry their phase, so counts need no common time; the
//! senders' clocks determine the length of the window.

mod burst;
mod conversation;
mod deploy;
#[cfg(test)]
mod fakes;
mod line_reader;
pub mod open;
pub mod protocol;
mod serve;
pub mod serve_receive;
pub mod serve_send;
mod traffic;

pub(crate) use burst::Burst;
pub use deploy::{ThisProgram, program};
pub use traffic::{AgentLoad, AgentTraffic, End};
