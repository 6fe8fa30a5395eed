//! Functions by address.

/// Name and address of a function.
#[derive(Clone, Debug, PartialEq, Eq)]
struct Symbol {
    address: u64,
    /// Preference among several names for one address; the lowest wins.
    rank: u8,
    name: String,
}

/// The functions of a kernel and its modules, by address.
#[derive(Clone, Debug, Default)]
pub struct Symbols {
    sorted: Vec<Symbol>,
}

impl Symbols {
    /// Reads `/proc/kallsyms` of Linux: address, kind, name, and a module in brackets.
    pub fn of_kallsyms(text: &str) -> Symbols {
        let mut symbols = Symbols::default();
        symbols.add(text, 0);
        symbols
    }

    /// Reads the output of `nm` for each loaded module of FreeBSD, after a line `module` with its
    /// address in hexadecimal digits, and its file.
    pub fn of_modules(text: &str) -> Symbols {
        let mut symbols = Symbols::default();
        for module in text.split("module ").skip(1) {
            let (head, functions) = module.split_once('\n').unwrap_or((module, ""));
            let (at, file) = head.split_once(' ').unwrap_or((head, ""));
            // Addresses in a kernel are absolute, in a module relative to its beginning.
            let is_kernel = file.rsplit('/').next() == Some("kernel");
            let base = if is_kernel { Ok(0) } else { u64::from_str_radix(at, 16) };
            symbols.add(functions, base.unwrap_or(0));
        }
        symbols
    }

    /// Adds the output of `nm` for a kernel, or for a module loaded at `base`.
    pub fn add(&mut self, text: &str, base: u64) {
        let read = text.lines().filter_map(|line| {
            let mut words = line.split_ascii_whitespace();
            let address = u64::from_str_radix(words.next()?, 16).ok()?;
            let rank = match words.next()? {
                "T" => 0,
                "t" => 1,
                "W" | "w" | "i" => 2,
                _ => return None,
            };
            let name = plain(words.next()?).to_owned();
            Some(Symbol { address: address.checked_add(base)?, rank, name })
        });
        self.sorted.extend(read.filter(|symbol| symbol.address != 0));
        self.sorted.sort_by(|a, b| (a.address, a.rank, &a.name).cmp(&(b.address, b.rank, &b.name)));
        self.sorted.dedup_by_key(|symbol| symbol.address);
    }

    /// Number of functions.
    pub fn len(&self) -> usize {
        self.sorted.len()
    }

    /// True if there are none.
    pub fn is_empty(&self) -> bool {
        self.sorted.is_empty()
    }

    /// Returns the name of the function that contains `address`; `None` below the first one.
    pub fn name(&self, address: u64) -> Option<&str> {
        let after = self.sorted.partition_point(|symbol| symbol.address <= address);
        Some(&self.sorted.get(after.checked_sub(1)?)?.name)
    }

    /// Returns the address of a function.
    pub fn address(&self, name: &str) -> Option<u64> {
        self.sorted.iter().find(|symbol| symbol.name == name).map(|symbol| symbol.address)
    }
}

/// Returns a name without compiler suffixes for parts and copies of functions: they differ between
/// builds.
fn plain(name: &str) -> &str {
    let end = [".isra.", ".constprop.", ".part.", ".cold", ".llvm."]
        .iter()
        .filter_map(|suffix| name.find(suffix))
        .min();
    end.map_or(name, |end| &name[..end])
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn name_returns_preceding_function() {
        let text = "ffffffff81000000 T _text\n\
                    ffffffff81000100 t ip_rcv_core.isra.0\n\
                    ffffffff81000100 t alias\n\
                    ffffffff81000100 T known\n\
                    ffffffff82000000 D data\n\
                    ffffffffc0000000 t virtnet_poll\t[virtio_net]\n\
                    0000000000000000 A fixed_percpu_data\nnonsense\n";
        let symbols = Symbols::of_kallsyms(text);
        assert_eq!(symbols.len(), 3);
        assert_eq!(symbols.name(0xffff_ffff_8100_00ff), Some("_text"));
        assert_eq!(symbols.name(0xffff_ffff_8100_0100), Some("known"));
        assert_eq!(symbols.name(0xffff_ffff_c000_0001), Some("virtnet_poll"));
        assert_eq!(symbols.name(0x1000), None);
        assert_eq!(symbols.address("virtnet_poll"), Some(0xffff_ffff_c000_0000));
    }

    #[test]
    fn add_relocates_module_to_its_base() {
        let mut symbols = Symbols::of_kallsyms("ffffffff80200000 T btext\n");
        symbols.add("0000000000001000 t dxr_lookup.part.3\n", 0xffff_ffff_8240_0000);
        assert_eq!(symbols.name(0xffff_ffff_8240_1004), Some("dxr_lookup"));
    }

    #[test]
    fn of_modules_relocates_freebsd_modules() {
        let symbols = Symbols::of_modules(
            "module ffffffff80200000 /boot/kernel/kernel\n\
             ffffffff80414060 t vtnet_rx_vq_process\n\
             module ffffffff80e00000 /boot/kernel/pf.ko\n\
             0000000000000100 T pf_test\n",
        );
        assert_eq!(symbols.address("vtnet_rx_vq_process"), Some(0xffff_ffff_8041_4060));
        assert_eq!(symbols.address("pf_test"), Some(0xffff_ffff_80e0_0100));
    }
}
