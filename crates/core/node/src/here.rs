//! The core of this thread, for those who run on it: they need no hand-over to call it.

use std::cell::RefCell;
use std::sync::Arc;

use tokio::sync::Notify;

use crate::core::{Core, SharedCore};

thread_local! {
    /// The core, and what wakes it: by that its handles know it.
    static HERE: RefCell<Option<(Arc<Notify>, SharedCore)>> = const { RefCell::new(None) };
}

/// From now on this is the core's thread.
pub(crate) fn enter(wake: &Arc<Notify>, core: &SharedCore) {
    HERE.set(Some((Arc::clone(wake), core.clone())));
}

/// The core is about to end.
pub(crate) fn leave() {
    HERE.set(None);
}

/// Runs `call` at once if this is the thread of the core with that `wake`; gives it back if not.
pub(crate) fn run<R, F: FnOnce(&mut Core) -> R>(wake: &Arc<Notify>, call: F) -> Result<R, F> {
    let core = HERE.with_borrow(|here| match here {
        Some((own, core)) if Arc::ptr_eq(own, wake) => Some(core.clone()),
        _ => None,
    });
    match core {
        Some(core) => Ok(core.with(|core| core.call_here(call))),
        None => Err(call),
    }
}
