//! The guest's modprobe(8): a script that loads the modules that the kernel requests when a ruleset
//! first needs them. Aliases and dependencies come from the modules, so a guest needs no depmod(8).
//! The kernel executes the program named by `kernel.modprobe` (kernel/module/kmod.c of Linux), for
//! example `modprobe -q -- nft-chain-2-nat`.

use crate::kernel::{Module, aliases, dependencies, normalised};

/// Path of the script, below the guest's root.
pub(crate) const PATH: &str = "sbin/modprobe";

/// Returns the path of a module's file, below the guest's root.
pub(crate) fn place(name: &str) -> String {
    format!("modules/{name}.ko")
}

/// Returns the script that loads these modules on request, each after its dependencies.
pub(crate) fn script(modules: &[Module]) -> String {
    let arm = |(name, content): &Module| {
        let needed = dependencies(content).into_iter().map(|one| normalised(&one));
        let needed: String = needed.map(|one| format!("load {one}; ")).collect();
        format!("{}) {needed}/bin/busybox insmod /{};;\n", normalised(name), place(name))
    };
    let named = |(name, content): &Module| {
        let mut names: Vec<String> = aliases(content).iter().map(|one| normalised(one)).collect();
        names.push(normalised(name));
        format!("{}) load {};;\n", names.join("|"), normalised(name))
    };
    let arms: String = modules.iter().map(arm).collect();
    let names: String = modules.iter().map(named).collect();
    format!(
        "#!/bin/busybox sh\n\
         load() {{\n\
         [ ! -d /sys/module/$1 ] || return 0\n\
         case $1 in\n\
         {arms}\
         esac\n\
         }}\n\
         for name; do :; done\n\
         case $(echo \"$name\" | /bin/busybox tr - _) in\n\
         {names}\
         *) exit 1;;\n\
         esac\n"
    )
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::fs;
    use std::process::Command;

    fn module(name: &str, aliases: &[&str], depends: &str) -> Module {
        let aliases: String = aliases.iter().map(|alias| format!("alias={alias}\0")).collect();
        (name.to_owned(), format!("\x7fELF..\0{aliases}depends={depends}\0name=x\0").into_bytes())
    }

    /// Runs the script with its programs and directories replaced for a test, and returns
    /// the files that it loads, in order.
    fn loaded(modules: &[Module], present: &[&str], request: &str) -> Option<Vec<String>> {
        let directory = tempfile::tempdir().unwrap();
        let at = |name: &str| directory.path().join(name).to_string_lossy().into_owned();
        for name in present {
            fs::create_dir_all(at(&format!("sys/{name}"))).unwrap();
        }
        fs::write(at("insmod"), format!("#!/bin/sh\necho $1 >> {}\n", at("log"))).unwrap();
        let script = script(modules)
            .replace("/sys/module", &at("sys"))
            .replace("/bin/busybox insmod", &format!("sh {}", at("insmod")))
            .replace("/bin/busybox tr", "tr");
        fs::write(at("modprobe"), script).unwrap();
        let ended = Command::new("sh").args([&at("modprobe"), "-q", "--", request]).status();
        let log = fs::read_to_string(at("log")).unwrap_or_default();
        ended.unwrap().success().then(|| log.lines().map(str::to_owned).collect())
    }

    #[test]
    fn request_by_alias_loads_the_module_after_its_dependencies() {
        let modules = [
            module("nf_tables", &["nfnetlink-subsys-10"], "nfnetlink"),
            module("nf-conntrack", &["ip_conntrack"], ""),
            module("nf_nat", &[], "nf_conntrack"),
            module("nft_masq", &["nft-expr-masq"], "nf_nat,nf_tables"),
            module("nft_chain_nat", &["nft-chain-2-nat", "nft-chain-10-nat"], "nf_nat,nf_tables"),
        ];
        let of = |request: &str| loaded(&modules, &["nf_tables"], request);
        let path = |name: &&str| format!("/modules/{name}.ko");
        let paths = |names: &[&str]| Some(names.iter().map(path).collect::<Vec<_>>());
        // A dependency that is missing here is built in.
        assert_eq!(of("nft-chain-10-nat"), paths(&["nf-conntrack", "nf_nat", "nft_chain_nat"]));
        assert_eq!(of("nft-expr-masq"), paths(&["nf-conntrack", "nf_nat", "nft_masq"]));
        assert_eq!(of("nf_conntrack"), paths(&["nf-conntrack"]));
        assert_eq!(of("nf_tables"), paths(&[]), "it is loaded");
        assert_eq!(of("nft-expr-socket"), None);
    }
}
