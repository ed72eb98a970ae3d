//! What the lists of all kinds of objects have in common.

use std::sync::Arc;

use quelea_node::Core;

use super::JsonAnswer;
use super::list_query::ListQuery;
pub(crate) use super::listed::{Listed, array};
use crate::authentication::ApiUser;
use crate::call::Call;
use crate::error::ApiError;
use crate::operation::vhost_exists;
use crate::state::ApiState;

/// `GET /api/KIND`: those that the user may see.
pub(super) async fn list<T: Listed>(call: Call) -> JsonAnswer {
    let query = query(&call)?;
    let (api, user, []) = call.parts();
    matching(&api, &query, |object: &T| user.sees(object.vhost())).await
}

/// `GET /api/KIND` of what only administrators see.
pub(super) async fn list_all<T: Listed>(call: Call) -> JsonAnswer {
    let query = query(&call)?;
    let (api, user, []) = call.parts();
    user.require_administrator()?;
    matching(&api, &query, |_: &T| true).await
}

/// `GET /api/KIND/{vhost}`.
pub(super) async fn list_in<T: Listed>(call: Call) -> JsonAnswer {
    let query = query(&call)?;
    let (api, user, [vhost]) = call.parts();
    matching_in(&api, &user, &query, vhost, |_: &T| true).await
}

/// What a list is asked for.
pub(super) fn query(call: &Call) -> Result<ListQuery, ApiError> {
    ListQuery::parse(call.query()?)
}

/// All objects that are wanted.
pub(super) async fn matching<T: Listed>(
    api: &ApiState,
    query: &ListQuery,
    wanted: impl Fn(&T) -> bool,
) -> JsonAnswer {
    let mut all = fetch::<T>(api, None).await?;
    all.retain(wanted);
    query.answer(api, all)
}

/// A virtual host's objects that are wanted, if it is there and the user may see it.
pub(super) async fn matching_in<T: Listed>(
    api: &ApiState,
    user: &ApiUser,
    query: &ListQuery,
    vhost: String,
    wanted: impl Fn(&T) -> bool,
) -> JsonAnswer {
    user.require_vhost(&vhost)?;
    if !vhost_exists(api, &vhost).await? {
        return Err(ApiError::NotFound);
    }
    let mut all = fetch::<T>(api, Some(vhost.clone())).await?;
    all.retain(|object| object.vhost() == vhost && wanted(object));
    query.answer(api, all)
}

/// All objects, or those of a virtual host. Where they may be many the core is asked once a page: others have their
/// turn in between, and what is made or goes meanwhile may be missing.
pub(crate) async fn fetch<T: Listed>(
    api: &ApiState,
    vhost: Option<String>,
) -> Result<Vec<T>, ApiError> {
    let begin = move |core: &mut Core| {
        let vhost = vhost.as_deref();
        (T::fetch(&core.broker, vhost), T::keys(&mut core.broker, vhost))
    };
    let (mut all, keys) = api.ask(begin).await?;
    let (keys, mut from) = (Arc::new(keys), 0);
    while from < keys.len() {
        let keys = Arc::clone(&keys);
        let page = move |core: &mut Core| T::page(&mut core.broker, &keys[from..]);
        let (page, looked_at) = api.ask(page).await?;
        all.extend(page);
        from += looked_at;
    }
    T::sort(&mut all);
    Ok(all)
}
