//! A kernel boots in each of its packaged forms.

use super::{count, of};
use fwdlab_testdata::guests::kernel;
use fwdlab_vm::kernel::Kernel;
use std::fs;
use std::path::{Path, PathBuf};
use std::process::Command;

/// Builds a Debian package of the files in a directory.
fn build(directory: &Path, name: &str, depends: &str) -> PathBuf {
    let control = format!(
        "Package: {name}\nVersion: 1\nArchitecture: amd64\nMaintainer: x <x@example.org>\n\
         {depends}Description: x\n"
    );
    fs::create_dir_all(directory.join("DEBIAN")).unwrap();
    fs::write(directory.join("DEBIAN/control"), control).unwrap();
    let file = directory.with_file_name(format!("{name}_1_amd64.deb"));
    let built = Command::new("dpkg-deb")
        .args(["--build", "--root-owner-group", "-Zzstd", "-z1"])
        .args([directory, &file])
        .output()
        .unwrap();
    assert!(built.status.success(), "{}", String::from_utf8_lossy(&built.stderr));
    file
}

/// Copies a directory.
fn copy(from: &Path, to: &Path) {
    fs::create_dir_all(to.parent().unwrap()).unwrap();
    let copied = Command::new("cp").arg("-r").args([from, to]).status().unwrap();
    assert!(copied.success());
}

/// The package of the other tests, divided like Debian's since 6.19, with members compressed like
/// Ubuntu's.
#[test]
fn divided_kernel_boots_from_its_directory() {
    let Some(package) = kernel() else { return };
    let has = |program: &str| Command::new(program).arg("--version").output().is_ok();
    if !has("dpkg-deb") || !has("zstd") {
        return fwdlab_testdata::skip("dpkg-deb or zstd is not installed");
    }
    let directory = tempfile::tempdir().unwrap();
    let at = |name: &str| directory.path().join(name);
    let whole = Kernel::find(&package, &at("cache")).unwrap();
    let release = &whole.release;
    let root = fs::read_dir(at("cache")).unwrap().next().unwrap().unwrap().path();
    let places = ["lib/modules", "usr/lib/modules"].map(|place| root.join(place).join(release));
    let modules = places.iter().find(|path| path.is_dir()).expect("modules");
    let place = format!("usr/lib/modules/{release}");
    copy(&modules.join("kernel"), &at("m").join(&place).join("kernel"));
    copy(&whole.image, &at("b").join(&place).join("vmlinuz"));
    let [binary, modules] = ["binary", "modules"].map(|part| format!("linux-{part}-{release}"));
    build(&at("m"), &modules, "");
    build(&at("b"), &binary, "");
    let depends = format!("Depends: {binary} (= 1), {modules} (= 1)\n");
    build(&at("i"), &format!("linux-image-{release}"), &depends);
    let path = directory.path().to_string_lossy();
    let found = count(&[&path, "--packets", "640", "--bursts", "2", "--flows", "32"]);
    let found = found.unwrap_or_else(|error| panic!("{error}"));
    assert_eq!(found["kernels"][0]["release"], release.as_str(), "{found:#}");
    assert!(of(&found, "ip_forward")[0] > 50.0, "{found:#}");
}
