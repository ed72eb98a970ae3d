//! What is asked of Cassandra for messages, in CQL. Each statement touches one partition. All may be carried out again:
//! their timestamps come from here, so that a repetition changes nothing.

use scylla::errors::PrepareError;
use scylla::statement::Consistency as Level;
use scylla::statement::prepared::PreparedStatement;

use quelea_sqs_protocol::Consistency;

use crate::database::preparing::Preparing;

/// One statement, at each of the two consistencies that a queue may have.
pub(crate) struct AtEach {
    one: PreparedStatement,
    local_quorum: PreparedStatement,
}

impl AtEach {
    pub(crate) fn at(&self, consistency: Consistency) -> &PreparedStatement {
        match consistency {
            Consistency::One => &self.one,
            Consistency::LocalQuorum => &self.local_quorum,
        }
    }
}

/// All of them, prepared.
pub(crate) struct Statements {
    pub(crate) insert_message: AtEach,
    pub(crate) read_messages: AtEach,
    pub(crate) delete_message: AtEach,
    pub(crate) read_leases: AtEach,
    pub(crate) write_lease: AtEach,
    pub(crate) insert_entry: AtEach,
    pub(crate) read_entries: AtEach,
    pub(crate) count_entries: AtEach,
    pub(crate) delete_entry: AtEach,
    pub(crate) list_entries: AtEach,
    pub(crate) write_low_water_mark: AtEach,
    pub(crate) read_low_water_mark: AtEach,
    pub(crate) sweep: SweepStatements,
}

/// Prepares a statement that may be carried out again.
pub(crate) async fn prepare(
    preparing: &Preparing<'_>,
    cql: String,
) -> Result<AtEach, PrepareError> {
    let mut prepared = preparing.prepare(&cql).await?;
    prepared.set_is_idempotent(true);
    let (mut one, mut local_quorum) = (prepared.clone(), prepared);
    one.set_consistency(Level::One);
    local_quorum.set_consistency(Level::LocalQuorum);
    Ok(AtEach { one, local_quorum })
}

const OF_ENTRIES: &str = "generation = ? AND shard = 0 AND start = ? AND level = ?";

const WRITE_LOW_WATER_MARK: &str =
    "INSERT INTO @low_water_mark (generation, shard, visible_at) VALUES (?, 0, ?)
    USING TIMESTAMP ? AND TTL ?";

const READ_LOW_WATER_MARK: &str =
    "SELECT visible_at FROM @low_water_mark WHERE generation = ? AND shard = 0";

/// Asks a node for the time.
pub(crate) async fn prepare_read_time(preparing: &Preparing<'_>) -> Result<AtEach, PrepareError> {
    prepare(preparing, "SELECT toUnixTimestamp(now()) FROM system.local".to_owned()).await
}

impl Statements {
    pub(crate) async fn prepare(preparing: &Preparing<'_>) -> Result<Self, PrepareError> {
        let prepare = |cql: String| prepare(preparing, cql);
        let one_message = format!("{OF_ENTRIES} AND message = ?");
        let one_entry = format!("{OF_ENTRIES} AND visible_at = ? AND message = ?");
        Ok(Self {
            insert_message: prepare(
                "INSERT INTO @message (generation, shard, start, level, message, body, attributes, sender,
                    trace_header, group_id, deduplication_id, source, earlier_receives)
                 VALUES (?, 0, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?) USING TIMESTAMP ? AND TTL ?"
                    .to_owned(),
            )
            .await?,
            read_messages: prepare(format!(
                "SELECT message, body, attributes, sender, trace_header, group_id, deduplication_id, source,
                    earlier_receives, lease_written_at FROM @message WHERE {OF_ENTRIES} AND message IN ?"
            ))
            .await?,
            delete_message: prepare(format!("DELETE FROM @message USING TIMESTAMP ? WHERE {one_message}")).await?,
            read_leases: prepare(format!(
                "SELECT message, sender, lease_visible_at, lease_written_at, lease_start, lease_level
                 FROM @message WHERE {OF_ENTRIES} AND message IN ?"
            ))
            .await?,
            write_lease: prepare(format!(
                "UPDATE @message USING TIMESTAMP ? AND TTL ? SET lease_visible_at = ?, lease_written_at = ?,
                    lease_start = ?, lease_level = ? WHERE {one_message}"
            ))
            .await?,
            insert_entry: prepare(
                "INSERT INTO @entry (generation, shard, start, level, visible_at, message, body_start, body_level,
                    bytes, receive_count, first_received_at, message_group, written_at)
                 VALUES (?, 0, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?) USING TIMESTAMP ? AND TTL ?"
                    .to_owned(),
            )
            .await?,
            read_entries: prepare(format!(
                "SELECT visible_at, message, body_start, body_level, bytes, receive_count, first_received_at, written_at,
                    message_group FROM @entry WHERE {OF_ENTRIES} AND visible_at >= ? LIMIT ?"
            ))
            .await?,
            count_entries: prepare(format!(
                "SELECT visible_at, message, body_start, body_level, receive_count, written_at, message_group
                 FROM @entry WHERE {OF_ENTRIES} AND visible_at >= ? LIMIT ?"
            ))
            .await?,
            delete_entry: prepare(format!("DELETE FROM @entry USING TIMESTAMP ? WHERE {one_entry}")).await?,
            list_entries: prepare(
                "INSERT INTO @bucket (generation, shard, start, level) VALUES (?, 0, ?, ?) USING TIMESTAMP ? AND TTL ?"
                    .to_owned(),
            )
            .await?,
            write_low_water_mark: prepare(WRITE_LOW_WATER_MARK.to_owned()).await?,
            read_low_water_mark: prepare(READ_LOW_WATER_MARK.to_owned()).await?,
            sweep: SweepStatements::prepare(preparing).await?,
        })
    }
}

/// What the sweep asks for, and what it has to know: the partitions of messages.
pub(crate) struct SweepStatements {
    pub(crate) list_messages: AtEach,
    pub(crate) unlist_messages: AtEach,
    pub(crate) unlist_entries: AtEach,
    pub(crate) message_list: AtEach,
    pub(crate) entry_list: AtEach,
    pub(crate) messages: AtEach,
    pub(crate) entries: AtEach,
}

impl SweepStatements {
    async fn prepare(preparing: &Preparing<'_>) -> Result<Self, PrepareError> {
        let prepare = |cql: String| prepare(preparing, cql);
        Ok(Self {
            list_messages: prepare(
                "INSERT INTO @bucket (generation, shard, start, level) VALUES (?, 1, ?, ?) USING TIMESTAMP ? AND TTL ?"
                    .to_owned(),
            )
            .await?,
            unlist_messages: prepare(
                "DELETE FROM @bucket USING TIMESTAMP ? WHERE generation = ? AND shard = 1 AND start = ? AND level = ?"
                    .to_owned(),
            )
            .await?,
            unlist_entries: prepare(
                "DELETE FROM @bucket USING TIMESTAMP ? WHERE generation = ? AND shard = 0 AND start < ?".to_owned(),
            )
            .await?,
            message_list: prepare(
                "SELECT start, level FROM @bucket WHERE generation = ? AND shard = 1 AND (start, level) > (?, ?) LIMIT ?"
                    .to_owned(),
            )
            .await?,
            entry_list: prepare(
                "SELECT start, level FROM @bucket WHERE generation = ? AND shard = 0 AND (start, level) > (?, ?) LIMIT ?"
                    .to_owned(),
            )
            .await?,
            messages: prepare(format!(
                "SELECT message, sender, lease_visible_at, lease_written_at FROM @message
                 WHERE {OF_ENTRIES} AND message > ? LIMIT ?"
            ))
            .await?,
            entries: prepare(format!(
                "SELECT visible_at, message FROM @entry WHERE {OF_ENTRIES} AND (visible_at, message) > (?, ?) LIMIT ?"
            ))
            .await?,
        })
    }
}
