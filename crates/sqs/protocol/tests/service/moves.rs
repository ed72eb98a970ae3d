//! Tasks that move messages out of dead-letter queues.

use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;
use quelea_sqs_protocol::action::{
    CancelMessageMoveTaskRequest, ListMessageMoveTasksRequest, SetQueueAttributesRequest,
    StartMessageMoveTaskRequest,
};
use quelea_sqs_protocol::{ErrorKind, Reply, User};
use serde_json::json;

use crate::harness::{ACCOUNT, ServiceTest, map, some};

fn arn(name: &str) -> String {
    format!("arn:aws:sqs:us-east-1:{ACCOUNT}:{name}")
}

fn start(source: &str, destination: Option<&str>) -> StartMessageMoveTaskRequest {
    StartMessageMoveTaskRequest {
        source_arn: Some(arn(source)),
        destination_arn: destination.map(arn),
        max_number_of_messages_per_second: None,
    }
}

fn cancel(handle: &str) -> CancelMessageMoveTaskRequest {
    CancelMessageMoveTaskRequest { task_handle: some(handle) }
}

/// Returns a test with a queue, its dead-letter queue, and another.
fn test() -> ServiceTest {
    let test = ServiceTest::with_queue("dlq", &[]);
    let policy = format!(r#"{{"deadLetterTargetArn":"{}","maxReceiveCount":1}}"#, arn("dlq"));
    test.create("source", &[("RedrivePolicy", &policy)]).unwrap();
    test.create("other", &[]).unwrap();
    test
}

#[test]
fn a_task_runs_is_listed_and_is_cancelled() {
    let test = test();
    let request = StartMessageMoveTaskRequest {
        max_number_of_messages_per_second: Some(500),
        ..start("dlq", Some("other"))
    };
    let Ok(Reply::StartMessageMoveTask(started)) = test.call(request) else { panic!("refused") };
    let handle = started.task_handle.unwrap();
    let list = ListMessageMoveTasksRequest { source_arn: Some(arn("dlq")), max_results: None };
    let Ok(Reply::ListMessageMoveTasks(listed)) = test.call(list) else { panic!("refused") };
    let task = &listed.results[0];
    assert_eq!(task.task_handle.as_ref(), Some(&handle));
    assert_eq!(task.status.as_deref(), Some("RUNNING"));
    assert_eq!(task.source_arn, Some(arn("dlq")));
    assert_eq!(task.destination_arn, Some(arn("other")));
    assert_eq!(task.max_number_of_messages_per_second, Some(500));
    assert_eq!(task.approximate_number_of_messages_to_move, Some(9));
    let (_, text) = test.refused(start("dlq", None));
    assert_eq!(
        text,
        "There is already a task running. Only one active task is allowed for a source queue arn \
         at a given time."
    );
    let Ok(Reply::CancelMessageMoveTask(cancelled)) = test.call(cancel(&handle)) else {
        panic!("refused");
    };
    assert_eq!(cancelled.approximate_number_of_messages_moved, Some(5));
    let (kind, text) = test.refused(cancel(&handle));
    assert_eq!(kind, ErrorKind::ResourceNotFoundException);
    assert_eq!(text, "Task does not exist.");
}

#[test]
fn a_task_needs_queues_that_exist_and_fit() {
    let test = test();
    test.create("other.fifo", &[("FifoQueue", "true")]).unwrap();
    let missing = |parameter: &str| {
        let text =
            format!("The resource that you specified for the {parameter} parameter doesn't exist.");
        (ErrorKind::ResourceNotFoundException, text)
    };
    assert_eq!(test.refused(start("none", None)), missing("SourceArn"));
    assert_eq!(test.refused(start("dlq", Some("none"))), missing("DestinationArn"));
    let (_, text) = test.refused(start("other", None));
    assert_eq!(text, "Source queue must be configured as a Dead Letter Queue.");
    for bad in ["dlq", "other.fifo"] {
        let (kind, _) = test.refused(start("dlq", Some(bad)));
        assert_eq!(kind, ErrorKind::InvalidParameterValue);
    }
    for bad in [0, 501] {
        let request = StartMessageMoveTaskRequest {
            max_number_of_messages_per_second: Some(bad),
            ..start("dlq", None)
        };
        assert_eq!(test.refused(request).0, ErrorKind::InvalidParameterValue);
    }
    let list =
        |arn: &str, max| ListMessageMoveTasksRequest { source_arn: some(arn), max_results: max };
    let (_, text) = test.refused(list("dummy", None));
    assert_eq!(
        text,
        "You must use this format to specify the SourceArn: \
         arn:<partition>:<service>:<region>:<account-id>:<resource-id>"
    );
    assert_eq!(test.refused(list(&arn("dlq"), Some(11))).0, ErrorKind::InvalidParameterValue);
}

#[test]
fn a_handle_with_another_queue_in_it_cancels_nothing() {
    let test = test();
    let Ok(Reply::StartMessageMoveTask(started)) = test.call(start("dlq", None)) else {
        panic!("refused");
    };
    let handle = started.task_handle.unwrap();
    // As SQS has it: JSON in Base64.
    let text = String::from_utf8(STANDARD.decode(&handle).unwrap()).unwrap();
    let fields: serde_json::Value = serde_json::from_str(&text).unwrap();
    assert_eq!(fields["sourceArn"], arn("dlq"));
    assert!(fields["taskId"].is_string());
    // What the caller may do is asked for the queue in the handle, which anybody can write.
    let forged = STANDARD.encode(text.replace(":dlq\"", ":other\""));
    assert_ne!(forged, handle);
    let (kind, text) = test.refused(cancel(&forged));
    assert_eq!(kind, ErrorKind::ResourceNotFoundException);
    assert_eq!(text, "Task does not exist.");
    test.call(cancel(&handle)).unwrap();
}

#[test]
fn a_handle_of_no_task_is_refused() {
    let test = test();
    for bad in ["garbage", "!"] {
        let (kind, text) = test.refused(cancel(bad));
        assert_eq!(kind, ErrorKind::InvalidParameterValue);
        assert_eq!(text, "Value for parameter TaskHandle is invalid.");
    }
    assert_eq!(test.refused(cancel("")).0, ErrorKind::MissingParameter);
}

/// A policy that denies everybody an action on a queue.
fn deny(test: &ServiceTest, queue: &str, action: &str) {
    let policy = json!({
        "Version": "2012-10-17",
        "Statement": [
            { "Effect": "Deny", "Principal": "*", "Action": action, "Resource": arn(queue) },
        ],
    });
    let attributes = map(&[("Policy", &policy.to_string())]);
    test.call(SetQueueAttributesRequest { queue_url: some(queue), attributes }).unwrap();
}

#[test]
fn a_task_is_no_way_around_what_is_denied() {
    for (queue, action, destination) in [
        ("dlq", "sqs:StartMessageMoveTask", Some("other")),
        ("dlq", "sqs:ReceiveMessage", Some("other")),
        ("dlq", "sqs:DeleteMessage", Some("other")),
        ("dlq", "sqs:GetQueueAttributes", Some("other")),
        ("other", "sqs:SendMessage", Some("other")),
        ("source", "sqs:SendMessage", None),
        ("zource", "sqs:SendMessage", None),
    ] {
        let mut test = test();
        let policy = format!(r#"{{"deadLetterTargetArn":"{}","maxReceiveCount":1}}"#, arn("dlq"));
        test.create("zource", &[("RedrivePolicy", &policy)]).unwrap();
        deny(&test, queue, action);
        test.caller.user.name = Some("ann".into());
        let (kind, text) = test.refused(start("dlq", destination));
        assert_eq!(kind, ErrorKind::AccessDenied, "{queue} {action}");
        assert!(text.contains(&arn(queue)), "{text}");
    }
    // Nothing goes back to the source, so nobody has to be allowed to send there.
    let mut test = test();
    deny(&test, "source", "sqs:SendMessage");
    test.caller.user.name = Some("ann".into());
    test.call(start("dlq", Some("other"))).unwrap();
}

#[test]
fn a_policy_gives_tasks_to_no_other_account() {
    let mut test = test();
    let policy = json!({
        "Version": "2012-10-17",
        "Statement": [
            { "Effect": "Allow", "Principal": "*", "Action": "sqs:*", "Resource": "*" },
        ],
    });
    let attributes = map(&[("Policy", &policy.to_string())]);
    test.call(SetQueueAttributesRequest { queue_url: some("dlq"), attributes }).unwrap();
    let Ok(Reply::StartMessageMoveTask(started)) = test.call(start("dlq", None)) else {
        panic!("refused");
    };
    test.caller.user = User { name: Some("eve".into()), account: "222".into() };
    assert_eq!(test.refused(start("dlq", None)).0, ErrorKind::AccessDenied);
    let handle = started.task_handle.unwrap();
    assert_eq!(test.refused(cancel(&handle)).0, ErrorKind::AccessDenied);
    let list = ListMessageMoveTasksRequest { source_arn: Some(arn("dlq")), max_results: None };
    assert_eq!(test.refused(list).0, ErrorKind::AccessDenied);
}

#[test]
fn a_redrive_policy_needs_leave_to_send_to_its_target() {
    let mut test = test();
    deny(&test, "other", "sqs:SendMessage");
    test.caller.user.name = Some("ann".into());
    let policy =
        |name: &str| format!(r#"{{"deadLetterTargetArn":"{}","maxReceiveCount":1}}"#, arn(name));
    let error = test.create("new", &[("RedrivePolicy", &policy("other"))]).unwrap_err();
    assert_eq!(error.kind, ErrorKind::AccessDenied);
    let attributes = map(&[("RedrivePolicy", &policy("other"))]);
    let (kind, text) =
        test.refused(SetQueueAttributesRequest { queue_url: some("source"), attributes });
    assert_eq!(kind, ErrorKind::AccessDenied);
    assert!(text.contains("sqs:sendmessage") && text.contains(&arn("other")), "{text}");
    test.create("new", &[("RedrivePolicy", &policy("dlq"))]).unwrap();
}
