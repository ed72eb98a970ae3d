//! Ctrl-C, SIGTERM or a terminal that is closed ends the run and prints the report so far; a second one ends the program, and leaves
//! behind what it started.

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::{Duration, Instant};

use tokio::signal::unix::{Signal, SignalKind, signal};

/// A signal that follows so soon is the same wish: `timeout` signals its command, and then the group that it is in.
const SAME_WISH: Duration = Duration::from_secs(1);

/// Whether the user asked for the end. Cheap to clone, cheap to ask.
#[derive(Debug, Clone, Default)]
pub struct Interrupt(Arc<AtomicBool>);

impl Interrupt {
    /// Listens for SIGINT, SIGTERM and SIGHUP in a thread of its own, for the rest of the process' life.
    #[must_use]
    pub fn install() -> Self {
        let interrupt = Self::default();
        let flag = Arc::clone(&interrupt.0);
        let listen = move || {
            let Ok(runtime) = tokio::runtime::Builder::new_current_thread().enable_io().build()
            else {
                return; // Without it Ctrl-C just kills the process, as by default.
            };
            runtime.block_on(async {
                let signals = (signal(SignalKind::interrupt()), signal(SignalKind::terminate()));
                let (Ok(mut interrupt), Ok(mut terminate)) = signals else { return };
                // `nohup` has it ignored: then the run outlives its terminal.
                let hangs_up = !is_ignored(SignalKind::hangup());
                let mut hangup = hangs_up.then(|| signal(SignalKind::hangup()).ok()).flatten();
                let mut first = None;
                loop {
                    tokio::select! {
                        _ = interrupt.recv() => {}
                        _ = terminate.recv() => {}
                        () = came(hangup.as_mut()) => {}
                    }
                    flag.store(true, Ordering::Relaxed);
                    if first.get_or_insert_with(Instant::now).elapsed() > SAME_WISH {
                        std::process::exit(130);
                    }
                }
            });
        };
        // A thread that cannot be started leaves the default behaviour in place.
        let _ = std::thread::Builder::new().name("bench-interrupt".to_owned()).spawn(listen);
        interrupt
    }

    /// Returns whether the user asked.
    #[must_use]
    pub fn is_set(&self) -> bool {
        self.0.load(Ordering::Relaxed)
    }
}

/// Waits until a signal has come: for ever, if nobody listens for it.
async fn came(signal: Option<&mut Signal>) {
    match signal {
        Some(signal) => drop(signal.recv().await),
        None => std::future::pending().await,
    }
}

/// Returns whether who started this process has a signal ignored.
fn is_ignored(kind: SignalKind) -> bool {
    let status = std::fs::read_to_string("/proc/self/status").unwrap_or_default();
    ignores(&status, kind)
}

fn ignores(status: &str, kind: SignalKind) -> bool {
    let mask = status.lines().find_map(|line| line.strip_prefix("SigIgn:"));
    let mask = mask.and_then(|mask| u64::from_str_radix(mask.trim(), 16).ok()).unwrap_or_default();
    mask >> (kind.as_raw_value() - 1) & 1 == 1
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_signal_that_is_ignored_is_known() {
        let status =
            "SigBlk:\t0000000000000001\nSigIgn:\t0000000000001001\nSigCgt:\t0000000000000002\n";
        assert!(ignores(status, SignalKind::hangup()));
        assert!(!ignores(status, SignalKind::interrupt()));
        assert!(ignores(status, SignalKind::pipe()));
        assert!(!ignores("", SignalKind::hangup()));
    }
}
