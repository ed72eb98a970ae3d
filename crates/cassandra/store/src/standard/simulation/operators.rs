//! What operators do to queues: they purge them, and have dead letters moved back.

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Duration;

use quelea_sqs_protocol::{Fault, MoveTask, MoveTaskState, NewMoveTask};
use tokio::sync::oneshot;
use tokio::time::{Instant, sleep};

use super::front_end::FrontEnd;
use super::process::Process;
use super::standard_simulation::StandardSimulation;
use crate::database::transaction::Unmade;
use crate::standard::move_step::Step;
use crate::standard::tables::Asked;

/// After so long others go on with a task that nobody says to be at.
const HELD: Duration = Duration::from_secs(10);
/// Messages that a step moves at most.
const MOST: usize = 20;

impl StandardSimulation {
    pub(super) async fn purge_now_and_then(self: Arc<Self>) {
        while self.began.elapsed() < self.common.chaos.active {
            sleep(Duration::from_millis(fastrand::u64(3_000..20_000))).await;
            let (front_end, (answer, answered)) = (self.any_front_end(), oneshot::channel());
            let (simulation, purging) = (self.clone(), front_end.clone());
            tokio::spawn(
                async move { purging.by_itself(simulation.purge(&purging, answer)).await },
            );
            let _ = front_end.call(Duration::from_secs(20), answered).await;
        }
    }

    /// By one transaction, as the store does it. Its answer may be lost, and then it may be made later, until somebody asks.
    pub(super) async fn purge(
        self: &Arc<Self>,
        front_end: &FrontEnd,
        answer: oneshot::Sender<Result<(), Fault>>,
    ) {
        let is_open = Arc::new(AtomicBool::new(false));
        let transaction = async {
            let asked = self.common.cluster.transact().await;
            match &asked {
                Ok(()) => self.make_purge(),
                Err(_) => {
                    is_open.store(true, Ordering::Relaxed);
                    tokio::spawn(self.clone().purge_late(is_open.clone()));
                }
            }
            front_end.gate.pass().await;
            asked.map_err(Unmade::perhaps)
        };
        let settling = async || {
            front_end.gate.pass().await;
            self.common.cluster.transact().await?;
            if is_open.swap(false, Ordering::Relaxed) && fastrand::bool() {
                self.make_purge();
            }
            front_end.gate.pass().await;
            Ok(())
        };
        let settle = || Box::pin(settling()) as Asked<'_, ()>;
        front_end.standard.change(&self.queue.queue, transaction, settle, answer).await;
    }

    /// Makes a purge whose answer was lost, some time later, if nobody has settled whether it is.
    async fn purge_late(self: Arc<Self>, is_open: Arc<AtomicBool>) {
        let is_begun = fastrand::bool();
        sleep(Duration::from_millis(fastrand::u64(..40_000))).await;
        // What no node has begun is not settled by whoever asks.
        if !is_begun || (fastrand::bool() && is_open.swap(false, Ordering::Relaxed)) {
            self.make_purge();
        }
    }

    pub(super) fn make_purge(&self) {
        self.common.queues.purge(&self.queue.queue);
        self.history().purged();
    }

    /// One task after the other. Whoever is at one may end or stop: another goes on, and perhaps the first one, too.
    pub(super) async fn move_dead_letters_back(self: Arc<Self>) {
        while self.began.elapsed() < self.common.chaos.active {
            sleep(Duration::from_millis(fastrand::u64(1_000..6_000))).await;
            let task = MoveTask {
                handle: None,
                state: MoveTaskState::Running,
                source: self.dead_letters.queue.clone(),
                task: NewMoveTask { destination: None, messages_per_second_max: None },
                moved: 0,
                to_move: 0,
                failure_reason: None,
                started_at_ms: self.any_front_end().standard.clock.now_ms(),
            };
            while let Some(Ok(Step::Moved(_) | Step::MovedInPart(_) | Step::Waits)) =
                self.step(&task).await
            {
                sleep(Duration::from_millis(100)).await;
            }
        }
    }

    /// Carries out a step of a task. `None`: whoever was at it was not heard of for so long that
    /// its hold has ended.
    async fn step(&self, task: &MoveTask) -> Option<Result<Step, Fault>> {
        let (front_end, task) = (self.any_front_end(), task.clone());
        let at_it = front_end.clone();
        let step =
            tokio::spawn(
                async move { at_it.by_itself(at_it.standard.move_step(&task, MOST)).await },
            );
        tokio::select! {
            stepped = step => Some(stepped.expect("no panic")),
            () = has_ended_hold(&front_end) => None,
        }
    }
}

/// Returns when the front-end's process has not run for as long as it holds a task.
async fn has_ended_hold(front_end: &FrontEnd) {
    let mut seen = Instant::now();
    while seen.elapsed() < HELD {
        sleep(Duration::from_secs(1)).await;
        if front_end.is(Process::Runs) {
            seen = Instant::now();
        }
    }
}
