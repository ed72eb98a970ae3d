//! `[bdqs]`.

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use super::address::OptionalAddress;
use super::byte_size::{ByteSize, GIB, MIB};

#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(default, deny_unknown_fields)]
pub(crate) struct Bdqs {
    /// Address (UDP) at which a front-end of [replicated queues](../cassandra/peers.md) hears the others: what they take, and
    /// that there is something new in a queue that is polled here. Port 0 takes a free one. Empty: it neither hears
    /// nor tells them anything.
    #[schemars(with = "OptionalAddress")]
    pub(crate) listen: String,
    /// Where the others reach that address, if not there, as behind a translation of addresses; port 0 is the port of
    /// `bdqs.listen`. Empty: where it listens; if that is no address in particular, the one by which this machine reaches
    /// Cassandra.
    #[schemars(with = "OptionalAddress")]
    pub(crate) advertise: String,
    /// Whether front-ends take messages as in the paper BDQS: each at random among the `OrderHint` oldest, without regard to what
    /// the others take; `auto` is 1 then. For measurements.
    pub(crate) classic: bool,
    /// Duplicates in a million messages that `OrderHint=auto` aims at, at most.
    #[schemars(range(min = 1, max = 1_000_000))]
    pub(crate) duplicates_ppm_max: u32,
    /// Rows a second that a front-end reads to find [messages that nothing leads to](../cassandra/running.md#the-sweep). 0: it does
    /// not look for them.
    #[schemars(range(max = 1_000_000))]
    pub(crate) sweep_rows_per_s: u32,
    /// What all [FIFO queues](../cassandra/fifo.md#limits) that this front-end owns may take of its memory, about. Beyond it sends to them
    /// are refused with 503, and it takes no further ones over. Less than half of what the process may have.
    #[schemars(with = "ByteSize", range(min = MIB, max = 1_024 * GIB))]
    pub(crate) fifo_bytes_max: usize,
}

impl Default for Bdqs {
    fn default() -> Self {
        Self {
            listen: "0.0.0.0:0".to_owned(),
            advertise: String::new(),
            classic: false,
            duplicates_ppm_max: 5_000,
            sweep_rows_per_s: 200,
            fifo_bytes_max: 1 << 30,
        }
    }
}
