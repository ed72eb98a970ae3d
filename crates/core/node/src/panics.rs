//! What happens on a panic. A panic is a defect of ours; this is where it is kept from doing harm.
//!
//! - On the **core thread** and the **log's threads** it ends the process. The broker's state may be
//!   half changed, and nothing may be confirmed on the strength of it; what was confirmed is in the
//!   log, and a restart recovers it. Serving on would be a guess.
//! - On any **other thread** (management API, password hashing) it ends that request only.
//!
//! In both cases the place and the message are logged; clients never see them.

use std::panic;

/// Exit code of a process that ended itself over a panic: `EX_SOFTWARE` of sysexits.h.
pub const PANIC_EXIT_CODE: i32 = 70;

/// Logs every panic as one line. Call once, at the start of the program.
pub fn install_panic_hook() {
    panic::set_hook(Box::new(|info| {
        let thread = std::thread::current();
        let message = info
            .payload()
            .downcast_ref::<&str>()
            .copied()
            .or_else(|| info.payload().downcast_ref::<String>().map(String::as_str))
            .unwrap_or("no message");
        let place = info.location().map_or_else(String::new, ToString::to_string);
        tracing::error!(
            thread = thread.name().unwrap_or("unnamed"),
            place,
            backtrace = %std::backtrace::Backtrace::capture(),
            "panic: {message}"
        );
    }));
}

/// Ends the process without unwinding or destructors; the log is made for that.
pub(crate) fn end_process(reason: &str) -> ! {
    tracing::error!(reason, "quelea ends itself; what was confirmed is in the log");
    std::process::exit(PANIC_EXIT_CODE)
}
