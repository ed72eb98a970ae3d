//! `/quelea/v1/audit`: who changed what.

use axum::Json;
use quelea_openapi::{Operation, Route};

use crate::audit::Change;
use crate::call::Call;
use crate::error::ApiError;
use crate::state::ApiState;

pub(super) fn routes() -> Vec<Route<ApiState>> {
    let operation = Operation::new("Returns the last changes made by the API, the latest first");
    vec![Route::at("/audit").get(list, operation.answers::<Vec<Change>>(200))]
}

async fn list(call: Call) -> Result<Json<Vec<Change>>, ApiError> {
    let (api, user, []) = call.parts();
    user.require_administrator()?;
    Ok(Json(api.audit.changes()))
}
