//! Tests.

use std::collections::BTreeSet;

use super::Run;
use super::flags::flags_of;
use crate::action::{SeenMark, canonical_mailbox};
use crate::address::{self, Address};
use crate::date;
use crate::error::RunFault;
use crate::fields;
use crate::mailto::Mailto;
use crate::matching::{Captures, Keys, MatchKind, Matching, compile_regex, matches, matches_regex};
use crate::message::PartForm;
use crate::program::{
    AddressPart, BodyTransform, Condition, DuplicateTest, ProgramPlace, Wanted, ZoneChoice,
};
use crate::template::Template;

impl Run<'_> {
    pub(super) fn test(&mut self, condition: &Condition) -> Result<bool, RunFault> {
        self.budget.step()?;
        match condition {
            Condition::Not(inner) => Ok(!self.test(inner)?),
            // No more is evaluated than needed (RFC 5229, section 3.2).
            Condition::All(conditions) => {
                for condition in conditions {
                    if !self.test(condition)? {
                        return Ok(false);
                    }
                }
                Ok(true)
            }
            Condition::Any(conditions) => {
                for condition in conditions {
                    if self.test(condition)? {
                        return Ok(true);
                    }
                }
                Ok(false)
            }
            Condition::Literal(value) => Ok(*value),
            Condition::Size { over, bytes } => {
                let size = self.message.size_bytes();
                // Neither is true of exactly this size (RFC 5228, section 5.9).
                Ok(if *over { size > *bytes } else { size < *bytes })
            }
            Condition::Exists(names) => {
                for name in self.expand_all(names)? {
                    if self.places(&name)?.is_empty() {
                        return Ok(false);
                    }
                }
                Ok(true)
            }
            Condition::ValidNotifyMethod(methods) => {
                let methods = self.expand_all(methods)?;
                Ok(methods.iter().all(|method| Mailto::parse(method).is_some()))
            }
            Condition::MailboxExists(names) => {
                let names = self.expand_all(names)?;
                Ok(names.iter().all(|name| self.host.mailbox_exists(&canonical_mailbox(name))))
            }
            Condition::MailboxIdExists(ids) => {
                let ids = self.expand_all(ids)?;
                Ok(ids.iter().all(|id| self.host.mailbox_id_exists(id)))
            }
            Condition::SpecialUseExists { mailbox, uses } => {
                let mailbox = self.expand_option(mailbox.as_ref())?.map(|name| canonical_mailbox(&name));
                let uses = self.expand_all(uses)?;
                Ok(uses.iter().all(|special_use| self.host.has_special_use(mailbox.as_deref(), special_use)))
            }
            Condition::Duplicate(test) => self.duplicate(test),
            Condition::Unknown(fault) => Err(RunFault::Unknown(fault.clone())),
            other => self.values_test(other),
        }
    }

    /// Tests that compare values with keys.
    fn values_test(&mut self, condition: &Condition) -> Result<bool, RunFault> {
        match condition {
            Condition::Address { fields, part, place, wanted } => {
                let values = self.addresses(fields, counted(*part, wanted), *place)?;
                self.holds(wanted, &values)
            }
            Condition::Header { fields, place, wanted } => {
                let values = self.headers(fields, *place)?;
                self.holds(wanted, &values)
            }
            Condition::Envelope { parts, part, wanted } => {
                let values = self.envelope(parts, counted(*part, wanted))?;
                self.holds(wanted, &values)
            }
            Condition::Text { sources, wanted } => {
                let mut values = self.expand_all(sources)?;
                // Empty strings do not count (RFC 5229, section 5).
                if matches!(wanted.matching.kind, MatchKind::Count(_)) {
                    values.retain(|value| !value.is_empty());
                }
                self.holds(wanted, &values)
            }
            Condition::HasFlag { variables, wanted } => self.has_flag(variables.as_deref(), wanted),
            Condition::Body { transform, types, wanted } => {
                let values = self.body(*transform, types)?;
                // Wildcards of this test set no variables (RFC 5173, section 6).
                Ok(self.find(wanted.matching, &wanted.keys, &values)?.is_some())
            }
            Condition::Environment { item, wanted } => {
                let item = self.expand(item)?;
                let mut items = self.delivery.environment.iter();
                let found = items.find(|(name, _)| name.eq_ignore_ascii_case(&item));
                match found.map(|(_, value)| (*value).to_owned()) {
                    Some(value) => self.holds(wanted, &[value]),
                    None => Ok(false),
                }
            }
            Condition::Date { field, zone, part, place, wanted } => {
                match self.date(field.as_ref(), *zone, part, *place)? {
                    Some(value) => self.holds(wanted, &[value]),
                    None => Ok(false),
                }
            }
            Condition::NotifyCapability { method, capability, wanted } => {
                let method = self.expand(method)?;
                let capability = self.expand(capability)?;
                // Nobody knows whether a person reads mail just now (RFC 5436, section 2.1).
                let known = Mailto::parse(&method).is_some() && capability.eq_ignore_ascii_case("online");
                if known { self.holds(wanted, &["maybe".to_owned()]) } else { Ok(false) }
            }
            _ => Ok(false),
        }
    }

    /// Whether a value matches a key; what its wildcards stand for is kept (RFC 5229, section 3.2).
    fn holds(&mut self, wanted: &Wanted, values: &[String]) -> Result<bool, RunFault> {
        match self.find(wanted.matching, &wanted.keys, values)? {
            None => Ok(false),
            Some(captures) => {
                if let Some(captures) = captures {
                    let limit = self.limits.variable_bytes;
                    self.frame.captures =
                        captures.into_iter().map(|capture| crate::action::cut(capture, limit)).collect();
                }
                Ok(true)
            }
        }
    }

    pub(super) fn find(
        &mut self,
        matching: Matching,
        keys: &Keys,
        values: &[String],
    ) -> Result<Option<Option<Captures>>, RunFault> {
        let expanded = self.expand_all(&keys.templates)?;
        if let MatchKind::Count(_) = matching.kind {
            let count = values.len().to_string();
            for key in &expanded {
                if matches(matching, &count, key, &mut self.budget)?.is_some() {
                    return Ok(Some(None));
                }
            }
            return Ok(None);
        }
        if matching.kind == MatchKind::Regex {
            return self.find_regex(matching, keys, &expanded, values);
        }
        for value in values {
            for key in &expanded {
                if let Some(captures) = matches(matching, value, key, &mut self.budget)? {
                    return Ok(Some(captures));
                }
            }
        }
        Ok(None)
    }

    fn find_regex(
        &mut self,
        matching: Matching,
        keys: &Keys,
        expanded: &[String],
        values: &[String],
    ) -> Result<Option<Option<Captures>>, RunFault> {
        let mut regexes = Vec::new();
        for (regex, pattern) in keys.regexes.iter().zip(expanded) {
            if let Some(regex) = regex {
                regexes.push(regex.clone());
                continue;
            }
            self.regexes += 1;
            if self.regexes > self.limits.regexes {
                return Err(RunFault::TooMany { what: "regular expressions", limit: self.limits.regexes });
            }
            let regex = compile_regex(pattern, matching.comparator, self.limits).map_err(|_| {
                RunFault::Value { expected: "a regular expression", found: crate::lexer::shortened(pattern) }
            })?;
            regexes.push(regex);
        }
        for value in values {
            for regex in &regexes {
                if let Some(captures) = matches_regex(regex, value, &mut self.budget)? {
                    return Ok(Some(Some(captures)));
                }
            }
        }
        Ok(None)
    }

    /// The numbers of the fields of a name.
    pub(super) fn places(&mut self, name: &str) -> Result<Vec<usize>, RunFault> {
        self.budget.work(self.fields.count().saturating_mul(16))?;
        Ok(self.fields.places(name))
    }

    /// The fields of names, one name after the other; only one of them all where a place is given (RFC 5260, section 6).
    fn places_of(&mut self, names: &[Template], place: Option<ProgramPlace>) -> Result<Vec<usize>, RunFault> {
        let mut places = Vec::new();
        for name in self.expand_all(names)? {
            places.extend(self.places(&name)?);
        }
        if place.is_some() {
            let mut seen = BTreeSet::new();
            places.retain(|index| seen.insert(*index));
        }
        Ok(chosen(places, place))
    }

    fn headers(&mut self, fields: &[Template], place: Option<ProgramPlace>) -> Result<Vec<String>, RunFault> {
        let mut values = Vec::new();
        for index in self.places_of(fields, place)? {
            let value = self.fields.value(index);
            self.budget.work(value.len())?;
            values.push(value);
        }
        Ok(values)
    }

    fn addresses(
        &mut self,
        fields: &[Template],
        part: AddressPart,
        place: Option<ProgramPlace>,
    ) -> Result<Vec<String>, RunFault> {
        let mut found = Vec::new();
        for index in self.places_of(fields, place)? {
            let value = self.fields.raw_value(index);
            self.budget.work(value.len())?;
            found.extend(address::list(&value, self.limits.addresses.saturating_sub(found.len())));
        }
        Ok(found.iter().filter_map(|address| self.address_part(address, part)).collect())
    }

    /// A part of an address; an address that is not valid has none but itself (RFC 5228, section 5.1).
    fn address_part(&self, address: &Address, part: AddressPart) -> Option<String> {
        let Address::Valid { local, domain } = address else {
            return (part == AddressPart::All).then(|| address.whole());
        };
        let split = local.split_once(self.delivery.separator);
        match part {
            AddressPart::All => Some(address.whole()),
            AddressPart::LocalPart => Some(local.clone()),
            AddressPart::Domain => Some(domain.clone()),
            AddressPart::User => Some(split.map_or(local.as_str(), |(user, _)| user).to_owned()),
            // RFC 5233, section 4: without a separator there is no detail.
            AddressPart::Detail => split.map(|(_, detail)| detail.to_owned()),
        }
    }

    fn envelope(&mut self, parts: &[Template], part: AddressPart) -> Result<Vec<String>, RunFault> {
        let mut values = Vec::new();
        for name in self.expand_all(parts)? {
            let text = match name.to_ascii_lowercase().as_str() {
                "from" => self.delivery.sender,
                "to" => self.delivery.recipient,
                _ => continue,
            };
            if text.is_empty() {
                // The null sender is empty in all its parts (RFC 5228, section 5.4).
                values.push(String::new());
                continue;
            }
            let addresses = address::list(text, 1);
            values.extend(addresses.iter().filter_map(|address| self.address_part(address, part)));
        }
        Ok(values)
    }

    fn has_flag(&mut self, variables: Option<&[Template]>, wanted: &Wanted) -> Result<bool, RunFault> {
        let mut flags = match variables {
            None => self.flags.clone(),
            Some(_) => Vec::new(),
        };
        for name in variables.unwrap_or_default() {
            let name = self.named(name)?;
            flags.extend(flags_of(&[self.variable(&name).to_owned()], self.limits));
        }
        let Wanted { matching, keys } = wanted;
        if !matches!(matching.kind, MatchKind::Is | MatchKind::Contains) {
            return self.holds(wanted, &flags);
        }
        // A key may name several flags, too (RFC 5232, section 4).
        let expanded = self.expand_all(&keys.templates)?;
        let words = expanded.iter().flat_map(|key| key.split_ascii_whitespace());
        let templates: Vec<Template> = words.map(Template::plain).collect();
        self.holds(&Wanted { matching: *matching, keys: Keys { templates, regexes: Vec::new() } }, &flags)
    }

    fn body(&mut self, transform: BodyTransform, types: &[Template]) -> Result<Vec<String>, RunFault> {
        let message = self.message;
        if transform == BodyTransform::Raw {
            self.budget.work(message.raw_body().len())?;
            return Ok(vec![String::from_utf8_lossy(message.raw_body()).into_owned()]);
        }
        let types = self.expand_all(types)?;
        let form = if transform == BodyTransform::Text { PartForm::Text } else { PartForm::Content };
        let mut values = Vec::new();
        for index in 0..self.limits.body_parts {
            let Some(part) = message.part(index, form) else { break };
            let wanted = match transform {
                BodyTransform::Text => part.content_type.starts_with("text/"),
                _ => types.iter().any(|wanted| is_type(&part.content_type, wanted)),
            };
            if wanted {
                self.budget.work(part.text.len())?;
                values.push(part.text.into_owned());
            }
        }
        Ok(values)
    }

    fn date(
        &mut self,
        field: Option<&Template>,
        zone: ZoneChoice,
        part: &str,
        place: Option<ProgramPlace>,
    ) -> Result<Option<String>, RunFault> {
        let local = self.delivery.zone_seconds;
        let moment = match field {
            None => date::at(self.delivery.now_seconds, local),
            Some(field) => {
                let first = self.places_of(std::slice::from_ref(field), place)?.first().copied();
                first.and_then(|index| date::read(&self.fields.raw_value(index)))
            }
        };
        let Some(moment) = moment else { return Ok(None) };
        let moment = match zone {
            ZoneChoice::Original => Some(moment),
            ZoneChoice::Local => date::in_zone(&moment, local),
            ZoneChoice::Offset(seconds) => date::in_zone(&moment, seconds),
        };
        Ok(moment.and_then(|moment| date::part(&moment, part)))
    }

    /// `duplicate` (RFC 7352, section 3).
    fn duplicate(&mut self, test: &DuplicateTest) -> Result<bool, RunFault> {
        let handle = self.expand(&test.handle)?;
        let id = match (&test.unique_id, &test.header) {
            (Some(id), _) => Some(self.expand(id)?),
            (None, header) => {
                let name = self.expand_option(header.as_ref())?.unwrap_or_else(|| "message-id".to_owned());
                let first = self.places(&name)?.first().copied();
                first.map(|index| self.fields.value(index))
            }
        };
        // What has no identifier is no duplicate, and is not remembered (RFC 7352, section 3).
        let Some(id) = id.filter(|id| !id.is_empty()) else { return Ok(false) };
        let key = fields::digest(&[&handle, &id]);
        if let Some(known) = self.duplicates.get(&key) {
            return Ok(*known);
        }
        if self.duplicates.len() >= self.limits.duplicates {
            return Err(RunFault::TooMany { what: "tests for duplicates", limit: self.limits.duplicates });
        }
        let was_seen = self.host.was_seen(&key);
        if !was_seen || test.last {
            self.seen.push(SeenMark { key: key.clone(), period_seconds: test.period_seconds });
        }
        self.duplicates.insert(key, was_seen);
        Ok(was_seen)
    }
}

/// What is counted are addresses, whatever part is meant (RFC 5231, section 4.2).
fn counted(part: AddressPart, wanted: &Wanted) -> AddressPart {
    if matches!(wanted.matching.kind, MatchKind::Count(_)) { AddressPart::All } else { part }
}

/// Only one of the fields where a place is given.
pub(super) fn chosen(mut places: Vec<usize>, place: Option<ProgramPlace>) -> Vec<usize> {
    let Some(ProgramPlace { index, from_last }) = place else { return places };
    if from_last {
        places.reverse();
    }
    let index = usize::try_from(index).unwrap_or(usize::MAX).saturating_sub(1);
    places.get(index).copied().into_iter().collect()
}

/// Whether a part's type is wanted: all of it, its first half, or any (RFC 5173, section 5.2).
fn is_type(content_type: &str, wanted: &str) -> bool {
    if wanted.is_empty() {
        return true;
    }
    if wanted.starts_with('/') || wanted.ends_with('/') || wanted.matches('/').count() > 1 {
        return false;
    }
    if wanted.contains('/') {
        return content_type.eq_ignore_ascii_case(wanted);
    }
    content_type.split('/').next().is_some_and(|first| first.eq_ignore_ascii_case(wanted))
}
