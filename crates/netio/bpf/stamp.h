/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * The stamp in every packet's payload and the counters shared with user space.
 * The Rust side of the same layouts: crates/packet/src/stamp.rs (bytes) and
 * crates/netio/src/xdp/layout.rs (maps); tests there hold both together.
 *
 * Stamp, 18 bytes, big endian, at the start of the UDP payload:
 *   0  u16 magic
 *   2  u32 run id
 *   6  u32 tag: sender (4 bits) | phase (4 bits) | flow (24 bits)
 *  10  u32 sequence number of this sender, modulo 2^32
 *  14  u32 sending time, nanoseconds of CLOCK_MONOTONIC modulo 2^32; 0 if off. Of a paced
 *      packet it is the time at which it was due, so that a late sender hides no delay
 */
#ifndef FWDLAB_STAMP_H
#define FWDLAB_STAMP_H

#define STAMP_MAGIC 0xf1ab
#define STAMP_BYTES 18
#define PHASES 4
#define PHASE_WINDOW 1
#define DUE_MAX_NS 2000000000ULL
#define SENDERS_MAX 16
#define MIX_MAX 64 /* frames of a mix of sizes: packet::size */
#define FAMILY_INET 4
#define FAMILY_INET6 6

/* One per sender. The first line is written by user space, the rest by the program. */
struct sender_state {
	__u64 phase;      /* phase to stamp, 0 .. PHASES-1 */
	__u64 interval_q; /* time between packets, 1/65536 ns; 0: no pacing */
	__u64 start_ns;   /* CLOCK_MONOTONIC at which the schedule begins */
	__u64 pad[5];
	__u64 next_q;     /* when the next packet is due, after start_ns, 1/65536 ns */
	__u64 missed;     /* packets given up because the sender was late */
	__u32 source;     /* position in the source and destination ranges */
	__u32 destination;
	__u32 sequence;
	__u32 flow;
	__u64 sent[PHASES];
};

/* What can be wrong with a packet: packet::arrivals::Fault, in the same order. */
enum fault {
	FAULT_LENGTH,
	FAULT_DESTINATION_MAC,
	FAULT_SOURCE_MAC,
	FAULT_IP_HEADER,
	FAULT_IP_LENGTH,
	FAULT_TTL,
	FAULT_SOURCE_ADDRESS,
	FAULT_DESTINATION_ADDRESS,
	FAULT_UDP_HEADER,
	FAULT_STAMP,
	FAULT_SEQUENCE,
	FAULT_TIME,
	FAULT_PAYLOAD,
	FAULT_IP_CHECKSUM,
	FAULT_UDP_CHECKSUM,
	FAULTS,
};

/* Where a sender is, as one CPU of the receiver knows it: packet::arrivals::Order. */
struct walk {
	__u64 base;     /* sequence number at which the newest round of the flows began */
	__u32 round;    /* that round */
	__u32 sequence; /* of the last packet */
	__u32 time;     /* of the last packet */
	__u32 seen;     /* when it came, by the receiver's clock */
	__u64 suspect;  /* a round's beginning that nothing has confirmed */
	__u64 began;
};

/* One per CPU of the receiver; whole cache lines so that CPUs do not share one. */
struct receiver_state {
	__u64 packets[PHASES]; /* of this run, intact and for the first time, by phase */
	__u64 frames;          /* that came, where some of them are chosen */
	__u64 chosen;          /* which of 64 frames are checked, the first in the lowest bit */
	__u64 phase;           /* of the last packet that was checked */
	__u64 in_full;         /* packets whose payload was looked at from end to end */
	__u64 pad;
	__u64 foreign;         /* of another run */
	__u64 unstamped;       /* UDP between the benchmark's addresses without a stamp */
	__u64 others;          /* anything else */
	__u64 damaged[PHASES];
	__u64 duplicates[PHASES];
	__u64 reordered[PHASES];
	__u64 faults[FAULTS + 1];
	__u64 checked;         /* packets of this run chosen to be checked */
	__u64 evident;         /* damaged ones among the others */
	__u64 delay_sum;       /* nanoseconds, of packets in the map of delays */
	__u64 delay_min;       /* and 1; 0 before the first */
	__u64 delay_max;
	__u64 bytes[PHASES - 1]; /* of packets, without FCS; where they are not all alike */
	__u64 difference_sum;  /* as of delays, in the map of differences */
	__u64 difference_min;
	__u64 difference_max;
	__u64 unused[5];
	struct walk walks[SENDERS_MAX];
};

/* What is kept of a flow's packets from one sender: packet::arrivals::order::Entry. */
struct entry {
	__u64 window; /* which of the 64 rounds up to the newest arrived; lowest bit: newest */
	__u32 next;   /* the newest round and one */
	__u32 count;  /* packets that arrived, duplicates not counted */
};

/* Bytes without FCS of the packet with this sequence number, of a mix of sizes
 * (packet::size::SizeTurns). */
#define MIX_LENGTH(SEQUENCE, FLOWS) \
	MIX_LENGTHS[((SEQUENCE) + (__u64)((SEQUENCE) / (FLOWS)) * MIX_PASS) % MIX & (MIX_MAX - 1)]

#endif
