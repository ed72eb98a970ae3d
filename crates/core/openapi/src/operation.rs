//! What one method of a path takes and answers.

use schemars::{JsonSchema, Schema, SchemaGenerator};

/// A type's schema, made when the document is: references in it are into that document.
pub type SchemaOf = fn(&mut SchemaGenerator) -> Schema;

/// What a request holds.
#[derive(Clone)]
pub(crate) struct Body {
    pub(crate) schema: SchemaOf,
    pub(crate) is_required: bool,
}

/// One answer.
#[derive(Clone)]
pub(crate) struct Answer {
    pub(crate) status: u16,
    /// None: without a body.
    pub(crate) schema: Option<SchemaOf>,
}

/// What a method of a path does, takes and answers.
#[derive(Clone)]
pub struct Operation {
    pub(crate) summary: &'static str,
    pub(crate) queries: Vec<SchemaOf>,
    pub(crate) body: Option<Body>,
    pub(crate) answers: Vec<Answer>,
    pub(crate) refusals: Vec<u16>,
    pub(crate) is_public: bool,
}

impl Operation {
    /// Returns an operation that does what `summary` says.
    #[must_use]
    pub const fn new(summary: &'static str) -> Self {
        Self {
            summary,
            queries: Vec::new(),
            body: None,
            answers: Vec::new(),
            refusals: Vec::new(),
            is_public: false,
        }
    }

    /// Says that it takes the fields of `T` behind `?`.
    #[must_use]
    pub fn query<T: JsonSchema>(mut self) -> Self {
        self.queries.push(|generator| T::json_schema(generator));
        self
    }

    /// Says that it takes a `T`.
    #[must_use]
    pub fn body<T: JsonSchema>(self) -> Self {
        self.with_body::<T>(true)
    }

    /// Says that it takes a `T`, or nothing.
    #[must_use]
    pub fn optional_body<T: JsonSchema>(self) -> Self {
        self.with_body::<T>(false)
    }

    fn with_body<T: JsonSchema>(mut self, is_required: bool) -> Self {
        self.body = Some(Body { schema: |generator| generator.subschema_for::<T>(), is_required });
        self
    }

    /// Says that it answers a `T`.
    #[must_use]
    pub fn answers<T: JsonSchema>(mut self, status: u16) -> Self {
        let schema: SchemaOf = |generator| generator.subschema_for::<T>();
        self.answers.push(Answer { status, schema: Some(schema) });
        self
    }

    /// Says that it answers a status alone.
    #[must_use]
    pub fn answers_status(mut self, status: u16) -> Self {
        self.answers.push(Answer { status, schema: None });
        self
    }

    /// Says that nobody has to sign in for it.
    #[must_use]
    pub const fn public(mut self) -> Self {
        self.is_public = true;
        self
    }

    /// Says that it may be refused with these, beside those that every request may be refused with.
    #[must_use]
    pub fn refuses(mut self, statuses: &[u16]) -> Self {
        self.refusals.extend(statuses);
        self
    }
}
