// SPDX-License-Identifier: BSD-2-Clause
/*
 * Forwards packets of known flows from interface to interface, without the router's process. The
 * router writes the flows; this program checks each packet as the router does, rewrites it and
 * redirects it. All other frames go to the socket of the queue that received them, as in
 * redirect.bpf.c.
 */
#include <linux/bpf.h>
#include <linux/if_ether.h>
#include <linux/in.h>
#include <linux/types.h>
#include <bpf/bpf_core_read.h>
#include <bpf/bpf_endian.h>
#include <bpf/bpf_helpers.h>

#include "flow.h"

/* Slots minus one: a power of two minus one. */
const volatile __u32 MASK;
/* Ports in `port_counts` per CPU. */
const volatile __u32 PORTS;
/* Odd secret: prevents chosen collisions. */
const volatile __u64 SEED;

struct {
	__uint(type, BPF_MAP_TYPE_XSKMAP);
	__uint(max_entries, 1); /* ports * queues, set before loading */
	__type(key, __u32);
	__type(value, __u32);
} sockets SEC(".maps");

struct {
	__uint(type, BPF_MAP_TYPE_DEVMAP);
	__uint(max_entries, 1); /* ports, set before loading */
	__type(key, __u32);
	__type(value, __u32);
} links SEC(".maps");

#define MAPPED_ARRAY(name, entries, kind)               \
	struct {                                        \
		__uint(type, BPF_MAP_TYPE_ARRAY);       \
		__uint(map_flags, BPF_F_MMAPABLE);      \
		__uint(max_entries, entries);           \
		__type(key, __u32);                     \
		__type(value, kind);                    \
	} name SEC(".maps")

MAPPED_ARRAY(unserved, 1, __u64);
MAPPED_ARRAY(control, 1, struct control);
MAPPED_ARRAY(interfaces, INTERFACES, struct interface);
MAPPED_ARRAY(port_counts, 1, struct port_count); /* CPUs * PORTS, set before loading */
MAPPED_ARRAY(flows, 1, struct flow);             /* MASK + 1, set before loading */
MAPPED_ARRAY(flow_counts, 1, __u64);             /* MASK + 1, set before loading */

/* A packet that this program may forward. */
struct packet {
	__u64 key[KEY_WORDS];
	__u32 bytes; /* from the IP header on */
	__u32 partial; /* the pseudo-header's sum, folded: an incomplete checksum */
};

static __always_inline __u16 folded(__u64 sum)
{
	sum = (sum & 0xffffffff) + (sum >> 32);
	sum = (sum & 0xffff) + ((sum >> 16) & 0xffff) + (sum >> 32);
	sum = (sum & 0xffff) + (sum >> 16);
	sum = (sum & 0xffff) + (sum >> 16);
	return sum;
}

/*
 * Reads the ports. False for packets that may open or close a connection, and for truncated ones.
 * `at` is the transport header.
 */
static __always_inline int transport(struct packet *packet, void *at, void *end, __u8 protocol,
				     __u32 length, __u8 flags)
{
	__u8 *bytes = at;
	__u16 checksum;

	if (protocol == IPPROTO_UDP) {
		if (length < 8 || at + 8 > end)
			return 0;
		checksum = *(__u16 *)(bytes + 6);
	} else if (protocol == IPPROTO_TCP) {
		if (length < 20 || at + 20 > end)
			return 0;
		if (bytes[13] & (TCP_FIN | TCP_SYN | TCP_RST))
			return 0;
		checksum = *(__u16 *)(bytes + 16);
	} else {
		return 0;
	}
	if (flags & INCOMPLETE_CHECKSUMS) {
		__u16 sum = folded((__u64)packet->partial + bpf_htons(protocol) + bpf_htons(length));

		if (checksum == sum)
			return 0; /* left to a device: the router completes it */
	}
	packet->key[KEY_WORDS - 1] |= (__u64) * (__u32 *)bytes << 32 | (__u64)protocol << 8;
	return 1;
}

static __always_inline int inet(struct packet *packet, void *at, void *end, __u8 flags)
{
	__u32 *words = at;
	__u16 *halves = at;
	__u8 *bytes = at;
	__u64 sum;
	__u32 total;

	if (at + 20 > end || bytes[0] != 0x45)
		return 0;
	if (halves[3] & bpf_htons(0x3fff)) /* fragment */
		return 0;
	if (bytes[8] <= 1)
		return 0;
	sum = (__u64)words[0] + words[1] + words[2] + words[3] + words[4];
	if (folded(sum) != 0xffff)
		return 0;
	total = bpf_ntohs(halves[1]);
	if (total < 20)
		return 0;
	packet->bytes = total;
	packet->key[0] = (__u64)words[4] << 32 | words[3];
	packet->key[KEY_WORDS - 1] = FAMILY_INET;
	packet->partial = folded((__u64)words[3] + words[4]);
	return transport(packet, at + 20, end, bytes[9], total - 20, flags);
}

static __always_inline int inet6(struct packet *packet, void *at, void *end, __u8 flags)
{
	__u32 *words = at;
	__u8 *bytes = at;
	__u64 sum = 0;
	__u32 length;

	if (at + 40 > end || bytes[0] >> 4 != 6 || bytes[7] <= 1)
		return 0;
	length = bpf_ntohs(*(__u16 *)(bytes + 4));
	packet->bytes = length + 40;
#pragma unroll
	for (int i = 0; i < 4; i++)
		packet->key[i] = (__u64)words[3 + 2 * i] << 32 | words[2 + 2 * i];
#pragma unroll
	for (int i = 2; i < 10; i++)
		sum += words[i];
	packet->key[KEY_WORDS - 1] = FAMILY_INET6;
	packet->partial = folded(sum);
	return transport(packet, at + 40, end, bytes[6], length, flags);
}

static __always_inline struct flow *find(const struct packet *packet, __u32 *place)
{
	__u64 hash = SEED;

#pragma unroll
	for (int i = 0; i < KEY_WORDS; i++) {
		hash = (hash ^ packet->key[i]) * MULTIPLIER;
		hash ^= hash >> 32;
	}
	*place = (hash ^ hash >> 16) & MASK & ~1u;
#pragma unroll
	for (int i = 0; i < 2; i++) {
		struct flow *flow = bpf_map_lookup_elem(&flows, place);

		if (flow && flow->key[0] == packet->key[0] && flow->key[1] == packet->key[1] &&
		    flow->key[2] == packet->key[2] && flow->key[3] == packet->key[3] &&
		    flow->key[4] == packet->key[4])
			return flow;
		*place |= 1;
	}
	return NULL;
}

static __always_inline struct port_count *count_of(__u8 port)
{
	__u32 at = bpf_get_smp_processor_id() * PORTS + port;

	return bpf_map_lookup_elem(&port_counts, &at);
}

/* Forwards the packet of a known flow. Otherwise returns -1, and the frame is unchanged. */
static __always_inline int forwarded(struct xdp_md *ctx, const struct interface *own,
				     const struct control *state)
{
	void *data = (void *)(long)ctx->data, *end = (void *)(long)ctx->data_end;
	struct packet packet = {};
	struct port_count *count;
	struct ethhdr *ethernet = data;
	__u16 *halves = data;
	__u8 *bytes = data;
	struct flow *flow;
	__u32 place, length = end - data, egress, used;
	__u64 *total;
	int known;

	if (data + ETH_HLEN > end)
		return -1;
	if ((halves[0] ^ own->mac[0]) | (halves[1] ^ own->mac[1]) | (halves[2] ^ own->mac[2]))
		return -1;
	if (ethernet->h_proto == bpf_htons(ETH_P_IP))
		known = inet(&packet, data + ETH_HLEN, end, own->flags);
	else if (ethernet->h_proto == bpf_htons(ETH_P_IPV6))
		known = inet6(&packet, data + ETH_HLEN, end, own->flags);
	else
		return -1;
	used = packet.bytes + ETH_HLEN;
	/* Longer frames carry bytes that the router removes, but padding. */
	if (!known || length < used || (length > used && length > ETH_ZLEN))
		return -1;
	packet.key[KEY_WORDS - 1] |= (__u64)own->number << 16;
	flow = find(&packet, &place);
	if (!flow || flow->generation != state->generation || packet.bytes > flow->mtu)
		return -1;
	egress = flow->egress;
	count = count_of(egress);
	total = bpf_map_lookup_elem(&flow_counts, &place);
	if (!count || !total)
		return -1;
	if (bpf_redirect_map(&links, egress, XDP_PASS) != XDP_REDIRECT)
		return -1; /* the interface is gone */
	count->sent++;
	count = count_of(own->number);
	if (count)
		count->received++;
	__sync_fetch_and_add(total, 1ull << 40 | packet.bytes);
	__builtin_memcpy(ethernet, flow->macs, 2 * ETH_ALEN);
	if (ethernet->h_proto == bpf_htons(ETH_P_IP)) {
		__u16 *checksum = (__u16 *)(bytes + ETH_HLEN + 10);
		/* RFC 1624, for a TTL that is one less; the result is never 0xffff. */
		__u32 sum = *checksum + (__u32)bpf_htons(0x0100);

		*checksum = sum + (sum >= 0xffff);
		bytes[ETH_HLEN + 8]--;
	} else {
		bytes[ETH_HLEN + 7]--;
	}
	return XDP_REDIRECT;
}

SEC("xdp")
int forward(struct xdp_md *ctx)
{
	__u32 zero = 0, at = ctx->ingress_ifindex & (INTERFACES - 1);
	struct interface *own = bpf_map_lookup_elem(&interfaces, &at);
	struct control *state = bpf_map_lookup_elem(&control, &zero);
	__u64 *count;
	long action;

	if (own && state && own->ifindex == ctx->ingress_ifindex) {
		if (forwarded(ctx, own, state) == XDP_REDIRECT)
			return XDP_REDIRECT;
		action = bpf_redirect_map(&sockets, own->first_socket + ctx->rx_queue_index,
					  XDP_DROP);
		if (action == XDP_REDIRECT)
			return action;
	}
	count = bpf_map_lookup_elem(&unserved, &zero);
	if (count)
		__sync_fetch_and_add(count, 1); /* any CPU may be here */
	return XDP_DROP;
}

/* Fields of the kernel that are read here; their offsets are relocated when loading. */
struct ns_common {
	unsigned int inum;
} __attribute__((preserve_access_index));

struct net {
	struct ns_common ns;
} __attribute__((preserve_access_index));

typedef struct {
	struct net *net;
} __attribute__((preserve_access_index)) possible_net_t;

struct net_device {
	int ifindex;
	possible_net_t nd_net;
} __attribute__((preserve_access_index));

/* Counts frames for a device that takes no redirected frames. */
SEC("raw_tp/xdp_redirect_err")
int count_refused(struct bpf_raw_tracepoint_args *ctx)
{
	/* from, program, to, error, type of the map, map, key */
	__u32 zero = 0, map = ctx->args[5], port = ctx->args[6];
	struct control *state = bpf_map_lookup_elem(&control, &zero);
	struct port_count *count;

	if (!state || map != state->links || port >= PORTS)
		return 0;
	count = count_of(port);
	if (count)
		count->lost++;
	return 0;
}

/* Counts redirected frames that a device dropped: a full ring, or a veth that does not poll. */
SEC("raw_tp/xdp_devmap_xmit")
int count_lost(struct bpf_raw_tracepoint_args *ctx)
{
	/* from, to, frames sent, frames dropped, error */
	struct net_device *to = (void *)ctx->args[1];
	__u32 zero = 0, drops = ctx->args[3], at, index;
	struct control *state = bpf_map_lookup_elem(&control, &zero);
	struct port_count *count;
	struct interface *own;

	if (!drops || !state || BPF_CORE_READ(to, nd_net.net, ns.inum) != state->namespace)
		return 0;
	index = BPF_CORE_READ(to, ifindex);
	at = index & (INTERFACES - 1);
	own = bpf_map_lookup_elem(&interfaces, &at);
	if (!own || own->ifindex != index)
		return 0;
	count = count_of(own->number);
	if (count)
		count->lost += drops;
	return 0;
}

char LICENSE[] SEC("license") = "Dual BSD/GPL";
