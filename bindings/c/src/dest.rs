//! Sending.

use std::slice;
use std::time::{Duration, Instant};

use quelea_cmq::{Dest, Outcome, PushError};

use crate::address::QueleaCmqKey;
use crate::code::{Failure, QueleaCmqCode, guarded};
use crate::wait::{duration, given, given_out};

/// A destination: one mailbox at one address.
#[derive(Debug)]
pub struct QueleaCmqDest {
    dest: Dest,
}

impl QueleaCmqDest {
    pub(crate) const fn new(dest: Dest) -> Self {
        Self { dest }
    }
}

/// Bytes that are lent for a call.
#[derive(Clone, Copy, Debug)]
#[repr(C)]
pub struct QueleaCmqSlice {
    /// The bytes; may be NULL if there are none.
    pub data: *const u8,
    /// How many.
    pub size: usize,
}

impl QueleaCmqSlice {
    /// # Safety
    /// `data` is NULL or `size` bytes can be read from it for as long as the answer is used.
    unsafe fn bytes<'a>(self) -> Result<&'a [u8], Failure> {
        match (self.data.is_null(), self.size) {
            (_, 0) => Ok(&[]),
            (true, size) => Err(Failure::invalid(format!("a message of {size} bytes at NULL"))),
            // SAFETY: the caller's promise.
            (false, size) => Ok(unsafe { slice::from_raw_parts(self.data, size) }),
        }
    }
}

/// Writes the key that it pushes to into `key`. Thread-safe.
///
/// # Safety
/// `dest` is not freed; `key` can be written.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn quelea_cmq_dest_key(
    dest: *const QueleaCmqDest,
    key: *mut QueleaCmqKey,
) -> QueleaCmqCode {
    guarded(|| {
        // SAFETY: the caller's promises.
        let (to, key) = unsafe { (given(dest, "dest")?, given_out(key, "key")?) };
        key.write(to.dest.key().into());
        Ok(())
    })
}

/// Puts a copy of `size` bytes into the destination's batch, which leaves when it is full or old
/// enough. Waits for room at most `timeout_us` microseconds (for ever if negative) and then answers
/// QUELEA_CMQ_CODE_WOULD_BLOCK; a destination that does not wait answers at once. Thread-safe.
///
/// # Safety
/// `dest` is not freed; `size` bytes can be read from `data`.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn quelea_cmq_push(
    dest: *const QueleaCmqDest,
    data: *const u8,
    size: usize,
    timeout_us: i64,
) -> QueleaCmqCode {
    guarded(|| {
        // SAFETY: the caller's promises.
        let (to, message) =
            unsafe { (given(dest, "dest")?, QueleaCmqSlice { data, size }.bytes()?) };
        Ok(push(&to.dest, message, timeout_us)?)
    })
}

fn push(dest: &Dest, message: &[u8], timeout_us: i64) -> Result<(), PushError> {
    match timeout_us {
        0 => dest.try_push(message),
        _ if timeout_us < 0 => dest.push(message),
        _ => dest.push_timeout(message, duration(timeout_us)),
    }
}

/// Pushes `count` messages, as quelea_cmq_push does, waiting at most `timeout_us` microseconds for all
/// of them. `pushed` (which may be NULL) becomes how many were taken, also if a later one was not.
/// Thread-safe.
///
/// # Safety
/// `dest` is not freed; `count` slices can be read from `messages`, and each can be read; `pushed` is
/// NULL or can be written.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn quelea_cmq_push_batch(
    dest: *const QueleaCmqDest,
    messages: *const QueleaCmqSlice,
    count: usize,
    timeout_us: i64,
    pushed: *mut usize,
) -> QueleaCmqCode {
    guarded(|| {
        let mut taken = 0;
        // SAFETY: the caller's promises.
        let result = unsafe { push_all(dest, messages, count, timeout_us, &mut taken) };
        // SAFETY: the caller's promise.
        if let Some(pushed) = unsafe { pushed.as_mut() } {
            *pushed = taken;
        }
        result
    })
}

/// # Safety
/// As for [`quelea_cmq_push_batch`].
unsafe fn push_all(
    dest: *const QueleaCmqDest,
    messages: *const QueleaCmqSlice,
    count: usize,
    timeout_us: i64,
    taken: &mut usize,
) -> Result<(), Failure> {
    if count == 0 {
        return Ok(());
    }
    // SAFETY: the caller's promises; `given` refuses NULL before the slice is made.
    let (to, messages) = unsafe {
        let first: *const QueleaCmqSlice = given(messages, "messages")?;
        (given(dest, "dest")?, slice::from_raw_parts(first, count))
    };
    for message in messages {
        // SAFETY: the caller's promise. All are looked at before the first is pushed.
        unsafe { message.bytes()? };
    }
    // Read only if it has to wait.
    let mut deadline = None;
    while *taken < count {
        // SAFETY: the caller's promise; the loop above refused what is none.
        let rest = messages[*taken..].iter().map(|message| unsafe { message.bytes() });
        let Err(stopped) = to.dest.try_push_batch(rest.map(Result::unwrap_or_default)) else {
            *taken = count;
            break;
        };
        *taken += stopped.pushed;
        if stopped.error != PushError::WouldBlock || timeout_us == 0 {
            return Err(stopped.error.into());
        }
        let within = duration(timeout_us);
        let end = *deadline.get_or_insert_with(|| Instant::now().checked_add(within));
        let left = end.map_or(Duration::MAX, |end| end.saturating_duration_since(Instant::now()));
        // SAFETY: as above.
        to.dest.push_timeout(unsafe { messages[*taken].bytes()? }, left)?;
        *taken += 1;
    }
    Ok(())
}

/// Sends what is pending now. Thread-safe.
///
/// # Safety
/// `dest` is not freed.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn quelea_cmq_flush(dest: *const QueleaCmqDest) -> QueleaCmqCode {
    guarded(|| {
        // SAFETY: the caller's promise.
        unsafe { given(dest, "dest")? }.dest.flush();
        Ok(())
    })
}

/// Flushes and waits at most `timeout_us` microseconds (for ever if negative) until everything has left
/// and, in reliable modes, is acknowledged. QUELEA_CMQ_CODE_ABANDONED if messages were given up. Thread-safe.
///
/// # Safety
/// `dest` is not freed.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn quelea_cmq_wait_acknowledged(
    dest: *const QueleaCmqDest,
    timeout_us: i64,
) -> QueleaCmqCode {
    guarded(|| {
        // SAFETY: the caller's promise.
        let to = unsafe { given(dest, "dest")? };
        match to.dest.wait_acknowledged(duration(timeout_us)) {
            Outcome::Acknowledged => Ok(()),
            Outcome::TimedOut => Err(Failure::timeout()),
            Outcome::Abandoned => {
                Err(Failure::new(QueleaCmqCode::Abandoned, "messages were given up"))
            }
            Outcome::Closed => Err(Failure::new(QueleaCmqCode::Closed, "it was closed meanwhile")),
        }
    })
}

/// Flushes, and has the endpoint forget the destination once everything is sent (and acknowledged,
/// where it is reliable). Later pushes by any handle answer QUELEA_CMQ_CODE_CLOSED. Thread-safe.
///
/// # Safety
/// `dest` is not freed.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn quelea_cmq_dest_close(dest: *const QueleaCmqDest) -> QueleaCmqCode {
    guarded(|| {
        // SAFETY: the caller's promise.
        unsafe { given(dest, "dest")? }.dest.clone().close();
        Ok(())
    })
}

/// Frees the handle; the destination goes on. NULL is ignored. No other thread may use the handle any
/// more.
///
/// # Safety
/// `dest` is NULL, or was made by this library and is not freed.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn quelea_cmq_dest_free(dest: *mut QueleaCmqDest) {
    guarded(|| {
        if !dest.is_null() {
            // SAFETY: the caller's promise.
            drop(unsafe { Box::from_raw(dest) });
        }
        Ok(())
    });
}
