//! Bytes of long frames beyond their buffers.
//!
//! The memory belongs to the whole process, is allocated on demand and reused. A frame holds a
//! number rather than a pointer: circuits share frames with other processes, which may write
//! anything into them. A wrong number refers to another tail or to none, but never to other memory.

use std::sync::{Mutex, MutexGuard, OnceLock, PoisonError};

/// Bytes of a tail.
pub(super) const TAIL: usize = 7680;
/// Maximum number of tails: as many as 64 workers hold at a time, in batches and waiting.
const TAILS: usize = 1 << 16;

type Bytes = Box<[u8; TAIL]>;

static ALL: [OnceLock<Mutex<Bytes>>; TAILS] = [const { OnceLock::new() }; TAILS];
static FREE: Mutex<Free> = Mutex::new(Free { returned: Vec::new(), made: 0 });

struct Free {
    returned: Vec<u32>,
    made: u32,
}

/// Returns the number of an unused tail, from 1; `None` if all are in use.
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

/// Returns a tail that its frame no longer needs.
#[cold]
pub(super) fn give_back(number: u32) {
    let mut free = FREE.lock().unwrap_or_else(PoisonError::into_inner);
    if (1..=free.made).contains(&number) {
        free.returned.push(number);
    }
}

/// Returns the bytes of a tail; `None` if the number is invalid.
pub(super) fn bytes(number: u32) -> Option<MutexGuard<'static, Bytes>> {
    let tail = ALL.get((number as usize).checked_sub(1)?)?.get()?;
    Some(tail.lock().unwrap_or_else(PoisonError::into_inner))
}
