//! Every number that the planner decides by, with its reason. They are not settings: nobody can tune
//! twenty knobs (research/eqs.md, 1.2), and the simulator shows that these serve small and large queues.

/// A share of what a relay itself can carry that the planner takes for its limit. Unlike an agreed limit it is
/// never exceeded: a relay at its capacity only gets slow.
pub(crate) const OF_CAPACITY: f64 = 0.85;
/// A share of the limit: a relay above it in each of the last [`HOT_SAMPLES`] reports is hot. Below it the
/// agreement holds, and a move only disturbs; room for what comes is kept by the starts, which look at
/// the whole queue.
pub const HOT: f64 = 1.0;
/// Reports above [`HOT`] that make a relay hot: one is noise.
pub(crate) const HOT_SAMPLES: usize = 2;
/// The load that starts and drains aim at, and the choice of who leaves a hot relay: one that just brings
/// it below [`EASED`] is followed by the next. The lower, the more relays: docs/elastic/planner.md has what
/// they cost.
pub const TARGET: f64 = 0.685;
/// No move lifts a relay above it: what is moved to is not the next hot relay.
pub(crate) const ROOM: f64 = 0.90;
/// A hot relay gives producers away until it is at or below this: no more are disturbed than it takes, and
/// it does not come straight back to [`HOT`].
pub(crate) const EASED: f64 = 0.97;
/// A relay that is hot gives away one producer at once, or several that carry so much of its limit in sum.
/// What takes more is most often one producer's burst, which is over before the moves have paid: it waits
/// for [`LASTING_MS`].
pub(crate) const QUICK_LOAD: f64 = 0.13;
/// Producers that carry no more than that each, on average, may carry [`QUICK_SMALL_LOAD`] in sum: no burst
/// of one of them made the relay hot, so it is not over soon.
pub(crate) const QUICK_SMALL: f64 = 0.03;
/// See [`QUICK_SMALL`].
pub(crate) const QUICK_SMALL_LOAD: f64 = 0.40;
/// But no more producers than that: the choice of each takes time.
pub(crate) const QUICK_MOVES_MAX: usize = 4 * MOVES_MAX;
/// A share of the limit: above it no relay is left alone, were it for a burst only.
pub(crate) const SEVERE: f64 = 2.0;
/// A relay that was hot for so long has not a burst but a load: three times what a burst lasts in the
/// simulator.
pub(crate) const LASTING_MS: u64 = 180_000;
/// For so long after relays were started for the queue's load, what is hot is not held for a burst: the
/// new ones boot for a minute, and then are filled.
pub(crate) const RISING_MS: u64 = 180_000;
/// Policy `steady`: a newcomer goes to the oldest relay below that share of its limit. So the youngest keep
/// few producers, and few move when one of them goes; and old ones stay below [`TARGET`].
pub const NEWCOMERS_BELOW: f64 = 0.60;
/// Relays are added when the queue as a whole is this much above [`TARGET`]: the dead band upwards.
pub const DEFICIT: f64 = 1.1;
/// The same must have been so for that long, unless a relay is hot already.
pub(crate) const DEFICIT_MS: u64 = 2_000;
/// A relay is removed only if the others stay this far below [`TARGET`] on average: the dead band
/// downwards. For how long, and how long after another change, the agreement says ([`crate::sla::Sla`]): a relay
/// that is started and goes within 15 minutes was not worth its start, so these are the defaults.
pub const SURPLUS: f64 = 0.05;
/// A relay above it for [`LASTING_MS`] that is not hot gives load to a relay below [`COLD`], until it is at
/// [`ROOM`]: else a relay that was added for the sum of the load would stay empty.
pub const WARM: f64 = 0.90;
/// See [`WARM`]; some half of [`TARGET`], so that the two never change places.
pub const COLD: f64 = 0.35;
/// A producer that moved stays for that long.
pub(crate) const PRODUCER_COOLDOWN_MS: u64 = 300_000;
/// Moves that one plan begins: bounds what is disturbed at once.
pub(crate) const MOVES_MAX: usize = 12;
/// Choices that one plan looks ahead to find how many relays are missing; more are found at the next.
pub(crate) const LOOK_AHEAD_MAX: usize = 256;
/// Relays that are tried as the one to remove, least loaded first.
pub(crate) const VICTIMS_MAX: usize = 8;
/// What a relay's own figures may exceed the sum of its producers' averages by, as a factor, and still
/// be held for the averages' lag. Beyond it is load that no producer accounts for.
pub(crate) const LAG_MAX: f64 = 4.0;

/// Time between two reports of a relay (`report_ms`).
pub(crate) const REPORT_MS: u64 = 1_000;
/// A relay without a report for that long is not decided on: three are missing, and half of a fourth.
pub(crate) const STALE_MS: u64 = 3 * REPORT_MS + REPORT_MS / 2;
/// Witnesses that need no silence besides: its connection closed and a client that lost it.
pub(crate) const WITNESSES: u32 = 2;
/// A silent relay without any client has no witness: it is given up after that long.
pub(crate) const SILENT_MS: u64 = 30_000;
/// After a failed start the next waits for that long, and twice as long after each further one.
pub(crate) const BACK_OFF_MS: u64 = 2_000;
/// But never longer.
pub(crate) const BACK_OFF_MAX_MS: u64 = 300_000;
/// Failed starts in a row of which the queue's users are notified.
pub(crate) const FAILURES_REPORTED: u32 = 3;
/// Actions that a plan began are in the snapshot by then, or were not carried out.
pub(crate) const EFFECT_MS: u64 = 5_000;
/// And if their end was not seen by then, the relay is decided on again.
pub(crate) const EFFECT_MAX_MS: u64 = 60_000;
/// A relay that drains is stopped by then, with whoever is still there.
pub(crate) const DRAIN_MS: u64 = 600_000;
/// The same notice is not sent again before.
pub(crate) const NOTICE_MS: u64 = 600_000;
/// Drains that are forced (budget, maximum lowered), or of a queue without producers, follow one another not
/// before.
pub(crate) const FORCED_DRAIN_MS: u64 = 10_000;
/// A relay whose latency is too high although it is not loaded gets help by one more, not more often.
pub(crate) const LATENCY_START_MS: u64 = 120_000;

/// Policy `paper`: rules look at the load that often (EQS §V-B: Scalr polls each minute).
pub(crate) const PAPER_MS: u64 = 60_000;
/// Policy `paper`: a relay below that share of its limit is underused. EQS §III-C.3 says "underused"
/// and gives no number; docs/elastic/simulator.md says what other values change.
pub(crate) const PAPER_UNDERUSED: f64 = 0.30;
