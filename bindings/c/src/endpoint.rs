//! A socket and everything that is pushed and popped through it.

use std::ffi::{CStr, c_char, c_int, c_void};
use std::net::UdpSocket;
use std::os::fd::BorrowedFd;

use quelea_cmq::Endpoint;
use quelea_cmq::endpoint::Unsettled;

use crate::address::{QueleaCmqAddress, QueleaCmqKey, address_of, text_of};
use crate::code::{Failure, QueleaCmqCode, guarded};
use crate::dest::QueleaCmqDest;
use crate::event::{QueleaCmqEvent, to_c};
use crate::options::{self, QueleaCmqConfig, QueleaCmqDestOptions, QueleaCmqQueueOptions};
use crate::queue::QueleaCmqQueue;
use crate::wait::{duration, given, given_out};

/// One UDP socket with its destinations and mailboxes.
#[derive(Debug)]
pub struct QueleaCmqEndpoint {
    endpoint: Endpoint,
}

/// Binds a socket to "host:port"; port 0 has the system choose one. `config` may be NULL. Thread-safe.
///
/// # Safety
/// `address` ends with a zero; `config` is as its type says; `endpoint` can be written.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn quelea_cmq_endpoint_bind(
    address: *const c_char,
    config: *const QueleaCmqConfig,
    endpoint: *mut *mut QueleaCmqEndpoint,
) -> QueleaCmqCode {
    guarded(|| {
        // SAFETY: the caller's promises.
        let (address, config, endpoint) = unsafe {
            (
                text_of(address, "address")?,
                options::config(config)?,
                given_out(endpoint, "endpoint")?,
            )
        };
        let made = Endpoint::bind(address_of(address)?, config)?;
        endpoint.write(Box::into_raw(Box::new(QueleaCmqEndpoint { endpoint: made })));
        Ok(())
    })
}

/// Shares a bound UDP socket; the caller's descriptor remains the caller's to close. Thread-safe.
///
/// # Safety
/// `descriptor` is open; `config` is as its type says; `endpoint` can be written.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn quelea_cmq_endpoint_from_socket(
    descriptor: c_int,
    config: *const QueleaCmqConfig,
    endpoint: *mut *mut QueleaCmqEndpoint,
) -> QueleaCmqCode {
    guarded(|| {
        // SAFETY: the caller's promises.
        let (config, endpoint) =
            unsafe { (options::config(config)?, given_out(endpoint, "endpoint")?) };
        if descriptor < 0 {
            return Err(Failure::invalid(format!("descriptor is {descriptor}")));
        }
        // SAFETY: it is open by the caller's promise, and only borrowed while it is duplicated.
        let copy = unsafe { BorrowedFd::borrow_raw(descriptor) }.try_clone_to_owned()?;
        let made = Endpoint::from_socket(UdpSocket::from(copy), config)?;
        endpoint.write(Box::into_raw(Box::new(QueleaCmqEndpoint { endpoint: made })));
        Ok(())
    })
}

/// Writes the socket's address to `address`. Thread-safe.
///
/// # Safety
/// `endpoint` is not freed; `address` can be written.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn quelea_cmq_endpoint_address(
    endpoint: *const QueleaCmqEndpoint,
    address: *mut QueleaCmqAddress,
) -> QueleaCmqCode {
    guarded(|| {
        // SAFETY: the caller's promises.
        let (here, address) =
            unsafe { (given(endpoint, "endpoint")?, given_out(address, "address")?) };
        address.write(here.endpoint.local_addr().into());
        Ok(())
    })
}

/// Opens a mailbox: what peers push to (this address, `mailbox`) comes out there. `options` may be
/// NULL. Thread-safe.
///
/// # Safety
/// `endpoint` is not freed; `options` is as its type says; `queue` can be written.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn quelea_cmq_endpoint_queue(
    endpoint: *const QueleaCmqEndpoint,
    mailbox: u64,
    options: *const QueleaCmqQueueOptions,
    queue: *mut *mut QueleaCmqQueue,
) -> QueleaCmqCode {
    guarded(|| {
        // SAFETY: the caller's promises.
        let (here, options, queue) = unsafe {
            (given(endpoint, "endpoint")?, options::mailbox(options)?, given_out(queue, "queue")?)
        };
        let made = here.endpoint.queue(mailbox, options)?;
        queue.write(Box::into_raw(Box::new(QueleaCmqQueue::new(made))));
        Ok(())
    })
}

/// Opens all mailboxes that are not opened by themselves, as one queue; each message says which one it
/// was pushed to. `options` may be NULL. Thread-safe.
///
/// # Safety
/// `endpoint` is not freed; `options` is as its type says; `queue` can be written.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn quelea_cmq_endpoint_queue_of_others(
    endpoint: *const QueleaCmqEndpoint,
    options: *const QueleaCmqQueueOptions,
    queue: *mut *mut QueleaCmqQueue,
) -> QueleaCmqCode {
    guarded(|| {
        // SAFETY: the caller's promises.
        let (here, options, queue) = unsafe {
            (given(endpoint, "endpoint")?, options::mailbox(options)?, given_out(queue, "queue")?)
        };
        let made = here.endpoint.queue_of_others(options)?;
        queue.write(Box::into_raw(Box::new(QueleaCmqQueue::new(made))));
        Ok(())
    })
}

/// Writes a handle to a destination, which is made anew or found, to `dest`; each handle is freed
/// by itself. `options` may be NULL. Thread-safe.
///
/// # Safety
/// `endpoint` is not freed; `key` can be read; `options` is as its type says; `dest` can be written.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn quelea_cmq_endpoint_dest(
    endpoint: *const QueleaCmqEndpoint,
    key: *const QueleaCmqKey,
    options: *const QueleaCmqDestOptions,
    dest: *mut *mut QueleaCmqDest,
) -> QueleaCmqCode {
    guarded(|| {
        // SAFETY: the caller's promises.
        let (here, key, options, dest) = unsafe {
            (
                given(endpoint, "endpoint")?,
                given(key, "key")?,
                options::destination(options)?,
                given_out(dest, "dest")?,
            )
        };
        let made = here.endpoint.dest(key.to_key()?, options)?;
        dest.write(Box::into_raw(Box::new(QueleaCmqDest::new(made))));
        Ok(())
    })
}

/// Sends what is pending to all destinations now. Thread-safe.
///
/// # Safety
/// `endpoint` is not freed.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn quelea_cmq_endpoint_flush(
    endpoint: *const QueleaCmqEndpoint,
) -> QueleaCmqCode {
    guarded(|| {
        // SAFETY: the caller's promise.
        unsafe { given(endpoint, "endpoint")? }.endpoint.flush();
        Ok(())
    })
}

/// Gives `each` every counter with its name, which is valid during that call only. Thread-safe.
///
/// # Safety
/// `endpoint` is not freed; `each` can be called with `context`, and does not unwind.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn quelea_cmq_endpoint_stats(
    endpoint: *const QueleaCmqEndpoint,
    each: Option<unsafe extern "C" fn(context: *mut c_void, name: *const c_char, count: u64)>,
    context: *mut c_void,
) -> QueleaCmqCode {
    guarded(|| {
        // SAFETY: the caller's promise.
        let here = unsafe { given(endpoint, "endpoint")? };
        let each = each.ok_or_else(|| Failure::invalid("each is NULL"))?;
        let mut text = Vec::new();
        for (name, count) in here.endpoint.stats().counters() {
            text.clear();
            text.extend_from_slice(name.as_bytes());
            text.push(0);
            let name = CStr::from_bytes_with_nul(&text)
                .map_err(|_| Failure::invalid("a counter's name has a zero in it"))?;
            // SAFETY: the caller's promise.
            unsafe { each(context, name.as_ptr(), count) };
        }
        Ok(())
    })
}

/// Writes the value of the counter of that name to `count`. Thread-safe.
///
/// # Safety
/// `endpoint` is not freed; `name` ends with a zero; `count` can be written.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn quelea_cmq_endpoint_counter(
    endpoint: *const QueleaCmqEndpoint,
    name: *const c_char,
    count: *mut u64,
) -> QueleaCmqCode {
    guarded(|| {
        // SAFETY: the caller's promises.
        let (here, name, count) = unsafe {
            (given(endpoint, "endpoint")?, text_of(name, "name")?, given_out(count, "count")?)
        };
        let found = here.endpoint.stats().counters().into_iter().find(|(known, _)| *known == name);
        let (_, value) =
            found.ok_or_else(|| Failure::invalid(format!("there is no counter {name:?}")))?;
        count.write(value);
        Ok(())
    })
}

/// Waits for the next event at most `timeout_us` microseconds, for ever if negative, and writes it
/// to `event`. Thread-safe.
///
/// # Safety
/// `endpoint` is not freed; `event` can be written.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn quelea_cmq_endpoint_next_event(
    endpoint: *const QueleaCmqEndpoint,
    timeout_us: i64,
    event: *mut QueleaCmqEvent,
) -> QueleaCmqCode {
    guarded(|| {
        // SAFETY: the caller's promises.
        let (here, event) = unsafe { (given(endpoint, "endpoint")?, given_out(event, "event")?) };
        let next = match here.endpoint.try_event() {
            None if timeout_us != 0 => here.endpoint.next_event(duration(timeout_us)),
            next => next,
        };
        event.write(to_c(next.ok_or_else(Failure::timeout)?));
        Ok(())
    })
}

/// Flushes, waits at most `timeout_us` microseconds until everything is sent and, in reliable modes,
/// acknowledged, and closes: waiting pops of all threads end, later pushes answer QUELEA_CMQ_CODE_CLOSED.
/// QUELEA_CMQ_CODE_TIMEOUT if it took longer, QUELEA_CMQ_CODE_ABANDONED if messages were given up; it is
/// closed then too. Thread-safe.
///
/// # Safety
/// `endpoint` is not freed.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn quelea_cmq_endpoint_close(
    endpoint: *const QueleaCmqEndpoint,
    timeout_us: i64,
) -> QueleaCmqCode {
    guarded(|| {
        // SAFETY: the caller's promise.
        let here = unsafe { given(endpoint, "endpoint")? };
        let closed = here.endpoint.clone().close(duration(timeout_us));
        closed.map_err(|error| {
            let code = match error {
                Unsettled::TimedOut => QueleaCmqCode::Timeout,
                Unsettled::Abandoned { .. } => QueleaCmqCode::Abandoned,
            };
            Failure::new(code, error.to_string())
        })
    })
}

/// Frees the handle. The socket is closed when the endpoint's queues and destinations are freed too.
/// NULL is ignored. No other thread may use the handle any more.
///
/// # Safety
/// `endpoint` is NULL, or was made by this library and is not freed.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn quelea_cmq_endpoint_free(endpoint: *mut QueleaCmqEndpoint) {
    guarded(|| {
        if !endpoint.is_null() {
            // SAFETY: the caller's promise.
            drop(unsafe { Box::from_raw(endpoint) });
        }
        Ok(())
    });
}
