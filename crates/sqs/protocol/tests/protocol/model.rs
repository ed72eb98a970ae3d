//! The service model that botocore ships, walked: all of it is known here by the same names and types.
//! `tests/data/refresh.py` fetches it anew.

use std::collections::{BTreeMap, BTreeSet};

use quelea_sqs_protocol::{Action, Description, ErrorKind, Kind, Member, Names};
use serde_json::Value;

const MODEL: &str = include_str!("../data/model.json");
const QUERY_MODEL: &str = include_str!("../data/query-model.json");

/// What the model has and we do not, with the reason.
const NOT_HERE: [(&str, &str); 0] = [];

/// What the model requires of replies and is left out here at times, with the reason.
const NOT_ALWAYS: [(&str, &str); 5] = [
    ("ChangeMessageVisibilityBatchResult.Failed", "SQS leaves it out where nothing failed"),
    ("DeleteMessageBatchResult.Failed", "SQS leaves it out where nothing failed"),
    ("SendMessageBatchResult.Failed", "SQS leaves it out where nothing failed"),
    ("MessageAttributeValue.DataType", "requests have it too, and there the service misses it"),
    ("MessageSystemAttributeValue.DataType", "no reply has it"),
];

/// What we call otherwise in Query than LocalStack's model does, with the reason.
const OTHER_IN_QUERY: [(&str, &str); 1] = [(
    "ReceiveMessageRequest.MessageSystemAttributeNames",
    "LocalStack's model has AttributeName for both lists; Amazon's API reference tells them apart",
)];

fn model() -> Value {
    serde_json::from_str(MODEL).expect("the fixture is JSON")
}

fn query_model() -> Value {
    serde_json::from_str(QUERY_MODEL).expect("the fixture is JSON")
}

/// Returns everything in which we and the model differ.
fn differences(model: &Value) -> Vec<String> {
    let mut walk = Walk { model, differences: Vec::new(), seen: BTreeSet::new() };
    let operations = model["operations"].as_object().expect("operations");
    for (name, operation) in operations {
        match Action::from_name(name) {
            Some(action) => walk.operation(action, operation),
            None => walk.differs(format!("operation {name} is not known")),
        }
    }
    for action in Action::ALL.iter().filter(|action| !operations.contains_key(action.name())) {
        walk.differs(format!("operation {} is not in the model", action.name()));
    }
    walk.errors();
    walk.differences.retain(|found| !NOT_HERE.iter().any(|(known, _)| found.contains(known)));
    walk.differences
}

struct Walk<'a> {
    model: &'a Value,
    differences: Vec<String>,
    seen: BTreeSet<&'static str>,
}

impl<'a> Walk<'a> {
    fn differs(&mut self, what: String) {
        self.differences.push(what);
    }

    fn shape(&self, name: &Value) -> &'a Value {
        &self.model["shapes"][name.as_str().expect("the name of a shape")]
    }

    fn operation(&mut self, action: Action, operation: &Value) {
        self.structure(action.name(), action.input(), &operation["input"]);
        match (action.output(), &operation["output"]) {
            (None, Value::Null) => {}
            (Some(ours), theirs) if !theirs.is_null() => {
                self.structure(action.name(), ours, theirs);
            }
            (ours, theirs) => {
                let ours = ours.map(|description| description.name);
                self.differs(format!("{}: result {ours:?}, not {theirs}", action.name()));
            }
        }
        for error in operation["errors"].as_array().into_iter().flatten() {
            let name = error.as_str().expect("the name of an error");
            if error_kind(name).is_none() {
                self.differs(format!("{}: error {name} is not known", action.name()));
            }
        }
    }

    fn structure(&mut self, place: &str, ours: &'static Description, name: &Value) {
        if Some(ours.name) != name.as_str() {
            self.differs(format!("{place}: {}, not {name}", ours.name));
            return;
        }
        if !self.seen.insert(ours.name) {
            return;
        }
        let empty = serde_json::Map::new();
        let theirs = self.shape(name)["members"].as_object().unwrap_or(&empty);
        let our_members: BTreeMap<&str, &Member> =
            ours.members.iter().map(|member| (member.names.member, member)).collect();
        for (member, shape) in theirs {
            let place = format!("{}.{member}", ours.name);
            match our_members.get(member.as_str()) {
                Some(member) => self.kind(&place, &member.kind, shape),
                None => self.differs(format!("{place} is missing")),
            }
        }
        for member in our_members.keys().filter(|member| !theirs.contains_key(**member)) {
            self.differs(format!("{}.{member} is not in the model", ours.name));
        }
    }

    fn kind(&mut self, place: &str, ours: &Kind, name: &Value) {
        let theirs = self.shape(name);
        match (ours, theirs["type"].as_str().expect("every shape has a type")) {
            (Kind::String, "string")
            | (Kind::Integer, "integer" | "long")
            | (Kind::Boolean, "boolean")
            | (Kind::Blob, "blob") => {}
            (Kind::List(item), "list") => self.kind(place, item, &theirs["member"]),
            (Kind::Map(value), "map") => {
                self.kind(place, &Kind::String, &theirs["key"]);
                self.kind(place, value, &theirs["value"]);
            }
            (Kind::Structure(description), "structure") => {
                self.structure(place, description, name);
            }
            (ours, theirs) => self.differs(format!("{place}: {ours:?} is no {theirs}")),
        }
    }

    /// Every exception of the model is known, and nothing else is said to be one.
    fn errors(&mut self) {
        let shapes = self.model["shapes"].as_object().expect("shapes");
        let exceptions: BTreeSet<&str> = shapes
            .iter()
            .filter(|(_, shape)| shape["exception"] == true)
            .map(|(name, _)| name.as_str())
            .collect();
        for name in exceptions.iter().filter(|name| error_kind(name).is_none()) {
            self.differs(format!("error {name} is not known"));
        }
        for kind in ErrorKind::ALL {
            if let Some(name) = kind.type_name().strip_prefix("com.amazonaws.sqs#")
                && !exceptions.contains(name)
            {
                self.differs(format!("error {name} is not in the model"));
            }
        }
    }
}

/// Returns the error that the model has by that name.
fn error_kind(name: &str) -> Option<ErrorKind> {
    let type_name = format!("com.amazonaws.sqs#{name}");
    ErrorKind::ALL.iter().copied().find(|kind| kind.type_name() == type_name)
}

#[test]
fn all_of_the_service_model_is_known() {
    assert_eq!(differences(&model()), Vec::<String>::new());
    assert_eq!(Action::ALL.len(), 23);
}

#[test]
fn every_shape_of_the_model_is_reached_by_the_walk() {
    let model = model();
    let mut walk = Walk { model: &model, differences: Vec::new(), seen: BTreeSet::new() };
    for action in Action::ALL {
        walk.operation(*action, &model["operations"][action.name()]);
    }
    for (name, shape) in model["shapes"].as_object().expect("shapes") {
        let is_reached = walk.seen.contains(name.as_str());
        let is_error = shape["exception"] == true;
        assert!(shape["type"] != "structure" || is_error || is_reached, "{name} is not reached");
    }
}

/// Returns what the walk finds when the model is changed there.
fn differences_when(change: impl FnOnce(&mut Value)) -> Vec<String> {
    let mut model = model();
    change(&mut model);
    differences(&model)
}

#[test]
fn the_walk_finds_what_is_missing_here() {
    type Change = fn(&mut Value);
    let cases: [(Change, &str); 8] = [
        (
            |model| model["operations"]["Peek"] = model["operations"]["SendMessage"].clone(),
            "operation Peek is not known",
        ),
        (
            |model| model["shapes"]["SendMessageRequest"]["members"]["Colour"] = "String".into(),
            "SendMessageRequest.Colour is missing",
        ),
        (
            |model| model["shapes"]["MessageAttributeValue"]["members"]["Deep"] = "String".into(),
            "MessageAttributeValue.Deep is missing",
        ),
        (
            |model| {
                model["shapes"]["SendMessageRequest"]["members"]["DelaySeconds"] = "String".into()
            },
            "SendMessageRequest.DelaySeconds: Integer is no string",
        ),
        (
            |model| model["shapes"]["QueueUrlList"]["member"] = "Binary".into(),
            "ListDeadLetterSourceQueuesResult.queueUrls: String is no blob",
        ),
        (
            |model| model["operations"]["PurgeQueue"]["output"] = "CreateQueueResult".into(),
            "PurgeQueue: result None, not \"CreateQueueResult\"",
        ),
        (
            |model| model["operations"]["PurgeQueue"]["errors"][0] = "TooTired".into(),
            "PurgeQueue: error TooTired is not known",
        ),
        (
            |model| model["shapes"]["OverLimit"]["exception"] = false.into(),
            "error OverLimit is not in the model",
        ),
    ];
    for (change, expected) in cases {
        let found = differences_when(change);
        assert!(found.iter().any(|found| found == expected), "{expected}: found {found:?}");
    }
}

#[test]
fn the_walk_finds_what_is_not_in_the_model() {
    let found = differences_when(|model| {
        let members = model["shapes"]["Message"]["members"].as_object_mut().expect("members");
        members.remove("Body");
    });
    assert_eq!(found, ["Message.Body is not in the model"]);
}

/// Returns each structure that is reached from a request or a result.
fn structures() -> BTreeMap<&'static str, &'static Description> {
    fn add(
        found: &mut BTreeMap<&'static str, &'static Description>,
        description: &'static Description,
    ) {
        found.insert(description.name, description);
        for member in description.members {
            let mut kind = &member.kind;
            while let Kind::List(inner) | Kind::Map(inner) = kind {
                kind = inner;
            }
            if let Kind::Structure(inner) = kind {
                add(found, inner);
            }
        }
    }
    let mut found = BTreeMap::new();
    for action in Action::ALL {
        add(&mut found, action.input());
        action.output().into_iter().for_each(|output| add(&mut found, output));
    }
    found
}

#[test]
fn replies_always_have_what_the_model_requires_and_nothing_else() {
    let model = model();
    let outputs: BTreeSet<&str> =
        Action::ALL.iter().filter_map(|it| it.output()).map(|it| it.name).collect();
    let is_of_replies = |name: &str| outputs.contains(name) || !name.contains("Request");
    for description in structures().values().filter(|description| is_of_replies(description.name)) {
        let required = model["shapes"][description.name]["required"].as_array();
        for Member { names, is_always, .. } in description.members {
            let place = format!("{}.{}", description.name, names.member);
            let is_required =
                required.is_some_and(|required| required.iter().any(|name| name == names.member));
            let except = NOT_ALWAYS.iter().any(|(other, _)| *other == place);
            assert_eq!(*is_always, is_required && !except, "{place}");
        }
    }
}

/// Returns how the older model names the items of a list or a map: the member's own name, or its
/// shape's.
fn names_in_query(model: &Value, query: &Value, place: &str, shape: &str) -> Option<Names> {
    let (structure, member) = place.split_once('.').expect("a member of a structure");
    let own = query["members"][place].as_str();
    let (member, _) = model["shapes"][structure]["members"].get_key_value_of(member)?;
    match model["shapes"][shape]["type"].as_str()? {
        "list" => {
            let item = own.or_else(|| query["lists"][shape].as_str())?;
            Some(Names { member, item: leak(item), key: "Name" })
        }
        "map" => {
            let map = &query["maps"][shape];
            let item = own.or_else(|| map[0].as_str())?;
            assert_eq!(map[2], "Value");
            Some(Names { member, item: leak(item), key: leak(map[1].as_str()?) })
        }
        _ => Some(Names { member, item: leak(own.unwrap_or(member)), key: "Name" }),
    }
}

/// Leaks a text: [`Names`] live as long as the program.
fn leak(text: &str) -> &'static str {
    text.to_owned().leak()
}

trait GetKeyValue {
    fn get_key_value_of(&self, name: &str) -> Option<(&'static str, &Value)>;
}

impl GetKeyValue for Value {
    fn get_key_value_of(&self, name: &str) -> Option<(&'static str, &Value)> {
        self.as_object()?.get_key_value(name).map(|(name, value)| (leak(name), value))
    }
}

#[test]
fn query_has_the_names_of_the_older_model() {
    let (model, query) = (model(), query_model());
    for description in structures().values() {
        for Member { names, .. } in description.members {
            let place = format!("{}.{}", description.name, names.member);
            let shape = model["shapes"][description.name]["members"][names.member].as_str();
            let theirs = names_in_query(&model, &query, &place, shape.expect("a shape"));
            match OTHER_IN_QUERY.iter().find(|(other, _)| *other == place) {
                Some((_, reason)) => assert_ne!(Some(*names), theirs, "{place}: not so: {reason}"),
                None => assert_eq!(Some(*names), theirs, "{place}"),
            }
        }
    }
}

#[test]
fn errors_have_the_codes_and_statuses_of_the_older_model() {
    let query = query_model();
    for (name, theirs) in query["errors"].as_object().expect("errors") {
        let kind = error_kind(name).unwrap_or_else(|| panic!("{name} is not known"));
        assert_eq!(kind.code(), theirs["code"], "{name}");
        assert_eq!(kind.status(), theirs["httpStatusCode"], "{name}");
        assert_eq!(kind.fault().name() == "Sender", theirs["senderFault"], "{name}");
    }
}
