//! Receiving.

use std::ffi::c_void;
use std::time::Duration;

use quelea_cmq::{Message, Queue};

use crate::code::{Failure, QueleaCmqCode, guarded};
use crate::dest::QueleaCmqSlice;
use crate::message::QueleaCmqMessage;
use crate::wait::{duration, given, given_out};

/// An open mailbox.
#[derive(Debug)]
pub struct QueleaCmqQueue {
    queue: Queue,
}

impl QueleaCmqQueue {
    pub(crate) const fn new(queue: Queue) -> Self {
        Self { queue }
    }

    fn next(&self, timeout_us: i64) -> Result<Message, Failure> {
        let popped = match timeout_us {
            0 => self.queue.try_pop(),
            _ if timeout_us < 0 => self.queue.pop(),
            _ => self.queue.pop_timeout(duration(timeout_us)),
        };
        popped.ok_or_else(|| self.nothing())
    }

    fn nothing(&self) -> Failure {
        if self.queue.is_closed() { Failure::closed("queue") } else { Failure::timeout() }
    }
}

/// Pops one message; waits for it at most `timeout_us` microseconds, for ever if negative.
/// QUELEA_CMQ_CODE_TIMEOUT if there was none, QUELEA_CMQ_CODE_CLOSED if there will be none. Release the message.
/// Thread-safe: each message goes to one thread.
///
/// # Safety
/// `queue` is not freed; `message` can be written, and holds none that was not released.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn quelea_cmq_pop(
    queue: *const QueleaCmqQueue,
    timeout_us: i64,
    message: *mut QueleaCmqMessage,
) -> QueleaCmqCode {
    guarded(|| {
        // SAFETY: the caller's promises.
        let (queue, message) = unsafe { (given(queue, "queue")?, given_out(message, "message")?) };
        message.write(QueleaCmqMessage::new(queue.next(timeout_us)?));
        Ok(())
    })
}

/// Pops up to `max` messages into an array: waits for the first as quelea_cmq_pop does, and takes those
/// behind it that are here. `count` becomes how many. Release each. Thread-safe.
///
/// # Safety
/// `queue` is not freed; `messages` has room for `max`, and holds none that was not released; `count`
/// can be written.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn quelea_cmq_pop_batch(
    queue: *const QueleaCmqQueue,
    timeout_us: i64,
    messages: *mut QueleaCmqMessage,
    max: usize,
    count: *mut usize,
) -> QueleaCmqCode {
    guarded(|| {
        // SAFETY: the caller's promises.
        let (queue, count) = unsafe { (given(queue, "queue")?, given_out(count, "count")?) };
        let count = count.write(0);
        if max == 0 {
            return Ok(());
        }
        // SAFETY: as above: the first one's place is checked for all.
        unsafe { given_out(messages, "messages")? };
        let mut next = Some(queue.next(timeout_us)?);
        while let Some(message) = next {
            // SAFETY: the array has room for `max`, and `count` is less.
            unsafe { messages.add(*count).write(QueleaCmqMessage::new(message)) };
            *count += 1;
            next = if *count < max { queue.queue.try_pop() } else { None };
        }
        Ok(())
    })
}

/// What quelea_cmq_pop_each calls for each message; its bytes are valid during the call only.
pub type QueleaCmqEach =
    Option<unsafe extern "C" fn(context: *mut c_void, message: QueleaCmqSlice)>;

/// Waits for the first message as quelea_cmq_pop does, and gives it and those behind it that are here,
/// at most `max`, to `each`. The quickest way: nothing is copied or counted per message, nothing has to
/// be released. `count` becomes how many. Thread-safe.
///
/// # Safety
/// `queue` is not freed; `each` can be called with `context`, and does not unwind; `count` can be
/// written.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn quelea_cmq_pop_each(
    queue: *const QueleaCmqQueue,
    timeout_us: i64,
    max: usize,
    each: QueleaCmqEach,
    context: *mut c_void,
    count: *mut usize,
) -> QueleaCmqCode {
    guarded(|| {
        // SAFETY: the caller's promises.
        let (queue, count) = unsafe { (given(queue, "queue")?, given_out(count, "count")?) };
        let count = count.write(0);
        let each = each.ok_or_else(|| Failure::invalid("each is NULL"))?;
        if max == 0 {
            return Ok(());
        }
        let within = if timeout_us == 0 { Duration::ZERO } else { duration(timeout_us) };
        *count = queue.queue.pop_batch(max, within, |message| {
            let bytes = QueleaCmqSlice { data: message.bytes.as_ptr(), size: message.bytes.len() };
            // SAFETY: the caller's promise.
            unsafe { each(context, bytes) };
        });
        if *count == 0 { Err(queue.nothing()) } else { Ok(()) }
    })
}

/// Acknowledges a message, for queues with `acknowledged_by_application`: it, and all before it of
/// the same sender, are safe; the sender may forget them. Thread-safe.
///
/// # Safety
/// `queue` is not freed; `message` was filled by a pop of it.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn quelea_cmq_queue_acknowledge(
    queue: *const QueleaCmqQueue,
    message: *const QueleaCmqMessage,
) -> QueleaCmqCode {
    guarded(|| {
        // SAFETY: the caller's promises.
        let (queue, receipt) =
            unsafe { (given(queue, "queue")?, given(message, "message")?.receipt()?) };
        queue.queue.acknowledge(receipt);
        Ok(())
    })
}

/// Gives a message's memory back. One that is all zero is ignored. A message belongs to one thread at
/// a time.
///
/// # Safety
/// `message` is NULL, zero, or was filled by a pop; no copy of it was released.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn quelea_cmq_message_release(message: *mut QueleaCmqMessage) {
    guarded(|| {
        // SAFETY: the caller's promises.
        unsafe { message.as_mut().map(|message| message.release()) };
        Ok(())
    });
}

/// Closes the mailbox: waiting pops of all threads end. Thread-safe.
///
/// # Safety
/// `queue` is not freed.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn quelea_cmq_queue_close(queue: *const QueleaCmqQueue) -> QueleaCmqCode {
    guarded(|| {
        // SAFETY: the caller's promise.
        unsafe { given(queue, "queue")? }.queue.close();
        Ok(())
    })
}

/// Closes the mailbox and frees the handle. NULL is ignored. No other thread may use the handle any
/// more.
///
/// # Safety
/// `queue` is NULL, or was made by this library and is not freed.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn quelea_cmq_queue_free(queue: *mut QueleaCmqQueue) {
    guarded(|| {
        if !queue.is_null() {
            // SAFETY: the caller's promise.
            drop(unsafe { Box::from_raw(queue) });
        }
        Ok(())
    });
}
