//! Changes of users, permissions, keys, accounts and queues that a node carries out late, and of which nobody knows whether
//! they were made.

use std::time::Duration;

use quelea_cassandra_store::CassandraIdentity;
use quelea_sqs_protocol::{
    Identity as _, IdentityDirectory as _, PermissionRecord, QueueClass, Queues as _,
};
use tokio::sync::MutexGuard;
use tokio::time::timeout;

use crate::held_way::HeldWay;
use crate::identity::{alone, identity, key, permission, user};
use crate::site::{Site, queue};

/// Returns a front-end, and one whose transactions can be held back, in no other test's way.
async fn both() -> (CassandraIdentity, CassandraIdentity, HeldWay, MutexGuard<'static, ()>) {
    let (alone, here) = (alone().await, identity(&Site::shared().queues));
    here.put_default_account().await.unwrap();
    let way = HeldWay::open().await;
    let late = identity(&way.front_end().await);
    (here, late, way, alone)
}

async fn permissions_of(there: &CassandraIdentity, user: &str) -> Vec<PermissionRecord> {
    let mut found = there.permissions().await.unwrap();
    found.retain(|one| *one.user == *user);
    found
}

#[test]
fn a_change_of_a_row_that_comes_late_undoes_no_later_one() {
    Site::shared().runtime.block_on(async {
        let (here, late, way, _alone) = both().await;
        here.put_user(user("overtaken", "first")).await.unwrap();
        here.put_permission(permission("overtaken", "^first$")).await.unwrap();
        here.create_access_key(key("OVERTAKEN", "overtaken"), "secret").await.unwrap();
        way.hold(true);
        way.begin(late.put_user(user("overtaken", "late"))).await;
        way.begin(late.set_password_hash("overtaken", "late".into())).await;
        way.begin(late.put_permission(permission("overtaken", "^late$"))).await;
        way.begin(late.delete_permission("overtaken", "/")).await;
        way.begin(late.enable_access_key("OVERTAKEN", false)).await;
        way.begin(late.delete_access_key("OVERTAKEN")).await;

        here.put_user(user("overtaken", "last")).await.unwrap();
        here.put_permission(permission("overtaken", "^last$")).await.unwrap();
        assert!(here.enable_access_key("OVERTAKEN", true).await.unwrap());
        assert_eq!(way.release().await, 6);
        assert_eq!(here.user("overtaken").await.unwrap(), Some(user("overtaken", "last")));
        let permissions = permissions_of(&here, "overtaken").await;
        assert_eq!(permissions, [permission("overtaken", "^last$")]);
        let found = identity(&Site::shared().queues).access_key("OVERTAKEN").await.unwrap();
        assert!(found.is_some_and(|key| key.enabled));
    });
}

#[test]
fn what_was_deleted_does_not_come_back_by_a_late_change() {
    Site::shared().runtime.block_on(async {
        let (here, late, way, _alone) = both().await;
        here.put_user(user("other", "")).await.unwrap();
        here.put_user(user("fleeting", "first")).await.unwrap();
        way.hold(true);
        way.begin(late.put_permission(permission("fleeting", "^late$"))).await;
        way.begin(late.create_access_key(key("FLEETING", "fleeting"), "late")).await;
        way.begin(late.create_access_key(key("OTHERS", "other"), "late")).await;
        way.begin(late.put_user(user("fleeting", "late"))).await;
        way.begin(late.put_user(user("never-there", "late"))).await;
        way.begin(late.put_account("fleeting")).await;

        assert!(here.delete_user("fleeting").await.unwrap());
        assert!(here.put_account("fleeting").await.unwrap());
        assert!(here.delete_vhost("fleeting").await.unwrap());
        assert_eq!(way.release().await, 6);
        for name in ["fleeting", "never-there"] {
            assert_eq!(here.user(name).await.unwrap(), None);
        }
        assert_eq!(permissions_of(&here, "fleeting").await, []);
        let mut keys = here.access_keys().await.unwrap();
        keys.retain(|key| ["FLEETING", "OTHERS"].contains(&&*key.id));
        assert_eq!(keys, []);
        assert!(here.vhosts().await.unwrap().iter().all(|vhost| *vhost.name != *"fleeting"));
    });
}

#[test]
fn whoever_finds_an_account_made_outdates_what_comes_late() {
    Site::shared().runtime.block_on(async {
        let (here, late, way, _alone) = both().await;
        assert!(here.put_account("standing").await.unwrap());
        way.hold(true);
        way.begin(late.put_account("too-late")).await;
        assert!(!here.put_account("standing").await.unwrap());
        assert_eq!(way.release().await, 1);
        let there = here.vhosts().await.unwrap();
        let has = |name: &str| there.iter().any(|vhost| *vhost.name == *name);
        assert!(has("standing") && !has("too-late"), "{there:?}");
        assert!(here.delete_vhost("standing").await.unwrap());
    });
}

#[test]
fn a_change_of_unknown_outcome_is_made_once_and_then_confirmed() {
    Site::shared().runtime.block_on(async {
        let (here, late, way, _alone) = both().await;
        way.hold(true);
        let put = late.put_user(user("unknown", "hash"));
        // The first has not been answered in time, and the second is made for the same revision.
        let released = async {
            way.holds(2).await;
            way.hold(false);
            way.release().await
        };
        let (is_new, released) = tokio::join!(put, released);
        assert_eq!((is_new, released), (Ok(true), 2));
        assert_eq!(here.user("unknown").await.unwrap(), Some(user("unknown", "hash")));
    });
}

#[test]
fn a_change_of_unknown_outcome_that_others_follow_is_refused() {
    Site::shared().runtime.block_on(async {
        let (here, late, way, _alone) = both().await;
        way.hold(true);
        let put = late.put_user(user("followed", "late"));
        let followed = async {
            way.holds(2).await;
            here.put_user(user("followed", "last")).await.unwrap();
            way.release().await
        };
        let (refused, _) = tokio::join!(put, followed);
        let said = refused.unwrap_err().to_string();
        assert!(said.contains("does not say whether it was done"), "{said}");
        assert_eq!(here.user("followed").await.unwrap(), Some(user("followed", "last")));
    });
}

#[test]
fn a_changed_password_takes_back_no_tags() {
    Site::shared().runtime.block_on(async {
        let (here, late, way, _alone) = both().await;
        let mut tagged = user("tagged", "first");
        here.put_user(tagged.clone()).await.unwrap();
        way.hold(true);
        let changed = late.set_password_hash("tagged", "second".into());
        let meanwhile = async {
            way.holds(1).await;
            tagged.tags = vec!["administrator".to_owned()];
            here.put_user(tagged.clone()).await.unwrap();
            way.hold(false);
            way.release().await
        };
        let (changed, _) = tokio::join!(changed, meanwhile);
        assert_eq!(changed, Ok(true));
        tagged.password_hash = "second".into();
        assert_eq!(here.user("tagged").await.unwrap(), Some(tagged));
        assert_eq!(here.set_password_hash("nobody", "hash".into()).await, Ok(false));
        assert_eq!(here.user("nobody").await.unwrap(), None);
    });
}

#[test]
fn of_two_who_make_a_virtual_host_at_once_one_has_its_permissions() {
    Site::shared().runtime.block_on(async {
        let (here, late, way, _alone) = both().await;
        for maker in ["slow-maker", "quick-maker"] {
            here.put_user(user(maker, "")).await.unwrap();
        }
        way.hold(true);
        let slow = late.put_vhost("made-at-once", Some("slow-maker"));
        let quick = async {
            way.holds(1).await;
            let is_new = here.put_vhost("made-at-once", Some("quick-maker")).await;
            way.hold(false);
            way.release().await;
            is_new
        };
        assert_eq!(tokio::join!(slow, quick), (Ok(false), Ok(true)));
        assert_eq!(permissions_of(&here, "slow-maker").await, []);
        let all = PermissionRecord::all("quick-maker", "made-at-once");
        assert_eq!(permissions_of(&here, "quick-maker").await, [all]);
    });
}

#[test]
fn who_made_a_virtual_host_and_was_interrupted_gets_the_permissions_later() {
    Site::shared().runtime.block_on(async {
        let (here, late, way, _alone) = both().await;
        for maker in ["interrupted", "next"] {
            here.put_user(user(maker, "")).await.unwrap();
        }
        way.hold(true);
        // The account is made, and its permissions are not.
        let interrupted = async {
            way.holds(1).await;
            way.release().await;
            way.holds(1).await;
        };
        tokio::select! {
            made = late.put_vhost("half-made", Some("interrupted")) => panic!("{made:?}"),
            () = interrupted => {}
        }
        assert_eq!(permissions_of(&here, "interrupted").await, []);
        for _ in 0..2 {
            assert_eq!(here.put_vhost("half-made", Some("next")).await, Ok(false));
        }
        way.release().await;
        let all = PermissionRecord::all("interrupted", "half-made");
        assert_eq!(permissions_of(&here, "interrupted").await, [all]);
        assert_eq!(permissions_of(&here, "next").await, []);
        // What was given once is not given again.
        assert!(here.delete_permission("interrupted", "half-made").await.unwrap());
        assert_eq!(here.put_vhost("half-made", None).await, Ok(false));
        assert_eq!(permissions_of(&here, "interrupted").await, []);
    });
}

#[test]
fn a_front_end_that_stops_awaits_a_deletion_whose_caller_hung_up() {
    Site::shared().runtime.block_on(async {
        let (_alone, here) = (alone().await, &Site::shared().queues);
        let way = HeldWay::open().await;
        let late = way.front_end().await;
        let facts = queue(&late, "abandoned", &[]).await;
        // The deletion alone has the queue's id behind its name.
        let id = facts.key.id_in(QueueClass::Replicated).unwrap();
        way.hold_single([b"abandoned\0\0\0\x10", &id.to_be_bytes()[..]].concat());
        way.hold(true);
        way.begin(late.delete_queue(&facts)).await;

        assert!(timeout(Duration::from_millis(300), late.leave()).await.is_err());
        assert!(here.facts_now(&facts.queue).await.unwrap().is_some());
        way.hold(false);
        way.release().await;
        late.leave().await.unwrap();
        assert_eq!(here.facts_now(&facts.queue).await.unwrap(), None);
    });
}
