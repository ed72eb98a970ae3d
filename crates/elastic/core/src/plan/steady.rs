//! Policy `steady`: the paper's aims without the defects of its printed algorithm (research/eqs.md, 5.1).

use super::draft::Draft;

/// First what is gone, then what is too much, then what hurts, then what is missing, then what is left
/// over.
pub(crate) fn steady(draft: &mut Draft<'_>) {
    draft.heal();
    draft.obey_limits();
    draft.empty_draining();
    draft.relieve();
    draft.level();
    draft.grow();
    draft.shrink();
}
