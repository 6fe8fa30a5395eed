/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Source address translation: packet::arrivals::translation, which explains what is restored,
 * and why.
 */
#ifndef FWDLAB_TRANSLATION_H
#define FWDLAB_TRANSLATION_H

#include "receiver.h"

/* Returns the checksum after the covered data has changed by `more` (RFC 1624), a sum of words
 * and of complements of words. */
static __always_inline __u16 adjusted(__u16 check, __u32 more)
{
	__u32 sum = (__u16)~check + more;

	sum = (sum & 0xffff) + (sum >> 16);
	sum = (sum & 0xffff) + (sum >> 16);
	return ~sum;
}

static __always_inline void restore(void *data, void *end)
{
	__u16 *ip_check = data + 24, *port = data + 34, *udp_check = data + 40, check;
	__u32 *source = data + 26, flow, own, more;

	if (data + 60 > end)
		return;
	if (*(__u16 *)(data + 12) != bpf_htons(0x0800) || *(__u8 *)(data + 14) != 0x45 ||
	    *(__u8 *)(data + 23) != 17)
		return;
	flow = bpf_ntohl(*(__u32 *)(data + 48)) & 0xffffff;
	if (flow >= FLOWS)
		return;
	own = bpf_htonl(SOURCE_BASE + flow / DESTINATIONS);
	if (*source == own) {
		*source = TRANSLATED;
		return;
	}
	if (*source != TRANSLATED)
		return;
	more = (__u16)~*source + (__u16)~(*source >> 16) + (own & 0xffff) + (own >> 16);
	*ip_check = adjusted(*ip_check, more);
	check = *udp_check;
	/* A UDP checksum of 0 means none; a computed 0 is written as 0xffff (RFC 768). */
	if (check) {
		check = adjusted(check, more + (__u16)~*port + SOURCE_PORT);
		*udp_check = check ? check : 0xffff;
	}
	*source = own;
	*port = SOURCE_PORT;
}

#endif
