//! VLANs of hosts: devices of the kernel if it supports them; otherwise a thread that adds tags to
//! the frames of a plain device and removes them again.

use super::links::must;
use super::net::Net;
use fwdlab_netio::packet_socket::{PacketConfig, PacketPort};
use fwdlab_netio::{Batch, Frame, Port};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::thread::JoinHandle;
use std::time::Duration;

/// A VLAN, removed when dropped.
pub(crate) struct Vlan {
    stop: Arc<AtomicBool>,
    thread: Option<JoinHandle<()>>,
}

impl Vlan {
    /// Creates the device `vVLAN` on a host's link; it is up, without addresses.
    pub(crate) fn make(net: &Net, host: &'static str, link: &str, vlan: u16) -> Vlan {
        let stop = Arc::<AtomicBool>::default();
        let device = format!("ip link add link {link} name v{vlan} type vlan id {vlan}");
        let words: Vec<&str> = device.split_whitespace().collect();
        let thread = match net.run(host, &words).0 {
            true => None,
            false => {
                eprintln!("this kernel has no VLANs: a thread puts tags in and out");
                must(net, host, &format!("ip link add v{vlan} type veth peer name t{vlan}"));
                must(net, host, &format!("ip link set t{vlan} up"));
                let (link, stop) = (link.to_owned(), Arc::clone(&stop));
                Some(net.on(host, move || carry(&link, vlan, &stop)))
            }
        };
        must(net, host, &format!("ip link set v{vlan} up"));
        Vlan { stop, thread }
    }
}

impl Drop for Vlan {
    fn drop(&mut self) {
        self.stop.store(true, Ordering::Relaxed);
        if let Some(thread) = self.thread.take() {
            let _ = thread.join();
        }
    }
}

const PLAIN: u8 = 0;
const TAGGED: u8 = 1;

fn carry(link: &str, vlan: u16, stop: &AtomicBool) {
    let open = |interface: String, number| {
        let config = PacketConfig { interface, number, fanout: None };
        // No one but this thread completes their checksums.
        PacketPort::open(&config).expect("root").completing(Arc::<AtomicU64>::default())
    };
    let mut plain = open(format!("t{vlan}"), PLAIN);
    let mut tagged = open(link.to_owned(), TAGGED);
    let [high, low] = vlan.to_be_bytes();
    let tag = [0x81, 0, high, low];
    let (mut batch, mut out) = (Batch::new(), Batch::new());
    while !stop.load(Ordering::Relaxed) {
        let mut any = false;
        for _ in 0..2 {
            any |= plain.receive(&mut batch).is_ok_and(|count| count > 0);
            let with_tag = |frame: &Frame| {
                let bytes = frame.bytes();
                Some([&bytes[..12], &tag, &bytes[12..]].concat())
            };
            hand_on(&batch, &mut out, &mut tagged, TAGGED, with_tag);
            any |= tagged.receive(&mut batch).is_ok_and(|count| count > 0);
            let without_tag = |frame: &Frame| {
                let bytes = frame.bytes();
                let is_ours = bytes[12..16] == tag;
                is_ours.then(|| [&bytes[..12], &bytes[16..]].concat())
            };
            hand_on(&batch, &mut out, &mut plain, PLAIN, without_tag);
        }
        if !any {
            std::thread::sleep(Duration::from_micros(200));
        }
    }
}

fn hand_on(
    batch: &Batch,
    out: &mut Batch,
    port: &mut PacketPort,
    number: u8,
    change: impl Fn(&Frame) -> Option<Vec<u8>>,
) {
    out.clear();
    for bytes in batch.frames().iter().filter_map(change) {
        if let Some(place) = out.grow() {
            place.receive(number, &bytes).expect("it fits");
            place.send_to(number);
        }
    }
    port.send(out).expect("the link is there");
}
