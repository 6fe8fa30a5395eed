//! Probes the available kinds of guests: boots a guest of a few instructions, and lets QEMU load
//! the plugin.

use crate::error::VmError;
use crate::machine::Accel;
use crate::plugin::Plugin;
use crate::qemu::{self, PACKAGE, QEMU};
use crate::tool;
use std::fs;
use std::path::Path;
use std::process::{Child, Command};
use std::time::{Duration, Instant};

/// Time limit of a small guest whose accelerator sets none.
const PATIENCE: Duration = Duration::from_secs(20);
/// Time limits of the small guest; the host CPU takes milliseconds.
const GUEST: [(Accel, Duration); 2] =
    [(Accel::Kvm, Duration::from_secs(5)), (Accel::Tcg, Duration::from_secs(20))];
/// Output of the small guest.
const WORD: &[u8] = b"fwdlab";
/// Bytes of its read-only memory, which ends at 4 GiB.
const ROM: usize = 0x1_0000;
/// Offset of its code there, and of a CPU's entry point after a reset.
const BEGIN: usize = 0xf000;
const RESET: usize = 0xfff0;

/// Loads the plugin, compiled below `cache`, into a QEMU without a machine. Returns QEMU's version.
///
/// # Errors
/// If QEMU or the compiler is missing, or QEMU accepts no version of the plugin.
pub fn counting(cache: &Path) -> Result<String, VmError> {
    let version = tool::run(QEMU, &["--version"], &[], PACKAGE)?;
    let version = String::from_utf8_lossy(&version);
    Plugin::new(cache)?;
    Ok(version.lines().next().unwrap_or_default().to_owned())
}

/// Boots a guest of a few instructions, which counts down from a million and prints a word; its
/// files are in `directory`. Returns the duration, including QEMU's own start.
///
/// # Errors
/// If QEMU is missing or ends, or the guest prints nothing in time: then QEMU is killed.
pub fn executes(accel: Accel, directory: &Path) -> Result<Duration, VmError> {
    let limit = GUEST.iter().find(|(one, _)| *one == accel).map_or(PATIENCE, |(_, limit)| *limit);
    within(accel, limit, &small_guest(), directory)
}

fn within(accel: Accel, limit: Duration, rom: &[u8], dir: &Path) -> Result<Duration, VmError> {
    let [image, output, log] = ["small.rom", "small.said", "small.log"].map(|name| dir.join(name));
    fs::write(&image, rom).map_err(|source| VmError::file(&image, source))?;
    let errors = fs::File::create(&log).map_err(|source| VmError::file(&log, source))?;
    let [accelerator, cpu] = accel.arguments(1);
    let (image, port) = (image.display().to_string(), format!("file:{}", output.display()));
    let began = Instant::now();
    let mut command = Command::new(QEMU);
    command
        .args([
            "-accel",
            accelerator,
            "-cpu",
            cpu,
            "-machine",
            "q35",
            "-m",
            "16",
            "-display",
            "none",
        ])
        .args(["-nodefaults", "-no-user-config", "-monitor", "none"])
        .args(["-bios", &image, "-debugcon", &port])
        .stderr(errors);
    let mut child = qemu::spawn(&mut command)?;
    let has_printed = || fs::read(&output).is_ok_and(|output| output.starts_with(WORD));
    let why = loop {
        // Checked first: a QEMU whose guest has printed the word may have ended since.
        let status = child.try_wait().ok().flatten();
        if has_printed() {
            break None;
        }
        if let Some(status) = status {
            let words = fs::read_to_string(&log).unwrap_or_default();
            break Some(format!("{} ({status})", words.lines().next().unwrap_or("QEMU ended")));
        }
        if began.elapsed() > limit {
            break Some(format!(
                "a guest of a few instructions has said nothing for {} s",
                limit.as_secs_f64()
            ));
        }
        std::thread::sleep(Duration::from_millis(5));
    };
    let duration = began.elapsed();
    kill(&mut child);
    match why {
        None => Ok(duration),
        Some(why) => Err(VmError::Program {
            program: format!("{QEMU} -accel {}", accel.name()),
            why,
            next: match accel {
                Accel::Kvm => {
                    "leave `accel` out or write accel = \"tcg\"; KVM needs hardware \
                     virtualisation, /dev/kvm, and permission to open it"
                }
                Accel::Tcg | Accel::Counted => "see whether this QEMU has `-accel tcg`",
            }
            .into(),
        }),
    }
}

/// Kills QEMU, which may not respond: a process that hangs in the kernel is abandoned.
fn kill(child: &mut Child) {
    // It may have ended by itself.
    let _ = child.kill();
    let deadline = Instant::now() + Duration::from_secs(2);
    while matches!(child.try_wait(), Ok(None)) && Instant::now() < deadline {
        std::thread::sleep(Duration::from_millis(5));
    }
}

/// Returns the memory that the small guest executes: 16-bit code, as at a CPU's reset.
fn small_guest() -> Vec<u8> {
    let mut rom = vec![0xf4; ROM]; // hlt
    let mut code = vec![
        0x66, 0xb9, 0x40, 0x42, 0x0f, 0x00, // mov ecx, 1000000
        0x66, 0x49, // dec ecx
        0x75, 0xfc, // jnz to the previous instruction
        0xba, 0xe9, 0x00, // mov dx, the port of QEMU's debugcon
    ];
    for byte in WORD {
        code.extend([0xb0, *byte, 0xee]); // mov al, byte; out dx, al
    }
    code.extend([0xf4, 0xeb, 0xfd]); // hlt, and again
    rom[BEGIN..BEGIN + code.len()].copy_from_slice(&code);
    let back = (BEGIN as i64 - (RESET as i64 + 3)) as i16;
    rom[RESET] = 0xe9; // jmp
    rom[RESET + 1..RESET + 3].copy_from_slice(&back.to_le_bytes());
    rom
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Returns false if QEMU is missing, with a notice.
    fn has_qemu() -> bool {
        let is_installed = Command::new(QEMU).arg("--version").output().is_ok();
        if !is_installed {
            fwdlab_testdata::skip(&format!("no guest is booted: {QEMU} is missing"));
        }
        is_installed
    }

    #[test]
    fn small_guest_prints_under_emulation() {
        if !has_qemu() {
            return;
        }
        let directory = tempfile::tempdir().unwrap();
        let took = executes(Accel::Tcg, directory.path()).unwrap_or_else(|e| panic!("{e}"));
        assert!(took > Duration::ZERO);
    }

    #[test]
    fn hanging_guest_is_killed_at_time_limit() {
        if !has_qemu() {
            return;
        }
        let directory = tempfile::tempdir().unwrap();
        let mut silent = small_guest();
        silent[BEGIN..BEGIN + 2].copy_from_slice(&[0xeb, 0xfe]); // jumps to itself
        let limit = Duration::from_millis(1500);
        let began = Instant::now();
        let error = within(Accel::Tcg, limit, &silent, directory.path()).expect_err("it hangs");
        assert!(error.to_string().contains("said nothing for 1.5 s"), "{error}");
        assert!(began.elapsed() >= limit);
    }

    #[test]
    fn qemu_exit_is_reported_with_its_message() {
        if !has_qemu() {
            return;
        }
        let directory = tempfile::tempdir().unwrap();
        // Not a valid size of a BIOS.
        let error = within(Accel::Tcg, PATIENCE, &[0; 7], directory.path());
        let error = error.expect_err("no BIOS").to_string();
        assert!(error.contains("qemu-system") && error.contains("exit status"), "{error}");
    }

    /// The probe returns a result with a reason, with or without KVM.
    #[test]
    fn kvm_probe_returns_a_reason() {
        if !has_qemu() {
            return;
        }
        let directory = tempfile::tempdir().unwrap();
        if let Err(error) = executes(Accel::Kvm, directory.path()) {
            let text = error.to_string();
            assert!(text.contains("-accel kvm: ") && text.contains("accel = \"tcg\""), "{text}");
            eprintln!("KVM does not work here, as it is told: {text}");
        }
    }

    #[test]
    fn qemu_loads_the_plugin() {
        let directory = tempfile::tempdir().unwrap();
        match counting(directory.path()) {
            Ok(version) => assert!(version.starts_with("QEMU"), "{version}"),
            Err(error) => {
                fwdlab_testdata::skip(&format!("guests can't be counted here: {error}"));
            }
        }
    }
}
