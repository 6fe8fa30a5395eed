//! The addresses to which an instruction refers.

use crate::image::Image;
use iced_x86::{Code, ConstantOffsets, Instruction, Mnemonic, OpKind, Register};

/// Section of per-CPU data, which has addresses from 0 until Linux 6.14.
const PER_CPU: &str = ".data..percpu";
/// Numbers below are more likely constants than addresses of per-CPU data, which begins with a page
/// that only assembly code uses.
const PAGE: u64 = 4096;

/// Use of an address by an instruction.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Use {
    /// It jumps there or calls it.
    Branch,
    /// It reads or writes that number of bytes there.
    Access(u64),
    /// It reads or writes at a distance from there: a table.
    Table,
    /// It takes the address itself.
    Address,
}

/// An address in an instruction.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Reference {
    /// Offset and length of its field in the instruction.
    pub(crate) field: (usize, usize),
    pub(crate) target: u64,
    pub(crate) how: Use,
}

/// Finds the addresses in an instruction: at most one as displacement and one as immediate.
pub(crate) fn references(
    image: &Image,
    instruction: &Instruction,
    offsets: &ConstantOffsets,
) -> impl Iterator<Item = Reference> + use<> {
    let branch = is_branch(instruction).then(|| Reference {
        field: (offsets.immediate_offset(), offsets.immediate_size()),
        target: instruction.near_branch_target(),
        how: Use::Branch,
    });
    let memory = displacement(image, instruction, offsets);
    let immediate = match branch {
        Some(_) => None,
        None => immediate(image, instruction, offsets),
    };
    [branch, memory, immediate].into_iter().flatten()
}

fn is_branch(instruction: &Instruction) -> bool {
    instruction.op_count() > 0 && instruction.op0_kind() == OpKind::NearBranch64
}

fn displacement(
    image: &Image,
    instruction: &Instruction,
    offsets: &ConstantOffsets,
) -> Option<Reference> {
    if !offsets.has_displacement() {
        return None;
    }
    let field = (offsets.displacement_offset(), offsets.displacement_size());
    let place = instruction.ip() + field.0 as u64;
    let target = instruction.memory_displacement64();
    let is_indexed = instruction.memory_index() != Register::None;
    let has_base = !matches!(instruction.memory_base(), Register::None | Register::RIP);
    // Displacements are sign-extended.
    let encoded = if field.1 == 4 { target as i32 as u64 } else { target };
    let of_gs = instruction.memory_segment() == Register::GS;
    let is_address = instruction.is_ip_rel_memory_operand()
        || image.absolute.get(&place).is_some_and(|width| usize::from(*width) == field.1)
        || (field.1 == 4 && is_per_cpu(image, encoded, of_gs));
    let size = instruction.memory_size().size() as u64;
    let how = match () {
        () if is_indexed || has_base || is_bit_test(instruction) => Use::Table,
        () if size == 0 => Use::Address,
        () => Use::Access(size),
    };
    is_address.then_some(Reference { field, target, how })
}

/// True if a register selects a bit, which can be beyond the bytes at the address.
fn is_bit_test(instruction: &Instruction) -> bool {
    matches!(instruction.mnemonic(), Mnemonic::Bt | Mnemonic::Bts | Mnemonic::Btr | Mnemonic::Btc)
        && instruction.op1_kind() == OpKind::Register
}

fn immediate(
    image: &Image,
    instruction: &Instruction,
    offsets: &ConstantOffsets,
) -> Option<Reference> {
    if !offsets.has_immediate() {
        return None;
    }
    let field = (offsets.immediate_offset(), offsets.immediate_size());
    let how = Use::Address;
    match image.pointer(instruction.ip() + field.0 as u64) {
        Some((target, width)) if usize::from(width) == field.1 => {
            Some(Reference { field, target, how })
        }
        _ if field.1 == 4 => {
            let target = instruction.immediate(instruction.op_count() - 1);
            // Compilers load other positive constants with the shorter form for 32 bits.
            let is_certain = instruction.code() == Code::Mov_rm64_imm32;
            // Other instructions have large constants more often than addresses of per-CPU data.
            let can_be_one = is_certain || image.names(target).next().is_some();
            (can_be_one && is_per_cpu(image, target, is_certain)).then_some(Reference {
                field,
                target,
                how,
            })
        }
        _ => None,
    }
}

/// True if a number without relocation can be the address of per-CPU data: the linker resolves these
/// addresses until Linux 6.14. A constant that happens to be one is compared by that variable's
/// name, so it can seem changed, but not equal.
fn is_per_cpu(image: &Image, target: u64, is_certain: bool) -> bool {
    image.section(target).is_some_and(|section| section.name == PER_CPU)
        && (is_certain || target >= PAGE)
}
