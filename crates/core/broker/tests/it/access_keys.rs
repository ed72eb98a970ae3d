//! Access keys: made, disabled, replaced, and there again after a restart.

use quelea_broker::access::AccessError;
use quelea_broker::{AdminError, BrokerConfig, NewAccessKey};
use quelea_model::limits::ACCESS_KEYS_PER_USER_MAX;

use crate::world::{Ground, World};

const SECRET: &str = "wJalrXUtnFEMI/K7MDENG+bPxRfiCYEXAMPLEKEY";

/// A broker with the user `ada` and the account `111122223333`.
fn world(ground: Ground) -> World {
    let mut world = World::new(BrokerConfig::default(), ground);
    let now = world.now;
    world.broker.put_user(now, "ada", "", &["x"; 0]).unwrap();
    world.broker.put_vhost(now, "111122223333").unwrap();
    world
}

fn new(id: &str) -> NewAccessKey<'_> {
    NewAccessKey { id, secret: SECRET, user: "ada", vhost: "111122223333" }
}

fn create(world: &mut World, id: &str) {
    let ticket = world.broker.create_access_key(world.now, new(id)).unwrap();
    world.promise(ticket);
    world.settle();
    assert!(world.promises_are_kept());
}

fn ids(world: &World) -> Vec<String> {
    world.broker.access_keys().map(|key| key.id.to_string()).collect()
}

const OLD: &str = "AKIAIOSFODNN7EXAMPLE";
const NEW: &str = "AKIAIOSFODNN8EXAMPLE";

#[test]
fn a_key_is_replaced_while_the_other_is_in_use() {
    let mut world = world(Ground::Memory);
    let now = world.now;
    create(&mut world, OLD);
    create(&mut world, NEW);
    assert_eq!(ids(&world), [OLD, NEW]);
    world.broker.enable_access_key(now, OLD, false).unwrap();
    let old = world.broker.access_key(OLD).unwrap();
    assert!(!old.enabled);
    assert_eq!((&*old.user, old.vhost.as_str(), &*old.secret), ("ada", "111122223333", SECRET));
    assert!(world.broker.access_key(NEW).unwrap().enabled);
    world.broker.enable_access_key(now, OLD, true).unwrap();
    assert!(world.broker.access_key(OLD).unwrap().enabled);
    world.broker.delete_access_key(now, OLD).unwrap();
    assert_eq!(ids(&world), [NEW]);
}

/// The SQS front remembers keys until the epoch moves: a disabled key is refused at once.
#[test]
fn every_change_of_a_key_moves_the_epoch() {
    let mut world = world(Ground::Memory);
    let now = world.now;
    let mut last = world.broker.queues_epoch();
    let mut moves = |world: &World, what: &str| {
        let epoch = world.broker.queues_epoch();
        assert_ne!(std::mem::replace(&mut last, epoch), epoch, "{what}");
    };
    create(&mut world, OLD);
    moves(&world, "create");
    world.broker.enable_access_key(now, OLD, false).unwrap();
    moves(&world, "disable");
    world.broker.enable_access_key(now, OLD, true).unwrap();
    moves(&world, "enable");
    world.broker.delete_access_key(now, OLD).unwrap();
    moves(&world, "delete");
    create(&mut world, OLD);
    moves(&world, "create again");
    world.broker.delete_vhost(now, "111122223333").unwrap();
    moves(&world, "delete the account");
}

#[test]
fn keys_survive_a_crash_as_they_were_last() {
    for ground in [Ground::Memory, Ground::Log(64 * 1024)] {
        let mut world = world(ground);
        create(&mut world, OLD);
        create(&mut world, NEW);
        create(&mut world, "AKIAIOSFODNN9EXAMPLE");
        let made = world.broker.access_key(NEW).unwrap().clone();
        let now = world.now;
        world.broker.enable_access_key(now, OLD, false).unwrap();
        let last = world.broker.delete_access_key(now, "AKIAIOSFODNN9EXAMPLE").unwrap();
        world.promise(last);
        world.settle();
        world.power_cut(1);
        assert_eq!(ids(&world), [OLD, NEW]);
        assert!(!world.broker.access_key(OLD).unwrap().enabled);
        assert_eq!(world.broker.access_key(NEW), Some(&made));
    }
}

#[test]
fn keys_go_with_their_user_and_with_their_account() {
    for (by_user, ground) in [(true, Ground::Memory), (false, Ground::Log(64 * 1024))] {
        let mut world = world(ground);
        let now = world.now;
        world.broker.put_user(now, "bob", "", &["x"; 0]).unwrap();
        world.broker.put_vhost(now, "444455556666").unwrap();
        create(&mut world, OLD);
        let other = NewAccessKey { user: "bob", vhost: "444455556666", ..new(NEW) };
        world.broker.create_access_key(now, other).unwrap();
        let done = match by_user {
            true => world.broker.delete_user(now, "ada"),
            false => world.broker.delete_vhost(now, "111122223333"),
        };
        world.promise(done.unwrap());
        world.settle();
        assert_eq!(ids(&world), [NEW]);
        world.crash(0);
        assert_eq!(ids(&world), [NEW], "the log agrees");
    }
}

#[test]
fn what_makes_no_sense_is_refused_and_changes_nothing() {
    let mut world = world(Ground::Memory);
    create(&mut world, OLD);
    let now = world.now;
    let mut refused = |new: NewAccessKey<'_>| world.broker.create_access_key(now, new).unwrap_err();
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
    assert_eq!(world.broker.enable_access_key(now, NEW, false), Err(missing.clone()));
    assert_eq!(world.broker.delete_access_key(now, NEW), Err(missing));
    assert_eq!(ids(&world), [OLD]);
}

#[test]
fn a_user_has_no_more_keys_than_the_limit() {
    let mut world = world(Ground::Memory);
    let id = |n: usize| format!("AKIAIOSFODNN7EXAMP{n:02}");
    for n in 0..ACCESS_KEYS_PER_USER_MAX {
        create(&mut world, &id(n));
    }
    let error = world.broker.create_access_key(world.now, new(NEW)).unwrap_err();
    let (what, max) = ("access keys of a user", ACCESS_KEYS_PER_USER_MAX);
    assert_eq!(error, AdminError::Access(AccessError::TooMany { what, max }));
    world.broker.delete_access_key(world.now, &id(0)).unwrap();
    create(&mut world, NEW);
}

#[test]
fn a_key_is_printed_without_its_secret() {
    let mut world = world(Ground::Memory);
    create(&mut world, OLD);
    let text = format!("{:?}", world.broker.access_key(OLD).unwrap());
    assert!(text.contains(OLD) && text.contains("ada") && !text.contains(SECRET), "{text}");
}
