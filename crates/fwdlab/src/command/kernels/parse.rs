//! Parsers for the output of apt's programs. `fixtures` contains the output of apt 2.6 (Debian 12),
//! 3.0 (Debian 13) and sid.

use fwdlab_vm::kernel::deb::Control;

/// A package that a mirror offers.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(super) struct Package {
    /// Name, version, and the other parts of the kernel that it depends on.
    pub(super) control: Control,
    /// Size of its file in bytes.
    pub(super) size: u64,
    /// Suites that contain it.
    pub(super) suites: Vec<String>,
}

/// Parses `apt-cache show NAME...` and `apt-cache madison NAME...` of the same packages.
pub(super) fn packages(show: &str, madison: &str) -> Vec<Package> {
    let suites = madison.lines().filter_map(of_madison).collect::<Vec<_>>();
    let mut found: Vec<Package> = Vec::new();
    for paragraph in show.split("\n\n") {
        let control = Control::parse(paragraph);
        // A package in several suites is shown once for each.
        if control.name.is_empty() || found.iter().any(|one| one.control == control) {
            continue;
        }
        let size = paragraph.lines().find_map(|line| line.strip_prefix("Size: "));
        let size = size.and_then(|size| size.trim().parse().ok()).unwrap_or_default();
        let of_it = suites
            .iter()
            .filter(|(name, version, _)| *name == control.name && *version == control.version);
        let suites = of_it.map(|(_, _, suite)| (*suite).to_owned()).collect();
        found.push(Package { control, size, suites });
    }
    found
}

/// Parses a line of `apt-cache madison`: package, version and suite, as in
/// `linux-image-6.1 | 6.1.1-1 | http://deb.example.org/debian bookworm/main amd64 Packages`.
fn of_madison(line: &str) -> Option<(&str, &str, &str)> {
    let mut columns = line.split('|').map(str::trim);
    let (name, version, source) = (columns.next()?, columns.next()?, columns.next()?);
    let mut words = source.split_ascii_whitespace();
    let suite = words.nth(1)?.split('/').next()?;
    (words.nth(1)? == "Packages").then_some((name, version, suite))
}

/// Reason why the lists of a suite are unavailable.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Reason {
    /// The mirror does not have the suite.
    Absent,
    /// The mirror has not renewed the suite in time.
    Expired,
    /// The keyring does not contain the keys that sign the suite.
    UnknownKey,
    /// Any other reason.
    Other,
}

/// A message of `apt-get update`.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct Trouble {
    /// The suite that it concerns; empty for other messages.
    pub(super) suite: String,
    /// Reason derived from the message.
    pub(super) reason: Reason,
    /// The message.
    pub(super) text: String,
}

/// Parses the errors and warnings of `apt-get update`. Keeps the most specific message for each of
/// `suites`.
pub(super) fn troubles(messages: &str, suites: &[String]) -> Vec<Trouble> {
    let mut found: Vec<Trouble> = Vec::new();
    for line in messages.lines() {
        let beginnings = ["E: ", "W: ", "Error: ", "Warning: "];
        let text = beginnings.iter().find_map(|begin| line.strip_prefix(begin));
        let Some(text) = text else { continue };
        let is_about = |suite: &&String| {
            text.contains(&format!(" {suite} ")) || text.contains(&format!("/{suite}/"))
        };
        let suite = suites.iter().find(is_about).cloned().unwrap_or_default();
        let trouble = Trouble { reason: reason(text), text: text.to_owned(), suite };
        match found.iter_mut().find(|one| one.suite == trouble.suite && !one.suite.is_empty()) {
            Some(one) if one.reason == Reason::Other => *one = trouble,
            Some(_) => {}
            None => found.push(trouble),
        }
    }
    found
}

fn reason(text: &str) -> Reason {
    let reasons = [
        ("does not have a Release file", Reason::Absent),
        ("is expired", Reason::Expired),
        ("NO_PUBKEY", Reason::UnknownKey),
        ("Missing key", Reason::UnknownKey),
    ];
    let found = reasons.into_iter().find(|(words, _)| text.contains(words));
    found.map_or(Reason::Other, |(_, reason)| reason)
}

/// Selects the settings of this machine's apt (`apt-config dump`) for reaching mirrors: proxies and
/// certificates.
pub(super) fn connection(config: &str) -> String {
    let parts = ["proxy", "::cainfo", "::sslcert", "::sslkey"];
    let is_kept = |line: &&str| {
        let name = line.split(' ').next().unwrap_or_default().to_ascii_lowercase();
        name.starts_with("acquire::http") && parts.iter().any(|part| name.contains(*part))
    };
    config.lines().filter(is_kept).map(|line| format!("{line}\n")).collect()
}

/// Finds the mirrors that this machine's apt uses for Debian and for its security updates,
/// in lines of `apt-get indextargets --format '$(REPO_URI) $(RELEASE)'`.
pub(super) fn mirrors(targets: &str, suites: &[&str]) -> Option<(String, String)> {
    let lines = || targets.lines().filter_map(|line| line.split_once(' '));
    let is_main = |suite: &str| suites.contains(&suite) && !suite.ends_with("-security");
    let (main, _) = lines().find(|(_, suite)| is_main(suite))?;
    let main = main.trim_end_matches('/').to_owned();
    let security = lines().find(|(_, suite)| suite.ends_with("-security"));
    let security = security.map(|(uri, _)| uri.trim_end_matches('/').to_owned());
    Some((main.clone(), security.unwrap_or_else(|| security_of(&main))))
}

/// Returns the mirror of security updates next to a mirror of Debian.
pub(super) fn security_of(mirror: &str) -> String {
    format!("{}-security", mirror.trim_end_matches('/'))
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Identical in all three versions of apt.
    const SHOW: &str = include_str!("fixtures/show");
    const MADISON: &str = include_str!("fixtures/madison");

    #[test]
    fn packages_have_suites_sizes_and_parts() {
        let found = packages(SHOW, MADISON);
        assert_eq!(found.len(), 6);
        assert_eq!(found[0].control.name, "linux-image-6.12.43+deb12-cloud-amd64");
        assert_eq!(
            (found[0].size, found[0].suites.as_slice()),
            (33_649_136, &["bookworm-backports".to_owned()][..])
        );
        assert_eq!(found[0].control.needed, []);
        let split = found[1].control.needed.iter().map(|needed| needed.name.as_str());
        let parts =
            ["linux-binary-7.3.4+deb13-cloud-amd64", "linux-modules-7.3.4+deb13-cloud-amd64"];
        assert_eq!(split.collect::<Vec<_>>(), parts);
        assert_eq!(found[5].suites, ["experimental"]);
    }

    #[test]
    fn packages_merges_suites_of_one_package() {
        let madison = format!(
            "{MADISON}linux-image-6.12.43+deb12-cloud-amd64 |  6.12.43-1~bpo12+1 | \
             http://deb.example.org/debian bookworm/main amd64 Packages\n\
             linux-image-6.12.43+deb12-cloud-amd64 | 6.12.43-1~bpo12+1 | \
             http://deb.example.org/debian bookworm/main Sources\n"
        );
        let found = packages(&format!("{SHOW}\n{SHOW}"), &madison);
        assert_eq!(found.len(), 6);
        assert_eq!(found[0].suites, ["bookworm-backports", "bookworm"]);
    }

    #[test]
    fn troubles_of_updates_name_suite_and_reason() {
        let suites = ["no-such-suite", "experimental", "trixie", "trixie-backports"];
        let suites = suites.map(str::to_owned);
        for messages in [
            include_str!("fixtures/bookworm.update"),
            include_str!("fixtures/trixie.update"),
            include_str!("fixtures/sid.update"),
        ] {
            let found = troubles(messages, &suites);
            let of = |suite: &str| {
                let of_it: Vec<Reason> =
                    found.iter().filter(|one| one.suite == suite).map(|one| one.reason).collect();
                of_it
            };
            assert_eq!(of("no-such-suite"), [Reason::Absent], "{found:?}");
            assert_eq!(of("experimental"), [Reason::Expired], "{found:?}");
            assert_eq!(of("trixie-backports"), [Reason::UnknownKey], "{found:?}");
            assert_eq!(found.len(), 3, "{found:?}");
        }
        let network = "E: Failed to fetch http://deb.example.org/debian/dists/trixie/InRelease  \
                       Could not connect\n";
        let found = troubles(network, &suites);
        assert_eq!((found[0].suite.as_str(), found[0].reason), ("trixie", Reason::Other));
    }

    #[test]
    fn connection_keeps_only_proxies_and_certificates() {
        let config = "Acquire::http::Proxy \"http://proxy.example:3142\";\n\
                      Acquire::https::CAInfo \"/etc/ssl/own.pem\";\n\
                      Acquire::Languages \"none\";\nDir::State \"var/lib/apt\";\n\
                      APT::Update::Post-Invoke:: \"rm -f /var/cache/apt/*.bin || true\";\n";
        let kept = "Acquire::http::Proxy \"http://proxy.example:3142\";\n\
                    Acquire::https::CAInfo \"/etc/ssl/own.pem\";\n";
        assert_eq!(connection(config), kept);
    }

    #[test]
    fn mirrors_come_from_the_targets_of_apt() {
        let known = ["bookworm", "bookworm-security", "trixie", "sid"];
        let targets = "http://other.example/apt nodistro\n\
                       http://deb.example.org/debian-security/ bookworm-security\n\
                       http://deb.example.org/debian/ bookworm\n";
        let pair = |main: &str, security: &str| Some((main.to_owned(), security.to_owned()));
        let expected =
            pair("http://deb.example.org/debian", "http://deb.example.org/debian-security");
        assert_eq!(mirrors(targets, &known), expected);
        assert_eq!(mirrors("http://deb.example.org/debian/ sid\n", &known), expected);
        assert_eq!(mirrors("http://other.example/apt nodistro\n", &known), None);
    }
}
