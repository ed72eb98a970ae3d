//! The broker's access keys and its users' permissions, as the trait [`Identity`] asks for them.

use std::sync::Arc;

use quelea_node::{Core, CoreHandle};
use quelea_sqs_protocol::{AccessKey, Fault, Identity, Permits, QueueRef, User};

use crate::broker_calls::BrokerCalls;
use crate::identity_cache::IdentityCache;
use crate::settings::EmbeddedSettings;

/// The broker's users. Cheap to clone.
#[derive(Clone, Debug)]
pub struct EmbeddedIdentity {
    calls: BrokerCalls,
    cache: Arc<IdentityCache>,
}

impl EmbeddedIdentity {
    /// Returns the users of a node.
    #[must_use]
    pub fn new(core: CoreHandle, settings: EmbeddedSettings) -> Self {
        Self { calls: BrokerCalls::new(core, settings), cache: Arc::default() }
    }
}

impl Identity for EmbeddedIdentity {
    async fn access_key(&self, id: &str) -> Result<Option<AccessKey>, Fault> {
        let epoch = self.calls.core().queues_epoch();
        if let Some(key) = self.cache.key(epoch, id) {
            return Ok(Some(key));
        }
        let (calls, wanted) = (self.calls.clone(), id.to_owned());
        let key = self.calls.call(move |core| find_key(core, &calls, &wanted)).await?;
        if let Some(key) = &key {
            self.cache.add_key(epoch, id, key);
        }
        Ok(key)
    }

    async fn permits(&self, user: &User, queue: &QueueRef) -> Result<Permits, Fault> {
        let Some(name) = &user.name else { return Ok(Permits::ALL) };
        let epoch = self.calls.core().queues_epoch();
        if let Some(permits) = self.cache.permits(epoch, name, queue) {
            return Ok(permits);
        }
        let Some(vhost) = self.calls.vhost(&queue.account) else { return Ok(Permits::default()) };
        let (user, wanted) = (Arc::clone(name), Arc::clone(&queue.name));
        let permits = self.calls.call(move |core| permits(core, &user, &vhost, &wanted)).await?;
        self.cache.add_permits(epoch, name, queue, permits);
        Ok(permits)
    }

    async fn visible(
        &self,
        user: &User,
        account: &Arc<str>,
        names: Vec<String>,
    ) -> Result<Vec<String>, Fault> {
        let Some(user) = user.name.clone() else { return Ok(names) };
        let Some(vhost) = self.calls.vhost(account) else { return Ok(Vec::new()) };
        let visible = move |core: &mut Core| {
            let mut names = names;
            names.retain(|name| permits(core, &user, &vhost, name).any());
            names
        };
        self.calls.call(visible).await
    }
}

fn permits(core: &mut Core, user: &str, vhost: &str, queue: &str) -> Permits {
    let may = core.broker.queue_permits(user, vhost, queue);
    Permits { configure: may.configure, write: may.write, read: may.read }
}

fn find_key(core: &Core, calls: &BrokerCalls, id: &str) -> Option<AccessKey> {
    let key = core.broker.access().keys().get(id)?;
    let user =
        User { name: Some(Arc::clone(&key.user)), account: calls.account(key.vhost.as_str()) };
    Some(AccessKey { user, secret: Arc::clone(&key.secret), enabled: key.enabled })
}
