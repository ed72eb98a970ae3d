//! Taking a queue over: reads, and one lightweight transaction.

use std::sync::Arc;

use quelea_cassandra_fifo::limits::{SEALS_MAX, SEGMENTS_MAX};
use quelea_cassandra_fifo::{Owner, OwnerRow, listed_from, tail_of, take_over};
use quelea_sqs_protocol::Fault;

use super::actor::{Actor, settings_of};
use super::operation::FifoQueue;
use super::owned::Place;
use crate::database::transaction::Change;
use crate::shared::Shared;

impl Shared {
    /// Takes over a queue whose owner's row is free. `false`: somebody else was quicker, or the queue was purged or deleted, of which
    /// whoever calls it has not heard yet.
    pub(super) async fn take_queue_over(
        self: &Arc<Self>,
        place: &Place,
        queue: &FifoQueue,
        row: Option<&OwnerRow>,
    ) -> Result<bool, Fault> {
        let (fifo, database, generation) = (&self.fifo, &self.database, queue.generation);
        let record = self.queues.record_now(database, &queue.name).await?;
        if record.is_none_or(|record| record.generation != generation) {
            return Ok(false);
        }
        let oldest = listed_from(row);
        let listed = fifo.rows.list(database, generation, oldest, 2 * SEGMENTS_MAX).await?;
        let tail = match tail_of(row, &listed) {
            Some(key) => fifo.rows.read_tail(database, generation, key).await?,
            None => None,
        };
        // Numbers are timestamps, too, in µs: those of a queue that has none begin with the present.
        let first_number = database.clock.now_us().max(1).unsigned_abs();
        let take = take_over(row, &listed, tail, first_number, database.clock.now_ms());
        if take.sealed.len() > SEALS_MAX {
            let why = "the queue has messages of too many owners".to_owned();
            return Err(Fault::Unavailable(why));
        }
        let held_before_ms = row.map_or(0, |row| row.held_until_ms);
        let next = OwnerRow {
            epoch: take.epoch,
            holder: fastrand::u128(1..),
            address: fifo.address.get().cloned().unwrap_or_default(),
            held_until_ms: fifo.held_until_ms(database).max(held_before_ms + 1),
            sealed: take.sealed.clone(),
            sealed_to: take.sealed_to,
            oldest,
            // This one knows it now, and says so when it lets go.
            received: Vec::new(),
        };
        place.ask_as(next.holder);
        // The lease begins before it is asked for.
        let asked_at = fifo.owners_now(database);
        let is_taken = match fifo.owners.take(database, generation, row, &next).await? {
            Change::Done => true,
            Change::Refused => false,
            Change::Unknown => {
                let row = fifo.owners.read(database, generation).await?;
                row.is_some_and(|row| row.holder == next.holder)
            }
        };
        if !is_taken {
            return Ok(false);
        }
        tracing::debug!(queue = %queue.name.name, epoch = next.epoch, "took a FIFO queue over");
        let now = fifo.owners_now(database);
        let owner =
            Owner::new((queue.id, generation), take, settings_of(queue), asked_at.steady_ms, now);
        let holder = next.holder;
        place.own(holder, Actor::spawn(self, queue.clone(), next, owner));
        Ok(true)
    }
}
