//! Tests.

use super::Compiler;
use super::arguments::{Reader, once};
use super::options::MatchOptions;
use crate::date;
use crate::error::{ScriptError, ScriptFault};
use crate::extension::Extension;
use crate::lexer::shortened;
use crate::program::{BodyTransform, Condition, DuplicateTest, Templates, Wanted, ZoneChoice};
use crate::syntax::{Test, Text};
use crate::template::Template;

/// Fields that hold addresses, which are those that `address` may look at (RFC 5228, section 5.1).
const ADDRESS_FIELDS: [&str; 22] = [
    "from",
    "to",
    "cc",
    "bcc",
    "sender",
    "reply-to",
    "resent-from",
    "resent-to",
    "resent-cc",
    "resent-bcc",
    "resent-sender",
    "resent-reply-to",
    "return-path",
    "delivered-to",
    "envelope-to",
    "x-original-to",
    "apparently-to",
    "errors-to",
    "disposition-notification-to",
    "for-approval",
    "approved",
    "original-recipient",
];

impl Compiler<'_> {
    pub(super) fn test(&mut self, test: &Test) -> Result<Condition, ScriptError> {
        match self.known_test(test) {
            Err(error) if self.has(Extension::Ihave) && error.fault.is_unknown() => {
                Ok(Condition::Unknown(error.fault))
            }
            other => other,
        }
    }

    fn known_test(&mut self, test: &Test) -> Result<Condition, ScriptError> {
        if let Some(extension) = extension_of(&test.name) {
            self.need(extension, || format!("\"{}\"", test.name), test.position)?;
        }
        let mut reader = Reader::new(test);
        let condition = match test.name.as_str() {
            "true" => Condition::Literal(true),
            "false" => Condition::Literal(false),
            "not" => {
                reader.may_test = true;
                Condition::Not(Box::new(self.one_test(test)?))
            }
            "allof" | "anyof" => {
                reader.may_test = true;
                self.all_or_any(test)?
            }
            "address" => self.address_test(&mut reader)?,
            "header" => self.header_test(&mut reader)?,
            "envelope" => self.envelope_test(&mut reader)?,
            "exists" => Condition::Exists(self.templates(reader.texts("names of fields")?)?),
            "size" => size_test(&mut reader)?,
            "string" => {
                let (sources, wanted) = self.simple(&mut reader, "strings")?;
                Condition::Text { sources, wanted }
            }
            "hasflag" => self.hasflag_test(&mut reader)?,
            "body" => self.body_test(&mut reader)?,
            "environment" => {
                let options = self.matching_options(&mut reader)?;
                let item = self.template(reader.text("the name of an item")?)?;
                Condition::Environment { item, wanted: self.wanted(&mut reader, &options)? }
            }
            "date" => self.date_test(&mut reader, true)?,
            "currentdate" => self.date_test(&mut reader, false)?,
            "valid_notify_method" => Condition::ValidNotifyMethod(self.templates(reader.texts("methods")?)?),
            "notify_method_capability" => {
                let options = self.matching_options(&mut reader)?;
                let method = self.template(reader.text("a method")?)?;
                let capability = self.template(reader.text("a capability")?)?;
                let wanted = self.wanted(&mut reader, &options)?;
                Condition::NotifyCapability { method, capability, wanted }
            }
            "ihave" => self.ihave_test(&mut reader)?,
            "mailboxexists" => Condition::MailboxExists(self.templates(reader.texts("mailboxes")?)?),
            "mailboxidexists" => Condition::MailboxIdExists(self.templates(reader.texts("identifiers")?)?),
            "specialuse_exists" => {
                let mailbox =
                    if reader.left() > 1 { Some(self.template(reader.text("a mailbox")?)?) } else { None };
                let uses = self.templates(reader.texts("special uses")?)?;
                Condition::SpecialUseExists { mailbox, uses }
            }
            "duplicate" => self.duplicate_test(&mut reader)?,
            name => return Err(ScriptFault::UnknownTest(shortened(name)).at(test.position)),
        };
        reader.end()?;
        Ok(condition)
    }

    fn all_or_any(&mut self, test: &Test) -> Result<Condition, ScriptError> {
        if test.tests.is_empty() {
            let fault = ScriptFault::Missing { owner: test.name.clone(), what: "tests".to_owned() };
            return Err(fault.at(test.position));
        }
        let mut conditions = Vec::new();
        for inner in &test.tests {
            conditions.push(self.test(inner)?);
        }
        Ok(if test.name == "allof" { Condition::All(conditions) } else { Condition::Any(conditions) })
    }

    /// Tags that say how to match, and no others.
    fn matching_options(&self, reader: &mut Reader<'_>) -> Result<MatchOptions, ScriptError> {
        let mut options = MatchOptions::default();
        while let Some(tag) = reader.tag() {
            if !options.matching_tag(self, tag, reader)? {
                return Err(reader.unknown_tag(tag.0, tag.1));
            }
        }
        Ok(options)
    }

    fn wanted(&mut self, reader: &mut Reader<'_>, options: &MatchOptions) -> Result<Wanted, ScriptError> {
        let matching = options.matching()?;
        let keys = self.keys(reader.texts("what to look for")?, matching)?;
        Ok(Wanted { matching, keys })
    }

    /// A list of values and keys for them.
    fn simple(&mut self, reader: &mut Reader<'_>, what: &str) -> Result<(Templates, Wanted), ScriptError> {
        let options = self.matching_options(reader)?;
        let sources = self.templates(reader.texts(what)?)?;
        Ok((sources, self.wanted(reader, &options)?))
    }

    fn address_test(&mut self, reader: &mut Reader<'_>) -> Result<Condition, ScriptError> {
        let mut options = MatchOptions::default();
        while let Some(tag) = reader.tag() {
            let taken = options.matching_tag(self, tag, reader)?
                || options.address_tag(self, tag)?
                || options.place_tag(self, tag, reader, Extension::Index)?;
            if !taken {
                return Err(reader.unknown_tag(tag.0, tag.1));
            }
        }
        let names = reader.texts("names of fields")?;
        let fields = self.templates(names)?;
        for (template, text) in fields.iter().zip(names) {
            let is_known = |name: &str| ADDRESS_FIELDS.iter().any(|field| field.eq_ignore_ascii_case(name));
            if template.constant().is_some_and(|name| !is_known(name)) {
                let expected = "a field of addresses; use \"header\" for others".to_owned();
                let found = format!("\"{}\"", shortened(&text.text));
                return Err(ScriptFault::Value { expected, found }.at(text.position));
            }
        }
        let (part, place) = (options.part(), options.place()?);
        Ok(Condition::Address { fields, part, place, wanted: self.wanted(reader, &options)? })
    }

    fn header_test(&mut self, reader: &mut Reader<'_>) -> Result<Condition, ScriptError> {
        let mut options = MatchOptions::default();
        while let Some(tag) = reader.tag() {
            let taken = options.matching_tag(self, tag, reader)?
                || options.place_tag(self, tag, reader, Extension::Index)?;
            if !taken {
                return Err(reader.unknown_tag(tag.0, tag.1));
            }
        }
        let fields = self.templates(reader.texts("names of fields")?)?;
        let place = options.place()?;
        Ok(Condition::Header { fields, place, wanted: self.wanted(reader, &options)? })
    }

    fn envelope_test(&mut self, reader: &mut Reader<'_>) -> Result<Condition, ScriptError> {
        let mut options = MatchOptions::default();
        while let Some(tag) = reader.tag() {
            if !options.matching_tag(self, tag, reader)? && !options.address_tag(self, tag)? {
                return Err(reader.unknown_tag(tag.0, tag.1));
            }
        }
        let names = reader.texts("parts of the envelope")?;
        let parts = self.templates(names)?;
        for (template, text) in parts.iter().zip(names) {
            let is_known = |name: &str| ["from", "to"].iter().any(|part| part.eq_ignore_ascii_case(name));
            if template.constant().is_some_and(|name| !is_known(name)) {
                let expected = "\"from\" or \"to\"".to_owned();
                let found = format!("\"{}\"", shortened(&text.text));
                return Err(ScriptFault::Value { expected, found }.at(text.position));
            }
        }
        let part = options.part();
        Ok(Condition::Envelope { parts, part, wanted: self.wanted(reader, &options)? })
    }

    fn hasflag_test(&mut self, reader: &mut Reader<'_>) -> Result<Condition, ScriptError> {
        let options = self.matching_options(reader)?;
        let variables = if reader.left() > 1 {
            let names = reader.texts("names of variables")?;
            self.need(Extension::Variables, || "a variable for flags".to_owned(), reader.position)?;
            for name in names {
                self.variable(name)?;
            }
            Some(self.templates(names)?)
        } else {
            None
        };
        Ok(Condition::HasFlag { variables, wanted: self.wanted(reader, &options)? })
    }

    fn body_test(&mut self, reader: &mut Reader<'_>) -> Result<Condition, ScriptError> {
        let mut options = MatchOptions::default();
        let mut transform = None;
        while let Some((tag, position)) = reader.tag() {
            match tag {
                "raw" => once(&mut transform, (BodyTransform::Raw, Vec::new()), tag, position)?,
                "text" => once(&mut transform, (BodyTransform::Text, Vec::new()), tag, position)?,
                "content" => {
                    let types = self.templates(reader.texts("types of parts")?)?;
                    once(&mut transform, (BodyTransform::Content, types), tag, position)?;
                }
                _ if options.matching_tag(self, (tag, position), reader)? => {}
                _ => return Err(reader.unknown_tag(tag, position)),
            }
        }
        // RFC 5173, section 5: `:text` is the default.
        let (transform, types) = transform.unwrap_or((BodyTransform::Text, Vec::new()));
        Ok(Condition::Body { transform, types, wanted: self.wanted(reader, &options)? })
    }

    fn date_test(&mut self, reader: &mut Reader<'_>, of_field: bool) -> Result<Condition, ScriptError> {
        let mut options = MatchOptions::default();
        let mut zone = None;
        while let Some((tag, position)) = reader.tag() {
            match tag {
                "zone" => {
                    let text = reader.text("a zone")?;
                    once(&mut zone, ZoneChoice::Offset(zone_offset(text)?), tag, position)?;
                }
                "originalzone" if of_field => once(&mut zone, ZoneChoice::Original, tag, position)?,
                _ if options.matching_tag(self, (tag, position), reader)? => {}
                _ if of_field && options.place_tag(self, (tag, position), reader, Extension::Index)? => {}
                _ => return Err(reader.unknown_tag(tag, position)),
            }
        }
        let field = if of_field { Some(self.template(reader.text("the name of a field")?)?) } else { None };
        let text = reader.text("a part of the date")?;
        let part = text.text.to_ascii_lowercase();
        if !date::is_part(&part) {
            let expected = format!("one of {}", date::PARTS.join(", "));
            let found = format!("\"{}\"", shortened(&text.text));
            return Err(ScriptFault::Value { expected, found }.at(text.position));
        }
        let (zone, place) = (zone.unwrap_or(ZoneChoice::Local), options.place()?);
        Ok(Condition::Date { field, zone, part, place, wanted: self.wanted(reader, &options)? })
    }

    /// `ihave` (RFC 5463, section 4): what is there counts as required from here on.
    fn ihave_test(&mut self, reader: &mut Reader<'_>) -> Result<Condition, ScriptError> {
        let names = reader.texts("names of extensions")?;
        let found: Vec<Option<Extension>> = names.iter().map(|name| self.offered(&name.text)).collect();
        let all = found.iter().all(Option::is_some);
        if all {
            found.into_iter().flatten().for_each(|extension| self.enable(extension));
        }
        Ok(Condition::Literal(all))
    }

    fn duplicate_test(&mut self, reader: &mut Reader<'_>) -> Result<Condition, ScriptError> {
        let (mut handle, mut seconds, mut last) = (None, None, None);
        let mut source: Option<(bool, Template)> = None;
        while let Some((tag, position)) = reader.tag() {
            match tag {
                "handle" => {
                    once(&mut handle, self.template(reader.text("a handle")?)?, tag, position)?;
                }
                "header" | "uniqueid" => {
                    let template = self.template(reader.text("a text")?)?;
                    once(&mut source, (tag == "header", template), tag, position)?;
                }
                "seconds" => once(&mut seconds, reader.number("a number of seconds")?, tag, position)?,
                "last" => once(&mut last, (), tag, position)?,
                _ => return Err(reader.unknown_tag(tag, position)),
            }
        }
        let (header, unique_id) = match source {
            Some((true, template)) => (Some(template), None),
            Some((false, template)) => (None, Some(template)),
            None => (None, None),
        };
        Ok(Condition::Duplicate(Box::new(DuplicateTest {
            handle: handle.unwrap_or_default(),
            header,
            unique_id,
            period_seconds: seconds.unwrap_or(DUPLICATE_SECONDS).min(self.limits.duplicate_max_seconds),
            last: last.is_some(),
        })))
    }
}

/// A message is remembered for seven days if a script does not say how long.
const DUPLICATE_SECONDS: u64 = 7 * 86_400;

fn size_test(reader: &mut Reader<'_>) -> Result<Condition, ScriptError> {
    let mut over = None;
    while let Some((tag, position)) = reader.tag() {
        match tag {
            "over" => once(&mut over, true, tag, position)?,
            "under" => once(&mut over, false, tag, position)?,
            _ => return Err(reader.unknown_tag(tag, position)),
        }
    }
    let Some(over) = over else {
        let what = "\":over\" or \":under\"".to_owned();
        return Err(ScriptFault::Missing { owner: reader.owner.to_owned(), what }.at(reader.position));
    };
    Ok(Condition::Size { over, bytes: reader.number("a size")? })
}

/// `+0100` in seconds (RFC 5260, section 4.1).
fn zone_offset(text: &Text) -> Result<i32, ScriptError> {
    date::offset_seconds(&text.text).ok_or_else(|| {
        let expected = "a zone such as \"+0100\"".to_owned();
        ScriptFault::Value { expected, found: format!("\"{}\"", shortened(&text.text)) }.at(text.position)
    })
}

fn extension_of(test: &str) -> Option<Extension> {
    Some(match test {
        "envelope" => Extension::Envelope,
        "string" => Extension::Variables,
        "hasflag" => Extension::Imap4Flags,
        "body" => Extension::Body,
        "environment" => Extension::Environment,
        "date" | "currentdate" => Extension::Date,
        "valid_notify_method" | "notify_method_capability" => Extension::Enotify,
        "ihave" => Extension::Ihave,
        "mailboxexists" => Extension::Mailbox,
        "mailboxidexists" => Extension::MailboxId,
        "specialuse_exists" => Extension::SpecialUse,
        "duplicate" => Extension::Duplicate,
        _ => return None,
    })
}
