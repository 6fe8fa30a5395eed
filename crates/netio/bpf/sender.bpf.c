// SPDX-License-Identifier: BSD-2-Clause
/*
 * Sends one packet per call. Run by BPF_PROG_RUN with live frames: the kernel allocates the
 * frames, and this program writes every header byte (a recycled page still contains the
 * router's changes) and redirects the frame to the interface.
 *
 * The program drops a packet that is not due yet, before it was ever sent. It reads the clock
 * for each call only for pacing or time stamps, because that costs about a quarter of the
 * rate.
 */
#include <linux/bpf.h>
#include <linux/types.h>
#include <bpf/bpf_endian.h>
#include <bpf/bpf_helpers.h>
#include "stamp.h"

/* Set before loading; the verifier then removes the branches not taken. */
const volatile __u32 FAMILY = FAMILY_INET;
const volatile __u32 IFINDEX = 0;
const volatile __u32 SENDER = 0;
const volatile __u32 RUN_ID = 0;
const volatile __u32 SOURCES = 1;
const volatile __u32 DESTINATIONS = 1;
const volatile __u32 SOURCE_BASE = 0;      /* host order: last 32 bits of the first address */
const volatile __u32 DESTINATION_BASE = 0;
const volatile __u32 STAMP_TIME = 0;
const volatile __u32 PACED = 0;
const volatile __u64 LIMIT = 0; /* sequence number at which sending stops; 0: no limit */
const volatile __u32 FIRST = 0; /* sequence number of the first packet */
const volatile __u32 BURST = 1; /* paced: maximum number of packets in one go, at least 1 */
/* Sums of the 16-bit words that are the same in every packet (RFC 1071), see
 * packet::Template. */
const volatile __u32 IP_SUM = 0;
const volatile __u32 UDP_SUM = 0;
/* The frame's first 64 bytes in memory order, with addresses, checksums and stamp zero. */
const volatile __u64 HEADER[10] = {};

/* A mix of frame sizes: frames in its sequence (0: all frames have one size), positions skipped
 * after each round of the flows, bytes of each frame without FCS. Headers and sums then exclude
 * lengths. */
const volatile __u32 MIX = 0;
const volatile __u32 MIX_PASS = 0;
const volatile __u32 MIX_LENGTHS[MIX_MAX] = {};

struct {
	__uint(type, BPF_MAP_TYPE_ARRAY);
	__uint(map_flags, BPF_F_MMAPABLE);
	__uint(max_entries, 1);
	__type(key, __u32);
	__type(value, struct sender_state);
} sender SEC(".maps");

static __always_inline __u16 fold(__u64 sum)
{
	sum = (sum & 0xffffffff) + (sum >> 32);
	sum = (sum & 0xffff) + (sum >> 16);
	sum = (sum & 0xffff) + (sum >> 16);
	sum = (sum & 0xffff) + (sum >> 16);
	return ~sum;
}

/* Writes the stamp and returns the sum of its words. */
static __always_inline __u64 write_stamp(void *at, __u32 tag, __u32 sequence, __u32 time)
{
	__u16 *words = at;
	__u32 run = bpf_htonl(RUN_ID);

	tag = bpf_htonl(tag);
	sequence = bpf_htonl(sequence);
	time = bpf_htonl(time);
	words[0] = bpf_htons(STAMP_MAGIC);
	words[1] = run;
	words[2] = run >> 16;
	words[3] = tag;
	words[4] = tag >> 16;
	words[5] = sequence;
	words[6] = sequence >> 16;
	words[7] = time;
	words[8] = time >> 16;
	return (__u64)tag + sequence + time; /* magic and run id are in UDP_SUM */
}

SEC("xdp")
int send_packet(struct xdp_md *ctx)
{
	void *data = (void *)(long)ctx->data;
	void *end = (void *)(long)ctx->data_end;
	__u32 zero = 0, time = 0, source, destination, tag;
	__u64 sum, now = 0, phase, due_ns = 0;
	struct sender_state *state;
	__u64 *words = data;
	__u16 check, ip_length = 0, udp_length = 0;

	state = bpf_map_lookup_elem(&sender, &zero);
	if (!state)
		return XDP_ABORTED;

	if (LIMIT && state->sequence >= LIMIT)
		return XDP_DROP;
	if (PACED || STAMP_TIME)
		now = bpf_ktime_get_ns();
	if (PACED) {
		__u64 now_q;

		/* A counted sequence starts when its first packet can be sent: setting up the
		 * call may take longer than the sequence itself. */
		if (LIMIT && state->sequence == FIRST && !state->next_q)
			state->start_ns = now;
		if (now < state->start_ns)
			return XDP_DROP;
		now_q = (now - state->start_ns) << 16;
		if (now_q < state->next_q)
			return XDP_DROP;
		due_ns = state->start_ns + (state->next_q >> 16);
		state->next_q += state->interval_q;
		/* Gives up packets due beyond a burst: after a stall no ring on the path
		 * receives more packets than it holds. */
		if (now_q >= state->next_q && state->interval_q &&
		    now_q - state->next_q >= (BURST - 1ULL) * state->interval_q) {
			__u64 due = (now_q - state->next_q) / state->interval_q + 1;
			__u64 skip = due + 1 - BURST;

			state->missed += skip;
			state->next_q += skip * state->interval_q;
		}
	}
	/* The due time: a stall delays packets visibly. A time too long ago for its 32 bits is
	 * meaningless. */
	if (STAMP_TIME)
		time = PACED && now - due_ns < DUE_MAX_NS ? due_ns : now;

	/* The frame has the maximum length; the part cut off returns with the page. */
	if (MIX) {
		__u32 length = MIX_LENGTH(state->sequence, SOURCES * DESTINATIONS);

		if (bpf_xdp_adjust_tail(ctx, (int)length - (int)(end - data)))
			return XDP_ABORTED;
		data = (void *)(long)ctx->data;
		end = (void *)(long)ctx->data_end;
		words = data;
		ip_length = bpf_htons(length - (FAMILY == FAMILY_INET ? 14 : 54));
		udp_length = bpf_htons(length - (FAMILY == FAMILY_INET ? 34 : 54));
	}

	phase = state->phase & (PHASES - 1);
	tag = (SENDER << 28) | (phase << 24) | (state->flow & 0xffffff);
	source = bpf_htonl(SOURCE_BASE + state->source);
	destination = bpf_htonl(DESTINATION_BASE + state->destination);

	if (FAMILY == FAMILY_INET) {
		if (data + 60 > end)
			return XDP_ABORTED;
		words[0] = HEADER[0];
		words[1] = HEADER[1];
		words[2] = HEADER[2] | ip_length;
		*(__u16 *)(data + 24) = fold((__u64)IP_SUM + ip_length + source + destination);
		*(__u16 *)(data + 26) = source;
		*(__u16 *)(data + 28) = source >> 16;
		*(__u16 *)(data + 30) = destination;
		*(__u16 *)(data + 32) = destination >> 16;
		*(__u16 *)(data + 34) = HEADER[4] >> 16;
		*(__u32 *)(data + 36) = HEADER[4] >> 32 | (__u32)udp_length << 16;
		sum = write_stamp(data + 42, tag, state->sequence, time);
		check = fold(sum + UDP_SUM + 2 * (__u64)udp_length + source + destination);
		*(__u16 *)(data + 40) = check ? check : 0xffff;
	} else {
		if (data + 80 > end)
			return XDP_ABORTED;
		words[0] = HEADER[0];
		words[1] = HEADER[1];
		words[2] = HEADER[2] | (__u64)ip_length << 16;
		words[3] = HEADER[3];
		*(__u16 *)(data + 32) = HEADER[4];
		*(__u16 *)(data + 34) = source;
		*(__u16 *)(data + 36) = source >> 16;
		*(__u16 *)(data + 38) = HEADER[4] >> 48;
		words[5] = HEADER[5];
		*(__u16 *)(data + 48) = HEADER[6];
		*(__u16 *)(data + 50) = destination;
		*(__u16 *)(data + 52) = destination >> 16;
		*(__u16 *)(data + 54) = HEADER[6] >> 48;
		*(__u32 *)(data + 56) = (__u32)HEADER[7] | (__u32)udp_length << 16;
		sum = write_stamp(data + 62, tag, state->sequence, time);
		check = fold(sum + UDP_SUM + 2 * (__u64)udp_length + source + destination);
		*(__u16 *)(data + 60) = check ? check : 0xffff;
	}

	state->sequence++;
	state->flow++;
	if (++state->destination >= DESTINATIONS) {
		state->destination = 0;
		if (++state->source >= SOURCES) {
			state->source = 0;
			state->flow = 0;
		}
	}
	state->sent[phase]++;
	return bpf_redirect(IFINDEX, 0);
}

char LICENSE[] SEC("license") = "Dual BSD/GPL";
