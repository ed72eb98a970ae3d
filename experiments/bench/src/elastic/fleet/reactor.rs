//! A thread with a runtime, on which clients' connections are served.

use std::future::Future;
use std::thread::JoinHandle;
use std::time::Duration;

use quelea_elastic_client::Error;
use tokio::runtime::{Builder, Handle};
use tokio::sync::oneshot;

use crate::elastic::error::ElasticError;
use crate::elastic::fleet::ATTACH_S;

/// Ends with the value, and all that runs on it.
#[derive(Debug)]
pub(super) struct Reactor {
    handle: Handle,
    stop: Option<oneshot::Sender<()>>,
    thread: Option<JoinHandle<()>>,
}

impl Reactor {
    pub(super) fn start(name: &str) -> Result<Self, ElasticError> {
        let runtime = Builder::new_current_thread().enable_all().build();
        let runtime = runtime.map_err(ElasticError::Thread)?;
        let handle = runtime.handle().clone();
        let (stop, stopped) = oneshot::channel::<()>();
        let run = move || {
            // An error is a sender that was dropped, which means the same.
            let _ = runtime.block_on(stopped);
        };
        let thread = std::thread::Builder::new().name(format!("bench-{name}")).spawn(run);
        let thread = thread.map_err(ElasticError::Thread)?;
        Ok(Self { handle, stop: Some(stop), thread: Some(thread) })
    }

    pub(super) fn spawn(&self, task: impl Future<Output = ()> + Send + 'static) {
        self.handle.spawn(task);
    }

    /// Waits until a client is attached.
    pub(super) fn open<T>(
        &self,
        who: String,
        opened: impl Future<Output = Result<T, Error>>,
    ) -> Result<T, ElasticError> {
        self.finish(who, ATTACH_S, opened)
    }

    /// Waits for what a client does, at most so many seconds.
    pub(super) fn finish<T>(
        &self,
        who: String,
        seconds: u64,
        done: impl Future<Output = Result<T, Error>>,
    ) -> Result<T, ElasticError> {
        let patience = Duration::from_secs(seconds);
        match self.handle.block_on(async { tokio::time::timeout(patience, done).await }) {
            Ok(Ok(done)) => Ok(done),
            Ok(Err(source)) => Err(ElasticError::Client { who, source }),
            Err(_) => Err(ElasticError::Late { what: format!("{who} is ready"), seconds }),
        }
    }
}

impl Drop for Reactor {
    fn drop(&mut self) {
        drop(self.stop.take());
        if let Some(thread) = self.thread.take() {
            // The thread has printed its panic.
            let _ = thread.join();
        }
    }
}
