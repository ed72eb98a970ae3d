//! Replies to Query in JSON: what the XML says, in objects. Rare, so it is made of the reply in the other
//! JSON, whose maps become lists of names and values as they are in XML.

use bytes::{BufMut, BytesMut};
use serde_json::{Map, Value, json};

use crate::Error;
use crate::action::{Action, Reply};
use crate::shape::{Description, Kind, Member};

/// A reply within its `…Response`.
pub(super) fn write_reply(action: Action, reply: &Reply, request_id: &str, out: &mut BytesMut) {
    let mut content = Map::new();
    if let Some(description) = action.output() {
        let mut result = BytesMut::new();
        reply.write_json(&mut result);
        // What was just written is read back; an object in any case.
        let result = serde_json::from_slice(&result).unwrap_or_else(|_| json!({}));
        content.insert(description.name.to_owned(), in_query(result, description));
    }
    content.insert("ResponseMetadata".to_owned(), json!({ "RequestId": request_id }));
    let response = json!({ format!("{}Response", action.name()): content });
    out.put_slice(response.to_string().as_bytes());
}

/// An error.
pub(super) fn write_error(error: &Error, request_id: &str, out: &mut BytesMut) {
    let Error { kind, message } = error;
    let response = json!({
        "Error": {
            "Type": kind.fault().name(),
            "Code": kind.code(),
            "Message": message,
            "Detail": null,
        },
        "RequestId": request_id,
    });
    out.put_slice(response.to_string().as_bytes());
}

/// Returns a structure's members as Query has them.
fn in_query(value: Value, description: &Description) -> Value {
    let Value::Object(members) = value else { return value };
    let members = members.into_iter().map(|(name, value)| {
        let member = description.members.iter().find(|member| member.names.member == name);
        let value = member.map_or(Value::Null, |member| member_in_query(value, member));
        (name, value)
    });
    Value::Object(members.collect())
}

fn member_in_query(value: Value, member: &Member) -> Value {
    match (value, member.kind) {
        (Value::Array(items), Kind::List(kind)) => {
            items.into_iter().map(|item| of_kind(item, kind)).collect()
        }
        (Value::Object(items), Kind::Map(kind)) => {
            let item = |(name, value): (String, Value)| json!({ member.names.key: name, "Value": of_kind(value, kind) });
            items.into_iter().map(item).collect()
        }
        (value, kind) => of_kind(value, &kind),
    }
}

fn of_kind(value: Value, kind: &Kind) -> Value {
    match kind {
        Kind::Structure(description) => in_query(value, description),
        _ => value,
    }
}
