//! Passwords are verified on a thread of their own, off the core; what was verified is remembered for
//! a minute, so that a client that connects often (or asks the management API with every request)
//! costs one hash. Addresses take turns, and what nobody waits for any more is not hashed.

mod remembered;
mod waiting;

use std::io;
use std::net::IpAddr;
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, Condvar, Mutex, MutexGuard, OnceLock, PoisonError, Weak};
use std::thread;
use std::time::{Duration, Instant};

use bytes::Bytes;
use quelea_net::{SignInFailures, network_of};

use self::remembered::Remembered;
use self::waiting::{Source, Waiting, Waits};
use crate::password::{HashError, hash_password, verify_password};
use crate::rabbitmq_password::to_rabbitmq;

/// Argon2 keeps 7 MiB on the heap, not on the stack.
const STACK_BYTES: usize = 256 * 1024;
/// How long the thread waits for more before it ends. With it goes the memory of the hashes, which
/// our allocator keeps for a while for the thread that used it.
const IDLE: Duration = Duration::from_secs(2);

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

/// What became of a request to verify.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Verdict {
    /// The password is the user's.
    Verified,
    /// It is not, or there is no such user.
    Wrong,
    /// Nobody knows: too many wait, or no thread could be started. To try again may help.
    Busy,
}

impl From<bool> for Verdict {
    fn from(is_good: bool) -> Self {
        if is_good { Self::Verified } else { Self::Wrong }
    }
}

/// A hash to be stored instead of another one: RabbitMQ made that, and the user has signed in.
#[derive(Debug)]
pub struct BetterHash {
    /// The user's name.
    pub user: String,
    /// What is stored now.
    pub old: Arc<str>,
    /// A PHC string of argon2.
    pub new: String,
}

type OnBetterHash = Box<dyn Fn(BetterHash) + Send + Sync>;

/// Somebody waits for a verdict. Once it is dropped, nothing is hashed for it any more.
#[derive(Debug)]
#[must_use = "what nobody waits for is not verified"]
pub struct Verification(#[expect(dead_code, reason = "it is there or not")] Arc<()>);

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
    failures: SignInFailures,
    hashed: AtomicU64,
    on_better_hash: OnceLock<OnBetterHash>,
}

#[derive(Default)]
struct RequestQueue {
    waiting: Waiting<Request>,
    /// The thread runs, and will look at the queue again.
    served: bool,
}

enum Request {
    Verify { credentials: Credentials, wanted: Weak<()>, reply: Box<dyn FnOnce(Verdict) + Send> },
    Hash(Bytes, Box<dyn FnOnce(Result<String, HashError>) + Send>),
}

impl Waits for Request {
    fn is_wanted(&self) -> bool {
        match self {
            Self::Verify { wanted, .. } => wanted.strong_count() > 0,
            Self::Hash(..) => true,
        }
    }
}

impl Request {
    fn refuse(self) {
        match self {
            Self::Verify { reply, .. } => reply(Verdict::Busy),
            Self::Hash(_, reply) => {
                reply(Err(HashError { reason: "too many logins wait already".to_owned() }));
            }
        }
    }
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
            failures: SignInFailures::default(),
            hashed: AtomicU64::new(0),
            on_better_hash: OnceLock::new(),
        };
        Ok(Self { shared: Arc::new(shared) })
    }

    /// Has `store` called, on the thread, when somebody has signed in whose password has a hash that RabbitMQ made. What
    /// was set first stays.
    pub fn on_better_hash(&self, store: impl Fn(BetterHash) + Send + Sync + 'static) {
        let _ = self.shared.on_better_hash.set(Box::new(store));
    }

    /// Returns whether these credentials are good, if they were verified within the last minute. Costs
    /// some 10 µs.
    #[must_use]
    pub fn remembered(&self, credentials: &Credentials) -> Option<bool> {
        lock(&self.shared.remembered).verdict(credentials, Instant::now())
    }

    /// Verifies on the thread, for somebody at `peer`; `reply` is called there, unless what this returns is
    /// dropped before. If too many wait, it is called with [`Verdict::Busy`], perhaps before this returns.
    pub fn verify(
        &self,
        peer: IpAddr,
        credentials: Credentials,
        reply: impl FnOnce(Verdict) + Send + 'static,
    ) -> Verification {
        let waits = Arc::new(());
        let (wanted, reply) = (Arc::downgrade(&waits), Box::new(reply));
        self.request(Some(network_of(peer)), Request::Verify { credentials, wanted, reply });
        Verification(waits)
    }

    /// Hashes a new password on the thread; `reply` is called there with the PHC string, or with an error if
    /// too many wait.
    pub fn hash(
        &self,
        password: Bytes,
        reply: impl FnOnce(Result<String, HashError>) + Send + 'static,
    ) {
        self.request(None, Request::Hash(password, Box::new(reply)));
    }

    /// Returns the sign-ins that failed, at all fronts: also at those that verify no passwords. No
    /// other sign-in waits for one, not even of the same user from the same address.
    #[must_use]
    pub fn failures(&self) -> &SignInFailures {
        &self.shared.failures
    }

    /// Returns how many passwords were hashed to verify them since the start: what sign-ins cost.
    #[must_use]
    pub fn verifications(&self) -> u64 {
        self.shared.hashed.load(Ordering::Relaxed)
    }

    fn request(&self, source: Source, request: Request) {
        // Replies are called without the lock.
        self.enqueue(source, request).into_iter().for_each(Request::refuse);
    }

    /// Returns those that are refused instead.
    fn enqueue(&self, source: Source, request: Request) -> Vec<Request> {
        let mut queue = lock(&self.shared.queue);
        let refused = queue.waiting.push(source, request);
        if !queue.served {
            let shared = Arc::clone(&self.shared);
            let builder = thread::Builder::new().name("auth".to_owned()).stack_size(STACK_BYTES);
            if builder.spawn(move || shared.serve()).is_err() {
                return refused.into_iter().chain(queue.waiting.drain()).collect();
            }
            queue.served = true;
        }
        self.shared.filled.notify_one();
        refused.into_iter().collect()
    }
}

impl Shared {
    /// What the thread does.
    fn serve(&self) {
        while let Some(request) = self.next() {
            let answer = AssertUnwindSafe(|| match request {
                Request::Verify { credentials, reply, .. } => {
                    reply(self.verify(&credentials).into());
                }
                Request::Hash(password, reply) => reply(hash_password(&password)),
            });
            // A panic is logged by the hook; who waits for this answer runs into a timeout.
            let _ = catch_unwind(answer);
        }
    }

    /// Waits for the next request and takes it; `None` after none came for a while.
    fn next(&self) -> Option<Request> {
        loop {
            let queue = lock(&self.queue);
            let empty = |queue: &mut RequestQueue| queue.waiting.is_empty();
            let waited = self.filled.wait_timeout_while(queue, IDLE, empty);
            let (mut queue, timeout) = waited.unwrap_or_else(PoisonError::into_inner);
            let request = queue.waiting.pop();
            if request.is_some() {
                return request;
            }
            // Else all that had waited were given up.
            if timeout.timed_out() {
                queue.served = false;
                return None;
            }
        }
    }

    fn verify(&self, credentials: &Credentials) -> bool {
        // A thousand connections may come with the same credentials before the first is verified.
        if let Some(is_good) = lock(&self.remembered).verdict(credentials, Instant::now()) {
            return is_good;
        }
        self.hashed.fetch_add(1, Ordering::Relaxed);
        let is_good = verify_password(&credentials.password, credentials.hash.as_deref());
        lock(&self.remembered).insert(credentials, is_good, Instant::now());
        if is_good && let Some(old) = &credentials.hash {
            self.improve(credentials, old);
        }
        is_good
    }

    fn improve(&self, credentials: &Credentials, old: &Arc<str>) {
        if let Some(store) = self.on_better_hash.get()
            && to_rabbitmq(old).is_some()
            // Without one the old stays as good as it was.
            && let Ok(new) = hash_password(&credentials.password)
        {
            store(BetterHash { user: credentials.user.clone(), old: Arc::clone(old), new });
        }
    }
}

/// Locks a mutex. The data behind these locks is consistent between any two statements, so a panic
/// of another thread does not spoil it.
fn lock<T>(mutex: &Mutex<T>) -> MutexGuard<'_, T> {
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}

#[cfg(test)]
mod tests {
    use std::sync::mpsc;

    use super::*;

    const HERE: IpAddr = IpAddr::V4(std::net::Ipv4Addr::LOCALHOST);

    fn credentials(user: &str, password: &'static str, hash: Option<&str>) -> Credentials {
        Credentials {
            user: user.to_owned(),
            password: Bytes::from_static(password.as_bytes()),
            hash: hash.map(Arc::from),
        }
    }

    fn verify(pool: &Authenticator, credentials: Credentials) -> Verdict {
        let (sender, receiver) = mpsc::channel();
        let _waiting = pool.verify(HERE, credentials, move |verdict| sender.send(verdict).unwrap());
        receiver.recv().unwrap()
    }

    #[test]
    fn verified_credentials_are_remembered_and_so_are_wrong_ones() {
        let pool = Authenticator::start().unwrap();
        let hash = hash_password(b"secret").unwrap();
        let right = credentials("ada", "secret", Some(&hash));
        assert_eq!(pool.remembered(&right), None);
        assert_eq!(verify(&pool, right.clone()), Verdict::Verified);
        assert_eq!(pool.remembered(&right), Some(true));
        let wrong = credentials("ada", "guess", Some(&hash));
        assert_eq!(verify(&pool, wrong.clone()), Verdict::Wrong);
        assert_eq!(pool.remembered(&wrong), Some(false));
        assert_eq!(pool.remembered(&credentials("bob", "secret", Some(&hash))), None);
    }

    #[test]
    fn a_changed_password_or_a_deleted_user_is_forgotten() {
        let pool = Authenticator::start().unwrap();
        let hash = hash_password(b"secret").unwrap();
        assert_eq!(verify(&pool, credentials("ada", "secret", Some(&hash))), Verdict::Verified);
        let changed = hash_password(b"secret").unwrap();
        assert_eq!(pool.remembered(&credentials("ada", "secret", Some(&changed))), None);
        assert_eq!(verify(&pool, credentials("ada", "secret", None)), Verdict::Wrong);
        // A user of that name is made: what was wrong need not be so any more.
        assert_eq!(pool.remembered(&credentials("ada", "secret", Some(&changed))), None);
    }

    #[test]
    fn what_nobody_waits_for_is_not_hashed() {
        let pool = Authenticator::start().unwrap();
        let (first, hold) = mpsc::channel();
        // The thread is kept busy until all others are given up.
        pool.hash(Bytes::from_static(b"x"), move |_| hold.recv().unwrap());
        let given_up: Vec<_> = (0..1_000)
            .map(|number| {
                let user = number.to_string();
                pool.verify(HERE, credentials(&user, "x", None), |_| panic!("it was hashed"))
            })
            .collect();
        drop(given_up);
        first.send(()).unwrap();
        assert_eq!(verify(&pool, credentials("ada", "x", None)), Verdict::Wrong);
    }
}
