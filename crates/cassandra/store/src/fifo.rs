//! FIFO queues: each has one owner among the front-ends, which has its state in memory (the crate `quelea-cassandra-fifo`)
//! and its messages in Cassandra; the others send their calls there. Start with `calls.rs`, then `owning.rs`.

mod actor;
mod by_segment;
mod calls;
mod dead_letters;
mod inbox;
mod key;
mod left_out;
mod message_rows;
mod move_out;
mod operation;
mod owned;
mod owner_table;
mod owners_clock;
mod owning;
mod part_reads;
mod peek;
mod peeked_row_wire;
mod peer_client;
mod peer_server;
mod proof;
mod send_then_delete;
mod take_over;
mod unless_refused;
mod wire;
#[cfg(test)]
mod wire_golden;

pub(crate) use calls::refused;
pub(crate) use key::ClusterKey;
pub(crate) use message_rows::MessageRows;
pub(crate) use owned::Fifo;
pub(crate) use owner_table::OwnerTable;
pub(crate) use peer_server::{PeerListener, serve_peers};
