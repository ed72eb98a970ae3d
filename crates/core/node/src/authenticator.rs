//! Passwords are verified on a thread of their own, off the core; what was verified is remembered for
//! a minute, so that a client that connects often (or asks the management API with every request)
//! costs one hash.

use std::collections::VecDeque;
use std::io;
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::sync::{Arc, Condvar, Mutex, MutexGuard, PoisonError};
use std::thread;
use std::time::{Duration, Instant};

use argon2::{Algorithm, Argon2, Params, Version};
use bytes::Bytes;
use rustc_hash::FxHashMap;

use crate::password::{HashError, hash_password, verify_password};

/// Requests that wait for the thread, which hashes some 50 passwords a second (a second thread would
/// take the other core of a small machine). A connection has at most one, so this is a burst of
/// logins; beyond it a login is refused, which clients answer by trying again.
const WAITING_MAX: usize = 8_192;
const REMEMBERED_FOR: Duration = Duration::from_secs(60);
/// Verified credentials that are remembered; at the limit they are all forgotten, which costs one
/// hash each.
const REMEMBERED_MAX: usize = 4_096;
/// Argon2 keeps 7 MiB on the heap, not on the stack.
const STACK_BYTES: usize = 256 * 1024;
/// How long the thread waits for more before it ends. With it goes the memory of the hashes, which
/// our allocator keeps for a while for the thread that used it.
const IDLE: Duration = Duration::from_secs(2);

/// The request was not taken: too many logins wait, or no thread could be started.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
#[error("too many logins wait already")]
pub struct Busy;

/// Credentials to check.
#[derive(Clone)]
pub struct Credentials {
    /// The user's name as it was given.
    pub user: String,
    /// The password as it was given.
    pub password: Bytes,
    /// The user's PHC string; `None` if there is no such user, which takes as long to refuse.
    pub hash: Option<Arc<str>>,
}

/// The thread and its memory. Cheap to clone. The thread runs only while there is something to do.
#[derive(Clone)]
pub struct Authenticator {
    shared: Arc<Shared>,
}

struct Shared {
    queue: Mutex<RequestQueue>,
    /// Something was put into the queue.
    filled: Condvar,
    remembered: Mutex<Remembered>,
}

#[derive(Default)]
struct RequestQueue {
    waiting: VecDeque<Request>,
    /// The thread runs, and will look at the queue again.
    served: bool,
}

enum Request {
    Verify(Credentials, Box<dyn FnOnce(bool) + Send>),
    Hash(Bytes, Box<dyn FnOnce(Result<String, HashError>) + Send>),
}

impl Authenticator {
    /// Starts without a thread.
    ///
    /// # Errors
    /// If the system gives no random bytes.
    pub fn start() -> io::Result<Self> {
        let shared = Shared {
            queue: Mutex::default(),
            filled: Condvar::new(),
            remembered: Mutex::new(Remembered::new()?),
        };
        Ok(Self { shared: Arc::new(shared) })
    }

    /// Whether these credentials were verified within the last minute. Costs some 10 µs.
    #[must_use]
    pub fn remembers(&self, credentials: &Credentials) -> bool {
        lock(&self.shared.remembered).contains(credentials, Instant::now())
    }

    /// Verifies on the thread; `reply` is called there.
    ///
    /// # Errors
    /// [`Busy`] if too many wait; `reply` is dropped then.
    pub fn verify(
        &self,
        credentials: Credentials,
        reply: impl FnOnce(bool) + Send + 'static,
    ) -> Result<(), Busy> {
        self.request(Request::Verify(credentials, Box::new(reply)))
    }

    /// Hashes a new password on the thread; `reply` is called there with the PHC string.
    ///
    /// # Errors
    /// [`Busy`] if too many wait; `reply` is dropped then.
    pub fn hash(
        &self,
        password: Bytes,
        reply: impl FnOnce(Result<String, HashError>) + Send + 'static,
    ) -> Result<(), Busy> {
        self.request(Request::Hash(password, Box::new(reply)))
    }

    fn request(&self, request: Request) -> Result<(), Busy> {
        let mut queue = lock(&self.shared.queue);
        if queue.waiting.len() >= WAITING_MAX {
            return Err(Busy);
        }
        if !queue.served {
            let shared = Arc::clone(&self.shared);
            let builder = thread::Builder::new().name("auth".to_owned()).stack_size(STACK_BYTES);
            builder.spawn(move || shared.serve()).map_err(|_| Busy)?;
            queue.served = true;
        }
        queue.waiting.push_back(request);
        self.shared.filled.notify_one();
        Ok(())
    }
}

impl Shared {
    /// What the thread does.
    fn serve(&self) {
        while let Some(request) = self.next() {
            let answer = AssertUnwindSafe(|| match request {
                Request::Verify(credentials, reply) => reply(self.verify(&credentials)),
                Request::Hash(password, reply) => reply(hash_password(&password)),
            });
            // A panic is logged by the hook; who waits for this answer runs into a timeout.
            let _ = catch_unwind(answer);
        }
    }

    /// The next request; `None` after none came for a while.
    fn next(&self) -> Option<Request> {
        let queue = lock(&self.queue);
        let empty = |queue: &mut RequestQueue| queue.waiting.is_empty();
        let waited = self.filled.wait_timeout_while(queue, IDLE, empty);
        let (mut queue, _) = waited.unwrap_or_else(PoisonError::into_inner);
        let request = queue.waiting.pop_front();
        queue.served = request.is_some();
        request
    }

    fn verify(&self, credentials: &Credentials) -> bool {
        // A thousand connections may come with the same credentials before the first is verified.
        if lock(&self.remembered).contains(credentials, Instant::now()) {
            return true;
        }
        let verified = verify_password(&credentials.password, credentials.hash.as_deref());
        if verified {
            lock(&self.remembered).insert(credentials, Instant::now());
        }
        verified
    }
}

/// The data behind these locks is consistent between any two statements, so a panic of another
/// thread does not spoil it.
fn lock<T>(mutex: &Mutex<T>) -> MutexGuard<'_, T> {
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}

/// Keyed hashes of verified credentials. The user's password hash is part of what is hashed, so a
/// changed password or a user made anew is forgotten by itself; neither passwords nor anything that
/// could be compared across processes is kept.
struct Remembered {
    secret: [u8; 32],
    until: FxHashMap<[u8; 32], Instant>,
}

impl Remembered {
    fn new() -> io::Result<Self> {
        let mut secret = [0; 32];
        getrandom::fill(&mut secret).map_err(io::Error::other)?;
        Ok(Self { secret, until: FxHashMap::default() })
    }

    fn contains(&self, credentials: &Credentials, now: Instant) -> bool {
        self.key(credentials).and_then(|key| self.until.get(&key)).is_some_and(|until| *until > now)
    }

    fn insert(&mut self, credentials: &Credentials, now: Instant) {
        let Some(key) = self.key(credentials) else { return };
        if self.until.len() >= REMEMBERED_MAX {
            self.until.retain(|_, until| *until > now);
        }
        if self.until.len() >= REMEMBERED_MAX {
            self.until.clear();
        }
        self.until.insert(key, now + REMEMBERED_FOR);
    }

    /// Argon2 with its smallest cost (8 KiB, one pass) and a secret per process is a keyed hash.
    fn key(&self, credentials: &Credentials) -> Option<[u8; 32]> {
        let hash = credentials.hash.as_deref()?;
        let params = Params::new(Params::MIN_M_COST, 1, 1, None).ok()?;
        let keyed =
            Argon2::new_with_secret(&self.secret, Algorithm::Argon2id, Version::V0x13, params)
                .ok()?;
        let mut input = Vec::with_capacity(
            16 + credentials.user.len() + credentials.password.len() + hash.len(),
        );
        for part in [credentials.user.as_bytes(), &credentials.password, hash.as_bytes()] {
            input.extend_from_slice(&(part.len() as u64).to_be_bytes());
            input.extend_from_slice(part);
        }
        let mut key = [0; 32];
        keyed.hash_password_into(&input, &self.secret, &mut key).ok()?;
        Some(key)
    }
}

#[cfg(test)]
mod tests {
    use std::sync::mpsc;

    use super::*;

    fn credentials(user: &str, password: &'static str, hash: Option<&str>) -> Credentials {
        Credentials {
            user: user.to_owned(),
            password: Bytes::from_static(password.as_bytes()),
            hash: hash.map(Arc::from),
        }
    }

    fn verify(pool: &Authenticator, credentials: Credentials) -> bool {
        let (sender, receiver) = mpsc::channel();
        pool.verify(credentials, move |ok| sender.send(ok).unwrap()).unwrap();
        receiver.recv().unwrap()
    }

    #[test]
    fn verified_credentials_are_remembered_and_wrong_ones_are_not() {
        let pool = Authenticator::start().unwrap();
        let hash = hash_password(b"secret").unwrap();
        let right = credentials("ada", "secret", Some(&hash));
        assert!(!pool.remembers(&right));
        assert!(verify(&pool, right.clone()));
        assert!(pool.remembers(&right));
        let wrong = credentials("ada", "guess", Some(&hash));
        assert!(!verify(&pool, wrong.clone()));
        assert!(!pool.remembers(&wrong));
        assert!(!pool.remembers(&credentials("bob", "secret", Some(&hash))));
    }

    #[test]
    fn a_changed_password_or_a_deleted_user_is_forgotten() {
        let pool = Authenticator::start().unwrap();
        let hash = hash_password(b"secret").unwrap();
        assert!(verify(&pool, credentials("ada", "secret", Some(&hash))));
        let changed = hash_password(b"secret").unwrap();
        assert!(!pool.remembers(&credentials("ada", "secret", Some(&changed))));
        assert!(!verify(&pool, credentials("ada", "secret", None)));
    }

    #[test]
    fn memory_of_credentials_ends_after_a_minute_and_is_bounded() {
        let mut remembered = Remembered::new().unwrap();
        let now = Instant::now();
        let ada = credentials("ada", "secret", Some("x"));
        remembered.insert(&ada, now);
        assert!(remembered.contains(&ada, now + REMEMBERED_FOR / 2));
        assert!(!remembered.contains(&ada, now + REMEMBERED_FOR));
        for n in 0..=REMEMBERED_MAX {
            remembered.insert(&credentials(&n.to_string(), "secret", Some("x")), now);
        }
        assert!(remembered.until.len() <= REMEMBERED_MAX);
    }
}
