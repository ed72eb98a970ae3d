//! Bodies of calls put together here, and answers read only as far as needed: the generator must
//! cost less than the service.

use std::borrow::Cow;

use quelea_sqs_client::ServiceError;
use serde::Deserialize;
use serde::de::IgnoredAny;

/// Messages of a batch.
pub(crate) const BATCH: usize = 10;

/// A message as it was received, by its JSON text.
#[derive(Debug, Deserialize)]
pub(crate) struct Received<'a> {
    #[serde(rename = "ReceiptHandle", borrow)]
    pub receipt_handle: Cow<'a, str>,
    #[serde(rename = "Body", borrow)]
    pub body: Cow<'a, str>,
}

#[derive(Deserialize)]
struct ReceiveAnswer<'a> {
    #[serde(rename = "Messages", default, borrow)]
    messages: Vec<Received<'a>>,
}

#[derive(Deserialize)]
struct BatchAnswer {
    #[serde(rename = "Failed", default)]
    failed: Vec<IgnoredAny>,
}

#[derive(Deserialize)]
struct Successes {
    #[serde(rename = "Successful", default)]
    successful: Vec<Success>,
}

#[derive(Deserialize)]
struct Success {
    #[serde(rename = "Id")]
    id: String,
    #[serde(rename = "MessageId", default)]
    message_id: Box<str>,
}

#[derive(Default, Deserialize)]
struct SendAnswer {
    #[serde(rename = "MessageId", default)]
    message_id: Box<str>,
}

/// Returns the body of a `SendMessage`; the text has no character that JSON escapes.
pub(crate) fn send(url: &str, text: &str, delay_s: u32) -> Vec<u8> {
    send_with(url, text, &delay(delay_s))
}

/// Returns the body of a `SendMessage` with further members, such as [`in_group`] gives.
pub(crate) fn send_with(url: &str, text: &str, members: &str) -> Vec<u8> {
    format!(r#"{{"QueueUrl":"{url}","MessageBody":"{text}"{members}}}"#).into_bytes()
}

/// Returns the body of a `SendMessageBatch` with ten times the same text.
pub(crate) fn send_batch(url: &str, text: &str, delay_s: u32) -> Vec<u8> {
    let delay = delay(delay_s);
    send_batch_with(url, std::iter::repeat_n((text, &*delay), BATCH))
}

/// Returns the body of a `SendMessageBatch` of texts with their further members; the id of an entry
/// is its place.
pub(crate) fn send_batch_with<'a>(
    url: &str,
    texts: impl Iterator<Item = (&'a str, &'a str)>,
) -> Vec<u8> {
    let entry = |(id, (text, members)): (usize, (&str, &str))| {
        format!(r#"{{"Id":"{id}","MessageBody":"{text}"{members}}}"#)
    };
    let entries: Vec<String> = texts.enumerate().map(entry).collect();
    format!(r#"{{"QueueUrl":"{url}","Entries":[{}]}}"#, entries.join(",")).into_bytes()
}

/// Returns the members of a message of a FIFO queue: its group, and the place in it by which it is
/// deduplicated.
pub(crate) fn in_group(group: u32, place: u32) -> String {
    format!(r#","MessageGroupId":"g{group}","MessageDeduplicationId":"g{group}-{place}""#)
}

fn delay(seconds: u32) -> String {
    if seconds == 0 { String::new() } else { format!(r#","DelaySeconds":{seconds}"#) }
}

/// Returns the body of a `ReceiveMessage`.
pub(crate) fn receive(url: &str, max: usize, wait_s: u32, visibility_s: Option<u32>) -> Vec<u8> {
    let visibility =
        visibility_s.map_or_else(String::new, |s| format!(r#","VisibilityTimeout":{s}"#));
    format!(
        r#"{{"QueueUrl":"{url}","MaxNumberOfMessages":{max},"WaitTimeSeconds":{wait_s}{visibility}}}"#
    )
    .into_bytes()
}

/// Returns the body of a `DeleteMessage`; handles have no character that JSON escapes, or are given
/// as JSON writes them.
pub(crate) fn delete(url: &str, handle: &str) -> Vec<u8> {
    format!(r#"{{"QueueUrl":"{url}","ReceiptHandle":"{handle}"}}"#).into_bytes()
}

/// Returns the body of a `DeleteMessageBatch`.
pub(crate) fn delete_batch(url: &str, handles: &[String]) -> Vec<u8> {
    let entry = |(id, handle)| format!(r#"{{"Id":"{id}","ReceiptHandle":"{handle}"}}"#);
    let entries: Vec<String> = handles.iter().enumerate().map(entry).collect();
    format!(r#"{{"QueueUrl":"{url}","Entries":[{}]}}"#, entries.join(",")).into_bytes()
}

/// Returns the receipt handles in an answer to `ReceiveMessage`, as JSON writes them. A body cannot
/// be mistaken for one, since quotes in it are escaped.
pub(crate) fn handles(answer: &[u8]) -> Vec<String> {
    const KEY: &str = "\"ReceiptHandle\"";
    let mut rest = str::from_utf8(answer).unwrap_or_default();
    let mut found = Vec::new();
    while let Some(at) = rest.find(KEY) {
        let value = rest[at + KEY.len()..].trim_start_matches([':', ' ']);
        let Some((handle, after)) = value.strip_prefix('"').and_then(|text| text.split_once('"'))
        else {
            break;
        };
        found.push(handle.to_owned());
        rest = after;
    }
    found
}

/// Returns the messages of an answer to `ReceiveMessage`.
pub(crate) fn messages(answer: &[u8]) -> Result<Vec<Received<'_>>, serde_json::Error> {
    serde_json::from_slice::<ReceiveAnswer<'_>>(answer).map(|answer| answer.messages)
}

/// Returns the MessageId in an answer to `SendMessage`; empty if there is none.
pub(crate) fn message_id(answer: &[u8]) -> Box<str> {
    serde_json::from_slice::<SendAnswer>(answer).unwrap_or_default().message_id
}

/// Returns the places of the entries of a batch that the service confirmed, and their messages'
/// ids.
pub(crate) fn confirmed(answer: &[u8]) -> Result<Vec<(usize, Box<str>)>, serde_json::Error> {
    let Successes { successful } = serde_json::from_slice(answer)?;
    let entry = |one: Success| Some((one.id.parse().ok()?, one.message_id));
    Ok(successful.into_iter().filter_map(entry).collect())
}

/// Returns how many entries of a batch the service refused.
pub(crate) fn refused(answer: &[u8]) -> usize {
    serde_json::from_slice::<BatchAnswer>(answer).map_or(BATCH, |answer| answer.failed.len())
}

/// Returns refused entries as an error of its own, for a count of errors.
pub(crate) fn refusal(entries: usize) -> ServiceError {
    ServiceError {
        status: 200,
        code: "BatchEntries".to_owned(),
        message: format!("{entries} entries of a batch were refused"),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_calls_are_json() {
        let handles = ["a".to_owned(), "b".to_owned()];
        let calls = [
            send("http://h/0/q", "text", 0),
            send_batch("http://h/0/q", "text", 900),
            receive("http://h/0/q", 10, 20, Some(5)),
            delete("http://h/0/q", "handle"),
            delete_batch("http://h/0/q", &handles),
            send_with("http://h/0/q", "text", &in_group(7, 8)),
        ];
        let parsed = calls.map(|call| serde_json::from_slice::<serde_json::Value>(&call).unwrap());
        assert!(parsed.iter().all(|call| call["QueueUrl"] == "http://h/0/q"));
        assert_eq!(parsed[1]["Entries"].as_array().unwrap().len(), 10);
        assert_eq!(parsed[1]["Entries"][3]["DelaySeconds"], 900);
        assert_eq!(parsed[2]["VisibilityTimeout"], 5);
        assert_eq!(parsed[4]["Entries"][1]["ReceiptHandle"], "b");
        assert_eq!(parsed[5]["MessageGroupId"], "g7");
        assert_eq!(parsed[5]["MessageDeduplicationId"], "g7-8");
    }

    #[test]
    fn handles_are_found_with_and_without_blanks() {
        let answer = br#"{"Messages":[{"Body":"\"ReceiptHandle\":\"no\"","ReceiptHandle":"a+/="},{"ReceiptHandle" : "b", "Body": ""}]}"#;
        assert_eq!(handles(answer), ["a+/=", "b"]);
        assert!(handles(b"{}").is_empty());
        assert_eq!(messages(answer).unwrap()[0].body, "\"ReceiptHandle\":\"no\"");
    }

    #[test]
    fn refused_entries_are_counted() {
        assert_eq!(refused(br#"{"Successful":[{"Id":"0"}],"Failed":[]}"#), 0);
        assert_eq!(refused(br#"{"Successful":[{"Id":"0"}]}"#), 0);
        assert_eq!(refused(br#"{"Failed":[{"Id":"0","Code":"x"}]}"#), 1);
        assert_eq!(refused(b"nonsense"), BATCH);
    }

    #[test]
    fn confirmed_entries_are_known_by_their_places() {
        let answer =
            br#"{"Successful":[{"Id":"9","MessageId":"x"},{"Id":"0"}],"Failed":[{"Id":"1"}]}"#;
        assert_eq!(confirmed(answer).unwrap(), [(9, "x".into()), (0, "".into())]);
        assert_eq!(&*message_id(br#"{"MD5OfMessageBody":"m","MessageId":"y"}"#), "y");
        assert_eq!(&*message_id(b"nonsense"), "");
        assert!(confirmed(b"{}").unwrap().is_empty());
        assert!(confirmed(b"nonsense").is_err());
    }
}
