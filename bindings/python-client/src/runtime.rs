//! The threads that serve all clients of this process: sockets and clocks are theirs.

use std::future::Future;
use std::pin::Pin;
use std::ptr;
use std::sync::atomic::{AtomicPtr, Ordering};

use pyo3::exceptions::PyOSError;
use pyo3::prelude::*;
use pyo3_async_runtimes::TaskLocals;
use pyo3_async_runtimes::generic::{self, ContextExt};
use tokio::runtime::{Builder, Runtime};
use tokio::task::{JoinError, JoinHandle};

use crate::fork;
use crate::gate::{Gate, Gated};

/// Enough to read and write while a thread of them calls Python.
const THREADS: usize = 2;

struct Threads {
    runtime: Runtime,
    /// Through which tasks call Python.
    gate: Gate,
    forks: u64,
}

/// Those of this process. A child of a fork has none of its parent's threads, so it makes others; the
/// parent's are left as they are. No lock: it might be held at the fork.
static THREADS_HERE: AtomicPtr<Threads> = AtomicPtr::new(ptr::null_mut());

/// Returns the threads of this process, if there are any.
fn known(threads: *mut Threads) -> Option<&'static Threads> {
    // SAFETY: what stands in `THREADS_HERE` was leaked from a box and is never freed.
    unsafe { threads.as_ref() }.filter(|threads| threads.forks == fork::forks())
}

/// `atexit` calls it, before the interpreter is finalized.
#[pyfunction]
pub(crate) fn _before_exit(py: Python<'_>) {
    if let Some(Threads { gate, .. }) = known(THREADS_HERE.load(Ordering::Acquire)) {
        // Those who are within may need the GIL to leave.
        py.detach(|| gate.shut());
    }
}

/// Makes the threads if there are none yet.
pub(crate) fn runtime() -> PyResult<&'static Runtime> {
    threads().map(|threads| &threads.runtime)
}

fn threads() -> PyResult<&'static Threads> {
    loop {
        let before = THREADS_HERE.load(Ordering::Acquire);
        if let Some(threads) = known(before) {
            return Ok(threads);
        }
        let built = Builder::new_multi_thread()
            .worker_threads(THREADS)
            .thread_name("quelea-client")
            .enable_all()
            .build();
        let runtime = built.map_err(|error| PyOSError::new_err(error.to_string()))?;
        let gate = Gate::default();
        let made = Box::into_raw(Box::new(Threads { runtime, gate, forks: fork::forks() }));
        let swapped =
            THREADS_HERE.compare_exchange(before, made, Ordering::AcqRel, Ordering::Acquire);
        if swapped.is_err() {
            // SAFETY: another thread was quicker, and nobody has seen this one.
            drop(unsafe { Box::from_raw(made) });
        }
    }
}

/// Returns an awaitable of the running loop for a future.
pub(crate) fn awaitable<'py, T>(
    py: Python<'py>,
    future: impl Future<Output = PyResult<T>> + Send + 'static,
) -> PyResult<Bound<'py, PyAny>>
where
    T: for<'any> IntoPyObject<'any> + Send + 'static,
{
    runtime()?; // What cannot be made is reported here.
    generic::future_into_py::<Here, _, _>(py, future)
}

/// [`runtime`] to `pyo3_async_runtimes`.
struct Here;

/// Why a task of it ended.
pub(crate) struct Ended(JoinError);

impl generic::JoinError for Ended {
    fn is_panic(&self) -> bool {
        self.0.is_panic()
    }

    fn into_panic(self) -> Box<dyn std::any::Any + Send + 'static> {
        self.0.into_panic()
    }
}

/// A task of it.
pub(crate) struct Task(JoinHandle<()>);

impl Future for Task {
    type Output = Result<(), Ended>;

    fn poll(
        mut self: Pin<&mut Self>,
        cx: &mut std::task::Context<'_>,
    ) -> std::task::Poll<Self::Output> {
        Pin::new(&mut self.0).poll(cx).map_err(Ended)
    }
}

impl generic::Runtime for Here {
    type JoinError = Ended;
    type JoinHandle = Task;

    fn spawn<F: Future<Output = ()> + Send + 'static>(future: F) -> Task {
        match threads() {
            Ok(Threads { runtime, gate, .. }) => {
                Task(runtime.spawn(Gated { gate, future: Some(Box::pin(future)) }))
            }
            // `awaitable` has made it, and only a task of it calls this otherwise.
            Err(error) => panic!("{error}"),
        }
    }

    fn spawn_blocking<F: FnOnce() + Send + 'static>(work: F) -> Task {
        match threads() {
            // Behind a shut gate it is not done.
            Ok(Threads { runtime, gate, .. }) => {
                Task(runtime.spawn_blocking(|| gate.pass(work).unwrap_or(())))
            }
            Err(error) => panic!("{error}"),
        }
    }
}

tokio::task_local! {
    static LOCALS: TaskLocals;
}

impl ContextExt for Here {
    fn scope<F, R>(locals: TaskLocals, future: F) -> Pin<Box<dyn Future<Output = R> + Send>>
    where
        F: Future<Output = R> + Send + 'static,
    {
        Box::pin(LOCALS.scope(locals, future))
    }

    fn get_task_locals() -> Option<TaskLocals> {
        LOCALS.try_with(Clone::clone).ok()
    }
}
