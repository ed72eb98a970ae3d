//! Making, finding, listing, purging and deleting queues.

use quelea_sqs_protocol::action::{
    CreateQueueRequest, DeleteQueueRequest, GetQueueUrlRequest, ListDeadLetterSourceQueuesRequest,
    ListQueuesRequest, ListQueuesResult, PurgeQueueRequest,
};
use quelea_sqs_protocol::{ErrorKind, Permits, Reply, User};

use crate::harness::{ACCOUNT, ServiceTest, map, some};

fn url(test: &ServiceTest, name: &str, owner: Option<&str>) -> Result<String, (ErrorKind, String)> {
    let request = GetQueueUrlRequest {
        queue_name: some(name),
        queue_owner_aws_account_id: owner.map(str::to_owned),
    };
    match test.call(request) {
        Ok(Reply::GetQueueUrl(result)) => Ok(result.queue_url.unwrap()),
        Ok(other) => panic!("{other:?}"),
        Err(error) => Err((error.kind, error.message)),
    }
}

#[test]
fn a_queue_is_made_once_and_found_by_its_name() {
    let test = ServiceTest::new();
    for _ in 0..2 {
        let Ok(Reply::CreateQueue(made)) = test.create("orders", &[("DelaySeconds", "5")]) else {
            panic!("not made");
        };
        assert_eq!(made.queue_url.unwrap(), "http://localhost:9324/000000000000/orders");
    }
    assert!(test.create("orders", &[]).is_ok(), "attributes that are not named do not differ");
    assert_eq!(url(&test, "orders", None).unwrap(), "http://localhost:9324/000000000000/orders");
    assert_eq!(url(&test, "orders", Some(ACCOUNT)), url(&test, "orders", None));
    let unknown = (ErrorKind::QueueDoesNotExist, "The specified queue does not exist.".to_owned());
    assert_eq!(url(&test, "orders", Some("1")), Err(unknown.clone()));
    assert_eq!(url(&test, "other", None), Err(unknown));
    let (_, message) = url(&test, "", None).unwrap_err();
    assert_eq!(
        message,
        "Value for parameter QueueName is invalid. Reason: Must specify a queue name."
    );
}

#[test]
fn a_queue_with_other_attributes_is_refused_with_the_first_that_differs() {
    let test = ServiceTest::with_queue("orders", &[("DelaySeconds", "5")]);
    let error = test.create("orders", &[("DelaySeconds", "6"), ("VisibilityTimeout", "30")]);
    let error = error.unwrap_err();
    assert_eq!(error.kind, ErrorKind::QueueNameExists);
    assert_eq!(
        error.message,
        "A queue already exists with the same name and a different value for attribute DelaySeconds"
    );
}

#[test]
fn names_that_are_none_are_refused() {
    let test = ServiceTest::new();
    for name in ["", "a.b", "a.fifo", "/a", &"x".repeat(81)] {
        let error = test.create(name, &[]).unwrap_err();
        assert_eq!(error.kind, ErrorKind::InvalidParameterValue);
        assert_eq!(
            error.message,
            "Can only include alphanumeric characters, hyphens, or underscores. 1 to 80 in length"
        );
    }
    let error = test.create("a", &[("FifoQueue", "true")]).unwrap_err();
    assert!(error.message.contains("must end with .fifo suffix"), "{}", error.message);
    let text = "Value for parameter QueueName is invalid. Reason: Must specify a queue name.";
    for refused in
        [test.refused(CreateQueueRequest::default()), test.refused(GetQueueUrlRequest::default())]
    {
        assert_eq!(refused, (ErrorKind::InvalidParameterValue, text.to_owned()));
    }
}

#[test]
fn a_deleted_queue_is_gone_and_its_name_free_after_a_minute() {
    let test = ServiceTest::with_queue("orders", &[]);
    let delete = DeleteQueueRequest { queue_url: some("http://any/000000000000/orders") };
    assert_eq!(test.call(delete.clone()).unwrap(), Reply::Empty);
    assert_eq!(test.refused(delete).0, ErrorKind::QueueDoesNotExist);
    let error = test.create("orders", &[]).unwrap_err();
    assert_eq!(error.kind, ErrorKind::QueueDeletedRecently);
    assert_eq!(
        error.message,
        "You must wait 60 seconds after deleting a queue before you can create another with the \
         same name."
    );
}

#[test]
fn a_purge_empties_a_queue_once_a_minute() {
    let test = ServiceTest::with_queue("orders", &[]);
    test.send("orders", "x").unwrap();
    let purge = PurgeQueueRequest { queue_url: some("orders") };
    test.call(purge.clone()).unwrap();
    assert!(test.receive("orders").is_empty());
    let (kind, message) = test.refused(purge);
    assert_eq!(kind, ErrorKind::PurgeQueueInProgress);
    assert_eq!(message, "Only one PurgeQueue operation on orders is allowed every 60 seconds.");
}

#[test]
fn a_url_has_to_be_there_and_to_name_a_queue() {
    let test = ServiceTest::new();
    let (kind, message) = test.refused(PurgeQueueRequest::default());
    assert_eq!(kind, ErrorKind::MissingParameter);
    assert_eq!(message, "The request must contain the parameter QueueUrl.");
    let (kind, message) = test.refused(PurgeQueueRequest { queue_url: some("http://localhost") });
    assert_eq!(kind, ErrorKind::InvalidAddress);
    assert_eq!(message, "The address http://localhost is not valid for this endpoint.");
}

#[test]
fn queues_are_listed_page_by_page() {
    let test = ServiceTest::new();
    for name in ["a-1", "a-2", "a-3", "b-1"] {
        test.create(name, &[]).unwrap();
    }
    let list = |prefix: &str, max: Option<i64>, token: Option<String>| -> ListQueuesResult {
        let request = ListQueuesRequest {
            queue_name_prefix: some(prefix),
            next_token: token,
            max_results: max,
        };
        match test.call(request) {
            Ok(Reply::ListQueues(result)) => result,
            other => panic!("{other:?}"),
        }
    };
    let all = list("", None, None);
    assert_eq!((all.queue_urls.len(), all.next_token), (4, None));
    let first = list("a", Some(2), None);
    assert_eq!(first.queue_urls[1], "http://localhost:9324/000000000000/a-2");
    let second = list("a", Some(2), first.next_token);
    assert_eq!(second.queue_urls, ["http://localhost:9324/000000000000/a-3"]);
    assert_eq!(second.next_token, None);
    assert_eq!(list("a", Some(3), None).next_token, None, "a full page may be the last");
    for bad in [0, 1001, -1] {
        let request = ListQueuesRequest { max_results: Some(bad), ..ListQueuesRequest::default() };
        assert_eq!(test.refused(request).0, ErrorKind::InvalidParameterValue);
    }
    let request = ListQueuesRequest { next_token: some("*"), ..ListQueuesRequest::default() };
    assert_eq!(test.refused(request).0, ErrorKind::InvalidParameterValue);
}

#[test]
fn a_dead_letter_queue_lists_its_sources() {
    let test = ServiceTest::with_queue("dlq", &[]);
    let policy =
        r#"{"deadLetterTargetArn":"arn:aws:sqs:us-east-1:000000000000:dlq","maxReceiveCount":2}"#;
    test.create("source", &[("RedrivePolicy", policy)]).unwrap();
    let request = ListDeadLetterSourceQueuesRequest {
        queue_url: some("dlq"),
        ..ListDeadLetterSourceQueuesRequest::default()
    };
    let Ok(Reply::ListDeadLetterSourceQueues(sources)) = test.call(request) else {
        panic!("no list");
    };
    assert_eq!(sources.queue_urls, ["http://localhost:9324/000000000000/source"]);
}

#[test]
fn users_do_what_their_permissions_say() {
    let mut test = ServiceTest::with_queue("orders", &[]);
    test.caller.user = User { name: Some("ann".into()), account: ACCOUNT.into() };
    test.queues.permit(Permits { configure: false, write: true, read: false });
    test.send("orders", "x").unwrap();
    assert!(url(&test, "orders", None).is_ok());
    let (kind, message) = test.refused(PurgeQueueRequest { queue_url: some("orders") });
    assert_eq!(kind, ErrorKind::AccessDenied);
    assert_eq!(
        message,
        "User: arn:aws:iam::000000000000:user/ann is not authorized to perform: sqs:purgequeue on \
         resource: arn:aws:sqs:us-east-1:000000000000:orders because no identity-based policy \
         allows the sqs:purgequeue action"
    );
    let create =
        CreateQueueRequest { queue_name: some("new"), attributes: map(&[]), tags: map(&[]) };
    assert_eq!(test.refused(create).0, ErrorKind::AccessDenied);
}

#[test]
fn a_page_is_filled_with_queues_that_the_user_may_see() {
    let mut test = ServiceTest::new();
    let hidden = (0..9).map(|number| format!("hidden{number}"));
    for name in ["a", "b", "x", "y"].map(str::to_owned).into_iter().chain(hidden) {
        test.create(&name, &[]).unwrap();
    }
    test.caller.user.name = Some("ada".into());
    let mut pages = Vec::new();
    let mut next_token = None;
    loop {
        let request = ListQueuesRequest { max_results: Some(2), next_token, ..Default::default() };
        let Ok(Reply::ListQueues(page)) = test.call(request) else { panic!("no list") };
        pages.push(page.queue_urls.iter().map(|url| url[url.len() - 1..].to_owned()).collect());
        next_token = page.next_token;
        if next_token.is_none() {
            break;
        }
    }
    let pages: Vec<Vec<String>> = pages;
    assert_eq!(pages, [["a", "b"], ["x", "y"]]);
}
