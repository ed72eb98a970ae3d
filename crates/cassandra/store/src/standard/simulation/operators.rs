//! What operators do to queues: they purge them, and have dead letters moved back.

use std::sync::Arc;
use std::time::Duration;

use quelea_sqs_protocol::{Fault, MoveTask, MoveTaskState, NewMoveTask};
use tokio::time::{Instant, sleep};

use super::cluster::chance;
use super::front_end::FrontEnd;
use super::process::Process;
use super::world::World;
use crate::standard::move_step::Step;

/// After so long others go on with a task that nobody says to be at.
const HELD: Duration = Duration::from_secs(10);
/// Messages that a step moves at most.
const MOST: usize = 20;

impl World {
    pub(super) async fn purge_now_and_then(self: Arc<Self>) {
        while self.began.elapsed() < self.common.chaos.active {
            sleep(Duration::from_millis(fastrand::u64(3_000..20_000))).await;
            let (front_end, began) = (self.any_front_end(), Instant::now());
            let (world, purging) = (self.clone(), front_end.clone());
            let purge = async move {
                let purged = purging.by_itself(world.purge(&purging)).await;
                // Also where nobody waits for it any more.
                world.history().purged(began, false);
                purged
            };
            let purged = front_end.call(Duration::from_secs(20), tokio::spawn(purge)).await;
            self.history().purged(began, matches!(purged, Some(Ok(Ok(())))));
        }
    }

    /// As the store does it, by one transaction, whose answer may be lost; also where nobody waits for it any more.
    async fn purge(&self, front_end: &FrontEnd) -> Result<(), Fault> {
        let queue = &self.queue.queue;
        let asked = self.common.cluster.transact().await;
        if asked.is_ok() {
            self.common.queues.purge(queue);
            front_end.gate.pass().await;
        }
        front_end.standard.tables.forget(queue);
        front_end.standard.peers.changed(queue).await;
        if self.common.chaos.network && chance(100) {
            return Err(Fault::Unavailable("the answer is lost".to_owned()));
        }
        asked
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

    /// `None`: whoever was at it was not heard of for so long that its hold has ended.
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
