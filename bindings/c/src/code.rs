//! What a call answers, and the text that goes with it.

use std::any::Any;
use std::cell::RefCell;
use std::ffi::{CString, c_char, c_int};
use std::io;
use std::panic::{AssertUnwindSafe, catch_unwind};

use quelea_cmq::{DestinationError, MailboxError, PushError};

/// How a call ended. Numbers are never given away twice.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[repr(C)]
pub enum QueleaCmqCode {
    /// Done.
    Ok = 0,
    /// The time was over before there was something to do, or before it was done.
    Timeout = 1,
    /// The endpoint, the queue or the destination was closed.
    Closed = 2,
    /// There is no room for the message now, and the destination does not wait.
    WouldBlock = 3,
    /// The message can never be sent; the text has its size and the limit.
    TooLarge = 4,
    /// The message is not UTF-8, and the wire carries strings only.
    NotText = 5,
    /// An argument is not one that the function takes; the text says which.
    Invalid = 6,
    /// The mailbox is open already.
    InUse = 7,
    /// The endpoint has as many destinations or mailboxes as it may have.
    TooMany = 8,
    /// The destination exists with other options.
    Conflict = 9,
    /// The operating system refused; `quelea_cmq_last_errno` has its number.
    Io = 10,
    /// A defect of the library, reported instead of ending the process. Free the handles.
    Panic = 11,
    /// Messages were given up: their peer is gone, or their deadline has passed.
    Abandoned = 12,
}

/// Why a call did not do what it was asked.
#[derive(Debug)]
pub(crate) struct Failure {
    code: QueleaCmqCode,
    text: String,
    errno: c_int,
}

impl Failure {
    pub(crate) fn new(code: QueleaCmqCode, text: impl Into<String>) -> Self {
        Self { code, text: text.into(), errno: 0 }
    }

    pub(crate) fn invalid(text: impl Into<String>) -> Self {
        Self::new(QueleaCmqCode::Invalid, text)
    }

    pub(crate) fn timeout() -> Self {
        Self::new(QueleaCmqCode::Timeout, "the time was over")
    }

    pub(crate) fn closed(what: &str) -> Self {
        Self::new(QueleaCmqCode::Closed, format!("the {what} is closed"))
    }
}

impl From<io::Error> for Failure {
    fn from(error: io::Error) -> Self {
        let errno = error.raw_os_error().unwrap_or(0);
        Self { code: QueleaCmqCode::Io, text: error.to_string(), errno }
    }
}

impl From<PushError> for Failure {
    fn from(error: PushError) -> Self {
        let code = match error {
            PushError::TooLarge { .. } => QueleaCmqCode::TooLarge,
            PushError::WouldBlock => QueleaCmqCode::WouldBlock,
            PushError::Closed => QueleaCmqCode::Closed,
            PushError::NotText => QueleaCmqCode::NotText,
        };
        Self::new(code, error.to_string())
    }
}

impl From<MailboxError> for Failure {
    fn from(error: MailboxError) -> Self {
        let code = match error {
            MailboxError::Open(_) | MailboxError::OthersOpen => QueleaCmqCode::InUse,
            MailboxError::TooMany { .. } => QueleaCmqCode::TooMany,
        };
        Self::new(code, error.to_string())
    }
}

impl From<DestinationError> for Failure {
    fn from(error: DestinationError) -> Self {
        let code = match error {
            DestinationError::TooMany { .. } => QueleaCmqCode::TooMany,
            DestinationError::Conflict => QueleaCmqCode::Conflict,
            DestinationError::Invalid(_) => QueleaCmqCode::Invalid,
        };
        Self::new(code, error.to_string())
    }
}

struct LastFailure {
    text: CString,
    errno: c_int,
}

thread_local! {
    static LAST: RefCell<LastFailure> =
        RefCell::new(LastFailure { text: CString::default(), errno: 0 });
}

/// Runs what a function does. A panic ends here: to unwind into C would be undefined.
pub(crate) fn guarded(body: impl FnOnce() -> Result<(), Failure>) -> QueleaCmqCode {
    // What a body touches is the library's own, which is as it was before a call or is poisoned.
    let failure = match catch_unwind(AssertUnwindSafe(body)) {
        Ok(Ok(())) => return QueleaCmqCode::Ok,
        Ok(Err(failure)) => failure,
        Err(panic) => Failure::new(QueleaCmqCode::Panic, panic_text(panic.as_ref())),
    };
    let code = failure.code;
    let text = failure.text.replace('\0', "?");
    LAST.with_borrow_mut(|last| {
        last.text = CString::new(text).unwrap_or_default();
        last.errno = failure.errno;
    });
    code
}

fn panic_text(panic: &(dyn Any + Send)) -> String {
    let text = panic.downcast_ref::<&str>().map(|text| (*text).to_owned());
    text.or_else(|| panic.downcast_ref::<String>().cloned())
        .unwrap_or_else(|| "a panic without a text".to_owned())
}

/// Returns what the last call of this thread that did not answer QUELEA_CMQ_CODE_OK had to say:
/// empty if there was none. Valid until the thread's next such call. Thread-safe.
#[unsafe(no_mangle)]
pub extern "C" fn quelea_cmq_last_error() -> *const c_char {
    LAST.with_borrow(|last| last.text.as_ptr())
}

/// Returns the operating system's number for the last error of this thread; zero if it was not one
/// of its. Thread-safe.
#[unsafe(no_mangle)]
pub extern "C" fn quelea_cmq_last_errno() -> c_int {
    LAST.with_borrow(|last| last.errno)
}

/// Returns the library's version, as "0.1.0". Thread-safe.
#[unsafe(no_mangle)]
pub extern "C" fn quelea_cmq_version() -> *const c_char {
    concat!(env!("CARGO_PKG_VERSION"), "\0").as_ptr().cast()
}

#[cfg(test)]
mod tests {
    use std::ffi::CStr;

    use super::*;

    fn last_error() -> String {
        // SAFETY: the text is valid until this thread's next failure.
        unsafe { CStr::from_ptr(quelea_cmq_last_error()) }.to_string_lossy().into_owned()
    }

    #[test]
    fn a_panic_becomes_a_code_and_its_text_is_kept() {
        assert_eq!(guarded(|| panic!("number {}", 7)), QueleaCmqCode::Panic);
        assert_eq!(last_error(), "number 7");
    }

    #[test]
    fn a_limit_is_in_the_text() {
        let error = PushError::TooLarge { bytes: 9, limit: 8 };
        assert_eq!(guarded(|| Err(error.into())), QueleaCmqCode::TooLarge);
        assert_eq!(last_error(), "the message has 9 bytes, the limit is 8");
    }

    #[test]
    fn a_threads_error_is_its_own() {
        let code = guarded(|| Err(Failure::invalid("mine")));
        let other = std::thread::spawn(last_error).join().expect("the thread only reads");
        assert_eq!((code, other.as_str()), (QueleaCmqCode::Invalid, ""));
        assert_eq!(last_error(), "mine");
    }

    #[test]
    fn a_text_with_a_zero_is_still_a_text() {
        assert_eq!(guarded(|| Err(Failure::invalid("a\0b"))), QueleaCmqCode::Invalid);
        assert_eq!(last_error(), "a?b");
    }
}
