//! Forwarding options of the software router, under the names that experiments, the router's
//! process and reports use.

use crate::named;

named! {
    /// How the router finds the longest prefix that matches an address.
    pub enum FibAlgorithm default Auto {
        /// The router's own choice by family and number of routes.
        Auto = "auto",
        /// Binary radix trie, as BSD kernels have had it since 4.3BSD-Reno.
        Radix = "radix",
        /// The same trie as a copy in one piece that is read without a lock.
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
    /// What workers hold while they look a route up.
    pub enum Locking default Lockless {
        /// A mutex: one packet at a time is looked up, whatever the number of workers.
        Global = "global",
        /// A readers-writer lock. Each reader writes to it, so its cache line wanders
        /// between the workers' cores with every packet.
        Rwlock = "rwlock",
        /// Nothing: the table is replaced as a whole, and readers take it once a batch.
        Lockless = "lockless",
    }
}

named! {
    /// How packets are processed. What comes out is the same, frame by frame.
    pub enum ForwardingPath default Fast {
        /// A batch at a time, in one pass, as far as nothing special is in a packet; the
        /// others go the full path. FreeBSD calls this `tryforward`.
        Fast = "fast",
        /// Each packet by itself through the stages of input, forwarding and output that
        /// a BSD kernel has.
        Full = "full",
    }
}

named! {
    /// Where a stateful firewall keeps its states.
    pub enum StateTable default Sharded {
        /// Nowhere: `keep state` is ignored, every packet is judged by the rules.
        None = "none",
        /// One table behind one lock, taken for each packet, as kernels do who
        /// have one: what it costs is what one compares this kind for.
        Global = "global",
        /// Sixteen parts, each behind a lock that is taken once for all packets of a
        /// batch that need it.
        Sharded = "sharded",
        /// One table for each worker, without locks. Right only where both directions of
        /// a connection reach the same worker (symmetric RSS): otherwise replies find no
        /// state.
        PerWorker = "per_worker",
    }
}

named! {
    /// Kind of a counter of packets: what it says of a packet's fate.
    pub enum Class {
        /// The packet came in.
        Received = "received",
        /// The packet went on.
        Forwarded = "forwarded",
        /// The packet ended here.
        Dropped = "dropped",
        /// The packet went to the slow path.
        Slow = "slow",
        /// What the slow path did: not a further packet.
        Answer = "answer",
        /// Frames that were sent beyond those received, those that could not be, and whatever
        /// else is counted beside the packets received.
        Extra = "extra",
    }
}

impl Class {
    /// True when the packets are not forwarded. Those of the slow path are not: its answers
    /// are packets of its own.
    pub fn is_loss(self) -> bool {
        matches!(self, Class::Dropped | Class::Slow)
    }
}
