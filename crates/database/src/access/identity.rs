//! Who acts in databases.

use std::any::Any;
use std::sync::Arc;

/// The role that CouchDB gives to server administrators.
const ADMINISTRATOR_ROLE: &str = "_admin";

/// The role of those who see what administrators of the server see of it on the console, and change nothing.
pub const VIEWER_ROLE: &str = "_viewer";

/// At most this many groups of the directory are known of a person.
pub const GROUPS_MAX: usize = 1000;

/// Who asks: a name with roles and groups, or nobody. Clones are cheap.
#[derive(Clone, Default)]
pub struct Identity {
    name: Option<Arc<str>>,
    roles: Arc<[String]>,
    /// How many of `roles` are the person's own; those behind them are groups of the directory.
    own_roles: usize,
    /// As many groups as are ever known.
    has_most_groups: bool,
    grant: Option<Arc<dyn Any + Send + Sync>>,
}

/// Two are the same who may the same, whichever way they came.
impl PartialEq for Identity {
    fn eq(&self, other: &Self) -> bool {
        self.name == other.name && self.roles == other.roles && self.own_roles == other.own_roles
    }
}

impl Eq for Identity {}

impl std::fmt::Debug for Identity {
    fn fmt(&self, formatter: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        formatter.debug_struct("Identity").field("name", &self.name).field("roles", &self.roles).finish()
    }
}

impl Identity {
    /// Somebody who has shown who they are. The role `_admin` makes a server administrator.
    #[must_use]
    pub fn new(name: &str, roles: Vec<String>) -> Self {
        Self {
            name: Some(name.into()),
            own_roles: roles.len(),
            roles: roles.into(),
            has_most_groups: false,
            grant: None,
        }
    }

    /// Somebody who has shown who they are, with the groups of the directory that they are in. No group makes a server
    /// administrator: what a group is called says nothing of roles that begin with an underscore.
    #[must_use]
    pub fn with_groups(name: &str, roles: &[String], groups: &[String]) -> Self {
        let has_most_groups = groups.len() >= GROUPS_MAX;
        let groups = groups.iter().filter(|group| !group.starts_with(['_', '[']) && !roles.contains(group));
        let all: Vec<String> = roles.iter().chain(groups).cloned().collect();
        Self {
            name: Some(name.into()),
            roles: all.into(),
            own_roles: roles.len(),
            has_most_groups,
            grant: None,
        }
    }

    /// The same, with what anyone who knows people keeps of why this one is believed.
    #[must_use]
    pub fn with_grant(self, grant: Arc<dyn Any + Send + Sync>) -> Self {
        Self { grant: Some(grant), ..self }
    }

    /// The same, in one more group, which makes nobody a server administrator.
    #[must_use]
    pub fn in_group(&self, group: &str) -> Self {
        let roles = self.roles.iter().map(String::as_str).chain([group]).map(str::to_owned).collect();
        Self { roles, ..self.clone() }
    }

    /// What [`Identity::with_grant`] was given, where it is a `T`.
    #[must_use]
    pub fn grant<T: 'static>(&self) -> Option<&T> {
        self.grant.as_deref()?.downcast_ref()
    }

    /// Somebody who has not said who they are.
    #[must_use]
    pub fn anonymous() -> Self {
        Self::default()
    }

    /// The name, if one was shown.
    #[must_use]
    pub fn name(&self) -> Option<&str> {
        self.name.as_deref()
    }

    /// The name, shared.
    #[must_use]
    pub fn shared_name(&self) -> Option<Arc<str>> {
        self.name.clone()
    }

    /// The roles, `_admin` among them for a server administrator, and behind them the groups.
    #[must_use]
    pub fn roles(&self) -> &[String] {
        &self.roles
    }

    /// Whether the person may be in more groups than are known: [`GROUPS_MAX`] are.
    pub fn may_have_more_groups(&self) -> bool {
        self.has_most_groups
    }

    /// Whether this is nobody.
    #[must_use]
    pub fn is_anonymous(&self) -> bool {
        self.name.is_none()
    }

    /// Whether this is a server administrator.
    #[must_use]
    pub fn is_administrator(&self) -> bool {
        self.has_own_role(ADMINISTRATOR_ROLE)
    }

    /// Whether this is somebody who may look on what administrators do. It gives nothing in any database.
    #[must_use]
    pub fn is_viewer(&self) -> bool {
        self.has_own_role(VIEWER_ROLE)
    }

    /// Whether the person has a role that is no group's.
    fn has_own_role(&self, wanted: &str) -> bool {
        self.roles.iter().take(self.own_roles).any(|role| role == wanted)
    }
}
