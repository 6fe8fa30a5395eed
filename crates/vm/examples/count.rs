//! Counts what forwarding costs in a kernel: `count KERNEL [PACKETS]`.

use fwdlab_vm::costs::{Burst, costs};
use fwdlab_vm::kernel::Kernel;
use fwdlab_vm::linux::Guest;
use fwdlab_vm::machine::{self, Accel, Model, Nic};
use fwdlab_vm::symbols::Symbols;
use fwdlab_vm::wire::{Lockstep, Wire};
use std::path::PathBuf;
use std::process::Command;
use std::time::{Duration, Instant};

fn main() -> Result<(), Box<dyn std::error::Error>> {
    let mut arguments = std::env::args().skip(1);
    let kernel = PathBuf::from(arguments.next().ok_or("which kernel?")?);
    let packets: usize = arguments.next().map_or(Ok(1600), |n| n.parse())?;
    let cache = std::env::temp_dir().join("fwdlab-vm-cache");
    let began = Instant::now();
    let kernel = Kernel::find(&kernel, &cache)?;
    machine::clean(&std::env::temp_dir());
    let directory = machine::directory(&std::env::temp_dir(), 0)?;
    let wires = [Wire::bind(&directory, 0)?, Wire::bind(&directory, 1)?];
    let nics = (1..).zip(&wires).map(|(number, wire)| Nic {
        model: Model::Virtio,
        mac: format!("02:00:c6:12:00:0{number}"),
        queues: 1,
        gathers: true,
        backend: wire.backend(),
    });
    let guest = Guest {
        kernel: &kernel,
        accel: Accel::Tcg,
        cpus: 1,
        memory: 256,
        nics: nics.collect(),
        firewall: true,
        append: "",
        cache: &cache,
    };
    let running = guest.boot(&directory, || Ok(()))?;
    wires.iter().try_for_each(Wire::connect)?;
    println!("booted after {:.1} s", began.elapsed().as_secs_f64());
    let ssh = |command: &str| -> Result<String, Box<dyn std::error::Error>> {
        let output = Command::new("ssh")
            .arg("-F").arg(&running.ssh_config).args(["dut", command]).output()?;
        if !output.status.success() {
            return Err(String::from_utf8_lossy(&output.stderr).into_owned().into());
        }
        Ok(String::from_utf8(output.stdout)?)
    };
    let symbols = Symbols::of_kallsyms(&ssh("cat /proc/kallsyms")?);
    println!("{} functions after {:.1} s", symbols.len(), began.elapsed().as_secs_f64());
    println!("{}", ssh(
        "set -e; a=eth1; b=eth2; ip addr add 198.18.0.1/24 dev $a; ip link set $a up; \
         ip addr add 198.19.0.1/24 dev $b; ip link set $b up; \
         ip neigh add 198.19.0.2 lladdr 02:00:c6:12:02:01 dev $b nud permanent; \
         sysctl -w net.ipv4.ip_forward=1; ip -br addr; nft --version",
    )?);
    let counts = running.counts.as_ref().ok_or("no counts")?;
    let mut lockstep = Lockstep::new(&running.machine, counts, [&wires[0], &wires[1]]);
    let mut frame = vec![0u8; 60];
    frame[..6].copy_from_slice(&[2, 0, 0xc6, 0x12, 0, 1]);
    frame[6..14].copy_from_slice(&[2, 0, 0xc6, 0x12, 1, 1, 8, 0]);
    frame[14..34].copy_from_slice(&[
        0x45, 0, 0, 46, 0, 0, 0x40, 0, 64, 17, 0, 0, 198, 18, 0, 2, 198, 19, 0, 2,
    ]);
    let sum: u32 = frame[14..34].chunks(2).map(|w| u32::from(w[0]) << 8 | u32::from(w[1])).sum();
    let sum = !((sum & 0xffff) + (sum >> 16)) as u16;
    frame[24..26].copy_from_slice(&sum.to_be_bytes());
    frame[38..40].copy_from_slice(&26u16.to_be_bytes());
    let mut burst = |packets: usize| -> Result<(usize, f64), Box<dyn std::error::Error>> {
        let began = Instant::now();
        let mut through = 0;
        for _ in 0..packets / 32 {
            through += lockstep.batch((0..32).map(|_| frame.as_slice()), Duration::from_secs(2), |f| f.len() >= 60 && f[12..14] == [8, 0])?;
        }
        lockstep.wait_for_rest()?;
        Ok((through, began.elapsed().as_secs_f64()))
    };
    burst(320)?;
    let mut bursts = Vec::new();
    for _ in 0..5 {
        let before = counts.counts()?;
        let (through, seconds) = burst(packets)?;
        let after = counts.counts()?;
        let began = Instant::now();
        std::thread::sleep(Duration::from_secs_f64(seconds));
        let idle_seconds = began.elapsed().as_secs_f64();
        let idle = counts.counts()?;
        bursts.push(Burst {
            packets: through as u64,
            executed: after.since(&before)?,
            idle: idle.since(&after)?,
            scale: seconds / idle_seconds,
        });
    }
    let costs = costs(&bursts, &symbols);
    println!(
        "{:?} packets, {:.1?} instructions a packet: {:.2}, background {:.2}, {} atomics {:.2} bytes; scattered {}",
        costs.packets, costs.bursts, costs.instructions, costs.background, costs.atomics, costs.bytes, lockstep.scattered()
    );
    for function in costs.functions.iter().take(25) {
        println!("{:9.2} [{:9.2} {:9.2}] {:6.2} {}", function.instructions, function.range.0, function.range.1, function.atomics, function.name);
    }
    println!("{:.1} s in all", began.elapsed().as_secs_f64());
    Ok(())
}
