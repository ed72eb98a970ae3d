//! A queue's service level agreement: what it promises, what it may cost (EQS §III-B.3, §III-C).

use serde::{Deserialize, Serialize};

/// The agreement of one queue. All limits are per relay unless they say otherwise; 0 means none.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields, default)]
pub struct Sla {
    /// Messages in a second that a relay may carry (KPI throughput).
    pub messages_in_per_s_max: u64,
    /// Bytes in a second that a relay may carry (KPI bandwidth, producers' side).
    pub bytes_in_per_s_max: u64,
    /// Bytes out a second that a relay may carry (KPI bandwidth, listeners' side).
    pub bytes_out_per_s_max: u64,
    /// Mean time from read to write in a relay (KPI latency), microseconds.
    pub latency_us_max: u64,
    /// Producers and listeners of one relay (KPI clients).
    pub clients_max: u32,
    /// Fewest relays of the queue; at least 1.
    pub relays_min: u32,
    /// Most relays of the queue.
    pub relays_max: u32,
    /// Money an hour that the queue's relays may cost, in millionths; 0: no budget.
    pub budget_per_hour_micros: u64,
    /// Relays that stay when the budget is spent: the minimal service level (EQS §III-C.3).
    pub relays_without_budget: u32,
}

impl Default for Sla {
    fn default() -> Self {
        Self {
            messages_in_per_s_max: 0,
            bytes_in_per_s_max: 0,
            bytes_out_per_s_max: 0,
            latency_us_max: 0,
            clients_max: 0,
            relays_min: 1,
            relays_max: 16,
            budget_per_hour_micros: 0,
            relays_without_budget: 1,
        }
    }
}
