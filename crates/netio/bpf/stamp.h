/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * The stamp in every packet's payload and the counters shared with user space. The Rust side of
 * the same layouts: crates/packet/src/stamp.rs (bytes) and crates/netio/src/xdp/layout.rs
 * (maps); their tests check that both agree.
 *
 * Stamp, 18 bytes, big endian, at the start of the UDP payload:
 *   0  u16 magic
 *   2  u32 run id
 *   6  u32 tag: sender (4 bits) | phase (4 bits) | flow (24 bits)
 *  10  u32 sequence number of this sender, modulo 2^32
 *  14  u32 sending time, nanoseconds of CLOCK_MONOTONIC modulo 2^32; 0 if off. For a paced
 *      packet it is the due time, so that a late sender hides no delay
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

/* One per sender. User space writes the first line, the program the rest. */
struct sender_state {
	__u64 phase;      /* phase to stamp, 0 .. PHASES-1 */
	__u64 interval_q; /* time between packets, 1/65536 ns; 0: no pacing */
	__u64 start_ns;   /* CLOCK_MONOTONIC at which the schedule begins */
	__u64 pad[5];
	__u64 next_q;     /* due time of the next packet after start_ns, 1/65536 ns */
	__u64 missed;     /* packets given up because the sender was late */
	__u32 source;     /* position in the source and destination ranges */
	__u32 destination;
	__u32 sequence;
	__u32 flow;
	__u64 sent[PHASES];
};

/* Faults of a packet: packet::arrivals::Fault, in the same order. */
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
	FAULT_MAPPING,
	FAULTS,
};

/* Position of a sender, as one CPU of the receiver knows it: packet::arrivals::Order. */
struct walk {
	__u64 base;     /* sequence number at which the newest round of the flows began */
	__u32 round;    /* that round */
	__u32 sequence; /* of the last packet */
	__u32 time;     /* of the last packet */
	__u32 seen;     /* its arrival time by the receiver's clock */
	__u64 suspect;  /* beginning of a round that is not confirmed yet */
	__u64 began;
};

/* One per CPU of the receiver; whole cache lines so that CPUs do not share one. */
struct receiver_state {
	__u64 packets[PHASES]; /* intact packets of this run by phase, without duplicates */
	__u64 frames;          /* arrived frames, if sampling is on */
	__u64 chosen;          /* the checked ones of 64 frames, the first in the lowest bit */
	__u64 phase;           /* of the last checked packet */
	__u64 in_full;         /* packets whose whole payload was checked */
	__u64 pad;
	__u64 foreign;         /* packets of another run */
	__u64 unstamped;       /* UDP between the benchmark's addresses without a stamp */
	__u64 others;          /* all other packets */
	__u64 damaged[PHASES];
	__u64 duplicates[PHASES];
	__u64 reordered[PHASES];
	__u64 faults[FAULTS];
	__u64 checked;         /* packets of this run chosen to be checked */
	__u64 evident;         /* damaged packets among the others */
	__u64 delay_sum;       /* nanoseconds, of packets in the map of delays */
	__u64 delay_min;       /* plus 1; 0 before the first */
	__u64 delay_max;
	__u64 bytes[PHASES - 1]; /* of packets, without FCS; if their lengths differ */
	__u64 difference_sum;  /* like delays, in the map of differences */
	__u64 difference_min;
	__u64 difference_max;
	__u64 mapping;         /* of the last frame, if sources are translated */
	__u64 unused[4];
	struct walk walks[SENDERS_MAX];
};

/* State of a flow's packets from one sender: packet::arrivals::order::Entry. */
struct entry {
	__u64 window; /* bits of the 64 newest rounds that arrived; lowest bit: newest */
	__u32 next;   /* the newest round plus 1 */
	__u32 count;  /* arrived packets without duplicates */
};

/* Bytes without FCS of the packet with this sequence number in a mix of sizes
 * (packet::size::SizeTurns). */
#define MIX_LENGTH(SEQUENCE, FLOWS) \
	MIX_LENGTHS[((SEQUENCE) + (__u64)((SEQUENCE) / (FLOWS)) * MIX_PASS) % MIX & (MIX_MAX - 1)]

#endif
