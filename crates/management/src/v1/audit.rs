//! `/quelea/v1/audit`, and `/api/audit`: who changed what.

use quelea_openapi::{Operation, Route};
use serde_json::{Value, json};

use crate::answer::JsonAnswer;
use crate::audit::Change;
use crate::call::Call;
use crate::list_query::ListQuery;
use crate::listed::Row;
use crate::shapes::lists;
use crate::state::SharedState;

pub(super) fn routes<S: SharedState>() -> Vec<Route<S>> {
    vec![Route::at("/audit").get(changes::<S>, operation())]
}

pub(crate) fn operation() -> Operation {
    lists("Returns the last changes made by the API and by AMQP, the latest first")
}

pub(crate) async fn changes<S: SharedState>(call: Call<S>) -> JsonAnswer {
    let query = ListQuery::of(&call)?;
    let (api, user, []) = call.parts();
    user.require_administrator()?;
    query.answer(&(), api.audit().changes())
}

/// Lists of them are searched by the path.
impl Row<()> for Change {
    fn name(&self) -> &str {
        self.path()
    }

    fn to_json(&self, (): &()) -> Value {
        json!(self)
    }
}
