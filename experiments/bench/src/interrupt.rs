//! Ctrl-C or SIGTERM ends the run and prints the report so far; a second one ends the program, and leaves behind what it started.

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::{Duration, Instant};

use tokio::signal::unix::{SignalKind, signal};

/// A signal that follows so soon is the same wish: `timeout` signals its command, and then the group that it is in.
const SAME_WISH: Duration = Duration::from_secs(1);

/// Whether the user asked for the end. Cheap to clone, cheap to ask.
#[derive(Debug, Clone, Default)]
pub struct Interrupt(Arc<AtomicBool>);

impl Interrupt {
    /// Listens for SIGINT and SIGTERM in a thread of its own, for the rest of the process' life.
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
                let mut first = None;
                loop {
                    tokio::select! {
                        _ = interrupt.recv() => {}
                        _ = terminate.recv() => {}
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

    /// Whether the user asked.
    #[must_use]
    pub fn is_set(&self) -> bool {
        self.0.load(Ordering::Relaxed)
    }
}
