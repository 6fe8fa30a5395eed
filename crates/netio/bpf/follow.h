/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Duplicates, reordering and losses by sequence number: packet::arrivals::order.
 */
#ifndef FWDLAB_FOLLOW_H
#define FWDLAB_FOLLOW_H

#include "receiver.h"

/* Returns the beginning of the round `ahead` of the newest one (or behind it); -1 if no round
 * begins there, or if a second packet has to confirm it. */
static __always_inline __s64 leap(struct walk *walk, __s64 ahead)
{
	__s64 base = walk->base + ahead, far;

	if (base < 0 || (__u64)base % FLOWS)
		return -1;
	if (ahead > JUMP_MAX || ahead < -JUMP_MAX) {
		__u64 suspect = walk->suspect;

		far = base - (__s64)suspect;
		walk->suspect = base;
		if (!suspect || !far || far > JUMP_MAX || far < -JUMP_MAX)
			return -1;
		walk->suspect = 0;
	}
	return base;
}

static __always_inline int is_time_possible(struct walk *walk, __u32 sequence, __u32 time,
					    __u32 now)
{
	__u32 back, last = walk->time;
	__u32 newer = (__s32)(sequence - walk->sequence) > 0;
	/* After a silence, the times of two packets cannot be compared. */
	__u64 compared = walk->began && now - walk->seen < BACK_MAX_NS;

	if (SAME_CLOCK && now - time > AGE_MAX_NS)
		return 0;
	back = newer ? last - time : time - last;
	walk->sequence = sequence;
	walk->time = time;
	walk->seen = now;
	walk->began = 1;
	return !compared || !back || back > BACK_MAX_NS;
}

/* Follows an intact packet; returns its place in the order of packets. */
enum place { NEXT, LATE, AGAIN, WRONG_SEQUENCE, WRONG_TIME };

/* now: the receiver's clock, read if packets are timed. turn: output, the round of the
 * packet. */
static __always_inline enum place follow(struct walk *walk, int timed, __u32 sender,
					 __u32 flow, __u32 sequence, __u32 time, __u32 now,
					 __u32 *turn)
{
	__u64 base = walk->base;
	__u32 round = walk->round, flows_of_each = FLOWS, shares = SHARES, number, key, own, behind;
	__s32 ahead = sequence - flow - (__u32)base;
	struct entry *entry;
	__u64 *first;
	int late;

	if (ahead) {
		if ((__u32)ahead == flows_of_each) {
			base += flows_of_each;
			round++;
		} else {
			__s64 there = leap(walk, ahead);

			if (there < 0)
				return WRONG_SEQUENCE;
			base = there;
			round = base / FLOWS;
		}
	}
	*turn = round;
	if (timed) {
		if (!is_time_possible(walk, sequence, time, now))
			return WRONG_TIME;
	} else if (time) {
		return WRONG_TIME;
	}
	if (base > walk->base) {
		walk->base = base;
		walk->round = round;
	}
	if (!FOLLOWED)
		return NEXT;
	number = sender * flows_of_each + flow;
	key = (number << shares) + (round & ((1 << shares) - 1));
	entry = bpf_map_lookup_elem(&flows, &key);
	if (!entry)
		return NEXT;
	own = round >> shares;
	late = own < entry->next;
	if (late) {
		behind = entry->next - 1 - own;
		if (behind < 64) {
			__u64 bit = 1ULL << behind;

			if (entry->window & bit)
				return AGAIN;
			entry->window |= bit;
		}
	} else {
		__u32 by = own - entry->next + 1;

		entry->window = by < 64 ? (entry->window << by) | 1 : 1;
		entry->next = own + 1;
	}
	entry->count++;
	if (shares) {
		first = bpf_map_lookup_elem(&newest, &number);
		if (first) {
			late = round < *first;
			if (!late)
				*first = (__u64)round + 1;
		}
	}
	return late ? LATE : NEXT;
}

#endif
