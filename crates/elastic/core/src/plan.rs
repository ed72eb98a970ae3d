//! What to do about a queue's load: a pure function from what is known to actions with reasons
//! (EQS §III-D; DESIGN.md section 8). Same arguments, same plan.
//!
//! Begin with [`plan`]; [`steady`] says in which order things are decided, [`tuning`] has every number
//! with its reason.

mod best_fit;
mod builder;
mod health;
mod history;
mod kpi;
mod offload;
mod paper;
mod projection;
mod queue_kpi;
mod scale_in;
mod scale_out;
mod steady;
mod tuning;
mod view;

use quelea_elastic_proto::Time;

pub use self::best_fit::has_room_for_newcomers;
use self::builder::PlanBuilder;
pub use self::history::History;
pub use self::queue_kpi::QueueKpi;
pub use self::tuning::{COLD, DEFICIT, HOT, NEWCOMERS_BELOW, SURPLUS, TARGET, WARM};
pub use self::view::{
    Action, Load, Plan, Planned, Policy, ProducerView, RelayState, RelayView, Snapshot,
};
use crate::sla::Sla;

/// Decides what to do about a queue. Returns the history for the next call with it, which is to be kept
/// only if the plan is carried out: for a dry run there is [`explain`].
///
/// A caller passes what is: the snapshot must show the effect of the last plan (relays that start, moves
/// that are under way) under a higher [`Snapshot::generation`], or the plan waits for it. A relay that is
/// [`RelayState::Dead`] stays in the snapshot until an action says what becomes of it.
#[must_use]
pub fn plan(
    snapshot: &Snapshot,
    sla: &Sla,
    policy: Policy,
    history: &History,
    now: Time,
) -> (Plan, History) {
    let builder = decide(snapshot, sla, policy, history, now);
    (builder.plan, builder.history)
}

/// Plans the same for a dry run, which changes no history: its remarks end with the whole queue in
/// one sentence.
#[must_use]
pub fn explain(
    snapshot: &Snapshot,
    sla: &Sla,
    policy: Policy,
    history: &History,
    now: Time,
) -> Plan {
    let mut builder = decide(snapshot, sla, policy, history, now);
    builder.summarize();
    builder.plan
}

fn decide<'a>(
    snapshot: &'a Snapshot,
    sla: &'a Sla,
    policy: Policy,
    history: &History,
    now: Time,
) -> PlanBuilder<'a> {
    let mut builder = PlanBuilder::new(snapshot, sla, history.clone(), now);
    match policy {
        Policy::Steady => steady::steady(&mut builder),
        Policy::Paper => paper::paper(&mut builder),
    }
    builder
}
