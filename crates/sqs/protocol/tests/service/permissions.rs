//! Permissions, which are statements of the queue's policy.

use quelea_sqs_protocol::action::{
    AddPermissionRequest, DeleteQueueRequest, ReceiveMessageRequest, RemovePermissionRequest,
    SetQueueAttributesRequest,
};
use quelea_sqs_protocol::{ErrorKind, Permits, Reply, User};
use serde_json::{Value, json};

use crate::harness::{ACCOUNT, ServiceTest, map, some};

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

fn policy(test: &ServiceTest) -> Option<Value> {
    let attributes = test.queues.attributes(ACCOUNT, "q");
    attributes.get("Policy").map(|text| serde_json::from_str(text).unwrap())
}

#[test]
fn a_permission_is_a_statement_that_comes_and_goes() {
    let test = ServiceTest::with_queue("q", &[]);
    assert_eq!(test.call(add("one", &["111", "222"], &["ReceiveMessage"])).unwrap(), Reply::Empty);
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
    assert_eq!(policy(&test), Some(expected));
    test.call(add("two", &["111"], &["SendMessage", "GetQueueUrl"])).unwrap();
    test.call(remove("one")).unwrap();
    let left = policy(&test).unwrap();
    assert_eq!(left["Statement"][0]["Sid"], "two");
    assert_eq!(left["Statement"][0]["Principal"]["AWS"], "arn:aws:iam::111:root");
    assert_eq!(left["Statement"][0]["Action"], json!(["SQS:SendMessage", "SQS:GetQueueUrl"]));
    test.call(remove("two")).unwrap();
    assert_eq!(policy(&test), None);
}

#[test]
fn of_two_permissions_at_once_both_hold() {
    let test = ServiceTest::with_queue("q", &[]);
    test.call(add("one", &["111"], &["SendMessage"])).unwrap();
    let one = test.queues.attributes(ACCOUNT, "q")["Policy"].clone();
    test.call(remove("one")).unwrap();
    let mut theirs = Some(one);
    test.queues.interfere(move |facts| {
        if let Some(policy) = theirs.take() {
            facts.attributes.insert("Policy".to_owned(), policy);
        }
    });
    test.call(add("two", &["222"], &["SendMessage"])).unwrap();
    let policy = policy(&test).unwrap();
    assert_eq!(
        (&policy["Statement"][0]["Sid"], &policy["Statement"][1]["Sid"]),
        (&json!("one"), &json!("two"))
    );
}

#[test]
fn permissions_that_make_no_sense_are_refused() {
    let test = ServiceTest::with_queue("q", &[]);
    test.call(add("test", &["111"], &["ReceiveMessage"])).unwrap();
    let before = policy(&test);
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
        assert_eq!(test.refused(request), (kind, text.to_owned()));
    }
    let (_, text) = test.refused(remove("none"));
    assert_eq!(
        text,
        "Value none for parameter Label is invalid. Reason: can't find label on existing policy."
    );
    assert_eq!(policy(&test), before);
    test.call(remove("test")).unwrap();
    let (_, text) = test.refused(remove("test"));
    assert_eq!(text, "Value test for parameter Label is invalid. Reason: can't find label.");
}

#[test]
fn a_policy_allows_others_and_denies_even_the_owners_users() {
    let mut test = ServiceTest::with_queue("q", &[]);
    test.call(add("partner", &["111"], &["SendMessage"])).unwrap();
    let url = format!("http://h/{ACCOUNT}/q");
    let own = |name: &str, account: &str| User { name: Some(name.into()), account: account.into() };
    test.caller.user = own("bob", "111");
    test.send(&url, "from outside").unwrap();
    let (kind, _) = test.refused(receive(&url));
    assert_eq!(kind, ErrorKind::AccessDenied);
    test.caller.user = own("eve", "222");
    assert_eq!(test.send(&url, "x").unwrap_err().kind, ErrorKind::AccessDenied);
    test.caller.user = own("ann", ACCOUNT);
    test.call(receive(&url)).unwrap();
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
    test.call(SetQueueAttributesRequest { queue_url: some("q"), attributes }).unwrap();
    let (kind, text) = test.refused(receive(&url));
    assert_eq!(kind, ErrorKind::AccessDenied);
    assert!(
        text.contains("a resource-based policy denies the sqs:receivemessage action"),
        "{text}"
    );
    test.send(&url, "still").unwrap();
}

#[test]
fn permissions_that_nobody_could_read_any_more_are_not_stored() {
    let test = ServiceTest::with_queue("q", &[]);
    let accounts: Vec<String> = (100..151).map(|n| n.to_string()).collect();
    let accounts: Vec<&str> = accounts.iter().map(String::as_str).collect();
    let (kind, text) = test.refused(add("many", &accounts, &["SendMessage"]));
    assert_eq!(kind, ErrorKind::OverLimit);
    assert_eq!(text, "51 Principals were found in the submitted policy, max allowed is 50");
    assert_eq!(policy(&test), None);
    test.call(add("first", &accounts[..30], &["SendMessage"])).unwrap();
    let before = policy(&test);
    let (kind, _) = test.refused(add("second", &accounts[30..], &["SendMessage"]));
    assert_eq!(kind, ErrorKind::OverLimit);
    // Nineteen statements of 7 actions, a label of 80 letters and a long account are more than 8 KiB.
    let actions = [
        "ChangeMessageVisibility",
        "ListDeadLetterSourceQueues",
        "GetQueueAttributes",
        "ReceiveMessage",
        "DeleteMessage",
        "SendMessage",
        "GetQueueUrl",
    ];
    let refused = (0..19).find_map(|n| {
        let label = format!("{n:080}");
        test.call(add(&label, &[&"1".repeat(99)], &actions)).err()
    });
    assert_eq!(refused.unwrap().kind, ErrorKind::InvalidAttributeValue);
    assert_ne!(policy(&test), before, "some of them fit");
}

#[test]
fn a_policy_that_cannot_be_read_denies_all_but_mending_it() {
    let mut test = ServiceTest::with_queue("q", &[]);
    test.queues.interfere(|facts| {
        facts.attributes.insert("Policy".to_owned(), "{\"Rules\": []}".to_owned());
    });
    let delay = |seconds: &str| SetQueueAttributesRequest {
        queue_url: some("q"),
        attributes: map(&[("DelaySeconds", seconds)]),
    };
    // The change before which it is written.
    test.call(delay("1")).unwrap();
    test.queues.interfere(|_| {});
    test.caller.user = User { name: Some("ann".into()), account: ACCOUNT.into() };
    let error = test.send("q", "x").unwrap_err();
    assert_eq!(error.kind, ErrorKind::AccessDenied);
    assert!(error.message.contains("policy cannot be read"), "{}", error.message);
    assert_eq!(test.refused(receive("q")).0, ErrorKind::AccessDenied);
    let (kind, _) = test.refused(add("new", &["111"], &["SendMessage"]));
    assert_eq!(kind, ErrorKind::InvalidAttributeValue);
    test.call(delay("0")).unwrap();
    let attributes = map(&[("Policy", "")]);
    test.call(SetQueueAttributesRequest { queue_url: some("q"), attributes }).unwrap();
    test.send("q", "x").unwrap();
    // Whoever may not change the queue cannot mend it.
    test.queues.permit(Permits { configure: false, write: true, read: true });
    assert_eq!(test.refused(delay("2")).0, ErrorKind::AccessDenied);
}

#[test]
fn a_policy_gives_nobody_what_is_the_owners() {
    let mut test = ServiceTest::with_queue("q", &[]);
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
    test.call(SetQueueAttributesRequest { queue_url: some("q"), attributes }).unwrap();
    test.caller.user = User { name: Some("eve".into()), account: "222".into() };
    let url = format!("http://h/{ACCOUNT}/q");
    test.call(receive(&url)).unwrap();
    let (kind, _) = test.refused(DeleteQueueRequest { queue_url: some(&url) });
    assert_eq!(kind, ErrorKind::AccessDenied);
}

fn receive(url: &str) -> ReceiveMessageRequest {
    ReceiveMessageRequest { queue_url: some(url), ..ReceiveMessageRequest::default() }
}
