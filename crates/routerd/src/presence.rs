//! Interfaces that go away and come back while the router runs.
//!
//! Their ports notice by themselves ([`fwdlab_netio::packet_socket::LastingPort`]); this module
//! reports it and forgets the link's hosts, which may have changed.

use super::{Running, left_out, ports};
use fwdlab_netio::packet_socket::{Presence, ReturnKind};
use std::sync::Arc;

/// An interface, and the changes reported so far.
pub(super) struct Watched {
    number: u8,
    presence: Arc<Presence>,
    losses: u64,
    returns: u64,
}

impl Watched {
    pub(super) fn new((number, presence): (u8, Arc<Presence>)) -> Watched {
        Watched { number, presence, losses: 0, returns: 0 }
    }
}

impl Running {
    /// Changes of interfaces, and files that failed, since the last call. To be called a few times
    /// per second: it also writes the log of dropped packets.
    pub fn news(&mut self) -> Vec<String> {
        self.follow_carriers();
        self.drop_log.iter().for_each(|log| log.flush());
        let (mut news, mut anew) = (Vec::new(), Vec::new());
        for losses in &self.losses {
            news.extend(losses.take_news().map(|why| {
                format!("{}: {why}; the router continues and tries again", losses.path())
            }));
        }
        // The counters list them from then on.
        let left_out = left_out(&self.locked()).filter(|_| !self.has_named_routes);
        if let Some(list) = left_out {
            news.push(format!("routes of the kernel that are not followed: {list}"));
            self.has_named_routes = true;
        }
        for watched in &mut self.watched {
            let (losses, returns) = (watched.presence.losses(), watched.presence.returns());
            let name = &self.interfaces[usize::from(watched.number)];
            if losses > watched.losses {
                news.push(format!("interface {name} is gone; the router goes on without it"));
            }
            if returns > watched.returns {
                let sockets = sockets(watched.presence.last_return());
                news.push(format!("interface {name} is there again, through {sockets}"));
                anew.push(watched.number);
            }
            (watched.losses, watched.returns) = (losses, returns);
        }
        for number in anew {
            for port in self.forget_hosts(number) {
                self.advertiser.iter().for_each(|advertiser| advertiser.begin_again(port));
            }
        }
        news
    }

    /// Names of the interfaces that are gone.
    pub(super) fn gone(&self) -> impl Iterator<Item = &str> {
        let gone = |watched: &&Watched| watched.presence.losses() > watched.presence.returns();
        let name = |watched: &Watched| self.interfaces[usize::from(watched.number)].as_str();
        self.watched.iter().filter(gone).map(name)
    }
}

/// Sockets of a returned interface, with what the user has to know about them.
fn sockets(kind: Option<ReturnKind>) -> String {
    let instead = match kind {
        Some(ReturnKind::Xsk) => return "AF_XDP".into(),
        Some(ReturnKind::InsteadOfXsk(why)) => format!(" in place of AF_XDP ({why})"),
        Some(ReturnKind::Packet) | None => String::new(),
    };
    let forwards = ports::kernel_forwards()
        .map(|setting| format!(", where the kernel forwards as well: sysctl -w {setting}=0"));
    format!("AF_PACKET{instead}{}", forwards.unwrap_or_default())
}
