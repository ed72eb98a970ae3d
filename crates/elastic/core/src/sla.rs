//! A queue's service level agreement: what it promises, what it may cost (EQS §III-B.3, §III-C).

mod rule;
mod throughput;

use quelea_elastic_proto::limits::{MESSAGE_BYTES_MAX, RELAYS_MAX};
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

pub use self::rule::{Priorities, RepeatedRule, Rule};
pub use self::throughput::{RelayLimits, Throughput};
use crate::limits::CLIENTS_PER_QUEUE_MAX;

/// The agreement of one queue. Limits are per relay, those of `throughput_…` of the queue as a whole; 0 means none.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields, default)]
pub struct Sla {
    /// Messages in a second that a relay may carry (KPI throughput).
    #[schemars(range(max = u64::MAX))]
    pub messages_in_per_s_max: u64,
    /// Bytes in a second that a relay may carry (KPI bandwidth, producers' side).
    #[schemars(range(max = u64::MAX))]
    pub bytes_in_per_s_max: u64,
    /// Bytes out a second that a relay may carry (KPI bandwidth, listeners' side).
    #[schemars(range(max = u64::MAX))]
    pub bytes_out_per_s_max: u64,
    /// Mean time from read to write in a relay (KPI latency), microseconds.
    #[schemars(range(max = u64::MAX))]
    pub latency_us_max: u64,
    /// Producers and listeners of one relay (KPI clients).
    #[schemars(range(max = u32::MAX))]
    pub clients_max: u32,
    /// Part of its host's memory that a relay may use (EQS §IV-C), percent.
    #[schemars(range(max = 100))]
    pub memory_percent_max: u32,
    /// Part of its host's network that may be used (EQS §IV-C), percent of the capacity that the relay was started with.
    #[schemars(range(max = 100))]
    pub network_percent_max: u32,
    /// Messages in a second, over all listeners, that the queue as a whole can always deliver (EQS §III-B.3) with what
    /// the next three say.
    #[schemars(range(max = u64::MAX))]
    pub throughput_per_s_min: u64,
    /// From so many producers.
    #[schemars(range(max = CLIENTS_PER_QUEUE_MAX))]
    pub throughput_producers: u32,
    /// To so many listeners.
    #[schemars(range(max = CLIENTS_PER_QUEUE_MAX))]
    pub throughput_listeners: u32,
    /// Of so many bytes each.
    #[schemars(range(max = MESSAGE_BYTES_MAX))]
    pub throughput_payload_bytes: u64,
    /// Which of several broken limits is handled first.
    #[schemars(with = "Vec<Rule>", extend("uniqueItems" = true))]
    pub priorities: Priorities,
    /// Fewest relays of the queue; at least 1.
    #[schemars(range(min = 1, max = RELAYS_MAX))]
    pub relays_min: u32,
    /// Most relays of the queue.
    #[schemars(range(min = 1, max = RELAYS_MAX))]
    pub relays_max: u32,
    /// Money an hour that the queue's relays may cost, in millionths; 0: no budget.
    #[schemars(range(max = u64::MAX))]
    pub budget_per_hour_micros: u64,
    /// Relays that stay when the budget is spent: the minimal service level (EQS §III-C.3).
    #[schemars(range(min = 1, max = RELAYS_MAX))]
    pub relays_without_budget: u32,
    /// A relay is removed when the load has fitted easily on one fewer for so long (policy `steady`), milliseconds.
    #[schemars(range(max = SCALE_IN_MS_MAX))]
    pub scale_in_after_ms: u64,
    /// But not within this time after relays were added for load.
    #[schemars(range(max = SCALE_IN_MS_MAX))]
    pub scale_in_after_out_ms: u64,
    /// Nor within this time after another one was removed.
    #[schemars(range(max = SCALE_IN_MS_MAX))]
    pub scale_in_apart_ms: u64,
    /// Instead of the two first: for so long the queue has had no producer at all.
    #[schemars(range(max = SCALE_IN_MS_MAX))]
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
            memory_percent_max: 0,
            network_percent_max: 0,
            throughput_per_s_min: 0,
            throughput_producers: 0,
            throughput_listeners: 0,
            throughput_payload_bytes: 0,
            priorities: Priorities::default(),
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
    /// Checks that the agreement can be kept at all.
    ///
    /// # Errors
    /// The first field that contradicts its limits or another field.
    pub fn validate(&self) -> Result<(), SlaError> {
        let (fewest, most) = (self.relays_min, self.relays_max);
        let (minimal, clients) = (self.relays_without_budget, u64::from(self.clients_max));
        let why = "a queue needs a relay";
        require(fewest >= 1, "relays_min", fewest, "the least", 1_u32, why)?;
        let (limit, why) = (RELAYS_MAX as u64, "a listener can be assigned no more");
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
        self.validate_rates()?;
        self.validate_percents()?;
        self.validate_throughput()
    }

    /// Returns the throughput that the queue as a whole promises, if it promises one.
    #[must_use]
    pub fn throughput(&self) -> Option<Throughput> {
        (self.throughput_per_s_min > 0).then_some(Throughput {
            deliveries_per_s: self.throughput_per_s_min,
            producers: self.throughput_producers,
            listeners: self.throughput_listeners,
            payload_bytes: self.throughput_payload_bytes,
        })
    }

    /// Returns the fewest relays that can keep the agreement, as far as it alone says what one may
    /// carry; at most `relays_max`.
    #[must_use]
    pub fn relays_fewest(&self) -> u32 {
        let relays =
            self.throughput().and_then(|throughput| throughput.relays(&self.limits(), 1.0));
        relays.unwrap_or(1).min(self.relays_max).max(self.relays_min)
    }

    /// Returns what a relay may carry by the agreement.
    fn limits(&self) -> RelayLimits {
        let or_none = |limit: u64| if limit == 0 { f64::INFINITY } else { limit as f64 };
        RelayLimits {
            messages_in: or_none(self.messages_in_per_s_max),
            bytes_in: or_none(self.bytes_in_per_s_max),
            messages_out: f64::INFINITY,
            bytes_out: or_none(self.bytes_out_per_s_max),
            clients: or_none(self.clients_max.into()),
        }
    }

    /// Returns how many relays the budget pays for, at a provider's price, when so much of the
    /// hour's is spent: then the minimal service level. `None` without a budget or a price.
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

    /// Checks the rates: a relay that may take messages and no bytes, or the other way round, may
    /// take nothing.
    fn validate_rates(&self) -> Result<(), SlaError> {
        let (bytes, messages) = (self.bytes_in_per_s_max, self.messages_in_per_s_max);
        let (bound, why) = ("messages_in_per_s_max", "messages of less than a byte do not exist");
        require(bytes == 0 || bytes >= messages, "bytes_in_per_s_max", bytes, bound, messages, why)
    }

    fn validate_percents(&self) -> Result<(), SlaError> {
        let percents = [
            ("memory_percent_max", self.memory_percent_max),
            ("network_percent_max", self.network_percent_max),
        ];
        let why = "there is no more than all of it";
        percents.into_iter().try_for_each(|(field, percent)| {
            require(percent <= 100, field, percent, "the most", 100_u32, why)
        })
    }

    /// Checks that a promise has all its parts, and the relays that there may be can keep it.
    fn validate_throughput(&self) -> Result<(), SlaError> {
        let Some(throughput) = self.throughput() else { return Ok(()) };
        let (producers, listeners) = (throughput.producers, throughput.listeners);
        let why = "a throughput is promised for producers, listeners and a payload";
        for (field, value) in [
            ("throughput_producers", u64::from(producers)),
            ("throughput_listeners", u64::from(listeners)),
            ("throughput_payload_bytes", throughput.payload_bytes),
        ] {
            require(value >= 1, field, value, "the least", 1_u32, why)?;
        }
        let (most, why) = (CLIENTS_PER_QUEUE_MAX as u64, "a queue has no more clients");
        require(
            u64::from(producers) <= most,
            "throughput_producers",
            producers,
            "the most",
            most,
            why,
        )?;
        let most = most.saturating_sub(producers.into());
        let bound = "the most beside throughput_producers";
        require(u64::from(listeners) <= most, "throughput_listeners", listeners, bound, most, why)?;
        let (field, value, most) =
            ("throughput_payload_bytes", throughput.payload_bytes, MESSAGE_BYTES_MAX as u64);
        require(value <= most, field, value, "the most", most, "a message has no more bytes")?;
        let each = throughput.producers_of_a_relay(&self.limits(), 1.0);
        let why = if each >= 1.0 {
            "a queue cannot promise more than its relays may carry"
        } else {
            "the part of one of throughput_producers is more than a relay may carry"
        };
        let carried = each * f64::from(self.relays_max);
        let limit = (carried * throughput.of_one_producer()) as u64;
        let bound = "what relays_max relays carry within the limits of each";
        let holds = carried >= f64::from(producers);
        require(holds, "throughput_per_s_min", self.throughput_per_s_min, bound, limit, why)
    }

    /// Checks that the budget pays for what the agreement promises always to run, at a provider's
    /// price.
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
                self.relays_fewest(),
                "the cost of throughput_per_s_min",
                "the relays that carry it always run",
            ),
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
