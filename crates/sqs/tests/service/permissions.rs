//! Permissions, which are statements of the queue's policy.

use quelea_sqs::action::{
    AddPermissionRequest, DeleteQueueRequest, ReceiveMessageRequest, RemovePermissionRequest,
    SetQueueAttributesRequest,
};
use quelea_sqs::{ErrorKind, Reply, User};
use serde_json::{Value, json};

use crate::harness::{ACCOUNT, World, map, some};

fn add(label: &str, accounts: &[&str], actions: &[&str]) -> AddPermissionRequest {
    let owned = |texts: &[&str]| texts.iter().map(|text| (*text).to_owned()).collect();
    AddPermissionRequest {
        queue_url: some("q"),
        label: some(label),
        aws_account_ids: owned(accounts),
        actions: owned(actions),
    }
}

fn remove(label: &str) -> RemovePermissionRequest {
    RemovePermissionRequest { queue_url: some("q"), label: some(label) }
}

fn policy(world: &World) -> Option<Value> {
    let attributes = world.queues.attributes(ACCOUNT, "q");
    attributes.get("Policy").map(|text| serde_json::from_str(text).unwrap())
}

#[test]
fn a_permission_is_a_statement_that_comes_and_goes() {
    let world = World::with_queue("q", &[]);
    assert_eq!(world.call(add("one", &["111", "222"], &["ReceiveMessage"])).unwrap(), Reply::Empty);
    let arn = "arn:aws:sqs:us-east-1:000000000000:q";
    let first = json!({
        "Sid": "one",
        "Effect": "Allow",
        "Principal": { "AWS": ["arn:aws:iam::111:root", "arn:aws:iam::222:root"] },
        "Action": "SQS:ReceiveMessage",
        "Resource": arn,
    });
    let expected = json!({
        "Version": "2008-10-17",
        "Id": format!("{arn}/SQSDefaultPolicy"),
        "Statement": [first],
    });
    assert_eq!(policy(&world), Some(expected));
    world.call(add("two", &["111"], &["SendMessage", "GetQueueUrl"])).unwrap();
    world.call(remove("one")).unwrap();
    let left = policy(&world).unwrap();
    assert_eq!(left["Statement"][0]["Sid"], "two");
    assert_eq!(left["Statement"][0]["Principal"]["AWS"], "arn:aws:iam::111:root");
    assert_eq!(left["Statement"][0]["Action"], json!(["SQS:SendMessage", "SQS:GetQueueUrl"]));
    world.call(remove("two")).unwrap();
    assert_eq!(policy(&world), None);
}

#[test]
fn of_two_permissions_at_once_both_hold() {
    let world = World::with_queue("q", &[]);
    world.call(add("one", &["111"], &["SendMessage"])).unwrap();
    let one = world.queues.attributes(ACCOUNT, "q")["Policy"].clone();
    world.call(remove("one")).unwrap();
    let mut theirs = Some(one);
    world.queues.interfere(move |facts| {
        if let Some(policy) = theirs.take() {
            facts.attributes.insert("Policy".to_owned(), policy);
        }
    });
    world.call(add("two", &["222"], &["SendMessage"])).unwrap();
    let policy = policy(&world).unwrap();
    assert_eq!(
        (&policy["Statement"][0]["Sid"], &policy["Statement"][1]["Sid"]),
        (&json!("one"), &json!("two"))
    );
}

#[test]
fn permissions_that_make_no_sense_are_refused() {
    let world = World::with_queue("q", &[]);
    world.call(add("test", &["111"], &["ReceiveMessage"])).unwrap();
    let before = policy(&world);
    let eight = ["SendMessage"; 8];
    for (request, kind, text) in [
        (
            add("test", &["111"], &["SendMessage"]),
            ErrorKind::InvalidParameterValue,
            "Value test for parameter Label is invalid. Reason: Already exists.",
        ),
        (
            add("new", &["111"], &["RemovePermission"]),
            ErrorKind::InvalidParameterValue,
            "Value SQS:RemovePermission for parameter ActionName is invalid. Reason: Only the queue \
             owner is allowed to invoke this action.",
        ),
        (
            add("new", &["111"], &["Nothing"]),
            ErrorKind::InvalidParameterValue,
            "Value SQS:Nothing for parameter ActionName is invalid. Reason: Please refer to the \
             appropriate WSDL for a list of valid actions. ",
        ),
        (
            add("new", &["111"], &[]),
            ErrorKind::MissingParameter,
            "The request must contain the parameter Actions.",
        ),
        (
            add("new", &[], &["SendMessage"]),
            ErrorKind::InvalidParameterValue,
            "Value [] for parameter PrincipalId is invalid. Reason: Unable to verify.",
        ),
        (
            add("new", &["111"], &eight),
            ErrorKind::OverLimit,
            "8 Actions were found, maximum allowed is 7.",
        ),
    ] {
        assert_eq!(world.refused(request), (kind, text.to_owned()));
    }
    let (_, text) = world.refused(remove("none"));
    assert_eq!(
        text,
        "Value none for parameter Label is invalid. Reason: can't find label on existing policy."
    );
    assert_eq!(policy(&world), before);
    world.call(remove("test")).unwrap();
    let (_, text) = world.refused(remove("test"));
    assert_eq!(text, "Value test for parameter Label is invalid. Reason: can't find label.");
}

#[test]
fn a_policy_allows_others_and_denies_even_the_owners_users() {
    let mut world = World::with_queue("q", &[]);
    world.call(add("partner", &["111"], &["SendMessage"])).unwrap();
    let url = format!("http://h/{ACCOUNT}/q");
    let own = |name: &str, account: &str| User { name: Some(name.into()), account: account.into() };
    world.caller.user = own("bob", "111");
    world.send(&url, "from outside").unwrap();
    let (kind, _) = world.refused(receive(&url));
    assert_eq!(kind, ErrorKind::AccessDenied);
    world.caller.user = own("eve", "222");
    assert_eq!(world.send(&url, "x").unwrap_err().kind, ErrorKind::AccessDenied);
    world.caller.user = own("ann", ACCOUNT);
    world.call(receive(&url)).unwrap();
    let deny = json!({
        "Version": "2012-10-17",
        "Statement": [{
            "Effect": "Deny",
            "Principal": "*",
            "Action": ["sqs:ReceiveMessage", "sqs:DeleteMessage"],
            "Resource": "arn:aws:sqs:us-east-1:000000000000:q",
        }],
    });
    let attributes = map(&[("Policy", &deny.to_string())]);
    world.call(SetQueueAttributesRequest { queue_url: some("q"), attributes }).unwrap();
    let (kind, text) = world.refused(receive(&url));
    assert_eq!(kind, ErrorKind::AccessDenied);
    assert!(
        text.contains("a resource-based policy denies the sqs:receivemessage action"),
        "{text}"
    );
    world.send(&url, "still").unwrap();
}

#[test]
fn a_policy_gives_nobody_what_is_the_owners() {
    let mut world = World::with_queue("q", &[]);
    let all = json!({
        "Version": "2012-10-17",
        "Statement": [{
            "Effect": "Allow",
            "Principal": "*",
            "Action": "sqs:*",
            "Resource": "arn:aws:sqs:us-east-1:000000000000:q",
        }],
    });
    let attributes = map(&[("Policy", &all.to_string())]);
    world.call(SetQueueAttributesRequest { queue_url: some("q"), attributes }).unwrap();
    world.caller.user = User { name: Some("eve".into()), account: "222".into() };
    let url = format!("http://h/{ACCOUNT}/q");
    world.call(receive(&url)).unwrap();
    let (kind, _) = world.refused(DeleteQueueRequest { queue_url: some(&url) });
    assert_eq!(kind, ErrorKind::AccessDenied);
}

fn receive(url: &str) -> ReceiveMessageRequest {
    ReceiveMessageRequest { queue_url: some(url), ..ReceiveMessageRequest::default() }
}
