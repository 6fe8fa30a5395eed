//! `fwdlab kernels` with an apt whose programs print a mirror's answers.

use crate::support::{INSTANT, Lab};
use std::os::unix::fs::PermissionsExt;

/// Packages of the mirror, as `apt-cache show` prints them.
const SHOW: &str = "\
Package: linux-image-6.1.0-9-cloud-amd64
Version: 6.1.27-1
Depends: kmod
Size: 26000000

Package: linux-image-6.1.0-56-cloud-amd64
Version: 6.1.192-2
Depends: kmod
Size: 26713492

Package: linux-image-6.19.14-cloud-amd64
Version: 6.19.14-1
Depends: linux-binary-6.19.14-cloud-amd64 (= 6.19.14-1), linux-modules-6.19.14-cloud-amd64 (= 6.19.14-1)
Size: 2072

Package: linux-binary-6.19.14-cloud-amd64
Version: 6.19.14-1
Size: 13030208

Package: linux-image-7.3.4-cloud-amd64
Version: 7.3.4-1
Depends: linux-binary-7.3.4-cloud-amd64 (= 7.3.4-1), linux-modules-7.3.4-cloud-amd64 (= 7.3.4-1)
Size: 1928

Package: linux-binary-7.3.4-cloud-amd64
Version: 7.3.4-1
Size: 13604064

Package: linux-modules-7.3.4-cloud-amd64
Version: 7.3.4-1
Size: 22918420
";

/// `apt-get`: the lists of sid are expired, and a download writes a file for each package, except
/// for 6.1.27.
const APT_GET: &str = r#"#!/bin/sh
case $1 in
update)
    grep -q 'Check-Valid-Until "false"' "$APT_CONFIG" ||
        echo "E: Release file for http://deb.example.org/debian/dists/sid/InRelease is expired (invalid since 1d). Updates for this repository will not be applied." >&2
    echo "update" >>"$CALLS" ;;
download)
    shift
    for package; do
        case $package in *6.1.27*) echo "E: Failed to fetch $package  404  Not Found" >&2; exit 100 ;; esac
        echo whole >"${package%%=*}_${package#*=}_amd64.deb"
        echo "download $package" >>"$CALLS"
    done ;;
indextargets) echo "http://deb.example.org/debian/ bookworm" ;;
esac
"#;

const APT_CACHE: &str = r#"#!/bin/sh
case $1 in
pkgnames) sed -n "s/^Package: \($2.*\)/\1/p" "$SHOW" ;;
show) cat "$SHOW" ;;
madison) sed -n 's/^Package: //p' "$SHOW" | while read -r name; do
    echo "$name | $(grep -A1 "^Package: $name\$" "$SHOW" | sed -n 's/^Version: //p') | http://deb.example.org/debian bookworm/main amd64 Packages"
done ;;
esac
"#;

/// A directory with these programs first in PATH.
fn lab() -> Lab {
    let lab = Lab::new(INSTANT);
    std::fs::create_dir(lab.path("bin")).unwrap();
    for (name, text) in [
        ("bin/apt-get", APT_GET),
        ("bin/apt-cache", APT_CACHE),
        ("bin/apt-config", "#!/bin/sh\n"),
        ("show", SHOW),
        ("keyring", ""),
    ] {
        lab.write(name, text);
        let mode = std::fs::Permissions::from_mode(0o755);
        std::fs::set_permissions(lab.path(name), mode).unwrap();
    }
    let at = |name: &str| lab.path(name).display().to_string();
    let path = format!("{}:{}", at("bin"), std::env::var("PATH").unwrap_or_default());
    let (show, calls, cache) = (at("show"), at("calls"), at("cache"));
    lab.with("PATH", &path).with("SHOW", &show).with("CALLS", &calls).with("XDG_CACHE_HOME", &cache)
}

fn kernels<'a>(more: &[&'a str]) -> Vec<&'a str> {
    [&["kernels", "--keyring", "keyring", "--suite", "bookworm,sid"], more].concat()
}

fn names(lab: &Lab, directory: &str) -> Vec<String> {
    lab.files(directory).into_keys().collect()
}

#[test]
fn kernels_lists_suites_and_names_missing_packages() {
    let lab = lab();
    let listed = lab.fwdlab(&kernels(&["--json"])).expect(0).json();
    let offers = listed["offers"].as_array().unwrap();
    let releases: Vec<&str> =
        offers.iter().map(|offer| offer["release"].as_str().unwrap()).collect();
    let expected =
        ["6.1.0-9-cloud-amd64", "6.1.0-56-cloud-amd64", "6.19.14-cloud-amd64", "7.3.4-cloud-amd64"];
    assert_eq!(releases, expected);
    assert_eq!(offers[2]["missing"][0], "linux-modules-6.19.14-cloud-amd64=6.19.14-1");
    assert_eq!(offers[3]["bytes"], 1928 + 13_604_064 + 22_918_420);
    assert_eq!(offers[3]["suites"][0], "bookworm");
    let trouble = listed["troubles"][0].as_str().unwrap();
    assert!(trouble.contains("sid") && trouble.contains("--allow-expired"), "{trouble}");
    // Fresh lists are not fetched again.
    let text = lab.fwdlab(&kernels(&["--series", "7.3"])).expect(0).stdout;
    assert!(text.contains("36.5 MB") && !text.contains("6.19.14"), "{text}");
    let calls = || std::fs::read_to_string(lab.path("calls")).unwrap();
    assert_eq!(calls(), "update\n");
    let allowed = lab.fwdlab(&kernels(&["--allow-expired", "--json"])).expect(0).json();
    assert_eq!(allowed["troubles"].as_array().unwrap().len(), 0);
    assert_eq!(calls(), "update\nupdate\n");
}

#[test]
fn kernels_fetches_the_newest_of_each_series_with_its_parts() {
    let lab = lab();
    let fetched = lab.fwdlab(&kernels(&["--fetch", "out"])).expect(0);
    assert!(fetched.stdout.contains("no linux-modules-*"), "{}", fetched.stdout);
    assert!(fetched.stdout.contains("fwdlab count out"), "{}", fetched.stdout);
    assert!(fetched.stderr.contains("fetching 7.3.4-cloud-amd64"), "{}", fetched.stderr);
    let expected = [
        "linux-binary-7.3.4-cloud-amd64_7.3.4-1_amd64.deb",
        "linux-image-6.1.0-56-cloud-amd64_6.1.192-2_amd64.deb",
        "linux-image-7.3.4-cloud-amd64_7.3.4-1_amd64.deb",
        "linux-modules-7.3.4-cloud-amd64_7.3.4-1_amd64.deb",
    ];
    assert_eq!(names(&lab, "out"), expected);
    // Existing files are not fetched again.
    let calls = || std::fs::read_to_string(lab.path("calls")).unwrap();
    let before = calls();
    lab.fwdlab(&kernels(&["--fetch", "out"])).expect(0);
    assert_eq!(calls(), before);
}

#[test]
fn kernels_reports_a_package_that_cannot_be_fetched() {
    let lab = lab();
    let failed = lab.fwdlab(&kernels(&["--fetch", "out", "6.1", "--take", "all"])).expect(3);
    assert!(failed.stdout.contains("404"), "{}", failed.stdout);
    assert_eq!(names(&lab, "out"), ["linux-image-6.1.0-56-cloud-amd64_6.1.192-2_amd64.deb"]);
}

#[test]
fn kernels_refuses_what_it_cannot_do_with_the_next_step() {
    let lab = lab();
    let refused = lab.fwdlab(&kernels(&["5.4"])).expect(2).stderr;
    assert!(refused.contains("the suites have 6.1, 6.19, 7.3"), "{refused}");
    let refused = lab.fwdlab(&kernels(&["--flavour", "rt-amd64"])).expect(2).stderr;
    assert!(refused.contains("no kernel of the flavour rt-amd64"), "{refused}");
    let refused =
        lab.fwdlab(&["kernels", "--suite", "sid", "--keyring", "keyring"]).expect(3).stderr;
    assert!(refused.contains("no suite of http://deb.example.org/debian can be had"), "{refused}");
    lab.fwdlab(&["kernels", "--keyring", "absent"]).expect(3);
    lab.fwdlab(&kernels(&["--offline", "--fetch", "out"])).expect(2);
    let lab = lab.with("PATH", "/nowhere");
    let refused = lab.fwdlab(&kernels(&[])).expect(3).stderr;
    assert!(refused.contains("apt-get: ") && refused.contains("dnf download"), "{refused}");
    // Files on the machine need no apt.
    lab.fwdlab(&kernels(&["--offline"])).expect(0);
}

#[test]
fn count_names_files_that_are_not_kernels() {
    let lab = lab();
    let refused = lab.fwdlab(&["count", "0.0-none"]).expect(2).stderr;
    assert!(refused.contains("neither a file nor an installed kernel"), "{refused}");
    let refused = lab.fwdlab(&["count", "x.toml"]).expect(2).stderr;
    assert!(refused.contains("no kernel of Linux"), "{refused}");
}
