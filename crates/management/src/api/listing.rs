//! What the lists of all kinds of objects have in common.

use quelea_broker::{ListKey, ListedName};
use quelea_node::Core;

use crate::answer::JsonAnswer;
use crate::authentication::ApiUser;
use crate::call::Call;
use crate::error::ApiError;
use crate::list_query::ListQuery;
use crate::listed::{InPages, Listed};
use crate::operation::{existed, vhost_exists};
use crate::paging::{by_turns, fetch};
use crate::state::ApiState;

/// `GET /api/KIND`: those that the user may see.
pub(super) async fn list<T: InPages + Listed>(call: Call) -> JsonAnswer {
    let query = ListQuery::of(&call)?;
    let (api, user, []) = call.parts();
    if T::HAS_NAMES && query.is_found_by_names() {
        return page_by_names::<T>(&api, &query, None, |vhost| user.sees(vhost)).await;
    }
    matching(&api, &query, |object: &T| user.sees(object.vhost())).await
}

/// `GET /api/KIND` of what only administrators see.
pub(super) async fn list_all<T: InPages + Listed>(call: Call) -> JsonAnswer {
    let query = ListQuery::of(&call)?;
    let (api, user, []) = call.parts();
    user.require_administrator()?;
    matching(&api, &query, |_: &T| true).await
}

/// `GET /api/KIND/{vhost}`.
pub(super) async fn list_in<T: InPages + Listed>(call: Call) -> JsonAnswer {
    let query = ListQuery::of(&call)?;
    let (api, user, [vhost]) = call.parts();
    if T::HAS_NAMES && query.is_found_by_names() {
        must_see(&api, &user, &vhost).await?;
        return page_by_names::<T>(&api, &query, Some(vhost), |_| true).await;
    }
    matching_in(&api, &user, &query, vhost, |_: &T| true).await
}

/// Returns a page, for which nothing more than the names of all objects was asked before: of very
/// many objects that is much less.
async fn page_by_names<T: InPages + Listed>(
    api: &ApiState,
    query: &ListQuery,
    vhost: Option<String>,
    sees: impl Fn(&str) -> bool,
) -> JsonAnswer {
    let keys = api.on_core(move |core| T::keys(&mut core.broker, vhost.as_deref())).await?;
    let ask = |core: &mut Core, keys: &[ListKey]| core.broker.list_queue_names(keys);
    let mut names = by_turns::<ListedName>(api, keys, ask).await?;
    names.retain(|one| sees(one.vhost.as_str()));
    let (counted, found) = query.page_of(names)?;
    let mut objects = by_turns::<T>(api, found, T::page).await?;
    if query.is_reversed() {
        objects.reverse();
    }
    Ok(query.page(api, counted, objects.iter()))
}

async fn must_see(api: &ApiState, user: &ApiUser, vhost: &str) -> Result<(), ApiError> {
    user.require_vhost(vhost)?;
    existed(vhost_exists(api, vhost).await?)
}

/// Returns all objects that are wanted.
pub(super) async fn matching<T: InPages + Listed>(
    api: &ApiState,
    query: &ListQuery,
    wanted: impl Fn(&T) -> bool,
) -> JsonAnswer {
    let mut all = fetch::<T>(api, None).await?;
    all.retain(wanted);
    query.answer(api, all)
}

/// Returns a virtual host's objects that are wanted, if it is there and the user may see it.
pub(super) async fn matching_in<T: InPages + Listed>(
    api: &ApiState,
    user: &ApiUser,
    query: &ListQuery,
    vhost: String,
    wanted: impl Fn(&T) -> bool,
) -> JsonAnswer {
    must_see(api, user, &vhost).await?;
    let mut all = fetch::<T>(api, Some(vhost.clone())).await?;
    all.retain(|object| object.vhost() == vhost && wanted(object));
    query.answer(api, all)
}
