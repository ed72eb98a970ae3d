//! Names of queues, page by page.

use quelea_broker::BrokerConfig;

use crate::broker_test::{BrokerTest, StoreKind};
use crate::served_in_between::{declare, delete};

/// All pages, each within the steps of a turn.
fn names(test: &mut BrokerTest, prefix: &str, after: Option<&str>) -> (Vec<String>, usize) {
    let (mut names, mut pages) = (Vec::new(), 0);
    let mut after = after.map(str::to_owned);
    loop {
        let before = test.broker.work_done();
        let wanted = |name: &str, _: &_| !name.ends_with('7');
        let found = test.broker.queue_names("/", prefix, after.as_deref(), wanted);
        let (steps, allowed) = (test.broker.work_done() - before, test.broker.steps_per_turn());
        assert!(steps <= allowed, "{steps} of {allowed} steps");
        names.extend(found.names.iter().map(ToString::to_string));
        pages += 1;
        match found.go_on_after {
            Some(last) => after = Some(last.to_string()),
            None => return (names, pages),
        }
    }
}

#[test]
fn a_page_has_what_a_turn_can_look_at_and_all_pages_have_every_name_once() {
    let mut test = BrokerTest::new(BrokerConfig::default(), StoreKind::Memory);
    for n in 0..300 {
        declare(&mut test, "me", &format!("q{n:03}"), false);
    }
    declare(&mut test, "me", "other", false);
    declare(&mut test, "me", "q own", true);
    delete(&mut test, "q004");
    test.broker.set_steps_per_turn(1_000);
    let expected: Vec<String> =
        (0..300).filter(|n| n % 10 != 7 && *n != 4).map(|n| format!("q{n:03}")).collect();
    let (found, pages) = names(&mut test, "q", None);
    assert_eq!(found, expected);
    assert!(pages >= 15, "{pages} pages");
    // What does not begin so is not looked at.
    assert_eq!(names(&mut test, "q01", None).1, 1);
    assert_eq!(names(&mut test, "q", Some("q297")).0, ["q298", "q299"]);
    assert_eq!(names(&mut test, "other", Some("a")).0, ["other"]);
    assert_eq!(names(&mut test, "none", None), (Vec::new(), 1));
}
