//! What may stand in a definition, as JSON Schema: the fields of [`Sla`] and those beside it, each of which may be
//! absent. What fields have to do with each other [`Definition::validate`] knows.

use std::borrow::Cow;

use quelea_elastic_proto::Named;
use quelea_elastic_proto::frame::{Acknowledge, SlowPolicy};
use quelea_elastic_proto::limits::QUEUE_NAME_BYTES_MAX;
use schemars::{JsonSchema, Schema, SchemaGenerator, json_schema};
use serde_json::{Value, json};

use super::{Definition, Relocation};
use crate::directory::limits::{RING_BYTES_MAX, RING_BYTES_MIN};
use crate::plan::Policy;
use crate::sla::Sla;

impl JsonSchema for Definition {
    fn schema_name() -> Cow<'static, str> {
        "ElasticDefinition".into()
    }

    fn json_schema(generator: &mut SchemaGenerator) -> Schema {
        let agreement = Sla::json_schema(generator);
        let mut properties = agreement.get("properties").cloned().unwrap_or_else(|| json!({}));
        let ring =
            json!({ "type": "integer", "minimum": RING_BYTES_MIN, "maximum": RING_BYTES_MAX });
        let keep = json!({ "type": "string", "maxLength": QUEUE_NAME_BYTES_MAX });
        for (field, mut schema, description) in [
            ("policy", names::<Policy>(), "Which rules scale it"),
            ("acknowledge", names::<Acknowledge>(), "When a message is done"),
            (
                "slow",
                names::<SlowPolicy>(),
                "What becomes of listeners that are too slow and say nothing else",
            ),
            ("ring_bytes_max", ring, "A listener's ring in a relay"),
            ("keep", keep, "The durable queue that keeps the messages, empty if none"),
            (
                "relocation",
                names::<Relocation>(),
                "What a move does about a listener that does not come along",
            ),
        ] {
            schema["description"] = description.into();
            properties[field] = schema;
        }
        json_schema!({
            "type": "object",
            "description": "What a queue is meant to be; fields that are absent stay as they are, or as \
                            elastic.default says for a new queue",
            "properties": properties,
            "additionalProperties": false,
        })
    }
}

fn names<T: Named>() -> Value {
    json!({ "type": "string", "enum": T::names() })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_schema_has_the_fields_of_a_definition() {
        let schema = schemars::schema_for!(Definition);
        let described =
            schema.get("properties").and_then(Value::as_object).expect("it is an object");
        let definition = Definition::default().to_json();
        let held = definition.as_object().expect("it is an object");
        let sorted = |fields: &serde_json::Map<String, Value>| {
            let mut names: Vec<String> = fields.keys().cloned().collect();
            names.sort();
            names
        };
        assert_eq!(sorted(described), sorted(held));
    }
}
