//! Normal form of a frame's name.
//!
//! Profilers print the same function differently: DTrace as ``kernel`ip_input+0x12``, bpftrace as
//! `ip_input+18`, bcc as `ip_input+0x12 [kernel]`, stackcollapse-perf.pl as `ip_input_[k]`. Idle
//! time, harness, subsystems and comparisons work on the function's name alone, so every reader
//! normalises each frame once, with [`FrameName`].

/// Suffixes by which tools mark frames of the kernel, inlined frames, wakers and compiled code.
const MARKS: [&str; 4] = ["_[k]", "_[i]", "_[w]", "_[j]"];

/// Parts of a frame's name.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct FrameName<'a> {
    /// Kernel module, program or library. `None` if it is not printed.
    pub module: Option<&'a str>,
    /// Name of the function: the normal form.
    pub function: &'a str,
    /// Offset from the function's start, without the plus sign. `None` if it is not printed.
    pub offset: Option<&'a str>,
}

impl<'a> FrameName<'a> {
    /// Divides a name. Text in none of the known forms is the function.
    pub fn parse(frame: &'a str) -> FrameName<'a> {
        let text = frame.trim();
        let text = MARKS.iter().find_map(|mark| text.strip_suffix(mark)).unwrap_or(text);
        let (module, text) =
            module_before(text).or_else(|| module_after(text)).unwrap_or(("", text));
        let (function, offset) = divide_offset(text);
        if function.is_empty() {
            return FrameName { module: None, function: frame, offset: None };
        }
        FrameName { module: Some(module).filter(|module| !module.is_empty()), function, offset }
    }
}

/// Returns the normal form of a frame's name: the function without module, offset and mark.
pub fn normal(frame: &str) -> &str {
    FrameName::parse(frame).function
}

/// Divides ``kernel`ip_input`` into module and rest.
fn module_before(text: &str) -> Option<(&str, &str)> {
    let (module, rest) = text.rsplit_once('`')?;
    // Microsoft's `anonymous namespace' is no module.
    let is_module = module.chars().all(|c| c.is_ascii_alphanumeric() || "._-+`".contains(c));
    (is_module && !rest.is_empty() && !rest.contains('\'')).then_some((module, rest))
}

/// Divides `ip_input+0x12 [kernel]` into module and rest.
fn module_after(text: &str) -> Option<(&str, &str)> {
    let (rest, module) = text.strip_suffix(']')?.rsplit_once(" [")?;
    let is_module = module.starts_with(|c: char| c.is_ascii_alphabetic())
        && module.chars().all(|c| c.is_ascii_alphanumeric() || "._-".contains(c));
    // GCC appends `[clone .cold]` to names, and names of processes may contain anything.
    (is_module && !rest.is_empty() && !rest.contains(' ')).then_some((module, rest))
}

/// Divides `ip_rcv+0x4f` or `ip_rcv+79` into function and offset.
fn divide_offset(text: &str) -> (&str, Option<&str>) {
    match text.rsplit_once('+') {
        Some((function, offset)) if !function.is_empty() && is_offset(offset) => {
            (function, Some(offset))
        }
        _ => (text, None),
    }
}

fn is_offset(text: &str) -> bool {
    let all = |digits: &str, is_digit: fn(&u8) -> bool| {
        !digits.is_empty() && digits.bytes().all(|byte| is_digit(&byte))
    };
    match text.strip_prefix("0x") {
        Some(hex) => all(hex, u8::is_ascii_hexdigit),
        None => all(text, u8::is_ascii_digit),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    #[test]
    fn parse_divides_module_function_and_offset() {
        for (frame, module, function, offset) in [
            ("ip_rcv", None, "ip_rcv", None),
            ("ip_rcv+0x4f", None, "ip_rcv", Some("0x4f")),
            ("ip_rcv+79", None, "ip_rcv", Some("79")),
            ("kernel`ip_input+0x12", Some("kernel"), "ip_input", Some("0x12")),
            ("LM0x1`libc.so.7`write", Some("LM0x1`libc.so.7"), "write", None),
            ("`acpi_cpu_c1", None, "acpi_cpu_c1", None),
            ("do_idle_[k]", None, "do_idle", None),
            ("do_idle+0x1f_[k]", None, "do_idle", Some("0x1f")),
            ("ixgbe_poll+0x1 [ixgbe]", Some("ixgbe"), "ixgbe_poll", Some("0x1")),
        ] {
            assert_eq!(FrameName::parse(frame), FrameName { module, function, offset }, "{frame}");
        }
    }

    #[test]
    fn normal_keeps_other_names() {
        for name in [
            "+0x4f",
            "operator+",
            "a+size",
            "a+bad",
            "kernel`",
            "_[k]",
            "`anonymous namespace'::f",
            "std::foo() [clone .cold]",
            "ip_forward.cold",
            "Thread [3]",
            "[unknown libc.so.6]",
            "kworker/u8:2+flush-8:0",
            "a b`c",
            "",
        ] {
            assert_eq!(normal(name), name);
        }
    }

    proptest! {
        #[test]
        fn normal_form_is_independent_of_decoration(
            function in "[a-z_][a-z0-9_.]{0,8}[a-z]",
            module in "[a-z][a-z0-9_.]{0,6}",
            offset in 0..4096_u32,
        ) {
            for frame in [
                format!("{module}`{function}"),
                format!("{module}`{function}+{offset:#x}"),
                format!("{function}+{offset}"),
                format!("{function}+{offset:#x}_[k]"),
                format!("{function}+{offset:#x} [{module}]"),
            ] {
                prop_assert_eq!(normal(&frame), function.as_str());
            }
            prop_assert_eq!(normal(&function), function.as_str());
        }

        #[test]
        fn normal_form_is_never_empty_and_part_of_the_frame(frame in "\\PC{1,12}") {
            let function = normal(&frame);
            prop_assert!(!function.is_empty() && frame.contains(function));
        }
    }
}
