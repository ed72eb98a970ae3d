//! Keyspaces as earlier versions of the schema left them, with messages and users in them, are brought up to date by whoever starts.

use std::collections::BTreeMap;

use quelea_cassandra_store::{CassandraIdentity, CassandraQueues, CassandraSettings};
use quelea_sqs_protocol::{
    AccessKeyRecord, AccountNames, Created, IdentityDirectory as _, NewMessage, NewQueue,
    PermissionRecord, QueueClass, QueueRef, Queues, ReceiptOutcome, UserRecord,
};
use scylla::client::session::Session;
use scylla::client::session_builder::SessionBuilder;

use crate::shards::{levels, narrow_settings, send_many};
use crate::site::{ACCOUNT, Site, message, queue, receive, send, settings};

/// What version 6 added.
const OF_VERSION_6: [&str; 1] = ["ALTER TABLE @front_end DROP version"];

/// A front-end of version 5, as its row says that it is alive.
const ROW_OF_VERSION_5: &str = "INSERT INTO @front_end (slot, id, address, beat)
     VALUES (0, 00000000-0000-0000-0000-000000000005, '127.0.0.1:9', 1) USING TTL 600";

/// How version 4 stored queues.
const OF_VERSION_5: [&str; 1] = ["ALTER TABLE @queue WITH gc_grace_seconds = 864000
     AND compaction = {'class': 'SizeTieredCompactionStrategy'}"];

/// Queues as version 4 deletes them, one of them long ago, and makes them.
const CHANGES_OF_VERSION_4: [&str; 3] = [
    "UPDATE @queue USING TTL 600 SET id = null, generation = null, attributes = null, tags = null,
        created_at = null, modified_at = null, purged_at = null, revision = null, change = uuid(),
        deleted_at = 9000000000000 WHERE account = '000000000000' AND name = 'deleted' IF id != null",
    "UPDATE @queue USING TTL 600 SET id = null, generation = null, attributes = null, tags = null,
        created_at = null, modified_at = null, purged_at = null, revision = null, change = uuid(),
        deleted_at = 1 WHERE account = '000000000000' AND name = 'deleted-long-ago' IF id != null",
    "UPDATE @queue SET id = uuid(), generation = uuid(), attributes = {}, tags = {}, created_at = 1,
        modified_at = 1, revision = 1, change = uuid(), deleted_at = null
     WHERE account = '000000000000' AND name = 'made' IF id = null AND deleted_at = null",
];

/// What version 4 added.
const OF_VERSION_4: [&str; 4] = [
    "ALTER TABLE @account DROP (revision, change, maker)",
    "ALTER TABLE @user DROP (revision, change)",
    "ALTER TABLE @permission DROP (revision, change)",
    "ALTER TABLE @access_key DROP (revision, change)",
];

/// Rows as version 3 writes them.
const ROWS_OF_VERSION_3: [&str; 4] = [
    "INSERT INTO @account (slot, account, created_at) VALUES (0, 'kept', 1) IF NOT EXISTS",
    "INSERT INTO @user (slot, password_hash, tags, name) VALUES (0, 'hash', ['tag'], 'kept') IF NOT EXISTS",
    "INSERT INTO @permission (slot, configure, write, read, account, user)
     VALUES (0, '', '', 'x', 'kept', 'kept') IF NOT EXISTS",
    "INSERT INTO @access_key (slot, account, user, secret, is_enabled, created_at, id)
     VALUES (0, 'kept', 'kept', 'secret', true, 1, 'KEPT') IF NOT EXISTS",
];

/// Changes of those as version 3 makes them, which leave the revision as it is.
const CHANGES_OF_VERSION_3: [&str; 4] = [
    "UPDATE @user SET password_hash = 'old', tags = [] WHERE slot = 0 AND name = 'beside' IF EXISTS",
    "DELETE FROM @permission WHERE slot = 0 AND account = 'beside' AND user = 'beside' IF EXISTS",
    "UPDATE @access_key SET is_enabled = false WHERE slot = 0 AND id = 'BESIDE' IF EXISTS",
    "INSERT INTO @account (slot, account, created_at) VALUES (0, 'made-beside', 1) IF NOT EXISTS",
];

/// What version 3 added.
const OF_VERSION_3: [&str; 3] = [
    "DROP TABLE @elastic_metadata",
    "ALTER TABLE @entry DROP message_group",
    "ALTER TABLE @fifo_owner DROP received",
];

/// What version 2 added.
const OF_VERSION_2: [&str; 6] = [
    "DROP TABLE @front_end",
    "DROP TABLE @cluster",
    "DROP TABLE @fifo_owner",
    "DROP TABLE @fifo_segment",
    "DROP TABLE @fifo_message",
    "DROP TABLE @cluster_key",
];

fn keyspace_of(version: i32) -> CassandraSettings {
    let mut settings = settings();
    settings.keyspace = format!("{}_version_{version}", settings.keyspace);
    settings
}

/// Returns a session of the same user.
pub(crate) async fn session(settings: &CassandraSettings) -> Session {
    let password = settings.password_file.as_ref().map(std::fs::read_to_string);
    let password = password.transpose().unwrap().unwrap_or_default();
    let mut builder = SessionBuilder::new().known_nodes(&settings.nodes);
    if let Some(user) = &settings.user {
        builder = builder.user(user, password.trim());
    }
    builder.build().await.unwrap()
}

/// Takes away what later versions have added.
async fn take_back_to(version: i32, settings: &CassandraSettings) {
    let written = format!("UPDATE @schema_version SET version = {version} WHERE name = 'version'");
    let of_2 = if version < 2 { &OF_VERSION_2[..] } else { &[] };
    let of_3 = if version < 3 { &OF_VERSION_3[..] } else { &[] };
    let of_4 = if version < 4 { &OF_VERSION_4[..] } else { &[] };
    let of_5 = if version < 5 { &OF_VERSION_5[..] } else { &[] };
    let later = OF_VERSION_6.iter().chain(of_5).chain(of_4).chain(of_3).chain(of_2).copied();
    carry_out(later.chain([written.as_str()]), settings).await;
}

async fn carry_out(statements: impl IntoIterator<Item = &str>, settings: &CassandraSettings) {
    let session = session(settings).await;
    for statement in statements {
        let statement = statement.replace('@', &format!("{}.", settings.keyspace));
        session.query_unpaged(statement, ()).await.unwrap();
    }
}

/// Returns the version that a keyspace says it has.
async fn version(settings: &CassandraSettings) -> i32 {
    let query =
        format!("SELECT version FROM {}.schema_version WHERE name = 'version'", settings.keyspace);
    let rows = session(settings).await.query_unpaged(query, ()).await.unwrap();
    rows.into_rows_result().unwrap().single_row::<(i32,)>().unwrap().0
}

async fn send_to_group(
    queues: &CassandraQueues,
    facts: &std::sync::Arc<quelea_sqs_protocol::QueueFacts>,
    body: &str,
) {
    let (group_id, deduplication_id) = (Some("group".to_owned()), Some(body.to_owned()));
    let new = NewMessage { group_id, deduplication_id, ..message(body) };
    queues.send(facts, vec![new]).await.unwrap().remove(0).unwrap();
}

/// Those before the last one: nothing but a new version of the schema can break them.
mod before {
    use super::*;

    #[test]
    fn messages_of_version_1_are_there_after_two_front_ends_have_started_at_once() {
        let settings = keyspace_of(1);
        Site::shared().runtime.block_on(async {
            let earlier = CassandraQueues::connect(&settings).await.unwrap();
            let newest = version(&settings).await;
            let facts = queue(&earlier, "kept", &[]).await;
            for body in ["a", "b", "c"] {
                send(&earlier, &facts, body).await.unwrap();
            }
            // One of them has been received before.
            assert!(!receive(&earlier, &facts, 0).await.is_empty());
            drop(earlier);
            take_back_to(1, &settings).await;

            let started = tokio::join!(
                CassandraQueues::connect(&settings),
                CassandraQueues::connect(&settings)
            );
            let (one, other) = (started.0.unwrap(), started.1.unwrap());
            assert_eq!(version(&settings).await, newest);
            let facts = one.facts(&facts.queue).await.unwrap().unwrap();
            let grouped = NewMessage { group_id: Some("group".to_owned()), ..message("d") };
            one.send(&facts, vec![grouped]).await.unwrap().remove(0).unwrap();
            let mut bodies = Vec::new();
            while bodies.len() < 4 {
                let received = receive(&other, &facts, 30_000).await;
                bodies.extend(received.iter().map(|one| one.body.clone()));
                let deliveries = received.into_iter().map(|one| one.delivery).collect();
                let outcomes = one.delete(&facts, deliveries).await.unwrap();
                assert!(outcomes.iter().all(|outcome| *outcome == ReceiptOutcome::Done));
            }
            bodies.sort_unstable();
            assert_eq!(bodies, ["a", "b", "c", "d"]);
            let fifo = queue(&one, "new.fifo", &[("FifoQueue", "true")]).await;
            send_to_group(&one, &fifo, "first").await;
            assert_eq!(receive(&other, &fifo, 30_000).await[0].body, "first");
        });
    }

    #[test]
    fn fifo_queues_of_version_2_keep_their_messages_and_their_order() {
        let settings = keyspace_of(2);
        Site::shared().runtime.block_on(async {
            let earlier = CassandraQueues::connect(&settings).await.unwrap();
            let facts = queue(&earlier, "kept.fifo", &[("FifoQueue", "true")]).await;
            let plain = queue(&earlier, "kept", &[]).await;
            send(&earlier, &plain, "plain").await.unwrap();
            for body in ["a", "b", "c"] {
                send_to_group(&earlier, &facts, body).await;
            }
            earlier.release().await;
            drop(earlier);
            take_back_to(2, &settings).await;

            let later = CassandraQueues::connect(&settings).await.unwrap();
            let facts = later.facts(&facts.queue).await.unwrap().unwrap();
            send_to_group(&later, &facts, "d").await;
            let received = receive(&later, &facts, 30_000).await;
            let bodies: Vec<_> = received.iter().map(|one| one.body.clone()).collect();
            assert_eq!(bodies, ["a", "b", "c", "d"]);
            let plain = later.facts(&plain.queue).await.unwrap().unwrap();
            assert_eq!(receive(&later, &plain, 30_000).await[0].body, "plain");
        });
    }
}

/// The last ones, and front-ends that still have them.
mod last {
    use super::*;

    /// Returns for how long a table's tombstones stay, in seconds.
    async fn gc_grace_s(table: &str, settings: &CassandraSettings) -> i32 {
        let query = "SELECT gc_grace_seconds FROM system_schema.tables WHERE keyspace_name = ? AND table_name = ?";
        let values = (&settings.keyspace, table);
        let rows = session(settings).await.query_unpaged(query, values).await.unwrap();
        rows.into_rows_result().unwrap().single_row::<(i32,)>().unwrap().0
    }

    #[test]
    fn a_front_end_of_version_5_finds_what_is_sent_while_it_is_there() {
        let settings = narrow_settings("_version_5");
        Site::shared().runtime.block_on(async {
            let later = CassandraQueues::connect(&settings).await.unwrap();
            carry_out([ROW_OF_VERSION_5], &settings).await;
            later.beat().await.unwrap();
            let facts = queue(&later, "beside", &[]).await;
            send_many(&later, &facts, 60).await;
            assert!(levels(&settings).await.iter().all(|level| (0..4).contains(level)));
        });
    }

    #[test]
    fn queues_that_a_front_end_of_version_4_makes_and_deletes_beside_are_seen() {
        let settings = keyspace_of(4);
        Site::shared().runtime.block_on(async {
            drop(CassandraQueues::connect(&settings).await.unwrap());
            take_back_to(4, &settings).await;
            let later = CassandraQueues::connect(&settings).await.unwrap();
            assert_eq!(gc_grace_s("queue", &settings).await, gc_grace_s("entry", &settings).await);
            for name in ["deleted", "deleted-long-ago"] {
                queue(&later, name, &[]).await;
            }
            carry_out(CHANGES_OF_VERSION_4, &settings).await;

            assert_eq!(later.list(&ACCOUNT.into(), "", None, 10).await.unwrap(), ["made"]);
            let named = |name: &str| QueueRef { account: ACCOUNT.into(), name: name.into() };
            let new = || {
                let class = QueueClass::Replicated;
                NewQueue { class, attributes: BTreeMap::new(), tags: BTreeMap::new() }
            };
            let again = later.create(&named("deleted"), new()).await.unwrap();
            assert_eq!(again, Created::DeletedRecently);
            let again = later.create(&named("deleted-long-ago"), new()).await.unwrap();
            assert_eq!(again, Created::New);
            let made = later.facts_now(&named("made")).await.unwrap().unwrap();
            later.delete_queue(&made).await.unwrap();
            assert_eq!(
                later.list(&ACCOUNT.into(), "", None, 10).await.unwrap(),
                ["deleted-long-ago"]
            );
        });
    }

    #[test]
    fn users_and_keys_of_version_3_are_changed_and_deleted() {
        let settings = keyspace_of(3);
        Site::shared().runtime.block_on(async {
            drop(CassandraQueues::connect(&settings).await.unwrap());
            take_back_to(3, &settings).await;
            carry_out(ROWS_OF_VERSION_3, &settings).await;

            let later = CassandraQueues::connect(&settings).await.unwrap();
            let later = CassandraIdentity::new(&later, AccountNames::new(ACCOUNT));
            let kept = later.user("kept").await.unwrap().unwrap();
            assert_eq!((&*kept.password_hash, &kept.tags[..]), ("hash", &["tag".to_owned()][..]));
            assert_eq!(later.set_password_hash("kept", "other".into()).await, Ok(true));
            let changed = UserRecord { password_hash: "other".into(), ..kept };
            assert_eq!(later.user("kept").await, Ok(Some(changed.clone())));
            assert_eq!(later.put_user(changed).await, Ok(false));
            let permission = PermissionRecord::all("kept", "kept");
            later.put_permission(permission.clone()).await.unwrap();
            assert_eq!(later.permissions().await.unwrap(), [permission]);
            assert_eq!(later.enable_access_key("KEPT", false).await, Ok(true));
            assert!(!later.access_keys().await.unwrap()[0].enabled);
            assert_eq!(later.put_vhost("kept", Some("kept")).await, Ok(false));
            assert_eq!(later.delete_vhost("kept").await, Ok(true));
            assert_eq!(later.delete_user("kept").await, Ok(true));
            assert!(later.permissions().await.unwrap().is_empty());
            assert!(later.access_keys().await.unwrap().is_empty());
        });
    }

    #[test]
    fn a_front_end_of_version_3_that_still_runs_stands_in_no_way() {
        let mut settings = settings();
        settings.keyspace.push_str("_beside");
        Site::shared().runtime.block_on(async {
            let later = CassandraQueues::connect(&settings).await.unwrap();
            let later = CassandraIdentity::new(&later, AccountNames::new(ACCOUNT));
            let (tags, password_hash) = (vec!["tag".to_owned()], "hash".into());
            let user = UserRecord { name: "beside".into(), password_hash, tags };
            assert_eq!(later.put_user(user.clone()).await, Ok(true));
            assert_eq!(later.put_vhost("beside", Some("beside")).await, Ok(true));
            let (id, user_name, vhost) = ("BESIDE".to_owned(), user.name.clone(), "beside".into());
            let key =
                AccessKeyRecord { id, user: user_name, vhost, enabled: true, created_at_ms: 7 };
            later.create_access_key(key, "secret").await.unwrap();
            carry_out(CHANGES_OF_VERSION_3, &settings).await;

            // What it changed is seen, and is changed again.
            let changed = later.user("beside").await.unwrap().unwrap();
            assert_eq!((&*changed.password_hash, &changed.tags[..]), ("old", &[][..]));
            assert_eq!(later.put_user(user.clone()).await, Ok(false));
            assert_eq!(later.user("beside").await, Ok(Some(user)));
            assert_eq!(later.permissions().await, Ok(Vec::new()));
            let permission = PermissionRecord::all("beside", "beside");
            later.put_permission(permission.clone()).await.unwrap();
            assert_eq!(later.permissions().await, Ok(vec![permission]));
            assert_eq!(later.enable_access_key("BESIDE", true).await, Ok(true));
            assert!(later.access_keys().await.unwrap()[0].enabled);
            assert_eq!(later.put_vhost("made-beside", None).await, Ok(false));
            assert_eq!(later.delete_vhost("made-beside").await, Ok(true));
        });
    }
}
