//! The core of this thread: tasks that run on it call it without a hand-over.

use std::cell::RefCell;
use std::sync::Arc;

use tokio::sync::Notify;

use crate::core::{Core, SharedCore};

thread_local! {
    /// The core, and what wakes it: its handles compare that.
    static LOCAL_CORE: RefCell<Option<(Arc<Notify>, SharedCore)>> = const { RefCell::new(None) };
}

/// From now on this is the core's thread.
pub(crate) fn enter(wake: &Arc<Notify>, core: &SharedCore) {
    LOCAL_CORE.set(Some((Arc::clone(wake), core.clone())));
}

/// The core is about to end.
pub(crate) fn leave() {
    LOCAL_CORE.set(None);
}

/// Runs `call` at once if this is the thread of the core with that `wake`; returns it if not.
pub(crate) fn run<R, F: FnOnce(&mut Core) -> R>(wake: &Arc<Notify>, call: F) -> Result<R, F> {
    let core = LOCAL_CORE.with_borrow(|local| match local {
        Some((own, core)) if Arc::ptr_eq(own, wake) => Some(core.clone()),
        _ => None,
    });
    match core {
        Some(core) => Ok(core.with(|core| core.call_local(call))),
        None => Err(call),
    }
}
