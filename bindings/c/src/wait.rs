//! Pointers and times as C gives them.

use std::mem::MaybeUninit;
use std::time::Duration;

use crate::code::Failure;

/// Longer than any program runs; what "for ever" is for calls that want a duration.
const FOREVER: Duration = Duration::from_secs(u32::MAX as u64);

/// Converts microseconds to a duration; a negative number waits for ever.
pub(crate) fn duration(timeout_us: i64) -> Duration {
    u64::try_from(timeout_us).map_or(FOREVER, Duration::from_micros)
}

/// # Safety
/// `pointer` is NULL or can be read for as long as the answer is used.
pub(crate) unsafe fn given<'a, T>(pointer: *const T, name: &str) -> Result<&'a T, Failure> {
    // SAFETY: the caller's promise.
    unsafe { pointer.as_ref() }.ok_or_else(|| Failure::invalid(format!("{name} is NULL")))
}

/// # Safety
/// `pointer` is NULL or can be written, by this call alone.
pub(crate) unsafe fn given_out<'a, T>(
    pointer: *mut T,
    name: &str,
) -> Result<&'a mut MaybeUninit<T>, Failure> {
    // SAFETY: the caller's promise; memory that was not written before is what `MaybeUninit` is for.
    unsafe { pointer.cast::<MaybeUninit<T>>().as_mut() }
        .ok_or_else(|| Failure::invalid(format!("{name} is NULL")))
}
