// SPDX-License-Identifier: BSD-2-Clause
/*
 * Passes every frame to the socket of the queue that received it. A queue without a socket drops
 * and counts: no frame reaches the kernel's own stack, which might answer or forward it in
 * parallel to the router.
 */
#include <linux/bpf.h>
#include <linux/types.h>
#include <bpf/bpf_helpers.h>

struct {
	__uint(type, BPF_MAP_TYPE_XSKMAP);
	__uint(max_entries, 1); /* queues, set before loading */
	__type(key, __u32);
	__type(value, __u32);
} sockets SEC(".maps");

struct {
	__uint(type, BPF_MAP_TYPE_ARRAY);
	__uint(map_flags, BPF_F_MMAPABLE);
	__uint(max_entries, 1);
	__type(key, __u32);
	__type(value, __u64);
} unserved SEC(".maps");

SEC("xdp")
int redirect_to_port(struct xdp_md *ctx)
{
	long action = bpf_redirect_map(&sockets, ctx->rx_queue_index, XDP_DROP);
	__u32 zero = 0;
	__u64 *count;

	if (action == XDP_REDIRECT)
		return action;
	count = bpf_map_lookup_elem(&unserved, &zero);
	if (count)
		__sync_fetch_and_add(count, 1); /* any CPU may be here */
	return XDP_DROP;
}

char LICENSE[] SEC("license") = "Dual BSD/GPL";
