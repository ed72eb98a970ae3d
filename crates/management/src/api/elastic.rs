//! `/api/elastic`: the elastic queues, their relays, what is decided about them and why.

use axum::Json;
use axum::body::Bytes;
use axum::extract::{Path, Query, State};
use axum::http::StatusCode;
use serde::Deserialize;
use serde_json::Value;

use super::Api;
use crate::authentication::ApiUser;
use crate::elastic::{ElasticPage, ElasticRefusal, ElasticRequest};
use crate::error::ApiError;

type Answer = Result<Json<Value>, ApiError>;

/// `?after=NUMBER&queue=NAME`.
#[derive(Debug, Deserialize)]
pub(crate) struct Wanted {
    #[serde(default)]
    after: u64,
    queue: Option<String>,
}

/// `?after=NAME_OR_ID&limit=NUMBER&queue=NAME`.
#[derive(Debug, Deserialize)]
pub(crate) struct Part {
    after: Option<String>,
    limit: Option<usize>,
    queue: Option<String>,
}

impl Part {
    fn page(self) -> ElasticPage {
        ElasticPage { after: self.after, limit: self.limit }
    }
}

/// `GET /api/elastic/queues?after=NAME&limit=NUMBER`.
pub(crate) async fn queues(
    State(api): State<Api>,
    user: ApiUser,
    Query(part): Query<Part>,
) -> Answer {
    look(&api, &user, ElasticRequest::Queues { page: part.page() }).await
}

/// `GET /api/elastic/directories`.
pub(crate) async fn directories(State(api): State<Api>, user: ApiUser) -> Answer {
    look(&api, &user, ElasticRequest::Directories).await
}

/// `GET /api/elastic/queues/{queue}`.
pub(crate) async fn queue(
    State(api): State<Api>,
    user: ApiUser,
    Path(queue): Path<String>,
) -> Answer {
    look(&api, &user, ElasticRequest::Queue { queue }).await
}

/// `PUT /api/elastic/queues/{queue}`: 201 if it is new, 204 if it was there.
pub(crate) async fn define(
    State(api): State<Api>,
    user: ApiUser,
    Path(queue): Path<String>,
    definition: Bytes,
) -> Result<StatusCode, ApiError> {
    user.require_administrator()?;
    let answer = call(&api, ElasticRequest::Define { queue, definition }).await?;
    Ok(if answer["new"] == true { StatusCode::CREATED } else { StatusCode::NO_CONTENT })
}

/// `DELETE /api/elastic/queues/{queue}`: with its relays.
pub(crate) async fn delete(
    State(api): State<Api>,
    user: ApiUser,
    Path(queue): Path<String>,
) -> Result<StatusCode, ApiError> {
    user.require_administrator()?;
    call(&api, ElasticRequest::Delete { queue }).await?;
    Ok(StatusCode::NO_CONTENT)
}

/// `GET /api/elastic/relays?after=QUEUE&limit=NUMBER`, or of one queue `?queue=NAME&after=RELAY&limit=NUMBER`.
pub(crate) async fn relays(
    State(api): State<Api>,
    user: ApiUser,
    Query(mut part): Query<Part>,
) -> Answer {
    let request = match part.queue.take() {
        Some(queue) => ElasticRequest::Relays { queue, page: part.page() },
        None => ElasticRequest::AllRelays { page: part.page() },
    };
    look(&api, &user, request).await
}

/// `GET /api/elastic/queues/{queue}/relays?after=RELAY&limit=NUMBER`.
pub(crate) async fn relays_of(
    State(api): State<Api>,
    user: ApiUser,
    Path(queue): Path<String>,
    Query(part): Query<Part>,
) -> Answer {
    look(&api, &user, ElasticRequest::Relays { queue, page: part.page() }).await
}

/// `GET /api/elastic/queues/{queue}/producers?after=ID&limit=NUMBER`.
pub(crate) async fn producers(
    State(api): State<Api>,
    user: ApiUser,
    Path(queue): Path<String>,
    Query(part): Query<Part>,
) -> Answer {
    look(&api, &user, ElasticRequest::Producers { queue, page: part.page() }).await
}

/// `GET /api/elastic/queues/{queue}/listeners?after=ID&limit=NUMBER`.
pub(crate) async fn listeners(
    State(api): State<Api>,
    user: ApiUser,
    Path(queue): Path<String>,
    Query(part): Query<Part>,
) -> Answer {
    look(&api, &user, ElasticRequest::Listeners { queue, page: part.page() }).await
}

/// `GET /api/elastic/events?queue=NAME&after=NUMBER`.
pub(crate) async fn events(
    State(api): State<Api>,
    user: ApiUser,
    Query(Wanted { queue, after }): Query<Wanted>,
) -> Answer {
    look(&api, &user, ElasticRequest::Events { queue, after }).await
}

/// `GET /api/elastic/queues/{queue}/events?after=NUMBER`.
pub(crate) async fn events_of(
    State(api): State<Api>,
    user: ApiUser,
    Path(queue): Path<String>,
    Query(Wanted { after, .. }): Query<Wanted>,
) -> Answer {
    look(&api, &user, ElasticRequest::Events { queue: Some(queue), after }).await
}

/// `POST /api/elastic/queues/{queue}/moves`: 202 when a producer is being moved.
pub(crate) async fn move_producer(
    State(api): State<Api>,
    user: ApiUser,
    Path(queue): Path<String>,
    wanted: Bytes,
) -> Result<(StatusCode, Json<Value>), ApiError> {
    user.require_administrator()?;
    let answer = call(&api, ElasticRequest::Move { queue, wanted }).await?;
    Ok((StatusCode::ACCEPTED, Json(answer)))
}

/// `GET /api/elastic/queues/{queue}/plan`: what would be done now; nothing of it is.
pub(crate) async fn plan(
    State(api): State<Api>,
    user: ApiUser,
    Path(queue): Path<String>,
) -> Answer {
    look(&api, &user, ElasticRequest::Plan { queue }).await
}

async fn look(api: &Api, user: &ApiUser, request: ElasticRequest) -> Answer {
    user.require_monitoring()?;
    call(api, request).await.map(Json)
}

async fn call(api: &Api, request: ElasticRequest) -> Result<Value, ApiError> {
    let Some(elastic) = &api.elastic else {
        return Err(ApiError::Absent(
            "elastic.listen is empty: there is no directory here".to_owned(),
        ));
    };
    elastic.call(request).await.map_err(|refusal| match refusal {
        ElasticRefusal::NotFound(reason) => ApiError::Absent(reason),
        ElasticRefusal::Bad(reason) => ApiError::BadRequest(reason),
        ElasticRefusal::Elsewhere(reason) | ElasticRefusal::Conflict(reason) => {
            ApiError::Conflict(reason)
        }
        ElasticRefusal::Unavailable(reason) => ApiError::Unavailable(reason),
    })
}
