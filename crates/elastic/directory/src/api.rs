//! What people and programs ask a directory: queues, relays, events, plans, as JSON.

mod page;
mod show;

use std::collections::BTreeMap;
use std::time::Duration;

use bytes::Bytes;
use quelea_elastic_core::directory::{Definition, DefinitionError, Input};
use quelea_elastic_core::ownership::Picture;
use quelea_elastic_proto::limits::QUEUE_NAME_BYTES_MAX;
use quelea_elastic_proto::{ClientId, RelayId};
use serde_json::{Value, json};
use tokio::sync::oneshot;
use tokio::time::{Instant, sleep, timeout};

pub use self::page::{PAGE_MAX, Page};
use crate::driver::Driver;
use crate::ownership::Command;
use crate::server::DirectoryHandle;

/// How long a definition may take to be written; it is refused beyond, although it may still be.
const SAVED_MAX: Duration = Duration::from_secs(5);
/// How often that is looked at: it takes about a write to the metadata store.
const SAVED_CHECK: Duration = Duration::from_millis(2);
/// How long the task that knows who owns what may take to answer: about what the store and the provider may
/// take, on which it may be waiting.
const PICTURE_MAX: Duration = Duration::from_secs(15);
/// Events that are shown at once.
const EVENTS_SHOWN_MAX: usize = 1_000;

/// How often it is looked whether a queue that is being claimed is owned now, and the pause between: two
/// seconds, after which the store does not answer.
const CLAIM_LOOKS_MAX: u32 = 100;
const CLAIM_PAUSE: Duration = Duration::from_millis(20);

/// Why there is no answer.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum Refusal {
    /// No such queue, here or elsewhere.
    #[error("there is no elastic queue {0:?}")]
    NoQueue(String),
    /// Another directory controls it.
    #[error("elastic queue {queue:?} is controlled by the directory at {owner}: ask there")]
    Elsewhere {
        /// The queue.
        queue: String,
        /// That directory's address.
        owner: String,
    },
    /// It is known, but not read yet.
    #[error("elastic queue {0:?} is being taken over: try again")]
    Claiming(String),
    /// A queue's name that is none.
    #[error("queue: a name has from 1 to {QUEUE_NAME_BYTES_MAX} bytes, this one {0}")]
    Name(usize),
    /// A definition that is none.
    #[error(transparent)]
    Definition(#[from] DefinitionError),
    /// More, or less, than one answer can hold.
    #[error("limit must be from 1 to {PAGE_MAX}, is {0}")]
    Limit(usize),
    /// A relay's number that is none.
    #[error("after must be a relay's number, is {0:?}")]
    RelayId(String),
    /// A client's id that is none.
    #[error("{field} must be an id in hexadecimal digits, is {value:?}")]
    ClientId {
        /// Which field of the request.
        field: &'static str,
        /// What it holds.
        value: String,
    },
    /// What was asked for is no move.
    #[error("{0}")]
    NoMove(String),
    /// It cannot be moved now.
    #[error("{0}")]
    Move(String),
    /// Who owns what could not be found out in time.
    #[error("the directory does not say within {} s who owns which queue: try again", PICTURE_MAX.as_secs())]
    Late,
    /// The directory has stopped.
    #[error("the directory is stopping")]
    Stopped,
}

type Answer = Result<Value, Refusal>;

impl DirectoryHandle {
    /// All queues, by name: those of this directory with their state and the number of their relays, others with
    /// their owner.
    ///
    /// # Errors
    /// See [`Refusal`], here and below.
    pub async fn queues(&self, page: Page) -> Answer {
        let limit = page.limit()?;
        let after = page.after.clone();
        let own = self.ask(move |driver| {
            let names = driver.core.queue_names_after(after.as_deref()).map(str::to_owned);
            let shown = names.filter_map(|name| {
                let shown = show::listed_queue(driver, &name)?;
                Some((name, shown))
            });
            // What is only being claimed is shown as what it is known to be: nobody's, or another's.
            shown.take(limit).collect::<BTreeMap<_, _>>()
        });
        let mut queues = own.await?;
        let elsewhere =
            self.picture(move |picture| picture.queues_and_owners(page.after.as_deref(), limit));
        for (name, owner) in elsewhere.await? {
            let shown = json!({ "name": name, "owner": owner });
            queues.entry(name).or_insert(shown);
        }
        Ok(queues.into_values().take(limit).collect())
    }

    /// The directories that share the queues, as this one knows them and as relays are told: this one first.
    pub async fn directories(&self) -> Answer {
        self.ask(|driver| {
            let shown = |address: &String| json!({ "address": address, "this": *address == driver.advertise });
            let known = driver.core.directories();
            let alone = std::slice::from_ref(&driver.advertise);
            if known.is_empty() { alone } else { known }.iter().map(shown).collect()
        })
        .await
    }

    /// One queue with its relays.
    pub async fn queue(&self, queue: String) -> Answer {
        self.of_queue(queue, |driver, queue| show::queue(driver, queue)).await
    }

    /// Makes a queue, or defines it anew. Fields that `text` does not name stay as they are.
    pub async fn define(&self, queue: String, text: Bytes) -> Answer {
        if queue.is_empty() || queue.len() > QUEUE_NAME_BYTES_MAX {
            return Err(Refusal::Name(queue.len()));
        }
        self.not_elsewhere(&queue).await?;
        let name = queue.clone();
        let defined = self.ask(move |driver| {
            let now = driver.now();
            let known = driver.core.queue(now, &queue).map(|status| status.definition);
            let base = known.as_ref().unwrap_or(&driver.default);
            let definition = match text.trim_ascii() {
                b"" => base.clone(),
                text => Definition::parse_over(base, text)?,
            };
            definition.validate_in(&queue, driver.core.settings())?;
            driver.input(Input::Define { queue, definition });
            Ok::<_, Refusal>(json!({ "new": known.is_none() }))
        });
        let defined = defined.await??;
        self.wait_until_saved(name).await?;
        Ok(defined)
    }

    /// A new queue is claimed first; what was answered outlives this process.
    async fn wait_until_saved(&self, queue: String) -> Result<(), Refusal> {
        let until = Instant::now() + SAVED_MAX;
        while Instant::now() < until {
            let name = queue.clone();
            if self.ask(move |driver| driver.core.is_saved(&name)).await? {
                return Ok(());
            }
            sleep(SAVED_CHECK).await;
        }
        Err(Refusal::Claiming(queue))
    }

    /// Removes a queue with its relays.
    pub async fn delete(&self, queue: String) -> Answer {
        self.of_queue(queue, |driver, queue| {
            driver.core.queue(driver.now(), queue)?;
            driver.input(Input::Delete { queue: queue.to_owned() });
            Some(Value::Null)
        })
        .await
    }

    /// The relays of a queue, by number.
    pub async fn relays(&self, queue: String, page: Page) -> Answer {
        let (after, limit) = (page.after_relay()?, page.limit()?);
        self.of_queue(queue, move |driver, queue| {
            Some(show::relays(driver, queue, after, limit)?.into())
        })
        .await
    }

    /// The relays of all queues of this directory, queue by queue. No queue's are torn: the page ends with the
    /// queue whose relays fill it, and `after` names the last queue of which relays are known.
    pub async fn all_relays(&self, page: Page) -> Answer {
        let limit = page.limit()?;
        let all = self.ask(move |driver| {
            let mut relays = Vec::new();
            let mut names = driver.core.queue_names_after(page.after.as_deref());
            while relays.len() < limit {
                let Some(name) = names.next() else { break };
                relays.extend(show::relays(driver, name, None, usize::MAX).into_iter().flatten());
            }
            relays
        });
        all.await.map(Value::Array)
    }

    /// A queue's producers, by id.
    pub async fn producers(&self, queue: String, page: Page) -> Answer {
        let (after, limit) = (page.after_client()?, page.limit()?);
        self.of_queue(queue, move |driver, queue| {
            driver.core.queue(driver.now(), queue)?;
            let producers = driver.core.producers(queue, after, limit);
            Some(producers.iter().map(|producer| show::producer(driver, producer)).collect())
        })
        .await
    }

    /// A queue's listeners, by id.
    pub async fn listeners(&self, queue: String, page: Page) -> Answer {
        let (after, limit) = (page.after_client()?, page.limit()?);
        self.of_queue(queue, move |driver, queue| {
            driver.core.queue(driver.now(), queue)?;
            let listeners = driver.core.listeners(queue, after, limit);
            Some(listeners.iter().map(show::listener).collect())
        })
        .await
    }

    /// What was decided and why, oldest first, above a number (of more than are shown at once the oldest; above 0
    /// the newest); of one queue, also of one that is gone, or of all.
    pub async fn events(&self, queue: Option<String>, after: u64) -> Answer {
        let shown = self.ask(move |driver| {
            let events = driver.events.after(queue.as_deref(), after, EVENTS_SHOWN_MAX);
            events.into_iter().map(show::event).collect()
        });
        shown.await.map(Value::Array)
    }

    /// Has a producer moved. `wanted` is JSON with `producer` (its id; else any) and `to` (a relay's
    /// number; else the least loaded other one).
    pub async fn move_producer(&self, queue: String, wanted: Bytes) -> Answer {
        let wanted = Wanted::parse(&wanted)?;
        let name = queue.clone();
        let begun = self.ask(move |driver| {
            driver.core.queue(driver.now(), &name)?;
            Some(driver.begin_move(&name, wanted.producer, wanted.to))
        });
        match begun.await? {
            Some(begun) => begun.map_err(Refusal::Move),
            None => self.of_queue(queue, |_, _| None).await,
        }
    }

    /// What the planner would do about a queue now, and why.
    pub async fn plan(&self, queue: String) -> Answer {
        self.of_queue(queue, |driver, queue| {
            let now = driver.now();
            let plan = driver.core.dry_run(now, queue)?;
            Some(show::plan(queue, &plan))
        })
        .await
    }

    /// Asks about a queue; `None` of `look` is told as what it means.
    async fn of_queue(
        &self,
        queue: String,
        look: impl FnOnce(&mut Driver, &str) -> Option<Value> + Send + 'static,
    ) -> Answer {
        self.claimed(&queue).await?;
        let name = queue.clone();
        if let Some(value) = self.ask(move |driver| look(driver, &name)).await? {
            return Ok(value);
        }
        self.not_elsewhere(&queue).await?;
        let name = queue.clone();
        match self.picture(move |picture| picture.knows(&name)).await? {
            true => Err(Refusal::Claiming(queue)),
            false => Err(Refusal::NoQueue(queue)),
        }
    }

    /// Waits while this directory is about to own the queue: who has just made it is not told that it is
    /// unknown.
    async fn claimed(&self, queue: &str) -> Result<(), Refusal> {
        for _ in 0..CLAIM_LOOKS_MAX {
            let name = queue.to_owned();
            if !self.ask(move |driver| driver.core.is_claiming(&name)).await? {
                break;
            }
            sleep(CLAIM_PAUSE).await;
        }
        Ok(())
    }

    async fn not_elsewhere(&self, queue: &str) -> Result<(), Refusal> {
        let name = queue.to_owned();
        match self.picture(move |picture| picture.elsewhere(&name)).await? {
            Some(owner) => Err(Refusal::Elsewhere { queue: queue.to_owned(), owner }),
            None => Ok(()),
        }
    }

    async fn ask<T: Send + 'static>(
        &self,
        look: impl FnOnce(&mut Driver) -> T + Send + 'static,
    ) -> Result<T, Refusal> {
        self.call(look).await.ok_or(Refusal::Stopped)
    }

    async fn picture<T: Send + 'static>(
        &self,
        look: impl FnOnce(&Picture) -> T + Send + 'static,
    ) -> Result<T, Refusal> {
        let (tell, told) = oneshot::channel();
        let look = Box::new(move |picture: &Picture| {
            // Who asked may have gone.
            let _ = tell.send(look(picture));
        });
        self.ownership().send(Command::Look(look)).map_err(|_| Refusal::Stopped)?;
        match timeout(PICTURE_MAX, told).await {
            Ok(told) => told.map_err(|_| Refusal::Stopped),
            Err(_) => Err(Refusal::Late),
        }
    }
}

/// A move that somebody wants.
struct Wanted {
    producer: Option<ClientId>,
    to: Option<RelayId>,
}

impl Wanted {
    fn parse(text: &[u8]) -> Result<Self, Refusal> {
        let no_move = |what: &str| Refusal::NoMove(what.to_owned());
        let wanted: Value = match text.trim_ascii() {
            b"" => Value::Null,
            text => serde_json::from_slice(text)
                .map_err(|error| Refusal::NoMove(format!("no JSON object: {error}")))?,
        };
        let producer = match &wanted["producer"] {
            Value::Null => None,
            Value::String(id) => Some(page::client("producer", id)?),
            _ => return Err(no_move("producer must be an id in hexadecimal digits")),
        };
        let to =
            match &wanted["to"] {
                Value::Null => None,
                to => Some(to.as_u64().map(RelayId).ok_or_else(|| {
                    Refusal::NoMove(format!("to must be a relay's number, is {to}"))
                })?),
            };
        Ok(Self { producer, to })
    }
}

impl Driver {
    fn begin_move(
        &mut self,
        queue: &str,
        producer: Option<ClientId>,
        to: Option<RelayId>,
    ) -> Result<Value, String> {
        let (moved, to) = self.core.move_refusal(queue, producer, to)?;
        let from = self.core.producers(queue, None, usize::MAX);
        let from = from.iter().find(|known| known.id == moved).and_then(|known| known.relay);
        let from = from.ok_or_else(|| "the producer is at no relay yet".to_owned())?;
        // Not named, it is the same one again, and the next time another.
        self.input(Input::Move { queue: queue.to_owned(), producer, to: Some(to) });
        Ok(json!({ "producer": show::client(moved), "from": from.0, "to": to.0 }))
    }
}
