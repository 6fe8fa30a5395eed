/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Source address translation: packet::arrivals::translation, which explains what is restored,
 * and why.
 */
#ifndef FWDLAB_TRANSLATION_H
#define FWDLAB_TRANSLATION_H

#include "receiver.h"

#define MAPPING_KNOWN (1 << 16)

/* Returns the checksum after the covered data has changed by `more` (RFC 1624), a sum of words
 * and of complements of words. */
static __always_inline __u16 adjusted(__u16 check, __u32 more)
{
	__u32 sum = (__u16)~check + more;

	sum = (sum & 0xffff) + (sum >> 16);
	sum = (sum & 0xffff) + (sum >> 16);
	return ~sum;
}

static __always_inline __u32 halves(__u32 word)
{
	return (word & 0xffff) + (word >> 16);
}

/* Restores source address and port of a translated frame. Returns the port with MAPPING_KNOWN, or
 * 0 for a frame that is not translated. */
static __always_inline __u32 restore(void *data, void *end, __u32 family)
{
	__u32 is_inet = family == FAMILY_INET, words = is_inet ? 1 : 4, more = 0, i;
	__u32 udp = is_inet ? 34 : 54, own[4], *source = data + (is_inet ? 26 : 22), flow;
	__u32 is_own = 1, is_translated = 1, mapping;
	__u16 *ip_check = data + 24, *port = data + udp, *udp_check = data + udp + 6, check;

	if (data + udp + 26 > end)
		return 0;
	if (is_inet && (*(__u16 *)(data + 12) != bpf_htons(0x0800) || *(__u8 *)(data + 14) != 0x45 ||
			*(__u8 *)(data + 23) != 17))
		return 0;
	if (!is_inet && (*(__u16 *)(data + 12) != bpf_htons(0x86dd) || *(__u8 *)(data + 20) != 17))
		return 0;
	flow = bpf_ntohl(*(__u32 *)(data + udp + 14)) & 0xffffff;
	if (flow >= FLOWS)
		return 0;
	own[0] = PREFIXES[0];
	own[1] = PREFIXES[0] >> 32;
	own[2] = PREFIXES[1];
	own[3] = bpf_htonl(SOURCE_BASE + flow / DESTINATIONS);
#pragma clang loop unroll(full)
	for (i = 0; i < words; i++) {
		is_own &= source[i] == own[4 - words + i];
		is_translated &= source[i] == TRANSLATED[4 - words + i];
		more += halves(~source[i]) + halves(own[4 - words + i]);
	}
	if (is_own) {
#pragma clang loop unroll(full)
		for (i = 0; i < words; i++)
			source[i] = TRANSLATED[4 - words + i];
		return 0;
	}
	if (!is_translated)
		return 0;
	if (is_inet)
		*ip_check = adjusted(*ip_check, more);
	mapping = *port;
	check = *udp_check;
	/* A UDP checksum of 0 means none; a computed 0 is written as 0xffff (RFC 768). */
	if (check) {
		check = adjusted(check, more + (__u16)~*port + SOURCE_PORT);
		*udp_check = check ? check : 0xffff;
	}
#pragma clang loop unroll(full)
	for (i = 0; i < words; i++)
		source[i] = own[4 - words + i];
	*port = SOURCE_PORT;
	return mapping | MAPPING_KNOWN;
}

/* Records the mapping of a packet. Returns 1 if the flow's previous packet had another. */
static __always_inline int is_mapping_changed(__u32 flow, __u32 mapping)
{
	__u32 *known = bpf_map_lookup_elem(&mappings, &flow), before;

	if (!known)
		return 0;
	before = *known;
	*known = mapping;
	return before && before != mapping;
}

#endif
