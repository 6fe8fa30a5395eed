//! The diagram in a configuration's comments: a box for each machine, with its interfaces, their
//! addresses and MACs. Only the diagram names the interfaces of the DUT.

use crate::lab::{InterfaceAddress, Mac, Role};

/// Minimum number of dashes in a box's border.
const BORDER_MIN: usize = 5;

/// One box.
#[derive(Debug, Default)]
pub(super) struct DiagramBox {
    columns: (usize, usize),
    /// Lines above the first interface: kind and name of the machine.
    pub(super) labels: Vec<String>,
    pub(super) interfaces: Vec<DrawnInterface>,
    /// Other lines: routes, files.
    pub(super) others: Vec<String>,
}

/// One interface in a box.
#[derive(Clone, Debug)]
pub(super) struct DrawnInterface {
    pub(super) name: String,
    pub(super) mac: Option<Mac>,
    pub(super) addresses: Vec<InterfaceAddress>,
}

impl DiagramBox {
    fn mentions(&self, words: &str) -> bool {
        self.labels.join(" ").to_lowercase().contains(words)
    }

    /// True for a machine with this role. A tunnel's endpoint has none.
    pub(super) fn is(&self, role: Role) -> bool {
        match role {
            Role::Dut => self.mentions("under test"),
            _ if self.mentions("under test") || self.is_endpoint() => false,
            Role::Sender => self.mentions("generator"),
            Role::Receiver => self.mentions("receiver"),
        }
    }

    /// True for a machine between DUT and receiver.
    pub(super) fn is_endpoint(&self) -> bool {
        self.mentions("endpoint")
    }

    /// True for a machine that only passes packets on.
    pub(super) fn is_switch(&self) -> bool {
        let has_role = [Role::Dut, Role::Sender, Role::Receiver].iter().any(|&role| self.is(role));
        self.interfaces.is_empty() && !has_role && !self.labels.is_empty()
    }

    /// Returns the machine's name: the first line that is a name.
    pub(super) fn name(&self) -> Option<&str> {
        let name = self.labels.iter().map(String::as_str).find(|label| {
            let plain = |c: char| c.is_ascii_alphanumeric() || "._-".contains(c);
            label.starts_with(|c: char| c.is_ascii_alphabetic()) && label.chars().all(plain)
        });
        name.filter(|name| !["receiver", "generator"].contains(&name.to_lowercase().as_str()))
    }

    pub(super) fn interface(&self, name: &str) -> Option<&DrawnInterface> {
        self.interfaces.iter().find(|interface| interface.name == name)
    }

    fn line(&mut self, text: &str, open: &mut bool) {
        let bare = text.trim_start_matches('(').trim_end_matches(')');
        if text.is_empty() || text.chars().all(|c| "<>=-".contains(c)) {
            return;
        }
        if let Some((name, address)) = interface_of(text) {
            let addresses = vec![address];
            self.interfaces.push(DrawnInterface { name, mac: None, addresses });
            *open = true;
            return;
        }
        let current = self.interfaces.last_mut().filter(|_| *open);
        match (current, text.parse::<InterfaceAddress>(), bare.parse::<Mac>()) {
            (Some(interface), Ok(address), _) => interface.addresses.push(address),
            (Some(interface), _, Ok(mac)) if interface.mac.is_none() => interface.mac = Some(mac),
            _ => {
                *open = false;
                let list =
                    if self.interfaces.is_empty() { &mut self.labels } else { &mut self.others };
                list.push(text.to_owned());
            }
        }
    }
}

/// `cxl0: 198.18.0.10/24`.
fn interface_of(text: &str) -> Option<(String, InterfaceAddress)> {
    let (name, address) = text.split_once(": ")?;
    let plain = name.bytes().all(|byte| byte.is_ascii_alphanumeric() || b"._-".contains(&byte));
    let is_name = plain && name.starts_with(|c: char| c.is_ascii_alphabetic());
    is_name.then_some((name.to_owned(), address.trim().parse().ok()?))
}

/// Returns the boxes of the first diagram among comments, from left to right.
pub(super) fn boxes<'a>(comments: impl Iterator<Item = &'a str>) -> Vec<DiagramBox> {
    let mut boxes: Vec<DiagramBox> = Vec::new();
    // For each box, true if its last line was about its last interface.
    let mut open: Vec<bool> = Vec::new();
    for line in comments {
        let line: Vec<char> = line.chars().collect();
        if boxes.is_empty() {
            boxes = borders(&line);
            open = vec![false; boxes.len()];
            continue;
        }
        for (start, end) in cells(&line) {
            let text: String = line[start..end].iter().collect();
            let Some(at) = boxes.iter().position(|drawn| covers(drawn.columns, (start, end)))
            else {
                continue;
            };
            boxes[at].line(text.trim(), &mut open[at]);
        }
    }
    boxes
}

/// Returns the boxes whose upper borders `+------+` a line draws.
fn borders(line: &[char]) -> Vec<DiagramBox> {
    let corners: Vec<usize> = (0..line.len()).filter(|&at| line[at] == '+').collect();
    let pairs = corners.windows(2).map(|pair| (pair[0] + 1, pair[1]));
    pairs
        .filter(|&(start, end)| {
            end - start >= BORDER_MIN && line[start..end].iter().all(|&c| c == '-')
        })
        .map(|columns| DiagramBox { columns, ..DiagramBox::default() })
        .collect()
}

/// Returns the cells between two borders of a line.
fn cells(line: &[char]) -> Vec<(usize, usize)> {
    let bars: Vec<usize> = (0..line.len()).filter(|&at| "|+".contains(line[at])).collect();
    bars.windows(2).map(|pair| (pair[0] + 1, pair[1])).collect()
}

/// True if most of a cell is within a box: hand-drawn diagrams are off by a column.
fn covers(drawn: (usize, usize), cell: (usize, usize)) -> bool {
    let shared = drawn.1.min(cell.1).saturating_sub(drawn.0.max(cell.0));
    shared > 0 && 2 * shared > cell.1 - cell.0 && 2 * shared > drawn.1 - drawn.0
}

#[cfg(test)]
mod tests {
    use super::*;

    const DRAWING: &str = "\
 text before
+-----------------------+ +-------+  +------------------+
|   Device under test   | | Acme  |  | Packet generator |
|         dut1          | |  S1   |  |   and receiver   |
|   em0: 198.18.0.1/24  |=|   <   |=>| em0: 198.18.0.2/24 |
|        2001:2::1/64   | |       |  | 2001:2::2/64     |
|  (02:00:00:00:00:01)  | +-------+  | 02:00:00:00:00:03 |
|                       |            |                  |
|   em1: 198.19.0.1/24  |            | /boot/loader.conf: |
|   static routes       |            | hw.x=1           |
| 198.18.0.0/16 => 198.18.0.2 |      |                  |
+-----------------------+            +------------------+
 text behind";

    #[test]
    fn boxes_contain_their_interfaces() {
        let boxes = boxes(DRAWING.lines());
        assert_eq!(boxes.len(), 3);
        let [dut, switch, peer] = [&boxes[0], &boxes[1], &boxes[2]];
        assert_eq!(dut.labels, ["Device under test", "dut1"]);
        assert!(dut.is(Role::Dut) && !dut.is(Role::Sender) && dut.name() == Some("dut1"));
        let names: Vec<&str> = dut.interfaces.iter().map(|i| i.name.as_str()).collect();
        assert_eq!(names, ["em0", "em1"]);
        let em0 = &dut.interfaces[0];
        assert_eq!(em0.mac.map(|mac| mac.to_string()).as_deref(), Some("02:00:00:00:00:01"));
        assert_eq!(em0.addresses.len(), 2);
        assert_eq!((dut.interfaces[1].mac, dut.others.len()), (None, 2));
        assert!(switch.is_switch() && switch.name() == Some("Acme"));
        assert!(peer.is(Role::Sender) && peer.is(Role::Receiver) && !peer.is_switch());
        assert_eq!(peer.name(), None);
        assert_eq!(peer.interfaces[0].addresses.len(), 2);
        assert_eq!(peer.others, ["/boot/loader.conf:", "hw.x=1"]);
    }

    #[test]
    fn text_without_a_diagram_has_no_boxes() {
        assert!(boxes("some | text + more".lines()).is_empty());
        assert!(boxes("".lines()).is_empty());
    }
}
