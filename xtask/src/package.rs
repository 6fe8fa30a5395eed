//! Packages for distribution: a static program with its manual pages and completions, as an archive
//! for any distribution and as a Debian package, with their SHA-256 sums.
//!
//! The same commit gives the same bytes, wherever its tree is: paths of the build machine are
//! remapped, times are the commit's (or `SOURCE_DATE_EPOCH`,
//! <https://reproducible-builds.org/specs/source-date-epoch/>), and archive members are sorted and
//! owned by root.

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

/// Output folder, below the root.
const FOLDER: &str = "target/package";
/// Maximum size of the program, in bytes.
const LARGEST: u64 = 25_000_000;

/// A processor architecture that packages are built for.
struct Target {
    /// Name used by rustc.
    triple: &'static str,
    /// Name used by Debian.
    debian: &'static str,
    /// Cross-compilation tools; `None` if this machine executes the architecture's programs.
    foreign: Option<Foreign>,
}

/// Tools for an architecture other than this machine's.
struct Foreign {
    /// Prefix of the names of its compiler and binutils.
    tools: &'static str,
    /// Emulator that runs its programs here.
    runner: &'static str,
    /// Debian packages of these tools.
    packages: &'static str,
}

/// The architecture of this machine.
const HOST: Target = match cfg!(target_arch = "aarch64") {
    true => Target { triple: "aarch64-unknown-linux-gnu", debian: "arm64", foreign: None },
    false => Target { triple: "x86_64-unknown-linux-gnu", debian: "amd64", foreign: None },
};

/// arm64, cross-compiled.
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
    /// Returns a command for a binutils program of this architecture.
    fn tool(&self, name: &str) -> Command {
        let tools = self.foreign.as_ref().map_or("", |foreign| foreign.tools);
        Command::new(format!("{tools}{name}"))
    }

    /// Returns a command that runs a program of this architecture here.
    fn run_command(&self, program: &Path) -> Command {
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

/// Makes the packages for arm64, on any machine. The program itself generates manual pages and
/// completions; if needed, QEMU runs it.
pub(crate) fn make_for_arm(root: &Path) -> Result<()> {
    ensure_tools_for_arm()?;
    match HOST.triple == ARM.triple {
        true => make_for(root, &HOST),
        false => make_for(root, &ARM),
    }
}

/// Checks that the compiler and the emulator of [`ARM`] are installed.
fn ensure_tools_for_arm() -> Result<()> {
    if let Some(foreign) = &ARM.foreign {
        let is_installed = Command::new(foreign.runner).arg("--version").output().is_ok()
            && ARM.tool("gcc").arg("--version").output().is_ok();
        ensure!(
            is_installed,
            "{}gcc or {} is missing\n  next step: apt-get install {}; rustup target add {}",
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
    empty_folder(&folder)?;
    let packages = packages(root, &folder, target)?;
    write_sums(&folder, &packages)?;
    for package in packages {
        let size = fs::metadata(&package)?.len();
        println!("{}: {:.1} MB", package.display(), size as f64 / 1e6);
    }
    println!("{}: sums", folder.join(SUMS).display());
    Ok(())
}

/// Makes a Debian package of the program of `cargo build`. For tests only; not distributed.
pub(crate) fn make_of_debug(root: &Path) -> Result<()> {
    let built = root.join("target/debug/fwdlab");
    ensure!(built.is_file(), "{} is missing\n  next step: cargo build", built.display());
    let folder = root.join(FOLDER);
    empty_folder(&folder)?;
    debian(root, &folder, &HOST, &strip(root, &built, &HOST)?).map(drop)
}

/// Makes the packages of the last commit twice, in folders of different names, and compares them.
pub(crate) fn make_again(root: &Path) -> Result<()> {
    let scratch = Scratch::new()?;
    let mut sums = BTreeMap::new();
    let mut from = root.to_owned();
    for name in ["one", "another-of-a-longer-name"] {
        let clone = scratch.0.join(name);
        // The second clone is made from the first, because new commits may arrive in between.
        let [origin, to] = [&from, &clone].map(|path| path.display().to_string());
        run(Command::new("git").args(["clone", "--quiet", "--no-hardlinks", &origin, &to]))?;
        from.clone_from(&clone);
        let folder = clone.join(FOLDER);
        empty_folder(&folder)?;
        write_sums(&folder, &packages(&clone, &folder, &HOST)?)?;
        let text = fs::read_to_string(clone.join(FOLDER).join(SUMS))?;
        println!("{text}");
        sums.insert(name, text);
    }
    let texts: Vec<&String> = sums.values().collect();
    ensure!(texts[0] == texts[1], "two builds of one commit differ");
    println!("two builds of one commit are identical");
    Ok(())
}

/// File with the sums, in the format of sha256sum(1).
const SUMS: &str = "SHA256SUMS";

/// Builds below `root` and packs into `folder`; returns the packages.
fn packages(root: &Path, folder: &Path, target: &Target) -> Result<Vec<PathBuf>> {
    let program = strip(root, &build(root, target)?, target)?;
    let size = fs::metadata(&program)?.len();
    ensure!(size <= LARGEST, "{} has {size} bytes; the limit is {LARGEST}", program.display());
    ensure_static(&program)?;
    pack(root, folder, target, &program)
}

/// Strips the program; keeps only the symbols of the router's functions, which profiles name.
fn strip(root: &Path, built: &Path, target: &Target) -> Result<PathBuf> {
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

/// Creates an empty folder; deletes previous contents.
fn empty_folder(folder: &Path) -> Result<()> {
    match fs::remove_dir_all(folder) {
        Err(error) if error.kind() != std::io::ErrorKind::NotFound => Err(error.into()),
        _ => Ok(fs::create_dir_all(folder)?),
    }
}

/// Builds the static program.
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
    // Drop environment variables that would change the build.
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
    let status = cargo.status().context("cannot run cargo")?;
    ensure!(status.success(), "cargo build: {status}");
    Ok(output.join(target.triple).join("release/fwdlab"))
}

/// Fails if the program needs a dynamic linker.
fn ensure_static(program: &Path) -> Result<()> {
    let headers = run(Command::new("readelf").args(["--wide", "--program-headers"]).arg(program))?;
    ensure!(!headers.contains("INTERP"), "{} needs a dynamic linker", program.display());
    Ok(())
}

/// Makes an archive with one folder of the same name.
fn archive(root: &Path, folder: &Path, target: &Target, program: &Path) -> Result<PathBuf> {
    let (version, time) = (version(root)?, time(root)?);
    let architecture = target.triple.split('-').next().unwrap_or_default();
    let name = &format!("fwdlab-{version}-{architecture}-linux");
    let tree = Tree::new(folder.join(name))?;
    tree.file(program, "fwdlab", 0o755)?;
    documents(root, &tree, &|| target.run_command(program), "man", "completions")?;
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

/// Makes a package for Debian and derivatives (deb(5)).
fn debian(root: &Path, folder: &Path, target: &Target, program: &Path) -> Result<PathBuf> {
    let (version, time) = (version(root)?, time(root)?);
    let tree = Tree::new(folder.join("debian"))?;
    tree.file(program, "usr/bin/fwdlab", 0o755)?;
    documents(root, &tree, &|| target.run_command(program), "usr/share/man/man1", "usr/share")?;
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
    // Later times are clamped to the commit's time.
    run(Command::new("dpkg-deb")
        .args(["--root-owner-group", "--uniform-compression", "-Zxz", "--build"])
        .arg(&tree.0)
        .arg(&file)
        .env("SOURCE_DATE_EPOCH", time))?;
    fs::remove_dir_all(&tree.0)?;
    Ok(file)
}

/// Control file of the package (deb-control(5)). The program is static. Programs that most
/// experiments run are recommended, others suggested.
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
 An experiment file specifies the router, firewall, kernel or setting under
 test, its traffic and the number of runs. fwdlab builds the testbed in network
 namespaces, in virtual machines or on racks over ssh, sends the traffic,
 counts what arrives, decides with statistics whether anything has changed, and
 writes the report.
";

/// Adds manual pages and completions, generated by the program itself.
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

/// Adds the experiments tracked by git, as examples.
fn experiments(root: &Path, tree: &Tree, to: &str) -> Result<()> {
    let files = run(Command::new("git")
        .args(["-c", "safe.directory=*", "ls-files", "experiments"])
        .current_dir(root))?;
    for file in files.lines() {
        let name =
            file.strip_prefix("experiments/").context("unexpected output of git ls-files")?;
        tree.file(&root.join(file), &format!("{to}/{name}"), 0o644)?;
    }
    Ok(())
}

/// A folder to fill and pack.
struct Tree(PathBuf);

impl Tree {
    fn new(path: PathBuf) -> Result<Tree> {
        fs::create_dir_all(&path)?;
        // Independent of the umask.
        fs::set_permissions(&path, fs::Permissions::from_mode(0o755))?;
        Ok(Tree(path))
    }

    /// Returns the path of a file and creates the folders above it.
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

/// Returns the version of the workspace.
fn version(root: &Path) -> Result<String> {
    let text = fs::read_to_string(root.join("Cargo.toml"))?;
    let file: toml::Table = text.parse().context("Cargo.toml")?;
    let version = file["workspace"].get("package").and_then(|package| package.get("version"));
    Ok(version.and_then(|version| version.as_str()).context("no version")?.to_owned())
}

/// Returns the size of all files below a folder. Folders are not counted: their size depends on the
/// file system.
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

/// Returns the timestamp of all packed files, seconds since 1970.
fn time(root: &Path) -> Result<String> {
    if let Ok(time) = std::env::var("SOURCE_DATE_EPOCH") {
        return Ok(time);
    }
    let time = run(Command::new("git")
        .args(["-c", "safe.directory=*", "log", "-1", "--format=%ct"])
        .current_dir(root))?;
    Ok(time.trim().to_owned())
}

/// Runs one of the packaging programs; returns its output.
fn run(command: &mut Command) -> Result<String> {
    tool::run(command, "apt-get install git binutils tar xz-utils gzip dpkg coreutils")
}
