//! A guest's network cards, and their backends.

use std::os::fd::RawFd;

/// Network cards emulated by QEMU.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Model {
    /// virtio-net, with queue pairs.
    Virtio,
    /// Intel 82540EM.
    E1000,
    /// Intel 82574.
    E1000e,
    /// VMware vmxnet3.
    Vmxnet3,
    /// Intel 82576, if QEMU has it (8.0 and later).
    Igb,
}

impl Model {
    /// All models.
    pub const ALL: [Model; 5] =
        [Model::Virtio, Model::E1000, Model::E1000e, Model::Vmxnet3, Model::Igb];

    /// Common name of the card.
    pub fn name(self) -> &'static str {
        match self {
            Model::Virtio => "virtio",
            Model::E1000 => "e1000",
            Model::E1000e => "e1000e",
            Model::Vmxnet3 => "vmxnet3",
            Model::Igb => "igb",
        }
    }

    /// Name of QEMU's device.
    pub(crate) fn device(self) -> &'static str {
        match self {
            Model::Virtio => "virtio-net-pci",
            other => other.name(),
        }
    }

    /// Name of Linux's module.
    pub fn module(self) -> &'static str {
        match self {
            Model::Virtio => "virtio_net",
            other => other.name(),
        }
    }

    /// The function of Linux that takes frames from the card: the point at which batches are
    /// gathered.
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

/// Destination of a card's frames. The caller keeps its descriptors open until the machine has
/// started.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Backend {
    /// A Unix datagram socket, one frame per datagram: QEMU's end of a pair.
    Datagram(RawFd),
    /// A tap: the descriptors of its queues.
    Tap(Vec<RawFd>),
}

/// A network card for traffic.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Nic {
    /// Model of the card.
    pub model: Model,
    /// MAC address.
    pub mac: String,
    /// Queue pairs (virtio only).
    pub queues: u16,
    /// Destination of its frames.
    pub backend: Backend,
}

impl Nic {
    /// Returns QEMU's argument for the backend.
    pub(crate) fn netdev(&self, number: usize) -> String {
        match &self.backend {
            Backend::Datagram(socket) => {
                format!("dgram,id=data{number},local.type=fd,local.str={socket}")
            }
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
            Backend::Datagram(socket) => std::slice::from_ref(socket),
            Backend::Tap(queues) => queues,
        }
    }

    /// Returns QEMU's argument for the card.
    pub(crate) fn device(&self, number: usize) -> String {
        let mut text = format!("{},netdev=data{number},mac={}", self.model.device(), self.mac);
        if self.model == Model::Virtio && self.queues > 1 {
            text.push_str(&format!(",mq=on,vectors={}", 2 * self.queues + 2));
        }
        text
    }
}
