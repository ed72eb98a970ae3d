//! What each connection of a thread is at, and since when: one timer for all of them closes those
//! that take too long, where a timer for each would cost memory and a clock read for every request.

use std::cell::{Cell, RefCell};
use std::rc::Rc;
use std::sync::Weak;
use std::time::{Duration, Instant};

use slab::Slab;
use tokio::task::AbortHandle;

use crate::body_budget::BodyBudget;
use crate::counters::SqsCounters;
use crate::limits::{SWEEP_MAX, SWEEP_MIN, UNREAD_MS_MAX};

/// What a connection is at.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Phase {
    /// Nothing of the next request is there; or the client does not read the last answer.
    Idle,
    /// A part of a request's head is there, or of its body.
    Reading,
    /// The request is there, the answer is not. A receive waits for as long as was asked for.
    Answering,
}

/// A connection's phase, and the time at which it began, in ms of the thread's clock.
#[derive(Debug)]
pub(crate) struct Progress {
    phase: Cell<Phase>,
    since_ms: Cell<u64>,
    clock_ms: Rc<Cell<u64>>,
    /// Lives as long as the last long answer is not written.
    unread: RefCell<Weak<()>>,
}

impl Progress {
    /// It has such an answer to read.
    pub(crate) fn note_unread(&self, answer: Weak<()>) {
        self.unread.replace(answer);
    }

    fn has_unread(&self) -> bool {
        self.unread.borrow().strong_count() > 0
    }

    /// The connection is at something else now. To go on with the same does not renew the time.
    pub(crate) fn enter(&self, phase: Phase) {
        if self.phase.replace(phase) != phase {
            self.since_ms.set(self.clock_ms.get());
        }
    }

    /// Bytes have come. Only the first of a request count: dripping must not help.
    pub(crate) fn arrived(&self) {
        if self.phase.get() == Phase::Idle {
            self.enter(Phase::Reading);
        }
    }
}

/// All connections of a thread.
pub(crate) struct Connections {
    idle_max: Duration,
    reading_max: Duration,
    started: Instant,
    clock_ms: Rc<Cell<u64>>,
    open: RefCell<Slab<(Rc<Progress>, Option<AbortHandle>)>>,
}

impl Connections {
    pub(crate) fn new(idle_max: Duration, reading_max: Duration) -> Self {
        Self {
            idle_max,
            reading_max,
            started: Instant::now(),
            clock_ms: Rc::default(),
            open: RefCell::default(),
        }
    }

    /// Adds a connection. Returns its number, and where it notes its phase.
    pub(crate) fn add(&self) -> (usize, Rc<Progress>) {
        let progress = Rc::new(Progress {
            phase: Cell::new(Phase::Reading),
            since_ms: Cell::new(self.clock_ms.get()),
            clock_ms: Rc::clone(&self.clock_ms),
            unread: RefCell::default(),
        });
        (self.open.borrow_mut().insert((Rc::clone(&progress), None)), progress)
    }

    /// What ends a connection. It may have ended already.
    pub(crate) fn set_abort(&self, number: usize, abort: AbortHandle) {
        if let Some(connection) = self.open.borrow_mut().get_mut(number) {
            connection.1 = Some(abort);
        }
    }

    /// Ends all connections.
    pub(crate) fn abort_all(&self) {
        self.open
            .borrow()
            .iter()
            .filter_map(|(_, (_, abort))| abort.as_ref())
            .for_each(AbortHandle::abort);
    }

    pub(crate) fn remove(&self, number: usize) {
        self.open.borrow_mut().try_remove(number);
    }

    pub(crate) fn len(&self) -> usize {
        self.open.borrow().len()
    }

    /// Returns whether a request is being answered.
    pub(crate) fn is_any_answering(&self) -> bool {
        let open = self.open.borrow();
        open.iter().any(|(_, (progress, _))| progress.phase.get() == Phase::Answering)
    }

    /// Closes connections that take too long, for ever.
    pub(crate) async fn sweep(&self, counters: &SqsCounters, answers: &BodyBudget) {
        let interval = (self.idle_max.min(self.reading_max) / 4).clamp(SWEEP_MIN, SWEEP_MAX);
        loop {
            tokio::time::sleep(interval).await;
            let now_ms = millis(self.started.elapsed());
            self.clock_ms.set(now_ms);
            for (_, (progress, abort)) in self.open.borrow_mut().iter_mut() {
                let max = match progress.phase.get() {
                    // Others wait for what it does not read.
                    Phase::Idle if answers.is_spent() && progress.has_unread() => {
                        self.idle_max.min(Duration::from_millis(UNREAD_MS_MAX))
                    }
                    Phase::Idle => self.idle_max,
                    Phase::Reading => self.reading_max,
                    Phase::Answering => continue,
                };
                if now_ms.saturating_sub(progress.since_ms.get()) > millis(max)
                    && let Some(abort) = abort.take()
                {
                    tracing::debug!(phase = ?progress.phase.get(), "closed a slow SQS client");
                    counters.count_slow_client();
                    abort.abort();
                }
            }
        }
    }
}

fn millis(duration: Duration) -> u64 {
    u64::try_from(duration.as_millis()).unwrap_or(u64::MAX)
}
