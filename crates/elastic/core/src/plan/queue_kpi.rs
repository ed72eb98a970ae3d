//! What a queue carries against what it promises: the `kpi_queue` of EQS §III-D, from all its relays.

use std::fmt::{self, Display, Formatter};

use super::kpi::Limits;
use super::view::Load;
use crate::sla::{RelayLimits, Sla, Throughput};

/// A queue's throughput now, and what its relays can carry, beside what its agreement promises.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct QueueKpi {
    /// The promise.
    pub agreed: Throughput,
    /// Deliveries a second now.
    pub deliveries_per_s: f64,
    /// What the relays that serve can deliver of such messages to so many listeners, if producers are shared out well;
    /// infinite where nothing limits them.
    pub deliveries_per_s_max: f64,
    /// The relays can carry the promise.
    pub kept: bool,
}

impl QueueKpi {
    /// Returns the KPI of a queue. `capacities`: of the relays that serve, as far as they say.
    /// `load`: of all together. `None` if the agreement promises no throughput.
    #[must_use]
    pub fn of(sla: &Sla, capacities: impl Iterator<Item = Load>, load: &Load) -> Option<Self> {
        let limits = capacities.map(|capacity| Limits::of(sla, &capacity).of_relay());
        Some(Self::of_limits(sla.throughput()?, limits, load.messages_out))
    }

    pub(crate) fn of_limits(
        agreed: Throughput,
        relays: impl Iterator<Item = RelayLimits>,
        deliveries_per_s: f64,
    ) -> Self {
        let producers: f64 = relays.map(|limits| agreed.producers_of_a_relay(&limits, 1.0)).sum();
        Self {
            agreed,
            deliveries_per_s,
            deliveries_per_s_max: producers * agreed.of_one_producer(),
            kept: producers >= f64::from(agreed.producers),
        }
    }

    /// Returns the part of what the relays can deliver that they do deliver.
    #[must_use]
    pub fn load(&self) -> f64 {
        if self.deliveries_per_s > 0.0 {
            self.deliveries_per_s / self.deliveries_per_s_max
        } else {
            0.0
        }
    }
}

impl Display for QueueKpi {
    fn fmt(&self, f: &mut Formatter<'_>) -> fmt::Result {
        write!(f, "kpi_queue: {:.0} deliveries/s of ", self.deliveries_per_s)?;
        if self.deliveries_per_s_max.is_finite() {
            write!(f, "{:.0} that the relays can carry", self.deliveries_per_s_max)?;
        } else {
            f.write_str("as many as come: nothing limits the relays")?;
        }
        let (promise, is_kept) =
            (self.agreed.deliveries_per_s, if self.kept { "kept" } else { "not kept" });
        write!(f, "; throughput_per_s_min {promise} is {is_kept}")
    }
}
