//! Asks the core for what is many, a page a turn.

use std::sync::Arc;

use quelea_broker::ListKey;
use quelea_node::Core;

use crate::error::ApiError;
use crate::listed::InPages;
use crate::state::ApiState;

/// Returns all objects, or those of a virtual host. The core is asked once a page: others have
/// their turn in between, and what is made or goes meanwhile may be missing.
pub(crate) async fn fetch<T: InPages>(
    api: &ApiState,
    vhost: Option<String>,
) -> Result<Vec<T>, ApiError> {
    let keys = api.on_core(move |core| T::keys(&mut core.broker, vhost.as_deref())).await?;
    let mut all = by_turns(api, keys, T::page).await?;
    T::sort(&mut all);
    Ok(all)
}

/// Returns what a list of keys leads to, asked once a turn: others have theirs in between, and what
/// goes meanwhile is missing.
pub(crate) async fn by_turns<T: Send + 'static>(
    api: &ApiState,
    keys: Vec<ListKey>,
    ask: fn(&mut Core, &[ListKey]) -> (Vec<T>, usize),
) -> Result<Vec<T>, ApiError> {
    let (mut all, keys, mut from) = (Vec::new(), Arc::new(keys), 0);
    while from < keys.len() {
        let keys = Arc::clone(&keys);
        let turn = move |core: &mut Core| ask(core, &keys[from..]);
        let (found, looked_at) = api.on_core(turn).await?;
        all.extend(found);
        from += looked_at;
    }
    Ok(all)
}
