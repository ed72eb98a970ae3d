//! SIGINT and SIGTERM: the first asks for a clean end, a second one, or too long a clean end, ends the
//! process at once.

use std::io;
use std::time::Duration;

use tokio::runtime::Builder;
use tokio::signal::unix::{SignalKind, signal};

/// How long a clean end may take after a signal. Whoever sent it waits; what is not acknowledged by
/// then is told by the exit code.
const END_MAX: Duration = Duration::from_secs(5);

/// Runs `end` in a thread of its own at the first signal.
pub(crate) fn on_signal(end: impl FnOnce() + Send + 'static) -> io::Result<()> {
    let runtime = Builder::new_current_thread().enable_all().build()?;
    let (mut interrupt, mut terminate) = {
        // The handlers are there when this returns, not some time later.
        let _inside = runtime.enter();
        (signal(SignalKind::interrupt())?, signal(SignalKind::terminate())?)
    };
    let wait = move || {
        runtime.block_on(async {
            tokio::select! {
                _ = interrupt.recv() => {}
                _ = terminate.recv() => {}
            }
            end();
            // 128 and the signal's number, as shells have it.
            let code = tokio::select! {
                _ = interrupt.recv() => 130,
                _ = terminate.recv() => 143,
                () = tokio::time::sleep(END_MAX) => {
                    eprintln!("quelea: not all could be ended within {} s", END_MAX.as_secs());
                    1
                }
            };
            std::process::exit(code);
        });
    };
    std::thread::Builder::new().name("signals".to_owned()).spawn(wait)?;
    Ok(())
}
