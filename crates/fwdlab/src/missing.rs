//! Files that an experiment names but that do not exist. A plan contains only their names: the
//! kernels and disks of machines, and the laboratory.

use fwdlab_model::Plan;
use fwdlab_model::settings::TestbedKind;
use fwdlab_vm::kernel;
use std::path::Path;

/// Returns the files that a plan names and that do not exist, as its file names them.
/// `directory` is the experiment file's.
pub(crate) fn files(plan: &Plan, directory: &Path) -> Vec<String> {
    let testbed = &plan.base.testbed;
    let mut named: Vec<&str> = match testbed.kind {
        TestbedKind::Ssh => testbed.lab.as_deref().into_iter().collect(),
        TestbedKind::Vm => {
            let machines = plan.variants.iter().map(|variant| &variant.settings.testbed.vm);
            let files = machines.flat_map(|vm| [&vm.kernel, &vm.disk]).flatten();
            files.flat_map(|file| file.split(',')).collect()
        }
        _ => Vec::new(),
    };
    named.retain(|name| !directory.join(name).exists() && !is_installed(name));
    let mut unique = Vec::new();
    for name in named {
        if !unique.iter().any(|other| other == name) {
            unique.push(name.to_owned());
        }
    }
    unique
}

/// True for the release of an installed kernel, and for the running kernel, whose absence the
/// testbed explains.
fn is_installed(name: &str) -> bool {
    let is_listed =
        || kernel::installed(Path::new("/")).iter().any(|kernel| kernel.release == name);
    kernel::is_name(Path::new(name)) && (name == kernel::RUNNING || is_listed())
}

/// Next step if files are missing.
pub(crate) fn next_step(plan: &Plan) -> &'static str {
    match plan.base.testbed.kind {
        TestbedKind::Ssh => "correct `lab`, a path from the experiment file",
        _ => {
            "correct these paths, which start at the experiment file; `fwdlab kernels --fetch \
              kernels` fetches kernels"
        }
    }
}
