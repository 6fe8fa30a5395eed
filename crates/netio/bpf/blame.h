/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * The fault of a frame, or its origin: packet::arrivals::judge.
 */
#ifndef FWDLAB_BLAME_H
#define FWDLAB_BLAME_H

#include "receiver.h"

/*
 * The verifier checks functions that are not inlined once each, independent of the callers:
 * otherwise it would follow a loop over a packet again for each.
 */

/* True if a byte after the stamp is not 0. */
__noinline int is_payload_altered(struct xdp_md *ctx)
{
	void *data = (void *)(long)ctx->data;
	void *end = (void *)(long)ctx->data_end;
	__u64 found = 0;
	int i;

	if (FAMILY == FAMILY_INET) {
		/* Up to a multiple of 8. */
		if (data + 64 <= end) {
			found = *(__u32 *)(data + 60);
			data += 64;
		} else {
			data += 60;
		}
	} else {
		data += 80;
	}
#pragma clang loop unroll(disable)
	for (i = 0; i < LONGEST / 32; i++) {
		__u64 *w = data;

		if (data + 32 > end)
			break;
		found |= w[0] | w[1] | w[2] | w[3];
		data += 32;
	}
#pragma clang loop unroll(disable)
	for (i = 0; i < 31; i++) {
		if (data + 1 > end)
			break;
		found |= *(__u8 *)data;
		data += 1;
	}
	return found != 0;
}

/* True if UDP length and checksum match the packet, which ends with the frame. */
__noinline int is_udp_intact(struct xdp_md *ctx)
{
	void *data = (void *)(long)ctx->data;
	void *end = (void *)(long)ctx->data_end;
	__u32 udp = FAMILY == FAMILY_INET ? 34 : 54;
	__u16 *half, *at;
	__u64 sum;
	int i;

	if (data + udp + 8 > end)
		return 0;
	half = data + udp;
	if (!half[3] || bpf_ntohs(half[2]) != (__u16)(end - data - udp))
		return 0;
	sum = half[2] + bpf_htons(17);
	half = data + (FAMILY == FAMILY_INET ? 26 : 22);
	for (i = 0; i < 4; i++)
		sum += half[i];
	if (FAMILY == FAMILY_INET6) {
		for (i = 4; i < 16; i++)
			sum += half[i];
	}
	at = data + udp;
#pragma clang loop unroll(disable)
	for (i = 0; i < LONGEST / 2; i++) {
		if ((void *)(at + 1) > end)
			break;
		sum += *at;
		at++;
	}
	if ((void *)at + 1 <= end)
		sum += *(__u8 *)at;
	return adds_up(sum);
}

static __always_inline int is_udp(void *data, void *end, __u32 family)
{
	__u16 type;

	if (data + 38 > end)
		return 0;
	type = *(__u16 *)(data + 12);
	if (family == FAMILY_INET)
		return type == bpf_htons(0x0800) && *(__u8 *)(data + 14) == 0x45 &&
		       *(__u8 *)(data + 23) == 17;
	return type == bpf_htons(0x86dd) && *(__u8 *)(data + 20) == 17;
}

static __always_inline int is_stamped(void *data, void *end, __u32 family)
{
	__u32 stamp = family == FAMILY_INET ? 42 : 62;

	return is_udp(data, end, family) && data + stamp + 2 <= end &&
	       *(__u16 *)(data + stamp) == bpf_htons(STAMP_MAGIC);
}

static __always_inline int is_benchmark_udp(void *data, void *end)
{
	__u16 *half = data;

	if (is_udp(data, end, FAMILY_INET))
		return half[13] == bpf_htons(0xc612) && half[15] == bpf_htons(0xc613);
	if (!is_udp(data, end, FAMILY_INET6) || data + 54 > end)
		return 0;
	return half[11] == bpf_htons(0x2001) && half[12] == bpf_htons(2) && !half[13] &&
	       half[19] == bpf_htons(0x2001) && half[20] == bpf_htons(2) && !half[21] &&
	       !(*(__u8 *)(data + 28) & 0x80) && (*(__u8 *)(data + 44) & 0x80);
}

/* True if the first 12 bytes of an IPv6 address differ from the ones of all flows. */
static __always_inline int is_prefix_wrong(void *data, __u32 at, int side)
{
	__u16 *half = data + at;
	__u64 high = half[0] | (__u64)half[1] << 16 | (__u64)half[2] << 32 | (__u64)half[3] << 48;
	__u64 low = half[4] | (__u64)half[5] << 16;

	return high != PREFIXES[2 * side] || low != PREFIXES[2 * side + 1];
}

/* True if a frame of a mix has the length in its IP header, and another packet of the mix has
 * that length. */
static __always_inline int is_other_length(void *data, void *end)
{
	__u32 length = end - data, found = 0, ip = FAMILY == FAMILY_INET ? 16 : 18;
	int i;

	if (!MIX || data + ip + 2 > end)
		return 0;
	if (bpf_ntohs(*(__u16 *)(data + ip)) != (__u16)(length - (FAMILY == FAMILY_INET ? 14 : 54)))
		return 0;
#pragma clang loop unroll(disable)
	for (i = 0; i < MIX_MAX; i++)
		found |= i < MIX && MIX_LENGTHS[i] == length;
	return found;
}

#define FOREIGN 100
#define UNSTAMPED 101
#define OTHER 102

/* In the result of blame(): the phase plus 1, if it can be trusted. */
#define PHASE_SHIFT 8

/* Returns the fault or the origin of a frame that is not an intact packet of this run. The same
 * as Pattern::judge of packet::arrivals::judge, in the same order. */
__noinline int blame(struct xdp_md *ctx, __u32 scan)
{
	void *data = (void *)(long)ctx->data;
	void *end = (void *)(long)ctx->data_end;
	__u32 cpu = bpf_get_smp_processor_id(), phase = 0;
	struct receiver_state *state = bpf_map_lookup_elem(&receiver, &cpu);
	__u32 udp = FAMILY == FAMILY_INET ? 34 : 54, stamp = udp + 8;
	__u32 other = FAMILY == FAMILY_INET ? FAMILY_INET6 : FAMILY_INET;
	__u32 source = 0, destination = 0, in_range, near = NEAR_BITS + 1;
	__u16 *half = data;
	int prefixes = 0, other_length = 0;

	if (!state)
		return OTHER;

	if (data + stamp + 6 <= end) {
		__u64 id;

		half = data + stamp;
		id = half[0] | (__u64)half[1] << 16 | (__u64)half[2] << 32;
		near = bits(id ^ (bpf_htons(STAMP_MAGIC) | (__u64)bpf_htonl(RUN_ID) << 16));
	}
	if (data + stamp <= end) {
		__u32 at = FAMILY == FAMILY_INET ? 26 : 34;

		half = data + at;
		source = bpf_ntohl(half[0] | (__u32)half[1] << 16) - SOURCE_BASE;
		half = data + (FAMILY == FAMILY_INET ? 30 : 50);
		destination = bpf_ntohl(half[0] | (__u32)half[1] << 16) - DESTINATION_BASE;
		if (FAMILY == FAMILY_INET6)
			prefixes = is_prefix_wrong(data, 22, 0) | is_prefix_wrong(data, 38, 1) << 1;
		in_range = source < SOURCES && destination < DESTINATIONS;
	} else {
		in_range = 0;
	}

	if (near > NEAR_BITS) {
		int intact;

		if (is_stamped(data, end, other))
			return FOREIGN;
		if (!in_range || prefixes || !is_udp(data, end, FAMILY)) {
			if (is_stamped(data, end, FAMILY))
				return FOREIGN;
			return is_benchmark_udp(data, end) ? UNSTAMPED : OTHER;
		}
		if (data + stamp + STAMP_BYTES > end)
			return FAULT_LENGTH;
		intact = is_udp_intact(ctx);
		if (!intact)
			return FAULT_STAMP;
		return is_stamped(data, end, FAMILY) ? FOREIGN : UNSTAMPED;
	}

	if (data + stamp + STAMP_BYTES > end)
		return FAULT_LENGTH;
	{
		__u64 *w = data, d0, d1, d2, d4, d5, udp_wrong;
		struct own own = own_of(end - data, FAMILY);
		__u32 tag, sequence, sender, flow, turn, addressed, possible;
		__s64 at;

		half = data + stamp;
		tag = bpf_ntohl(half[3] | (__u32)half[4] << 16);
		sequence = bpf_ntohl(half[5] | (__u32)half[6] << 16);
		if (!near && ((tag >> 24) & 0xf) <= 2)
			phase = (((tag >> 24) & 0xf) + 1) << PHASE_SHIFT;
		if (end - data != length_of(data, end, FAMILY)) {
			other_length = is_other_length(data, end);
			if (!other_length)
				return phase | FAULT_LENGTH;
		}
		d0 = (w[0] ^ WORDS[0]) & MASKS[0];
		d1 = (w[1] ^ WORDS[1]) & MASKS[1];
		d2 = (w[2] ^ own.ip ^ WORDS[2]) & MASKS[2];
		if (part(d0, 0, 6))
			return phase | FAULT_DESTINATION_MAC;
		if (part(d0, 6, 8) || part(d1, 8, 12))
			return phase | FAULT_SOURCE_MAC;
		if (FAMILY == FAMILY_INET) {
			if (part(d1, 12, 16) || part(d2, 20, 22) || part(d2, 23, 24))
				return phase | FAULT_IP_HEADER;
			if (part(d2, 16, 18))
				return phase | FAULT_IP_LENGTH;
			if (part(d2, 22, 23))
				return phase | FAULT_TTL;
			d4 = (w[4] ^ own.udp ^ WORDS[4]) & MASKS[4];
			udp_wrong = part(d4, 34, 40);
		} else {
			if (part(d1, 12, 16) || part(d2, 16, 18) || part(d2, 20, 21))
				return phase | FAULT_IP_HEADER;
			if (part(d2, 18, 20))
				return phase | FAULT_IP_LENGTH;
			if (part(d2, 21, 22))
				return phase | FAULT_TTL;
			d4 = (w[6] ^ WORDS[6]) & MASKS[6];
			d5 = (w[7] ^ own.udp ^ WORDS[7]) & MASKS[7];
			udp_wrong = part(d4, 54, 56) | part(d5, 56, 60);
		}
		if (prefixes & 1)
			return phase | FAULT_SOURCE_ADDRESS;
		if (prefixes & 2)
			return phase | FAULT_DESTINATION_ADDRESS;

		sender = tag >> 28;
		flow = tag & 0xffffff;
		at = state->walks[sender].base;
		at += (__s32)(sequence - (__u32)at);
		/* 2^32: no flow's. */
		turn = at < 0 || sender >= SENDERS ? ~0U : (__u64)at % FLOWS;
		addressed = in_range ? source * DESTINATIONS + destination : ~0U - 1;
		possible = flow < FLOWS && sender < SENDERS && ((tag >> 24) & 0xf) <= 2;
		if (addressed == flow && possible) {
			if (turn != ~0U && turn != addressed)
				return phase | FAULT_SEQUENCE;
		} else if (possible && (turn == flow || !in_range)) {
			return phase | (source != flow / DESTINATIONS
						? FAULT_SOURCE_ADDRESS
						: FAULT_DESTINATION_ADDRESS);
		} else {
			return phase | FAULT_STAMP;
		}
		if (udp_wrong)
			return phase | FAULT_UDP_HEADER;
		if (near)
			return phase | FAULT_STAMP;
	}
	if (scan && is_payload_altered(ctx))
		return phase | FAULT_PAYLOAD;
	if (FAMILY == FAMILY_INET) {
		__u64 sum = 0;
		int i;

		half = data + 14;
		for (i = 0; i < 10; i++)
			sum += half[i];
		if (!adds_up(sum))
			return phase | FAULT_IP_CHECKSUM;
	}
	if (MIX && other_length && is_udp_intact(ctx))
		return phase | FAULT_LENGTH;
	return phase | FAULT_UDP_CHECKSUM;
}

#endif
