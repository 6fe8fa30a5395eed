//! Experiments in a laboratory of several hosts, which are namespaces of this machine, each with an
//! sshd. Rates are not tested: one kernel plays all parts.

mod check;
mod faults;
mod forwarders;
mod freebsd;
mod freebsd_host;
mod generators;
mod labgrid;
mod leases;
mod linux;
mod program;
mod rack;
mod whole;
