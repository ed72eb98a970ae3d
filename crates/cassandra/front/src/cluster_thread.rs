//! The thread that speaks with Cassandra. A front-end alone serves its clients there, too: to hand a call from thread to
//! thread costs more than to carry it out.

use std::io;
use std::pin::Pin;

use tokio::runtime::{Builder, Handle};
use tokio::sync::mpsc::{UnboundedReceiver, UnboundedSender, unbounded_channel};
use tokio::task::LocalSet;

type MakeTask = Box<dyn FnOnce() -> Pin<Box<dyn Future<Output = ()>>> + Send>;

/// A thread with a runtime. It ends, and drops all that runs there, when this is dropped.
#[derive(Debug)]
pub(crate) struct ClusterThread {
    handle: Handle,
    /// The few servers of this process.
    local_tasks: UnboundedSender<MakeTask>,
}

impl ClusterThread {
    pub(crate) fn start() -> io::Result<Self> {
        let runtime = Builder::new_current_thread().enable_all().build()?;
        let handle = runtime.handle().clone();
        let (local_tasks, more) = unbounded_channel();
        let run = move || {
            runtime.block_on(LocalSet::new().run_until(spawn_all(more)));
            // A name that is looked up may take long.
            runtime.shutdown_background();
        };
        std::thread::Builder::new().name("cassandra".to_owned()).spawn(run)?;
        Ok(Self { handle, local_tasks })
    }

    /// Returns the handle by which others let it run what may run anywhere.
    pub(crate) const fn handle(&self) -> &Handle {
        &self.handle
    }

    /// Lets it run a future that cannot leave its thread. It must never block.
    pub(crate) fn spawn_local<F: Future<Output = ()> + 'static>(
        &self,
        make: impl FnOnce() -> F + Send + 'static,
    ) {
        // It is there as long as this is.
        let _ = self.local_tasks.send(Box::new(move || Box::pin(make())));
    }
}

async fn spawn_all(mut tasks: UnboundedReceiver<MakeTask>) {
    while let Some(make) = tasks.recv().await {
        drop(tokio::task::spawn_local(make()));
    }
}
