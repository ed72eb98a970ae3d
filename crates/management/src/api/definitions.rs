//! `/api/definitions`: all that is declared, out as RabbitMQ's JSON and in from it. An import is checked as a whole
//! (`check.rs`) before anything changes (`apply.rs`), and what has been made by one that fails is taken back.

mod apply;
mod check;
mod document;
mod existing;
mod export;
mod sqs;

use std::sync::Arc;

use axum::http::header::CONTENT_DISPOSITION;
use axum::http::{HeaderMap, StatusCode};
use axum::{Extension, Json};
use schemars::JsonSchema;
use serde::Deserialize;
use serde_json::Value;
use tokio::sync::{OwnedSemaphorePermit, TryAcquireError};

use self::document::Document;
use crate::audit::Imported;
use crate::call::Call;
use crate::error::ApiError;
use crate::operation::{existed, vhost_exists};
use crate::state::BrokerState;

/// `GET /api/definitions`.
pub(super) async fn all<S: BrokerState>(call: Call<S>) -> ExportAnswer {
    let headers = call.query::<ExportQuery>()?.headers()?;
    let (api, user, []) = call.parts();
    user.require_administrator()?;
    Ok((headers, Json(export::all(&api).await?)))
}

/// `GET /api/definitions/{vhost}`: queues, exchanges and bindings.
pub(super) async fn of_vhost<S: BrokerState>(call: Call<S>) -> ExportAnswer {
    let headers = call.query::<ExportQuery>()?.headers()?;
    let (api, user, [vhost]) = call.parts();
    user.require_administrator()?;
    existed(vhost_exists(api.broker(), &vhost).await?)?;
    Ok((headers, Json(export::of_vhost(api.broker(), vhost).await?)))
}

type ExportAnswer = Result<(HeaderMap, Json<Value>), ApiError>;

#[derive(Debug, Default, Deserialize, JsonSchema)]
pub(super) struct ExportQuery {
    /// The name of a file, as which a browser keeps the answer.
    download: Option<String>,
}

impl ExportQuery {
    fn headers(&self) -> Result<HeaderMap, ApiError> {
        let mut headers = HeaderMap::new();
        if let Some(wanted) = self.download.as_deref().filter(|wanted| !wanted.is_empty()) {
            let shown = format!("attachment; filename={}", plain_file_name(wanted));
            headers.insert(CONTENT_DISPOSITION, shown.parse().map_err(ApiError::bad)?);
        }
        Ok(headers)
    }
}

/// Returns a file name that no shell, header or path takes for something else.
fn plain_file_name(wanted: &str) -> String {
    let is_plain = |char: char| char.is_ascii_alphanumeric() || "-_.".contains(char);
    let plain = wanted.chars().take(FILE_NAME_CHARS_MAX);
    let plain: String = plain.map(|char| if is_plain(char) { char } else { '_' }).collect();
    match plain.strip_prefix('.') {
        Some(rest) => format!("_{rest}"),
        None => plain,
    }
}

const FILE_NAME_CHARS_MAX: usize = 128;

#[derive(Debug, Default, Deserialize, JsonSchema)]
pub(super) struct ImportQuery {
    /// What this version does not have is left out instead of refused.
    #[serde(default)]
    skip_unsupported: bool,
}

/// `POST /api/definitions`, with `?skip_unsupported=true` perhaps.
pub(super) async fn import_all<S: BrokerState>(call: Call<S>) -> ImportAnswer {
    let (query, turn) = begin(&call)?;
    let (api, _, [], body) = call.parts_and_document().await?;
    finish(api, turn, body, None, query).await
}

/// `POST /api/definitions/{vhost}`: what names no virtual host is for this one.
pub(super) async fn import_in<S: BrokerState>(call: Call<S>) -> ImportAnswer {
    let (query, turn) = begin(&call)?;
    let (api, _, [vhost], body) = call.parts_and_document().await?;
    existed(vhost_exists(api.broker(), &vhost).await?)?;
    finish(api, turn, body, Some(vhost), query).await
}

/// Makes the checks that come before the document is read, and returns the query and the import's
/// turn. One import runs at a time: its document may be large, and two could contradict each other.
fn begin<S: BrokerState>(call: &Call<S>) -> Result<(ImportQuery, OwnedSemaphorePermit), ApiError> {
    call.user().require_administrator()?;
    let query = call.query()?;
    let turn = Arc::clone(&call.state().broker().imports).try_acquire_owned();
    let turn = turn.map_err(|refused| match refused {
        TryAcquireError::NoPermits => ApiError::Busy("another import is under way"),
        TryAcquireError::Closed => ApiError::Stopping,
    })?;
    Ok((query, turn))
}

/// Carries out an import in a task of its own: it ends, or is taken back, though its client does
/// not wait for that.
async fn finish(
    api: impl BrokerState,
    turn: OwnedSemaphorePermit,
    body: Value,
    vhost: Option<String>,
    query: ImportQuery,
) -> ImportAnswer {
    let may_skip = match query.skip_unsupported {
        true => Ok(()),
        false => Err("skip_unsupported=true imports the rest"),
    };
    let document = read(&body, vhost.as_deref(), may_skip)?;
    let importing = tokio::spawn(async move {
        let imported = import(&api, document).await;
        drop(turn);
        imported
    });
    let imported = importing.await.map_err(|_| ApiError::Stopping)??;
    Ok((StatusCode::NO_CONTENT, Extension(imported)))
}

/// The audit trail says how much it was.
type ImportAnswer = Result<(StatusCode, Extension<Imported>), ApiError>;

/// Definitions that were read, and not yet compared with what stands.
#[derive(Debug)]
pub struct Definitions(Document);

/// Why definitions were not imported.
#[derive(Debug)]
pub struct ImportError {
    /// What is wrong and where, for people.
    pub reason: String,
    /// It is the document that is wrong: it will not be imported before it is corrected.
    pub is_of_document: bool,
}

impl Definitions {
    /// Reads JSON as `GET /api/definitions` answers it.
    ///
    /// # Errors
    /// [`ImportError`] with the first thing that is wrong and where it stands.
    pub fn parse(text: &str) -> Result<Self, ImportError> {
        let body = serde_json::from_str(text)
            .map_err(|error| ImportError { reason: error.to_string(), is_of_document: true })?;
        Ok(Self(read(&body, None, Err("take it out of the file"))?))
    }

    /// Makes what they say, or nothing.
    pub(super) async fn import(self, api: &impl BrokerState) -> Result<Imported, ImportError> {
        Ok(import(api, self.0).await?)
    }
}

impl From<ApiError> for ImportError {
    fn from(error: ApiError) -> Self {
        let is_of_document = matches!(error, ApiError::BadRequest(_));
        Self { reason: error.reason(), is_of_document }
    }
}

/// Reads a document. `may_skip`: whether what is not supported is left out, or how to have the rest
/// imported.
fn read(
    body: &Value,
    vhost: Option<&str>,
    may_skip: Result<(), &str>,
) -> Result<Document, ApiError> {
    let document = Document::parse(body, vhost)?;
    match may_skip {
        Err(advice) if !document.unsupported.is_empty() => {
            let all = document.unsupported.join(", ");
            Err(ApiError::BadRequest(format!("not supported yet: {all}; {advice}")))
        }
        _ => Ok(document),
    }
}

/// Makes what the document says, or nothing.
///
/// # Errors
/// [`ApiError::BadRequest`] with the first thing that is wrong and where it stands.
async fn import(api: &impl BrokerState, document: Document) -> Result<Imported, ApiError> {
    let existing = existing::read(api).await?;
    check::check(&document, &existing)?;
    let imported = document.counts();
    apply::apply(api, document, &existing).await?;
    Ok(imported)
}

#[cfg(test)]
mod tests {
    use std::collections::BTreeMap;

    use serde_json::json;

    use super::existing::ExistingTopology;
    use super::*;
    use crate::test_broker::TestBroker;

    /// Returns a binding from an exchange that stands, auto-deletes and leads nowhere yet.
    fn binding() -> Value {
        json!([{"vhost": "/", "source": "events", "destination": "q", "destination_type": "queue"}])
    }

    /// Starts a broker with that exchange, which is the only one that two others lead to.
    async fn broker() -> TestBroker {
        let broker = TestBroker::start();
        let exchange = |name, auto_delete| json!({"vhost": "/", "name": name, "type": "fanout", "auto_delete": auto_delete});
        let leads = |source, destination| {
            json!({
                "vhost": "/", "source": source, "destination": destination, "destination_type": "exchange",
                "routing_key": "k", "arguments": {"of": source},
            })
        };
        import_json(
            &broker,
            json!({
                "exchanges": [
                    exchange("events", true), exchange("far", true), exchange("near", true),
                    exchange("beside", false),
                ],
                "queues": [{"vhost": "/", "name": "q"}],
                "bindings": [leads("far", "near"), leads("near", "events"), leads("beside", "events")],
            }),
        )
        .await
        .unwrap();
        broker
    }

    async fn import_json(broker: &TestBroker, body: Value) -> Result<(), String> {
        let document = read(&body, None, Err("")).map_err(ApiError::reason)?;
        import(&broker.api, document).await.map(drop).map_err(ApiError::reason)
    }

    async fn standing(broker: &TestBroker) -> ExistingTopology {
        existing::read(&broker.api).await.unwrap()
    }

    #[tokio::test]
    async fn a_queue_that_a_broker_named_keeps_its_name() {
        let broker = TestBroker::start();
        let document = |name| json!({"queues": [{"vhost": "/", "name": name}]});
        for _ in 0..2 {
            import_json(&broker, document("amq.gen-JzTY20BRgKO-HjmUJj0wLg")).await.unwrap();
        }
        let place = ("/".to_owned(), "amq.gen-JzTY20BRgKO-HjmUJj0wLg".to_owned());
        assert!(standing(&broker).await.queues.contains_key(&place));
        let refused = import_json(&broker, document("amq.other")).await.unwrap_err();
        assert!(refused.contains("reserved"), "{refused}");
    }

    #[tokio::test]
    async fn a_refused_import_leaves_auto_delete_exchanges_as_they_were() {
        let broker = broker().await;
        let before = standing(&broker).await;
        let permission = json!({
            "user": "guest", "vhost": "/", "exchange": "events", "write": "(", "read": ".*",
        });
        let document = json!({"bindings": binding(), "topic_permissions": [permission]});
        let refused = import_json(&broker, document).await.unwrap_err();
        assert!(refused.starts_with("topic_permissions[0]"), "{refused}");
        let after = standing(&broker).await;
        assert_eq!(after.bindings, before.bindings);
        let facts = |topology: &ExistingTopology| {
            let facts = topology.exchanges.values().map(|it| {
                (it.name.to_string(), (it.kind, it.durable, it.auto_delete, it.arguments.clone()))
            });
            facts.collect::<BTreeMap<_, _>>()
        };
        assert_eq!(facts(&after), facts(&before));
    }

    #[tokio::test]
    async fn what_is_wrong_by_itself_shows_before_anything_is_made() {
        let broker = broker().await;
        let ids = async || {
            let found = standing(&broker).await.exchanges;
            found.into_values().map(|it| (it.name.to_string(), it.id)).collect::<BTreeMap<_, _>>()
        };
        let before = ids().await;
        let user = |name, hash| json!({"name": name, "password_hash": hash, "tags": ""});
        let permission = |configure| json!({"user": "guest", "vhost": "/", "configure": configure, "write": "", "read": ""});
        for (section, wrong) in [
            ("users", user("", "")),
            ("users", user("ada", "no hash")),
            ("permissions", permission("(")),
        ] {
            let mut document = json!({"bindings": binding()});
            document[section] = json!([wrong]);
            let refused = import_json(&broker, document).await.unwrap_err();
            assert!(refused.starts_with(section), "{refused}");
            assert_eq!(ids().await, before, "nothing was made and taken back");
        }
    }

    #[test]
    fn a_download_has_a_plain_name() {
        for (wanted, name) in [
            ("rabbit_1.json", "rabbit_1.json"),
            ("../a b\r\nX: y", "_._a_b__X__y"),
            (".profile", "_profile"),
            ("\u{e9};\"", "___"),
        ] {
            assert_eq!(plain_file_name(wanted), name);
        }
    }
}
