use quelea_model::limits::{ACCESS_CACHE_ENTRIES_MAX, PATTERN_BYTES_MAX};

use super::*;

fn vhost(name: &str) -> VhostName {
    VhostName::parse(name).unwrap()
}

fn permission(user: &str, patterns: [&str; 3]) -> Permission {
    let [configure, write, read] = patterns.map(Box::from);
    Permission { user: Arc::from(user), vhost: vhost("/"), configure, write, read }
}

fn topic(user: &str, exchange: &str, write: &str, read: &str) -> TopicPermission {
    TopicPermission {
        user: Arc::from(user),
        vhost: vhost("/"),
        exchange: Box::from(exchange),
        write: Box::from(write),
        read: Box::from(read),
    }
}

fn access_of(user: &str, patterns: [&str; 3]) -> Accounts {
    let mut access = Accounts::default();
    access.put_user(user, "", &["management"]).unwrap();
    access.set_permission(permission(user, patterns)).unwrap();
    access
}

fn fits(pattern: &str, name: &str) -> bool {
    access_of("ann", ["", pattern, ""]).check("ann", "/", Operation::Write, name)
}

#[test]
fn a_pattern_is_searched_anywhere_and_the_empty_one_fits_nothing() {
    let cases = [
        (".*", "anything", true),
        ("orders", "my-orders-2", true),
        ("^orders$", "my-orders", false),
        ("^(a|b)\\.", "b.x", true),
        ("^(a|b)\\.", "c.x", false),
        ("", "q", false),
        ("^$", "q", false),
        ("^amq\\.gen-.*|^tmp", "amq.gen-abc", true),
    ];
    for (pattern, name, expected) in cases {
        assert_eq!(fits(pattern, name), expected, "pattern {pattern:?}, name {name:?}");
    }
}

#[test]
fn the_default_exchange_is_called_amq_default() {
    assert!(fits("^amq\\.default$", ""));
    assert!(!fits("^$", ""));
    assert!(!fits("", ""));
    assert!(fits(".*", ""));
}

#[test]
fn each_operation_has_its_pattern() {
    let mut access = access_of("ann", ["^c", "^w", "^r"]);
    for (operation, name) in
        [(Operation::Configure, "c"), (Operation::Write, "w"), (Operation::Read, "r")]
    {
        for other in ["c", "w", "r"] {
            assert_eq!(access.check("ann", "/", operation, other), other == name);
        }
    }
}

#[test]
fn nobody_may_do_anything_without_permissions_in_the_vhost() {
    let mut access = access_of("ann", [".*"; 3]);
    access.put_user("bob", "", &["administrator"]).unwrap();
    assert!(access.may_open("ann", "/") && !access.may_open("ann", "other"));
    assert!(!access.may_open("bob", "/") && !access.may_open("eve", "/"));
    for (user, vhost) in [("ann", "other"), ("bob", "/"), ("eve", "/")] {
        assert!(!access.check(user, vhost, Operation::Read, "q"), "{user} in {vhost}");
    }
}

#[test]
fn the_administration_may_do_all_and_nobody_can_be_it() {
    let mut access = Accounts::default();
    assert!(access.may_open(ADMINISTRATION, "/"));
    assert!(access.check(ADMINISTRATION, "/", Operation::Configure, "q"));
    assert!(access.put_user(ADMINISTRATION, "", &["administrator"]).is_err());
    assert!(access.user(ADMINISTRATION).is_none());
}

#[test]
fn a_changed_permission_counts_at_once() {
    let mut access = access_of("ann", [".*"; 3]);
    assert!(access.check("ann", "/", Operation::Read, "q"));
    access.set_permission(permission("ann", ["", "", "other"])).unwrap();
    assert!(!access.check("ann", "/", Operation::Read, "q"));
    access.set_permission(permission("ann", ["", "", "q"])).unwrap();
    assert!(access.check("ann", "/", Operation::Read, "q"));
    assert!(access.clear_permission("ann", "/") && !access.clear_permission("ann", "/"));
    assert!(!access.check("ann", "/", Operation::Read, "q"));
    access.set_permission(permission("ann", ["", "", ".*"])).unwrap();
    assert!(access.check("ann", "/", Operation::Read, "q"));
    assert!(access.delete_user("ann").is_some());
    assert!(!access.check("ann", "/", Operation::Read, "q"));
}

#[test]
fn a_wrong_pattern_is_refused_with_its_field_and_changes_nothing() {
    let mut access = access_of("ann", [".*"; 3]);
    let error = access.set_permission(permission("ann", ["a", "b(", "c"])).unwrap_err();
    assert_eq!(error.to_string(), "write pattern 'b(' is not a regular expression: unclosed group");
    for huge in ["(a{1000}){1000}".to_owned(), "x".repeat(PATTERN_BYTES_MAX + 1)] {
        let error = access.set_permission(permission("ann", ["a", "b", &huge])).unwrap_err();
        assert!(matches!(error, AccessError::Pattern { field: "read", .. }), "{error}");
    }
    assert_eq!(&*access.permission("ann", "/").unwrap().write, ".*");
    let error = access.set_permission(permission("eve", [".*"; 3])).unwrap_err();
    assert_eq!(error, AccessError::NoSuchUser { user: "eve".into() });
    let error = access.set_topic_permission(topic("ann", "t", "[{username}", "")).unwrap_err();
    assert!(error.to_string().starts_with("write pattern '[{username}' is not"), "{error}");
}

#[test]
fn topic_permissions_hold_where_they_are_set_and_nowhere_else() {
    let mut access = access_of("ann", [".*"; 3]);
    assert!(access.check_topic("ann", "/", Operation::Write, "t", "any", None));
    access.set_topic_permission(topic("ann", "t", "^a\\.", "")).unwrap();
    assert!(access.check_topic("ann", "/", Operation::Write, "t", "a.b", None));
    assert!(!access.check_topic("ann", "/", Operation::Write, "t", "b.a", None));
    assert!(!access.check_topic("ann", "/", Operation::Read, "t", "a.b", None));
    assert!(access.check_topic("ann", "/", Operation::Read, "t", "", None));
    assert!(access.check_topic("ann", "/", Operation::Write, "other", "b", None));
    assert!(access.check_topic("bob", "/", Operation::Write, "t", "b", None));
    assert_eq!(access.clear_topic_permissions("ann", "/", Some("t")).len(), 1);
    assert!(access.check_topic("ann", "/", Operation::Write, "t", "b.a", None));
}

#[test]
fn variables_stand_for_themselves_and_not_for_expressions() {
    let mut access = access_of("a.*", [".*"; 3]);
    let pattern = "^{username}-{vhost}-{client_id}$";
    access.set_topic_permission(topic("a.*", "t", pattern, "{username}")).unwrap();
    let mut may = |key, client| access.check_topic("a.*", "/", Operation::Write, "t", key, client);
    assert!(may("a.*-/-c1", Some("c1")));
    assert!(!may("abc-/-c1", Some("c1")));
    assert!(!may("a.*-/-c1", Some(".*")));
    assert!(!may("a.*-/-{client_id}", None));
    assert!(!may("a.*-/-", None));
    assert!(access.check_topic("a.*", "/", Operation::Read, "t", "xa.*x", None));
}

#[test]
fn answers_are_remembered_up_to_a_limit() {
    let mut access = access_of("ann", ["q1$"; 3]);
    for n in 0..ACCESS_CACHE_ENTRIES_MAX + 5 {
        let name = format!("q{n}");
        assert_eq!(access.check("ann", "/", Operation::Read, &name), name.ends_with("q1"));
    }
    assert_eq!(access.decisions.len(), 5);
    // The same texts, cut differently, are other questions.
    access.put_user("an", "", &[] as &[&str]).unwrap();
    assert!(access.check("ann", "/", Operation::Read, "q1"));
    assert!(!access.check("an", "n/", Operation::Read, "q1"));
}

#[test]
fn a_deleted_user_or_vhost_gives_its_permissions_back_for_the_log() {
    let mut access = access_of("ann", [".*"; 3]);
    access.set_topic_permission(topic("ann", "t", "a", "b")).unwrap();
    access.set_topic_permission(topic("ann", "u", "a", "b")).unwrap();
    access.put_user("bob", "hash", &["monitoring", "own text"]).unwrap();
    access.set_permission(permission("bob", ["", "", ""])).unwrap();
    assert_eq!((access.permissions().count(), access.topic_permissions().count()), (2, 2));
    let (permissions, topics) = access.remove_vhost("/");
    assert_eq!((permissions.len(), topics.len()), (2, 2));
    assert_eq!((access.permissions, access.topic_permissions), (0, 0));
    access.set_permission(permission("bob", ["a", "b", "c"])).unwrap();
    access.set_topic_permission(topic("bob", "t", "a", "b")).unwrap();
    let removed = access.delete_user("bob").unwrap();
    assert_eq!(removed.user.tags, [Box::from("monitoring"), Box::from("own text")]);
    assert_eq!(removed.permissions, [permission("bob", ["a", "b", "c"])]);
    assert_eq!(removed.topic_permissions, [topic("bob", "t", "a", "b")]);
    assert!(access.delete_user("bob").is_none());
    assert_eq!((access.permissions, access.topic_permissions), (0, 0));
}

#[test]
fn a_replaced_user_keeps_its_permissions_and_a_wrong_name_is_refused() {
    let mut access = access_of("ann", [".*"; 3]);
    assert!(!access.put_user("ann", "new hash", &["administrator"]).unwrap());
    assert_eq!(&*access.user("ann").unwrap().password_hash, "new hash");
    assert!(access.check("ann", "/", Operation::Read, "q"));
    for name in ["", "a\nb", &"x".repeat(256)] {
        let error = access.put_user(name, "", &["t"]).unwrap_err();
        assert!(matches!(error, AccessError::UserName { .. }), "{name:?}");
    }
    assert_eq!(access.users().count(), 1);
}
