//! What long frames have beyond their buffer.
//!
//! Memory of the whole process, made as it is needed and used again. A frame holds a number
//! rather than a pointer: circuits share frames with other processes, which may write
//! anything into them, and a wrong number is another tail or none, but never other memory.

use std::sync::{Mutex, MutexGuard, OnceLock, PoisonError};

/// Bytes of each.
pub(super) const TAIL: usize = 7680;
/// Most of them: what 64 workers have at a time, in batches and waiting.
const TAILS: usize = 1 << 16;

type Bytes = Box<[u8; TAIL]>;

static ALL: [OnceLock<Mutex<Bytes>>; TAILS] = [const { OnceLock::new() }; TAILS];
static FREE: Mutex<Free> = Mutex::new(Free { returned: Vec::new(), made: 0 });

struct Free {
    returned: Vec<u32>,
    made: u32,
}

/// The number of a tail that nobody has, from 1; none when there are no more.
#[cold]
pub(super) fn take() -> Option<u32> {
    let mut free = FREE.lock().unwrap_or_else(PoisonError::into_inner);
    if let Some(number) = free.returned.pop() {
        return Some(number);
    }
    let tail = ALL.get(free.made as usize)?;
    free.made += 1;
    tail.get_or_init(|| Mutex::new(Box::new([0; TAIL])));
    Some(free.made)
}

/// Whoever had it needs it no more.
#[cold]
pub(super) fn give_back(number: u32) {
    let mut free = FREE.lock().unwrap_or_else(PoisonError::into_inner);
    if (1..=free.made).contains(&number) {
        free.returned.push(number);
    }
}

/// The bytes of a tail, if there is one of that number.
pub(super) fn bytes(number: u32) -> Option<MutexGuard<'static, Bytes>> {
    let tail = ALL.get((number as usize).checked_sub(1)?)?.get()?;
    Some(tail.lock().unwrap_or_else(PoisonError::into_inner))
}
