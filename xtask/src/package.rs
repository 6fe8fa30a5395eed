//! What is handed out: a static program with its manual pages and completions, as an archive
//! for any distribution and as a package for Debian, with their sums.
//!
//! The same commit gives the same bytes, wherever its tree lies: paths of the machine that
//! builds are replaced, times are the commit's (or `SOURCE_DATE_EPOCH`,
//! <https://reproducible-builds.org/specs/source-date-epoch/>), and what is packed is sorted
//! and belongs to root.

mod bare_root;
mod dist;

pub(crate) use bare_root::try_in_bare_root;
pub(crate) use dist::make as dist;

use crate::tool::{self, Scratch};
use anyhow::{Context, Result, ensure};
use std::collections::BTreeMap;
use std::fs;
use std::os::unix::fs::PermissionsExt;
use std::path::{Path, PathBuf};
use std::process::Command;

/// Where packages are made, below the root.
const FOLDER: &str = "target/package";
/// The most that a program may be, in bytes.
const LARGEST: u64 = 25_000_000;

/// A processor that packages are for.
struct Target {
    /// As rustc calls it.
    triple: &'static str,
    /// As Debian calls it.
    debian: &'static str,
    /// What is needed where this processor can't execute its programs; none where it can.
    foreign: Option<Foreign>,
}

/// Programs for another processor than this one.
struct Foreign {
    /// What the names of its compiler and binutils begin with.
    tools: &'static str,
    /// What executes its programs here.
    runner: &'static str,
    /// Debian's packages of both.
    packages: &'static str,
}

/// The processor that runs this.
const HOST: Target = match cfg!(target_arch = "aarch64") {
    true => Target { triple: "aarch64-unknown-linux-gnu", debian: "arm64", foreign: None },
    false => Target { triple: "x86_64-unknown-linux-gnu", debian: "amd64", foreign: None },
};

/// Arm's, made on another.
const ARM: Target = Target {
    triple: "aarch64-unknown-linux-gnu",
    debian: "arm64",
    foreign: Some(Foreign {
        tools: "aarch64-linux-gnu-",
        runner: "qemu-aarch64-static",
        packages: "gcc-aarch64-linux-gnu libc6-dev-arm64-cross qemu-user-static",
    }),
};

impl Target {
    /// A program of binutils for it.
    fn tool(&self, name: &str) -> Command {
        let tools = self.foreign.as_ref().map_or("", |foreign| foreign.tools);
        Command::new(format!("{tools}{name}"))
    }

    /// A program of its own, to be executed here.
    fn runs(&self, program: &Path) -> Command {
        match &self.foreign {
            None => Command::new(program),
            Some(foreign) => {
                let mut command = Command::new(foreign.runner);
                command.arg(program);
                command
            }
        }
    }
}

/// Makes the packages of the working tree.
pub(crate) fn make(root: &Path) -> Result<()> {
    make_for(root, &HOST)
}

/// Makes those for arm64, on whatever processor. Manual pages and completions are made by the
/// program itself, which QEMU executes then.
pub(crate) fn make_for_arm(root: &Path) -> Result<()> {
    ensure_tools_for_arm()?;
    match HOST.triple == ARM.triple {
        true => make_for(root, &HOST),
        false => make_for(root, &ARM),
    }
}

/// Checks for the compiler and the emulator of [`ARM`].
fn ensure_tools_for_arm() -> Result<()> {
    if let Some(foreign) = &ARM.foreign {
        let is_there = Command::new(foreign.runner).arg("--version").output().is_ok()
            && ARM.tool("gcc").arg("--version").output().is_ok();
        ensure!(
            is_there,
            "no {}gcc or no {}: apt-get install {}; rustup target add {}",
            foreign.tools,
            foreign.runner,
            foreign.packages,
            ARM.triple
        );
    }
    Ok(())
}

fn make_for(root: &Path, target: &Target) -> Result<()> {
    let folder = root.join(FOLDER);
    emptied(&folder)?;
    let packages = packages(root, &folder, target)?;
    write_sums(&folder, &packages)?;
    for package in packages {
        let size = fs::metadata(&package)?.len();
        println!("{}: {:.1} MB", package.display(), size as f64 / 1e6);
    }
    println!("{}: their sums", folder.join(SUMS).display());
    Ok(())
}

/// Makes Debian's package around the program of `cargo build`, to try it soon: nobody gets this.
pub(crate) fn make_of_debug(root: &Path) -> Result<()> {
    let built = root.join("target/debug/fwdlab");
    ensure!(built.is_file(), "{}: `cargo build` makes it", built.display());
    let folder = root.join(FOLDER);
    emptied(&folder)?;
    debian(root, &folder, &HOST, &stripped(root, &built, &HOST)?).map(drop)
}

/// Makes the packages of the last commit twice, in folders of different names, and compares.
pub(crate) fn make_again(root: &Path) -> Result<()> {
    let scratch = Scratch::new()?;
    let mut sums = BTreeMap::new();
    let mut from = root.to_owned();
    for name in ["one", "another-of-a-longer-name"] {
        let clone = scratch.0.join(name);
        // The second is the first one's: somebody may commit meanwhile.
        let [origin, to] = [&from, &clone].map(|path| path.display().to_string());
        run(Command::new("git").args(["clone", "--quiet", "--no-hardlinks", &origin, &to]))?;
        from.clone_from(&clone);
        let folder = clone.join(FOLDER);
        emptied(&folder)?;
        write_sums(&folder, &packages(&clone, &folder, &HOST)?)?;
        let text = fs::read_to_string(clone.join(FOLDER).join(SUMS))?;
        println!("{text}");
        sums.insert(name, text);
    }
    let texts: Vec<&String> = sums.values().collect();
    ensure!(texts[0] == texts[1], "two builds of one commit differ");
    println!("two builds of one commit: the same bytes");
    Ok(())
}

/// The list of sums, as sha256sum(1) writes it.
const SUMS: &str = "SHA256SUMS";

/// Builds below `root` and packs into `folder`; returns the packages.
fn packages(root: &Path, folder: &Path, target: &Target) -> Result<Vec<PathBuf>> {
    let program = stripped(root, &build(root, target)?, target)?;
    let size = fs::metadata(&program)?.len();
    ensure!(size <= LARGEST, "{} has {size} bytes, {LARGEST} at most", program.display());
    ensure_static(&program)?;
    pack(root, folder, target, &program)
}

/// The program without symbols, but those of the router's functions, which profiles name.
fn stripped(root: &Path, built: &Path, target: &Target) -> Result<PathBuf> {
    let program = root.join("target/package.fwdlab");
    run(target
        .tool("objcopy")
        .args(["--wildcard", "--strip-all", "--keep-symbol=*fwdlab_router*"])
        .args(["--keep-symbol=*fwdlab_packet*", "--keep-symbol=*fwdlab_netio*"])
        .args([built, &program]))?;
    Ok(program)
}

/// Packs a program into `folder`; returns the packages.
fn pack(root: &Path, folder: &Path, target: &Target, program: &Path) -> Result<Vec<PathBuf>> {
    Ok([archive(root, folder, target, program)?, debian(root, folder, target, program)?].into())
}

/// Writes the sums of files in `folder`.
fn write_sums(folder: &Path, files: &[PathBuf]) -> Result<()> {
    let names = files.iter().filter_map(|path| path.file_name()?.to_str());
    let sums = run(Command::new("sha256sum").args(names).current_dir(folder))?;
    Ok(fs::write(folder.join(SUMS), sums)?)
}

/// An empty folder.
fn emptied(folder: &Path) -> Result<()> {
    match fs::remove_dir_all(folder) {
        Err(error) if error.kind() != std::io::ErrorKind::NotFound => Err(error.into()),
        _ => Ok(fs::create_dir_all(folder)?),
    }
}

/// The static program.
fn build(root: &Path, target: &Target) -> Result<PathBuf> {
    let home = std::env::var_os("CARGO_HOME").map(PathBuf::from);
    let home = home.or_else(|| Some(PathBuf::from(std::env::var_os("HOME")?).join(".cargo")));
    let home = home.context("neither CARGO_HOME nor HOME is set")?;
    let mut flags = vec!["-Ctarget-feature=+crt-static".to_owned()];
    for (path, name) in [(root, "/fwdlab"), (&home, "/cargo")] {
        flags.push(format!("--remap-path-prefix={}={name}", path.display()));
    }
    let output = root.join("target/static");
    let mut cargo = Command::new(std::env::var_os("CARGO").unwrap_or_else(|| "cargo".into()));
    cargo.args(["build", "--release", "--locked", "--package", "fwdlab"]);
    cargo.args(["--target", target.triple]).arg("--target-dir").arg(&output);
    // Of the caller's environment nothing that changes what is built.
    cargo.env_remove("RUSTFLAGS").env("CARGO_ENCODED_RUSTFLAGS", flags.join("\x1f"));
    cargo.env("CARGO_INCREMENTAL", "0").current_dir(root);
    if let Some(foreign) = &target.foreign {
        let name = target.triple.to_uppercase().replace('-', "_");
        cargo.env(format!("CARGO_TARGET_{name}_LINKER"), format!("{}gcc", foreign.tools));
    }
    for (name, _) in std::env::vars_os() {
        if name.to_string_lossy().starts_with("CARGO_PROFILE_") {
            cargo.env_remove(name);
        }
    }
    let status = cargo.status().context("cargo can't be run")?;
    ensure!(status.success(), "cargo build: {status}");
    Ok(output.join(target.triple).join("release/fwdlab"))
}

/// Says whether the program needs any library.
fn ensure_static(program: &Path) -> Result<()> {
    let headers = run(Command::new("readelf").args(["--wide", "--program-headers"]).arg(program))?;
    ensure!(!headers.contains("INTERP"), "{} needs a dynamic linker", program.display());
    Ok(())
}

/// An archive with one folder, of its own name.
fn archive(root: &Path, folder: &Path, target: &Target, program: &Path) -> Result<PathBuf> {
    let (version, time) = (version(root)?, time(root)?);
    let architecture = target.triple.split('-').next().unwrap_or_default();
    let name = &format!("fwdlab-{version}-{architecture}-linux");
    let tree = Tree::new(folder.join(name))?;
    tree.file(program, "fwdlab", 0o755)?;
    documents(root, &tree, &|| target.runs(program), "man", "completions")?;
    for text in ["README.md", "CHANGELOG.md", "LICENSE"] {
        tree.file(&root.join(text), text, 0o644)?;
    }
    experiments(root, &tree, "experiments")?;
    let file = folder.join(format!("{name}.tar.xz"));
    run(Command::new("tar")
        .args(["--sort=name", "--owner=0", "--group=0", "--numeric-owner", "--format=gnu"])
        .args(["--mode=u+rwX,go+rX,go-w", &format!("--mtime=@{time}"), "--use-compress-program"])
        .arg("xz --threads=1 -6")
        .arg("--create")
        .arg("--file")
        .arg(&file)
        .arg(name)
        .current_dir(folder))?;
    fs::remove_dir_all(&tree.0)?;
    Ok(file)
}

/// A package for Debian and its descendants (deb(5)).
fn debian(root: &Path, folder: &Path, target: &Target, program: &Path) -> Result<PathBuf> {
    let (version, time) = (version(root)?, time(root)?);
    let tree = Tree::new(folder.join("debian"))?;
    tree.file(program, "usr/bin/fwdlab", 0o755)?;
    documents(root, &tree, &|| target.runs(program), "usr/share/man/man1", "usr/share")?;
    let own = "usr/share/doc/fwdlab";
    tree.file(&root.join("LICENSE"), &format!("{own}/copyright"), 0o644)?;
    tree.file(&root.join("README.md"), &format!("{own}/README.md"), 0o644)?;
    tree.file(&root.join("CHANGELOG.md"), &format!("{own}/changelog"), 0o644)?;
    experiments(root, &tree, &format!("{own}/experiments"))?;
    for page in fs::read_dir(tree.0.join("usr/share/man/man1"))? {
        run(Command::new("gzip").args(["-9", "--no-name"]).arg(page?.path()))?;
    }
    run(Command::new("gzip").args(["-9", "--no-name"]).arg(tree.0.join(own).join("changelog")))?;
    let kilobytes = size(&tree.0)?.div_ceil(1024).to_string();
    let control = CONTROL
        .replace("VERSION", &version)
        .replace("ARCHITECTURE", target.debian)
        .replace("SIZE", &kilobytes);
    tree.text("DEBIAN/control", &control)?;
    let file = folder.join(format!("fwdlab_{version}_{}.deb", target.debian));
    // Times after that of the commit are set to it.
    run(Command::new("dpkg-deb")
        .args(["--root-owner-group", "--uniform-compression", "-Zxz", "--build"])
        .arg(&tree.0)
        .arg(&file)
        .env("SOURCE_DATE_EPOCH", time))?;
    fs::remove_dir_all(&tree.0)?;
    Ok(file)
}

/// The package's description of itself (deb-control(5)). The program is static: what it may
/// run is recommended where most experiments need it, suggested where some do.
const CONTROL: &str = "\
Package: fwdlab
Version: VERSION
Architecture: ARCHITECTURE
Maintainer: The fwdlab authors <fwdlab@localhost>
Installed-Size: SIZE
Section: net
Priority: optional
Recommends: ethtool, iproute2, nftables, openssh-client
Suggests: busybox-static, conntrack, iptables, kmod, linux-perf, openssh-server, qemu-system-x86, qemu-utils, xz-utils
Homepage: https://github.com/fwdlab/fwdlab
Description: laboratory for packet-forwarding performance
 An experiment file says which router, firewall, kernel or setting is tested,
 with which traffic and how often. fwdlab builds the testbed in network
 namespaces, in virtual machines or on racks over ssh, sends the traffic, counts
 what arrives, decides with statistics whether anything has changed, and writes
 the report.
";

/// Manual pages and completions, made by the program itself.
fn documents(
    root: &Path,
    tree: &Tree,
    program: &dyn Fn() -> Command,
    man: &str,
    share: &str,
) -> Result<()> {
    let pages = tree.0.join(man);
    run(program().arg("man").arg(&pages).current_dir(root))?;
    for (shell, debian, plain) in [
        ("bash", "bash-completion/completions/fwdlab", "fwdlab.bash"),
        ("zsh", "zsh/vendor-completions/_fwdlab", "_fwdlab"),
        ("fish", "fish/vendor_completions.d/fwdlab.fish", "fwdlab.fish"),
    ] {
        let script = run(program().args(["completions", shell]).current_dir(root))?;
        let name = if share == "completions" { plain } else { debian };
        tree.text(&format!("{share}/{name}"), &script)?;
    }
    Ok(())
}

/// The experiments, as examples: those that git knows.
fn experiments(root: &Path, tree: &Tree, to: &str) -> Result<()> {
    let files = run(Command::new("git")
        .args(["-c", "safe.directory=*", "ls-files", "experiments"])
        .current_dir(root))?;
    for file in files.lines() {
        let name = file.strip_prefix("experiments/").context("git lists what was not asked")?;
        tree.file(&root.join(file), &format!("{to}/{name}"), 0o644)?;
    }
    Ok(())
}

/// A folder that is filled and packed.
struct Tree(PathBuf);

impl Tree {
    fn new(path: PathBuf) -> Result<Tree> {
        fs::create_dir_all(&path)?;
        // What a strict umask would keep from everybody.
        fs::set_permissions(&path, fs::Permissions::from_mode(0o755))?;
        Ok(Tree(path))
    }

    /// The place of a file, with the folders above it.
    fn place(&self, name: &str) -> Result<PathBuf> {
        let mut folder = self.0.clone();
        let (folders, file) = name.rsplit_once('/').unwrap_or(("", name));
        for part in folders.split('/').filter(|part| !part.is_empty()) {
            folder.push(part);
            if !folder.is_dir() {
                Tree::new(folder.clone())?;
            }
        }
        Ok(folder.join(file))
    }

    fn file(&self, from: &Path, name: &str, mode: u32) -> Result<()> {
        let to = self.place(name)?;
        fs::copy(from, &to).with_context(|| format!("{} to {name}", from.display()))?;
        Ok(fs::set_permissions(&to, fs::Permissions::from_mode(mode))?)
    }

    fn text(&self, name: &str, text: &str) -> Result<()> {
        let to = self.place(name)?;
        fs::write(&to, text)?;
        Ok(fs::set_permissions(&to, fs::Permissions::from_mode(0o644))?)
    }
}

/// The version of the workspace.
fn version(root: &Path) -> Result<String> {
    let text = fs::read_to_string(root.join("Cargo.toml"))?;
    let file: toml::Table = text.parse().context("Cargo.toml")?;
    let version = file["workspace"].get("package").and_then(|package| package.get("version"));
    Ok(version.and_then(|version| version.as_str()).context("no version")?.to_owned())
}

/// Bytes of all files below a folder. Folders are as large as a file system likes.
fn size(folder: &Path) -> Result<u64> {
    let mut sum = 0;
    for entry in fs::read_dir(folder)? {
        let entry = entry?;
        sum += match entry.file_type()?.is_dir() {
            true => size(&entry.path())?,
            false => entry.metadata()?.len(),
        };
    }
    Ok(sum)
}

/// Seconds since 1970 that everything packed carries.
fn time(root: &Path) -> Result<String> {
    if let Ok(time) = std::env::var("SOURCE_DATE_EPOCH") {
        return Ok(time);
    }
    let time = run(Command::new("git")
        .args(["-c", "safe.directory=*", "log", "-1", "--format=%ct"])
        .current_dir(root))?;
    Ok(time.trim().to_owned())
}

/// Runs a program of those that packages are made with; returns what it printed.
fn run(command: &mut Command) -> Result<String> {
    tool::run(command, "apt-get install git binutils tar xz-utils gzip dpkg coreutils")
}
