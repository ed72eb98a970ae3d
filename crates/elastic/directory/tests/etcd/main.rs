//! The etcd store against a real etcd, at `QUELEA_ETCD_ENDPOINT`: the suite `elastic_etcd` starts one and runs this.
#![allow(clippy::unwrap_used, reason = "a test may panic")]

#[path = "../it/store.rs"]
mod store;

use std::sync::Arc;

use quelea_elastic_directory::meta::etcd::Etcd;

#[tokio::test]
#[ignore = "needs an etcd, named by QUELEA_ETCD_ENDPOINT"]
async fn etcd_is_a_store() {
    let endpoint = std::env::var("QUELEA_ETCD_ENDPOINT")
        .expect("QUELEA_ETCD_ENDPOINT names an etcd, as the suite elastic_etcd does");
    let etcd = Etcd::connect(&[endpoint]).await.unwrap();
    store::check(Arc::new(etcd), "quelea-store-test/").await;
}
