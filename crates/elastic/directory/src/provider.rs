//! Who starts and ends relays: processes of this machine, pods of a cluster (EQS §III-C, "cloud
//! provider"). A provider knows nothing of queues' states; it makes what it is asked for exactly once.

#[cfg(feature = "kubernetes")]
pub mod kubernetes;
pub mod process;

use std::pin::Pin;
use std::sync::{Arc, Mutex, PoisonError};
use std::time::Duration;

use quelea_elastic_core::directory::{Definition, QueueStatus, RelayHandle, RelaySpec};

use crate::ResultFuture;
use crate::relay_token::TokenSecret;

/// Starts, lists and ends relays. Shared by tasks; every method may be called at any time, and what it
/// began goes on if the caller stops waiting.
pub trait Provider: Send + Sync {
    /// Returns the name as in `elastic.provider`, for logs and events.
    fn name(&self) -> &'static str;

    /// Starts a relay. There is at most one for each queue and request, whatever happens: asked again, also by
    /// the directory's next life, it gives the handle of the one that runs. It is started when this
    /// answers (which may be late: the caller does not wait in line), and may not have registered yet. A relay of that request that has ended is
    /// not started again; the answer is [`ProviderError::Ended`], if the provider can still know.
    ///
    /// # Errors
    ///
    /// [`ProviderError::Ended`] as said above; [`ProviderError::Refused`] if it cannot start until
    /// something is changed; [`ProviderError::Unavailable`] if trying again may help.
    fn start<'a>(&'a self, spec: &'a RelaySpec) -> ResultFuture<'a, RelayHandle, ProviderError>;

    /// Lists what runs of one queue, or of all, in the order of queue and relay. Only what this
    /// provider has started for this site, in this or an earlier life.
    ///
    /// # Errors
    ///
    /// [`ProviderError::Refused`] or [`ProviderError::Unavailable`] if what runs cannot be found
    /// out.
    fn list<'a>(&'a self, queue: Option<&'a str>) -> ResultFuture<'a, Vec<Running>, ProviderError>;

    /// Returns whether a relay that [`Provider::list`] does not have is known to have ended.
    /// `false` where it may run all the same, out of this provider's sight.
    fn has_ended<'a>(
        &'a self,
        queue: &'a str,
        handle: &'a RelayHandle,
    ) -> ResultFuture<'a, bool, ProviderError> {
        let _ = (queue, handle);
        Box::pin(std::future::ready(Ok(false)))
    }

    /// Tells the provider that a relay is being drained by its directory, and has to be gone when
    /// `grace` is over: for providers that show it to others, and make it so if the directory is
    /// lost meanwhile. Answers when it has taken that.
    ///
    /// # Errors
    ///
    /// As [`Provider::stop`].
    fn drain<'a>(
        &'a self,
        queue: &'a str,
        handle: &'a RelayHandle,
        grace: Duration,
    ) -> ResultFuture<'a, (), ProviderError> {
        let _ = (queue, handle, grace);
        Box::pin(std::future::ready(Ok(())))
    }

    /// Begins to end a relay: it is asked to (SIGTERM, a deletion timestamp), and made to when `grace`
    /// has passed. Answers when it was asked; that it is gone is reported by [`Provider::event`]. One that
    /// is gone already, or was never there, is no error.
    ///
    /// # Errors
    ///
    /// [`ProviderError::Refused`] or [`ProviderError::Unavailable`] if the relay could not be asked
    /// to end.
    fn stop<'a>(
        &'a self,
        queue: &'a str,
        handle: &'a RelayHandle,
        grace: Duration,
    ) -> ResultFuture<'a, (), ProviderError>;

    /// Waits for what happens at the provider next, and returns it: also of relays that were
    /// adopted, and of those that ended while nobody looked, as far as the provider can know.
    /// Nothing is lost if the caller drops the future.
    fn event(&self) -> Pin<Box<dyn Future<Output = ProviderEvent> + Send + '_>>;

    /// Forgets a queue that was deleted, and whose relays are gone: what the provider has of it may
    /// go too. Answers when that is done; a queue that is not known is no error.
    ///
    /// # Errors
    ///
    /// [`ProviderError::Refused`] or [`ProviderError::Unavailable`] if what it has could not be
    /// deleted.
    fn forget<'a>(&'a self, queue: &'a str) -> ResultFuture<'a, (), ProviderError> {
        let _ = queue;
        Box::pin(std::future::ready(Ok(())))
    }

    /// A queue's state has changed (reported at most once a second): for providers that show it.
    /// Returns at once.
    fn show(&self, status: &QueueStatus) {
        let _ = status;
    }
}

/// What happened at a provider without being asked for.
#[derive(Clone, Debug, PartialEq)]
pub enum ProviderEvent {
    /// A relay has ended, expectedly or not. Reported once of each.
    Ended(Ended),
    /// Somebody has defined a queue at the provider (a custom resource); checked.
    Define {
        /// The queue.
        queue: String,
        /// What it is meant to be.
        definition: Definition,
    },
    /// Somebody has deleted a queue at the provider.
    Delete {
        /// The queue.
        queue: String,
    },
}

/// A relay that runs.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Running {
    /// The queue that it serves.
    pub queue: String,
    /// Which, and how the provider calls it.
    pub handle: RelayHandle,
}

/// A relay that has ended.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Ended {
    /// The queue that it served.
    pub queue: String,
    /// Which, and how the provider called it.
    pub handle: RelayHandle,
    /// How, for people: `exit code 1: cannot listen on …`, `signal 9`, `pod evicted`.
    pub cause: String,
}

/// Why a provider did not do what it was asked.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum ProviderError {
    /// What was asked cannot work until something is changed: a wrong path, a right that is missing.
    #[error("{provider} cannot {what}: {cause}")]
    Refused {
        /// The provider's name.
        provider: &'static str,
        /// `start relay 3 of "prices"`.
        what: String,
        /// With the value that is wrong.
        cause: String,
    },
    /// It did not work this time: trying again may help.
    #[error("{provider} could not {what} now: {cause}")]
    Unavailable {
        /// The provider's name.
        provider: &'static str,
        /// `start relay 3 of "prices"`.
        what: String,
        /// What happened.
        cause: String,
    },
    /// The relay of this request was started earlier, and is gone.
    #[error("the relay of request {request:?} has ended: {cause}")]
    Ended {
        /// The request.
        request: String,
        /// How it ended.
        cause: String,
    },
}

/// The directories at which relays are to register, `host:port`. Shared: they change as directories
/// come and go.
#[derive(Clone, Debug, Default)]
pub struct Directories(Arc<Mutex<Vec<String>>>);

impl Directories {
    /// Returns the directories that are known now.
    #[must_use]
    pub fn list(&self) -> Vec<String> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner).clone()
    }

    /// Others are known from now on.
    pub fn set(&self, directories: Vec<String>) {
        *self.0.lock().unwrap_or_else(PoisonError::into_inner) = directories;
    }
}

impl From<Vec<String>> for Directories {
    fn from(directories: Vec<String>) -> Self {
        Self(Arc::new(Mutex::new(directories)))
    }
}

/// What every relay of a site is started with, besides its [`RelaySpec`].
#[derive(Clone, Debug)]
pub struct RelayCommand {
    /// Directories to register at.
    pub directories: Directories,
    /// Where it listens; port 0 takes a free one.
    pub listen: String,
    /// File with the site's key, empty if there is none.
    pub key_file: String,
    /// Bytes a second that the network of a relay's host carries in each direction; 0 if nobody knows.
    pub network_bytes_per_s_max: u64,
    /// What relays' tokens are made of.
    pub secret: TokenSecret,
}

impl RelayCommand {
    /// Returns what the relay has to show; it is handed over in its environment,
    /// [`TOKEN_VARIABLE`](crate::TOKEN_VARIABLE), and never on its command line, which everybody on
    /// the machine can read.
    ///
    /// # Errors
    /// [`ProviderError::Unavailable`] while the metadata store has not answered.
    pub fn token(&self, spec: &RelaySpec) -> Result<String, ProviderError> {
        self.secret.token(&spec.queue, &spec.request).ok_or_else(|| ProviderError::Unavailable {
            provider: "the directory",
            what: format!("start relay {} of {:?}", spec.relay.0, spec.queue),
            cause: "the metadata store has not given the secret of relays' tokens".to_owned(),
        })
    }

    /// Returns the arguments of the program `quelea`.
    #[must_use]
    pub fn arguments(&self, spec: &RelaySpec) -> Vec<String> {
        let mut arguments = vec![
            "relay".to_owned(),
            format!("--queue={}", spec.queue),
            format!("--relay-id={}", spec.relay.0),
            format!("--request={}", spec.request),
            format!("--directory={}", self.directories.list().join(",")),
            format!("--listen={}", self.listen),
        ];
        if !self.key_file.is_empty() {
            arguments.push(format!("--key-file={}", self.key_file));
        }
        if self.network_bytes_per_s_max > 0 {
            arguments.push(format!("--network-bytes-max={}", self.network_bytes_per_s_max));
        }
        arguments
    }
}

#[cfg(test)]
mod tests {
    use quelea_elastic_proto::RelayId;

    use super::*;

    #[test]
    fn a_relay_is_started_with_its_queue_number_and_directories() {
        let mut command = RelayCommand {
            directories: vec!["a:1".to_owned(), "b:2".to_owned()].into(),
            listen: "127.0.0.1:0".to_owned(),
            key_file: String::new(),
            network_bytes_per_s_max: 0,
            secret: TokenSecret::random().unwrap(),
        };
        let spec =
            RelaySpec { relay: RelayId(3), queue: "-x y".to_owned(), request: "r".to_owned() };
        let expected =
            ["relay", "--queue=-x y", "--relay-id=3", "--request=r", "--directory=a:1,b:2"];
        assert_eq!(command.arguments(&spec)[..5], expected);
        assert_eq!(command.arguments(&spec).len(), 6);
        command.key_file = "/k".to_owned();
        assert_eq!(command.arguments(&spec)[6], "--key-file=/k");
        command.network_bytes_per_s_max = 125_000_000;
        assert_eq!(command.arguments(&spec)[7], "--network-bytes-max=125000000");
        let token = command.token(&spec).unwrap();
        assert!(command.arguments(&spec).iter().all(|argument| !argument.contains(&token)));
    }
}
