//! What commands print. Whoever has read enough, as in `quelea admin … | head`, ends them quietly; the standard library's
//! own macros panic then.

use std::fmt::Arguments;
use std::io::{self, ErrorKind, Write as _};
use std::process;

use crate::exit;

/// `println!` for commands that end when nobody reads any more.
macro_rules! print_line {
    () => { $crate::stdout::print(format_args!("\n")) };
    ($($arguments:tt)*) => { $crate::stdout::print(format_args!("{}\n", format_args!($($arguments)*))) };
}
pub(crate) use print_line;

/// Prints a text, or ends the process: with success where nobody reads any more.
pub(crate) fn print(text: Arguments<'_>) {
    // One write: a table is not cut between two of its cells because somebody else writes, too.
    print_bytes(text.to_string().as_bytes());
}

/// The same of bytes.
pub(crate) fn print_bytes(bytes: &[u8]) {
    match io::stdout().lock().write_all(bytes) {
        Ok(()) => {}
        Err(error) if error.kind() == ErrorKind::BrokenPipe => process::exit(0),
        Err(error) => {
            let _ = exit::fail("quelea: standard output", error);
            process::exit(1);
        }
    }
}
