//! A tap that injects faults of bad cables and busy networks: loss, duplication, corruption,
//! reordering.

use super::damage::inflict;
use crate::NetioError;
use crate::frame::{BATCH, Batch, Frame};
use crate::poll::{Wakers, Woken};
use crate::port::{Port, Sent};
use fwdlab_packet::injection::Faults;
use rand_xoshiro::Xoshiro256StarStar;
use rand_xoshiro::rand_core::{Rng, SeedableRng};
use std::collections::VecDeque;

/// Counters of a [`FaultTap`] in one direction.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct FaultCounts {
    /// Frames that passed the tap.
    pub frames: u64,
    /// Frames lost.
    pub lost: u64,
    /// Frames duplicated.
    pub duplicated: u64,
    /// Frames with a wrong byte; both copies of a duplicated one count once.
    pub corrupted: u64,
    /// Frames with the configured damage; both copies of a duplicated one count once.
    pub damaged: u64,
    /// Frames held back. The order did not change if no other frame followed, or only lost ones.
    pub reordered: u64,
}

/// Injects faults in both directions. The seed and the frames' numbers determine the affected
/// frames.
#[derive(Debug)]
pub struct FaultTap<P> {
    port: P,
    number: u8,
    incoming: Direction,
    outgoing: Direction,
    /// Batch for sending.
    batch: Batch,
}

impl<P: Port> FaultTap<P> {
    /// Injects faults into frames that pass `port`, which has this number.
    pub fn new(port: P, number: u8, receive: Faults, send: Faults, seed: u64) -> FaultTap<P> {
        let mut generator = Xoshiro256StarStar::seed_from_u64(seed);
        let incoming = Direction::new(receive, generator.clone());
        // Random numbers that the other direction never reaches.
        generator.jump();
        let outgoing = Direction::new(send, generator);
        FaultTap { port, number, incoming, outgoing, batch: Batch::new() }
    }

    /// Returns the faults injected into received frames.
    pub fn received(&self) -> FaultCounts {
        self.incoming.counts
    }

    /// Returns the faults injected into sent frames.
    pub fn sent(&self) -> FaultCounts {
        self.outgoing.counts
    }

    /// Removes the tap: frames held back are lost.
    pub fn into_inner(self) -> P {
        self.port
    }

    /// Sends frames that are ready.
    fn hand_on(&mut self) -> Result<Sent, NetioError> {
        let mut total = Sent::default();
        while self.outgoing.take(&mut self.batch) > 0 {
            let sent = self.port.send(&mut self.batch)?;
            total.sent += sent.sent;
            total.lost += sent.lost;
        }
        Ok(total)
    }

    /// Releases a held-back frame if no frame follows for now.
    fn flush(&mut self) -> Result<(), NetioError> {
        self.incoming.release();
        self.outgoing.release();
        self.hand_on().map(drop)
    }
}

impl<P: Port> Port for FaultTap<P> {
    fn receive(&mut self, batch: &mut Batch) -> Result<usize, NetioError> {
        if self.incoming.ready.len() < BATCH {
            let count = self.port.receive(batch)?;
            batch.frames().iter().for_each(|frame| self.incoming.pass(frame));
            if count == 0 {
                self.flush()?;
            }
        }
        Ok(self.incoming.take(batch))
    }

    /// Frames that the tap loses, duplicates or holds back count as sent, as on a wire: a sender
    /// there could not know.
    fn send(&mut self, batch: &mut Batch) -> Result<Sent, NetioError> {
        let number = Some(self.number);
        let mut frames = 0;
        for frame in batch.frames().iter().filter(|frame| frame.egress() == number) {
            self.outgoing.pass(frame);
            frames += 1;
        }
        let lost = self.hand_on()?.lost.min(frames);
        Ok(Sent { sent: frames - lost, lost })
    }

    fn wake_by(&mut self, wakers: &mut Wakers) -> Result<(), NetioError> {
        self.flush()?;
        if !self.incoming.ready.is_empty() {
            wakers.ready();
        }
        self.port.wake_by(wakers)
    }

    fn woken(&mut self, woken: Woken) -> Result<(), NetioError> {
        self.port.woken(woken)
    }

    fn missed(&mut self) -> u64 {
        self.port.missed()
    }

    fn is_at_end(&self) -> bool {
        self.port.is_at_end() && self.incoming.is_empty()
    }
}

/// Frames in transit in one direction.
#[derive(Debug)]
struct Direction {
    faults: Faults,
    generator: Xoshiro256StarStar,
    counts: FaultCounts,
    /// Frames to pass on.
    ready: VecDeque<Frame>,
    /// The frame that the next one overtakes.
    held: Option<Frame>,
}

impl Direction {
    fn new(faults: Faults, generator: Xoshiro256StarStar) -> Direction {
        let (counts, ready, held) = (FaultCounts::default(), VecDeque::new(), None);
        Direction { faults, generator, counts, ready, held }
    }

    /// Passes a frame through the faults.
    fn pass(&mut self, frame: &Frame) {
        let Faults { loss, duplication, corruption, reordering, damage, damaging, .. } =
            self.faults;
        // All are drawn for each frame, so that the probability of one fault does not change which
        // frames the others hit.
        let [lost, doubled, corrupted, held] = [loss, duplication, corruption, reordering]
            .map(|probability| self.happens(probability));
        let position = self.generator.next_u64();
        self.counts.frames += 1;
        if lost {
            self.counts.lost += 1;
            return;
        }
        let mut frame = frame.clone();
        if corrupted && !frame.is_empty() {
            let at = (position >> 8) as usize % frame.len();
            // Never 0, which would change nothing.
            frame.edit(|bytes| bytes[at] ^= (position as u8).max(1));
            self.counts.corrupted += 1;
        }
        // Uses the number that selects the position, so that other faults are unaffected.
        if let Some(damage) = damage
            && unit(position) < damaging
            && inflict(damage, &mut frame, position.rotate_left(32))
        {
            self.counts.damaged += 1;
        }
        if doubled {
            self.ready.push_back(frame.clone());
            self.counts.duplicated += 1;
        }
        // Only one at a time: the next frame has to pass to release this one.
        if held && self.held.is_none() {
            self.held = Some(frame);
            self.counts.reordered += 1;
        } else {
            self.ready.push_back(frame);
            self.release();
        }
    }

    /// True with the given probability.
    fn happens(&mut self, probability: f64) -> bool {
        unit(self.generator.next_u64()) < probability
    }

    /// Releases the frame held back.
    fn release(&mut self) {
        self.ready.extend(self.held.take());
    }

    /// Moves as many frames into a batch as fit.
    fn take(&mut self, batch: &mut Batch) -> usize {
        let count = self.ready.len().min(BATCH);
        for (slot, frame) in batch.fill(count).iter_mut().zip(self.ready.drain(..count)) {
            *slot = frame;
        }
        count
    }

    fn is_empty(&self) -> bool {
        self.ready.is_empty() && self.held.is_none()
    }
}

/// Converts to a number in `[0, 1)` with the 53 bits of a float's mantissa.
fn unit(drawn: u64) -> f64 {
    (drawn >> 11) as f64 / (1u64 << 53) as f64
}

#[cfg(test)]
mod tests {
    use super::super::fake::{FakePort, NUMBER, batch_to, receive_all};
    use super::*;
    use fwdlab_packet::Flows;
    use fwdlab_packet::arrivals::Fault;
    use fwdlab_packet::injection::Damage;
    use fwdlab_packet::{Family, Stamp, Stream, Template};
    use std::time::Duration;

    const FRAMES: u32 = 10_000;
    const SEED: u64 = 2544;

    fn frames() -> Vec<Vec<u8>> {
        (0..FRAMES).map(|n| [&n.to_be_bytes()[..], &[0; 56]].concat()).collect()
    }

    fn received_with(faults: Faults, seed: u64) -> (Vec<Vec<u8>>, FaultCounts) {
        let port = FakePort { incoming: frames(), ..FakePort::default() };
        let mut tap = FaultTap::new(port, NUMBER, faults, Faults::default(), seed);
        let received = receive_all(&mut tap);
        assert_eq!(tap.sent(), FaultCounts::default());
        (received, tap.received())
    }

    /// True within five standard deviations of a binomial count.
    fn is_about(count: u64, probability: f64) -> bool {
        let n = f64::from(FRAMES);
        let deviation = (n * probability * (1.0 - probability)).sqrt();
        (count as f64 - n * probability).abs() <= 5.0 * deviation
    }

    #[test]
    fn tap_without_faults_passes_everything() {
        let (received, counts) = received_with(Faults::default(), SEED);
        assert!(received == frames());
        assert_eq!(counts, FaultCounts { frames: u64::from(FRAMES), ..FaultCounts::default() });
    }

    #[test]
    fn each_fault_hits_configured_share_of_frames() {
        let (received, counts) = received_with(Faults { loss: 0.1, ..Faults::default() }, SEED);
        assert!(is_about(counts.lost, 0.1), "{counts:?}");
        assert_eq!(received.len() as u64 + counts.lost, u64::from(FRAMES));
        assert!(received.is_sorted());

        let (received, counts) =
            received_with(Faults { duplication: 0.2, ..Faults::default() }, SEED);
        assert!(is_about(counts.duplicated, 0.2), "{counts:?}");
        let duplicates = received.windows(2).filter(|pair| pair[0] == pair[1]).count();
        assert_eq!(duplicates as u64, counts.duplicated);
        assert_eq!(received.len() as u64, u64::from(FRAMES) + counts.duplicated);

        let (received, counts) =
            received_with(Faults { corruption: 0.3, ..Faults::default() }, SEED);
        assert!(is_about(counts.corrupted, 0.3), "{counts:?}");
        let wrong_bytes = |(left, right): (&Vec<u8>, &Vec<u8>)| {
            left.iter().zip(right).filter(|(left, right)| left != right).count()
        };
        let wrong: Vec<usize> = received.iter().zip(&frames()).map(wrong_bytes).collect();
        assert!(wrong.iter().all(|&bytes| bytes <= 1));
        assert_eq!(wrong.iter().sum::<usize>() as u64, counts.corrupted);

        let (mut received, counts) =
            received_with(Faults { reordering: 0.1, ..Faults::default() }, SEED);
        let late = received.windows(2).filter(|pair| pair[0] > pair[1]).count();
        // A frame to be held while another is held passes.
        assert!(late as u64 <= counts.reordered && late * 10 >= counts.reordered as usize * 9);
        assert!((700..1000).contains(&counts.reordered), "{counts:?}");
        received.sort();
        assert!(received == frames());
    }

    #[test]
    fn damage_hits_configured_share_of_benchmark_packets_only() {
        let flows = Flows { sources: 1, destinations: 1 };
        let template = Template::new(&Stream::new(Family::Inet, 64, flows), 1, [2; 6], [4; 6]);
        let good = template.frame(0, 0, &Stamp { run_id: 1, ..Stamp::default() });
        let received_with = |incoming: Vec<Vec<u8>>, damage, damaging| {
            let faults = Faults { damage: Some(damage), damaging, ..Faults::default() };
            let port = FakePort { incoming, ..FakePort::default() };
            let mut tap = FaultTap::new(port, NUMBER, faults, Faults::default(), SEED);
            let received = receive_all(&mut tap);
            (received, tap.received().damaged)
        };
        for fault in Fault::ALL.into_iter().filter(|&fault| fault != Fault::Payload) {
            let all = vec![good.clone(); FRAMES as usize];
            let (received, damaged) = received_with(all, Damage::Fault(fault), 0.3);
            assert!(is_about(damaged, 0.3), "{fault:?}: {damaged}");
            let changed = received.iter().filter(|&frame| *frame != good).count();
            assert_eq!(changed as u64, damaged, "{fault:?}");
        }
        let (received, damaged) = received_with(frames(), Damage::Flip, 1.0);
        assert!(received == frames() && damaged == 0);
    }

    #[test]
    fn seed_determines_each_fault_independently() {
        let faults = Faults { loss: 0.1, ..Faults::default() };
        assert_eq!(received_with(faults, SEED), received_with(faults, SEED));
        assert_ne!(received_with(faults, SEED).0, received_with(faults, SEED + 1).0);
        let more = Faults { duplication: 0.5, ..faults };
        let mut received = received_with(more, SEED).0;
        received.dedup();
        assert!(received == received_with(faults, SEED).0);
    }

    #[test]
    fn frames_count_as_sent_unless_port_loses_them() {
        let faults = Faults { loss: 0.5, reordering: 0.2, ..Faults::default() };
        let mut tap = FaultTap::new(FakePort::default(), NUMBER, Faults::default(), faults, SEED);
        let mut total = Sent::default();
        for _ in 0..100 {
            let mut batch = batch_to(&[NUMBER, 1, NUMBER], |n| vec![n as u8; 60]);
            let sent = tap.send(&mut batch).expect("sending");
            (total.sent, total.lost) = (total.sent + sent.sent, total.lost + sent.lost);
            assert_eq!(batch.frames().len(), 3);
        }
        assert_eq!(total, Sent { sent: 200, lost: 0 });
        // Held-back frames do not wait forever.
        tap.wait(Duration::ZERO).expect("waiting");
        assert_eq!((tap.received().frames, tap.sent().frames), (0, 200));
        let lost = tap.sent().lost;
        assert!((60..140).contains(&lost), "{lost}");
        let port = tap.into_inner();
        assert_eq!(port.outgoing.len() as u64, 200 - lost);
        assert_eq!(port.waits, 1);

        let port = FakePort { loses: 1, ..FakePort::default() };
        let mut tap = FaultTap::new(port, NUMBER, Faults::default(), Faults::default(), SEED);
        let sent = tap.send(&mut batch_to(&[NUMBER; 3], |_| vec![0; 60]));
        assert_eq!(sent.expect("sending"), Sent { sent: 2, lost: 1 });
    }
}
