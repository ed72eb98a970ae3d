//! What to do about a queue's load: a pure function from what is known to actions with reasons
//! (EQS §III-D; DESIGN.md section 8). Same arguments, same plan.

mod view;

pub use view::{
    Action, Load, Plan, Planned, Policy, ProducerView, RelayState, RelayView, Snapshot,
};
