//! The README of a result: a title, bullets, fences, links.

use super::Block;
use serde::Serialize;

/// Parsed content of a README.
#[derive(Clone, Debug, Default, PartialEq, Serialize)]
pub struct Readme {
    /// Its first line.
    pub title: Option<String>,
    /// The list below the title: device, hardware and traffic.
    pub setup: Vec<String>,
    /// Its quoted blocks of ministat output, in order.
    pub blocks: Vec<Block>,
    /// Its links and pictures, in order.
    pub links: Vec<Link>,
}

/// A link, `[text](target)` or `[text] (target)`.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub struct Link {
    /// Line of the README, from 1.
    pub line: usize,
    /// Its text.
    pub text: String,
    /// A path relative to the README, or a URL.
    pub target: String,
    /// Kind of the target.
    pub kind: LinkKind,
}

/// Kind of a link target, by its name.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize)]
pub enum LinkKind {
    /// A picture that the README shows.
    Figure,
    /// A flame graph.
    FlameGraph,
    /// A profile as text.
    Profile,
    /// Another site.
    Web,
    /// Any other file.
    File,
}

impl Readme {
    /// Reads the text of a README.
    pub fn parse(text: &str) -> Readme {
        let lines: Vec<&str> = text.lines().map(|line| line.trim_end_matches('\r')).collect();
        let mut readme = Readme::default();
        let (mut heading, mut in_setup): (Option<&str>, bool) = (None, true);
        let mut index = 0;
        while let Some(line) = lines.get(index) {
            index += 1;
            if is_fence(line) {
                let inner = &lines[index..];
                let length = inner.iter().position(|line| is_fence(line)).unwrap_or(inner.len());
                let above = heading.or(readme.title.as_deref()).unwrap_or_default();
                readme.blocks.extend(Block::parse(index + 1, above, &inner[..length]));
                (heading, in_setup) = (None, false);
                index += length + 1;
                continue;
            }
            readme.links.extend(links(index, line));
            let plain = line.trim();
            if plain.is_empty() || plain.starts_with("![") {
                continue;
            }
            if readme.title.is_none() {
                readme.title = Some(plain.trim_start_matches('#').trim().to_owned());
            } else if let Some(item) = bullet(plain) {
                if in_setup {
                    readme.setup.push(item.to_owned());
                }
                // Only an item that ends with a colon introduces the fence below it.
                heading = item.ends_with(':').then_some(item);
            } else if line.starts_with(' ')
                && in_setup
                && let Some(item) = readme.setup.last_mut()
            {
                item.push(' ');
                item.push_str(plain);
            } else {
                (heading, in_setup) = (Some(plain.trim_start_matches('#').trim()), false);
            }
        }
        readme
    }
}

fn is_fence(line: &str) -> bool {
    let line = line.trim_start();
    line.starts_with("```") || line.starts_with("~~~")
}

fn bullet(line: &str) -> Option<&str> {
    ["- ", "* ", "+ "].iter().find_map(|mark| line.strip_prefix(mark)).map(str::trim)
}

/// Returns the links in a line.
fn links(number: usize, line: &str) -> Vec<Link> {
    let mut links = Vec::new();
    let mut rest = line;
    while let Some((before, after)) = rest.split_once('[') {
        rest = after;
        let Some((text, tail)) = after.split_once(']') else { break };
        let tail = tail.strip_prefix(' ').unwrap_or(tail);
        let Some((target, tail)) = tail.strip_prefix('(').and_then(|t| t.split_once(')')) else {
            continue;
        };
        let kind = kind(target, before.ends_with('!'));
        links.push(Link { line: number, text: text.into(), target: target.trim().into(), kind });
        rest = tail;
    }
    links
}

fn kind(target: &str, shown: bool) -> LinkKind {
    let target = target.to_ascii_lowercase();
    let profiles = ["pmcstat", "gprof", "pmc."];
    if shown || target.ends_with(".png") {
        LinkKind::Figure
    } else if target.ends_with(".svg") {
        LinkKind::FlameGraph
    } else if profiles.iter().any(|word| target.contains(word)) || target.ends_with(".graph") {
        LinkKind::Profile
    } else if target.contains("://") {
        LinkKind::Web
    } else {
        LinkKind::File
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const TABLE: &str = "x   3             1             8             4     4.3333333     3.51";

    #[test]
    fn parse_reads_setup_blocks_and_links() {
        let text = format!(
            "# Impact of a patch\r\n  - Some server\n    with a card\n  * 2000 flows\n\n\
             ![Impact](graph.png)\n\n```\n{TABLE}\n```\nIPv6:\n\n```text\n{TABLE}\n\n```\n\
             Profiles:\n- [gprof] (pmcstat-gprof-1.txt)\n- [flames](bench.1.svg) and \
             [a site](https://example.org/x)\n```\n{TABLE}"
        );
        let readme = Readme::parse(&text);
        assert_eq!(readme.title.as_deref(), Some("Impact of a patch"));
        assert_eq!(readme.setup, ["Some server with a card", "2000 flows"]);
        let blocks: Vec<_> = readme.blocks.iter().map(|b| (b.line, b.heading.as_str())).collect();
        assert_eq!(blocks, [(9, "Impact of a patch"), (14, "IPv6:"), (21, "Impact of a patch")]);
        let links: Vec<_> = readme.links.iter().map(|l| (l.target.as_str(), l.kind)).collect();
        assert_eq!(
            links,
            [
                ("graph.png", LinkKind::Figure),
                ("pmcstat-gprof-1.txt", LinkKind::Profile),
                ("bench.1.svg", LinkKind::FlameGraph),
                ("https://example.org/x", LinkKind::Web),
            ]
        );
    }

    #[test]
    fn heading_is_the_nearest_text_above_a_fence() {
        let heading = |above: &str| {
            let text = format!("title\n- setup\n\ntext\n{above}\n```\n{TABLE}\n```\n");
            Readme::parse(&text).blocks.remove(0).heading
        };
        assert_eq!(heading("## With pf\n\n![x](y.png)\n"), "With pf");
        assert_eq!(heading("- with pf:"), "with pf:");
        assert_eq!(heading("- [a](b.svg)"), "title");
        assert_eq!(heading(""), "text");
    }

    #[test]
    fn links_ignores_other_brackets() {
        assert_eq!(links(1, "a[0] = [b] c (d) [e"), []);
        assert_eq!(Readme::parse(""), Readme::default());
    }
}
