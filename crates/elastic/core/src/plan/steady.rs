//! Policy `steady`: the paper's aims without the defects of its printed algorithm (research/eqs.md, 5.1).

use super::builder::PlanBuilder;

/// First what is gone, then what is too much, then what hurts, then what is missing, then what is left
/// over.
pub(crate) fn steady(builder: &mut PlanBuilder<'_>) {
    builder.heal();
    builder.enforce_limits();
    builder.empty_draining();
    builder.offload();
    builder.rebalance();
    builder.scale_out();
    builder.scale_in();
}
