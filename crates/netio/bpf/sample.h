/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Selects the packets to check if not all are checked: packet::arrivals::sample, which explains
 * the reasons, and how the other packets are counted.
 */
#ifndef FWDLAB_SAMPLE_H
#define FWDLAB_SAMPLE_H

#include "receiver.h"

#define FIRST_CHECKED 65536
#define FIRST_IN_FULL 1024
#define PAYLOAD_BITS 6 /* one in 64 of the checked packets */

static __always_inline __u64 draw(__u64 n)
{
	__u64 x = ((__u64)RUN_ID << 32 ^ n) * 0x9e3779b97f4a7c15ULL;

	x ^= x >> 32;
	x *= 0xd6e8feb86659fd93ULL;
	x ^= x >> 32;
	x *= 0xd6e8feb86659fd93ULL;
	return x ^ x >> 32;
}

/* Draws for the next frame, and at the start of each 64 frames also for the other 63. */
static __always_inline __u32 choose(struct receiver_state *state)
{
	__u64 n = state->frames++, chosen;

	if (n & 63)
		chosen = state->chosen >> 1;
	else if (state->checked < FIRST_CHECKED)
		chosen = ~0ULL;
	else
		chosen = draw(~(n >> 5)) & draw(~(n >> 5) - 1);
	state->chosen = chosen;
	return chosen & 1;
}

static __always_inline __u32 wants_payload(struct receiver_state *state)
{
	__u64 n = SAMPLED ? state->frames - 1 : state->frames++;

	return state->in_full < FIRST_IN_FULL || draw(n) >> (64 - PAYLOAD_BITS) == 0;
}

/* Counts a packet by its stamp alone if it is the due one. Returns 0 without effect
 * otherwise. */
static __always_inline int take_by_stamp(void *data, struct receiver_state *state, __u32 family,
					 __u32 length)
{
	__u32 tag, flow, sender = 0, ahead, number, key, round, own, flows_of_each = FLOWS;
	__u64 *w = data, *first, stamp, phase = state->phase;
	struct walk *walk = &state->walks[0];
	struct entry *entry;

	if (family == FAMILY_INET) {
		if ((w[5] ^ WORDS[5]) >> 16)
			return 0;
		stamp = bpf_be64_to_cpu(w[6]);
	} else {
		if ((w[7] ^ WORDS[7]) >> 48 || (__u32)(w[8] ^ WORDS[8]))
			return 0;
		stamp = bpf_be64_to_cpu(*(__u64 *)(data + 68));
	}
	tag = stamp >> 32;
	flow = tag & 0xffffff;
	if (SENDERS == 1) {
		if (tag >> 24 != phase)
			return 0;
	} else {
		sender = tag >> 28;
		if (((tag >> 24) & 0xf) != phase || sender >= SENDERS)
			return 0;
		walk = &state->walks[sender & (SENDERS_MAX - 1)];
	}
	if (flow >= flows_of_each)
		return 0;
	ahead = (__u32)stamp - flow - (__u32)walk->base;
	round = walk->round;
	if (ahead) {
		if (ahead != flows_of_each)
			return 0;
		round++;
	}
	if (FOLLOWED) {
		number = sender * flows_of_each + flow;
		key = (number << SHARES) + (round & ((1 << SHARES) - 1));
		entry = bpf_map_lookup_elem(&flows, &key);
		own = round >> SHARES;
		if (!entry || own < entry->next)
			return 0;
		if (SHARES) {
			first = bpf_map_lookup_elem(&newest, &number);
			if (!first || round < *first)
				return 0;
			*first = (__u64)round + 1;
		}
		own -= entry->next;
		entry->window = own < 63 ? entry->window << (own + 1) | 1 : 1;
		entry->next += own + 1;
		entry->count++;
	}
	if (ahead) {
		walk->base += flows_of_each;
		walk->round = round;
	}
	state->packets[phase & (PHASES - 1)]++;
	if (MIX && phase < PHASES - 1)
		state->bytes[phase] += length;
	return 1;
}

#endif
