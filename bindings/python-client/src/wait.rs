//! Waiting without holding up Python: other threads run meanwhile, and Ctrl-C still works.

use std::future::Future;
use std::pin::pin;
use std::time::{Duration, Instant};

use pyo3::exceptions::PyValueError;
use pyo3::prelude::*;

use crate::runtime::runtime;

/// The main thread alone handles signals, so it alone looks for them while it waits. 50 ms is what a
/// person at a keyboard does not notice.
const SIGNAL_SLICE: Duration = Duration::from_millis(50);

/// The other threads wait until there is something; a number that no clock overflows with.
const LONG: Duration = Duration::from_secs(3_600);

/// Converts seconds from Python to a duration; none waits for ever.
pub(crate) fn seconds(name: &str, seconds: Option<f64>) -> PyResult<Option<Duration>> {
    let Some(seconds) = seconds else { return Ok(None) };
    if seconds == f64::INFINITY {
        return Ok(None);
    }
    Duration::try_from_secs_f64(seconds).map(Some).map_err(|_| {
        PyValueError::new_err(format!("{name} = {seconds}: seconds are zero or more, or None"))
    })
}

/// Runs a future in this thread, without the GIL, until it ends or `timeout` has passed. It is looked at
/// once in any case.
pub(crate) fn block<T: Send>(
    py: Python<'_>,
    timeout: Option<Duration>,
    future: impl Future<Output = T> + Send,
) -> PyResult<Option<T>> {
    let runtime = runtime()?;
    let mut future = pin!(future);
    let deadline = timeout.and_then(|timeout| Instant::now().checked_add(timeout));
    let mut longest = SIGNAL_SLICE;
    loop {
        let left =
            deadline.map_or(Duration::MAX, |at| at.saturating_duration_since(Instant::now()));
        let slice = left.min(longest);
        let waited = py.detach(|| {
            runtime.block_on(async { tokio::time::timeout(slice, future.as_mut()).await.ok() })
        });
        if waited.is_some() {
            return Ok(waited);
        }
        py.check_signals()?;
        if left <= longest {
            return Ok(None);
        }
        // Asked only by those who have waited already: it costs more than to take a message.
        if longest == SIGNAL_SLICE && !in_main_thread(py)? {
            longest = LONG;
        }
    }
}

fn in_main_thread(py: Python<'_>) -> PyResult<bool> {
    let threading = py.import("threading")?;
    let main = threading.call_method0("main_thread")?;
    Ok(main.is(&threading.call_method0("current_thread")?))
}
