//! What a queue is put through.

use quelea_elastic_core::plan::Policy;
use quelea_elastic_core::sla::Sla;

/// A relay's limit by the agreement of every simulated queue, bytes a second from its producers: the limit
/// KPI. All loads of the fluid are shares of it.
pub(super) const LIMIT_BYTES_PER_S: f64 = 10e6;
/// Bytes of a message: the paper's (EQS §V).
pub(super) const MESSAGE_BYTES: f64 = 5e3;
/// Processor time of a relay for one delivery, seconds: measured, research/eqs.md, 2.2.
pub(super) const CPU_S_PER_DELIVERY: f64 = 2.3e-6;

/// Relays that a queue of a fleet may have: more than the largest one needs.
const FLEET_RELAYS_MAX: u32 = 1_024;

/// One queue's life. The default is the comparison of research/eqs.md, 5.2, with 100 producers.
#[derive(Clone, Debug, PartialEq)]
pub struct Scenario {
    /// The rules.
    pub policy: Policy,
    /// Seconds that are played.
    pub seconds: u32,
    /// Producers, on average: they come and go.
    pub producers: u32,
    /// A producer's mean rate as a share of a relay's limit. Single rates are heavy-tailed around it.
    pub mean_rate: f64,
    /// No producer's rate is larger than this share: one that fills a relay cannot be helped by any plan.
    pub rate_max: f64,
    /// Listeners. Every relay has all of them.
    pub listeners: u32,
    /// How long a producer stays, on average, seconds.
    pub stay_s: f64,
    /// Time from one burst of a producer to the next, on average, seconds; 0: none.
    pub burst_every_s: f64,
    /// How long a burst lasts, on average, seconds.
    pub burst_s: f64,
    /// Time from one burst of the whole queue to the next, on average, seconds; 0: none.
    pub flash_every_s: f64,
    /// By how much the load swings over the day, as a share of its mean.
    pub day_swing: f64,
    /// A day, seconds. Short ones press a day's rise and fall into a short run.
    pub day_s: f64,
    /// A relay's time from its start to its registration, seconds, least and most.
    pub boot_s: (f64, f64),
    /// Time that a relay runs before it dies, on average, seconds; 0: for ever.
    pub relay_life_s: f64,
    /// Share of the starts from which no relay comes.
    pub boot_failures: f64,
    /// What a relay costs an hour, millionths.
    pub relay_cost_per_hour_micros: u64,
    /// Parts of its host's memory and network that a relay uses when it carries its limit; they grow with what it
    /// carries.
    pub memory_at_limit: f64,
    /// See [`Self::memory_at_limit`].
    pub network_at_limit: f64,
    /// The agreement.
    pub sla: Sla,
    /// The limit in the agreement under policy `paper`, as a share of what a relay carries. Its rule acts
    /// when the limit is reached and keeps no room below it; `steady` keeps room by itself, and starts relays
    /// when all together are at 0.75 of the limit.
    pub paper_limit: f64,
    /// The planner is not asked in seconds in which it would find nothing to do: see
    /// docs/elastic/simulator.md. For large runs; without it, it is asked each second.
    pub gated: bool,
}

impl Default for Scenario {
    fn default() -> Self {
        Self {
            policy: Policy::Steady,
            seconds: 4 * 3_600,
            producers: 100,
            mean_rate: 0.05,
            rate_max: 0.45,
            listeners: 20,
            stay_s: 4.0 * 3_600.0,
            burst_every_s: 1_800.0,
            burst_s: 60.0,
            flash_every_s: 7_200.0,
            day_swing: 0.5,
            day_s: 4.0 * 3_600.0,
            boot_s: (20.0, 60.0),
            relay_life_s: 7.0 * 86_400.0,
            boot_failures: 0.01,
            relay_cost_per_hour_micros: 50_000,
            memory_at_limit: 0.0,
            network_at_limit: 0.0,
            sla: Sla {
                bytes_in_per_s_max: LIMIT_BYTES_PER_S as u64,
                relays_max: 256,
                ..Sla::default()
            },
            paper_limit: 0.8,
            gated: false,
        }
    }
}

impl Scenario {
    /// Returns the life of each queue of a large fleet: days of 24 hours, and the planner asked
    /// only when it may find something to do.
    #[must_use]
    pub fn fleet() -> Self {
        let usual = Self::default();
        let sla = Sla { relays_max: FLEET_RELAYS_MAX, ..usual.sla };
        Self { day_s: 86_400.0, gated: true, sla, ..usual }
    }

    /// Returns the same life under other rules.
    #[must_use]
    pub fn under(&self, policy: Policy) -> Self {
        let mut scenario = Self { policy, ..self.clone() };
        let share = if policy == Policy::Paper { self.paper_limit } else { 1.0 };
        scenario.sla.bytes_in_per_s_max = (LIMIT_BYTES_PER_S * share) as u64;
        scenario
    }
}
