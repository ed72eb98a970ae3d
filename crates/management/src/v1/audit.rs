//! `/quelea/v1/audit`: who changed what.

use quelea_openapi::{Operation, Route};

use crate::api::nodes;
use crate::audit::Change;
use crate::state::ApiState;

pub(super) fn routes() -> Vec<Route<ApiState>> {
    let operation =
        Operation::new("Returns the last changes made by the API and by AMQP, the latest first");
    vec![Route::at("/audit").get(nodes::audit, operation.answers::<Vec<Change>>(200))]
}
