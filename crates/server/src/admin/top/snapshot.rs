//! Snapshots of the broker, which is asked again and again.

use std::sync::mpsc::{Receiver, RecvTimeoutError, Sender};
use std::time::Duration;

use serde_json::Value;

use super::list::{LISTS, List};
use crate::admin::AdminError;
use crate::admin::client::{Client, ClientError, segment};
use crate::admin::sqs::Account;

/// Which list is wanted, and in which of its orders.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(super) struct Selection {
    pub(super) list: usize,
    pub(super) order: usize,
}

/// What the broker said, or why it did not.
pub(super) type SnapshotResult = Result<Snapshot, String>;

/// The broker at one moment.
#[derive(Debug)]
pub(super) struct Snapshot {
    pub(super) overview: Value,
    /// Of which list the rows are.
    pub(super) of: Selection,
    pub(super) rows: Vec<Value>,
    /// Why there are no rows.
    pub(super) refusal: Option<String>,
}

/// Takes one each `interval`, and at once when something else is wanted, until nobody listens any more.
pub(super) fn poll_snapshots(
    client: &Client,
    account: &Account,
    interval: Duration,
    selections: &Receiver<Selection>,
    sender: &Sender<SnapshotResult>,
) {
    let mut wanted = Selection::default();
    loop {
        match selections.recv_timeout(interval) {
            Ok(selection) => wanted = selections.try_iter().last().unwrap_or(selection),
            Err(RecvTimeoutError::Timeout) => {}
            Err(RecvTimeoutError::Disconnected) => return,
        }
        let result = take_snapshot(client, account, wanted).map_err(|error| error.to_string());
        if sender.send(result).is_err() {
            return;
        }
    }
}

fn take_snapshot(
    client: &Client,
    account: &Account,
    wanted: Selection,
) -> Result<Snapshot, AdminError> {
    // A front-end alone has no broker of which there were an overview.
    let overview = client.find("/api/overview")?.unwrap_or_default();
    let list = &LISTS[wanted.list];
    // A list may be refused alone: elastic queues by a broker that has none, or to this user.
    let (rows, refusal) = match rows(client, account, list, wanted.order) {
        Ok(rows) => (rows, None),
        Err(AdminError::Client(ClientError::Refused { reason, .. })) => (Vec::new(), Some(reason)),
        Err(error @ AdminError::NoAccount) => (Vec::new(), Some(error.to_string())),
        Err(error) => return Err(error),
    };
    Ok(Snapshot { overview, of: wanted, rows, refusal })
}

fn rows(
    client: &Client,
    account: &Account,
    list: &List,
    order: usize,
) -> Result<Vec<Value>, AdminError> {
    let account = if list.is_of_account() { account.id(client)? } else { String::new() };
    let path = list.path(order, &segment(&account));
    Ok(List::rows(client.get(&path)?))
}
