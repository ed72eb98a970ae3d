//! Users, permissions and keys that several front-ends change. Where nodes' clocks are apart, as the suite
//! `cassandra_faults` has them, the last change holds all the same.

use std::sync::Arc;

use futures_util::future::join_all;
use quelea_cassandra_store::{CassandraIdentity, CassandraQueues};
use quelea_sqs_protocol::{
    AccessKeyRecord, AccountNames, Fault, Identity as _, IdentityDirectory as _, PermissionRecord,
    UserRecord,
};
use tokio::sync::{Mutex, MutexGuard};

use crate::site::{ACCOUNT, Site};

/// Enough for each node to take some of them.
const ROUNDS: usize = 24;

pub(crate) fn identity(queues: &CassandraQueues) -> CassandraIdentity {
    CassandraIdentity::new(queues, AccountNames::new(ACCOUNT))
}

pub(crate) fn user(name: &str, hash: &str) -> UserRecord {
    UserRecord { name: name.into(), password_hash: hash.into(), tags: vec![hash.to_owned()] }
}

pub(crate) fn permission(user: &str, queues: &str) -> PermissionRecord {
    PermissionRecord { read: queues.to_owned(), ..PermissionRecord::all(user, "/") }
}

pub(crate) fn key(id: &str, user: &str) -> AccessKeyRecord {
    let (user, vhost) = (Arc::from(user), Arc::from("/"));
    AccessKeyRecord { id: id.to_owned(), user, vhost, enabled: true, created_at_ms: 7 }
}

/// Waits until no other test changes these tables. Changes of a table are made one after the other:
/// of two tests at once each would hold up the other.
pub(crate) async fn alone() -> MutexGuard<'static, ()> {
    static ALONE: Mutex<()> = Mutex::const_new(());
    ALONE.lock().await
}

/// Returns two front-ends, each of which remembers what it has read.
async fn both() -> ([CassandraIdentity; 2], MutexGuard<'static, ()>) {
    let (alone, site) = (alone().await, Site::shared());
    let both = [identity(&site.queues), identity(&site.another().await)];
    both[0].put_default_account().await.unwrap();
    (both, alone)
}

#[test]
fn of_two_changes_of_a_user_the_later_holds() {
    Site::shared().runtime.block_on(async {
        let (both, _alone) = both().await;
        for round in 0..ROUNDS {
            let (here, there) = (&both[round % 2], &both[(round + 1) % 2]);
            if round % 3 == 2 {
                assert!(here.delete_user("in-turns").await.unwrap());
                assert_eq!(there.user("in-turns").await.unwrap(), None, "round {round}");
                continue;
            }
            let wanted = user("in-turns", &format!("hash {round}"));
            here.put_user(wanted.clone()).await.unwrap();
            assert_eq!(there.user("in-turns").await.unwrap(), Some(wanted), "round {round}");
        }
    });
}

#[test]
fn of_two_changes_of_permissions_the_later_holds() {
    Site::shared().runtime.block_on(async {
        let (both, _alone) = both().await;
        both[0].put_user(user("permitted", "")).await.unwrap();
        for round in 0..ROUNDS {
            let (here, there) = (&both[round % 2], &both[(round + 1) % 2]);
            let wanted = permission("permitted", &format!("^queue-{round}$"));
            here.put_permission(wanted.clone()).await.unwrap();
            let mut found = there.permissions().await.unwrap();
            found.retain(|one| *one.user == *"permitted");
            assert_eq!(found, [wanted], "round {round}");
            if round % 3 == 2 {
                assert!(there.delete_permission("permitted", "/").await.unwrap());
            }
        }
    });
}

#[test]
fn a_key_is_as_it_was_last_set_and_never_comes_back() {
    Site::shared().runtime.block_on(async {
        let (both, _alone) = both().await;
        both[0].put_user(user("signing", "")).await.unwrap();
        both[0].create_access_key(key("A-KEY", "signing"), "secret").await.unwrap();
        for round in 0..ROUNDS {
            let (here, enabled) = (&both[round % 2], round % 3 == 0);
            assert!(here.enable_access_key("A-KEY", enabled).await.unwrap());
            // One that has nothing in its memory.
            let there = identity(&Site::shared().queues);
            let found = there.access_key("A-KEY").await.unwrap().unwrap();
            assert_eq!((found.enabled, &*found.secret), (enabled, "secret"), "round {round}");
        }
        assert!(both[0].delete_access_key("A-KEY").await.unwrap());
        assert!(!both[1].enable_access_key("A-KEY", true).await.unwrap());
        assert!(!both[1].delete_access_key("A-KEY").await.unwrap());
        assert_eq!(both[1].access_key("A-KEY").await.unwrap(), None);
    });
}

/// As a client does: a change that another has overtaken, while nobody knew whether it was made, is refused.
async fn put_in_the_end(there: &CassandraIdentity, user: UserRecord) {
    for _ in 0..ROUNDS {
        match there.put_user(user.clone()).await {
            Err(Fault::Unavailable(_)) => {}
            made => {
                made.unwrap();
                return;
            }
        }
    }
    panic!("{user:?} was refused {ROUNDS} times");
}

#[test]
fn changes_of_several_users_at_once_are_all_made() {
    Site::shared().runtime.block_on(async {
        let (both, _alone) = both().await;
        let names: Vec<String> = (0..8).map(|number| format!("at-once-{number}")).collect();
        let puts = names.iter().flat_map(|name| {
            both.iter()
                .zip(["one", "other"])
                .map(|(there, hash)| put_in_the_end(there, user(name, hash)))
        });
        join_all(puts).await;
        for name in &names {
            let (one, other) =
                (both[0].user(name).await.unwrap(), both[1].user(name).await.unwrap());
            assert!(one.is_some() && one == other, "{name}: {one:?}, {other:?}");
        }
    });
}

#[test]
fn an_account_is_made_once_and_goes_once() {
    Site::shared().runtime.block_on(async {
        let (both, _alone) = both().await;
        assert!(both[0].put_account("made-once").await.unwrap());
        assert!(!both[1].put_account("made-once").await.unwrap());
        assert!(both[1].delete_vhost("made-once").await.unwrap());
        assert!(!both[0].delete_vhost("made-once").await.unwrap());
    });
}

#[test]
fn each_change_leaves_another_revision_and_nothing_else_does() {
    Site::shared().runtime.block_on(async {
        let ([one, other], _alone) = both().await;
        let mut seen = other.revisions().await.unwrap();
        let mut changed = async |what: &str| {
            let now = other.revisions().await.unwrap();
            assert_ne!(now, seen, "{what}");
            assert_eq!(one.revisions().await.unwrap(), now);
            seen = now;
        };
        one.put_user(user("revised", "first")).await.unwrap();
        changed("a user is made").await;
        one.set_password_hash("revised", "second".into()).await.unwrap();
        changed("a password is set").await;
        one.put_permission(permission("revised", ".*")).await.unwrap();
        changed("a permission is given").await;
        one.delete_permission("revised", "/").await.unwrap();
        changed("a permission is taken away").await;
        one.create_access_key(key("REVISED", "revised"), "secret").await.unwrap();
        changed("a key is made").await;
        one.enable_access_key("REVISED", false).await.unwrap();
        changed("a key is disabled").await;
        one.put_vhost("revised", Some("revised")).await.unwrap();
        changed("an account is made").await;
        one.delete_vhost("revised").await.unwrap();
        changed("an account is deleted").await;
        one.delete_user("revised").await.unwrap();
        changed("a user is deleted").await;

        let before = one.revisions().await.unwrap();
        one.users().await.unwrap();
        one.access_key("REVISED").await.unwrap();
        assert_eq!(other.revisions().await.unwrap(), before);
    });
}
