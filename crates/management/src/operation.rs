//! Changes to the broker: run on the core thread, answered when they are durable.

use std::time::Duration;

use quelea_broker::error::{
    AdminError, BindingError, DeclareQueueError, ExchangeError, GetError, OpenError, PublishError,
    QueueError, ResourceError,
};
use quelea_broker::exchange::RouteError;
use quelea_broker::{Broker, ChannelId, ConnectionInfo};
use quelea_model::Timestamp;
use quelea_node::Core;
use quelea_store::Ticket;

use crate::authentication::ApiUser;
use crate::error::ApiError;
use crate::state::ApiState;

/// How often [`until_free`] polls, a minute in all.
const POLLS_MAX: u32 = 30_000;
const POLL_INTERVAL: Duration = Duration::from_millis(2);

/// Waits while what had a name is being deleted, as a declaration over AMQP does: whoever deletes and makes anew must not
/// have to know that a deletion goes on after its answer. After so many polls the change says that it has to wait.
pub(crate) async fn until_free(
    api: &ApiState,
    is_being_deleted: impl Fn(&Broker) -> bool + Clone + Send + 'static,
) -> Result<(), ApiError> {
    for _ in 0..POLLS_MAX {
        let is_being_deleted = is_being_deleted.clone();
        if !api.on_core(move |core| is_being_deleted(&core.broker)).await? {
            break;
        }
        tokio::time::sleep(POLL_INTERVAL).await;
    }
    Ok(())
}

/// Tries again while another store is asked whether it has a queue of the name that is declared.
pub(crate) async fn until_checked<T, F: Future<Output = Result<T, ApiError>>>(
    api: &ApiState,
    declare: impl Fn() -> F,
) -> Result<T, ApiError> {
    let is_being_checked =
        |declared: &Result<T, ApiError>| matches!(declared, Err(ApiError::NameBeingChecked));
    let declared = api.core.when_name_checked(declare, is_being_checked).await;
    declared.map_err(|_| ApiError::Stopping)?
}

/// Runs a change on the core thread and waits until it is durable.
pub(crate) async fn done<E>(
    api: &ApiState,
    change: impl FnOnce(&mut Core) -> Result<Ticket, E> + Send + 'static,
) -> Result<(), ApiError>
where
    E: Into<ApiError> + Send + 'static,
{
    let ticket = api.on_core(change).await?.map_err(Into::into)?;
    api.core.reached(ticket).await.map_err(|_| ApiError::Stopping)
}

/// Runs a change as `user` in `vhost`, through a channel that exists for this change only: so the
/// user's permissions count as they do over AMQP.
pub(crate) async fn done_as<E>(
    api: &ApiState,
    user: &ApiUser,
    vhost: String,
    change: impl FnOnce(&mut Broker, Timestamp, ChannelId) -> Result<Ticket, E> + Send + 'static,
) -> Result<(), ApiError>
where
    E: Into<ApiError> + Send + 'static,
{
    let info = connection_of(user, vhost);
    done(api, move |core| {
        let now = core.now();
        with_channel(&mut core.broker, now, info, |broker, channel| change(broker, now, channel))
    })
    .await
}

/// Returns the connection inside the broker by which a user does something.
pub(crate) fn connection_of(user: &ApiUser, vhost: String) -> ConnectionInfo {
    ConnectionInfo {
        user: user.name.clone(),
        vhost,
        loopback: user.is_local(),
        name: format!("management API, {}", user.name),
        protocol: "management",
        is_audited: true,
        ..ConnectionInfo::default()
    }
}

/// Runs `act` with a channel of a connection that exists for it only.
pub(crate) fn with_channel<T, E: Into<ApiError>>(
    broker: &mut Broker,
    now: Timestamp,
    info: ConnectionInfo,
    act: impl FnOnce(&mut Broker, ChannelId) -> Result<T, E>,
) -> Result<T, ApiError> {
    let connection = broker.open_connection(now, info)?;
    let result = match broker.open_channel(connection, 1) {
        Ok(channel) => act(broker, channel).map_err(Into::into),
        Err(error) => Err(ApiError::bad(error)),
    };
    broker.close_connection(now, connection);
    result
}

/// Refuses with 404 unless it was there.
pub(crate) const fn existed(there: bool) -> Result<(), ApiError> {
    if there { Ok(()) } else { Err(ApiError::NotFound) }
}

impl From<OpenError> for ApiError {
    fn from(error: OpenError) -> Self {
        match error {
            OpenError::NoSuchVhost { .. } => Self::NotFound,
            _ => Self::Forbidden(error.to_string()),
        }
    }
}

impl From<ResourceError> for ApiError {
    fn from(error: ResourceError) -> Self {
        match error {
            ResourceError::AccessRefused(_) => Self::Forbidden(error.to_string()),
            ResourceError::NoSuchQueue(_) | ResourceError::NoSuchExchange(_) => Self::NotFound,
            _ => Self::bad(error),
        }
    }
}

impl From<DeclareQueueError> for ApiError {
    fn from(error: DeclareQueueError) -> Self {
        match error {
            DeclareQueueError::Resource(error) => error.into(),
            DeclareQueueError::NameBeingChecked(_) => Self::NameBeingChecked,
            _ => Self::bad(error),
        }
    }
}

impl From<QueueError> for ApiError {
    fn from(error: QueueError) -> Self {
        match error {
            QueueError::Resource(error) => error.into(),
            _ => Self::bad(error),
        }
    }
}

impl From<GetError> for ApiError {
    fn from(error: GetError) -> Self {
        match error {
            GetError::Resource(error) => error.into(),
            _ => Self::bad(error),
        }
    }
}

impl From<PublishError> for ApiError {
    fn from(error: PublishError) -> Self {
        match error {
            PublishError::AccessRefused(_) | PublishError::InternalExchange { .. } => {
                Self::Forbidden(error.to_string())
            }
            PublishError::Route(RouteError::NoSuchExchange(_)) => Self::NotFound,
            _ => Self::bad(error),
        }
    }
}

impl From<ExchangeError> for ApiError {
    fn from(error: ExchangeError) -> Self {
        match error {
            ExchangeError::AccessRefused(_) => Self::Forbidden(error.to_string()),
            ExchangeError::NoSuchExchange(_) => Self::NotFound,
            _ => Self::bad(error),
        }
    }
}

impl From<BindingError> for ApiError {
    fn from(error: BindingError) -> Self {
        match error {
            BindingError::Resource(error) => error.into(),
            _ => Self::bad(error),
        }
    }
}

impl From<AdminError> for ApiError {
    fn from(error: AdminError) -> Self {
        match error {
            AdminError::NoSuchVhost { .. } | AdminError::NoSuchAccessKey { .. } => Self::NotFound,
            _ => Self::bad(error),
        }
    }
}

/// Returns whether there is a virtual host of that name.
pub(crate) async fn vhost_exists(api: &ApiState, vhost: &str) -> Result<bool, ApiError> {
    let vhost = vhost.to_owned();
    api.on_core(move |core| core.broker.has_vhost(&vhost)).await
}
