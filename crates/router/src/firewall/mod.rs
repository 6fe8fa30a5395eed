//! The software router's packet filter: rules, and states of connections. It is a
//! factor of experiments; pf and ipfw are its models.
//!
//! ```text
//! packet in -> has it a state? -> rules "in" -> lookup, rewriting -> rules "out" -> out
//!                      \__________________________________________________________/
//! ```
//!
//! Packets to the router itself have rules of their own (`local`); those that expire here
//! are judged by the `in` rules before they are answered. Packets whose headers can't be read
//! as far as rules ask for them are dropped wherever there are rules, and fragments follow
//! their first (`fragments.rs`).
//!
//! The first rule that matches decides. A state lets its connection pass in both
//! directions and, as with ipfw, on both of the router's sides: `out` rules are asked
//! about packets that have none, and where there are no such rules and the policy
//! is to pass, the way out costs nothing. What must not leave has to be blocked
//! before a rule keeps its state.
//!
//! A state begins with any packet that a `keep state` rule passes, except resets, ICMP
//! other than queries, and later fragments; a TCP connection found under way counts
//! as established, as in Linux (`flags S/SA` forbids that).
//!
//! ICMP and ICMPv6 errors belong to the connection whose packet they quote (RFC 792, RFC
//! 4443, RFC 5508): from either side and on both, they pass while it has a state, and are
//! counted among its matches. Of the state they change nothing, neither phase nor time nor
//! counters: whoever can make up an error could keep it alive otherwise, and pf refreshes
//! nothing either. Errors that quote anything else are judged by rules.
//!
//! Of TCP, only what lies within the connection's windows passes by its state, and resets
//! and errors are checked before they are believed (`states/window.rs`; RFC 5961, RFC 5927).
//!
//! Deliberately not implemented: reassembly, NAT, logging, and synproxy.
//!
//! Batches are processed in stages: first all packets are parsed and hashed and their states
//! prefetched, then states are looked up lock by lock, and last the rules are evaluated, in
//! order, for packets without one.

mod filter;
mod fragments;
mod packet;
mod quoted;
mod rule;
mod rules;
mod states;
mod stats;
pub mod text;

pub use filter::{Filter, SharedFirewall};
pub use fwdlab_packet::forwarding::StateTable;
pub use rule::{Action, Direction, End, Host, Net, Rule, RuleError, Ruleset, Standard, Table};
pub use states::{Connection, Phase, StateConfig, Timeouts};
pub use stats::{FirewallStats, RuleStats};

/// The places in a set, in order.
#[inline(always)]
fn places(mut set: u64) -> impl Iterator<Item = usize> {
    std::iter::from_fn(move || {
        if set == 0 {
            return None;
        }
        let place = set.trailing_zeros() as usize;
        set &= set - 1;
        Some(place)
    })
}
