//! The access control list of a database.
//!
//! ```json
//! { "default": {"level": "reader", "domain": "*"}, "anonymous": {"level": "no_access"},
//!   "entries": [
//!     {"name": "ada", "kind": "person", "level": "manager", "roles": ["HR"]},
//!     {"name": "sales", "kind": "group", "level": "author", "create": true, "delete": false} ] }
//! ```

#![allow(missing_docs, reason = "the names say it")]

use serde_json::{Map, Value, json};

use super::Level;
use super::digest::folded;
use super::domain::Reach;
use crate::error::{DatabaseError, Result};

/// Names with a level of their own.
const ENTRIES_MAX: usize = 1000;

/// Roles of a database, as in Domino.
const ROLES_MAX: usize = 75;

const NAME_BYTES_MAX: usize = 256;

/// Who may do what in a database.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct AccessList {
    /// For anyone who has no entry, and whom it reaches.
    default: Grant,
    reach: Reach,
    /// For those who have not said who they are.
    anonymous: Grant,
    entries: Vec<Entry>,
}

#[derive(Clone, Debug, PartialEq, Eq)]
struct Entry {
    name: String,
    /// `None`: a person or a group.
    kind: Option<Kind>,
    grant: Grant,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Kind {
    Person,
    Group,
}

/// What a list gives somebody.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Grant {
    pub level: Level,
    pub roles: Vec<String>,
    pub may_create: bool,
    pub may_delete: bool,
}

impl Grant {
    const fn of(level: Level) -> Self {
        Self { level, roles: Vec::new(), may_create: true, may_delete: true }
    }

    /// The more of both, for somebody in two groups.
    fn join(mut self, other: &Self) -> Self {
        // Whether documents may be created or deleted goes with the level that it belongs to.
        if other.level >= self.level {
            let same = other.level == self.level;
            self.may_create = other.may_create || same && self.may_create;
            self.may_delete = other.may_delete || same && self.may_delete;
            self.level = other.level;
        }
        let new: Vec<String> =
            other.roles.iter().filter(|role| !self.roles.contains(role)).cloned().collect();
        self.roles.extend(new);
        self
    }
}

impl AccessList {
    /// A list that gives everybody who has logged in a level, and others none; but for people of domains with administrators of
    /// their own, who have none either unless it is that of depositors.
    #[must_use]
    pub fn with_default(level: Level) -> Self {
        Self {
            default: Grant::of(level),
            reach: Reach::Unsaid,
            anonymous: Grant::of(Level::NoAccess),
            entries: Vec::new(),
        }
    }

    /// The list as somebody in these groups means it: where it does not say whom `default` reaches, those of a domain with
    /// administrators of its own mean the people of theirs.
    #[must_use]
    pub fn said_by(self, groups: &[String]) -> Self {
        Self { reach: self.reach.said_by(groups), ..self }
    }

    /// A list that makes one person the manager, and gives others nothing.
    #[must_use]
    pub fn of_owner(owner: &str) -> Self {
        let grant = Grant::of(Level::Manager);
        let entry = Entry { name: owner.to_owned(), kind: Some(Kind::Person), grant };
        Self { entries: vec![entry], ..Self::with_default(Level::NoAccess) }
    }

    /// The list with a level for a group, unless it has an entry for that group already, whatever that says.
    #[must_use]
    pub fn with_group(mut self, name: &str, level: Level) -> Self {
        let is_there =
            |entry: &Entry| entry.kind != Some(Kind::Person) && folded(&entry.name) == folded(name);
        if self.entries.len() < ENTRIES_MAX && !self.entries.iter().any(is_there) {
            let grant = Grant::of(level);
            self.entries.push(Entry { name: name.to_owned(), kind: Some(Kind::Group), grant });
        }
        self
    }

    /// Reads a list from JSON. Without `default` others have no access, and neither have those who did not say who
    /// they are without `anonymous`.
    ///
    /// # Errors
    /// [`DatabaseError::Invalid`], saying which entry is wrong and what may stand there.
    pub fn parse(json: &Value) -> Result<Self> {
        let members =
            json.as_object().ok_or_else(|| wrong("The access control list must be a JSON object."))?;
        check_members(members, &["default", "anonymous", "entries"], "the list")?;
        let grant = |member: &str| match members.get(member) {
            None => Ok(Grant::of(Level::NoAccess)),
            Some(grant) => {
                let known = ["level", "roles", "create", "delete", "domain"];
                let known = if member == "default" { &known[..] } else { &known[..4] };
                parse_grant(grant, member, known)
            }
        };
        let (default, anonymous) = (grant("default")?, grant("anonymous")?);
        let reach = Reach::parse(members.get("default").and_then(|default| default.get("domain")))?;
        let entries = match members.get("entries") {
            None => Vec::new(),
            Some(Value::Array(entries)) if entries.len() <= ENTRIES_MAX => {
                entries.iter().map(parse_entry).collect::<Result<Vec<Entry>>>()?
            }
            Some(Value::Array(_)) => {
                return Err(wrong(&format!(
                    "An access control list has at most {ENTRIES_MAX} entries; give a group a level instead."
                )));
            }
            Some(_) => return Err(wrong("`entries` must be an array.")),
        };
        let list = Self { default, reach, anonymous, entries };
        list.check()?;
        Ok(list)
    }

    fn check(&self) -> Result<()> {
        let mut seen = std::collections::HashSet::new();
        let key = |entry: &Entry| (entry.name.clone(), entry.kind == Some(Kind::Group));
        if let Some(twice) = self.entries.iter().find(|entry| !seen.insert(key(entry))) {
            return Err(wrong(&format!("Two entries are for `{}`.", twice.name)));
        }
        let grants = [&self.default, &self.anonymous].into_iter();
        let grants = grants.chain(self.entries.iter().map(|entry| &entry.grant));
        let roles: std::collections::HashSet<&String> = grants.flat_map(|grant| &grant.roles).collect();
        if roles.len() > ROLES_MAX {
            return Err(wrong(&format!("A database has at most {ROLES_MAX} roles.")));
        }
        Ok(())
    }

    /// What somebody has: what their own entry says; else the most that one of their groups has, with the roles of
    /// all of them; else the default, where it reaches them.
    pub fn granted(&self, name: Option<&str>, groups: &[String]) -> Grant {
        let Some(name) = name else { return self.anonymous.clone() };
        let same = |one: &str, other: &str| folded(one) == folded(other);
        let own = |entry: &&Entry| same(&entry.name, name) && entry.kind != Some(Kind::Group);
        let exact = self.entries.iter().filter(own).find(|entry| entry.name == name);
        if let Some(entry) = exact.or_else(|| self.entries.iter().find(own)) {
            return entry.grant.clone();
        }
        let groups: Vec<String> = groups.iter().map(|group| folded(group)).collect();
        let of_group =
            |entry: &&Entry| entry.kind != Some(Kind::Person) && groups.contains(&folded(&entry.name));
        let granted = self.entries.iter().filter(of_group).map(|entry| &entry.grant);
        let granted = granted.fold(None, |joined: Option<Grant>, grant| {
            Some(joined.map_or_else(|| grant.clone(), |joined| joined.join(grant)))
        });
        granted.unwrap_or_else(|| self.default_of(&groups))
    }

    /// What somebody in these groups has who has no entry.
    fn default_of(&self, groups: &[String]) -> Grant {
        if self.reach.includes(groups, self.default.level == Level::Depositor) {
            self.default.clone()
        } else {
            Grant::of(Level::NoAccess)
        }
    }

    /// The lowest level that a group has by its name.
    pub fn lowest_of_groups(&self) -> Option<Level> {
        let groups = self.entries.iter().filter(|entry| entry.kind != Some(Kind::Person));
        groups.map(|entry| entry.grant.level).min()
    }

    /// Whether the list has an entry for this person's own name.
    pub fn names_person(&self, name: &str) -> bool {
        let own = |entry: &Entry| entry.kind != Some(Kind::Group) && folded(&entry.name) == folded(name);
        self.entries.iter().any(own)
    }

    /// Whether who has no entry reads nothing.
    pub fn is_closed(&self) -> bool {
        self.default.level < Level::Reader
    }

    /// The level of somebody in these groups.
    #[must_use]
    pub fn level_of(&self, name: Option<&str>, groups: &[String]) -> Level {
        self.granted(name, groups).level
    }

    /// The people and the groups with such a level; entries that may be either are among both.
    pub fn listed(&self, within: impl Fn(Level) -> bool) -> (Vec<&str>, Vec<&str>) {
        let names = |other: Kind| {
            let entries = self.entries.iter().filter(|entry| entry.kind != Some(other));
            entries.filter(|entry| within(entry.grant.level)).map(|entry| entry.name.as_str()).collect()
        };
        (names(Kind::Group), names(Kind::Person))
    }

    /// The list as JSON, with everything said that was left out.
    #[must_use]
    pub fn to_json(&self) -> Value {
        let entries: Vec<Value> = self
            .entries
            .iter()
            .map(|entry| {
                let mut json = grant_json(&entry.grant);
                json.insert("name".to_owned(), json!(entry.name));
                if let Some(kind) = entry.kind {
                    let kind = if kind == Kind::Person { "person" } else { "group" };
                    json.insert("kind".to_owned(), json!(kind));
                }
                Value::Object(json)
            })
            .collect();
        let mut default = grant_json(&self.default);
        if let Some(domain) = self.reach.text() {
            default.insert("domain".to_owned(), json!(domain));
        }
        json!({
            "default": default,
            "anonymous": grant_json(&self.anonymous),
            "entries": entries,
        })
    }
}

/// # Errors
/// [`DatabaseError::Invalid`] if this is nobody's name: what reads like a role is not one.
pub(super) fn check_owner(name: &str) -> Result<()> {
    let is_name = !name.is_empty()
        && name.len() <= NAME_BYTES_MAX
        && name.trim() == name
        && !name.starts_with(['_', '[', '*'])
        && !name.contains(char::is_control);
    if is_name {
        return Ok(());
    }
    Err(wrong(&format!("`owner` must be the name of a person, of 1 to {NAME_BYTES_MAX} bytes.")))
}

fn parse_entry(entry: &Value) -> Result<Entry> {
    let name = entry.get("name").and_then(Value::as_str).unwrap_or_default();
    if name.is_empty() || name.len() > NAME_BYTES_MAX {
        return Err(wrong(&format!("Each entry needs a `name` of 1 to {NAME_BYTES_MAX} bytes.")));
    }
    let kind = match entry.get("kind") {
        None | Some(Value::Null) => None,
        Some(kind) => Some(match kind.as_str() {
            Some("person") => Kind::Person,
            Some("group") => Kind::Group,
            _ => return Err(wrong(&format!("`kind` of `{name}` must be \"person\" or \"group\"."))),
        }),
    };
    let grant = parse_grant(entry, name, &["name", "kind", "level", "roles", "create", "delete"])?;
    Ok(Entry { name: name.to_owned(), kind, grant })
}

fn parse_grant(json: &Value, of: &str, known: &[&str]) -> Result<Grant> {
    let members = json.as_object().ok_or_else(|| wrong(&format!("`{of}` must be a JSON object.")))?;
    check_members(members, known, &format!("`{of}`"))?;
    let level = members.get("level").and_then(Value::as_str).and_then(Level::parse).ok_or_else(|| {
        let levels: Vec<&str> = Level::ALL.into_iter().map(Level::text).collect();
        wrong(&format!("`level` of `{of}` must be one of {}.", levels.join(", ")))
    })?;
    let flag = |member: &str| match members.get(member) {
        None => Ok(true),
        Some(Value::Bool(flag)) => Ok(*flag),
        Some(_) => Err(wrong(&format!("`{member}` of `{of}` must be true or false."))),
    };
    let roles = match members.get("roles") {
        None => Vec::new(),
        Some(Value::Array(roles)) => roles.iter().map(|role| parse_role(role, of)).collect::<Result<_>>()?,
        Some(_) => return Err(wrong(&format!("`roles` of `{of}` must be an array of texts."))),
    };
    Ok(Grant { level, roles, may_create: flag("create")?, may_delete: flag("delete")? })
}

/// A role, with or without the brackets that it has in formulas and fields.
fn parse_role(role: &Value, of: &str) -> Result<String> {
    let text = role.as_str().unwrap_or_default();
    let text = text.strip_prefix('[').and_then(|text| text.strip_suffix(']')).unwrap_or(text);
    if text.is_empty() || text.len() > NAME_BYTES_MAX || text.contains(['[', ']']) {
        return Err(wrong(&format!("`roles` of `{of}` must be an array of names.")));
    }
    Ok(text.to_owned())
}

fn check_members(members: &Map<String, Value>, known: &[&str], of: &str) -> Result<()> {
    match members.keys().find(|member| !known.contains(&member.as_str())) {
        None => Ok(()),
        Some(unknown) => {
            Err(wrong(&format!("`{unknown}` is unknown in {of}; known are {}.", known.join(", "))))
        }
    }
}

fn grant_json(grant: &Grant) -> Map<String, Value> {
    let mut json = Map::new();
    json.insert("level".to_owned(), json!(grant.level.text()));
    json.insert("roles".to_owned(), json!(grant.roles));
    json.insert("create".to_owned(), json!(grant.may_create));
    json.insert("delete".to_owned(), json!(grant.may_delete));
    json
}

fn wrong(reason: &str) -> DatabaseError {
    DatabaseError::bad_request(reason)
}

/// What CouchDB's `_security` gives somebody: its administrators may do everything, its members edit documents; if no
/// member is named, everybody is one. `readers` is the old name of `members`.
pub(super) fn level_by_security(security: &Value, name: Option<&str>, roles: &[String]) -> Level {
    let listed = |group: &Value| {
        let by_name = name.is_some_and(|name| listed(group, "names").any(|listed| listed == name));
        by_name || listed(group, "roles").any(|role| roles.iter().any(|own| own == role))
    };
    if security.get("admins").is_some_and(listed) {
        return Level::Manager;
    }
    match security.get("members").or_else(|| security.get("readers")) {
        Some(group) if !is_open(group) && !listed(group) => Level::NoAccess,
        _ => Level::Editor,
    }
}

fn is_open(group: &Value) -> bool {
    listed(group, "names").next().is_none() && listed(group, "roles").next().is_none()
}

fn listed<'a>(group: &'a Value, kind: &str) -> impl Iterator<Item = &'a str> {
    group.get(kind).and_then(Value::as_array).into_iter().flatten().filter_map(Value::as_str)
}
