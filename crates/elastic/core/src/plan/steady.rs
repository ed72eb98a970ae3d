//! Policy `steady`: the paper's aims without the defects of its printed algorithm (research/eqs.md, 5.1).

use super::builder::PlanBuilder;

/// First what is gone, then what is too much, then what hurts, then what is missing, then what is left
/// over.
pub(crate) fn steady(builder: &mut PlanBuilder<'_>) {
    builder.heal();
    builder.obey_limits();
    builder.empty_draining();
    builder.offload();
    builder.level();
    builder.scale_out();
    builder.scale_in();
}
