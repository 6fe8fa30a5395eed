//! A guest's network cards, and what is at their other ends.

use std::os::fd::RawFd;
use std::path::PathBuf;

/// Time after which QEMU sends what a guest with [`Nic::gathers`] has queued, nanoseconds.
const TX_TIMER_NS: u64 = 20_000_000;

/// Network cards that QEMU emulates.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Model {
    /// virtio-net, with queue pairs.
    Virtio,
    /// Intel 82540EM.
    E1000,
    /// Intel 82574.
    E1000e,
    /// VMware's.
    Vmxnet3,
    /// Intel 82576, where QEMU has it (8.0 and later).
    Igb,
}

impl Model {
    /// All of them.
    pub const ALL: [Model; 5] =
        [Model::Virtio, Model::E1000, Model::E1000e, Model::Vmxnet3, Model::Igb];

    /// What people call it.
    pub fn name(self) -> &'static str {
        match self {
            Model::Virtio => "virtio",
            Model::E1000 => "e1000",
            Model::E1000e => "e1000e",
            Model::Vmxnet3 => "vmxnet3",
            Model::Igb => "igb",
        }
    }

    /// As QEMU calls it.
    pub(crate) fn device(self) -> &'static str {
        match self {
            Model::Virtio => "virtio-net-pci",
            other => other.name(),
        }
    }

    /// Linux's module for it.
    pub fn module(self) -> &'static str {
        match self {
            Model::Virtio => "virtio_net",
            other => other.name(),
        }
    }

    /// The function of Linux that takes frames from it: where a batch can be gathered.
    pub fn poll(self) -> &'static str {
        match self {
            Model::Virtio => "virtnet_poll",
            Model::E1000 => "e1000_clean",
            Model::E1000e => "e1000e_poll",
            Model::Vmxnet3 => "vmxnet3_poll_rx_only",
            Model::Igb => "igb_poll",
        }
    }
}

/// Where a card's frames go.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Backend {
    /// A pair of Unix datagram sockets, one frame a datagram: QEMU's own and ours.
    Datagram {
        /// QEMU's.
        guest: PathBuf,
        /// Ours.
        ours: PathBuf,
    },
    /// A tap: the descriptors of its queues, which whoever starts the machine keeps open until
    /// it has begun.
    Tap(Vec<RawFd>),
}

/// A card for traffic.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Nic {
    /// What it is.
    pub model: Model,
    /// Its MAC.
    pub mac: String,
    /// Queue pairs (virtio only).
    pub queues: u16,
    /// True when what the guest sends is gathered before it leaves, so that how fast QEMU
    /// is does not change what the guest executes (virtio only).
    pub gathers: bool,
    /// Where its frames go.
    pub backend: Backend,
}

impl Nic {
    /// QEMU's words for where its frames go.
    pub(crate) fn netdev(&self, number: usize) -> String {
        match &self.backend {
            Backend::Datagram { guest, ours } => format!(
                "dgram,id=data{number},local.type=unix,local.path={},remote.type=unix,\
                 remote.path={}",
                guest.display(),
                ours.display()
            ),
            Backend::Tap(queues) => {
                let numbers: Vec<String> = queues.iter().map(RawFd::to_string).collect();
                let word = if queues.len() > 1 { "fds" } else { "fd" };
                format!("tap,id=data{number},{word}={}", numbers.join(":"))
            }
        }
    }

    /// Descriptors that QEMU inherits.
    pub(crate) fn descriptors(&self) -> &[RawFd] {
        match &self.backend {
            Backend::Datagram { .. } => &[],
            Backend::Tap(queues) => queues,
        }
    }

    /// QEMU's words for the card.
    pub(crate) fn device(&self, number: usize) -> String {
        let mut text = format!("{},netdev=data{number},mac={}", self.model.device(), self.mac);
        if self.model == Model::Virtio && self.queues > 1 {
            text.push_str(&format!(",mq=on,vectors={}", 2 * self.queues + 2));
        }
        if self.model == Model::Virtio && self.gathers {
            text.push_str(&format!(",tx=timer,x-txtimer={TX_TIMER_NS}"));
        }
        text
    }
}
