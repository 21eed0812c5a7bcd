//! NOTIFY (RFC 5465): what a client wants to hear of, without asking.

use scrinium_imap_wire::{FetchAttribute, MailboxName, NameEncoding, Value};

use crate::task::Ending;

/// Groups of one command, and names in one of them.
const GROUPS_MAX: usize = 100;

/// Mailboxes that are watched for the same events.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct EventGroup {
    /// Which.
    pub scope: EventScope,
    /// Messages come, go, or change: their numbers are told.
    pub messages: bool,
    /// Flags change as well.
    pub flags: bool,
    /// Names are made, deleted and changed.
    pub names: bool,
    /// Subscriptions change.
    pub subscriptions: bool,
}

/// Which mailboxes are watched. The first group that has a mailbox counts for it (RFC 5465, section 3).
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum EventScope {
    /// All that are the person's own.
    Personal,
    /// Where mail comes in.
    Inboxes,
    /// What is subscribed.
    Subscribed,
    /// These and all below them.
    Subtree(Vec<MailboxName>),
    /// These.
    Mailboxes(Vec<MailboxName>),
}

/// What a session watches.
#[derive(Clone, Debug, Default, PartialEq)]
pub(crate) struct Watch {
    pub(crate) groups: Vec<EventGroup>,
    pub(crate) selected: Option<SelectedEvents>,
    /// How far events of others were told.
    pub(crate) cursor: Option<u64>,
    pub(crate) wants_status: bool,
}

/// What the client hears of the selected mailbox.
#[derive(Clone, Debug, Default, PartialEq)]
pub(crate) struct SelectedEvents {
    /// What is gone waits for a command that allows it.
    pub(crate) is_delayed: bool,
    pub(crate) messages: bool,
    pub(crate) flags: bool,
    /// What the client hears of a new message.
    pub(crate) items: Vec<FetchAttribute>,
}

impl Watch {
    pub(crate) fn has_others(&self) -> bool {
        !self.groups.is_empty()
    }

    /// Reads what follows NOTIFY; `None` stands for NONE.
    pub(crate) fn parse(values: &[Value], names: NameEncoding) -> Result<Option<Self>, Ending> {
        match values {
            [only] if only.is("NONE") => Ok(None),
            [set, rest @ ..] if set.is("SET") => {
                let (wants_status, groups) = match rest {
                    [status, groups @ ..] if status.is("STATUS") => (true, groups),
                    groups => (false, groups),
                };
                if groups.is_empty() || groups.len() > GROUPS_MAX {
                    return Err(invalid());
                }
                let mut watch = Self { wants_status, ..Self::default() };
                for group in groups {
                    watch.add(group.list().ok_or_else(invalid)?, names)?;
                }
                Ok(Some(watch))
            }
            _ => Err(invalid()),
        }
    }

    fn add(&mut self, group: &[Value], names: NameEncoding) -> Result<(), Ending> {
        let (scope, rest) = group.split_first().ok_or_else(invalid)?;
        let scope = scope.as_atom().ok_or_else(invalid)?.to_ascii_lowercase();
        let is_delayed = scope == "selected-delayed";
        if is_delayed || scope == "selected" {
            let [events] = rest else { return Err(invalid()) };
            self.selected = selected_events(events, is_delayed)?;
            return Ok(());
        }
        let (scope, rest) = match (scope.as_str(), rest) {
            ("personal", rest) => (EventScope::Personal, rest),
            ("inboxes", rest) => (EventScope::Inboxes, rest),
            ("subscribed", rest) => (EventScope::Subscribed, rest),
            ("subtree", [list, rest @ ..]) => (EventScope::Subtree(mailboxes(list, names)?), rest),
            ("mailboxes", [list, rest @ ..]) => (EventScope::Mailboxes(mailboxes(list, names)?), rest),
            _ => return Err(invalid()),
        };
        let [events] = rest else { return Err(invalid()) };
        let mut group =
            EventGroup { scope, messages: false, flags: false, names: false, subscriptions: false };
        if !events.is("NONE") {
            for event in events.list().ok_or_else(invalid)? {
                group.set(event)?;
            }
        }
        self.groups.push(group);
        Ok(())
    }
}

impl EventGroup {
    fn set(&mut self, event: &Value) -> Result<(), Ending> {
        let name = event.as_atom().ok_or_else(invalid)?.to_ascii_lowercase();
        match name.as_str() {
            "messagenew" | "messageexpunge" => self.messages = true,
            "flagchange" => self.flags = true,
            "mailboxname" => self.names = true,
            "subscriptionchange" => self.subscriptions = true,
            _ => return Err(unknown()),
        }
        Ok(())
    }
}

/// RFC 5465, section 5.2: new messages and those that are gone go together, and flags only with them.
fn selected_events(events: &Value, is_delayed: bool) -> Result<Option<SelectedEvents>, Ending> {
    if events.is("NONE") {
        return Ok(None);
    }
    let mut found = SelectedEvents { is_delayed, ..SelectedEvents::default() };
    let mut gone = false;
    let mut rest = events.list().ok_or_else(invalid)?;
    while let [event, after @ ..] = rest {
        rest = after;
        match event.as_atom().ok_or_else(invalid)?.to_ascii_lowercase().as_str() {
            "messagenew" => {
                found.messages = true;
                if let [items @ Value::List(_), after @ ..] = rest {
                    found.items = FetchAttribute::parse_list(items).map_err(|_| invalid())?;
                    rest = after;
                }
            }
            "messageexpunge" => gone = true,
            "flagchange" => found.flags = true,
            _ => return Err(unknown()),
        }
    }
    if found.messages != gone || (found.flags && !gone) {
        return Err(invalid());
    }
    Ok(Some(found))
}

fn mailboxes(value: &Value, names: NameEncoding) -> Result<Vec<MailboxName>, Ending> {
    let one = |value: &Value| {
        let bytes = value.bytes().ok_or_else(invalid)?;
        MailboxName::decode(bytes, names).map_err(|_| invalid())
    };
    match value.list() {
        Some(values) if values.len() <= GROUPS_MAX => values.iter().map(one).collect(),
        Some(_) => Err(invalid()),
        None => Ok(vec![one(value)?]),
    }
}

fn invalid() -> Ending {
    Ending::bad("What to notify of is not valid")
}

/// RFC 5465, section 5: with the events that there are.
fn unknown() -> Ending {
    let events = ["MessageNew", "MessageExpunge", "FlagChange", "MailboxName", "SubscriptionChange"];
    let list = Value::List(events.map(Value::atom).to_vec());
    let code = scrinium_imap_wire::ResponseCode::Other("BADEVENT".to_owned(), vec![list]);
    Ending::no(Some(code), "An event is not known")
}
