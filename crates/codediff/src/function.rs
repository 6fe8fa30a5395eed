//! Functions: their extent and instructions.

use crate::image::{Image, Location};
use crate::reference::{self, Reference};
use iced_x86::{Decoder, DecoderOptions, FlowControl, Mnemonic};

/// An instruction.
#[derive(Clone, Debug)]
pub(crate) struct Step {
    /// Distance from the beginning of the code.
    pub(crate) offset: u64,
    /// Its bytes, with zeros in the fields of addresses.
    pub(crate) bytes: Vec<u8>,
    /// Its bytes, with zeros in the fields of all numbers.
    pub(crate) shape: Vec<u8>,
    pub(crate) references: Vec<Reference>,
    is_padding: bool,
    is_jump: bool,
    /// True if nothing is executed behind it.
    is_end: bool,
    is_valid: bool,
}

/// The instructions of a function.
#[derive(Debug)]
pub(crate) struct Function<'a> {
    pub(crate) location: Location<'a>,
    pub(crate) steps: Vec<Step>,
}

impl<'a> Function<'a> {
    /// Decodes the function at `location`; `None` if part of it is not code. The padding behind it
    /// is left out.
    pub(crate) fn decode(location: Location<'a>) -> Option<Function<'a>> {
        let mut steps = decode(location.image, location.begin(), location.extent)?;
        while steps.last().is_some_and(|step| step.is_padding) {
            steps.pop();
        }
        Some(Function { location, steps })
    }

    /// Address of its first instruction.
    pub(crate) fn begin(&self) -> u64 {
        self.location.begin()
    }

    /// True unless its last instruction continues behind it.
    pub(crate) fn ends(&self) -> bool {
        let Some(last) = self.steps.last() else { return true };
        let calls_no_return = || {
            let target = last.references.first().and_then(|one| self.location.to(one.target));
            target.is_some_and(|target| NO_RETURN.contains(&target.symbol))
        };
        last.is_end || calls_no_return()
    }

    /// True if the address is within the function.
    pub(crate) fn contains(&self, address: u64) -> bool {
        address.wrapping_sub(self.begin()) < self.location.extent
    }
}

/// Functions that do not return.
const NO_RETURN: [&str; 4] = ["__stack_chk_fail", "panic", "do_exit", "__fortify_panic"];

/// Longest code that is decoded as far as a jump.
const BRANCHES: u64 = 128;

/// Decodes instructions as far as the first unconditional jump; `None` if it is too far.
pub(crate) fn decode_to_jump(image: &Image, begin: u64, left: u64) -> Option<Vec<Step>> {
    // The last instruction can be cut.
    let mut steps = decode_all(image, begin, left.min(BRANCHES))?;
    let end = steps.iter().position(|step| step.is_jump)?;
    steps.truncate(end + 1);
    steps.iter().all(|step| step.is_valid).then_some(steps)
}

/// Decodes instructions; `None` if some bytes are not instructions.
pub(crate) fn decode(image: &Image, begin: u64, length: u64) -> Option<Vec<Step>> {
    let mut steps = decode_all(image, begin, length)?;
    // Only zeros may follow the code.
    while steps.last().is_some_and(|step| !step.is_valid && step.bytes.iter().all(|b| *b == 0)) {
        steps.pop();
    }
    steps.iter().all(|step| step.is_valid).then_some(steps)
}

/// Decodes instructions, also invalid ones.
fn decode_all(image: &Image, begin: u64, length: u64) -> Option<Vec<Step>> {
    let code = image.bytes(begin, length)?;
    let mut decoder = Decoder::with_ip(64, code, begin, DecoderOptions::NONE);
    let mut steps = Vec::new();
    while decoder.can_decode() {
        let instruction = decoder.decode();
        let offset = instruction.ip() - begin;
        let from = offset as usize;
        let mut bytes = code[from..from + instruction.len()].to_vec();
        let offsets = decoder.get_constant_offsets(&instruction);
        let references: Vec<Reference> =
            reference::references(image, &instruction, &offsets).collect();
        for Reference { field: (at, size), .. } in &references {
            clear(&mut bytes, *at, *size);
        }
        let mut shape = bytes.clone();
        if offsets.has_displacement() {
            clear(&mut shape, offsets.displacement_offset(), offsets.displacement_size());
        }
        if offsets.has_immediate() {
            clear(&mut shape, offsets.immediate_offset(), offsets.immediate_size());
        }
        let is_padding = matches!(instruction.mnemonic(), Mnemonic::Nop | Mnemonic::Int3);
        let is_jump = instruction.flow_control() == FlowControl::UnconditionalBranch;
        let is_end = matches!(
            instruction.flow_control(),
            FlowControl::UnconditionalBranch
                | FlowControl::IndirectBranch
                | FlowControl::Return
                | FlowControl::Exception
        );
        let is_valid = !instruction.is_invalid();
        steps.push(Step {
            offset,
            bytes,
            shape,
            references,
            is_padding,
            is_jump,
            is_end,
            is_valid,
        });
    }
    Some(steps)
}

/// Sets a field to zero.
fn clear(bytes: &mut [u8], at: usize, size: usize) {
    bytes[at..at + size].fill(0);
}
