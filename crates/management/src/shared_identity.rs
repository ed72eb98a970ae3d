//! The management API of a broker beside Cassandra: all of a broker's, but that users, permissions, accounts and keys are
//! Cassandra's, and virtual hosts come and go with accounts.

use quelea_node::{Authenticator, CoreHandle};
use quelea_openapi::with_state;
use quelea_sqs_protocol::{AnyService, IdentityDirectory};
use tokio::net::TcpListener;

use crate::api::{HttpSettings, of_access, router};
use crate::audit::AuditTrail;
use crate::identity::{store_better_hashes, take_over_route};
use crate::state::{ApiState, BrokerState, SharedState};
use crate::tokens::Tokens;

/// Serves the API until `stop` resolves; answers what is under way before it returns.
pub async fn serve_with_shared_identity<D: IdentityDirectory>(
    listener: TcpListener,
    (core, authenticator): (CoreHandle, Authenticator),
    directory: D,
    settings: HttpSettings,
    stop: impl Future<Output = ()> + Send + 'static,
) {
    store_better_hashes(&authenticator, &directory);
    let (api, fronts, served) = ApiState::new(core, authenticator, settings);
    let mut access = of_access();
    access.push(take_over_route());
    let access = with_state(access, &SharedIdentity { broker: api.clone(), directory });
    served.run(listener, router(api, fronts, access), stop).await;
}

/// A broker whose users somebody else keeps.
#[derive(Clone)]
struct SharedIdentity<D> {
    broker: ApiState,
    directory: D,
}

impl<D: IdentityDirectory> BrokerState for SharedIdentity<D> {
    fn broker(&self) -> &ApiState {
        &self.broker
    }
}

impl<D: IdentityDirectory> SharedState for SharedIdentity<D> {
    type Directory = D;

    fn directory(&self) -> &D {
        &self.directory
    }

    fn authenticator(&self) -> &Authenticator {
        self.broker.authenticator()
    }

    fn loopback_users(&self) -> &[String] {
        self.broker.loopback_users()
    }

    fn tokens(&self) -> Option<&Tokens> {
        self.broker.tokens()
    }

    fn sqs_service(&self) -> Option<&AnyService> {
        self.broker.sqs_service()
    }

    fn audit(&self) -> &AuditTrail {
        self.broker.audit()
    }

    fn account_id(&self) -> &str {
        self.broker.account_id()
    }
}
