//! Ports around ports that capture or trace passing frames, inject faults, or complete checksums.
//!
//! None of them except the last belongs in a measurement: each costs more than forwarding a frame.

mod capture;
mod checksum_offload;
mod damage;
mod fault;
mod trace;

pub use capture::PcapTap;
pub use checksum_offload::CompleteTap;
pub use damage::inflict;
pub use fault::{FaultCounts, FaultTap};
pub use trace::TraceTap;

#[cfg(test)]
mod fake {
    use crate::poll::Wakers;
    use crate::port::{Port, Sent};
    use crate::{Batch, NetioError};

    /// A port that receives given frames, a few at a time, and stores sent frames.
    #[derive(Debug, Default)]
    pub(super) struct FakePort {
        pub(super) incoming: Vec<Vec<u8>>,
        pub(super) outgoing: Vec<Vec<u8>>,
        /// Frames lost from every batch.
        pub(super) loses: usize,
        pub(super) waits: u32,
    }

    /// Number of every fake port.
    pub(super) const NUMBER: u8 = 2;

    impl Port for FakePort {
        fn receive(&mut self, batch: &mut Batch) -> Result<usize, NetioError> {
            let count = self.incoming.len().min(10);
            for (frame, bytes) in batch.fill(count).iter_mut().zip(self.incoming.drain(..count)) {
                frame.receive(NUMBER, &bytes).expect("it fits");
            }
            Ok(count)
        }

        fn send(&mut self, batch: &mut Batch) -> Result<Sent, NetioError> {
            let frames = batch.frames().iter().filter(|frame| frame.egress() == Some(NUMBER));
            let frames: Vec<Vec<u8>> = frames.map(|frame| frame.whole().into_owned()).collect();
            let lost = self.loses.min(frames.len());
            let sent = frames.len() - lost;
            self.outgoing.extend(frames.into_iter().take(sent));
            Ok(Sent { sent: sent as u64, lost: lost as u64 })
        }

        fn wake_by(&mut self, wakers: &mut Wakers) -> Result<(), NetioError> {
            self.waits += 1;
            wakers.ready();
            Ok(())
        }

        fn missed(&mut self) -> u64 {
            7
        }

        fn is_at_end(&self) -> bool {
            self.incoming.is_empty()
        }
    }

    /// Returns a batch of frames with these egress ports.
    pub(super) fn batch_to(ports: &[u8], bytes: impl Fn(usize) -> Vec<u8>) -> Batch {
        let mut batch = Batch::new();
        for ((n, frame), &port) in batch.fill(ports.len()).iter_mut().enumerate().zip(ports) {
            frame.receive(9, &bytes(n)).expect("it fits");
            frame.send_to(port);
        }
        batch
    }

    /// Receives until the port is at its end.
    pub(super) fn receive_all(port: &mut impl Port) -> Vec<Vec<u8>> {
        let (mut batch, mut frames) = (Batch::new(), Vec::new());
        while !port.is_at_end() {
            let count = port.receive(&mut batch).expect("receiving");
            assert_eq!(count, batch.frames().len());
            frames.extend(batch.frames().iter().map(|frame| frame.whole().into_owned()));
        }
        frames
    }
}
