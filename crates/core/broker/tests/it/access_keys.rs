//! Access keys: made, disabled, replaced, and there again after a restart.

use quelea_broker::access::AccessError;
use quelea_broker::{AdminError, BrokerConfig, NewAccessKey};
use quelea_model::limits::ACCESS_KEYS_PER_USER_MAX;

use crate::broker_test::{BrokerTest, StoreKind};

const SECRET: &str = "wJalrXUtnFEMI/K7MDENG+bPxRfiCYEXAMPLEKEY";

/// Returns a broker with the user `ada` and the account `111122223333`.
fn test(store_kind: StoreKind) -> BrokerTest {
    let mut test = BrokerTest::new(BrokerConfig::default(), store_kind);
    let now = test.now;
    test.broker.put_user(now, "ada", "", &["x"; 0]).unwrap();
    test.broker.put_vhost(now, "111122223333").unwrap();
    test
}

fn new(id: &str) -> NewAccessKey<'_> {
    NewAccessKey { id, secret: SECRET, user: "ada", vhost: "111122223333" }
}

fn create(test: &mut BrokerTest, id: &str) {
    let ticket = test.broker.create_access_key(test.now, new(id)).unwrap();
    test.promise(ticket);
    test.settle();
    assert!(test.promises_are_kept());
}

fn ids(test: &BrokerTest) -> Vec<String> {
    test.broker.access().keys().iter().map(|key| key.id.to_string()).collect()
}

const OLD: &str = "AKIAIOSFODNN7EXAMPLE";
const NEW: &str = "AKIAIOSFODNN8EXAMPLE";

#[test]
fn a_key_is_replaced_while_the_other_is_in_use() {
    let mut test = test(StoreKind::Memory);
    let now = test.now;
    create(&mut test, OLD);
    create(&mut test, NEW);
    assert_eq!(ids(&test), [OLD, NEW]);
    test.broker.enable_access_key(now, OLD, false).unwrap();
    let old = test.broker.access().keys().get(OLD).unwrap();
    assert!(!old.enabled);
    assert_eq!((&*old.user, old.vhost.as_str(), &*old.secret), ("ada", "111122223333", SECRET));
    assert!(test.broker.access().keys().get(NEW).unwrap().enabled);
    test.broker.enable_access_key(now, OLD, true).unwrap();
    assert!(test.broker.access().keys().get(OLD).unwrap().enabled);
    test.broker.delete_access_key(now, OLD).unwrap();
    assert_eq!(ids(&test), [NEW]);
}

/// The SQS front remembers keys until the epoch moves: a disabled key is refused at once.
#[test]
fn every_change_of_a_key_moves_the_epoch() {
    let mut test = test(StoreKind::Memory);
    let now = test.now;
    let mut last = test.broker.queues_epoch();
    let mut moves = |test: &BrokerTest, what: &str| {
        let epoch = test.broker.queues_epoch();
        assert_ne!(std::mem::replace(&mut last, epoch), epoch, "{what}");
    };
    create(&mut test, OLD);
    moves(&test, "create");
    test.broker.enable_access_key(now, OLD, false).unwrap();
    moves(&test, "disable");
    test.broker.enable_access_key(now, OLD, true).unwrap();
    moves(&test, "enable");
    test.broker.delete_access_key(now, OLD).unwrap();
    moves(&test, "delete");
    create(&mut test, OLD);
    moves(&test, "create again");
    test.broker.delete_vhost(now, "111122223333").unwrap();
    moves(&test, "delete the account");
}

#[test]
fn keys_survive_a_crash_as_they_were_last() {
    for store_kind in [StoreKind::Memory, StoreKind::Log(64 * 1024)] {
        let mut test = test(store_kind);
        create(&mut test, OLD);
        create(&mut test, NEW);
        create(&mut test, "AKIAIOSFODNN9EXAMPLE");
        let made = test.broker.access().keys().get(NEW).unwrap().clone();
        let now = test.now;
        test.broker.enable_access_key(now, OLD, false).unwrap();
        let last = test.broker.delete_access_key(now, "AKIAIOSFODNN9EXAMPLE").unwrap();
        test.promise(last);
        test.settle();
        test.power_cut(1);
        assert_eq!(ids(&test), [OLD, NEW]);
        assert!(!test.broker.access().keys().get(OLD).unwrap().enabled);
        assert_eq!(test.broker.access().keys().get(NEW), Some(&made));
    }
}

#[test]
fn keys_go_with_their_user_and_with_their_account() {
    for (by_user, store_kind) in [(true, StoreKind::Memory), (false, StoreKind::Log(64 * 1024))] {
        let mut test = test(store_kind);
        let now = test.now;
        test.broker.put_user(now, "bob", "", &["x"; 0]).unwrap();
        test.broker.put_vhost(now, "444455556666").unwrap();
        create(&mut test, OLD);
        let other = NewAccessKey { user: "bob", vhost: "444455556666", ..new(NEW) };
        test.broker.create_access_key(now, other).unwrap();
        let done = match by_user {
            true => test.broker.delete_user(now, "ada"),
            false => test.broker.delete_vhost(now, "111122223333"),
        };
        test.promise(done.unwrap());
        test.settle();
        assert_eq!(ids(&test), [NEW]);
        test.crash(0);
        assert_eq!(ids(&test), [NEW], "the log agrees");
    }
}

#[test]
fn what_makes_no_sense_is_refused_and_changes_nothing() {
    let mut test = test(StoreKind::Memory);
    create(&mut test, OLD);
    let now = test.now;
    let mut refused = |new: NewAccessKey<'_>| test.broker.create_access_key(now, new).unwrap_err();
    assert_eq!(
        refused(NewAccessKey { user: "bob", ..new(NEW) }),
        AdminError::NoSuchUser { user: "bob".into() }
    );
    assert_eq!(
        refused(NewAccessKey { vhost: "none", ..new(NEW) }),
        AdminError::NoSuchVhost { vhost: "none".into() }
    );
    assert_eq!(refused(new(OLD)), AdminError::AccessKeyExists { id: OLD.into() });
    for id in ["", "AKIA", "AKIA/OSFODNN7EXAMPLE", &"A".repeat(129), "AKIAIOSFODNN7EXAMPL\u{e9}"] {
        let error = refused(new(id));
        assert!(error.to_string().starts_with("the id of an access key has 16 to 128 letters"));
    }
    for secret in ["short", "with blanks are not good", &"s".repeat(129)] {
        let error = refused(NewAccessKey { secret, ..new(NEW) }).to_string();
        assert!(error.starts_with("the secret of an access key has 16 to 128"), "{error}");
        assert!(!error.contains(secret));
    }
    let missing = AdminError::NoSuchAccessKey { id: NEW.into() };
    assert_eq!(test.broker.enable_access_key(now, NEW, false), Err(missing.clone()));
    assert_eq!(test.broker.delete_access_key(now, NEW), Err(missing));
    assert_eq!(ids(&test), [OLD]);
}

#[test]
fn a_user_has_no_more_keys_than_the_limit() {
    let mut test = test(StoreKind::Memory);
    let id = |n: usize| format!("AKIAIOSFODNN7EXAMP{n:02}");
    for n in 0..ACCESS_KEYS_PER_USER_MAX {
        create(&mut test, &id(n));
    }
    let error = test.broker.create_access_key(test.now, new(NEW)).unwrap_err();
    let (what, max) = ("access keys of a user", ACCESS_KEYS_PER_USER_MAX);
    assert_eq!(error, AdminError::Access(AccessError::TooMany { what, max }));
    test.broker.delete_access_key(test.now, &id(0)).unwrap();
    create(&mut test, NEW);
}

#[test]
fn a_key_is_printed_without_its_secret() {
    let mut test = test(StoreKind::Memory);
    create(&mut test, OLD);
    let text = format!("{:?}", test.broker.access().keys().get(OLD).unwrap());
    assert!(text.contains(OLD) && text.contains("ada") && !text.contains(SECRET), "{text}");
}
