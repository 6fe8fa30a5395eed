// SPDX-License-Identifier: BSD-2-Clause
/*
 * Counts and drops. A packet counts for this run only if it carries this run's
 * identity; anything else is counted apart. Frames with VLAN tags, options or
 * extension headers are none of ours and count as unstamped.
 */
#include <linux/bpf.h>
#include <linux/types.h>
#include <bpf/bpf_endian.h>
#include <bpf/bpf_helpers.h>
#include "stamp.h"

/* Set before loading. */
const volatile __u32 RUN_ID = 0;
const volatile __u32 FLOWS = 0; /* 0: no per-flow counts */

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
	__uint(max_entries, 1); /* FLOWS x possible CPUs, set before loading */
	__type(key, __u32);
	__type(value, __u64);
} flows SEC(".maps");

SEC("xdp")
int receive_packet(struct xdp_md *ctx)
{
	void *data = (void *)(long)ctx->data;
	void *end = (void *)(long)ctx->data_end;
	__u32 cpu = bpf_get_smp_processor_id(), tag, key;
	struct receiver_state *state;
	__u16 *stamp, type;
	__u32 run;

	state = bpf_map_lookup_elem(&receiver, &cpu);
	if (!state)
		return XDP_ABORTED;
	if (data + 42 + STAMP_BYTES > end)
		goto unstamped;
	type = *(__u16 *)(data + 12);
	if (type == bpf_htons(0x0800)) {
		if (*(__u8 *)(data + 14) != 0x45 || *(__u8 *)(data + 23) != 17)
			goto unstamped;
		stamp = data + 42;
	} else if (type == bpf_htons(0x86dd)) {
		if (data + 62 + STAMP_BYTES > end || *(__u8 *)(data + 20) != 17)
			goto unstamped;
		stamp = data + 62;
	} else {
		goto unstamped;
	}
	if (stamp[0] != bpf_htons(STAMP_MAGIC))
		goto unstamped;
	run = stamp[1] | ((__u32)stamp[2] << 16);
	if (run != bpf_htonl(RUN_ID)) {
		state->foreign++;
		return XDP_DROP;
	}
	tag = bpf_ntohl(stamp[3] | ((__u32)stamp[4] << 16));
	state->packets[(tag >> 24) & (PHASES - 1)]++;
	state->bytes += end - data;
	if (FLOWS) {
		__u64 *count;

		key = cpu * FLOWS + (tag & 0xffffff);
		count = bpf_map_lookup_elem(&flows, &key);
		if (count)
			++*count;
	}
	return XDP_DROP;
unstamped:
	state->unstamped++;
	return XDP_DROP;
}

char LICENSE[] SEC("license") = "Dual BSD/GPL";
