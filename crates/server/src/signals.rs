//! SIGINT and SIGTERM.

use std::io;
use std::time::Duration;

use tokio::runtime::Builder;
use tokio::signal::unix::{Signal, SignalKind, signal};

/// How long a clean end may take after a signal. Whoever sent it waits; what is not acknowledged by
/// then shows in the exit code.
const END_MAX: Duration = Duration::from_secs(5);

/// The signals from its making on.
pub(crate) struct Signals {
    terminate: Signal,
    interrupt: Signal,
}

/// One signal.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Received {
    pub(crate) name: &'static str,
    number: i32,
}

impl Signals {
    /// Begins to listen. Needs a runtime.
    ///
    /// # Errors
    /// When the system refuses a handler.
    pub(crate) fn new() -> io::Result<Self> {
        let terminate = signal(SignalKind::terminate())?;
        Ok(Self { terminate, interrupt: signal(SignalKind::interrupt())? })
    }

    /// Waits for the next one.
    pub(crate) async fn next(&mut self) -> Received {
        tokio::select! {
            _ = self.terminate.recv() => Received { name: "SIGTERM", number: 15 },
            _ = self.interrupt.recv() => Received { name: "SIGINT", number: 2 },
        }
    }
}

/// Runs `watch` with the signals in a thread of its own.
///
/// # Errors
/// When the thread or its handlers cannot be had.
pub(crate) fn watch(watch: impl AsyncFnOnce(Signals) + Send + 'static) -> io::Result<()> {
    let runtime = Builder::new_current_thread().enable_all().build()?;
    let signals = {
        // The handlers are there when this returns, not some time later.
        let _inside = runtime.enter();
        Signals::new()?
    };
    let run = move || runtime.block_on(watch(signals));
    std::thread::Builder::new().name("signals".to_owned()).spawn(run)?;
    Ok(())
}

/// Runs `end` at the first signal. A second one, or too long an end, ends the process at once.
///
/// # Errors
/// As [`watch`].
pub(crate) fn on_signal(end: impl FnOnce() + Send + 'static) -> io::Result<()> {
    watch(async move |mut signals| {
        signals.next().await;
        end();
        // 128 and the signal's number, as shells have it.
        let code = tokio::select! {
            Received { number, .. } = signals.next() => 128 + number,
            () = tokio::time::sleep(END_MAX) => {
                eprintln!("quelea: not all could be ended within {} s", END_MAX.as_secs());
                1
            }
        };
        std::process::exit(code);
    })
}
