//! Sends the same frames through the kernel and through `fwdlab route`, on both of its paths, and
//! compares the results field by field.
//!
//! Everything must be equal, except for the differences listed here. These occur in any frame and
//! are not compared:
//!
//! | what | kernel | router | why either may |
//! |---|---|---|---|
//! | padding up to 60 bytes | a veth needs none | as received, or zeros | not part of the packet (RFC 894) |
//! | identification of the forwarder's own ICMP messages | its own count | 0 in errors, the request's in echoes | RFC 6864 section 4.1: it has no meaning in packets that must not be fragmented; section 4.3 would require different ones in echoes. Checksums are verified instead |
//! | "don't fragment" in the forwarder's own IPv4 errors | not set | set | RFC 6864 section 4.1 again: 576 bytes are not fragmented in practice (RFC 791 section 3.1) |
//! | order of the results of one frame | redirect, packet | packet, redirect or fragments | none is prescribed |
//! | reports of the forwarder's groups | MLDv2 | none | it is not a member of any routed group (RFC 3810) |
//!
//! Other differences are specified case by case, with exactly the fields or frames that differ:
//!
//! | case | kernel | router | why either may |
//! |---|---|---|---|
//! | type of service of errors | the packet's, with precedence 6 | CS6 | RFC 1812 section 4.3.2.5, and RFC 2474 section 4.2.2.2, which redefined the other bits |
//! | "don't fragment" in echo replies | not set | set, as in the request | RFC 792 changes type, addresses and checksum only |
//! | options not copied to later fragments | become no-operations | are left out | RFC 791 section 3.2 has shorter headers |
//! | timestamp option | is filled in | is carried along | the router has no clock; RFC 7126 section 4.7 would drop it |
//! | record route in errors | the header also has the option; the quote contains the route recorded so far | no options, quoted as received | RFC 1812 section 4.3.2.3 does not require undoing it |
//! | an option's wrong length | the pointer is to its type | the pointer is to its length | RFC 792: "the octet where an error was detected" |
//! | source routes | silence | source route failed | RFC 7126 sections 4.3 and 4.4, RFC 1812 section 5.2.7.1 |
//! | packets quoted by IPv4 redirects | TTL as sent on | as received | RFC 1812 section 4.3.2.3 |
//! | from the router, or the host, that a redirect would name | a redirect to itself | silence | no other path is shorter (RFC 792); the packet loops until its TTL expires |
//! | from or to 0/8 and 240/4 | forwarded, or no route | dropped | RFC 6890 section 2.2.2: not forwardable |
//! | from or to 169.254/16 | forwarded | dropped | RFC 3927 section 7 |
//! | from a link's broadcast address | forwarded | dropped | RFC 1812 section 5.3.7: no such source is valid |
//! | to a link's all-zeros address | forwarded | dropped | RFC 1812 section 4.2.3.1: an old broadcast |
//! | from or to ::/96, ::ffff:0:0/96 | forwarded, or no route | dropped | RFC 4291 section 2.5.5, RFC 6890 section 2.2.3 |
//! | from the forwarder's own IPv6 address | forwarded | dropped, as both do in IPv4 | RFC 2827 |
//! | to a link-local address | back to its link | dropped | RFC 4291 section 2.5.6 forbids other links only |
//! | from a link-local address, back to its link | forwarded, with a redirect | beyond scope | RFC 4007 section 9 would let it pass; the router looks up no route for it |
//! | IPv6 fragments but the first, hop limit 1 | error | silence | RFC 4443 section 2.4 (e): it may be an error itself |
//! | ICMPv6 redirect, hop limit 1 | error | silence | RFC 4443 section 2.4 (e.2) forbids it |
//! | hop-by-hop option that requests an error | error | forwarded | RFC 8200 section 4.3: read only if configured |
//! | packets quoted by IPv6 redirects | truncated to a multiple of eight bytes | padded with zeros | RFC 4861 section 4.6.3 |
//! | jumbogram with a length that needs none | parameter problem | dropped | RFC 2675 section 3 is for nodes that have jumbograms; no link here carries any |
//! | TCP, UDP and other protocols to the router's own addresses | reset, port or protocol unreachable, parameter problem | silence | RFC 1122 section 3.2.2.1 is for hosts; the router has no ports, and does not report on its peers' |
//! | fragments to the router itself | reassembled | silence | RFC 1812 section 5.2.1.3 would require it; a fragmented echo request is not answered |
//! | UDP to a closed port | port unreachable | silence | RFC 1122 section 3.2.2.1 is for hosts; the router has no ports |
//! | VLAN 0 | treated as untagged | dropped | IEEE 802.1Q: a device without tags has no priorities |
//! | ARP of IEEE 802 hardware | answered | dropped | RFC 1042; the frame is Ethernet |
//! | solicitations to the forwarder alone | no option, no Override | both | RFC 4861 section 7.2.4: MAY be omitted |
mod cases;
mod filter;
mod kernel;
mod packets;
mod router;
mod seen;
mod setup;
mod xdp;

use cases::{Case, Expected};
use kernel::Kernel;
use seen::{Seen, Side, differences, in_order};

#[test]
fn router_and_kernel_forward_alike() {
    let cases = cases::all();
    let frames: Vec<_> = cases.iter().map(|case| (Side::Near, &case.frame[..])).collect();
    let [fast, full] = ["fast", "full"].map(|path| router::forward(path, "", &frames));
    let fast: Vec<_> = fast.into_iter().map(in_order).collect();
    let full: Vec<_> = full.into_iter().map(in_order).collect();
    let Some(mut kernel) = kernel() else { return };
    let mut faults = Vec::new();
    for (number, case) in cases.iter().enumerate() {
        let seen = in_order(kernel.forward(number as u32, Side::Near, &case.frame));
        if fast[number] != full[number] {
            faults.push(format!("{}: the paths of the router differ", case.name));
        }
        let found = compare(case, &seen, &fast[number]);
        faults.extend(found.into_iter().map(|fault| format!("{}: {fault}", case.name)));
    }
    assert!(faults.is_empty(), "{} faults:\n{}", faults.len(), faults.join("\n"));
}

/// The kernel; `None`, with a recorded skip, if there can be no kernel that forwards.
fn kernel() -> Option<Kernel> {
    let kernel = Kernel::new();
    if kernel.is_none() {
        fwdlab_testdata::skip("network namespaces can't be made here (not root, or no ip)");
    }
    kernel
}

/// Differences from the case.
fn compare(case: &Case, kernel: &[Seen], router: &[Seen]) -> Vec<String> {
    let mut faults = Vec::new();
    let kinds = |seen: &[Seen]| seen.iter().map(Seen::kind).collect::<Vec<_>>();
    let (by_kernel, by_router) = (kinds(kernel), kinds(router));
    let (of_kernel, of_router, fields) = match case.expected {
        Expected::Alike(kinds) => (kinds, kinds, &[][..]),
        Expected::But(kinds, fields) => (kinds, kinds, fields),
        Expected::Apart { kernel, router } => (kernel, router, &[][..]),
    };
    if by_kernel != of_kernel {
        faults.push(format!("the kernel: {by_kernel:?}"));
    }
    if by_router != of_router {
        faults.push(format!("the router: {by_router:?}"));
    }
    if by_kernel != by_router {
        return faults;
    }
    let different: Vec<_> = kernel
        .iter()
        .zip(router)
        .flat_map(|(kernel, router)| differences(kernel, router))
        .collect();
    let mut names: Vec<&str> = different.iter().map(|(name, _)| *name).collect();
    names.sort_unstable();
    names.dedup();
    if names != fields {
        let different = different.iter().map(|(name, values)| format!("\n    {name}: {values}"));
        faults
            .push(format!("differ in {names:?}, not {fields:?}{}", different.collect::<String>()));
    }
    faults
}
