//! Users, permissions and access keys that another store keeps: they are in force here, and the log goes on having its own.

use std::sync::Arc;

use quelea_broker::access::{AccessRecords, Permission, User};
use quelea_broker::{AccessKey, AdminError, BrokerConfig};
use quelea_model::{Timestamp, VhostName};

use crate::broker_test::{BrokerTest, StoreKind};

fn vhost(name: &str) -> VhostName {
    VhostName::parse(name).unwrap()
}

fn user(name: &str, hash: &str) -> User {
    User { name: Arc::from(name), password_hash: hash.into(), tags: Vec::new() }
}

fn permission(name: &str, within: &str, read: &str) -> Permission {
    let (configure, write, read) = ("".into(), "".into(), read.into());
    Permission { user: Arc::from(name), vhost: vhost(within), configure, write, read }
}

/// Returns records of Ada, who may read from `q` in a virtual host that this node does not have
/// yet, and the administrator of the tests.
fn records() -> AccessRecords {
    let key = AccessKey {
        id: Arc::from("AKIAIOSFODNN7EXAMPLE"),
        secret: Arc::from("wJalrXUtnFEMI/K7MDENG+bPxRfiCYEXAMPLEKEY"),
        user: Arc::from("ada"),
        vhost: vhost("staging"),
        enabled: true,
        created_at: Timestamp::from_millis(1),
    };
    AccessRecords {
        vhosts: vec![vhost("/"), vhost("staging")],
        users: vec![user("ada", "hash"), user("guest", "other")],
        permissions: vec![permission("ada", "staging", "^q$"), permission("guest", "/", ".*")],
        keys: vec![key],
    }
}

fn hash_of(test: &BrokerTest, name: &str) -> Option<String> {
    test.broker.access().accounts().user(name).map(|user| user.password_hash.to_string())
}

#[test]
fn what_is_adopted_is_in_force_and_the_log_keeps_its_own() {
    let mut test = BrokerTest::new(BrokerConfig::default(), StoreKind::Log(64 * 1024));
    let now = test.now;
    test.broker.put_user(now, "old", "old hash", &["x"; 0]).unwrap();
    let of_log = test.broker.access_records();
    let epoch = test.broker.queues_epoch();
    assert_eq!(test.broker.adopt_access(now, &records()), []);
    assert_ne!(test.broker.queues_epoch(), epoch, "whoever remembers keys looks again");
    assert_eq!(hash_of(&test, "ada").as_deref(), Some("hash"));
    assert_eq!(hash_of(&test, "old"), None);
    assert!(test.broker.has_vhost("staging"), "a virtual host for each account");
    assert!(test.broker.queue_permits("ada", "staging", "q").read);
    assert!(!test.broker.queue_permits("ada", "staging", "other").read);
    assert!(test.broker.access().keys().get("AKIAIOSFODNN7EXAMPLE").is_some());
    // For whom the log's are to be taken over.
    assert_eq!(test.broker.access_records().users, of_log.users);
    test.settle();
    test.crash(0);
    assert_eq!(hash_of(&test, "ada"), None);
    assert_eq!(hash_of(&test, "old").as_deref(), Some("old hash"));
}

#[test]
fn what_another_store_keeps_is_not_changed_here() {
    let mut test = BrokerTest::new(BrokerConfig::default(), StoreKind::Memory);
    let now = test.now;
    test.broker.adopt_access(now, &records());
    let elsewhere = Err(AdminError::KeptElsewhere);
    assert_eq!(test.broker.put_user(now, "ada", "mine", &["x"; 0]), elsewhere);
    assert_eq!(test.broker.delete_user(now, "ada"), elsewhere);
    assert_eq!(test.broker.set_permissions(now, "ada", "/", ".*", ".*", ".*"), elsewhere);
    assert_eq!(test.broker.clear_permissions(now, "ada", "staging"), elsewhere);
    assert_eq!(test.broker.delete_access_key(now, "AKIAIOSFODNN7EXAMPLE"), elsewhere);
    assert_eq!(hash_of(&test, "ada").as_deref(), Some("hash"));
}

#[test]
fn connections_of_a_user_who_is_gone_are_closed() {
    let mut test = BrokerTest::new(BrokerConfig::default(), StoreKind::Memory);
    let now = test.now;
    test.broker.adopt_access(now, &records());
    test.client("kept");
    let mut without_guest = records();
    without_guest.users.retain(|user| &*user.name != "guest");
    without_guest.permissions.retain(|permission| &*permission.user != "guest");
    test.broker.adopt_access(now, &records());
    test.settle();
    assert_eq!(test.client("kept").closed, None);
    test.broker.adopt_access(now, &without_guest);
    test.settle();
    assert!(test.client("kept").closed.is_some());
}

#[test]
fn topic_permissions_stay_those_of_the_node_and_outlive_it() {
    let mut test = BrokerTest::new(BrokerConfig::default(), StoreKind::Log(64 * 1024));
    let now = test.now;
    test.broker.adopt_access(now, &records());
    test.broker.set_topic_permissions(now, "ada", "/", "amq.topic", "^a", "^b").unwrap();
    let topics = |test: &BrokerTest| test.broker.access().accounts().topic_permissions().count();
    test.broker.adopt_access(now, &records());
    assert_eq!(topics(&test), 1);
    test.settle();
    // The log knows Ada by name only, or it would not open.
    test.crash(0);
    test.broker.adopt_access(now, &records());
    assert_eq!(topics(&test), 1);
    assert_eq!(hash_of(&test, "ada").as_deref(), Some("hash"));
    test.broker.clear_topic_permissions(now, "ada", "/", None).unwrap();
    assert_eq!(topics(&test), 0);
    test.settle();
    test.crash(0);
    assert_eq!(topics(&test), 0);
}

#[test]
fn a_virtual_host_goes_with_what_the_log_has_of_it() {
    let mut test = BrokerTest::new(BrokerConfig::default(), StoreKind::Log(64 * 1024));
    let now = test.now;
    test.broker.put_vhost(now, "staging").unwrap();
    test.broker.put_user(now, "old", "hash", &["x"; 0]).unwrap();
    test.broker.set_permissions(now, "old", "staging", "", "", "").unwrap();
    test.broker.adopt_access(now, &records());
    test.broker.delete_vhost(now, "staging").unwrap();
    assert!(!test.broker.queue_permits("ada", "staging", "q").read);
    test.settle();
    // A permission without its virtual host would keep the log from opening.
    test.crash(0);
    assert!(!test.broker.has_vhost("staging"));
    assert_eq!(
        test.broker.access().accounts().permissions().filter(|p| &*p.user == "old").count(),
        0
    );
}

#[test]
fn what_cannot_be_taken_is_said_and_the_rest_is_taken() {
    let mut test = BrokerTest::new(BrokerConfig::default(), StoreKind::Memory);
    let now = test.now;
    let mut wrong = records();
    wrong.permissions.insert(0, permission("ada", "/", "("));
    let refused = test.broker.adopt_access(now, &wrong);
    assert_eq!(refused.len(), 1, "{refused:?}");
    assert!(test.broker.queue_permits("ada", "staging", "q").read);
}
