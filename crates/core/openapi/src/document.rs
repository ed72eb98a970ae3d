//! The OpenAPI document of routes.

use axum::http::Method;
use schemars::generate::SchemaSettings;
use schemars::{Schema, SchemaGenerator};
use serde_json::{Map, Value, json};

use crate::operation::{Operation, SchemaOf};
use crate::route::Route;

/// The version of OpenAPI: its schemas are JSON Schema 2020-12, as schemars makes them.
const OPENAPI: &str = "3.1.0";

/// What a document says of itself.
#[derive(Clone, Copy)]
pub struct Info {
    /// What the interface is called.
    pub title: &'static str,
    /// Of the product.
    pub version: &'static str,
    /// For people.
    pub description: &'static str,
    /// What every error looks like.
    pub error: SchemaOf,
    /// What any request may be refused with, each with the reason.
    pub refusals: &'static [(u16, &'static str)],
    /// What requests with a body may be refused with as well.
    pub body_refusals: &'static [u16],
}

/// A document that grows by the routes that are added.
pub struct Document {
    info: Info,
    generator: SchemaGenerator,
    paths: Map<String, Value>,
}

impl Document {
    /// Returns a document without paths.
    #[must_use]
    pub fn new(info: Info) -> Self {
        let mut settings = SchemaSettings::draft2020_12();
        settings.definitions_path = "/components/schemas".into();
        settings.meta_schema = None;
        Self { info, generator: settings.into_generator(), paths: Map::new() }
    }

    /// Adds what stands below `prefix`.
    #[must_use]
    pub fn with<S>(mut self, prefix: &str, tag: &str, routes: &[Route<S>]) -> Self {
        for route in routes {
            let path = format!("{prefix}{}", route.path);
            let mut item = match self.paths.remove(&path) {
                Some(Value::Object(item)) => item,
                _ => Map::new(),
            };
            let parameters: Vec<Value> = parameters_of(&path).map(path_parameter).collect();
            for (method, operation) in &route.operations {
                let name = method.as_str().to_ascii_lowercase();
                item.insert(name, self.operation(tag, method, &path, operation));
            }
            item.insert("parameters".into(), parameters.into());
            self.paths.insert(path, item.into());
        }
        self
    }

    /// Returns the whole document.
    #[must_use]
    pub fn into_json(mut self) -> Value {
        let error = (self.info.error)(&mut self.generator);
        let mut responses = Map::new();
        for (status, reason) in self.info.refusals {
            let content = json!({ "application/json": { "schema": error } });
            let response = json!({ "description": reason, "content": content });
            responses.insert(status.to_string(), response);
        }
        json!({
            "openapi": OPENAPI,
            "info": {
                "title": self.info.title,
                "version": self.info.version,
                "description": self.info.description,
            },
            "paths": self.paths,
            "security": [{ "basic": [] }],
            "components": {
                "schemas": self.generator.take_definitions(true),
                "responses": responses,
                "securitySchemes": { "basic": { "type": "http", "scheme": "basic" } },
            },
        })
    }

    fn operation(&mut self, tag: &str, method: &Method, path: &str, says: &Operation) -> Value {
        let mut responses = Map::new();
        for answer in &says.answers {
            let mut response = json!({ "description": says.summary });
            if let Some(schema) = answer.schema {
                response["content"] =
                    json!({ "application/json": { "schema": schema(&mut self.generator) } });
            }
            responses.insert(answer.status.to_string(), response);
        }
        for (status, _) in self.info.refusals {
            let is_answer = says.answers.iter().any(|answer| answer.status == *status);
            if !is_answer && self.may_refuse(*status, path, says) {
                let response = json!({ "$ref": format!("#/components/responses/{status}") });
                responses.insert(status.to_string(), response);
            }
        }
        let mut operation = json!({
            "summary": says.summary,
            "tags": [tag],
            "operationId": operation_id(method, path),
            "responses": responses,
        });
        if says.is_public {
            operation["security"] = json!([]);
        }
        let queries = says.queries.iter().flat_map(|query| {
            let fields = query(&mut self.generator);
            query_parameters(&fields)
        });
        let queries: Vec<Value> = queries.collect();
        if !queries.is_empty() {
            operation["parameters"] = queries.into();
        }
        if let Some(body) = &says.body {
            operation["requestBody"] = json!({
                "required": body.is_required,
                "content": {
                    "application/json": { "schema": (body.schema)(&mut self.generator) }
                },
            });
        }
        operation
    }

    /// Returns whether a request may be refused with that status: what can be wrong with it depends
    /// on what it holds.
    fn may_refuse(&self, status: u16, path: &str, says: &Operation) -> bool {
        let (has_body, has_path) = (says.body.is_some(), path.contains('{'));
        match status {
            _ if says.refusals.contains(&status) => true,
            _ if self.info.body_refusals.contains(&status) => has_body,
            400 => has_body || has_path || !says.queries.is_empty(),
            404 => has_path,
            401 | 403 if says.is_public => false,
            409 => false,
            _ => true,
        }
    }
}

/// Returns the names that stand in braces.
fn parameters_of(path: &str) -> impl Iterator<Item = &str> {
    path.split('{').skip(1).filter_map(|rest| rest.split('}').next())
}

fn path_parameter(name: &str) -> Value {
    let schema = json!({ "type": "string", "minLength": 1 });
    json!({ "name": name, "in": "path", "required": true, "schema": schema })
}

/// Returns the fields of an object, as parameters behind `?`.
fn query_parameters(fields: &Schema) -> Vec<Value> {
    let required = fields.get("required").and_then(Value::as_array);
    let properties = fields.get("properties").and_then(Value::as_object);
    let one = |(name, schema): (&String, &Value)| {
        let is_required = required.is_some_and(|names| names.iter().any(|known| known == name));
        let mut schema = schema.clone();
        without_null(&mut schema);
        let described = schema.as_object_mut().and_then(|schema| schema.remove("description"));
        let mut parameter =
            json!({ "name": name, "in": "query", "required": is_required, "schema": schema });
        if let Some(description) = described {
            parameter["description"] = description;
        }
        parameter
    };
    properties.into_iter().flatten().map(one).collect()
}

/// A field that may be absent is null in an object, but nothing behind `?` is.
fn without_null(schema: &mut Value) {
    let null = json!("null");
    if let Some(types) = schema.get_mut("type").and_then(Value::as_array_mut) {
        types.retain(|name| *name != null);
        if let [name] = &types[..] {
            schema["type"] = name.clone();
        }
    }
    if let Some(Value::Array(any)) = schema.get("anyOf") {
        let mut others = any.iter().filter(|one| one.get("type") != Some(&null));
        if let (Some(only), None) = (others.next(), others.next()) {
            let only = only.clone();
            if let (Value::Object(schema), Value::Object(only)) = (schema, only) {
                schema.remove("anyOf");
                schema.extend(only);
            }
        }
    }
}

/// Returns an identifier of an operation, which is unique, since method and path are.
fn operation_id(method: &Method, path: &str) -> String {
    let words = path.split(['/', '-', '{', '}', '_']).filter(|word| !word.is_empty());
    words.fold(method.as_str().to_ascii_lowercase(), |id, word| id + "_" + word)
}
