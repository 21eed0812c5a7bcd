//! Searches: what is asked, and how answers are told.

use scrinium_ldap_wire::schema::{RootDse, SUBSCHEMA_NAME, subschema_entry};
use scrinium_ldap_wire::{
    Control, DistinguishedName, Entry, Filter, LdapResult, Matcher, Message, MessageId, NormalName,
    Operation, PAGED_RESULTS, PagedResults, ResultCode, START_TLS, Scope, SearchRequest, Selection, Truth,
    WHO_AM_I,
};

use crate::request::Search;
use crate::session::SessionOptions;

/// What is known of a search that is under way.
#[derive(Debug)]
pub(crate) struct Telling {
    id: MessageId,
    selection: Selection,
    types_only: bool,
    is_paged: bool,
}

/// What a search is.
pub(crate) enum Asked {
    /// One that the surroundings answer.
    Search(Box<Search>, Telling),
    /// One that is answered.
    Answered(Vec<Message>),
}

/// Takes a search of somebody who is bound, or of nobody.
pub(crate) fn ask(
    id: MessageId,
    request: &SearchRequest,
    controls: &[Control],
    (options, mechanisms, is_bound): (&SessionOptions, &[&str], bool),
) -> Asked {
    let ends = |code, words: &str| Asked::Answered(vec![done(id, LdapResult::new(code, words))]);
    let Ok(base) = DistinguishedName::parse(&request.base) else {
        return ends(ResultCode::INVALID_DN_SYNTAX, "the base is no distinguished name");
    };
    let telling = |is_paged| Telling {
        id,
        selection: Selection::new(&request.attributes),
        types_only: request.types_only,
        is_paged,
    };
    if base.is_root() && request.scope == Scope::Base {
        return Asked::Answered(one(&root(options, mechanisms), request, &telling(false)));
    }
    if !is_bound {
        return ends(
            ResultCode::INSUFFICIENT_ACCESS_RIGHTS,
            "bind first: nobody sees entries without a name",
        );
    }
    let is_schema = DistinguishedName::parse(SUBSCHEMA_NAME)
        .is_ok_and(|schema| NormalName::of(&schema) == NormalName::of(&base));
    if is_schema {
        return Asked::Answered(one(&subschema_entry(), request, &telling(false)));
    }
    let paged = match controls.iter().find(|control| control.oid == PAGED_RESULTS).map(PagedResults::parse) {
        None => None,
        Some(Ok(paged)) => Some(paged),
        Some(Err(_)) => return ends(ResultCode::PROTOCOL_ERROR, "the control of pages cannot be read"),
    };
    let limit = |wanted: u32, most: usize| match usize::try_from(wanted) {
        Ok(wanted) if wanted > 0 => wanted.min(most),
        _ => most,
    };
    let mut entries_max = limit(request.size_limit, options.entries_max);
    if let Some(paged) = &paged {
        // RFC 2696, section 3: a page of no entries ends the search.
        if paged.size == 0 {
            let end = PagedResults { size: 0, cookie: Vec::new() }.control(false);
            let operation = Operation::SearchDone(LdapResult::success());
            return Asked::Answered(vec![Message { id, operation, controls: vec![end] }]);
        }
        entries_max = entries_max.min(limit(paged.size, options.entries_max));
    }
    let search = Search {
        base,
        scope: request.scope,
        matcher: Matcher::new(&request.filter),
        after: paged.as_ref().map(|paged| paged.cookie.clone()).filter(|cookie| !cookie.is_empty()),
        entries_max,
        is_paged: paged.is_some(),
        time_limit_s: request.time_limit_s,
        key: key_of(&request.filter),
    };
    Asked::Search(Box::new(search), telling(paged.is_some()))
}

/// What programs ask for that let somebody log in: one short name or address, so that nobody else need be looked at.
fn key_of(filter: &Filter) -> Option<String> {
    match filter {
        Filter::And(all) => all.iter().find_map(key_of),
        Filter::Equal(attribute, value) => {
            let is_name = ["uid", "mail"].iter().any(|name| attribute.as_str().eq_ignore_ascii_case(name));
            // A quoted address may be written in several ways, and other scripts have letters that are equal.
            let is_plain = value.iter().all(|byte| byte.is_ascii_graphic() && !b"\"\\".contains(byte));
            let is_key = is_name && is_plain && !value.is_empty();
            is_key.then(|| String::from_utf8(value.clone()).ok()).flatten()
        }
        _ => None,
    }
}

impl Telling {
    /// The number of the request.
    pub(crate) const fn id(&self) -> MessageId {
        self.id
    }

    /// The messages that tell what was found.
    pub(crate) fn found(&self, entries: &[Entry], next: Option<Vec<u8>>) -> Vec<Message> {
        let mut messages: Vec<Message> = entries.iter().map(|entry| self.entry(entry)).collect();
        let has_more = next.is_some();
        let result = if has_more && !self.is_paged {
            LdapResult::new(ResultCode::SIZE_LIMIT_EXCEEDED, "more entries match; ask for pages or less")
        } else {
            LdapResult::success()
        };
        let mut last = done(self.id, result);
        if self.is_paged {
            let cookie = next.unwrap_or_default();
            last.controls.push(PagedResults { size: 0, cookie }.control(false));
        }
        messages.push(last);
        messages
    }

    fn entry(&self, entry: &Entry) -> Message {
        Message::new(self.id, Operation::SearchEntry(self.selection.apply(entry, self.types_only)))
    }
}

/// What the server says of itself.
fn root(options: &SessionOptions, mechanisms: &[&str]) -> Entry {
    let root = RootDse {
        naming_contexts: &[&options.base],
        controls: &[PAGED_RESULTS],
        extensions: &[START_TLS, WHO_AM_I],
        mechanisms,
        vendor_name: "Scrinium",
        vendor_version: "",
    };
    root.entry()
}

/// An entry that is known here, if the filter takes it.
fn one(entry: &Entry, request: &SearchRequest, telling: &Telling) -> Vec<Message> {
    let matches = Matcher::new(&request.filter).matches(entry) == Truth::True;
    telling.found(if matches { std::slice::from_ref(entry) } else { &[] }, None)
}

pub(crate) fn done(id: MessageId, result: LdapResult) -> Message {
    Message::new(id, Operation::SearchDone(result))
}
