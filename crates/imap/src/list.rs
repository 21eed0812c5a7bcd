//! LIST, LSUB and their extensions (RFC 9051, section 6.3.9; RFC 5258, 5819, 6154, 8440, 9590).

use scrinium_imap_wire::{ListCommand, ListReturn, ListedMailbox, MailboxName, Response, StatusItem, Value};

use crate::capability::Capability;
use crate::pattern::{DELIMITER, common_prefix, matches};
use crate::request::{Answer, ListQuestion, MailboxInfo, MailboxRequest, Request};
use crate::session::ServerSession;
use crate::task::{Ending, Flow, Task};

pub(crate) struct ListTask {
    question: ListQuestion,
    patterns: Vec<String>,
    style: ListStyle,
}

#[derive(Clone, Debug, Default)]
#[allow(clippy::struct_excessive_bools, reason = "each is an option of the command")]
struct ListStyle {
    is_lsub: bool,
    is_extended: bool,
    only_subscribed: bool,
    only_special: bool,
    recursive: bool,
    shows_subscribed: bool,
    shows_rights: bool,
    status: Vec<StatusItem>,
    metadata: Vec<String>,
}

impl ServerSession {
    pub(crate) fn list(&mut self, command: ListCommand) -> Flow {
        let ListCommand { selection, reference, patterns, extended, returns } = command;
        if !extended && patterns.iter().all(String::is_empty) {
            self.say_delimiter();
            return Ending::ok("Done").into();
        }
        let chosen = |word: &str| selection.iter().any(|option| option == word);
        let mut style = ListStyle {
            is_extended: extended,
            only_subscribed: chosen("SUBSCRIBED"),
            only_special: chosen("SPECIAL-USE"),
            recursive: chosen("RECURSIVEMATCH"),
            shows_subscribed: chosen("SUBSCRIBED"),
            ..ListStyle::default()
        };
        if style.recursive && !style.only_subscribed && !style.only_special {
            return Ending::bad("RECURSIVEMATCH stands with another option").into();
        }
        for option in returns {
            match option {
                ListReturn::Subscribed => style.shows_subscribed = true,
                ListReturn::Children | ListReturn::SpecialUse => {}
                ListReturn::MyRights => style.shows_rights = true,
                ListReturn::Status(items) => {
                    if let Err(ending) = self.status_items(&items) {
                        return ending.into();
                    }
                    style.status = items;
                }
                ListReturn::Metadata(entries) => style.metadata = entries,
            }
        }
        self.begin_list(&reference, &patterns, style)
    }

    pub(crate) fn lsub(&mut self, reference: &str, pattern: String) -> Flow {
        let style = ListStyle { is_lsub: true, only_subscribed: true, ..ListStyle::default() };
        self.begin_list(reference, &[pattern], style)
    }

    fn begin_list(&mut self, reference: &str, patterns: &[String], style: ListStyle) -> Flow {
        let patterns: Vec<String> = patterns.iter().map(|pattern| format!("{reference}{pattern}")).collect();
        let question = ListQuestion {
            prefix: common_prefix(&patterns),
            behind: None,
            limit: self.limits().mailboxes,
            only_subscribed: style.only_subscribed,
            wants_rights: style.shows_rights,
            status: style.status.clone(),
            metadata: style.metadata.clone(),
        };
        Flow::Go(Task::List(Box::new(ListTask { question, patterns, style })))
    }

    /// The name of nothing tells what stands between levels.
    fn say_delimiter(&mut self) {
        let Some(name) = MailboxName::new("") else { return };
        let attributes = vec!["\\Noselect".to_owned()];
        self.say(&Response::List(ListedMailbox {
            attributes,
            delimiter: Some(DELIMITER),
            name,
            extended: Vec::new(),
        }));
    }

    pub(crate) fn list_advance(&mut self, task: Box<ListTask>) -> Flow {
        let request = MailboxRequest::List(task.question.clone());
        Flow::Ask(Request::Mailbox(Box::new(request)), Task::List(task))
    }

    pub(crate) fn list_answered(&mut self, mut task: Box<ListTask>, answer: Answer) -> Flow {
        let Answer::Mailboxes { mailboxes, is_more } = answer else {
            return Ending::of_answer(answer).into();
        };
        let last = mailboxes.last().map(|mailbox| mailbox.name.clone());
        for mailbox in mailboxes {
            let mut fitting =
                task.patterns.iter().filter(|pattern| matches(pattern, &mailbox.name)).peekable();
            if fitting.peek().is_none() {
                continue;
            }
            // RFC 3501, section 6.3.9: a parent stands for what is below it only where `%` leaves that out.
            if task.style.is_lsub && !mailbox.subscribed && fitting.all(|pattern| !pattern.contains('%')) {
                continue;
            }
            self.say_listed(&task.style, mailbox);
        }
        match last.filter(|_| is_more) {
            Some(last) => {
                task.question.behind = Some(last);
                Flow::Go(Task::List(task))
            }
            None => Ending::ok("Done").into(),
        }
    }

    fn say_listed(&mut self, style: &ListStyle, info: MailboxInfo) {
        let Some(name) = MailboxName::new(&info.name) else { return };
        if style.is_lsub {
            return self.say_lsub(name, &info);
        }
        let fits = (!style.only_subscribed || info.subscribed)
            && (!style.only_special || !info.special_uses.is_empty())
            && (style.only_subscribed || !info.non_existent || info.has_children);
        // RFC 5258, section 3.5: a parent stands for what is below it.
        let stands = style.recursive && style.only_subscribed && info.subscribed_below;
        if !fits && !stands {
            return;
        }
        let mut extended = Vec::new();
        if stands {
            let criteria = Value::List(vec![Value::text_of("SUBSCRIBED")]);
            extended.push(("CHILDINFO".to_owned(), criteria));
        }
        let attributes = self.attributes(style, &info);
        let name_again = name.clone();
        self.say(&Response::List(ListedMailbox { attributes, delimiter: Some(DELIMITER), name, extended }));
        let is_there = !info.no_select && !info.non_existent;
        if let Some(rights) = info.rights.filter(|_| style.shows_rights && is_there) {
            self.say(&Response::MyRights { mailbox: name_again.clone(), rights });
        }
        if let Some(numbers) = info.status.filter(|_| !style.status.is_empty() && is_there) {
            self.say_numbers(&name_again, &numbers, &style.status);
        }
        if !info.metadata.is_empty() && is_there {
            self.say(&Response::Metadata { mailbox: info.name, entries: info.metadata });
        }
    }

    fn attributes(&self, style: &ListStyle, info: &MailboxInfo) -> Vec<String> {
        let mut attributes: Vec<String> = Vec::new();
        if info.non_existent && style.is_extended {
            attributes.push("\\NonExistent".to_owned());
        } else if info.no_select || info.non_existent {
            attributes.push("\\Noselect".to_owned());
        }
        if self.has(Capability::Children) || style.is_extended {
            let word = if info.has_children { "\\HasChildren" } else { "\\HasNoChildren" };
            attributes.push(word.to_owned());
        }
        if style.shows_subscribed && info.subscribed {
            attributes.push("\\Subscribed".to_owned());
        }
        if self.has(Capability::SpecialUse) {
            attributes.extend(info.special_uses.iter().cloned());
        }
        attributes
    }

    fn say_lsub(&mut self, name: MailboxName, info: &MailboxInfo) {
        if !info.subscribed && !info.subscribed_below {
            return;
        }
        let mut attributes = Vec::new();
        if !info.subscribed || info.no_select {
            attributes.push("\\Noselect".to_owned());
        }
        let listed = ListedMailbox { attributes, delimiter: Some(DELIMITER), name, extended: Vec::new() };
        self.say(&Response::Lsub(listed));
    }

    /// RFC 9051, section 6.3.2: a session of rev2 hears the name of what it has selected.
    pub(crate) fn say_selected_name(&mut self, name: MailboxName) {
        let listed =
            ListedMailbox { attributes: Vec::new(), delimiter: Some(DELIMITER), name, extended: Vec::new() };
        self.say(&Response::List(listed));
    }

    /// LIST tells of a change of names (RFC 5465, section 5.4).
    pub(crate) fn say_name_event(&mut self, info: &MailboxInfo, old_name: Option<&str>) {
        let Some(name) = MailboxName::new(&info.name) else { return };
        let style = ListStyle { is_extended: true, shows_subscribed: true, ..ListStyle::default() };
        let attributes = self.attributes(&style, info);
        let old = old_name.map(|old| ("OLDNAME".to_owned(), Value::List(vec![Value::text_of(old)])));
        let extended = old.into_iter().collect();
        self.say(&Response::List(ListedMailbox { attributes, delimiter: Some(DELIMITER), name, extended }));
    }
}
