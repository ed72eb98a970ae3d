//! What all calls of a front-end share.

use std::sync::atomic::AtomicBool;
use std::sync::{Arc, Mutex};

use quelea_sqs_protocol::Fault;
use tokio::runtime::Handle;
use tokio::time::Instant;

use crate::database::Database;
use crate::database::identity_table::IdentityTable;
use crate::database::move_table::MoveTable;
use crate::database::queue_table::QueueTable;
use crate::database::take_over_table::TakeOverTable;
use crate::fifo::Fifo;
use crate::passed::PassedQueues;
use crate::peers::front_end_table::FrontEndTable;
use crate::peers::heartbeat_timestamps::HeartbeatTimestamps;
use crate::standard::Standard;

/// How many nodes are asked for the time at once: each may be any of them.
const COMPARISONS: usize = 3;

/// How many are where the machine's clock has stepped, until all have said anew what time it is.
const COMPARISONS_MAX: usize = 24;

/// A step of the clock, in µs, from which on what was written by it may be where nobody looks.
const STEP_US_MIN: i64 = 60_000_000;

/// What all calls share.
pub(crate) struct Shared {
    pub(crate) database: Arc<Database>,
    pub(crate) queues: Arc<QueueTable>,
    pub(crate) standard: Arc<Standard>,
    pub(crate) move_tasks: MoveTable,
    pub(crate) identity: IdentityTable,
    pub(crate) take_over: TakeOverTable,
    pub(crate) fifo: Fifo,
    pub(crate) runtime: Handle,
    pub(crate) cooldown_ms: u64,
    pub(crate) passed: PassedQueues,
    pub(crate) front_ends: FrontEndTable,
    pub(crate) heartbeat_timestamps: HeartbeatTimestamps,
    /// When the last heartbeat began that Cassandra has answered.
    pub(crate) beaten_at: Mutex<Option<Instant>>,
    /// Whether the last heartbeat was answered.
    pub(crate) is_answered: AtomicBool,
}

impl Shared {
    /// Compares the clock with Cassandra's.
    ///
    /// # Errors
    /// Why not, if no node has said what time it is.
    pub(crate) async fn compare_clocks(&self) -> Result<(), Fault> {
        let clock = &self.database.clock;
        let before_us = clock.correction_us();
        let (mut compared, mut attempt) = (Ok(()), 0);
        // Which node answers is the driver's choice.
        while attempt < COMPARISONS || (attempt < COMPARISONS_MAX && clock.has_stale_comparisons())
        {
            match self.database.compare_clocks().await {
                Ok(()) => compared = Ok(()),
                Err(fault) => {
                    tracing::warn!(%fault, "the clock could not be compared with Cassandra's");
                    if attempt == 0 {
                        compared = Err(fault);
                    }
                    // Those that are left are asked at the next comparison.
                    if attempt >= COMPARISONS {
                        break;
                    }
                }
            }
            attempt += 1;
        }
        if attempt == COMPARISONS_MAX {
            clock.forget_stale_comparisons();
        }
        let stepped_us = clock.correction_us().saturating_sub(before_us);
        if stepped_us.abs() > STEP_US_MIN {
            tracing::warn!(stepped_us, "this machine's clock has stepped, or stood still");
            self.standard.suspect_listings();
        }
        if let Err(fault) = self.standard.list_bodies_again().await {
            tracing::warn!(%fault, "the sweep may not know of what was sent by a wrong clock");
        }
        compared
    }
}
