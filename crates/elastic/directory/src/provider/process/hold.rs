//! The moment between a process's making and its start: it leaves the directory's session, waits for the
//! word that its lease is written, and becomes the relay. If the directory dies before, the input ends
//! instead, and so does the process.

use std::io::Read as _;
use std::os::unix::process::CommandExt as _;
use std::process::{Command, ExitCode};

/// The subcommand of `quelea` that does this; the relay's own arguments follow.
pub const COMMAND: &str = "hold";
/// The word.
pub(super) const WORD: &[u8] = b"go";

/// Waits for the word, then runs this very program with `arguments`. Only returns if that fails, or if
/// the word does not come.
#[must_use]
pub fn run(arguments: &[String]) -> ExitCode {
    // It fails for a session's leader, which is in a session of its own already.
    let _ = rustix::process::setsid();
    let mut word = [0; WORD.len()];
    if std::io::stdin().read_exact(&mut word).is_err() || word != WORD {
        eprintln!("quelea hold: the directory ended before it had written the lease");
        return ExitCode::FAILURE;
    }
    let program = match std::env::current_exe() {
        Ok(program) if program.exists() => program,
        // The file was replaced meanwhile: go on with what was started.
        _ => "/proc/self/exe".into(),
    };
    let error = Command::new(&program).args(arguments).stdin(std::process::Stdio::null()).exec();
    eprintln!("quelea hold: cannot run {}: {error}", program.display());
    ExitCode::FAILURE
}
