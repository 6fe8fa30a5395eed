//! Firewall rules as lists of lines: pf.conf(5), ipf(5), ipfw(8) scripts.

/// Returns the non-empty lines without comments, with blanks squeezed and continued lines joined.
pub(super) fn lines(text: &str) -> Vec<String> {
    let joined = text.replace("\r\n", "\n").replace("\\\n", " ");
    joined
        .lines()
        .map(|line| without_comment(line).split_whitespace().collect::<Vec<_>>().join(" "))
        .filter(|line| !line.is_empty())
        .collect()
}

/// Returns the lines of a value that are rules, without macros, options and commands that flush
/// previous rules.
pub(super) fn rules(value: &str) -> Vec<&str> {
    value.lines().filter(|line| is_rule(line)).collect()
}

fn is_rule(line: &str) -> bool {
    let first = line.split(' ').next().unwrap_or_default();
    let assigns = first.contains('=') || line.split(' ').nth(1) == Some("=");
    let flushes = line.split(' ').any(|word| word == "flush");
    !assigns && !flushes && first != "set"
}

/// Returns the line up to an unquoted `#`.
pub(super) fn without_comment(line: &str) -> &str {
    let mut quoted = false;
    for (at, character) in line.char_indices() {
        match character {
            '"' => quoted = !quoted,
            '#' if !quoted => return &line[..at],
            _ => {}
        }
    }
    line
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn rules_exclude_comments_macros_options_and_flushes() {
        let script = "#!/bin/sh\nfwcmd=\"/sbin/ipfw\"\n# Flush\n${fwcmd} -f flush\n\
                      ${fwcmd} add 3000  allow ip from any \\\n  to any keep-state # all\n";
        let all = lines(script);
        assert_eq!(all.len(), 3);
        let joined = all.join("\n");
        let expected = "${fwcmd} add 3000 allow ip from any to any keep-state";
        assert_eq!(rules(&joined), [expected]);
        assert_eq!(rules("set skip on lo0\next = \"cxl0\"\npass"), ["pass"]);
    }

    #[test]
    fn without_comment_keeps_a_quoted_hash() {
        assert_eq!(without_comment("a=\"b#c\" # d"), "a=\"b#c\" ");
    }
}
