//! `/quelea/v1/log`: the segments of the broker's log.

use axum::Json;
use quelea_openapi::{Limit, Operation, Route};
use quelea_store::SegmentReport;
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use crate::call::Call;
use crate::error::ApiError;
use crate::state::ApiState;

/// The most segments that one answer holds: 64 GiB of log.
const SEGMENTS_SHOWN_MAX: usize = 1_000;

pub(super) fn routes() -> Vec<Route<ApiState>> {
    let operation = Operation::new("Returns the segments of the log, the oldest first")
        .query::<SegmentsQuery>()
        .answers::<Vec<LogSegment>>(200);
    vec![Route::at("/log/segments").get(segments, operation)]
}

/// `?after=NUMBER&limit=NUMBER`.
#[derive(Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
struct SegmentsQuery {
    /// Only those with a greater number.
    #[serde(default)]
    after: u32,
    /// How many at most.
    #[serde(default)]
    limit: Limit<SEGMENTS_SHOWN_MAX>,
}

/// A segment of the log: a file of records of all queues.
#[derive(Serialize, JsonSchema)]
struct LogSegment {
    /// A later segment has later records.
    number: u32,
    /// The file's name in the data directory; none before the first write.
    file: Option<String>,
    capacity_bytes: u32,
    used_bytes: u32,
    /// Of messages that are still in queues, estimated from their number.
    live_bytes: u64,
    /// Messages that are still in queues, counted once for each queue.
    live_messages: u32,
    /// Whether a restart needs it though no message in it is live: a checkpoint frees it.
    replayed: bool,
}

/// `GET /log/segments`.
async fn segments(call: Call) -> Result<Json<Vec<LogSegment>>, ApiError> {
    let SegmentsQuery { after, limit: Limit(limit) } = call.query()?;
    let (api, user, []) = call.parts();
    user.require_monitoring()?;
    let segments = api.on_core(move |core| core.broker.log_segments(after, limit)).await?;
    Ok(Json(segments.into_iter().map(LogSegment::from).collect()))
}

impl From<SegmentReport> for LogSegment {
    fn from(report: SegmentReport) -> Self {
        Self {
            number: report.number,
            file: report.file,
            capacity_bytes: report.capacity_bytes,
            used_bytes: report.used_bytes,
            live_bytes: report.live_bytes,
            live_messages: report.live_messages,
            replayed: report.is_replayed,
        }
    }
}
