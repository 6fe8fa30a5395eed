//! The software router's packet filter: rules, and states of connections. It is a factor of
//! experiments, modelled on pf and ipfw.
//!
//! ```text
//! packet in -> has it a state? -> rules "in" -> lookup, rewriting -> rules "out" -> out
//!                      \__________________________________________________________/
//! ```
//!
//! Packets to the router itself have separate rules (`local`); packets that expire here are
//! filtered by the `in` rules before they are answered. If there are any rules, for packets in
//! transit or for packets to the router, those whose headers can't be read as far as the rules need
//! are dropped, and fragments follow their first (`fragments.rs`).
//!
//! The first matching rule decides. A state lets its connection pass in both directions and, as
//! with ipfw, on both sides of the router: `out` rules are evaluated for packets without a state,
//! and if there are no such rules and the policy is to pass, filtering on the way out is free.
//! Block unwanted outgoing traffic before a rule keeps its state.
//!
//! A state begins with any packet that a `keep state` rule passes, except resets, ICMP other than
//! queries, and later fragments; of TCP it is the SYN, unless the rule has `flags any`, which picks
//! connections up mid-stream. A TCP connection is established once both sides have answered, or
//! immediately if it is sloppy.
//!
//! ICMP and ICMPv6 errors belong to the connection whose packet they quote (RFC 792, RFC 4443, RFC
//! 5508): they pass from either side and on both sides while the connection has a state, and count
//! among its matches. They change neither phase nor time nor counters of the state: forged errors
//! could otherwise keep it alive, and pf refreshes nothing either. Errors that quote anything else
//! are filtered by rules.
//!
//! Of TCP, only segments within the connection's windows pass by its state, and resets and errors
//! are verified before they take effect (`states/window.rs`; RFC 5961, RFC 5927).
//!
//! Out of scope: reassembly, address translation, and synproxy.
//!
//! Batches are processed in stages: first all packets are parsed and hashed and their states
//! prefetched, then states are looked up lock by lock, and last the rules are evaluated, in order,
//! for packets without a state.

mod filter;
mod fragments;
mod limit;
mod packet;
mod quoted;
mod rule;
mod rules;
mod shadowed;
mod states;
mod stats;
pub mod text;

pub use filter::{Filter, Removed, Selected, Selector, SharedFirewall};
pub use fwdlab_packet::forwarding::StateTable;
pub use rule::{
    Action, Direction, End, Host, Limit, Net, Rule, RuleError, Ruleset, Standard, Table,
};
pub use states::{Connection, Phase, StateConfig, Timeouts};
pub use stats::{FirewallStats, RuleStats};
