//! Generators that are not ours, against programs and servers of the test: what is
//! asserted is what they are asked for, what they may leave unsaid, and that a lie or
//! a death is told. Only testpmd is the real one.

mod bench;
mod otg;
mod pkt_gen;
mod pktgen;
mod testpmd;
mod trex;
