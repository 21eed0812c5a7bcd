//! When views are brought up to date where a reader does not say: the member `update` of a view, or of `options` for
//! all views of a design document.
//!
//! What a view holds does not depend on it, so it is no part of an index's identity.

use std::collections::HashMap;
use std::time::Duration;

use scrinium_database::{DatabaseError, InvalidInput, Result};
use serde_json::Value;

use crate::definition::Definition;
use crate::group::{Group, View};

/// The longest time that a reader may be shown a view as it stands: a year.
const SECONDS_MAX: u64 = 365 * 86_400;

/// When a view is brought up to date.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(crate) enum UpdatePolicy {
    /// By each read.
    #[default]
    OnRead,
    /// By the update task too, as soon as documents change.
    Automatic,
    /// By a read that finds it older than this, and by the update task while somebody reads it.
    Every(Duration),
    /// Once it was built, only by who says so.
    Manual,
}

/// The policies of a design document's views.
#[derive(Clone, Debug, Default)]
pub(crate) struct Policies(HashMap<String, UpdatePolicy>);

impl Policies {
    /// Those of a design document as it is stored. It may have come from another server, so what is invalid here counts
    /// as the default.
    pub(super) fn of(design: &Value) -> Self {
        let views = design.get("views").and_then(Value::as_object).into_iter().flatten();
        let policies = views.map(|(name, view)| (name.clone(), policy(design, view).unwrap_or_default()));
        Self(policies.filter(|(_, policy)| *policy != UpdatePolicy::OnRead).collect())
    }

    pub(super) fn get(&self, view: &str) -> UpdatePolicy {
        self.0.get(view).copied().unwrap_or_default()
    }

    /// Whether the update task has something to do for one of the views when documents change.
    pub(super) fn are_followed(&self) -> bool {
        let is_followed =
            |policy: &UpdatePolicy| matches!(policy, UpdatePolicy::Automatic | UpdatePolicy::Every(_));
        self.0.values().any(is_followed)
    }
}

impl Group {
    /// Whether a read of another view of the design document brings this one up to date as well, since the documents
    /// are then read once for both. One that was discarded waits to be read itself.
    pub(super) fn follows_reads(&self, view: &View) -> bool {
        if view.index.usage.is_discarded() {
            return false;
        }
        match self.policies.get(&view.definition.name) {
            UpdatePolicy::OnRead | UpdatePolicy::Automatic => true,
            UpdatePolicy::Every(age) => !view.is_built() || !view.index.is_younger_than(age),
            UpdatePolicy::Manual => !view.is_built(),
        }
    }
}

/// Refuses, before it is stored, a design document that says something else of one of its views.
///
/// # Errors
/// `compilation_error`, naming the view.
pub(super) fn check(design: &Value, definitions: &[Definition]) -> Result<()> {
    for definition in definitions {
        let name = &definition.name;
        let view = design.get("views").and_then(|views| views.get(name)).unwrap_or(&Value::Null);
        if policy(design, view).is_none() {
            return Err(DatabaseError::Invalid {
                input: InvalidInput::Design,
                reason: format!(
                    "view `{name}`: `update` must be \"on_read\", \"automatic\", \"manual\" or \
                     {{\"every_seconds\": N}} with N from 1 to {SECONDS_MAX}"
                ),
            });
        }
    }
    Ok(())
}

/// `None`: it says something that is no policy.
fn policy(design: &Value, view: &Value) -> Option<UpdatePolicy> {
    let said = |place: &Value| place.get("update").filter(|update| !update.is_null()).cloned();
    let Some(update) = said(view).or_else(|| design.get("options").and_then(said)) else {
        return Some(UpdatePolicy::OnRead);
    };
    match &update {
        Value::String(update) => match update.as_str() {
            "on_read" => Some(UpdatePolicy::OnRead),
            "automatic" => Some(UpdatePolicy::Automatic),
            "manual" => Some(UpdatePolicy::Manual),
            _ => None,
        },
        Value::Object(members) if members.len() == 1 => {
            let seconds = members.get("every_seconds")?.as_u64()?;
            (1..=SECONDS_MAX).contains(&seconds).then(|| UpdatePolicy::Every(Duration::from_secs(seconds)))
        }
        _ => None,
    }
}
