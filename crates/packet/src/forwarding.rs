//! Forwarding options of the software router, with the names used by experiments, the router's
//! process and reports.

use crate::named;

named! {
    /// Algorithm of the router's longest-prefix match.
    pub enum FibAlgorithm default Auto {
        /// Chosen by the router, by family and number of routes.
        Auto = "auto",
        /// Binary radix trie, as BSD kernels have had it since 4.3BSD-Reno.
        Radix = "radix",
        /// The same trie as one contiguous copy that is read without a lock.
        RadixLockless = "radix_lockless",
        /// Binary search over the sorted borders of address ranges.
        BSearch = "bsearch",
        /// DIR-24-8 (Gupta, Lin and McKeown, INFOCOM 1998) for inet; a multi-bit
        /// trie for inet6.
        Dir24_8 = "dir24_8",
        /// Poptrie (Asai and Ohara, SIGCOMM 2015).
        Poptrie = "poptrie",
    }
}

named! {
    /// Lock that workers hold during a route lookup.
    pub enum Locking default Lockless {
        /// A mutex: one lookup at a time, whatever the number of workers.
        Global = "global",
        /// A readers-writer lock. Each reader writes to it, so its cache line moves between the
        /// workers' cores with every packet.
        Rwlock = "rwlock",
        /// No lock: the table is replaced as a whole, and readers take it once per batch.
        Lockless = "lockless",
    }
}

named! {
    /// Processing of packets. All paths produce identical frames.
    pub enum ForwardingPath default Fast {
        /// A batch at a time, in one pass, unless a packet needs special treatment; such packets
        /// take the full path. FreeBSD calls this `tryforward`.
        Fast = "fast",
        /// One packet at a time through the input, forwarding and output stages of a BSD kernel.
        Full = "full",
        /// As [`ForwardingPath::Fast`], with known flows forwarded by an XDP program of the
        /// interfaces.
        Xdp = "xdp",
    }
}

impl ForwardingPath {
    /// Paths within the router's process, which need no interfaces.
    pub const IN_PROCESS: [ForwardingPath; 2] = [ForwardingPath::Fast, ForwardingPath::Full];
}

named! {
    /// Storage of a stateful firewall's states.
    pub enum StateTable default Sharded {
        /// No states: `keep state` is ignored, every packet is matched against the rules.
        None = "none",
        /// One table behind one lock, taken for each packet, as in some kernels. This kind exists
        /// to measure that cost.
        Global = "global",
        /// Sixteen parts, each behind a lock that is taken once for all packets of a batch that
        /// need it.
        Sharded = "sharded",
        /// One table per worker, without locks. Correct only if both directions of a connection
        /// reach the same worker (symmetric RSS); otherwise replies find no state.
        PerWorker = "per_worker",
    }
}

named! {
    /// Kind of a packet counter, by the fate of the packet.
    pub enum Class {
        /// The packet was received.
        Received = "received",
        /// The packet was forwarded.
        Forwarded = "forwarded",
        /// The packet was dropped.
        Dropped = "dropped",
        /// The packet was handed to the slow path.
        Slow = "slow",
        /// An action of the slow path: not an additional packet.
        Answer = "answer",
        /// Frames sent in addition to those received, frames that could not be sent, and other
        /// counts in addition to the received packets.
        Extra = "extra",
    }
}

impl Class {
    /// True if the packets are not forwarded. Packets of the slow path are not: its answers are its
    /// own packets.
    pub fn is_loss(self) -> bool {
        matches!(self, Class::Dropped | Class::Slow)
    }
}
