//! A step of a move task: some messages of a queue's head go to other queues.

use std::collections::BTreeMap;
use std::sync::Arc;

use quelea_sqs_protocol::{ErrorKind, Fault, MoveTask, QueueRef};

use crate::limits::GRACE_MS;
use crate::standard::Standard;
use crate::standard::dead_letter::{Departed, Destination, Leaving};

/// How a step ended.
#[derive(Debug, PartialEq, Eq)]
pub(crate) enum Step {
    Moved(usize),
    /// So many were moved. Others are in both queues, as their deletion failed: each further step that finds them adds copies.
    MovedInPart(usize),
    /// What is there cannot be moved yet.
    Waits,
    /// Nothing is left to be moved.
    Done,
}

impl Standard {
    /// Moves so many messages of the task's source, or fewer.
    pub(crate) async fn move_step(
        self: &Arc<Self>,
        task: &MoveTask,
        most: usize,
    ) -> Result<Step, Fault> {
        let source = self.destination(&task.source).await?.ok_or_else(deleted)?;
        let until_us = last_of_task_us(task.started_at_ms);
        // Those who poll the queue say then what they take of it.
        self.peers.polls(source.queue.generation);
        // Until all is gone: a receive here would find the same.
        let mut head = source.queue.head.lock().await;
        let taken = self.take_leaving(&source, &mut head, most, until_us).await?;
        let Some((leaving, dropped)) = taken else { return Ok(Step::Done) };
        if leaving.is_empty() {
            return Ok(if dropped > 0 { Step::Moved(0) } else { Step::Waits });
        }
        let (count, first_us) =
            (leaving.len(), leaving.iter().map(|one| one.entry.visible_at_us).min());
        let departed = self.depart(task, &source, leaving).await;
        if !departed.as_ref().is_ok_and(|departed| departed.gone == count)
            && let Some(at_us) = first_us
        {
            // What stays is found by the next step.
            head.return_to(at_us);
        }
        step_of(departed?, count)
    }

    /// Moves messages to where the task has them go.
    async fn depart(
        self: &Arc<Self>,
        task: &MoveTask,
        source: &Destination,
        leaving: Vec<Leaving>,
    ) -> Result<Departed, Fault> {
        let mut by_destination: BTreeMap<QueueRef, Vec<Leaving>> = BTreeMap::new();
        for one in leaving {
            let wanted =
                task.task.destination.clone().or_else(|| one.message.content.source.clone());
            let to = wanted.ok_or_else(no_source)?;
            by_destination.entry(to).or_default().push(one);
        }
        let mut departed = Departed::default();
        for (name, leaving) in by_destination {
            let Some(to) = self.destination(&name).await? else {
                // SQS gives the code, and clients compare it.
                return Err(Fault::NotFound(ErrorKind::QueueDoesNotExist.code().to_owned()));
            };
            let Destination { facts, queue } = source;
            departed.add(self.move_messages(facts, queue, leaving, &to, None).await?);
        }
        Ok(departed)
    }
}

/// Returns the fault of a task whose source is not there any more.
pub(crate) fn deleted() -> Fault {
    Fault::NotFound("The queue was deleted.".to_owned())
}

/// Returns why a message that is to go back cannot.
pub(crate) fn no_source() -> Fault {
    Fault::NotFound("A message does not come from another queue.".to_owned())
}

/// Returns the last time at which a message may be visible that a task moves: what comes back to
/// the queue later stays, so that a task ends though its messages return.
fn last_of_task_us(started_at_ms: u64) -> i64 {
    (started_at_ms.saturating_add(GRACE_MS) as i64).saturating_mul(1_000)
}

/// Returns what a step came to. One that moved nothing of the so many that it found is not repeated
/// at once: each time may leave duplicates. Where the destination refuses each of them for good,
/// the task fails.
fn step_of(departed: Departed, found: usize) -> Result<Step, Fault> {
    match departed {
        Departed { gone: 0, arrived: 0, refused, why: Some(fault) } if refused == found => {
            Err(fault)
        }
        Departed { gone: 0, .. } => {
            Err(Fault::Unavailable("none of the messages could be moved".to_owned()))
        }
        Departed { gone, arrived, .. } if gone < arrived => Ok(Step::MovedInPart(gone)),
        Departed { gone, .. } => Ok(Step::Moved(gone)),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_step_that_moved_nothing_interrupts_its_task() {
        let step = |gone, arrived| step_of(Departed { gone, arrived, ..Departed::default() }, 4);
        assert!(matches!(step(0, 0), Err(Fault::Unavailable(_))));
        assert!(matches!(step(0, 2), Err(Fault::Unavailable(_))));
        assert_eq!(step(3, 3), Ok(Step::Moved(3)));
        assert_eq!(step(3, 4), Ok(Step::MovedInPart(3)));
    }

    #[test]
    fn a_task_of_which_all_is_refused_fails() {
        let why = Fault::Invalid("too large".to_owned());
        let step = |gone, arrived, refused| {
            step_of(Departed { gone, arrived, refused, why: Some(why.clone()) }, 4)
        };
        assert_eq!(step(0, 0, 4), Err(why.clone()));
        assert_eq!(step(3, 3, 1), Ok(Step::Moved(3)), "the others go first");
        for (arrived, refused) in [(0, 3), (2, 2)] {
            let tried_again = step(0, arrived, refused);
            assert!(matches!(tried_again, Err(Fault::Unavailable(_))), "{tried_again:?}");
        }
    }

    #[test]
    fn a_task_leaves_what_comes_after_its_start_and_the_grace() {
        assert_eq!(last_of_task_us(5_000), (5_000 + GRACE_MS as i64) * 1_000);
    }
}
