//! A queue's service level agreement: what it promises, what it may cost (EQS §III-B.3, §III-C).

use quelea_elastic_proto::limits::RELAYS_MAX;
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
    /// A relay is removed when the load has fitted easily on one fewer for so long (policy `steady`), milliseconds.
    pub scale_in_after_ms: u64,
    /// But not within this time after relays were added for load.
    pub scale_in_after_out_ms: u64,
    /// Nor within this time after another one was removed.
    pub scale_in_apart_ms: u64,
    /// Instead of the two first: for so long the queue has had no producer at all.
    pub scale_in_idle_ms: u64,
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
            scale_in_after_ms: 720_000,
            scale_in_after_out_ms: 900_000,
            scale_in_apart_ms: 120_000,
            scale_in_idle_ms: 120_000,
        }
    }
}

/// The longest wait before a relay is removed: a day.
const SCALE_IN_MS_MAX: u64 = 86_400_000;

/// Fewest clients of a relay that carries anything: a producer and a listener.
const CLIENTS_LEAST: u64 = 2;

/// A field of an agreement that cannot be kept.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("{field} is {value}, {bound} is {limit}: {why}")]
pub struct SlaError {
    /// The field, as it is written in the definition.
    pub field: &'static str,
    /// What it says.
    pub value: u64,
    /// Which bound it breaks: `the least`, `the most`, or another field with which it does not go.
    pub bound: &'static str,
    /// That bound.
    pub limit: u64,
    /// Why there is such a bound.
    pub why: &'static str,
}

impl Sla {
    /// Whether the agreement can be kept at all.
    ///
    /// # Errors
    /// The first field that contradicts its limits or another field.
    pub fn validate(&self) -> Result<(), SlaError> {
        let (fewest, most) = (self.relays_min, self.relays_max);
        let (minimal, clients) = (self.relays_without_budget, u64::from(self.clients_max));
        let why = "a queue needs a relay";
        require(fewest >= 1, "relays_min", fewest, "the least", 1_u32, why)?;
        let (limit, why) = (RELAYS_MAX as u64, "a listener can be told of no more");
        require(u64::from(most) <= limit, "relays_max", most, "the most", limit, why)?;
        let why = "the fewest cannot be more than the most";
        require(fewest <= most, "relays_min", fewest, "relays_max", most, why)?;
        let (field, why) = ("relays_without_budget", "the minimal service level is some service");
        require(minimal >= 1, field, minimal, "the least", 1_u32, why)?;
        let why = "a spent budget cannot pay for more than the most";
        require(minimal <= most, field, minimal, "relays_max", most, why)?;
        let (holds, limit) = (clients == 0 || clients >= CLIENTS_LEAST, CLIENTS_LEAST);
        let why = "a relay carries nothing without a producer and a listener";
        require(holds, "clients_max", clients, "the least", limit, why)?;
        self.validate_waits()?;
        self.validate_rates()
    }

    /// Relays that the budget pays for, at a provider's price, when so much of the hour's is spent: then the
    /// minimal service level. `None` without a budget or a price.
    #[must_use]
    pub fn affordable(&self, relay_cost_per_hour_micros: u64, spent_micros: u64) -> Option<u32> {
        let budget = self.budget_per_hour_micros;
        if budget == 0 || relay_cost_per_hour_micros == 0 {
            return None;
        }
        if spent_micros > budget {
            return Some(self.relays_without_budget);
        }
        let paid = u32::try_from(budget / relay_cost_per_hour_micros).unwrap_or(u32::MAX);
        Some(paid.max(self.relays_without_budget))
    }

    fn validate_waits(&self) -> Result<(), SlaError> {
        let waits = [
            ("scale_in_after_ms", self.scale_in_after_ms),
            ("scale_in_after_out_ms", self.scale_in_after_out_ms),
            ("scale_in_apart_ms", self.scale_in_apart_ms),
            ("scale_in_idle_ms", self.scale_in_idle_ms),
        ];
        let why = "a relay that is not needed goes within a day";
        waits.into_iter().try_for_each(|(field, wait)| {
            require(wait <= SCALE_IN_MS_MAX, field, wait, "the most", SCALE_IN_MS_MAX, why)
        })
    }

    /// A relay that may take messages and no bytes, or the other way round, may take nothing.
    fn validate_rates(&self) -> Result<(), SlaError> {
        let (bytes, messages) = (self.bytes_in_per_s_max, self.messages_in_per_s_max);
        let (bound, why) = ("messages_in_per_s_max", "messages of less than a byte do not exist");
        require(bytes == 0 || bytes >= messages, "bytes_in_per_s_max", bytes, bound, messages, why)
    }

    /// Whether the budget pays for what the agreement promises always to run, at a provider's price.
    ///
    /// # Errors
    /// `budget_per_hour_micros` with what `relays_min` relays, or the minimal service level, cost.
    pub fn validate_cost(&self, relay_cost_per_hour_micros: u64) -> Result<(), SlaError> {
        let budget = self.budget_per_hour_micros;
        if budget == 0 {
            return Ok(());
        }
        let promises = [
            (self.relays_min, "the cost of relays_min", "relays_min relays always run"),
            (
                self.relays_without_budget,
                "the cost of relays_without_budget",
                "that many run even without budget",
            ),
        ];
        for (relays, bound, why) in promises {
            let limit = u64::from(relays).saturating_mul(relay_cost_per_hour_micros);
            require(budget >= limit, "budget_per_hour_micros", budget, bound, limit, why)?;
        }
        Ok(())
    }
}

fn require(
    holds: bool,
    field: &'static str,
    value: impl Into<u64>,
    bound: &'static str,
    limit: impl Into<u64>,
    why: &'static str,
) -> Result<(), SlaError> {
    let error = || SlaError { field, value: value.into(), bound, limit: limit.into(), why };
    if holds { Ok(()) } else { Err(error()) }
}
