//! What SDKs send, changed at random: it is understood or refused, and what is understood is written
//! and read again as it was.

use proptest::collection::vec;
use proptest::prelude::*;
use proptest::sample::Index;
use quelea_sqs_protocol::fuzzing::{fuzz_json, fuzz_query};

use crate::requests::recorded;

/// Characters that mean something in one protocol or the other, and some that do not.
const CHARACTERS: &[u8] = b"{}[]\":,\\u0019-.eE+%&=<>;/ntfal\0\n\r\xff\xc3 ";

/// A change of one byte: overwritten, put in or taken out.
#[derive(Clone, Debug)]
enum Change {
    Overwrite(Index, u8),
    Insert(Index, u8),
    Remove(Index),
}

fn change() -> impl Strategy<Value = Change> {
    let byte = || proptest::sample::select(CHARACTERS);
    prop_oneof![
        (any::<Index>(), byte()).prop_map(|(at, byte)| Change::Overwrite(at, byte)),
        (any::<Index>(), byte()).prop_map(|(at, byte)| Change::Insert(at, byte)),
        any::<Index>().prop_map(Change::Remove),
    ]
}

fn changed(text: &str, changes: &[Change]) -> Vec<u8> {
    let mut bytes = text.as_bytes().to_vec();
    for change in changes {
        match change {
            Change::Overwrite(at, byte) => {
                let at = at.index(bytes.len());
                bytes[at] = *byte;
            }
            Change::Insert(at, byte) => bytes.insert(at.index(bytes.len()), *byte),
            Change::Remove(at) if bytes.len() > 1 => {
                bytes.remove(at.index(bytes.len()));
            }
            Change::Remove(_) => {}
        }
    }
    bytes
}

proptest! {
    #[test]
    fn of_requests_do_no_harm(call in any::<Index>(), changes in vec(change(), 0..6)) {
        let recorded = recorded();
        let call = call.get(&recorded);
        let body = call["json"]["body"].as_str().expect("a body");
        let mut json = format!("AmazonSQS.{}\n", call["operation"].as_str().expect("a name")).into_bytes();
        json.extend(changed(body, &changes));
        fuzz_json(&json);

        let body = call["query"]["body"].as_str().expect("a body");
        let mut query = b"POST /\n".to_vec();
        query.extend(changed(body, &changes));
        fuzz_query(&query);
    }

    #[test]
    fn of_replies_do_no_harm(texts in vec(any::<String>(), 5), bytes in vec(any::<u8>(), 0..40)) {
        let [name, body, key, value, handle] = &texts[..] else { unreachable!("five texts") };
        let json = serde_json::json!({ "Messages": [{
            "MessageId": name,
            "Body": body,
            "ReceiptHandle": handle,
            "Attributes": { key: value },
            "MessageAttributes": { name: { "DataType": key, "StringValue": body } },
        }]});
        let mut data = b"AmazonSQS.ReceiveMessage\n".to_vec();
        data.extend(json.to_string().into_bytes());
        fuzz_json(&data);
        data.extend(bytes);
        fuzz_json(&data);
    }
}
