//! Shuttle's locks and threads. Parking is ours, since shuttle wakes parked threads for no reason so
//! often that no lost wake-up would be seen.

pub(crate) use shuttle::sync::{Mutex, MutexGuard};

pub(crate) mod thread {
    use std::sync::Arc;
    use std::time::Duration;

    use shuttle::sync::{Condvar, Mutex};
    pub(crate) use shuttle::thread::{Builder, JoinHandle, ThreadId, yield_now};

    use crate::clock;
    use crate::leadership::TICK;

    shuttle::thread_local! {
        static CURRENT: Thread =
            Thread { id: shuttle::thread::current().id(), token: Arc::default() };
    }

    #[derive(Clone, Debug)]
    pub struct Thread {
        id: ThreadId,
        token: Arc<(Mutex<bool>, Condvar)>,
    }

    impl Thread {
        pub(crate) fn id(&self) -> ThreadId {
            self.id
        }

        pub(crate) fn unpark(&self) {
            *self.token.0.lock().unwrap() = true;
            self.token.1.notify_one();
        }
    }

    pub(crate) fn current() -> Thread {
        CURRENT.with(Clone::clone)
    }

    pub(crate) fn park() {
        let thread = current();
        let mut token = thread.token.0.lock().unwrap();
        while !*token {
            token = thread.token.1.wait(token).unwrap();
        }
        *token = false;
    }

    /// A short wait may be over at once. A longer one never is: no message may need that.
    pub(crate) fn park_timeout(within: Duration) {
        if within > TICK {
            return park();
        }
        yield_now();
        clock::pass(within);
    }
}
