//! What the provider needs to know: where its pods go, what they are made of.

use std::path::PathBuf;
use std::time::Duration;

/// Settings of the provider, `elastic.kubernetes` in the configuration.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Settings {
    /// Name of this Quelea in the cluster, a label's value: directories of one site see only its pods.
    pub site: String,
    /// Where pods and resources are; empty: the service account's own namespace, or the kubeconfig's.
    pub namespace: String,
    /// Context of the kubeconfig; empty: the current one. Not looked at inside a cluster.
    pub context: String,
    /// File with a PodTemplateSpec in YAML or JSON, on which every relay's pod is based; empty: none.
    pub pod_template: PathBuf,
    /// Image of the container `relay`; empty: the template names it.
    pub image: String,
    /// Where a relay listens in its pod; `$(POD_IP)` stands for the pod's address.
    pub relay_listen: String,
    /// How long a relay may take to be emptied: the grace of its pod's deletion is this and five seconds.
    pub drain_max: Duration,
    /// How long a pod that has ended stays, for its logs and its exit code.
    pub ended_pods_kept: Duration,
}

impl Default for Settings {
    fn default() -> Self {
        Self {
            site: "quelea".to_owned(),
            namespace: String::new(),
            context: String::new(),
            pod_template: PathBuf::new(),
            image: String::new(),
            relay_listen: "$(POD_IP):5680".to_owned(),
            drain_max: Duration::from_secs(60),
            ended_pods_kept: Duration::from_secs(600),
        }
    }
}
