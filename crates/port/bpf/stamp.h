/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * The stamp in every packet's payload and the counters shared with user space.
 * The Rust side of the same layouts: crates/packet/src/stamp.rs (bytes) and
 * crates/port/src/xdp/layout.rs (maps); tests there hold both together.
 *
 * Stamp, 18 bytes, big endian, at the start of the UDP payload:
 *   0  u16 magic
 *   2  u32 run id
 *   6  u32 tag: sender (4 bits) | phase (4 bits) | flow (24 bits)
 *  10  u32 sequence number of this sender, modulo 2^32
 *  14  u32 sending time, nanoseconds of CLOCK_MONOTONIC modulo 2^32; 0 if off
 */
#ifndef FWDLAB_STAMP_H
#define FWDLAB_STAMP_H

#define STAMP_MAGIC 0xf1ab
#define STAMP_BYTES 18
#define PHASES 4
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

/* One per CPU of the receiver; two cache lines so that CPUs do not share one. */
struct receiver_state {
	__u64 packets[PHASES]; /* of this run, by the phase they were sent in */
	__u64 bytes;           /* of this run, without FCS */
	__u64 foreign;         /* stamped by another run */
	__u64 unstamped;       /* anything else */
	__u64 pad[9];
};

#endif
