//! A device that translates source addresses: the program in the kernel decides like the receiver
//! in user space.

mod common;

use common::forwarder::{FROM, Forwarder, TO, Wrong};
use fwdlab_netio::xdp::XdpReceiver;
use fwdlab_netio::{Frame, Receiver, Watch, affinity};
use fwdlab_packet::arrivals::{Expected, Fault};
use fwdlab_packet::{Family, Flows, FrameWriter, Phase, Stream, Template};
use rand_xoshiro::Xoshiro256StarStar;
use rand_xoshiro::rand_core::{Rng, SeedableRng};

const FLOWS: Flows = Flows { sources: 3, destinations: 4 };
const DEVICE: [u8; 4] = [198, 19, 0, 1];

fn expected(size: u16) -> Expected {
    Expected {
        template: Template::new(
            &Stream::new(Family::Inet, size, FLOWS),
            0x1234_5678,
            [2; 6],
            [6; 6],
        ),
        destination_mac: Some(TO),
        source_mac: Some(FROM),
        translated: Some(DEVICE),
        hops: 1,
        senders: 1,
        timestamps: false,
        same_clock: true,
        sampled: false,
    }
}

fn translate(frame: &mut [u8], port: u16) {
    fwdlab_testdata::translate_source(frame, DEVICE, port);
}

#[test]
fn kernel_and_user_space_agree_on_translated_packets() {
    if XdpReceiver::detached(&Watch::Stamps { run_id: 1, flows: 0 }).is_err() {
        return fwdlab_testdata::skip("BPF programs can't be loaded here");
    }
    // The program keeps state per CPU, user space only once.
    affinity::pin_thread(&affinity::allowed_cpus().expect("CPUs")[..1]).expect("pinned");
    for (size, seed) in [(64, 1), (200, 2)] {
        let expected = expected(size);
        let watch = Watch::Packets(Box::new(expected.clone()));
        let mut kernel = XdpReceiver::detached(&watch).expect("the program");
        let mut user = watch.arrivals();
        let mut random = Xoshiro256StarStar::seed_from_u64(seed);
        let mut draw = |below: u64| random.next_u64() % below;
        let mut writer = FrameWriter::new(expected.template.clone(), 0);
        for n in 0..20_000 {
            let bytes = expected.template.bytes();
            let mut frame = Frame::of(0, bytes).expect("it fits");
            writer.write_next(&mut frame.buffer_mut()[..bytes.len()], Phase::Window, 0);
            Forwarder::new(Wrong::Nothing, 0).forward_one(&mut frame);
            let mut frame = frame.whole().to_vec();
            if draw(20) > 0 {
                translate(&mut frame, draw(65_536) as u16);
            }
            match draw(4) {
                0 => {
                    let bit = draw(8 * frame.len() as u64) as usize;
                    frame[bit / 8] ^= 1 << (bit % 8);
                }
                1 if draw(10) == 0 => frame.truncate(15 + draw(frame.len() as u64 - 15) as usize),
                _ => {}
            }
            kernel.show(&frame, 1).expect("shown");
            user.take(&frame, frame.len(), 0);
            assert_eq!(kernel.received(), *user.counts(), "{n}: {frame:02x?}");
        }
        let counts = user.counts();
        assert!(counts.total() > 10_000, "{counts:?}");
        assert!(counts.faults[Fault::SourceAddress as usize] > 500, "{counts:?}");
        assert_eq!(kernel.flows(), user.flows());
    }
}
