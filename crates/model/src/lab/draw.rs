//! Text diagram of a lab: senders and receiver on the left, the DUT on the right, a cable between
//! each pair of interfaces. At most 80 columns wide.

use super::{Cable, Lab, LabHost, LabInterface, Role, Side};

/// Columns of a box, with its borders.
const BOX: usize = 35;
/// Columns of text within it.
const INNER: usize = BOX - 4;
/// Columns of a cable.
const GAP: usize = 10;

impl Lab {
    /// Returns the lab as a text diagram, each line terminated.
    pub fn draw(&self) -> String {
        let mut rows = Rows::default();
        let dut = self.hosts.iter().find(|host| host.is(Role::Dut));
        let others: Vec<&LabHost> = self.hosts.iter().filter(|host| !host.is(Role::Dut)).collect();
        let mut drawn: Vec<&str> = Vec::new();
        for (at, &host) in others.iter().enumerate() {
            let heading = about(host);
            let heading_of_dut = match (at, dut) {
                (0, Some(dut)) => {
                    rows.push(top(&host.name), "", top(&dut.name));
                    about(dut)
                }
                _ => {
                    rows.push(top(&host.name), "", side_of_box(""));
                    Vec::new()
                }
            };
            rows.block(&heading, ["", ""], &heading_of_dut);
            for interface in &host.interfaces {
                rows.push(side_of_box(""), "", side_of_box(""));
                let cable = self.cables.iter().find(|cable| {
                    cable.far.host == host.name && cable.far.interface == interface.name
                });
                let near = cable.zip(dut).and_then(|(cable, dut)| at_dut(cable, dut, &mut drawn));
                let joint = joint(cable, interface.side);
                let joint = joint.each_ref().map(String::as_str);
                rows.block(&lines_of(interface), joint, &near.unwrap_or_default());
            }
            let last = at + 1 == others.len();
            rows.push(bottom(), "", if last { bottom() } else { side_of_box("") });
            if !last {
                rows.push(" ".repeat(BOX), "", side_of_box(""));
            }
        }
        rows.text
    }
}

/// Returns the description of a host in its box, below the name.
fn about(host: &LabHost) -> Vec<String> {
    let mut words: Vec<String> = host
        .roles
        .iter()
        .map(|role| match role {
            Role::Dut => "device under test".to_owned(),
            role => role.name().to_owned(),
        })
        .collect();
    words.extend(host.system.map(|system| system.uname().to_owned()));
    let reached = match &host.ssh {
        Some(destination) => format!("ssh {destination}"),
        None => "this machine".to_owned(),
    };
    [words.join(", "), reached].iter().flat_map(|line| broken(line, "")).collect()
}

/// Returns the DUT's end of a cable: in full the first time it is drawn.
fn at_dut<'a>(cable: &'a Cable, dut: &LabHost, drawn: &mut Vec<&'a str>) -> Option<Vec<String>> {
    let name = cable.dut.interface.as_str();
    if drawn.contains(&name) {
        return Some(broken(&format!("{name} (as above)"), "  "));
    }
    drawn.push(name);
    dut.interfaces.iter().find(|interface| interface.name == name).map(lines_of)
}

fn lines_of(interface: &LabInterface) -> Vec<String> {
    let mut lines = broken(&interface.name, "  ");
    let mac = interface.mac.map(|mac| mac.to_string());
    let addresses = interface.addresses.iter().map(ToString::to_string);
    for line in mac.into_iter().chain(addresses) {
        lines.extend(broken(&format!("  {line}"), "    "));
    }
    lines
}

/// Returns a cable, and the text below it.
fn joint(cable: Option<&Cable>, side: Side) -> [String; 2] {
    let Some(cable) = cable else { return [String::new(), String::new()] };
    let line = match side {
        Side::Sender => format!("{}▶", "═".repeat(GAP - 1)),
        Side::Receiver => format!("◀{}", "═".repeat(GAP - 1)),
    };
    let switch = cable.switch.as_deref().unwrap_or_default();
    let short = match switch.chars().count() > GAP {
        true => switch.chars().take(GAP - 1).chain(['…']).collect(),
        false => switch.to_owned(),
    };
    [line, format!("{short:^GAP$}")]
}

/// Breaks text into lines that fit into a box; continuation lines are indented.
fn broken(text: &str, indent: &str) -> Vec<String> {
    let mut lines = vec![String::new()];
    let mut columns = 0;
    for c in text.chars() {
        if columns == INNER {
            lines.push(indent.to_owned());
            columns = indent.chars().count();
        }
        if let Some(line) = lines.last_mut() {
            line.push(c);
        }
        columns += 1;
    }
    lines
}

fn top(name: &str) -> String {
    let name: String = match name.chars().count() > INNER - 2 {
        true => name.chars().take(INNER - 3).chain(['…']).collect(),
        false => name.to_owned(),
    };
    let rest = "─".repeat(BOX - 5 - name.chars().count());
    format!("┌─ {name} {rest}┐")
}

fn bottom() -> String {
    format!("└{}┘", "─".repeat(BOX - 2))
}

fn side_of_box(text: &str) -> String {
    format!("│ {text:INNER$} │")
}

/// The diagram, row by row.
#[derive(Default)]
struct Rows {
    text: String,
}

impl Rows {
    fn push(&mut self, left: String, joint: &str, right: String) {
        self.text += format!("{left}{joint:GAP$}{right}").trim_end();
        self.text.push('\n');
    }

    /// Adds lines side by side, with a cable at the first ones.
    fn block(&mut self, left: &[String], joint: [&str; 2], right: &[String]) {
        let line =
            |lines: &[String], at: usize| side_of_box(lines.get(at).map_or("", String::as_str));
        let named = joint.iter().rposition(|joint| !joint.trim().is_empty()).map_or(0, |at| at + 1);
        for at in 0..left.len().max(right.len()).max(named) {
            self.push(line(left, at), joint.get(at).copied().unwrap_or(""), line(right, at));
        }
    }
}
