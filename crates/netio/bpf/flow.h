/* SPDX-License-Identifier: BSD-2-Clause */
/* Maps of forward.bpf.c that the router shares: src/xsk/flows/layout.rs in C. */
#ifndef FLOW_H
#define FLOW_H

#define KEY_WORDS 5
/* Places of `interfaces`: an interface is at its index modulo this number. */
#define INTERFACES 1024
#define MULTIPLIER 0x9e3779b97f4a7c15ull

#define TCP_FIN 1
#define TCP_SYN 2
#define TCP_RST 4

#define FAMILY_INET 1
#define FAMILY_INET6 2

/* `flags` of an interface: stacks behind it leave checksums to devices. */
#define INCOMPLETE_CHECKSUMS 1

/*
 * Key: addresses of source and destination in packet byte order (IPv4 in the first word), then from
 * the lowest byte family, protocol, the router's port number, 0, and both ports of the transport.
 */
struct flow {
	__u64 key[KEY_WORDS];
	__u32 generation; /* the flow is known while this equals the current one */
	__u32 mtu;        /* of the link, in bytes of IP packets */
	__u8 macs[12];    /* destination, source */
	__u8 egress;      /* the router's port number */
	__u8 pad[3];
};

struct control {
	__u64 generation; /* never 0 */
	__u64 namespace;  /* inode number of the interfaces' network namespace */
	__u64 links;      /* identifier of the map `links` */
};

struct interface {
	__u32 ifindex;
	__u32 first_socket;
	__u16 mac[3];
	__u8 number; /* the router's port number */
	__u8 flags;
};

struct port_count {
	__u64 received;
	__u64 sent; /* handed to the device, with lost ones */
	__u64 lost; /* refused by the device */
};

#endif
