//! The front's thread: it listens, forwards, and stops.

use std::net::{SocketAddr, UdpSocket};
use std::sync::Arc;
use std::thread::JoinHandle;
use std::time::Duration;

use quelea_cmq::{Endpoint, MailboxError, MailboxOptions};
use quelea_node::CoreHandle;
use tokio::runtime::{Builder, Runtime};
use tokio::sync::watch;
use tokio::task::{LocalSet, spawn_local};

use crate::counters::DatagramCounters;
use crate::forward::Forward;
use crate::forward_state::ForwardState;
use crate::intake::Intake;
use crate::route::Routes;
use crate::settings::DatagramSettings;

/// How long the last acknowledgements may take to leave.
const CLOSE_MAX: Duration = Duration::from_millis(500);

/// The running front.
#[derive(Debug)]
pub struct DatagramFront {
    address: Option<SocketAddr>,
    stop: watch::Sender<bool>,
    thread: JoinHandle<()>,
}

/// Why it does not start.
#[derive(Debug, thiserror::Error)]
pub enum DatagramStartError {
    /// The socket is of no use.
    #[error("cannot listen for CMQ: {0}")]
    Socket(std::io::Error),
    /// There is no thread for it.
    #[error("cannot start the thread of CMQ's front: {0}")]
    Thread(std::io::Error),
    /// The library refuses.
    #[error(transparent)]
    Mailbox(#[from] MailboxError),
}

impl DatagramFront {
    /// Takes what is pushed to `socket`, if there is one, and forwards queues.
    ///
    /// # Errors
    /// [`DatagramStartError`].
    pub fn start(
        core: &CoreHandle,
        socket: Option<UdpSocket>,
        settings: DatagramSettings,
        counters: &Arc<DatagramCounters>,
    ) -> Result<Self, DatagramStartError> {
        let (stop, stopped) = watch::channel(false);
        let intake = socket.map(|socket| listen(core, socket, &settings, counters)).transpose()?;
        let address = intake.as_ref().map(|intake| intake.queue.endpoint().local_addr());
        let config = settings.config();
        let states = settings.forwards.into_iter().map(|one| Arc::new(ForwardState::new(one)));
        let states: Vec<_> = states.collect();
        let forwards = states.iter().map(|state| Forward {
            core: core.clone(),
            config: config.clone(),
            user: Arc::clone(&settings.user),
            state: Arc::clone(state),
        });
        let forwards: Vec<_> = forwards.collect();
        counters.set_forwards(states);
        let runtime = Builder::new_current_thread().enable_time().build();
        let runtime = runtime.map_err(DatagramStartError::Thread)?;
        let thread = std::thread::Builder::new()
            .name("cmq-front".to_owned())
            .spawn(move || {
                serve(&runtime, intake, forwards, &stopped);
                // A look-up of a name that nobody waits for any more is not waited for here either.
                runtime.shutdown_background();
            })
            .map_err(DatagramStartError::Thread)?;
        Ok(Self { address, stop, thread })
    }

    /// Returns the address where it listens; none if it has no socket.
    #[must_use]
    pub const fn address(&self) -> Option<SocketAddr> {
        self.address
    }

    /// Takes and forwards nothing more, acknowledges what is safe, requeues what is under way, and
    /// waits until that is done. The broker has to run meanwhile.
    pub fn stop(self) {
        // Without a receiver it has stopped already.
        let _ = self.stop.send(true);
        if self.thread.join().is_err() {
            tracing::warn!("the thread of CMQ's front panicked");
        }
    }
}

fn listen(
    core: &CoreHandle,
    socket: UdpSocket,
    settings: &DatagramSettings,
    counters: &Arc<DatagramCounters>,
) -> Result<Intake, DatagramStartError> {
    let endpoint = Endpoint::from_socket(socket, settings.config());
    let endpoint = endpoint.map_err(DatagramStartError::Socket)?;
    let options =
        MailboxOptions { bytes_max: settings.waiting_bytes_max, acknowledged_by_application: true };
    let queue = endpoint.queue_of_others(options)?;
    // A second front would count into the first one's place; there is none.
    let _ = counters.listener.set(endpoint);
    Ok(Intake {
        core: core.clone(),
        queue: Arc::new(queue),
        routes: Arc::new(Routes::new(settings.routes.clone(), settings.others.clone())),
        user: Arc::clone(&settings.user),
        loopback_only: settings.loopback_only,
        body_bytes_max: settings.body_bytes_max,
        counters: Arc::clone(counters),
    })
}

fn serve(
    runtime: &Runtime,
    intake: Option<Intake>,
    forwards: Vec<Forward>,
    stop: &watch::Receiver<bool>,
) {
    let listener = intake.as_ref().map(|intake| intake.queue.endpoint().clone());
    let tasks = LocalSet::new();
    runtime.block_on(tasks.run_until(async {
        let forwards = forwards.into_iter().map(|forward| spawn_local(forward.run(stop.clone())));
        let mut ends: Vec<_> = forwards.collect();
        ends.extend(intake.map(|intake| spawn_local(intake.run(stop.clone()))));
        for end in ends {
            if end.await.is_err() {
                // The hook has logged where. The other ways go on.
                tracing::error!("a task of CMQ's front panicked");
            }
        }
    }));
    if let Some(listener) = listener {
        // Whoever is not acknowledged by then repeats it to the next broker.
        let _ = listener.close(CLOSE_MAX);
    }
}
