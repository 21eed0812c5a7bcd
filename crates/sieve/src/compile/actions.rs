//! Commands that do something.

use super::Compiler;
use super::arguments::{Reader, once};
use super::options::MatchOptions;
use crate::address;
use crate::error::{Position, ScriptError, ScriptFault};
use crate::extension::Extension;
use crate::lexer::shortened;
use crate::program::{
    DeleteHeaderCommand, FileIntoCommand, FlagChange, IncludeCommand, Instruction, Location, Modifier,
    NotifyCommand, RejectKind, TargetOptions, Templates, VacationCommand,
};
use crate::syntax::{Command, Text};
use crate::template::{Template, is_identifier};

impl Compiler<'_> {
    pub(super) fn action(&mut self, command: &Command) -> Result<Instruction, ScriptError> {
        let head = &command.head;
        let mut reader = Reader::new(head);
        let command_name = || format!("\"{}\"", head.name);
        if let Some(extension) = extension_of(&head.name) {
            self.need(extension, command_name, head.position)?;
        }
        self.no_block(command)?;
        let instruction = match head.name.as_str() {
            "stop" => Instruction::Stop,
            "discard" => Instruction::Discard,
            "return" => Instruction::Return,
            "keep" => self.keep(&mut reader)?,
            "fileinto" => self.fileinto(&mut reader)?,
            "redirect" => self.redirect(&mut reader)?,
            "reject" | "ereject" => {
                let kind = if head.name == "reject" { RejectKind::Reject } else { RejectKind::Ereject };
                Instruction::Reject { kind, reason: self.text(&mut reader, "the reason")? }
            }
            "setflag" => self.flags(FlagChange::Set, &mut reader)?,
            "addflag" => self.flags(FlagChange::Add, &mut reader)?,
            "removeflag" => self.flags(FlagChange::Remove, &mut reader)?,
            "set" => self.set(&mut reader)?,
            "vacation" => self.vacation(&mut reader)?,
            "notify" => self.notify(&mut reader)?,
            "addheader" => self.addheader(&mut reader)?,
            "deleteheader" => self.deleteheader(&mut reader)?,
            "include" => self.include(&mut reader)?,
            "global" => self.global(&mut reader)?,
            "error" => Instruction::Error(self.text(&mut reader, "the message")?),
            name => {
                return Err(ScriptFault::UnknownCommand(shortened(name)).at(head.position));
            }
        };
        reader.end()?;
        Ok(instruction)
    }

    fn text(&self, reader: &mut Reader<'_>, what: &str) -> Result<Template, ScriptError> {
        self.template(reader.text(what)?)
    }

    fn keep(&self, reader: &mut Reader<'_>) -> Result<Instruction, ScriptError> {
        let mut flags = None;
        while let Some((tag, position)) = reader.tag() {
            match tag {
                "flags" => {
                    self.need(Extension::Imap4Flags, || "\":flags\"".to_owned(), position)?;
                    once(&mut flags, self.templates(reader.texts("flags")?)?, tag, position)?;
                }
                _ => return Err(reader.unknown_tag(tag, position)),
            }
        }
        Ok(Instruction::Keep { flags })
    }

    fn fileinto(&self, reader: &mut Reader<'_>) -> Result<Instruction, ScriptError> {
        let mut copy = None;
        let mut options = StoreOptions::default();
        while let Some((tag, position)) = reader.tag() {
            if tag == "copy" {
                self.need(Extension::Copy, || "\":copy\"".to_owned(), position)?;
                once(&mut copy, (), tag, position)?;
            } else if !options.take(self, (tag, position), reader)? {
                return Err(reader.unknown_tag(tag, position));
            }
        }
        let mailbox = self.mailbox(reader.text("the name of a mailbox")?)?;
        let target = options.target(mailbox);
        Ok(Instruction::FileInto(Box::new(FileIntoCommand { copy: copy.is_some(), target })))
    }

    fn mailbox(&self, text: &Text) -> Result<Template, ScriptError> {
        self.checked(text, crate::action::is_mailbox_name, "the name of a mailbox")
    }

    /// A text that has a form, as far as that is known before the script runs.
    fn checked(
        &self,
        text: &Text,
        has_form: impl Fn(&str) -> bool,
        expected: &str,
    ) -> Result<Template, ScriptError> {
        let template = self.template(text)?;
        match template.constant() {
            Some(constant) if !has_form(constant) => {
                let found = format!("\"{}\"", shortened(constant));
                Err(ScriptFault::Value { expected: expected.to_owned(), found }.at(text.position))
            }
            _ => Ok(template),
        }
    }

    fn redirect(&self, reader: &mut Reader<'_>) -> Result<Instruction, ScriptError> {
        let mut copy = None;
        while let Some((tag, position)) = reader.tag() {
            if tag != "copy" {
                return Err(reader.unknown_tag(tag, position));
            }
            self.need(Extension::Copy, || "\":copy\"".to_owned(), position)?;
            once(&mut copy, (), tag, position)?;
        }
        let address = self.address(reader.text("an address")?)?;
        Ok(Instruction::Redirect { address, copy: copy.is_some() })
    }

    /// An address, which is checked now if it has no variables.
    fn address(&self, text: &Text) -> Result<Template, ScriptError> {
        self.checked(text, |written| address::single(written).is_some(), "an address such as ada@example.org")
    }

    /// `setflag`, `addflag`, `removeflag` (RFC 5232, section 3), whose first argument may be left out.
    fn flags(&mut self, change: FlagChange, reader: &mut Reader<'_>) -> Result<Instruction, ScriptError> {
        let variable = if reader.left() > 1 {
            let text = reader.text("the name of a variable")?;
            self.need(Extension::Variables, || "a variable for flags".to_owned(), text.position)?;
            self.variable(text)?;
            Some(self.template(text)?)
        } else {
            None
        };
        let flags = self.templates(reader.texts("flags")?)?;
        Ok(Instruction::Flags { change, variable, flags })
    }

    fn set(&mut self, reader: &mut Reader<'_>) -> Result<Instruction, ScriptError> {
        let mut modifiers: Vec<Modifier> = Vec::new();
        while let Some((tag, position)) = reader.tag() {
            let modifier = match tag {
                "lower" => Modifier::Lower,
                "upper" => Modifier::Upper,
                "lowerfirst" => Modifier::LowerFirst,
                "upperfirst" => Modifier::UpperFirst,
                "quotewildcard" => Modifier::QuoteWildcard,
                "length" => Modifier::Length,
                "quoteregex" => {
                    self.need(Extension::Regex, || "\":quoteregex\"".to_owned(), position)?;
                    Modifier::QuoteRegex
                }
                "encodeurl" => {
                    self.need(Extension::Enotify, || "\":encodeurl\"".to_owned(), position)?;
                    Modifier::EncodeUrl
                }
                _ => return Err(reader.unknown_tag(tag, position)),
            };
            if modifiers.iter().any(|other| other.precedence() == modifier.precedence()) {
                return Err(ScriptFault::Conflict(tag.to_owned()).at(position));
            }
            modifiers.push(modifier);
        }
        modifiers.sort();
        let name = self.variable(reader.text("the name of a variable")?)?;
        let value = self.text(reader, "a value")?;
        Ok(Instruction::Set { name, modifiers, value })
    }

    fn vacation(&self, reader: &mut Reader<'_>) -> Result<Instruction, ScriptError> {
        let (mut period, mut mime, mut fcc) = (None, None, None);
        let (mut subject, mut from, mut handle, mut addresses) = (None, None, None, None);
        let mut options = StoreOptions::default();
        while let Some((tag, position)) = reader.tag() {
            match tag {
                // The shortest period by days is one day (RFC 5230, section 4.1).
                "days" => {
                    let days = reader.number("a number of days")?.max(1);
                    once(&mut period, days.saturating_mul(86_400), tag, position)?;
                }
                "seconds" => {
                    self.need(Extension::VacationSeconds, || "\":seconds\"".to_owned(), position)?;
                    once(&mut period, reader.number("a number of seconds")?, tag, position)?;
                }
                "subject" => once(&mut subject, self.text(reader, "a subject")?, tag, position)?,
                "from" => once(&mut from, self.address(reader.text("an address")?)?, tag, position)?,
                "handle" => once(&mut handle, self.text(reader, "a handle")?, tag, position)?,
                "addresses" => {
                    once(&mut addresses, self.templates(reader.texts("addresses")?)?, tag, position)?;
                }
                "mime" => once(&mut mime, (), tag, position)?,
                "fcc" => self.fcc(&mut fcc, reader, position)?,
                _ if options.take(self, (tag, position), reader)? => {}
                _ => return Err(reader.unknown_tag(tag, position)),
            }
        }
        let reason = self.text(reader, "the reply")?;
        Ok(Instruction::Vacation(Box::new(VacationCommand {
            period_seconds: period,
            subject,
            from,
            addresses: addresses.unwrap_or_default(),
            mime: mime.is_some(),
            handle,
            fcc: options.fcc(fcc, reader)?,
            reason,
        })))
    }

    fn fcc(
        &self,
        fcc: &mut Option<Template>,
        reader: &mut Reader<'_>,
        position: Position,
    ) -> Result<(), ScriptError> {
        self.need(Extension::Fcc, || "\":fcc\"".to_owned(), position)?;
        once(fcc, self.mailbox(reader.text("the name of a mailbox")?)?, "fcc", position)
    }

    fn notify(&self, reader: &mut Reader<'_>) -> Result<Instruction, ScriptError> {
        let (mut from, mut importance, mut message, mut fcc, mut others) = (None, None, None, None, None);
        let mut options = StoreOptions::default();
        while let Some((tag, position)) = reader.tag() {
            match tag {
                "from" => once(&mut from, self.address(reader.text("an address")?)?, tag, position)?,
                "importance" => {
                    let text = reader.text("1, 2 or 3")?;
                    let template = self.template(text)?;
                    if template.constant().is_some_and(|value| !matches!(value, "1" | "2" | "3")) {
                        let expected = "\"1\", \"2\" or \"3\"".to_owned();
                        let found = format!("\"{}\"", shortened(&text.text));
                        return Err(ScriptFault::Value { expected, found }.at(text.position));
                    }
                    once(&mut importance, template, tag, position)?;
                }
                "message" => once(&mut message, self.text(reader, "a message")?, tag, position)?,
                // Methods that are not built have options; mail has none (RFC 5436, section 2.4).
                "options" => once(&mut others, reader.texts("options")?.len(), tag, position)?,
                "fcc" => self.fcc(&mut fcc, reader, position)?,
                _ if options.take(self, (tag, position), reader)? => {}
                _ => return Err(reader.unknown_tag(tag, position)),
            }
        }
        let text = reader.text("the method")?;
        let method = self.template(text)?;
        if let Some(uri) = method.constant()
            && crate::mailto::Mailto::parse(uri).is_none()
        {
            let expected = "a way to notify such as \"mailto:ada@example.org\"".to_owned();
            return Err(
                ScriptFault::Value { expected, found: format!("\"{}\"", shortened(uri)) }.at(text.position)
            );
        }
        let fcc = options.fcc(fcc, reader)?;
        Ok(Instruction::Notify(Box::new(NotifyCommand { method, from, importance, message, fcc })))
    }

    /// The name of a field, which is checked now if it has no variables.
    fn field_name(&self, text: &Text) -> Result<Template, ScriptError> {
        self.checked(text, crate::action::is_field_name, "the name of a header field")
    }

    fn addheader(&self, reader: &mut Reader<'_>) -> Result<Instruction, ScriptError> {
        let mut last = None;
        while let Some((tag, position)) = reader.tag() {
            if tag != "last" {
                return Err(reader.unknown_tag(tag, position));
            }
            once(&mut last, (), tag, position)?;
        }
        let name = self.field_name(reader.text("the name of a field")?)?;
        let value = self.text(reader, "a value")?;
        Ok(Instruction::AddHeader { name, value, last: last.is_some() })
    }

    fn deleteheader(&mut self, reader: &mut Reader<'_>) -> Result<Instruction, ScriptError> {
        let mut options = MatchOptions::default();
        while let Some(tag) = reader.tag() {
            let taken = options.matching_tag(self, tag, reader)?
                || options.place_tag(self, tag, reader, Extension::EditHeader)?;
            if !taken {
                return Err(reader.unknown_tag(tag.0, tag.1));
            }
        }
        let name = self.field_name(reader.text("the name of a field")?)?;
        let (place, matching) = (options.place()?, options.matching()?);
        let keys =
            if reader.left() > 0 { Some(self.keys(reader.texts("patterns")?, matching)?) } else { None };
        Ok(Instruction::DeleteHeader(Box::new(DeleteHeaderCommand { name, place, matching, keys })))
    }

    fn include(&self, reader: &mut Reader<'_>) -> Result<Instruction, ScriptError> {
        let (mut location, mut once_only, mut optional) = (None, None, None);
        while let Some((tag, position)) = reader.tag() {
            match tag {
                "personal" => once(&mut location, Location::Personal, tag, position)?,
                "global" => once(&mut location, Location::Global, tag, position)?,
                "once" => once(&mut once_only, (), tag, position)?,
                "optional" => once(&mut optional, (), tag, position)?,
                _ => return Err(reader.unknown_tag(tag, position)),
            }
        }
        let text = reader.text("the name of a script")?;
        // No variables may stand in it (RFC 6609, section 3.2).
        let is_name = !text.text.is_empty() && !text.text.chars().any(|c| c.is_control() || c == '/');
        let is_name = is_name && !(self.has(Extension::Variables) && text.text.contains("${"));
        if !is_name {
            let expected = "the name of a script, without variables".to_owned();
            let found = format!("\"{}\"", shortened(&text.text));
            return Err(ScriptFault::Value { expected, found }.at(text.position));
        }
        Ok(Instruction::Include(Box::new(IncludeCommand {
            location: location.unwrap_or(Location::Personal),
            name: text.text.clone(),
            once: once_only.is_some(),
            optional: optional.is_some(),
        })))
    }

    /// `global` (RFC 6609, section 3.4.1).
    fn global(&mut self, reader: &mut Reader<'_>) -> Result<Instruction, ScriptError> {
        self.need(Extension::Variables, || "\"global\"".to_owned(), reader.position)?;
        let mut names = Vec::new();
        for text in reader.texts("names of variables")? {
            if !is_identifier(&text.text) {
                let expected = "the name of a variable".to_owned();
                let found = format!("\"{}\"", shortened(&text.text));
                return Err(ScriptFault::Value { expected, found }.at(text.position));
            }
            self.variable(text)?;
            names.push(text.text.to_ascii_lowercase());
        }
        Ok(Instruction::Global(names))
    }
}

fn extension_of(command: &str) -> Option<Extension> {
    Some(match command {
        "fileinto" => Extension::FileInto,
        "reject" => Extension::Reject,
        "ereject" => Extension::Ereject,
        "setflag" | "addflag" | "removeflag" => Extension::Imap4Flags,
        "set" => Extension::Variables,
        "vacation" => Extension::Vacation,
        "notify" => Extension::Enotify,
        "addheader" | "deleteheader" => Extension::EditHeader,
        "include" | "return" | "global" => Extension::Include,
        "error" => Extension::Ihave,
        _ => return None,
    })
}

/// What says how a message is put into a mailbox.
#[derive(Default)]
struct StoreOptions {
    create: Option<()>,
    flags: Option<Templates>,
    special_use: Option<Template>,
    mailbox_id: Option<Template>,
    first: Option<(String, Position)>,
}

impl StoreOptions {
    fn take(
        &mut self,
        compiler: &Compiler<'_>,
        (tag, position): (&str, Position),
        reader: &mut Reader<'_>,
    ) -> Result<bool, ScriptError> {
        let what = || format!("\":{tag}\"");
        match tag {
            "create" => {
                compiler.need(Extension::Mailbox, what, position)?;
                once(&mut self.create, (), tag, position)?;
            }
            "flags" => {
                compiler.need(Extension::Imap4Flags, what, position)?;
                once(&mut self.flags, compiler.templates(reader.texts("flags")?)?, tag, position)?;
            }
            "specialuse" => {
                compiler.need(Extension::SpecialUse, what, position)?;
                once(&mut self.special_use, compiler.text(reader, "a special use")?, tag, position)?;
            }
            "mailboxid" => {
                compiler.need(Extension::MailboxId, what, position)?;
                once(&mut self.mailbox_id, compiler.text(reader, "a mailbox's identifier")?, tag, position)?;
            }
            _ => return Ok(false),
        }
        if self.special_use.is_some() && self.mailbox_id.is_some() {
            return Err(ScriptFault::Conflict(tag.to_owned()).at(position));
        }
        self.first.get_or_insert_with(|| (tag.to_owned(), position));
        Ok(true)
    }

    fn target(self, mailbox: Template) -> TargetOptions {
        TargetOptions {
            mailbox,
            create: self.create.is_some(),
            flags: self.flags,
            special_use: self.special_use,
            mailbox_id: self.mailbox_id,
        }
    }

    /// The options of a copy that is filed; they say nothing without `:fcc` (RFC 8580, section 3).
    fn fcc(
        mut self,
        mailbox: Option<Template>,
        reader: &Reader<'_>,
    ) -> Result<Option<TargetOptions>, ScriptError> {
        match (mailbox, self.first.take()) {
            (Some(mailbox), _) => Ok(Some(self.target(mailbox))),
            (None, Some((tag, position))) => Err(reader.unknown_tag(&tag, position)),
            (None, None) => Ok(None),
        }
    }
}
