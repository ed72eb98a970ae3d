//! The owner of an account: a user of the account's name, who signs in to the management API by the account's own password
//! and sees only what is theirs (BDQS §IV-A). And what users may do with access keys of their own.

use super::account_shapes::NewAccount;
use super::users;
use crate::authentication::{ApiUser, KnownUser};
use crate::error::ApiError;
use crate::state::SharedState;

/// An owner's tags: they let them sign in, and see their account.
pub(crate) const TAGS: [&str; 1] = ["management"];

/// The owner that a request for an account asks for: the hash of their password.
///
/// # Errors
/// [`ApiError::BadRequest`]; [`ApiError::Conflict`] if a user of that name has nothing to do with the account.
pub(crate) async fn asked(
    api: &impl SharedState,
    account: &str,
    wanted: NewAccount,
) -> Result<Option<String>, ApiError> {
    let Some(password) = wanted.password else { return Ok(None) };
    if let Some(user) = api.look_up(account.to_owned()).await?
        && !is_owner(api, account, &user)
    {
        return Err(ApiError::Conflict(format!(
            "user {account:?} is there already, and is more or less than the owner of that account: give them \
             permissions in it, or another name to the account"
        )));
    }
    users::hash(api, &password).await.map(Some)
}

/// Whether a user of the account's name is there only to own it.
///
/// # Errors
/// [`ApiError::Unavailable`], [`ApiError::Stopping`].
pub(crate) async fn is_there(api: &impl SharedState, account: &str) -> Result<bool, ApiError> {
    let user = api.look_up(account.to_owned()).await?;
    Ok(user.is_some_and(|user| is_owner(api, account, &user)))
}

fn is_owner(api: &impl SharedState, account: &str, user: &KnownUser) -> bool {
    user.tags == TAGS && user.vhosts == [api.vhost_of(account)]
}

/// Whether a user may make a key: administrators any, others for themselves in accounts of theirs, by their passwords.
///
/// # Errors
/// [`ApiError::Forbidden`], which says why not.
pub(crate) fn may_make_key(
    api: &impl SharedState,
    user: &ApiUser,
    owner: &str,
    account: &str,
) -> Result<(), ApiError> {
    if user.is_administrator() {
        return Ok(());
    }
    if owner != user.name {
        return user.require_administrator();
    }
    if user.by_token {
        let reason = "a token makes no access keys: sign in by the password";
        return Err(ApiError::Forbidden(reason.to_owned()));
    }
    user.require_vhost(api.vhost_of(account))
}
