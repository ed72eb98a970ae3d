//! The owner of an account: a user of the account's name, who signs in to the management API by the account's own password
//! and sees only what is theirs (BDQS §IV-A). And what users may do with access keys of their own.

use quelea_sqs_protocol::{IdentityDirectory as _, UserWithVhosts};

use super::shapes::NewAccount;
use super::users;
use crate::authentication::ApiUser;
use crate::error::ApiError;
use crate::state::SharedState;

/// An owner's tags: they let them sign in, and see their account.
pub(super) const TAGS: [&str; 1] = ["management"];

/// Returns the owner that a request for an account asks for: the hash of their password.
///
/// # Errors
/// [`ApiError::BadRequest`]; [`ApiError::Conflict`] if a user of that name has nothing to do with the account.
pub(super) async fn asked(
    api: &impl SharedState,
    account: &str,
    wanted: NewAccount,
) -> Result<Option<String>, ApiError> {
    let Some(password) = wanted.password else { return Ok(None) };
    if let Some(user) = api.directory().user_with_vhosts(account).await?
        && !is_owner(api, account, &user)
    {
        return Err(ApiError::Conflict(format!(
            "user {account:?} is there already, and is more or less than the owner of that account: give them \
             permissions in it, or another name to the account"
        )));
    }
    users::hash(api, &password).await.map(Some)
}

/// Returns whether a user of the account's name is there only to own it.
///
/// # Errors
/// [`ApiError::Unavailable`].
pub(super) async fn is_there(api: &impl SharedState, account: &str) -> Result<bool, ApiError> {
    let user = api.directory().user_with_vhosts(account).await?;
    Ok(user.is_some_and(|user| is_owner(api, account, &user)))
}

fn is_owner(api: &impl SharedState, account: &str, there: &UserWithVhosts) -> bool {
    there.user.tags == TAGS && matches!(&*there.vhosts, [only] if **only == *api.vhost_of(account))
}

/// Checks whether a user may make a key: administrators any, others for themselves in accounts of
/// theirs, by their passwords.
///
/// # Errors
/// [`ApiError::Forbidden`], which says why not.
pub(super) fn may_make_key(
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
