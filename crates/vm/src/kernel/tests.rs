//! Layouts of packages, roots and trees, with kernels that consist of a header and modules that
//! consist of a list of dependencies.

use super::image::tests::bz_image;
use super::*;
use crate::initrd::Initrd;
use crate::tool;
use std::process::Command;

/// Files of a package: path and content.
type Files<'a> = &'a [(&'a str, Vec<u8>)];

const RELEASE: &str = "7.3.4+deb13-cloud-amd64";

/// Directory with packages and a cache.
struct Place(tempfile::TempDir);

impl Place {
    fn new() -> Place {
        Place(tempfile::tempdir().unwrap())
    }

    fn path(&self, name: &str) -> PathBuf {
        self.0.path().join(name)
    }

    fn find(&self, name: &str) -> Result<Kernel, VmError> {
        Kernel::find(&self.path(name), &self.path("cache"))
    }

    fn refusal(&self, name: &str) -> String {
        self.find(name).expect_err("no kernel").to_string()
    }

    /// Writes files below a directory.
    fn write(&self, directory: &str, files: Files<'_>) -> PathBuf {
        let root = self.path(directory);
        for (name, content) in files {
            let path = root.join(name);
            fs::create_dir_all(path.parent().unwrap()).unwrap();
            fs::write(path, content).unwrap();
        }
        root
    }

    /// Writes a tar archive of files.
    fn tar(&self, name: &str, files: Files<'_>) -> Vec<u8> {
        let root = self.write(&format!("tar-{name}"), files);
        let output = Command::new("tar").arg("-C").arg(root).args(["-cf", "-", "."]).output();
        output.unwrap().stdout
    }

    /// Writes a Debian package.
    fn deb(&self, file: &str, depends: &str, files: Files<'_>) {
        let (name, rest) = file.split_once('_').unwrap();
        let version = rest.split('_').next().unwrap();
        let control = format!(
            "Package: {name}\nVersion: {version}\nArchitecture: amd64\nDepends: {depends}\n"
        );
        let control = self.tar(&format!("c-{name}"), &[("control", control.into_bytes())]);
        let data = self.tar(&format!("d-{name}"), files);
        let mut package = b"!<arch>\n".to_vec();
        for (member, content) in
            [("debian-binary", b"2.0\n".to_vec()), ("control.tar", control), ("data.tar", data)]
        {
            let size = content.len();
            let header = format!("{member:<16}{:<12}{:<6}{:<6}{:<8}{size:<10}`\n", 0, 0, 0, 100644);
            package.extend(header.into_bytes());
            package.extend(content);
            package.resize(package.len().next_multiple_of(2), b'\n');
        }
        fs::write(self.path(file), package).unwrap();
    }

    /// Writes an RPM package with empty headers.
    fn rpm(&self, file: &str, files: Files<'_>) {
        let mut archive = Initrd::default();
        files.iter().for_each(|(name, content)| archive.file(name, 0o644, content));
        let header = [&[0x8e, 0xad, 0xe8, 1][..], &[0; 12]].concat();
        let mut package = vec![0xed, 0xab, 0xee, 0xdb];
        package.resize(96, 0);
        package.extend([header.clone(), header, archive.into_bytes()].concat());
        fs::write(self.path(file), package).unwrap();
    }

    /// Writes the three packages of a Debian kernel since 6.19.
    fn split(&self, parts: &[&str]) {
        let needs = |part: &str| format!("linux-{part}-{RELEASE} (= 7.3.4-1)");
        let [image, binary, modules] = ["image", "binary", "modules"]
            .map(|part| format!("linux-{part}-{RELEASE}_7.3.4-1_amd64.deb"));
        let depends = format!("kmod, {}, {}", needs("binary"), needs("modules"));
        for part in parts {
            match *part {
                "image" => self.deb(&image, &depends, &[("usr/share/doc/x", vec![])]),
                "binary" => self.deb(&binary, "", &[vmlinuz(RELEASE)]),
                _ => self.deb(&modules, "kmod", &[module("usr/lib/modules", RELEASE)]),
            }
        }
    }
}

fn boot(release: &str) -> (&'static str, Vec<u8>) {
    (Box::leak(format!("boot/vmlinuz-{release}").into_boxed_str()), bz_image(release))
}

fn vmlinuz(release: &str) -> (&'static str, Vec<u8>) {
    let path = format!("usr/lib/modules/{release}/vmlinuz");
    (Box::leak(path.into_boxed_str()), bz_image(release))
}

fn module(place: &str, release: &str) -> (&'static str, Vec<u8>) {
    let path = format!("{place}/{release}/kernel/drivers/net/virtio_net.ko");
    (Box::leak(path.into_boxed_str()), b"\0depends=\0".to_vec())
}

/// Asserts that the kernel has this release and its module.
fn assert_whole(kernel: &Kernel, release: &str) {
    assert_eq!(kernel.release, release);
    assert!(kernel.image.is_file(), "{kernel:?}");
    let modules = kernel.modules(&["virtio_net"]).unwrap();
    assert_eq!(modules.len(), 1, "{kernel:?}");
}

fn names(paths: &[PathBuf]) -> Vec<String> {
    paths.iter().map(|path| root::name(path)).collect()
}

#[test]
fn debian_packages_of_both_layouts_are_found() {
    let place = Place::new();
    for (release, directory) in [("6.1.0-56-amd64", "lib/modules"), ("6.18.15", "usr/lib/modules")]
    {
        let file = format!("linux-image-{release}_1_amd64.deb");
        place.deb(&file, "kmod", &[boot(release), module(directory, release)]);
        assert_whole(&place.find(&file).unwrap(), release);
        // From the cache.
        assert_whole(&place.find(&file).unwrap(), release);
    }
    assert_eq!(root::entries(&place.path("cache")).len(), 2);
}

#[test]
fn split_debian_package_is_found_with_its_parts() {
    let place = Place::new();
    place.split(&["image", "binary", "modules"]);
    let file = format!("linux-image-{RELEASE}_7.3.4-1_amd64.deb");
    assert_whole(&place.find(&file).unwrap(), RELEASE);
    // The other parts are next to the file, not to the link.
    fs::create_dir(place.path("links")).unwrap();
    std::os::unix::fs::symlink(place.path(&file), place.path("links/newest.deb")).unwrap();
    assert_whole(&place.find("links/newest.deb").unwrap(), RELEASE);
    assert_whole(&place.find("").unwrap(), RELEASE);
}

#[test]
fn split_debian_package_without_its_parts_names_them() {
    let place = Place::new();
    place.split(&["image", "binary"]);
    let error = place.refusal(&format!("linux-image-{RELEASE}_7.3.4-1_amd64.deb"));
    let expected = format!("apt-get download linux-modules-{RELEASE}=7.3.4-1");
    assert!(error.contains(&expected) && !error.contains("linux-binary"), "{error}");
    assert!(!place.path("cache").exists());
    let error = place.refusal(&format!("linux-binary-{RELEASE}_7.3.4-1_amd64.deb"));
    assert!(error.contains(&expected), "{error}");
}

#[test]
fn several_files_are_one_kernel() {
    let place = Place::new();
    place.split(&["image", "binary", "modules"]);
    let [image, binary, modules] = ["image", "binary", "modules"]
        .map(|part| format!("linux-{part}-{RELEASE}_7.3.4-1_amd64.deb"));
    fs::create_dir(place.path("other")).unwrap();
    fs::rename(place.path(&modules), place.path("other/m.deb")).unwrap();
    let other = place.path("other/m.deb");
    let kernel = place.find(&format!("{image},{binary},{}", other.display())).unwrap();
    assert_whole(&kernel, RELEASE);
    let kernel = place.find(&format!("{binary},other/m.deb")).unwrap();
    assert_whole(&kernel, RELEASE);
}

#[test]
fn directory_of_packages_names_their_kernels_in_order() {
    let place = Place::new();
    place.split(&["image", "binary", "modules"]);
    for release in ["6.1.0-9-amd64", "6.1.0-56-amd64"] {
        let file = format!("linux-image-{release}_1_amd64.deb");
        place.deb(&file, "", &[boot(release), module("lib/modules", release)]);
    }
    place.deb("linux-image-6.1.0-9-amd64-dbg_1_amd64.deb", "", &[]);
    place.deb("linux-headers-6.1.0-9-amd64_1_amd64.deb", "", &[]);
    let expected = [
        "linux-image-6.1.0-9-amd64_1_amd64.deb",
        "linux-image-6.1.0-56-amd64_1_amd64.deb",
        "linux-image-7.3.4+deb13-cloud-amd64_7.3.4-1_amd64.deb",
    ];
    assert_eq!(names(&expand(&[place.path("")])), expected);
    // A shell's `*.deb` also includes the parts of the split kernel.
    let all: Vec<PathBuf> = root::entries(&place.path(""))
        .into_iter()
        .filter(|path| package::Kind::of(path).is_some() && root::name(path).starts_with("linux-"))
        .filter(|path| !root::name(path).contains("-dbg") && !root::name(path).contains("headers"))
        .collect();
    assert_eq!(all.len(), 5);
    let mut kept = names(&expand(&all));
    kept.sort_by(|left, right| version::compare(left, right));
    assert_eq!(kept, expected);
    // Given twice, a kernel is compared with itself.
    let twice = [place.path(expected[0]), place.path(expected[0])];
    assert_eq!(expand(&twice), twice);
    let error = place.refusal("");
    assert!(error.contains("several kernels") && error.contains(expected[1]), "{error}");
}

#[test]
fn fedora_packages_are_found_with_their_modules() {
    let has_cpio = tool::find("cpio").is_some();
    if !has_cpio {
        return fwdlab_testdata::skip("cpio is not installed");
    }
    let place = Place::new();
    let release = "6.14.0-63.fc42.x86_64";
    let [core, modules] =
        ["kernel-core", "kernel-modules-core"].map(|name| format!("{name}-{release}.rpm"));
    let image = (vmlinuz(release).0.trim_start_matches("usr/"), vmlinuz(release).1);
    place.rpm(&core, &[image]);
    let error = place.refusal(&core);
    assert!(error.contains(&format!("dnf download kernel-modules-core-{release}")), "{error}");
    place.rpm(&modules, &[module("lib/modules", release)]);
    assert_whole(&place.find(&core).unwrap(), release);
    let packages = [place.path(&core), place.path(&modules)];
    assert_eq!(names(&expand(&packages)), std::slice::from_ref(&core));
    assert_eq!(names(&expand(&[place.path("")])), [core]);
}

#[test]
fn tar_package_is_found() {
    let place = Place::new();
    let release = "6.16.1-arch1-1";
    let tar = place.tar("arch", &[vmlinuz(release), module("usr/lib/modules", release)]);
    fs::write(place.path("linux-6.16.1-1-x86_64.pkg.tar"), tar).unwrap();
    assert_whole(&place.find("linux-6.16.1-1-x86_64.pkg.tar").unwrap(), release);
}

#[test]
fn damaged_package_leaves_nothing_in_the_cache() {
    let place = Place::new();
    let release = "6.1.0-9-amd64";
    let file = "linux-image-6.1.0-9-amd64_1_amd64.deb";
    place.deb(file, "", &[boot(release), module("lib/modules", release)]);
    let whole = fs::read(place.path(file)).unwrap();
    fs::write(place.path(file), &whole[..whole.len() - 12_000]).unwrap();
    assert!(place.refusal(file).contains("damaged"));
    assert!(!place.path("cache").exists());
    // Complete, but not readable by tar.
    let mut broken = whole.clone();
    for at in 0..broken.len() - 5 {
        if broken[at..].starts_with(b"ustar") {
            broken[at..at + 5].fill(b'x');
        }
    }
    fs::write(place.path(file), broken).unwrap();
    place.refusal(file);
    assert!(root::entries(&place.path("cache")).is_empty());
    fs::write(place.path(file), "no package").unwrap();
    assert!(place.refusal(file).contains("no Debian package"));
    let modules = "linux-headers-6.1.0-9-amd64_1_amd64.deb";
    place.deb(modules, "", &[module("lib/modules", release)]);
    assert!(place.refusal(modules).contains("give linux-image-VERSION"));
}

#[test]
fn root_with_one_kernel_is_found_and_several_are_named() {
    let place = Place::new();
    let (first, second) = ("6.1.0-56-amd64", "6.12.117+deb13-amd64");
    place.write("root", &[boot(first), module("lib/modules", first)]);
    assert_whole(&place.find("root").unwrap(), first);
    place.write("root", &[boot(second), module("usr/lib/modules", second)]);
    let error = place.refusal("root");
    assert!(error.contains(first) && error.contains(second), "{error}");
    // An image in a root has the modules of its release.
    assert_whole(&place.find(&format!("root/boot/vmlinuz-{second}")).unwrap(), second);
    let other =
        place.write("arch", &[vmlinuz("6.16-arch"), module("usr/lib/modules", "6.16-arch")]);
    assert_whole(&place.find("arch").unwrap(), "6.16-arch");
    let image = other.join("usr/lib/modules/6.16-arch/vmlinuz");
    assert_whole(&Kernel::find(&image, &place.path("cache")).unwrap(), "6.16-arch");
    place.write("mixed", &[boot(first), module("lib/modules", second)]);
    assert!(place.refusal("mixed").contains("none of 6.1.0-56-amd64"));
}

#[test]
fn installed_kernel_is_found_by_its_release() {
    let place = Place::new();
    let root = place.write("root", &[boot("6.1.0-9"), module("lib/modules", "6.1.0-9")]);
    place.write("root", &[boot("6.1.0-56"), vmlinuz("6.16-arch")]);
    assert_whole(&installed::find("6.1.0-9", &root).unwrap(), "6.1.0-9");
    assert_eq!(installed::find("6.16-arch", &root).unwrap().release, "6.16-arch");
    let list = installed(&root);
    let releases: Vec<(&str, bool)> =
        list.iter().map(|one| (one.release.as_str(), one.has_modules)).collect();
    assert_eq!(releases, [("6.1.0-9", true), ("6.1.0-56", false), ("6.16-arch", false)]);
    let error = installed::find("6.2", &root).unwrap_err().to_string();
    assert!(error.contains("installed are 6.1.0-9, 6.1.0-56, 6.16-arch"), "{error}");
    let error = installed::find(RUNNING, &place.path("empty")).unwrap_err().to_string();
    let running = running().unwrap();
    assert!(error.contains(&running) && error.contains("run it on the host"), "{error}");
    assert!(error.contains("no kernel is installed here"), "{error}");
}

#[test]
fn build_tree_is_found() {
    let place = Place::new();
    place.write("tree", &[("arch/x86/boot/bzImage", b"x".to_vec())]);
    assert!(place.refusal("tree").contains("no kernel of Linux"));
    place.write("tree", &[("arch/x86/boot/bzImage", bz_image("7.0.0-rc1"))]);
    let kernel = place.find("tree").unwrap();
    assert_eq!((kernel.release.as_str(), kernel.modules(&["x"]).unwrap()), ("7.0.0-rc1", vec![]));
    assert_eq!(place.find("tree/arch/x86/boot/bzImage").unwrap(), kernel);
    place.write("tree", &[("include/config/kernel.release", b"7.0.0-rc1+\n".to_vec())]);
    place.write("tree/modules", &[module("lib/modules", "7.0.0-rc1")]);
    assert!(place.refusal("tree").contains("no modules of 7.0.0-rc1+"));
    place.write("tree/modules", &[module("lib/modules", "7.0.0-rc1+")]);
    assert_whole(&place.find("tree").unwrap(), "7.0.0-rc1+");
}

#[test]
fn compressed_modules_are_decompressed() {
    let place = Place::new();
    for (program, ending) in [("xz", "xz"), ("zstd", "zst"), ("gzip", "gz")] {
        let Ok(packed) = tool::run(program, &["-c"], b"\0depends=\0", program) else {
            fwdlab_testdata::skip_part(&format!("{program} is not installed"));
            continue;
        };
        let file = format!("lib/modules/1.0/a_{ending}.ko.{ending}");
        place.write("root", &[boot("1.0"), (&file, packed)]);
        let loaded = place.find("root").unwrap().modules(&[&format!("a-{ending}")]).unwrap();
        assert_eq!(loaded, [(format!("a_{ending}"), b"\0depends=\0".to_vec())]);
    }
}

#[test]
fn other_things_are_refused_with_the_next_step() {
    let place = Place::new();
    let empty = place.refusal("");
    assert!(empty.contains("make bzImage modules"), "{empty}");
    let error = Kernel::find(Path::new("/nowhere"), &place.path("")).unwrap_err();
    assert!(error.to_string().starts_with("/nowhere: "), "{error}");
    let error = Kernel::find(Path::new("no-such.deb"), &place.path("")).unwrap_err();
    assert!(error.to_string().contains("No such file"), "{error}");
    let error = Kernel::find(Path::new("0.0-none"), &place.path("")).unwrap_err();
    assert!(error.to_string().contains("neither a file nor an installed kernel"), "{error}");
    fs::write(place.path("image"), "x").unwrap();
    assert!(place.refusal("image").contains("no kernel of Linux"));
}

#[test]
fn package_of_rpmbuild_is_found() {
    let place = Place::new();
    let release = "6.14.0-63.fc42.x86_64";
    let root = place.write("root", &[vmlinuz(release), module("usr/lib/modules", release)]);
    // Like Fedora's: compressed with zstd.
    let spec = format!(
        "Name: kernel-core\nVersion: 6.14.0\nRelease: 63.fc42\nSummary: x\nLicense: x\n\
         AutoReqProv: no\n%define _binary_payload w3.zstdio\n%define debug_package %{{nil}}\n\
         %define __os_install_post %{{nil}}\n%description\nx\n%install\n\
         cp -a {}/. %{{buildroot}}\n%files\n/usr/lib/modules/*\n",
        root.display()
    );
    fs::write(place.path("kernel.spec"), spec).unwrap();
    let topdir = format!("_topdir {}", place.path("rpm").display());
    let rpmdir = format!("_rpmdir {}", place.path("out").display());
    let spec = place.path("kernel.spec").display().to_string();
    let arguments = ["-bb", "--target", "x86_64", "--define", &topdir, "--define", &rpmdir, &spec];
    if let Err(error) = tool::run("rpmbuild", &arguments, &[], "rpm") {
        assert!(error.to_string().contains("No such file"), "{error}");
        return fwdlab_testdata::skip("rpmbuild is not installed");
    }
    let package = format!("out/x86_64/kernel-core-{release}.rpm");
    assert_whole(&place.find(&package).unwrap(), release);
    // One that is cut is refused, whichever program unpacks it.
    let whole = fs::read(place.path(&package)).unwrap();
    fs::write(place.path("cut.rpm"), &whole[..whole.len() - 40]).unwrap();
    assert!(place.find("cut.rpm").is_err(), "{} bytes", whole.len());
}
