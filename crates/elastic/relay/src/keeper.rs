//! The connection to the keeper of a queue that stores its messages: sends KEEP, takes KEPT. While it is
//! lost, messages wait here as far as the producers' credit goes; then all is sent again.

use std::rc::Rc;
use std::time::Duration;

use bytes::{Bytes, BytesMut};
use quelea_elastic_proto::frame::{Frame, Hello, Role};
use quelea_elastic_proto::limits::VERSION;
use tokio::sync::Notify;
use tokio::time::{sleep, timeout};

use crate::frame_stream::{FrameReader, FrameWriter, StreamError, connect};
use crate::node::SharedNode;

/// The keeper is asked for a sign of life after so long a silence, and given up after another.
const SILENCE_MAX: Duration = Duration::from_secs(5);

/// Pauses between two attempts: doubled from the first to the last.
const PAUSE_MIN: Duration = Duration::from_millis(50);
const PAUSE_MAX: Duration = Duration::from_secs(2);

/// Bytes of KEEPs that are written at once, if there are so many.
const BATCH_BYTES: usize = 256 * 1024;

/// Bytes of one read: KEPTs are small.
const READ_BYTES: usize = 16 * 1024;

/// Why a connection to a keeper ended.
#[derive(Debug, thiserror::Error)]
enum Lost {
    #[error(transparent)]
    Stream(#[from] StreamError),
    #[error("it sent a frame that no keeper sends")]
    Unexpected,
    #[error("it has said nothing for {:?}, and does not answer PING", 2 * SILENCE_MAX)]
    Silent,
    #[error("the queue's settings name another one, or none")]
    Changed,
}

/// Keeps for as long as the relay runs, whenever its settings say so.
pub(crate) async fn run(node: SharedNode, key: Bytes) {
    let work = node.with(|node| Rc::clone(&node.keeper));
    let mut pause = PAUSE_MIN;
    loop {
        let Some(keeper) = wanted(&node) else {
            work.notified().await;
            continue;
        };
        let mut kept = false;
        let lost = match serve(&node, &work, &key, &keeper, &mut kept).await {
            Ok(never) => match never {},
            Err(lost) => lost,
        };
        node.with(|node| node.relay.resend_keeps());
        tracing::warn!(keeper = keeper.0, %lost, "lost the keeper; what is not stored waits");
        // In one line: a crate that counts waits would have to begin anew here, too.
        pause = if kept { PAUSE_MIN } else { PAUSE_MAX.min(pause * 2) };
        sleep(pause).await;
    }
}

/// Returns the keeper's address and the durable queue there, only if something is to be kept.
fn wanted(node: &SharedNode) -> Option<(String, String)> {
    node.with(|node| {
        let keeper =
            node.relay.keeper().map(|(address, target)| (address.to_owned(), target.to_owned()));
        keeper.filter(|_| node.relay.has_keeps())
    })
}

async fn serve(
    node: &SharedNode,
    work: &Notify,
    key: &Bytes,
    keeper: &(String, String),
    kept: &mut bool,
) -> Result<std::convert::Infallible, Lost> {
    let queue = node.with(|node| node.relay.queue().to_owned());
    let name = format!("relay of {queue}");
    let hello = Hello { version: VERSION, role: Role::Keeper, name, key: key.clone() };
    let open = Frame::KeepOpen { queue, target: keeper.1.clone() };
    let connected = connect(&keeper.0, &[Frame::Hello(hello), open], READ_BYTES).await;
    let (mut reader, mut writer) = connected?;
    let silent = Notify::new();
    tokio::select! {
        lost = keep(node, work, &silent, &mut writer, keeper) => lost,
        lost = take(node, &silent, &mut reader, kept) => lost,
    }
}

/// Sends what there is, and waits for more.
async fn keep(
    node: &SharedNode,
    work: &Notify,
    silent: &Notify,
    writer: &mut FrameWriter,
    keeper: &(String, String),
) -> Result<std::convert::Infallible, Lost> {
    loop {
        let mut batch = BytesMut::new();
        node.with(|node| {
            let named = node.relay.keeper();
            if named != Some((&*keeper.0, &*keeper.1)) {
                return Err(Lost::Changed);
            }
            while batch.len() < BATCH_BYTES
                && let Some(frame) = node.relay.poll_keep()
            {
                frame.encode(&mut batch).map_err(StreamError::from)?;
            }
            Ok(())
        })?;
        if !batch.is_empty() {
            writer.send_bytes(&batch).await?;
            continue;
        }
        tokio::select! {
            () = work.notified() => {}
            () = silent.notified() => writer.send(&[Frame::Ping(0)]).await?,
        }
    }
}

/// Takes what is stored. A keeper whose machine is gone silently would be waited for as long as TCP
/// tries: it is sent a PING.
async fn take(
    node: &SharedNode,
    silent: &Notify,
    reader: &mut FrameReader,
    kept: &mut bool,
) -> Result<std::convert::Infallible, Lost> {
    loop {
        let frame = match timeout(SILENCE_MAX, reader.next()).await {
            Ok(frame) => frame?,
            Err(_) => {
                silent.notify_one();
                timeout(SILENCE_MAX, reader.next()).await.map_err(|_| Lost::Silent)??
            }
        };
        match frame {
            Frame::Kept { producer, below } => {
                *kept = true;
                node.with(|node| {
                    node.relay.kept(producer, below);
                    node.want_turn();
                });
            }
            Frame::Error(error) if error.fatal => return Err(StreamError::Refused(error).into()),
            Frame::Error(error) => tracing::warn!(error.text, "the keeper refuses"),
            Frame::Ping(_) | Frame::Pong(_) => {}
            Frame::Bye(_) => return Err(StreamError::Closed.into()),
            _ => return Err(Lost::Unexpected),
        }
    }
}
