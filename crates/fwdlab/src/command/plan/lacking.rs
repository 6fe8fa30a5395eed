//! Requirements of a plan that this machine does not meet, in addition to missing files:
//! programs, files of commands, interface types, rights.

use crate::link_types;
use fwdlab_model::Plan;
use fwdlab_model::settings::{Settings, TestbedKind};
use fwdlab_model::words;
use std::collections::BTreeSet;
use std::path::Path;

/// Endings of files that commands read.
const READ: [&str; 4] = [".sh", ".py", ".nft", ".conf"];

/// Programs, files of commands and rights that a run of the plan needs and this machine lacks, as
/// text. Guests and other machines are not checked.
pub(super) fn lacking(plan: &Plan) -> Vec<String> {
    let is_here = matches!(plan.base.testbed.kind, TestbedKind::Auto | TestbedKind::Netns);
    let variants = plan.variants.iter().filter(|_| is_here);
    let mut found: BTreeSet<String> =
        variants.flat_map(|variant| commands(&variant.settings)).collect();
    let types = link_types::lacking(plan).into_iter();
    found.extend(types.map(|text| format!("{text}; next step: {}", link_types::NEXT_STEP)));
    found.extend(rights(plan));
    found.into_iter().collect()
}

/// Missing programs and files that the commands of a variant use.
fn commands(settings: &Settings) -> Vec<String> {
    let dut = &settings.dut;
    let around = dut.hooks.setup.iter().chain(&dut.hooks.teardown);
    let around = around.filter_map(|line| words::split(line).ok());
    let all = around.chain([dut.command.start.clone()]);
    let lacking = all.filter_map(|command| {
        let (program, arguments) = command.split_first()?;
        if !is_program(program) {
            return Some(format!("program {program}: not found"));
        }
        let reads = |word: &&String| READ.iter().any(|ending| word.ends_with(ending));
        let mut read = arguments.iter().filter(reads).filter(|word| !word.contains('{'));
        let file = read.find(|word| !Path::new(word).exists())?;
        Some(format!("file {file} of `{}`: not found from here", words::join(&command)))
    });
    lacking.collect()
}

fn is_program(name: &str) -> bool {
    if name.contains('/') {
        return Path::new(name).exists();
    }
    let path = std::env::var_os("PATH").unwrap_or_default();
    let beyond = ["/usr/sbin", "/sbin"].map(|folder| Path::new(folder).to_owned());
    std::env::split_paths(&path).chain(beyond).any(|folder| folder.join(name).is_file())
}

/// A right that the testbed needs and this user lacks.
#[cfg(target_os = "linux")]
fn rights(plan: &Plan) -> Option<String> {
    use fwdlab_bench::probe::Privilege;
    let needs_root = plan.base.testbed.kind == TestbedKind::Vm && plan.base.testbed.vm.is_timed;
    let is_root = || matches!(Privilege::of_root(), Privilege::Root);
    (needs_root && !is_root()).then(|| {
        "root: the rate of a guest is measured over taps, which only root makes".to_owned()
    })
}

#[cfg(not(target_os = "linux"))]
fn rights(_: &Plan) -> Option<String> {
    None
}

#[cfg(test)]
mod tests {
    use super::*;

    fn found(text: &str) -> Vec<String> {
        let plan = fwdlab_model::load("x.toml", text, &|_| Ok(Vec::new()))
            .unwrap_or_else(|faults| panic!("{}", faults.render(false)));
        lacking(&plan)
    }

    #[test]
    fn lacking_lists_each_missing_program_and_file_once() {
        let command = "version = 1\n[testbed]\nkind = \"netns\"\n[dut]\nkind = \"command\"\n\
                       start = [\"sh\", \"nowhere/x.sh\", \"{ingress}\", \"{egress}\"]\n\
                       [[factor]]\nname = \"set\"\nlevels = [{ label = \"a\" }, { label = \"b\", \
                       setup = [\"no-such-program -x\", \"true\"] }]\n";
        let lacks = found(command);
        assert_eq!(lacks.len(), 2, "{lacks:?}");
        assert!(lacks[0].starts_with("file nowhere/x.sh of `sh nowhere/x.sh "), "{lacks:?}");
        assert_eq!(lacks[1], "program no-such-program: not found");
        assert!(found(&command.replace("netns", "sim")).is_empty());
    }
}
