//! Actions are collected; none is done here.

use super::Run;
use super::tests::chosen;
use crate::action::{
    Action, HeaderEdit, Notification, Target, canonical_mailbox, cut, is_field_name, is_mailbox_name,
    one_line,
};
use crate::address::single;
use crate::error::RunFault;
use crate::lexer::shortened;
use crate::mailto::Mailto;
use crate::program::{
    DeleteHeaderCommand, FileIntoCommand, NotifyCommand, RejectKind, TargetOptions, VacationCommand,
};
use crate::template::Template;
use crate::vacation::{self, VacationReply};

/// Fields that no script may remove (RFC 5293, section 5).
const PROTECTED: [&str; 2] = ["received", "auto-submitted"];

/// Vacation answers a sender once in seven days if a script does not say how often (RFC 5230, section 4.1).
const VACATION_SECONDS: u64 = 7 * 86_400;

impl Run<'_> {
    fn push(&mut self, action: Action) -> Result<(), RunFault> {
        if self.actions.len() >= self.limits.actions {
            return Err(RunFault::TooMany { what: "actions", limit: self.limits.actions });
        }
        self.actions.push(action);
        Ok(())
    }

    /// `reject` goes with nothing that takes the message (RFC 5429, section 2.4; RFC 5230, section 4.7).
    fn not_rejected(&self, action: &'static str) -> Result<(), RunFault> {
        let kind = self.actions.iter().find_map(|other| match other {
            Action::Reject { kind, .. } => Some(*kind),
            _ => None,
        });
        kind.map_or(Ok(()), |kind| Err(RunFault::Conflict(action, reject_name(kind))))
    }

    pub(super) fn keep(&mut self, flags: Option<&[Template]>) -> Result<(), RunFault> {
        let flags = self.flags_for(flags)?;
        self.implicit_keep = false;
        self.keep_with(flags)
    }

    fn keep_with(&mut self, flags: Vec<String>) -> Result<(), RunFault> {
        self.not_rejected("keep")?;
        // A message goes into a mailbox once (RFC 5228, section 2.10.3), with the flags that were said last.
        for action in &mut self.actions {
            if let Action::Keep { flags: present, .. } = action {
                *present = flags;
                return Ok(());
            }
        }
        self.push(Action::Keep { flags, edits: self.header_edits.len(), is_implicit: false })
    }

    pub(super) fn fileinto(&mut self, command: &FileIntoCommand) -> Result<(), RunFault> {
        let flags = self.flags_for(command.target.flags.as_deref())?;
        let target = self.target(&command.target, flags)?;
        self.not_rejected("fileinto")?;
        if !command.copy {
            self.implicit_keep = false;
        }
        if target.mailbox == "INBOX" && target.special_use.is_none() && target.mailbox_id.is_none() {
            return self.keep_with(target.flags);
        }
        for action in &mut self.actions {
            if let Action::FileInto { target: other, .. } = action
                && other.mailbox == target.mailbox
                && other.special_use == target.special_use
                && other.mailbox_id == target.mailbox_id
            {
                other.flags = target.flags;
                other.create |= target.create;
                return Ok(());
            }
        }
        self.push(Action::FileInto { target, edits: self.header_edits.len() })
    }

    fn fcc(&mut self, options: Option<&TargetOptions>) -> Result<Option<Target>, RunFault> {
        let Some(options) = options else { return Ok(None) };
        // A copy has the flags that are said of it, and not the message's.
        let flags = match &options.flags {
            Some(flags) => self.flags_for(Some(flags))?,
            None => Vec::new(),
        };
        self.target(options, flags).map(Some)
    }

    fn target(&mut self, options: &TargetOptions, flags: Vec<String>) -> Result<Target, RunFault> {
        let mailbox = self.expand(&options.mailbox)?;
        if !is_mailbox_name(&mailbox) {
            return Err(RunFault::Value { expected: "the name of a mailbox", found: shortened(&mailbox) });
        }
        Ok(Target {
            mailbox: canonical_mailbox(&mailbox),
            flags,
            create: options.create,
            special_use: self.expand_option(options.special_use.as_ref())?,
            mailbox_id: self.expand_option(options.mailbox_id.as_ref())?,
        })
    }

    fn address(&mut self, template: &Template) -> Result<String, RunFault> {
        let text = self.expand(template)?;
        single(&text).ok_or_else(|| RunFault::Value { expected: "an address", found: shortened(&text) })
    }

    pub(super) fn redirect(&mut self, address: &Template, copy: bool) -> Result<(), RunFault> {
        let address = self.address(address)?;
        self.not_rejected("redirect")?;
        if !copy {
            self.implicit_keep = false;
        }
        let others = self.actions.iter().filter_map(|action| match action {
            Action::Redirect { address, .. } => Some(address),
            _ => None,
        });
        if others.clone().any(|other| other.eq_ignore_ascii_case(&address)) {
            return Ok(());
        }
        if others.count() >= self.limits.redirects {
            return Err(RunFault::TooMany { what: "redirects", limit: self.limits.redirects });
        }
        self.push(Action::Redirect { address, edits: self.header_edits.len() })
    }

    pub(super) fn reject(&mut self, kind: RejectKind, reason: &Template) -> Result<(), RunFault> {
        let reason = self.expand(reason)?;
        let other = self.actions.iter().find_map(|action| match action {
            Action::Keep { .. } => Some("keep"),
            Action::FileInto { .. } => Some("fileinto"),
            Action::Redirect { .. } => Some("redirect"),
            Action::Vacation(_) => Some("vacation"),
            Action::Reject { kind, .. } => Some(reject_name(*kind)),
            Action::Notify(_) => None,
        });
        if let Some(other) = other.or_else(|| self.no_reply.map(|_| "vacation")) {
            return Err(RunFault::Conflict(reject_name(kind), other));
        }
        self.implicit_keep = false;
        self.push(Action::Reject { kind, reason })
    }

    pub(super) fn vacation(&mut self, command: &VacationCommand) -> Result<(), RunFault> {
        self.not_rejected("vacation")?;
        // One reply for a message (RFC 5230, section 4).
        let is_second = self.actions.iter().any(|action| matches!(action, Action::Vacation(_)));
        if is_second || self.no_reply.is_some() {
            return Err(RunFault::Conflict("vacation", "vacation"));
        }
        let given_subject = self.expand_option(command.subject.as_ref())?;
        let given_from = command.from.as_ref().map(|from| self.address(from)).transpose()?;
        let handle = self.expand_option(command.handle.as_ref())?;
        let body = self.expand(&command.reason)?;
        let own = self.expand_all(&command.addresses)?;
        let fcc = self.fcc(command.fcc.as_ref())?;
        let own: Vec<String> = own.iter().filter_map(|address| single(address)).collect();
        let mut addresses: Vec<&str> = own.iter().map(String::as_str).collect();
        addresses.push(self.delivery.recipient);
        addresses.extend(self.delivery.own_addresses);
        let fields = self.fields.clone();
        self.budget.work(fields.count().saturating_mul(1_024))?;
        if let Some(reason) = vacation::no_reply_of(&fields, self.delivery.sender, &addresses) {
            self.no_reply = Some(reason);
            return Ok(());
        }
        let key = match &handle {
            Some(handle) => vacation::key(&["handle", handle]),
            None => vacation::key(&[
                "reply",
                given_subject.as_deref().unwrap_or_default(),
                given_from.as_deref().unwrap_or_default(),
                if command.mime { "mime" } else { "" },
                &body,
            ]),
        };
        let (in_reply_to, references) = vacation::threading(&fields);
        let period = command.period_seconds.unwrap_or(VACATION_SECONDS);
        let least = self.limits.vacation_min_seconds;
        self.push(Action::Vacation(Box::new(VacationReply {
            key,
            period_seconds: period.max(least).min(self.limits.vacation_max_seconds),
            to: self.delivery.sender.to_owned(),
            from: given_from.unwrap_or_else(|| self.delivery.recipient.to_owned()),
            subject: vacation::subject(&fields, given_subject.as_deref()),
            in_reply_to,
            references,
            is_mime: command.mime,
            body,
            fcc,
        })))
    }

    /// `notify` by mail (RFC 5436).
    pub(super) fn notify(&mut self, command: &NotifyCommand) -> Result<(), RunFault> {
        let method = self.expand(&command.method)?;
        let message = self.expand_option(command.message.as_ref())?;
        let importance = self.expand_option(command.importance.as_ref())?;
        let from = command.from.as_ref().map(|from| self.address(from)).transpose()?;
        let fcc = self.fcc(command.fcc.as_ref())?;
        let mailto = Mailto::parse(&method)
            .ok_or_else(|| RunFault::Value { expected: "an address to notify", found: shortened(&method) })?;
        // What a program sent is nothing to notify of (RFC 5436, section 2.7.1): notifications could answer each other.
        let is_automatic = |value: &String| !value.trim().eq_ignore_ascii_case("no");
        if self.fields.values("auto-submitted").iter().any(is_automatic) {
            return Ok(());
        }
        let count = self.actions.iter().filter(|action| matches!(action, Action::Notify(_))).count();
        if count >= self.limits.notifications {
            return Err(RunFault::TooMany { what: "notifications", limit: self.limits.notifications });
        }
        let original = || self.fields.values("subject").first().cloned();
        let subject = message.or(mailto.subject).or_else(original).unwrap_or_default();
        let notification = Notification {
            to: mailto.to,
            cc: mailto.cc,
            from,
            importance: match importance.as_deref() {
                Some("1") => 1,
                Some("3") => 3,
                _ => 2,
            },
            subject: one_line(&subject),
            body: mailto.body.unwrap_or_default(),
            fcc,
        };
        self.push(Action::Notify(Box::new(notification)))
    }

    fn field_name(&mut self, template: &Template) -> Result<String, RunFault> {
        let name = self.expand(template)?;
        if !is_field_name(&name) {
            return Err(RunFault::Value { expected: "the name of a header field", found: shortened(&name) });
        }
        Ok(name)
    }

    fn edit(&mut self, edit: HeaderEdit) -> Result<(), RunFault> {
        if self.header_edits.len() >= self.limits.header_edits {
            let limit = self.limits.header_edits;
            return Err(RunFault::TooMany { what: "changes of the header", limit });
        }
        self.budget.work(self.fields.count().saturating_mul(16))?;
        self.fields.edit(&edit);
        self.header_edits.push(edit);
        Ok(())
    }

    /// `addheader` (RFC 5293, section 4).
    pub(super) fn add_header(
        &mut self,
        name: &Template,
        value: &Template,
        last: bool,
    ) -> Result<(), RunFault> {
        let name = self.field_name(name)?;
        let value = cut(one_line(&self.expand(value)?), self.limits.field_bytes);
        self.edit(HeaderEdit::Add { name, value, last })
    }

    /// `deleteheader` (RFC 5293, section 5).
    pub(super) fn delete_header(&mut self, command: &DeleteHeaderCommand) -> Result<(), RunFault> {
        let name = self.field_name(&command.name)?;
        if PROTECTED.iter().any(|protected| protected.eq_ignore_ascii_case(&name)) {
            return Ok(());
        }
        let mut places = chosen(self.places(&name)?, command.place);
        if let Some(keys) = &command.keys {
            let mut matched = Vec::new();
            for place in places {
                let value = vec![self.fields.value(place)];
                if self.find(command.matching, keys, &value)?.is_some() {
                    matched.push(place);
                }
            }
            places = matched;
        }
        // From the end, so that the places before stay what they are.
        for index in places.into_iter().rev() {
            self.edit(HeaderEdit::Delete { index })?;
        }
        Ok(())
    }
}

fn reject_name(kind: RejectKind) -> &'static str {
    match kind {
        RejectKind::Reject => "reject",
        RejectKind::Ereject => "ereject",
    }
}
