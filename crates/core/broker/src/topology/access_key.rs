//! A stored access key, which is the broker's own.

use quelea_model::{Timestamp, VhostName};

use super::codec::{Reader, Writer};
use super::error::TopologyError;
use crate::access::access_key::AccessKey;

const DISABLED: u8 = 1;

impl AccessKey {
    pub(super) fn write_key(&self, out: &mut Writer) {
        out.text(&self.id);
    }

    pub(super) fn write_value(&self, out: &mut Writer) {
        out.text(self.vhost.as_str());
        out.text(&self.user);
        out.text(&self.secret);
        out.flags(&[(DISABLED, !self.enabled)]);
        out.u64(self.created_at.as_millis());
    }

    pub(super) fn read(
        key: &mut Reader<'_>,
        value: &mut Reader<'_>,
    ) -> Result<Self, TopologyError> {
        let id = key.text("access key id")?.into();
        let vhost = value.name("vhost name", VhostName::parse)?;
        let user = value.text("user name")?.into();
        let secret = value.text("secret")?.into();
        let [disabled] = value.flags("flags", [DISABLED])?;
        let created_at = Timestamp::from_millis(value.u64("time of creation")?);
        Ok(Self { id, secret, user, vhost, enabled: !disabled, created_at })
    }
}
