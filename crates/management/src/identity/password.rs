//! `/password`: the caller's own password; and hashes that RabbitMQ made, which get better ones at the sign-in.

use axum::http::StatusCode;
use quelea_node::{Authenticator, BetterHash};
use quelea_openapi::{Operation, Route};
use quelea_sqs_protocol::{Fault, IdentityDirectory};
use schemars::JsonSchema;
use serde::Deserialize;
use tokio::runtime::Handle;

use super::users::hash;
use crate::answer::StatusAnswer;
use crate::call::Call;
use crate::error::ApiError;
use crate::state::SharedState;

pub(super) fn route<S: SharedState>() -> Route<S> {
    let operation = Operation::new(
        "Gives the user who asks another password. Their tokens end; connections that are open stay",
    )
    .body::<NewPassword>()
    .answers_status(204);
    Route::at("/password").put(change::<S>, operation)
}

/// What the user signs in with from now on.
#[derive(Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
struct NewPassword {
    #[schemars(length(min = 1))]
    password: String,
}

/// `PUT /password`, signed in by the old one: who has found a token must not lock the user out.
async fn change<S: SharedState>(call: Call<S>) -> StatusAnswer {
    let (api, user, [], body) = call.parts_and_body().await?;
    if user.by_token {
        let reason = "a token changes no password: sign in by the old one";
        return Err(ApiError::Forbidden(reason.into()));
    }
    let NewPassword { password } = quelea_openapi::from_value(body).map_err(ApiError::bad)?;
    if password.is_empty() {
        return Err(ApiError::bad("password must not be empty"));
    }
    let hash = hash(&api, &password).await?;
    match api.directory().set_password_hash(&user.name, hash.into()).await? {
        true => Ok(StatusCode::NO_CONTENT),
        // Deleted meanwhile.
        false => Err(ApiError::Unauthorized),
    }
}

/// Who has signed in with a hash that RabbitMQ made gets one of argon2 in this directory, unless the password has been
/// changed meanwhile. A broker whose log has its users does so by itself.
pub(crate) fn store_better_hashes<D: IdentityDirectory>(
    authenticator: &Authenticator,
    directory: &D,
) {
    let (directory, runtime) = (directory.clone(), Handle::current());
    authenticator.on_better_hash(move |better: BetterHash| {
        let directory = directory.clone();
        runtime.spawn(async move {
            let user = better.user.clone();
            match replace_hash(&directory, better).await {
                Ok(true) => tracing::info!(user, "a password of RabbitMQ's got a better hash"),
                Ok(false) => {}
                // The next sign-in tries again.
                Err(fault) => tracing::warn!(user, %fault, "a password keeps its hash"),
            }
        });
    });
}

/// Returns whether the hash was still the old one, and is replaced.
async fn replace_hash<D: IdentityDirectory>(
    directory: &D,
    BetterHash { user, old, new }: BetterHash,
) -> Result<bool, Fault> {
    match directory.user(&user).await? {
        Some(known) if known.password_hash == old => {
            directory.set_password_hash(&user, new.into()).await
        }
        _ => Ok(false),
    }
}

#[cfg(test)]
mod tests {
    use std::net::{IpAddr, Ipv4Addr};
    use std::time::Duration;

    use quelea_node::{
        Credentials, RABBITMQ_DEFAULT_ALGORITHM, from_rabbitmq, hash_as_rabbitmq, verify_password,
    };
    use quelea_sqs_protocol::UserRecord;

    use super::*;
    use crate::test_broker::TestBroker;

    async fn ada(directory: &impl IdentityDirectory) -> UserRecord {
        directory.user("ada").await.unwrap().unwrap()
    }

    /// Makes a user whose password's hash is from RabbitMQ.
    async fn import_ada(directory: &impl IdentityDirectory) {
        let hash = hash_as_rabbitmq(b"secret").unwrap();
        let hash = from_rabbitmq(RABBITMQ_DEFAULT_ALGORITHM, &hash).unwrap();
        let (name, tags) = ("ada".into(), vec!["monitoring".to_owned()]);
        let user = UserRecord { name, password_hash: hash.into(), tags };
        assert_eq!(directory.put_user(user).await, Ok(true));
    }

    #[tokio::test]
    async fn a_hash_of_rabbitmqs_is_replaced_at_the_sign_in() {
        let broker = TestBroker::start();
        import_ada(&broker.api).await;
        // As that of a front-end: the broker's own knows what to do.
        let authenticator = Authenticator::start().unwrap();
        store_better_hashes(&authenticator, &broker.api);
        let (user, password) = ("ada".to_owned(), bytes::Bytes::from_static(b"secret"));
        let hash = Some(ada(&broker.api).await.password_hash);
        let here = IpAddr::V4(Ipv4Addr::LOCALHOST);
        let credentials = Credentials { user, password, hash };
        let _waits = authenticator.verify(here, credentials, |_| {});
        let replaced = async {
            loop {
                let known = ada(&broker.api).await;
                if known.password_hash.starts_with("$argon2") {
                    return known;
                }
            }
        };
        let known = tokio::time::timeout(Duration::from_secs(60), replaced).await.unwrap();
        assert!(verify_password(b"secret", Some(&known.password_hash)));
        assert_eq!(known.tags, ["monitoring"]);
    }

    #[tokio::test]
    async fn a_password_that_was_changed_meanwhile_stays() {
        let broker = TestBroker::start();
        import_ada(&broker.api).await;
        let old = ada(&broker.api).await.password_hash;
        broker.api.set_password_hash("ada", "changed".into()).await.unwrap();
        for user in ["ada", "nobody"] {
            let (user, new) = (user.to_owned(), "better".to_owned());
            let better = BetterHash { user, old: old.clone(), new };
            assert_eq!(replace_hash(&broker.api, better).await, Ok(false));
        }
        assert_eq!(&*ada(&broker.api).await.password_hash, "changed");
    }
}
