//! Small builds, written by hand, with one difference each.

mod assembler;
mod elf;
mod kernel;
mod symbols;

use crate::callers::callers;
use crate::compare::{Change, Comparison, compare};
use crate::reason::Reason;
use assembler::{Item, Program, bytes, function};
use proptest::prelude::*;

/// A program with a function `forward` that calls, reads data and a string, and others.
fn program() -> Program {
    Program {
        text: vec![
            function("other", vec![bytes(&[0x31, 0xc0, 0xc3])]),
            function(
                "forward",
                vec![
                    bytes(&[0x55]),
                    Item::Call("lookup"),
                    // mov 0x40(%rbx),%rax; cmp $0x5,%eax; jne to the end
                    bytes(&[0x48, 0x8b, 0x43, 0x40, 0x83, 0xf8, 0x05, 0x75, 0x0e]),
                    Item::Load("limit"),
                    Item::Address("text"),
                    bytes(&[0x5d, 0xc3]),
                ],
            ),
            function("lookup", vec![Item::Address("table"), bytes(&[0xc3])]),
        ],
        read_only: vec![
            ("unused", b"padding\0".to_vec()),
            ("table", vec![1, 2, 3, 4, 5, 6, 7, 8]),
            ("", b"a string\0".to_vec()),
        ],
        data: vec![("before", vec![0; 8]), ("limit", vec![9, 0, 0, 0])],
        base: 0xffff_ffff_8100_0000,
    }
}

const NAMES: [&str; 2] = ["forward", "lookup"];

fn compared(old: &Program, new: &Program) -> Comparison {
    compare(&old.build(), &new.build(), NAMES)
}

fn reasons(new: &Program) -> Vec<(String, Reason)> {
    let found = compared(&program(), new);
    found.changed.into_iter().map(|Change { function, reason }| (function, reason)).collect()
}

#[test]
fn callers_are_the_functions_that_call_a_name() {
    let build = program().build();
    let found = callers(&build, ["forward", "lookup", "other"]);
    assert_eq!(found.len(), 1, "{found:?}");
    assert!(found["lookup"].iter().eq(&["forward"]), "{found:?}");
    assert!(callers(&build, ["lookup"]).is_empty(), "only among the names");
}

#[test]
fn compare_same_build_is_equal() {
    let found = compared(&program(), &program());
    assert_eq!((found.equal.len(), found.moved), (2, 0), "{found:?}");
    assert!(found.changed.is_empty() && found.unknown.is_empty(), "{found:?}");
}

#[test]
fn compare_moved_code_and_data_is_equal() {
    let mut new = program();
    new.text.insert(0, function("inserted", vec![bytes(&[0xc3])]));
    new.text.swap(1, 3);
    new.read_only.insert(0, ("", b"another string\0".to_vec()));
    new.data.insert(0, ("new", vec![1; 24]));
    new.base += 0x20_0000;
    let found = compared(&program(), &new);
    assert_eq!((found.equal.len(), found.moved), (2, 2), "{found:?}");
}

#[test]
fn compare_absent_function_is_unknown_added_or_removed() {
    let mut new = program();
    new.text.remove(0);
    let names = ["other", "nowhere"];
    let (old, new) = (program().build(), new.build());
    let found = compare(&old, &new, names);
    assert_eq!(found.unknown, ["nowhere"]);
    assert_eq!(found.changed[0].reason, Reason::Removed);
    assert_eq!(compare(&new, &old, names).changed[0].reason, Reason::Added);
}

#[test]
fn compare_other_offset_is_numbers() {
    let mut new = program();
    new.text[1].items[2] = bytes(&[0x48, 0x8b, 0x43, 0x48, 0x83, 0xf8, 0x05, 0x75, 0x0e]);
    assert_eq!(reasons(&new), [("forward".to_owned(), Reason::Numbers { offset: 6 })]);
}

#[test]
fn compare_additional_instruction_is_code() {
    let mut new = program();
    new.text[1].items.insert(1, bytes(&[0x53]));
    assert_eq!(reasons(&new), [("forward".to_owned(), Reason::Code { offset: 1 })]);
    let mut new = program();
    new.text[2].items.insert(1, bytes(&[0x31, 0xc0]));
    assert!(matches!(reasons(&new)[0], (_, Reason::Code { .. })), "{:?}", reasons(&new));
}

#[test]
fn compare_call_of_another_function_is_target() {
    let mut new = program();
    new.text[1].items[1] = Item::Call("other");
    let names = ["lookup".to_owned(), "other".to_owned()];
    assert_eq!(reasons(&new), [("forward".to_owned(), Reason::Target { names })]);
}

#[test]
fn compare_other_string_is_changed() {
    let mut new = program();
    new.read_only[2].1 = b"a stronger\0".to_vec();
    let changed: Vec<String> = reasons(&new).into_iter().map(|(function, _)| function).collect();
    // The string is behind the table, which has no other end.
    assert_eq!(changed, ["forward", "lookup"]);
}

#[test]
fn compare_other_table_or_initial_value_is_data() {
    let mut new = program();
    new.read_only[1].1[5] = 0;
    let reason = Reason::Data { name: "table".to_owned(), offset: 5 };
    assert_eq!(reasons(&new), [("lookup".to_owned(), reason)]);
    let mut new = program();
    new.data[1].1[1] = 1;
    let reason = Reason::Data { name: "limit".to_owned(), offset: 1 };
    assert_eq!(reasons(&new), [("forward".to_owned(), reason)]);
    // Data that the function does not read.
    let mut new = program();
    new.data[0].1[1] = 1;
    new.read_only[0].1[1] = b'-';
    assert!(reasons(&new).is_empty(), "{:?}", reasons(&new));
}

#[test]
fn compare_structure_that_begins_with_the_same_string_is_data() {
    let with = |last: u8| {
        let mut program = program();
        program.read_only[1].1 = [b"name\0\0\0".as_slice(), &[last]].concat();
        program.build()
    };
    let found = compare(&with(1), &with(2), NAMES);
    let reason = Reason::Data { name: "table".to_owned(), offset: 7 };
    assert_eq!(found.changed, [Change { function: "lookup".to_owned(), reason }]);
}

#[test]
fn compare_function_that_runs_on_into_another_is_target() {
    let open = |behind: &'static str| {
        let mut program = program();
        program.text[1].items.pop();
        program.text.insert(2, function(behind, vec![bytes(&[0xc3])]));
        program.build()
    };
    assert!(compare(&open("part"), &open("part"), NAMES).changed.is_empty());
    let found = compare(&open("part"), &open("inserted"), NAMES);
    let names = ["part".to_owned(), "inserted".to_owned()];
    assert_eq!(found.changed[0].reason, Reason::Target { names });
}

#[test]
fn compare_static_call_of_another_function_is_data() {
    let with = |function_called: u8| {
        let mut program = program();
        program.text[1].items[1] = Item::Call("__SCT__hook");
        program.text.push(function("__SCT__hook", vec![bytes(&[0xc3])]));
        program.data.push(("__SCK__hook", vec![function_called; 16]));
        program.build()
    };
    assert!(compare(&with(1), &with(1), NAMES).changed.is_empty());
    let found = compare(&with(1), &with(2), NAMES);
    assert!(matches!(&found.changed[0].reason, Reason::Data { name, .. } if name == "__SCK__hook"));
}

#[test]
fn compare_data_that_refers_to_changed_data_is_never_equal() {
    // Each of two tables refers to the other; the second one changes behind its reference.
    let with = |last: u8| {
        let mut program = program();
        program.read_only[1].1 = vec![0; 8];
        program.read_only[0].1 = [vec![0; 8], vec![last; 4]].concat();
        program.text[1].items[4] = Item::Address("unused");
        program.build_with_pointers(&[("table", "unused"), ("unused", "table")])
    };
    assert!(compare(&with(1), &with(1), NAMES).changed.is_empty());
    let changed = compare(&with(1), &with(2), NAMES).changed;
    assert_eq!(changed.len(), NAMES.len(), "{changed:?}");
}

#[test]
fn compare_exchanged_functions_of_one_name_is_changed() {
    let two = |first: &'static str, second: &'static str| {
        let mut program = program();
        program.text.push(function("twin.1", vec![bytes(&[0x31, 0xc0, 0xc3])]));
        program.text.push(function("twin.2", vec![bytes(&[0x31, 0xd2, 0xc3])]));
        program.text[1].items[1] = Item::Call(first);
        program.text[2].items[0] = Item::Call(second);
        program.build()
    };
    let names = ["forward", "lookup", "twin"];
    let old = two("twin.1", "twin.2");
    assert!(compare(&old, &two("twin.1", "twin.2"), names).changed.is_empty());
    assert!(!compare(&old, &two("twin.2", "twin.1"), names).changed.is_empty());
}

#[test]
fn compare_patched_code_is_patch() {
    let patched = |target: &'static str, key: &'static str, new_code: &[u8]| {
        let mut program = program();
        program.data.push(("key_a", vec![0; 16]));
        program.data.push(("key_b", vec![0; 16]));
        program.text.push(function("replacement", vec![bytes(new_code)]));
        program.build_patched("forward", target, key, "replacement")
    };
    let old = patched("forward", "key_a", &[0x90]);
    let reasons = |new| compare(&old, &new, NAMES).changed;
    assert!(reasons(patched("forward", "key_a", &[0x90])).is_empty());
    assert_eq!(reasons(patched("forward", "key_b", &[0x90])).len(), 1);
    assert_eq!(reasons(patched("lookup", "key_a", &[0x90])).len(), 1);
    assert_eq!(reasons(patched("forward", "key_a", &[0xcc])).len(), 1);
}

proptest! {
    /// A byte of the code that differs is never called equal.
    #[test]
    fn compare_with_any_other_byte_of_code_is_changed(at in 0_usize..27, bit in 0_u32..8) {
        let old = program();
        let mut new = old.build();
        let begin = new.functions("forward")[0].begin();
        let is_changed = assembler::flip(&mut new, begin + at as u64, bit);
        prop_assert!(is_changed);
        let found = compare(&old.build(), &new, ["forward"]);
        prop_assert_eq!(found.changed.len(), 1, "{:?}", found);
    }
}
