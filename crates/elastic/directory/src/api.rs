//! `/api/elastic`: the elastic queues, their relays, what is decided about them and why, as JSON. Whoever
//! mounts [`routes`] decides who may call them.

mod moves;
mod page;
mod query;
mod refusal;
mod shapes;
mod show;

use std::collections::BTreeMap;
use std::time::Duration;

use axum::Json;
use axum::body::Bytes;
use axum::extract::Path;
use axum::http::StatusCode;
use quelea_elastic_core::directory::limits::{EVENTS_SHOWN_MAX, PAGE_SIZE_MAX};
use quelea_elastic_core::directory::{Definition, Input};
use quelea_elastic_proto::limits::QUEUE_NAME_BYTES_MAX;
use quelea_openapi::{Limit, Operation, QueryFields, Route, with_state};
use schemars::JsonSchema;
use serde::Deserialize;

use self::moves::MoveRequest;
use self::page::{Page, RelayNumber, ShownClientId};
use self::refusal::Refusal;
use self::shapes::{Directory, Event, Listed, Listener, Move, Plan, Producer, Queue, Relay};
use crate::driver::Driver;
use crate::server::DirectoryHandle;

/// How long the task that knows who owns what may take to answer: about what the store and the provider may
/// take, on which it may be waiting.
const CLUSTER_VIEW_MAX: Duration = Duration::from_secs(15);

type ApiResult<T> = Result<Json<T>, Refusal>;

/// Returns the API's routes below `/api/elastic`. Without a directory every one answers that there
/// is none.
#[must_use]
pub fn routes(directory: Option<DirectoryHandle>) -> Vec<Route> {
    let of_queue = [
        Route::at("/queues/{queue}")
            .get(queue, Operation::new("Returns a queue with its relays").answers::<Queue<Vec<Relay>>>(200).refuses(OF_QUEUE))
            .put(
                define,
                Operation::new("Makes a queue, or defines it anew; fields that are absent stay as they are")
                    .optional_body::<Definition>()
                    .answers_status(201)
                    .answers_status(204)
                    .refuses(OF_QUEUE),
            )
            .delete(delete, Operation::new("Deletes a queue with its relays").answers_status(204).refuses(OF_QUEUE)),
        Route::at("/queues/{queue}/relays").get(
            relays_of,
            Operation::new("Returns a queue's relays by number").query::<Page<RelayNumber>>().answers::<Vec<Relay>>(200).refuses(OF_QUEUE),
        ),
        Route::at("/queues/{queue}/producers").get(
            producers,
            Operation::new("Returns a queue's producers by id").query::<Page<ShownClientId>>().answers::<Vec<Producer>>(200).refuses(OF_QUEUE),
        ),
        Route::at("/queues/{queue}/listeners").get(
            listeners,
            Operation::new("Returns a queue's listeners by id").query::<Page<ShownClientId>>().answers::<Vec<Listener>>(200).refuses(OF_QUEUE),
        ),
        Route::at("/queues/{queue}/events").get(
            events_of,
            Operation::new("Returns what was decided about a queue and why, oldest first").query::<After>().answers::<Vec<Event>>(200),
        ),
        Route::at("/queues/{queue}/plan").get(
            plan,
            Operation::new("Returns what the planner would do about a queue now, and why; nothing of it is done")
                .query::<PlanOf>()
                .answers::<Plan>(200)
                .refuses(OF_QUEUE),
        ),
        Route::at("/queues/{queue}/moves").post(
            move_producer,
            Operation::new("Moves a producer to another relay").optional_body::<MoveRequest>().answers::<Move>(202).refuses(OF_QUEUE),
        ),
    ];
    let of_all = [
        Route::at("/directories").get(
            directories,
            Operation::new("Returns the directories that share the queues, this one first").answers::<Vec<Directory>>(200).refuses(&[404]),
        ),
        Route::at("/queues").get(
            queues,
            Operation::new("Returns all queues by name: those of this directory with their state, others with their owner")
                .query::<Page<String>>()
                .answers::<Vec<Listed>>(200)
                .refuses(&[404]),
        ),
        Route::at("/relays").get(
            relays,
            Operation::new("Returns the relays of all queues of this directory, or of one queue")
                .query::<PageOfRelays>()
                .answers::<Vec<Relay>>(200)
                .refuses(OF_QUEUE),
        ),
        Route::at("/events").get(
            events,
            Operation::new("Returns what was decided and why, oldest first")
                .query::<PageOfEvents>()
                .answers::<Vec<Event>>(200)
                .refuses(&[404]),
        ),
    ];
    with_state(of_all.into_iter().chain(of_queue), &directory)
}

/// There is no such queue, or another directory controls it.
const OF_QUEUE: &[u16] = &[404, 409];

/// `?after=NUMBER`.
#[derive(Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
struct After {
    /// Only events with larger numbers.
    #[serde(default)]
    #[schemars(range(max = u64::MAX))]
    after: u64,
}

/// `?queue=NAME&after=NUMBER`.
#[derive(Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
struct PageOfEvents {
    /// Only those of this one.
    queue: Option<String>,
    /// Only events with larger numbers.
    #[serde(default)]
    #[schemars(range(max = u64::MAX))]
    after: u64,
}

/// `?queue=NAME&after=NAME_OR_NUMBER&limit=NUMBER`.
#[derive(Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
struct PageOfRelays {
    /// Only those of this one.
    queue: Option<String>,
    /// Only relays of queues with larger names; of one queue, relays with larger numbers.
    after: Option<String>,
    /// How many at most; the relays of a queue are not torn.
    #[serde(default)]
    limit: Limit<PAGE_SIZE_MAX>,
}

/// `?definition=FIELDS`.
#[derive(Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
struct PlanOf {
    /// The plan if the queue were defined so: an object of fields as JSON, as `PUT` takes it; absent: as it is.
    definition: Option<String>,
}

/// `GET /directories`: those that share the queues, as this one knows them and as relays learn them: this one
/// first.
async fn directories(directory: DirectoryHandle) -> ApiResult<Vec<Directory>> {
    let listed = directory.ask(|driver| {
        let shown = |address: &String| Directory {
            address: address.clone(),
            this: *address == driver.advertise,
        };
        let known = driver.core.directories();
        let alone = std::slice::from_ref(&driver.advertise);
        if known.is_empty() { alone } else { known }.iter().map(shown).collect()
    });
    listed.await.map(Json)
}

/// `GET /queues?after=NAME&limit=NUMBER`: all queues, by name: those of this directory with their state and the
/// number of their relays, others with their owner.
async fn queues(
    directory: DirectoryHandle,
    QueryFields(page): QueryFields<Page<String>>,
) -> ApiResult<Vec<Listed>> {
    let Page { after, limit: Limit(limit) } = page;
    let own_after = after.clone();
    let own = directory.ask(move |driver| {
        let names = driver.core.queue_names_after(own_after.as_deref()).map(str::to_owned);
        let shown = names.filter_map(|name| {
            let shown = show::listed_queue(driver, &name)?;
            Some((name, Listed::Own(Box::new(shown))))
        });
        // What is only being claimed is shown as what it is known to be: nobody's, or another's.
        shown.take(limit).collect::<BTreeMap<_, _>>()
    });
    let mut queues = own.await?;
    let elsewhere =
        directory.view_cluster(move |view| view.queues_and_owners(after.as_deref(), limit));
    for (name, owner) in elsewhere.await? {
        let shown = Listed::Elsewhere { name: name.clone(), owner };
        queues.entry(name).or_insert(shown);
    }
    Ok(Json(queues.into_values().take(limit).collect()))
}

/// `GET /queues/{queue}`: with its relays.
async fn queue(
    directory: DirectoryHandle,
    Path(queue): Path<String>,
) -> ApiResult<Queue<Vec<Relay>>> {
    directory.ask_of(queue, |driver, queue| show::queue(driver, queue)).await.map(Json)
}

/// `PUT /queues/{queue}`: makes a queue, or defines it anew; 201 if it is new, 204 if it was there. Fields that
/// `text` does not name stay as they are. One that is being deleted is new: it is made when nothing of the old one is left.
async fn define(
    directory: DirectoryHandle,
    Path(queue): Path<String>,
    text: Bytes,
) -> Result<StatusCode, Refusal> {
    if queue.is_empty() || queue.len() > QUEUE_NAME_BYTES_MAX {
        return Err(Refusal::Name(queue.len()));
    }
    // One that is in the store is loaded first: what `text` leaves out is as it was.
    let begin = |driver: &mut Driver, queue: &str, text: &[u8]| {
        let known = driver.core.definition(queue).cloned();
        let base = known.as_ref().unwrap_or(&driver.default);
        let definition = redefined(driver, queue, base, text)?;
        driver.input(Input::Define { queue: queue.to_owned(), definition });
        Ok::<_, Refusal>(known.is_none())
    };
    let fields = text.clone();
    let loaded = directory.ask_of(queue.clone(), move |driver, queue| {
        driver.core.owns(queue).then(|| begin(driver, queue, &fields))
    });
    let is_new = match loaded.await {
        Err(Refusal::NoQueue(queue)) => {
            directory.ask(move |driver| begin(driver, &queue, &text)).await??
        }
        loaded => loaded??,
    };
    directory.wait_until_saved(queue).await?;
    Ok(if is_new { StatusCode::CREATED } else { StatusCode::NO_CONTENT })
}

/// Builds the definition `base` of a queue with the fields that `text` names, if it may have them.
fn redefined(
    driver: &Driver,
    queue: &str,
    base: &Definition,
    text: &[u8],
) -> Result<Definition, Refusal> {
    let definition = match text.trim_ascii() {
        b"" => base.clone(),
        text => {
            let fields = quelea_openapi::from_slice(text).map_err(Refusal::Body)?;
            Definition::over(base, fields)?
        }
    };
    definition.validate_in(queue, driver.core.settings())?;
    Ok(definition)
}

/// `DELETE /queues/{queue}`: with its relays, which may end after the answer: the record says by then that they are to.
async fn delete(
    directory: DirectoryHandle,
    Path(queue): Path<String>,
) -> Result<StatusCode, Refusal> {
    let deleting = directory.ask_of(queue.clone(), |driver, queue| {
        driver.core.queue(driver.now(), queue)?;
        driver.input(Input::Delete { queue: queue.to_owned() });
        Some(())
    });
    deleting.await?;
    // How it is defined meanwhile need not be.
    let is_recorded =
        |driver: &mut Driver, queue: &str| driver.core.is_recorded(queue).then_some(());
    match directory.ask_of(queue, is_recorded).await {
        Ok(()) | Err(Refusal::NoQueue(_)) => Ok(StatusCode::NO_CONTENT),
        Err(refusal) => Err(refusal),
    }
}

/// `GET /relays?after=QUEUE&limit=NUMBER`: the relays of all queues of this directory, queue by queue. No
/// queue's are torn: the page ends with the queue whose relays fill it, and `after` names the last queue of
/// which relays are known. Of one queue, `?queue=NAME&after=RELAY&limit=NUMBER`.
async fn relays(
    directory: DirectoryHandle,
    QueryFields(PageOfRelays { queue, after, limit }): QueryFields<PageOfRelays>,
) -> ApiResult<Vec<Relay>> {
    if let Some(queue) = queue {
        let number = after.map(RelayNumber::try_from).transpose();
        let after = number.map_err(|wrong| Refusal::Query(format!("after: {wrong}")))?;
        return relays_of(directory, Path(queue), QueryFields(Page { after, limit })).await;
    }
    let Limit(limit) = limit;
    let all = directory.ask(move |driver| {
        let mut relays = Vec::new();
        let mut names = driver.core.queue_names_after(after.as_deref());
        while relays.len() < limit {
            let Some(name) = names.next() else { break };
            relays.extend(show::relays(driver, name, None, usize::MAX).into_iter().flatten());
        }
        relays
    });
    all.await.map(Json)
}

/// `GET /queues/{queue}/relays?after=RELAY&limit=NUMBER`: by number.
async fn relays_of(
    directory: DirectoryHandle,
    Path(queue): Path<String>,
    QueryFields(page): QueryFields<Page<RelayNumber>>,
) -> ApiResult<Vec<Relay>> {
    let (after, limit) = (page.after.map(|RelayNumber(after)| after), page.limit.0);
    let relays =
        directory.ask_of(queue, move |driver, queue| show::relays(driver, queue, after, limit));
    relays.await.map(Json)
}

/// `GET /queues/{queue}/producers?after=ID&limit=NUMBER`: by id.
async fn producers(
    directory: DirectoryHandle,
    Path(queue): Path<String>,
    QueryFields(page): QueryFields<Page<ShownClientId>>,
) -> ApiResult<Vec<Producer>> {
    let (after, limit) = (page.after.map(|ShownClientId(after)| after), page.limit.0);
    let producers = directory.ask_of(queue, move |driver, queue| {
        driver.core.queue(driver.now(), queue)?;
        let producers = driver.core.producers(queue, after, limit);
        Some(producers.iter().map(|producer| show::producer(driver, producer)).collect())
    });
    producers.await.map(Json)
}

/// `GET /queues/{queue}/listeners?after=ID&limit=NUMBER`: by id.
async fn listeners(
    directory: DirectoryHandle,
    Path(queue): Path<String>,
    QueryFields(page): QueryFields<Page<ShownClientId>>,
) -> ApiResult<Vec<Listener>> {
    let (after, limit) = (page.after.map(|ShownClientId(after)| after), page.limit.0);
    let listeners = directory.ask_of(queue, move |driver, queue| {
        driver.core.queue(driver.now(), queue)?;
        Some(driver.core.listeners(queue, after, limit).iter().map(show::listener).collect())
    });
    listeners.await.map(Json)
}

/// `GET /events?queue=NAME&after=NUMBER`: what was decided and why, oldest first, above a number (of more than
/// are shown at once the oldest; above 0 the newest); of one queue, also of one that is gone, or of all.
async fn events(
    directory: DirectoryHandle,
    QueryFields(PageOfEvents { queue, after }): QueryFields<PageOfEvents>,
) -> ApiResult<Vec<Event>> {
    let shown = directory.ask(move |driver| {
        let events = driver.events.after(queue.as_deref(), after, EVENTS_SHOWN_MAX);
        events.into_iter().map(show::event).collect()
    });
    shown.await.map(Json)
}

/// `GET /queues/{queue}/events?after=NUMBER`.
async fn events_of(
    directory: DirectoryHandle,
    Path(queue): Path<String>,
    QueryFields(After { after }): QueryFields<After>,
) -> ApiResult<Vec<Event>> {
    events(directory, QueryFields(PageOfEvents { queue: Some(queue), after })).await
}

/// `POST /queues/{queue}/moves`: 202 when a producer is being moved. The body is JSON with `producer` (its id;
/// else any) and `to` (a relay's number; else the least loaded other one).
async fn move_producer(
    directory: DirectoryHandle,
    Path(queue): Path<String>,
    wanted: Bytes,
) -> Result<(StatusCode, Json<Move>), Refusal> {
    let wanted = MoveRequest::parse(&wanted)?;
    let name = queue.clone();
    let begun = directory.ask(move |driver| {
        driver.core.queue(driver.now(), &name)?;
        Some(wanted.begin(driver, &name))
    });
    let moved = match begun.await? {
        Some(begun) => begun.map_err(Refusal::Move)?,
        None => directory.ask_of(queue, |_, _| None).await?,
    };
    Ok((StatusCode::ACCEPTED, Json(moved)))
}

/// `GET /queues/{queue}/plan?definition=FIELDS`: what the planner would do about a queue now, as it is defined or if
/// it were defined so, and why; nothing of it is done.
async fn plan(
    directory: DirectoryHandle,
    Path(queue): Path<String>,
    QueryFields(PlanOf { definition }): QueryFields<PlanOf>,
) -> ApiResult<Plan> {
    let planned = directory.ask_of(queue, move |driver, queue| {
        let base = driver.core.queue(driver.now(), queue)?.definition;
        let text = definition.as_deref().unwrap_or_default();
        let plan_over = |definition: Definition| {
            let plan = driver.core.dry_run(driver.now(), queue, &definition)?;
            Some(show::plan(queue, &plan))
        };
        redefined(driver, queue, &base, text.as_bytes()).map(plan_over).transpose()
    });
    planned.await?.map(Json)
}

#[cfg(test)]
mod tests;
