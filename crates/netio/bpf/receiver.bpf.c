// SPDX-License-Identifier: BSD-2-Clause
/*
 * Counts and drops. A packet counts once if it arrived intact. The rules are the rules of
 * packet::arrivals, which explains them; a test compares this program with it.
 *
 * The path of an intact packet is short: the program compares its constant words, two
 * sums check the rest, and nothing divides. blame() determines why a packet is not
 * intact.
 */
#include "blame.h"
#include "delays.h"
#include "follow.h"
#include "receiver.h"
#include "sample.h"
#include "translation.h"

/* The fields of a frame that change from packet to packet. */
struct changing {
	__u32 source; /* last 32 bits, in memory order */
	__u32 destination;
	__u32 tag;
	__u32 sequence;
	__u32 time;
};

/* Reads headers and stamp of a frame that is long enough; returns 0 if all words common to every
 * packet, and the checksums, are correct. Sums are sums of whole words: each of their 16-bit
 * parts has the same weight in adds_up(). */
static __always_inline int read_headers(void *data, __u32 family, __u32 length,
					struct changing *c)
{
	struct own own = own_of(length, family);
	__u64 *w = data, wrong, sum, addresses;
	__u32 check;

	wrong = ((w[0] ^ WORDS[0]) & MASKS[0]) | ((w[1] ^ WORDS[1]) & MASKS[1]);
	if (family == FAMILY_INET) {
		__u64 w2 = w[2], w3 = w[3], w4 = w[4], w5 = w[5];

		/* Excludes identification, addresses and UDP checksum from these words. */
		wrong |= ((w2 ^ own.ip ^ WORDS[2]) & ~0xffff0000ULL) |
			 ((w4 ^ own.udp ^ WORDS[4]) >> 16) |
			 ((w5 ^ WORDS[5]) >> 16);
		if (wrong)
			return 1;
		c->source = w3 >> 16;
		c->destination = (__u32)(w3 >> 48) | (__u32)w4 << 16;
		c->tag = w[6];
		c->sequence = w[6] >> 32;
		c->time = *(__u32 *)(data + 56);
		check = w5 & 0xffff;
		addresses = (w3 >> 16) + (w4 & 0xffff);
		if (!adds_up(IP_SUM + own.ip_sum + ((w2 >> 16) & 0xffff) + (w3 & 0xffff) + addresses))
			return 1;
	} else {
		wrong |= ((w[2] ^ own.ip ^ WORDS[2]) & MASKS[2]) | (w[3] ^ WORDS[3]) |
			 ((w[4] ^ WORDS[4]) & MASKS[4]) | (w[5] ^ WORDS[5]) |
			 ((w[6] ^ WORDS[6]) & MASKS[6]) | ((w[7] ^ own.udp ^ WORDS[7]) & MASKS[7]) |
			 ((w[8] ^ WORDS[8]) & MASKS[8]);
		c->source = w[4] >> 16;
		c->destination = w[6] >> 16;
		c->tag = w[8] >> 32;
		c->sequence = w[9];
		c->time = w[9] >> 32;
		check = (w[7] >> 32) & 0xffff;
		addresses = (__u64)c->source + c->destination;
	}
	if (wrong || !check)
		return 1;
	sum = UDP_SUM + own.udp_sum + addresses + c->tag + c->sequence + c->time + check;
	return !adds_up(sum);
}

/* Counts by the stamp alone, if nothing else is known about the packets. */
SEC("xdp")
int receive_stamps(struct xdp_md *ctx)
{
	void *data = (void *)(long)ctx->data;
	void *end = (void *)(long)ctx->data_end;
	__u32 cpu = bpf_get_smp_processor_id();
	struct receiver_state *state;
	struct entry *entry;
	__u16 *stamp;
	__u32 tag, key;

	state = bpf_map_lookup_elem(&receiver, &cpu);
	if (!state)
		return XDP_ABORTED;
	if (is_stamped(data, end, FAMILY_INET))
		stamp = data + 42;
	else if (is_stamped(data, end, FAMILY_INET6))
		stamp = data + 62;
	else
		goto other;
	if ((void *)stamp + STAMP_BYTES > end)
		goto other;
	if ((stamp[1] | ((__u32)stamp[2] << 16)) != bpf_htonl(RUN_ID)) {
		state->foreign++;
		return XDP_DROP;
	}
	tag = bpf_ntohl(stamp[3] | ((__u32)stamp[4] << 16));
	state->packets[(tag >> 24) & (PHASES - 1)]++;
	if (((tag >> 24) & (PHASES - 1)) < PHASES - 1)
		state->bytes[(tag >> 24) & (PHASES - 1)] += end - data;
	if (FOLLOWED && (tag & 0xffffff) < FLOWS) {
		key = (tag & 0xffffff) << SHARES;
		entry = bpf_map_lookup_elem(&flows, &key);
		if (entry)
			entry->count++;
	}
	return XDP_DROP;
other:
	if (is_benchmark_udp(data, end))
		state->unstamped++;
	else
		state->others++;
	return XDP_DROP;
}

static __always_inline int receive(struct xdp_md *ctx, __u32 family, int timed)
{
	void *data = (void *)(long)ctx->data;
	void *end = (void *)(long)ctx->data_end;
	__u32 cpu = bpf_get_smp_processor_id(), sender, flow, phase, source, destination;
	__u32 headers = family == FAMILY_INET ? 60 : 80, scan = 0, fault;
	__u32 length = length_of(data, end, family);
	__u32 destinations = DESTINATIONS, chosen = 1, now = 0, turn = 0;
	struct receiver_state *state;
	struct changing c = {};

	state = bpf_map_lookup_elem(&receiver, &cpu);
	if (!state)
		return XDP_ABORTED;
	if (IS_TRANSLATED)
		state->mapping = restore(data, end, family);
	if (SAMPLED) {
		chosen = choose(state);
		if (!chosen && end - data == length && data + headers <= end &&
		    take_by_stamp(data, state, family, length))
			return XDP_DROP;
	}
	/* Without further payload, user space derives the number from the checked packets. */
	if (LENGTH > headers && chosen) {
		scan = wants_payload(state);
		state->in_full += scan;
	}
	if (end - data != length || data + headers > end)
		goto wrong;
	if (read_headers(data, family, length, &c))
		goto wrong;
	c.tag = bpf_ntohl(c.tag);
	source = bpf_ntohl(c.source) - SOURCE_BASE;
	destination = bpf_ntohl(c.destination) - DESTINATION_BASE;
	flow = c.tag & 0xffffff;
	phase = (c.tag >> 24) & 0xf;
	sender = c.tag >> 28;
	if (source >= SOURCES || destination >= destinations ||
	    flow != source * destinations + destination || sender >= SENDERS || phase > 2)
		goto wrong;
	if (scan && is_payload_altered(ctx))
		goto wrong;

	state->phase = phase;
	if (timed)
		now = bpf_ktime_get_ns();
	if (SAMPLED)
		state->checked += chosen;
	switch (follow(&state->walks[sender & (SENDERS_MAX - 1)], timed, sender, flow,
		       bpf_ntohl(c.sequence), bpf_ntohl(c.time), now, &turn)) {
	case LATE:
		state->reordered[phase & (PHASES - 1)]++;
		break;
	case AGAIN:
		state->duplicates[phase & (PHASES - 1)]++;
		return XDP_DROP;
	case WRONG_SEQUENCE:
		fault = FAULT_SEQUENCE;
		goto damaged;
	case WRONG_TIME:
		fault = FAULT_TIME;
		goto damaged;
	default:
		break;
	}
	/* A packet with a wrong sequence number may name another flow. */
	if (IS_TRANSLATED && is_mapping_changed(flow, state->mapping)) {
		fault = FAULT_MAPPING;
		goto damaged;
	}
	state->packets[phase & (PHASES - 1)]++;
	if (MIX && phase < PHASES - 1)
		state->bytes[phase] += length;
	if (timed && SAME_CLOCK && phase == PHASE_WINDOW) {
		note_delay(state, cpu, now - bpf_ntohl(c.time));
		if (FOLLOWED)
			note_difference(state, cpu, sender * FLOWS + flow, turn,
					now - bpf_ntohl(c.time));
	}
	return XDP_DROP;

wrong:
	fault = blame(ctx, scan);
	phase = fault >> PHASE_SHIFT ? (fault >> PHASE_SHIFT) - 1 : state->phase;
	fault &= (1 << PHASE_SHIFT) - 1;
	if (fault >= FOREIGN) {
		if (fault == FOREIGN)
			state->foreign++;
		else if (fault == UNSTAMPED)
			state->unstamped++;
		else
			state->others++;
		return XDP_DROP;
	}
	if (SAMPLED)
		state->checked += chosen;
damaged:
	state->evident += !chosen;
	state->damaged[phase & (PHASES - 1)]++;
	state->faults[fault & 15]++;
	return XDP_DROP;
}

/* One per family, with and without sending times: what is known at load time is neither tested
 * for each packet nor kept in registers. */
#define RECEIVER(NAME, FAMILY, TIMED)               \
	SEC("xdp")                                  \
	int NAME(struct xdp_md *ctx)                \
	{                                           \
		return receive(ctx, FAMILY, TIMED); \
	}

RECEIVER(receive_inet, FAMILY_INET, 0)
RECEIVER(receive_inet6, FAMILY_INET6, 0)
RECEIVER(receive_inet_timed, FAMILY_INET, 1)
RECEIVER(receive_inet6_timed, FAMILY_INET6, 1)

char LICENSE[] SEC("license") = "Dual BSD/GPL";
