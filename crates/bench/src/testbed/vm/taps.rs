//! Both ends of a machine's links for measuring a rate: the senders and receivers of namespaces, on
//! taps that are the other ends of the guest's cards.
//!
//! The sender does not wait: packets that find the ring of its tap full are lost, and counted
//! there. QEMU's threads are the device, because they execute the guest and move its frames: they
//! get the device's CPUs, and their time is the device's.

use super::machines::RunningMachine;
use crate::cpu::Placement;
use crate::dut::findings::Findings;
use crate::dut::{Dut, Reading};
use crate::error::BenchError;
use crate::host::NamespaceHost;
use crate::testbed::cpu_times::CpuTimes;
use crate::testbed::netns::{Netns, ends};
use crate::testbed::rig::awaited;
use crate::testbed::{Armed, Endpoints, TrafficRequest, bidirectional};
use crate::trial::OpeningConditions;
use crate::wiring::Wiring;
use fwdlab_model::record::ReceiverPlace;
use fwdlab_model::settings::Settings;
use fwdlab_netio::affinity;
use std::collections::BTreeMap;

/// The ends.
pub(super) struct TapEnds<'a> {
    netns: &'a Netns,
    up: &'a RunningMachine,
    wiring: &'a Wiring,
    placement: Placement,
    /// The sender's namespace, which counts frames that found the guest's ring full.
    sender: NamespaceHost,
}

impl<'a> TapEnds<'a> {
    /// Returns the ends of `up`, whose taps belong to `wiring`; QEMU's threads get the CPUs of the
    /// device.
    ///
    /// # Errors
    /// Returns an error if a thread cannot be bound, or the namespace is gone.
    pub(super) fn new(
        netns: &'a Netns,
        up: &'a RunningMachine,
        wiring: &'a Wiring,
        placement: Placement,
    ) -> Result<TapEnds<'a>, BenchError> {
        for thread in up.running.machine.threads() {
            affinity::pin_task(thread, &placement.dut)?;
        }
        let sender = NamespaceHost::new(&wiring.sender, &placement.control)?;
        Ok(TapEnds { netns, up, wiring, placement, sender })
    }
}

impl Endpoints for TapEnds<'_> {
    fn arm<'a>(
        &'a self,
        request: &TrafficRequest<'_>,
        _findings: &mut Findings,
    ) -> Result<(Box<dyn Armed + 'a>, CpuTimes), BenchError> {
        let threads = self.up.running.machine.threads();
        let request = TrafficRequest { threads: &threads, ..*request };
        let armed = self.netns.arm_all(self.wiring, &self.placement, &request)?;
        // QEMU's sending thread also does the receiver's work: the receiver's share is unknown.
        let times = CpuTimes::open(&threads, &[], ReceiverPlace::Unknown, &[]);
        Ok((bidirectional::armed(armed), times))
    }

    fn awaited(&self, settings: &Settings) -> OpeningConditions {
        awaited(settings, self.netns.rounds(settings, &self.placement))
    }

    fn complete(&self, reading: &mut Reading, _dut: &dyn Dut) {
        let ingress = &self.up.links.ingress.interface;
        let dropped = reading.machine.entry(format!("{ingress} rx_dropped")).or_default();
        *dropped += ends::refused(&self.sender, "g0");
    }

    fn facts(&self, settings: &Settings) -> BTreeMap<String, String> {
        let (netns, placement) = (self.netns, &self.placement);
        BTreeMap::from([
            ("kernel".into(), self.up.release.clone()),
            ("executed by".into(), self.up.executed_by().to_owned()),
            ("sender".into(), format!("{} into a tap", netns.sender(settings))),
            ("receiver".into(), format!("{} on a tap", netns.receiver())),
            ("receive queues".into(), netns.filled_by(settings).to_owned()),
            ("sender CPUs".into(), format!("{:?}", placement.senders)),
            ("QEMU's CPUs".into(), format!("{:?}", placement.dut)),
        ])
    }
}
