//! A relay's pod: the site's template, and over it what makes it that relay. And what a pod's state means.

use std::collections::BTreeMap;
use std::time::Duration;

use k8s_openapi::api::core::v1::{
    Container, EnvVar, EnvVarSource, ObjectFieldSelector, Pod, PodSpec, PodTemplateSpec,
};
use k8s_openapi::apimachinery::pkg::apis::meta::v1::{ObjectMeta, OwnerReference};
use quelea_elastic_core::directory::{RelayHandle, RelaySpec};
use quelea_elastic_proto::RelayId;

use super::names;
use super::settings::Settings;
use crate::provider::{ProviderError, RelayCommand, Running};
use crate::relay_token::TOKEN_VARIABLE;

/// The container that runs the relay; a template's container of this name is filled in.
const CONTAINER: &str = "relay";
/// From the end of a relay's drain to its pod's: the relay still has to be asked, and to end.
const GRACE_MORE_S: i64 = 5;
/// Environment variable with the pod's address, for `relay_listen`.
const POD_IP: &str = "POD_IP";

/// Makes pods.
#[derive(Clone, Debug)]
pub(super) struct PodMaker {
    site: String,
    template: PodTemplateSpec,
    command: RelayCommand,
    drain_max: Duration,
}

/// A template that no relay can run in.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum TemplateError {
    /// The file cannot be read.
    #[error("pod_template: cannot read {path}: {cause}")]
    Unreadable {
        /// The file.
        path: String,
        /// What the system said.
        cause: String,
    },
    /// The file is not what it should be.
    #[error("pod_template: {path} is no PodTemplateSpec: {cause}")]
    Malformed {
        /// The file.
        path: String,
        /// What is wrong, and where.
        cause: String,
    },
    /// Nothing says what runs in the pod.
    #[error("image: is empty, and the pod template has no container `relay` with an image")]
    NoImage,
    /// The site's name cannot be a label's value.
    #[error(
        "site: {0:?} is no label's value: at most 40 of a to z, 0 to 9 and -, a letter or digit at both ends"
    )]
    Site(String),
}

impl Settings {
    /// Looks at the site's name, the template's file and the image, without a cluster.
    ///
    /// # Errors
    /// [`TemplateError`] with the field.
    pub fn check(&self) -> Result<(), TemplateError> {
        template(self).map(|_| ())
    }
}

impl PodMaker {
    /// Reads the template.
    pub(super) fn new(settings: &Settings, command: RelayCommand) -> Result<Self, TemplateError> {
        let template = template(settings)?;
        let command = RelayCommand { listen: settings.relay_listen.clone(), ..command };
        let (site, drain_max) = (settings.site.clone(), settings.drain_max);
        Ok(Self { site, template, command, drain_max })
    }

    /// Builds the pod of one request; the same one for the same request.
    pub(super) fn pod(
        &self,
        spec: &RelaySpec,
        owner: OwnerReference,
    ) -> Result<Pod, ProviderError> {
        let template = self.template.clone();
        let given = template.metadata.unwrap_or_default();
        let mut labels = given.labels.unwrap_or_default();
        labels.extend(self.labels(spec));
        let mut annotations = given.annotations.unwrap_or_default();
        annotations.insert(names::QUEUE_NAME.to_owned(), spec.queue.clone());
        annotations.insert(names::REQUEST.to_owned(), spec.request.clone());
        let mut pod = template.spec.unwrap_or_default();
        // A relay has no state to come back with: one that ends is replaced by another.
        pod.restart_policy = Some("Never".to_owned());
        let drain_s = self.drain_max.as_secs() + u64::from(self.drain_max.subsec_nanos() > 0);
        let grace_s = i64::try_from(drain_s).unwrap_or(i64::MAX).saturating_add(GRACE_MORE_S);
        pod.termination_grace_period_seconds = Some(grace_s);
        let container = container_of(&mut pod);
        let mut arguments = self.command.arguments(spec);
        arguments.push(format!("--drain-timeout={drain_s}"));
        container.args = Some(arguments);
        set_variable(container, TOKEN_VARIABLE, self.command.token(spec)?);
        set_pod_ip(container);
        Ok(Pod {
            metadata: ObjectMeta {
                name: Some(names::of_pod(&self.site, spec)),
                labels: Some(labels),
                annotations: Some(annotations),
                owner_references: Some(vec![owner]),
                ..ObjectMeta::default()
            },
            spec: Some(pod),
            status: None,
        })
    }

    fn labels(&self, spec: &RelaySpec) -> BTreeMap<String, String> {
        let mut labels = site_labels(&self.site);
        labels.insert(names::QUEUE.to_owned(), names::of_queue(&spec.queue));
        labels.insert(names::RELAY.to_owned(), spec.relay.0.to_string());
        labels.insert(names::REQUEST.to_owned(), names::of_request(&spec.request));
        labels
    }
}

/// Returns the labels of all relays of a site.
pub(super) fn site_labels(site: &str) -> BTreeMap<String, String> {
    [(names::NAME, names::PROGRAM), (names::MANAGED_BY, names::MANAGER), (names::SITE, site)]
        .map(|(label, value)| (label.to_owned(), value.to_owned()))
        .into()
}

/// Returns a selector of labels as text.
pub(super) fn selector(labels: &BTreeMap<String, String>) -> String {
    let terms: Vec<String> =
        labels.iter().map(|(label, value)| format!("{label}={value}")).collect();
    terms.join(",")
}

/// Returns the relay that a pod runs; `None` if it is none of ours.
pub(super) fn running(pod: &Pod) -> Option<Running> {
    let annotations = pod.metadata.annotations.as_ref()?;
    let relay = pod.metadata.labels.as_ref()?.get(names::RELAY)?.parse().ok()?;
    Some(Running {
        queue: annotations.get(names::QUEUE_NAME)?.clone(),
        handle: RelayHandle {
            relay: RelayId(relay),
            request: annotations.get(names::REQUEST)?.clone(),
            name: pod.metadata.name.clone()?,
        },
    })
}

/// Returns why the pod's relay runs no more; `None` while it may.
pub(super) fn end_of(pod: &Pod) -> Option<String> {
    let status = pod.status.as_ref()?;
    let phase = status.phase.as_deref()?;
    if phase != "Failed" && phase != "Succeeded" {
        return None;
    }
    let mut cause = format!("pod {}", phase.to_lowercase());
    let of_pod = [&status.reason, &status.message].into_iter().flatten();
    let of_container = exit_of(pod);
    for part in of_pod.cloned().chain(of_container).filter(|part| !part.is_empty()) {
        cause.push_str(": ");
        cause.push_str(&part);
    }
    Some(cause)
}

/// Returns why a pod that is not running yet is not; `None` if it runs, or nothing is known.
pub(super) fn held_up_by(pod: &Pod) -> Option<String> {
    let status = pod.status.as_ref()?;
    if status.phase.as_deref() != Some("Pending") {
        return None;
    }
    let waiting = status.container_statuses.iter().flatten().find_map(|container| {
        let waiting = container.state.as_ref()?.waiting.as_ref()?;
        Some((
            waiting.reason.clone().unwrap_or_default(),
            waiting.message.clone().unwrap_or_default(),
        ))
    });
    let unscheduled = || {
        let conditions = status.conditions.iter().flatten();
        let scheduled = conditions
            .into_iter()
            .find(|one| one.type_ == "PodScheduled" && one.status == "False")?;
        Some((
            scheduled.reason.clone().unwrap_or_default(),
            scheduled.message.clone().unwrap_or_default(),
        ))
    };
    let (reason, message) = waiting.or_else(unscheduled)?;
    // What every pod goes through.
    if matches!(reason.as_str(), "" | "ContainerCreating" | "PodInitializing") {
        return None;
    }
    Some(if message.is_empty() { reason } else { format!("{reason}: {message}") })
}

fn exit_of(pod: &Pod) -> Option<String> {
    let containers = pod.status.as_ref()?.container_statuses.iter().flatten();
    let relay = containers.into_iter().find(|container| container.name == CONTAINER)?;
    let ended = relay.state.as_ref()?.terminated.as_ref()?;
    let mut text = match ended.signal {
        Some(signal) => format!("signal {signal}"),
        None => format!("exit code {}", ended.exit_code),
    };
    for part in [&ended.reason, &ended.message].into_iter().flatten() {
        text.push_str(", ");
        text.push_str(part.trim_end());
    }
    Some(text)
}

/// Reads the site's template, and puts in the image that is to run.
fn template(settings: &Settings) -> Result<PodTemplateSpec, TemplateError> {
    if !names::is_label(&settings.site) || settings.site.len() > 40 {
        return Err(TemplateError::Site(settings.site.clone()));
    }
    let mut template = read_template(settings)?;
    let container = container_of(template.spec.get_or_insert_default());
    if !settings.image.is_empty() {
        container.image = Some(settings.image.clone());
    }
    if container.image.as_deref().is_none_or(str::is_empty) {
        return Err(TemplateError::NoImage);
    }
    Ok(template)
}

fn read_template(settings: &Settings) -> Result<PodTemplateSpec, TemplateError> {
    if settings.pod_template.as_os_str().is_empty() {
        return Ok(PodTemplateSpec::default());
    }
    let path = settings.pod_template.display().to_string();
    let text = std::fs::read_to_string(&settings.pod_template).map_err(|error| {
        TemplateError::Unreadable { path: path.clone(), cause: error.to_string() }
    })?;
    serde_saphyr::from_str(&text)
        .map_err(|error| TemplateError::Malformed { path, cause: error.to_string() })
}

fn container_of(pod: &mut PodSpec) -> &mut Container {
    let found = pod.containers.iter().position(|container| container.name == CONTAINER);
    let at = found.unwrap_or_else(|| {
        pod.containers.insert(0, Container { name: CONTAINER.to_owned(), ..Container::default() });
        0
    });
    &mut pod.containers[at]
}

fn set_variable(container: &mut Container, name: &str, value: String) {
    let variables = container.env.get_or_insert_default();
    variables.retain(|variable| variable.name != name);
    variables.push(EnvVar { name: name.to_owned(), value: Some(value), value_from: None });
}

fn set_pod_ip(container: &mut Container) {
    let variables = container.env.get_or_insert_default();
    variables.retain(|variable| variable.name != POD_IP);
    let field = ObjectFieldSelector {
        field_path: "status.podIP".to_owned(),
        ..ObjectFieldSelector::default()
    };
    let source = EnvVarSource { field_ref: Some(field), ..EnvVarSource::default() };
    // First, since `$(…)` sees only what stands before.
    variables.insert(0, EnvVar { name: POD_IP.to_owned(), value: None, value_from: Some(source) });
}
