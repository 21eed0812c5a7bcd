//! Commands about mailboxes by name that need one question.

use scrinium_imap_wire::{MailboxName, Response, ResponseCode, StatusItem, Value};

use crate::capability::Capability;
use crate::request::{Answer, MailboxNumbers, MailboxRequest, QuotaRoots, Request, RightsChange};
use crate::session::ServerSession;
use crate::task::{Ending, Flow, Task};

/// How an answer is written.
pub(crate) enum MailboxReply {
    Done,
    Created,
    Deleted(MailboxName),
    Renamed(MailboxName, MailboxName),
    Status(MailboxName, Vec<StatusItem>),
    Namespaces,
    QuotaRoots(MailboxName),
    Quota,
    Rights(MailboxName),
    ListedRights(MailboxName, String),
    MyRights(MailboxName),
    Metadata(String, Option<u64>),
}

impl ServerSession {
    pub(crate) fn ask_mailbox(request: MailboxRequest, reply: MailboxReply) -> Flow {
        Flow::Ask(Request::Mailbox(Box::new(request)), Task::Mailbox(Box::new(reply)))
    }

    pub(crate) fn mailbox_answered(&mut self, reply: MailboxReply, answer: Answer) -> Flow {
        match (reply, answer) {
            (MailboxReply::Done, Answer::Accepted) => {}
            (MailboxReply::Created, Answer::Created(id)) => {
                let ending = Ending::ok("Made");
                let tells_id = self.has(Capability::ObjectId) && !id.is_empty();
                return if tells_id { ending.with(ResponseCode::MailboxId(id)) } else { ending }.into();
            }
            (MailboxReply::Deleted(mailbox), Answer::Accepted) => {
                if self.selected.as_ref().is_some_and(|selected| selected.mailbox == mailbox) {
                    self.leave(true);
                }
            }
            (MailboxReply::Renamed(from, to), Answer::Accepted) => self.selected_renamed(&from, &to),
            (MailboxReply::Status(mailbox, items), Answer::Status(numbers)) => {
                self.say_numbers(&mailbox, &numbers, &items);
            }
            (MailboxReply::Namespaces, Answer::Namespaces { personal, other_users, shared }) => {
                self.say(&Response::Namespace { personal, other_users, shared });
            }
            (MailboxReply::QuotaRoots(mailbox), Answer::Quota(roots)) => {
                let names = roots.iter().map(|(root, _)| root.clone()).collect();
                self.say(&Response::QuotaRoot { mailbox, roots: names });
                self.say_quota(roots);
            }
            (MailboxReply::Quota, Answer::Quota(roots)) => self.say_quota(roots),
            (MailboxReply::Rights(mailbox), Answer::Rights(entries)) => {
                self.say(&Response::Acl { mailbox, entries });
            }
            (MailboxReply::ListedRights(mailbox, identifier), Answer::ListedRights(rights)) => {
                self.say(&Response::ListRights { mailbox, identifier, rights });
            }
            (MailboxReply::MyRights(mailbox), Answer::MyRights(rights)) => {
                self.say(&Response::MyRights { mailbox, rights });
            }
            (MailboxReply::Metadata(mailbox, most), Answer::Metadata(entries)) => {
                return self.say_metadata(mailbox, most, entries);
            }
            (_, answer) => return Ending::of_answer(answer).into(),
        }
        Ending::ok("Done").into()
    }

    fn selected_renamed(&mut self, from: &MailboxName, to: &MailboxName) {
        // RENAME of INBOX moves its messages and leaves it (RFC 9051, section 6.3.6).
        if *from == MailboxName::inbox() {
            return;
        }
        let Some(selected) = &mut self.selected else { return };
        let name = selected.mailbox.as_str();
        let below = name.strip_prefix(from.as_str()).filter(|rest| rest.is_empty() || rest.starts_with('/'));
        if let Some(renamed) = below.and_then(|rest| MailboxName::new(&format!("{}{rest}", to.as_str()))) {
            selected.mailbox = renamed;
        }
    }

    fn say_quota(&mut self, roots: QuotaRoots) {
        for (root, resources) in roots {
            self.say(&Response::Quota { root, resources });
        }
    }

    /// Values longer than the client wants are left out, and it hears of the longest (RFC 5464, section 4.2.1).
    fn say_metadata(
        &mut self,
        mailbox: String,
        most: Option<u64>,
        entries: Vec<(String, Option<Vec<u8>>)>,
    ) -> Flow {
        let length = |value: &Option<Vec<u8>>| value.as_ref().map_or(0, |value| value.len() as u64);
        let fits = |value: &Option<Vec<u8>>| most.is_none_or(|most| length(value) <= most);
        let longest = entries.iter().filter(|(_, value)| !fits(value)).map(|(_, value)| length(value)).max();
        let entries: Vec<_> = entries.into_iter().filter(|(_, value)| fits(value)).collect();
        if !entries.is_empty() {
            self.say(&Response::Metadata { mailbox, entries });
        }
        let ending = Ending::ok("Done");
        match longest {
            Some(bytes) => {
                let values = vec![Value::atom("LONGENTRIES"), Value::atom(bytes.to_string())];
                ending.with(ResponseCode::Other("METADATA".to_owned(), values)).into()
            }
            None => ending.into(),
        }
    }

    pub(crate) fn say_numbers(
        &mut self,
        mailbox: &MailboxName,
        numbers: &MailboxNumbers,
        items: &[StatusItem],
    ) {
        let limit = numbers.append_limit.unwrap_or_else(|| self.limits().message_bytes);
        let items = items.iter().map(|item| {
            let number = |number: u64| Value::atom(number.to_string());
            let value = match item {
                StatusItem::Messages => number(numbers.messages.into()),
                StatusItem::Recent => number(numbers.recent.into()),
                StatusItem::UidNext => number(numbers.uid_next.into()),
                StatusItem::UidValidity => number(numbers.uid_validity.into()),
                StatusItem::Unseen => number(numbers.unseen.into()),
                StatusItem::Deleted => number(numbers.deleted.into()),
                StatusItem::Size => number(numbers.bytes),
                StatusItem::DeletedStorage => number(numbers.deleted_bytes),
                StatusItem::HighestModSeq => number(numbers.mod_seq.max(1)),
                StatusItem::AppendLimit => number(limit),
                StatusItem::MailboxId => Value::List(vec![Value::atom(numbers.mailbox_id.as_str())]),
            };
            (*item, value)
        });
        let items = items.collect();
        self.say(&Response::MailboxStatus { mailbox: mailbox.clone(), items });
    }

    /// Items of STATUS whose capability is hidden are unknown. HIGHESTMODSEQ switches CONDSTORE on (RFC 7162, section 3.1).
    pub(crate) fn status_items(&mut self, items: &[StatusItem]) -> Result<(), Ending> {
        for item in items {
            let needed = match item {
                StatusItem::Size => Some(Capability::StatusSize),
                StatusItem::HighestModSeq => Some(Capability::Condstore),
                StatusItem::AppendLimit => Some(Capability::AppendLimit),
                StatusItem::MailboxId => Some(Capability::ObjectId),
                StatusItem::DeletedStorage => Some(Capability::Quota),
                // RFC 9208, section 4.1.4, and RFC 9051.
                StatusItem::Deleted if !self.has(Capability::Imap4Rev2) => Some(Capability::Quota),
                _ => None,
            };
            if needed.is_some_and(|needed| !self.has(needed)) {
                return Err(Ending::bad("An item of STATUS is not known"));
            }
        }
        if items.contains(&StatusItem::HighestModSeq) {
            self.enabled.condstore = true;
        }
        Ok(())
    }

    pub(crate) fn status(&mut self, mailbox: MailboxName, items: Vec<StatusItem>) -> Flow {
        if let Err(ending) = self.status_items(&items) {
            return ending.into();
        }
        let request = MailboxRequest::Status(mailbox.clone(), items.clone());
        Self::ask_mailbox(request, MailboxReply::Status(mailbox, items))
    }

    pub(crate) fn set_acl(mailbox: MailboxName, identifier: String, rights: &str) -> Flow {
        let change = match rights.split_at_checked(1) {
            Some(("+", rights)) => RightsChange::Add(rights.to_owned()),
            Some(("-", rights)) => RightsChange::Remove(rights.to_owned()),
            _ => RightsChange::Set(rights.to_owned()),
        };
        let letters = match &change {
            RightsChange::Set(rights) | RightsChange::Add(rights) | RightsChange::Remove(rights) => rights,
        };
        // RFC 4314, sections 2.1 and 2.1.1.
        if !letters.chars().all(|letter| "lrswipkxteacd".contains(letter)) {
            return Ending::bad("A right is not known").into();
        }
        Self::ask_mailbox(MailboxRequest::SetAcl(mailbox, identifier, change), MailboxReply::Done)
    }

    pub(crate) fn get_metadata(
        mailbox: String,
        entries: Vec<String>,
        max_size: Option<u64>,
        depth: Option<u8>,
    ) -> Flow {
        let Ok(name) = named(&mailbox) else { return Ending::bad("The name is not valid").into() };
        if !entries.iter().all(|entry| is_entry(entry)) {
            return Ending::bad("The name of an entry is not valid").into();
        }
        let request = MailboxRequest::GetMetadata(name, entries, depth);
        Self::ask_mailbox(request, MailboxReply::Metadata(mailbox, max_size))
    }

    pub(crate) fn set_metadata(mailbox: &str, entries: Vec<(String, Option<Vec<u8>>)>) -> Flow {
        let Ok(name) = named(mailbox) else { return Ending::bad("The name is not valid").into() };
        if entries.is_empty() || !entries.iter().all(|(entry, _)| is_entry(entry)) {
            return Ending::bad("The name of an entry is not valid").into();
        }
        Self::ask_mailbox(MailboxRequest::SetMetadata(name, entries), MailboxReply::Done)
    }
}

/// A mailbox, or nothing for the server.
fn named(name: &str) -> Result<Option<MailboxName>, ()> {
    if name.is_empty() {
        return Ok(None);
    }
    MailboxName::new(name).map(Some).ok_or(())
}

/// RFC 5464, section 3.2.
fn is_entry(name: &str) -> bool {
    let lower = name.to_ascii_lowercase();
    (lower.starts_with("/private/")
        || lower.starts_with("/shared/")
        || lower == "/private"
        || lower == "/shared")
        && !name.ends_with('/')
        && !name.contains("//")
        && name.len() <= 1000
        && name.bytes().all(|byte| matches!(byte, b' '..=b'~') && !matches!(byte, b'*' | b'%'))
}
