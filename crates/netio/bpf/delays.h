/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Packet delays: packet::arrivals::delays, with the same buckets.
 */
#ifndef FWDLAB_DELAYS_H
#define FWDLAB_DELAYS_H

#include "receiver.h"

#define PARTS_BITS 6 /* buckets of an octave, as a power of two */
#define BUCKETS ((32 - PARTS_BITS + 1) << PARTS_BITS)

/* Floor of the logarithm; BPF has no instruction for it. */
static __always_inline __u32 ilog2(__u32 x)
{
	__u32 log = 0;

	if (x >> 16) {
		log += 16;
		x >>= 16;
	}
	if (x >> 8) {
		log += 8;
		x >>= 8;
	}
	if (x >> 4) {
		log += 4;
		x >>= 4;
	}
	if (x >> 2) {
		log += 2;
		x >>= 2;
	}
	return log + (x >> 1);
}

static __always_inline __u32 bucket_of(__u32 cpu, __u32 ns)
{
	__u32 octave = ilog2(ns | (1 << PARTS_BITS)) - PARTS_BITS;

	return cpu * BUCKETS + (octave << PARTS_BITS) + (ns >> octave);
}

/* Records the difference of the delays of two consecutive packets of a flow (RFC 3393). */
static __always_inline void note_difference(struct receiver_state *state, __u32 cpu,
					    __u32 flow, __u32 round, __u32 delay)
{
	__u64 *of_flow = bpf_map_lookup_elem(&last, &flow), before, *packets;
	__u32 difference, key;

	if (!of_flow)
		return;
	before = *of_flow;
	*of_flow = (__u64)(round + 1) << 32 | delay;
	if (!round || (__u32)(before >> 32) != round)
		return;
	difference = (__u32)before < delay ? delay - (__u32)before : (__u32)before - delay;
	key = bucket_of(cpu, difference);
	packets = bpf_map_lookup_elem(&differences, &key);
	if (!packets)
		return;
	(*packets)++;
	state->difference_sum += difference;
	if (!state->difference_min || difference < state->difference_min - 1)
		state->difference_min = (__u64)difference + 1;
	if (difference > state->difference_max)
		state->difference_max = difference;
}

static __always_inline void note_delay(struct receiver_state *state, __u32 cpu, __u32 delay)
{
	__u32 key = bucket_of(cpu, delay);
	__u64 *packets = bpf_map_lookup_elem(&delays, &key);

	if (!packets)
		return;
	(*packets)++;
	state->delay_sum += delay;
	if (!state->delay_min || delay < state->delay_min - 1)
		state->delay_min = (__u64)delay + 1;
	if (delay > state->delay_max)
		state->delay_max = delay;
}

#endif
