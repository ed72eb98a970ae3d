//! Names of queues, and all other lists, page by page.

use quelea_broker::report::{
    BindingReport, ChannelReport, ConnectionReport, ConsumerReport, ExchangeReport, QueueReport,
    VhostReport,
};
use quelea_broker::{BrokerConfig, Consume, Listable};

use crate::broker_test::{BrokerTest, StoreKind};
use crate::served_in_between::{bind_to, declare, delete, fill_vhost, publish};

/// Returns the names of all pages, each within the steps of a turn, and how many pages.
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
fn a_page_is_one_turns_work_and_all_pages_have_each_name_once() {
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

/// Returns a whole list by its pages, each within the steps of a turn; and how many pages.
fn pages<R: Listable>(test: &mut BrokerTest, vhost: Option<&str>) -> (Vec<R>, usize) {
    let before = test.broker.work_done();
    let keys = test.broker.list_keys::<R>(vhost);
    assert!(test.broker.work_done() - before <= 1 + keys.len() as u64 / 10);
    let (mut reports, mut from, mut pages) = (Vec::new(), 0, 0);
    while from < keys.len() {
        let before = test.broker.work_done();
        let (page, looked_at) = test.broker.list_page::<R>(&keys[from..]);
        let (steps, allowed) = (test.broker.work_done() - before, test.broker.steps_per_turn());
        assert!(steps <= allowed, "{steps} of {allowed} steps");
        reports.extend(page);
        from += looked_at;
        pages += 1;
    }
    R::sort(&mut reports);
    (reports, pages)
}

#[test]
fn a_list_of_anything_is_made_of_pages_of_one_turns_work_each() {
    let mut test = BrokerTest::new(BrokerConfig::default(), StoreKind::Memory);
    for n in 0..200 {
        let name = format!("q{n:03}");
        declare(&mut test, "me", &name, false);
        let channel = test.client(&format!("client {n}")).channel;
        let consume = Consume { queue: name, ..Consume::default() };
        test.broker.consume(test.now, channel, &consume).unwrap();
    }
    bind_to(&mut test, "amq.direct", "q000", 300);
    fill_vhost(&mut test, 100);
    test.broker.set_steps_per_turn(1_000);
    test.turn();
    let (queues, count) = pages::<QueueReport>(&mut test, None);
    assert_eq!(queues.len(), 300);
    assert_eq!(format!("{queues:?}"), format!("{:?}", test.broker.queues(None)));
    assert!(count >= 15, "{count} pages of queues");
    let (bindings, count) = pages::<BindingReport>(&mut test, None);
    assert_eq!(bindings.len(), 300 + 300 + 100);
    assert_eq!(format!("{bindings:?}"), format!("{:?}", test.broker.bindings(None)));
    assert!(count >= 30, "{count} pages of bindings");
    let (exchanges, _) = pages::<ExchangeReport>(&mut test, Some("full"));
    assert_eq!(exchanges.len(), 107);
    assert_eq!(format!("{exchanges:?}"), format!("{:?}", test.broker.exchanges(Some("full"))));
    assert_eq!(pages::<QueueReport>(&mut test, Some("full")).0.len(), 100);
    let (connections, count) = pages::<ConnectionReport>(&mut test, None);
    assert_eq!(connections.len(), test.broker.connections().len());
    assert!(count >= 10, "{count} pages of connections");
    assert_eq!(pages::<ChannelReport>(&mut test, None).0.len(), connections.len());
    assert_eq!(pages::<ConsumerReport>(&mut test, None).0.len(), 200);
    assert_eq!(pages::<ConsumerReport>(&mut test, Some("full")).0.len(), 0);
    declare(&mut test, "me", "backlog", false);
    (0..30).for_each(|_| publish(&mut test, "me", "backlog"));
    test.settle();
    let (vhosts, count) = pages::<VhostReport>(&mut test, None);
    assert_eq!(format!("{vhosts:?}"), format!("{:?}", test.broker.vhosts()));
    let sums = vhosts.iter().map(|vhost| (vhost.name.as_str(), vhost.queues, vhost.messages_ready));
    assert_eq!(sums.collect::<Vec<_>>(), [("/", 201, 30), ("full", 100, 0)]);
    assert!(count >= 2, "{count} pages of virtual hosts");
    assert_eq!(pages::<VhostReport>(&mut test, Some("full")).0.len(), 1);
    delete(&mut test, "backlog");
    // What goes while a list is made is not in it.
    let keys = test.broker.list_keys::<QueueReport>(None);
    delete(&mut test, "q007");
    let (mut from, mut found) = (0, 0);
    while from < keys.len() {
        let (page, looked_at) = test.broker.list_page::<QueueReport>(&keys[from..]);
        (from, found) = (from + looked_at, found + page.len());
    }
    assert_eq!(found, 299);
}
