/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Constants, maps and sums shared by the parts of the receiver. The rules are the rules of
 * packet::arrivals, which explains them; a test compares the program with it.
 */
#ifndef FWDLAB_RECEIVER_H
#define FWDLAB_RECEIVER_H

#include <linux/bpf.h>
#include <linux/types.h>
#include <bpf/bpf_endian.h>
#include <bpf/bpf_helpers.h>
#include "stamp.h"

/* Set before loading; see packet::arrivals::Pattern. */
const volatile __u32 RUN_ID = 0;
const volatile __u32 FAMILY = FAMILY_INET;
const volatile __u32 LENGTH = 0;
const volatile __u64 WORDS[10] = {};
const volatile __u64 MASKS[10] = {};
const volatile __u64 PREFIXES[4] = {}; /* IPv6: first 12 bytes of source and destination */
const volatile __u32 IP_SUM = 0;
const volatile __u32 UDP_SUM = 0;
const volatile __u32 SOURCES = 1;
const volatile __u32 DESTINATIONS = 1;
const volatile __u32 SOURCE_BASE = 0;
const volatile __u32 DESTINATION_BASE = 0;
/* Source address that the device gives every packet, in memory order; of IPv4 only the last word.
 * Without translation the verifier removes all code that depends on it. */
const volatile __u32 IS_TRANSLATED = 0;
const volatile __u32 TRANSLATED[4] = {};
const volatile __u32 SOURCE_PORT = 0; /* original port, in memory order */
const volatile __u32 SENDERS = 1;
const volatile __u32 FLOWS = 1;
const volatile __u32 SAME_CLOCK = 0; /* sending times are from this machine's clock */
const volatile __u32 FOLLOWED = 0;   /* the map of flows has room for all flows */
const volatile __u32 SAMPLED = 0;    /* not every packet is checked */
/* A mix of frame sizes, as in the sender; WORDS and sums then exclude lengths. */
const volatile __u32 MIX = 0;
const volatile __u32 MIX_PASS = 0;
const volatile __u32 MIX_LENGTHS[MIX_MAX] = {};
const volatile __u32 SHARES = 0;     /* entries of a flow, as a power of two */

#define NEAR_BITS 3
#define JUMP_MAX (1 << 24)
#define AGE_MAX_NS 3000000000U
#define BACK_MAX_NS (1U << 30)
#define LONGEST 1514

struct {
	__uint(type, BPF_MAP_TYPE_ARRAY);
	__uint(map_flags, BPF_F_MMAPABLE);
	__uint(max_entries, 1); /* one per possible CPU, set before loading */
	__type(key, __u32);
	__type(value, struct receiver_state);
} receiver SEC(".maps");

struct {
	__uint(type, BPF_MAP_TYPE_ARRAY);
	__uint(map_flags, BPF_F_MMAPABLE);
	__uint(max_entries, 1); /* senders x flows x entries of each, set before loading */
	__type(key, __u32);
	__type(value, struct entry);
} flows SEC(".maps");

struct {
	__uint(type, BPF_MAP_TYPE_ARRAY);
	__uint(map_flags, BPF_F_MMAPABLE);
	__uint(max_entries, 1); /* buckets of each possible CPU, if delays are measured */
	__type(key, __u32);
	__type(value, __u64);
} delays SEC(".maps");

struct {
	__uint(type, BPF_MAP_TYPE_ARRAY);
	__uint(map_flags, BPF_F_MMAPABLE);
	__uint(max_entries, 1); /* like delays */
	__type(key, __u32);
	__type(value, __u64);
} differences SEC(".maps");

struct {
	__uint(type, BPF_MAP_TYPE_ARRAY);
	__uint(max_entries, 1); /* senders x flows, if delays are measured */
	__type(key, __u32);
	__type(value, __u64); /* the next round, and the delay of the previous packet */
} last SEC(".maps");

struct {
	__uint(type, BPF_MAP_TYPE_ARRAY);
	__uint(max_entries, 1); /* senders x flows, if a flow has several entries */
	__type(key, __u32);
	__type(value, __u64);
} newest SEC(".maps");

struct {
	__uint(type, BPF_MAP_TYPE_ARRAY);
	__uint(max_entries, 1); /* flows, if sources are translated */
	__type(key, __u32);
	__type(value, __u32); /* the flow's source port behind the device, with MAPPING_KNOWN */
} mappings SEC(".maps");

/* True if words and their checksum, together above 0, add up (RFC 1071): one's complement sums
 * of 16 bits are sums modulo 0xffff, and a word of 32 or 48 bits is one of its parts. A multiple
 * of 0xffff, times the inverse of 0xffff modulo 2^64, is its factor; any other number becomes
 * larger than all possible factors (Hacker's Delight, 10-17). */
static __always_inline int adds_up(__u64 sum)
{
	return sum * 0xfffefffefffeffffULL <= 0x0001000100010001ULL;
}

static __always_inline __u32 bits(__u64 x)
{
	x = x - ((x >> 1) & 0x5555555555555555ULL);
	x = (x & 0x3333333333333333ULL) + ((x >> 2) & 0x3333333333333333ULL);
	x = (x + (x >> 4)) & 0x0f0f0f0f0f0f0f0fULL;
	return (x * 0x0101010101010101ULL) >> 56;
}

/* Packet-specific parts of a mix, on top of the common words: packet::arrivals::pattern::Own. */
struct own {
	__u64 ip;  /* bits of the third word */
	__u64 udp; /* bits of the fifth, of IPv6 the eighth */
	__u64 ip_sum;
	__u64 udp_sum;
};

static __always_inline struct own own_of(__u32 length, __u32 family)
{
	struct own own = {};
	__u64 ip, udp;

	if (!MIX)
		return own;
	ip = bpf_htons(length - (family == FAMILY_INET ? 14 : 54));
	udp = bpf_htons(length - (family == FAMILY_INET ? 34 : 54));
	own.ip = family == FAMILY_INET ? ip : ip << 16;
	own.udp = family == FAMILY_INET ? udp << 48 : udp << 16;
	own.ip_sum = family == FAMILY_INET ? ip : 0;
	own.udp_sum = 2 * udp;
	return own;
}

/* Returns the required length of a frame; in a mix by its sequence number, 0 if the frame ends
 * before it. */
static __always_inline __u32 length_of(void *data, void *end, __u32 family)
{
	__u32 at = family == FAMILY_INET ? 52 : 72, sequence;

	if (!MIX)
		return LENGTH;
	if (data + at + 4 > end)
		return 0;
	sequence = bpf_ntohl(*(__u16 *)(data + at) | (__u32)*(__u16 *)(data + at + 2) << 16);
	return MIX_LENGTH(sequence, FLOWS);
}

/* Returns bytes `from` to `to` of a frame from d, the difference in the word that contains them. */
static __always_inline __u64 part(__u64 d, __u32 from, __u32 to)
{
	return (d >> (8 * (from & 7))) & ((to - from) >= 8 ? ~0ULL : (1ULL << (8 * (to - from))) - 1);
}

#endif
