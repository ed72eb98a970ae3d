//! `/quelea/v1/queues/{vhost}/{name}/moves`: messages that go from one queue to another, or dead letters back to where
//! each came from, while the broker goes on with all else.

use axum::http::StatusCode;
use axum::{Extension, Json};
use quelea_broker::{MoveError, MoveTaskId, MoveTaskReport, MoveTaskState, NoMoveTaskId};
use quelea_openapi::{Operation, Route};
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use crate::answer::StatusAnswer;
use crate::audit::Details;
use crate::authentication::ApiUser;
use crate::call::Call;
use crate::error::ApiError;
use crate::limits::MOVED_MESSAGES_PER_S_MAX;
use crate::operation::{connection_of, with_channel};
use crate::state::ApiState;

pub(super) fn routes() -> Vec<Route<ApiState>> {
    let list_of = Operation::new("Returns the last moves out of a queue, the newest first")
        .answers::<Vec<Move>>(200);
    let start_one = Operation::new(
        "Begins to move the messages that are visible in a queue now, in their order: to another queue of the same \
         virtual host, or dead letters of SQS queues back to where each came from",
    )
    .optional_body::<NewMove>()
    .answers::<Begun>(202)
    .refuses(&[409]);
    let cancel_one = Operation::new("Ends a move; what was moved stays where it is")
        .answers_status(204)
        .refuses(&[409]);
    vec![
        Route::at("/queues/{vhost}/{name}/moves").get(list, list_of).post(start, start_one),
        Route::at("/queues/{vhost}/{name}/moves/{id}").delete(cancel, cancel_one),
    ]
}

/// Which messages go where.
#[derive(Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
struct NewMove {
    /// A queue of the same virtual host; absent: each message goes back to the queue that it was redriven from.
    #[schemars(length(min = 1, max = 255))]
    destination: Option<String>,
    /// Messages a second at most; absent: as fast as the broker can beside its other work.
    #[schemars(range(min = 1, max = MOVED_MESSAGES_PER_S_MAX))]
    messages_per_s_max: Option<u32>,
}

/// A move that has begun.
#[derive(Serialize, JsonSchema)]
#[schemars(rename = "BegunMove")]
struct Begun {
    /// By which it is ended.
    id: String,
}

/// How far a move is.
#[derive(Serialize, JsonSchema)]
struct Move {
    id: String,
    state: State,
    /// Where to; none: where each message came from, or a queue that has been gone since before the broker started.
    destination: Option<String>,
    messages_per_s_max: Option<u32>,
    messages_moved: u64,
    /// Those that were visible when it began.
    messages_to_move: u64,
    /// Milliseconds since 1970.
    started_at: u64,
    /// Why it failed.
    failure: Option<String>,
}

#[derive(Clone, Copy, Serialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
#[schemars(rename = "MoveState")]
enum State {
    Running,
    Completed,
    Cancelled,
    Failed,
}

async fn list(call: Call) -> Result<Json<Vec<Move>>, ApiError> {
    let (api, user, [vhost, name]) = call.parts();
    user.require_vhost(&vhost)?;
    let reports = api.on_core(move |core| {
        let id = core.broker.queue_id(&vhost, &name)?;
        Some(core.broker.move_tasks(id))
    });
    let reports = reports.await?.ok_or(ApiError::NotFound)?;
    Ok(Json(reports.iter().map(shown).collect()))
}

async fn start(call: Call) -> Result<(StatusCode, Extension<Details>, Json<Begun>), ApiError> {
    let (api, user, [vhost, name], body) = call.parts_and_body().await?;
    let wanted: NewMove = quelea_openapi::from_value(body).map_err(ApiError::bad)?;
    let rate = wanted.messages_per_s_max.unwrap_or(1);
    if !(1..=MOVED_MESSAGES_PER_S_MAX).contains(&rate) {
        let reason = format!(
            "messages_per_s_max must be from 1 to {MOVED_MESSAGES_PER_S_MAX}, it is {rate}"
        );
        return Err(ApiError::BadRequest(reason));
    }
    let details = Details(match &wanted.destination {
        Some(destination) => format!("to {destination}"),
        None => "back to where each came from".to_owned(),
    });
    let info = connection_of(&user, vhost);
    let begun = api.on_core(move |core| {
        let now = core.now();
        with_channel(&mut core.broker, now, info, |broker, channel| {
            let destination = wanted.destination.as_deref();
            let (source, destination) = broker.find_move(channel, &name, destination)?;
            broker
                .start_move(now, source, destination, wanted.messages_per_s_max)
                .map_err(ApiError::from)
        })
    });
    let (id, ticket) = begun.await??;
    api.core.reached(ticket).await.map_err(|_| ApiError::Stopping)?;
    Ok((StatusCode::ACCEPTED, Extension(details), Json(Begun { id: id.to_string() })))
}

async fn cancel(call: Call) -> StatusAnswer {
    let (api, user, [vhost, name, id]) = call.parts();
    let id: MoveTaskId = id.parse().map_err(|_: NoMoveTaskId| ApiError::NotFound)?;
    let ticket = cancel_as(&api, &user, vhost, name, id).await?;
    api.core.reached(ticket).await.map_err(|_| ApiError::Stopping)?;
    Ok(StatusCode::NO_CONTENT)
}

/// Cancels a move. Who may read the queue ends its moves. An id of another queue is none of this
/// one.
async fn cancel_as(
    api: &ApiState,
    user: &ApiUser,
    vhost: String,
    name: String,
    id: MoveTaskId,
) -> Result<quelea_store::Ticket, ApiError> {
    let info = connection_of(user, vhost);
    let cancelled = api.on_core(move |core| {
        let now = core.now();
        with_channel(&mut core.broker, now, info, |broker, channel| {
            let source = broker.find_move_source(channel, &name)?;
            if id.source != source {
                return Err(ApiError::NotFound);
            }
            broker.cancel_move(id).map(|(_, ticket)| ticket).map_err(ApiError::from)
        })
    });
    cancelled.await?
}

fn shown(report: &MoveTaskReport) -> Move {
    let progress = &report.progress;
    let (state, failure) = match progress.state {
        MoveTaskState::Running => (State::Running, None),
        MoveTaskState::Completed => (State::Completed, None),
        MoveTaskState::Cancelled => (State::Cancelled, None),
        MoveTaskState::Failed(failure) => (State::Failed, Some(failure.to_string())),
    };
    Move {
        id: report.id.to_string(),
        state,
        destination: report.destination.as_ref().map(|(_, name)| name.as_str().to_owned()),
        messages_per_s_max: progress.per_second_max,
        messages_moved: progress.moved,
        messages_to_move: progress.to_move,
        started_at: progress.started_at.as_millis(),
        failure,
    }
}

impl From<MoveError> for ApiError {
    fn from(error: MoveError) -> Self {
        match error {
            MoveError::NoSuchQueue(_) | MoveError::NoSuchTask { .. } => Self::NotFound,
            MoveError::SameQueue => Self::bad(error),
            MoveError::Running { .. } | MoveError::Over { .. } => Self::Conflict(error.to_string()),
            MoveError::LimitReached(_) => Self::Unavailable(error.to_string()),
        }
    }
}
