//! Reads the text of gprof(1), BSD's (also the output of `pmcstat -g` profiles) and GNU's: a flat
//! profile and a call graph, in either order.
//!
//! The text does not contain stacks. `pmcstat` writes one second per sample. Cycles are also listed
//! as a whole; only their members are read. Functions of the same name, as static ones of several
//! files, become one function with the sum of their costs.

use super::{Notes, lines};
use crate::flat::{Edge, FlatFunction, FlatProfile};
use std::collections::{BTreeMap, HashMap, HashSet};

/// Returns true for the headings of gprof's listings.
pub(super) fn is_heading(line: &str) -> bool {
    let text = line.trim();
    matches!(text, "call graph profile:" | "flat profile:" | "Flat profile:")
        || is_graph_heading(text)
        || is_flat_heading(text)
}

fn is_graph_heading(text: &str) -> bool {
    text.starts_with("index")
        && text.contains("self")
        && text.contains("name")
        && (text.contains("%time") || text.contains("% time"))
}

fn is_flat_heading(text: &str) -> bool {
    text.starts_with("time") && text.contains("seconds   seconds") && text.ends_with("name")
}

pub(super) fn read(text: &str, notes: &mut Notes) -> FlatProfile {
    notes.unit = "seconds".to_owned();
    let mut reader = Reader::default();
    let mut part = Part::Start;
    let (mut flat, mut graph) = (false, false);
    for (number, line) in lines(text) {
        let trimmed = line.trim();
        if is_graph_heading(trimmed) {
            (part, graph) = (Part::Graph, true);
            continue;
        }
        if is_flat_heading(trimmed) {
            (part, flat) = (Part::Flat, true);
            continue;
        }
        // Explanation before or after a table.
        let prose = trimmed.starts_with("Index by function")
            || trimmed.starts_with("This table describes")
            || trimmed.starts_with("%         the percentage")
            || is_heading(line);
        if prose || line.contains('\u{c}') {
            part = Part::Prose;
        }
        let known = match part {
            // The output of pmcstat(8) may begin with the line `None`.
            Part::Start => trimmed.is_empty() || trimmed == "None",
            Part::Prose => !notes.is_foreign(line),
            Part::Flat => trimmed.is_empty() || reader.flat_row(trimmed),
            Part::Graph => reader.graph_line(line),
        };
        if !known {
            notes.unknown(number, line);
        }
    }
    for (missing, what) in [(!flat, "flat profile"), (!graph, "call graph")] {
        if missing {
            notes.remark(format!("there is no {what}: the file may be cut off"));
        }
    }
    let shared = reader.functions.values().filter(|function| function.is_shared()).count();
    if shared > 0 {
        notes.remark(format!("{shared} names belong to several functions, whose costs were added"));
    }
    reader.finish()
}

/// Listing that a line belongs to.
enum Part {
    /// Before the first heading.
    Start,
    /// Explanations of a table.
    Prose,
    Flat,
    Graph,
}

#[derive(Default)]
struct Reader {
    functions: HashMap<String, Function>,
    /// Parents of the next function, or children of the previous one.
    pending: Vec<Row>,
    current: Option<Name>,
    /// True within a cycle as a whole, which does not call its members.
    in_cycle: bool,
    /// Calls by the names of caller and callee.
    edges: BTreeMap<(String, String), Edge>,
    known: HashSet<(Name, Name)>,
}

/// Name of a function.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
struct Name {
    text: String,
    /// Number in the call graph, which distinguishes functions of one name. `None` if it lacks.
    index: Option<u32>,
}

/// Functions of one name, in both listings.
#[derive(Default)]
struct Function {
    flat: Option<Costs>,
    graph: Option<Costs>,
}

/// Costs of functions of one name in a listing.
struct Costs {
    own: f64,
    descendants: f64,
    /// `None` if a number is missing or overflowed.
    calls: Option<u64>,
    /// Number of functions.
    functions: usize,
}

/// Parent or child in the call graph.
struct Row {
    name: Name,
    own: f64,
    descendants: f64,
    calls: Option<u64>,
}

impl Reader {
    /// Parses `19.0  246392.00 246392.00   256642   960.06  1083.78  name [8]`.
    fn flat_row(&mut self, line: &str) -> bool {
        let (numbers, name) = numbers(line, 6);
        let [_, _, own, rest @ ..] = numbers.as_slice() else {
            return false;
        };
        let (Ok(own), Some(name)) = (own.parse::<f64>(), name_of(name)) else {
            return false;
        };
        let calls = rest.first().and_then(|calls| calls.parse().ok());
        let function = self.functions.entry(name.text).or_default();
        Costs::add(&mut function.flat, own, 0.0, calls);
        true
    }

    fn graph_line(&mut self, line: &str) -> bool {
        let text = line.trim();
        if text.is_empty() || text == "<spontaneous>" {
            return true;
        }
        // The heading has one line above and one below.
        if text.starts_with("called/total") {
            return true;
        }
        if text.starts_with("-----") {
            self.end_of_block();
            return true;
        }
        match text.starts_with('[') {
            true => self.primary(text),
            false => match row(text) {
                Some(row) => {
                    self.pending.push(row);
                    true
                }
                None => false,
            },
        }
    }

    /// Parses `[4]     78.7 130391.00   892591.57  821314         ip_tryforward [4]`.
    fn primary(&mut self, line: &str) -> bool {
        let Some((_, rest)) = line.split_once(']') else {
            return false;
        };
        let (numbers, name) = numbers(rest, 4);
        let [_, own, descendants, ..] = numbers.as_slice() else {
            return false;
        };
        let (Ok(own), Ok(descendants)) = (own.parse::<f64>(), descendants.parse::<f64>()) else {
            return false;
        };
        let parents = std::mem::take(&mut self.pending);
        self.in_cycle = name.contains("as a whole>");
        let Some(name) = name_of(name).filter(|_| !self.in_cycle) else {
            return self.in_cycle;
        };
        let calls = numbers.get(3).and_then(|calls| first_number(calls));
        let function = self.functions.entry(name.text.clone()).or_default();
        Costs::add(&mut function.graph, own, descendants, calls);
        for parent in parents {
            self.edge(parent.name.clone(), name.clone(), &parent);
        }
        self.current = Some(name);
        true
    }

    fn end_of_block(&mut self) {
        let children = std::mem::take(&mut self.pending);
        if let Some(caller) = self.current.take() {
            for child in children {
                self.edge(caller.clone(), child.name.clone(), &child);
            }
        }
        self.in_cycle = false;
    }

    /// Adds a call. Each is listed twice, with its caller and with its callee.
    fn edge(&mut self, caller: Name, callee: Name, row: &Row) {
        let Row { own, descendants, calls, .. } = *row;
        if !self.known.insert((caller.clone(), callee.clone())) {
            return;
        }
        let (caller, callee) = (caller.text, callee.text);
        match self.edges.get_mut(&(caller.clone(), callee.clone())) {
            Some(edge) => {
                edge.own += own;
                edge.descendants += descendants;
                edge.calls = sum(edge.calls, calls);
            }
            None => {
                let key = (caller.clone(), callee.clone());
                self.edges.insert(key, Edge { caller, callee, own, descendants, calls });
            }
        }
    }

    fn finish(mut self) -> FlatProfile {
        self.end_of_block();
        let functions = self.functions.into_iter().map(|(name, function)| function.flat(name));
        let mut functions: Vec<FlatFunction> = functions.collect();
        functions.sort_by(|a, b| b.own.total_cmp(&a.own).then_with(|| a.name.cmp(&b.name)));
        FlatProfile { functions, edges: self.edges.into_values().collect() }
    }
}

impl Function {
    /// Returns true if several functions have the name.
    fn is_shared(&self) -> bool {
        [&self.flat, &self.graph].into_iter().flatten().any(|costs| costs.functions > 1)
    }

    fn flat(self, name: String) -> FlatFunction {
        let flat_own = self.flat.as_ref().map_or(0.0, |costs| costs.own);
        let flat_calls = self.flat.and_then(|costs| costs.calls);
        let total = self.graph.as_ref().map(|costs| costs.own + costs.descendants);
        // The flat profile, if present, has the same value.
        let own = match &self.graph {
            Some(costs) if flat_own == 0.0 => costs.own,
            _ => flat_own,
        };
        let calls = flat_calls.or(self.graph.and_then(|costs| costs.calls));
        FlatFunction { name, own, total, calls }
    }
}

impl Costs {
    /// Adds a function to the costs of its name.
    fn add(costs: &mut Option<Costs>, own: f64, descendants: f64, calls: Option<u64>) {
        match costs {
            Some(costs) => {
                costs.own += own;
                costs.descendants += descendants;
                costs.calls = sum(costs.calls, calls);
                costs.functions += 1;
            }
            None => *costs = Some(Costs { own, descendants, calls, functions: 1 }),
        }
    }
}

/// Sum of two numbers of calls. `None` if one is unknown.
fn sum(a: Option<u64>, b: Option<u64>) -> Option<u64> {
    Some(a?.saturating_add(b?))
}

/// Parses `16365.00   454139.52  308315/308315      ip_findroute [5]`; within a cycle only the
/// number of calls is present.
fn row(line: &str) -> Option<Row> {
    let (numbers, name) = numbers(line, 3);
    let name = name_of(name)?;
    let (own, descendants, calls) = match numbers.as_slice() {
        [calls] => (0.0, 0.0, calls),
        [own, descendants, calls] => (own.parse().ok()?, descendants.parse().ok()?, calls),
        _ => return None,
    };
    Some(Row { name, own, descendants, calls: first_number(calls) })
}

/// Splits off up to `most` numbers (including `3/7`, `96+26`, `100.00%`).
fn numbers(line: &str, most: usize) -> (Vec<&str>, &str) {
    let mut rest = line.trim();
    let mut numbers = Vec::new();
    while numbers.len() < most {
        let (token, after) = rest.split_once(char::is_whitespace).unwrap_or((rest, ""));
        // Call counts that overflowed are negative.
        let digits = token.strip_prefix('-').unwrap_or(token);
        let is_number = digits.starts_with(|c: char| c.is_ascii_digit())
            && token.chars().all(|c| c.is_ascii_digit() || "./+-%".contains(c));
        if !is_number {
            break;
        }
        numbers.push(token);
        rest = after.trim_start();
    }
    (numbers, rest)
}

/// `308315` of `308315/308320` or `308315+5`. `None` if it overflowed.
fn first_number(text: &str) -> Option<u64> {
    text.split(['/', '+']).next()?.parse().ok()
}

/// A name without its cycle, and its index: `f <cycle 4> [2]`, `f (1)`.
fn name_of(text: &str) -> Option<Name> {
    let mut name = text.trim();
    let mut index = None;
    if let Some((before, last)) = name.rsplit_once(char::is_whitespace) {
        let inner = last.trim_matches(['[', ']', '(', ')']);
        let number = inner.parse::<u32>().ok().filter(|_| inner.len() + 2 == last.len());
        if number.is_some() {
            (name, index) = (before.trim_end(), number);
        }
    }
    if let Some((before, _)) = name.split_once(" <cycle ") {
        name = before.trim_end();
    }
    let is_name = !name.is_empty() && name != "<spontaneous>";
    is_name.then(|| Name { text: name.to_owned(), index })
}

#[cfg(test)]
mod tests {
    use crate::{Content, FlatProfile, Format, Profile, read};

    const BSD: &str = "\
call graph profile:
          The sum of self and descendents is the major sort

granularity: each sample hit covers 4 byte(s) for 0.00% of 100.00 seconds

                                  called/total       parents 
index  %time    self descendents  called+self    name    	index
                                  called/total       children

                                  -7                 ether_demux <cycle 4> [42]
               40.00       50.00       8/8           taskqueue_run [9]
[2]     90.0   40.00       50.00       8+2       ip_input <cycle 4> [2]
               50.00        0.00       5/6           ip_tryforward [3]
                                  9                  ether_demux <cycle 4> [42]

-----------------------------------------------

[30]     1.2   10.00        0.00       9+1       <cycle 4 as a whole>	[30]
                9.00        0.00       9             ip_input <cycle 4> [2]

-----------------------------------------------

                                                     <spontaneous>
[14]    10.0   10.00        0.00                 rn_match [14]

-----------------------------------------------

flat profile:

 %         the percentage of the total running time of the
time       program used by this function.

  %   cumulative   self              self     total           
 time   seconds   seconds    calls  ms/call  ms/call  name    
 50.0      50.00    50.00        6   960.06  1083.78  ip_tryforward [3]
 40.0      90.00    40.00        8   960.06  1083.78  ip_input <cycle 4> [2]
 10.0     100.00    10.00        0  100.00%           rn_match [14]

Index by function name

 [355] PHYS_TO_VM_PAGE     [408] ffs_syncvnode
";

    fn flat(text: &str) -> (FlatProfile, Profile) {
        let profile = read(text.as_bytes()).unwrap();
        assert_eq!(profile.format, Format::Gprof);
        match profile.content.clone() {
            Content::Flat(flat) => (flat, profile),
            other => panic!("{other:?}"),
        }
    }

    #[test]
    fn gprof_bsd_functions_and_calls_are_read() {
        let (flat, profile) = flat(BSD);
        let functions: Vec<_> =
            flat.functions.iter().map(|f| (f.name.as_str(), f.own, f.total, f.calls)).collect();
        assert_eq!(
            functions,
            [
                ("ip_tryforward", 50.0, None, Some(6)),
                ("ip_input", 40.0, Some(90.0), Some(8)),
                ("rn_match", 10.0, Some(10.0), Some(0)),
            ]
        );
        let edges: Vec<_> = flat
            .edges
            .iter()
            .map(|e| (e.caller.as_str(), e.callee.as_str(), e.own, e.descendants, e.calls))
            .collect();
        assert_eq!(
            edges,
            [
                ("ether_demux", "ip_input", 0.0, 0.0, None),
                ("ip_input", "ether_demux", 0.0, 0.0, Some(9)),
                ("ip_input", "ip_tryforward", 50.0, 0.0, Some(5)),
                ("taskqueue_run", "ip_input", 40.0, 50.0, Some(8)),
            ]
        );
        assert_eq!((flat.total(), profile.unknown.count, profile.remarks), (100.0, 0, vec![]));
        assert_eq!(profile.unit, "seconds");
    }

    #[test]
    fn gprof_gnu_functions_and_calls_are_read() {
        let text = "\
Flat profile:

Each sample counts as 0.01 seconds.
  %   cumulative   self              self     total           
 time   seconds   seconds    calls  ms/call  ms/call  name    
 33.34      0.02     0.02     7208     0.00     0.00  open(int, char)
 16.67      0.03     0.01                             main

 %         the percentage of the total running time of the
time       program used by this function.

\t\t     Call graph (explanation follows)

index % time    self  children    called     name
                0.01    0.02       1/1           start [2]
[1]    100.0    0.01    0.02       1         main [1]
                0.02    0.00    7208/7208        open(int, char) [3]
-----------------------------------------------

 This table describes the call tree of the program, and was sorted by
";
        let (flat, profile) = flat(text);
        assert_eq!(flat.function("open(int, char)").unwrap().calls, Some(7208));
        assert_eq!(flat.function("main").unwrap().total, Some(0.03));
        assert_eq!((flat.edges.len(), profile.unknown.count, profile.remarks), (2, 0, vec![]));
    }

    #[test]
    fn gprof_functions_of_one_name_are_added() {
        let text = "\
Flat profile:

  %   cumulative   self              self     total           
 time   seconds   seconds    calls  ms/call  ms/call  name    
 50.00      0.50     0.50       10    50.00    50.00  lookup
 30.00      0.80     0.30        5    60.00    60.00  lookup
 20.00      1.00     0.20        1   200.00  1000.00  main

\t\t     Call graph (explanation follows)

index % time    self  children    called     name
[1]    100.0    0.20    0.80       1         main [1]
                0.50    0.00      10/10          lookup [2]
                0.30    0.00       5/5           lookup [3]
-----------------------------------------------
                0.50    0.00      10/10          main [1]
[2]     50.0    0.50    0.00      10         lookup [2]
-----------------------------------------------
                0.30    0.00       5/5           main [1]
[3]     30.0    0.30    0.00       5         lookup [3]
-----------------------------------------------
";
        let graph = &text[text.find("index").unwrap()..];
        for text in [text, graph] {
            let (flat, profile) = flat(text);
            let lookup = flat.function("lookup").unwrap();
            assert_eq!((lookup.own, lookup.total, lookup.calls), (0.8, Some(0.8), Some(15)));
            assert_eq!(flat.total(), 1.0);
            let [edge] = flat.edges.as_slice() else { panic!("{:?}", flat.edges) };
            assert_eq!((edge.own, edge.calls), (0.8, Some(15)));
            let notes = profile.notes().join("\n");
            assert!(notes.contains("1 names belong to several functions, whose costs"), "{notes}");
        }
    }

    #[test]
    fn gprof_truncated_file_keeps_the_call_graph() {
        let (flat, profile) = flat(&BSD[..BSD.find("flat profile").unwrap()]);
        assert_eq!(flat.function("ip_input").map(|f| f.own), Some(40.0));
        assert!(profile.remarks[0].contains("no flat profile"), "{:?}", profile.remarks);
    }
}
