//! `/quelea/v1/audit`, and `/api/audit`: who changed what.

use axum::Json;
use quelea_openapi::{Operation, Route};

use crate::audit::Change;
use crate::call::Call;
use crate::error::ApiError;
use crate::state::SharedState;

pub(super) fn routes<S: SharedState>() -> Vec<Route<S>> {
    vec![Route::at("/audit").get(changes::<S>, operation())]
}

pub(crate) fn operation() -> Operation {
    Operation::new("Returns the last changes made by the API and by AMQP, the latest first")
        .answers::<Vec<Change>>(200)
}

pub(crate) async fn changes<S: SharedState>(call: Call<S>) -> Result<Json<Vec<Change>>, ApiError> {
    let (api, user, []) = call.parts();
    user.require_administrator()?;
    Ok(Json(api.audit().changes()))
}
