//! Operations read from their bytes.

use crate::ber::{OCTET_STRING, Reader, SEQUENCE, SET, boolean, context, context_constructed, text};
use crate::entry::{Attribute, Entry};
use crate::filter::Filter;
use crate::limits::{Budget, Fault};
use crate::message::MessageId;
use crate::operation::{
    Assertion, Authentication, BindRequest, BindResponse, CompareRequest, DereferenceAliases,
    ExtendedRequest, ExtendedResponse, IntermediateResponse, ModifyAction, ModifyNameRequest, ModifyRequest,
    Operation, RequestKind, Scope, SearchRequest, Secret,
};
use crate::result::LdapResult;

/// The tags of operations: `[APPLICATION n]`, with the bit of constructed elements.
pub(crate) mod tags {
    pub(crate) const BIND: u8 = 0x60;
    pub(crate) const BIND_RESPONSE: u8 = 0x61;
    pub(crate) const UNBIND: u8 = 0x42;
    pub(crate) const SEARCH: u8 = 0x63;
    pub(crate) const SEARCH_ENTRY: u8 = 0x64;
    pub(crate) const SEARCH_DONE: u8 = 0x65;
    pub(crate) const MODIFY: u8 = 0x66;
    pub(crate) const MODIFY_RESPONSE: u8 = 0x67;
    pub(crate) const ADD: u8 = 0x68;
    pub(crate) const ADD_RESPONSE: u8 = 0x69;
    pub(crate) const DELETE: u8 = 0x4a;
    pub(crate) const DELETE_RESPONSE: u8 = 0x6b;
    pub(crate) const MODIFY_NAME: u8 = 0x6c;
    pub(crate) const MODIFY_NAME_RESPONSE: u8 = 0x6d;
    pub(crate) const COMPARE: u8 = 0x6e;
    pub(crate) const COMPARE_RESPONSE: u8 = 0x6f;
    pub(crate) const ABANDON: u8 = 0x50;
    pub(crate) const SEARCH_REFERENCE: u8 = 0x73;
    pub(crate) const EXTENDED: u8 = 0x77;
    pub(crate) const EXTENDED_RESPONSE: u8 = 0x78;
    pub(crate) const INTERMEDIATE: u8 = 0x79;
}

/// The kind of request that a tag begins.
pub(crate) fn request_kind(tag: u8) -> Option<RequestKind> {
    Some(match tag {
        tags::BIND => RequestKind::Bind,
        tags::SEARCH => RequestKind::Search,
        tags::MODIFY => RequestKind::Modify,
        tags::ADD => RequestKind::Add,
        tags::DELETE => RequestKind::Delete,
        tags::MODIFY_NAME => RequestKind::ModifyName,
        tags::COMPARE => RequestKind::Compare,
        tags::EXTENDED => RequestKind::Extended,
        _ => return None,
    })
}

pub(crate) fn read(tag: u8, contents: &[u8], budget: &mut Budget) -> Result<Operation, Fault> {
    let mut inside = Reader::new(contents);
    Ok(match tag {
        tags::BIND => Operation::Bind(read_bind(inside)?),
        tags::BIND_RESPONSE => Operation::BindResponse(BindResponse {
            result: LdapResult::read(&mut inside, budget)?,
            server_credentials: inside.optional(context(7))?.map(<[u8]>::to_vec),
        }),
        tags::UNBIND => Operation::Unbind,
        tags::SEARCH => Operation::Search(read_search(inside, budget)?),
        tags::SEARCH_ENTRY => Operation::SearchEntry(read_entry(inside, budget)?),
        tags::SEARCH_REFERENCE => Operation::SearchReference(inside.list(budget, Reader::text)?),
        tags::SEARCH_DONE => Operation::SearchDone(LdapResult::read(&mut inside, budget)?),
        tags::MODIFY => Operation::Modify(read_modify(inside, budget)?),
        tags::MODIFY_RESPONSE => Operation::ModifyResponse(LdapResult::read(&mut inside, budget)?),
        tags::ADD => Operation::Add(read_entry(inside, budget)?),
        tags::ADD_RESPONSE => Operation::AddResponse(LdapResult::read(&mut inside, budget)?),
        tags::DELETE => Operation::Delete(text(contents)?),
        tags::DELETE_RESPONSE => Operation::DeleteResponse(LdapResult::read(&mut inside, budget)?),
        tags::MODIFY_NAME => Operation::ModifyName(ModifyNameRequest {
            name: inside.text()?,
            new_rdn: inside.text()?,
            delete_old_rdn: inside.boolean()?,
            new_superior: inside.optional(context(0))?.map(text).transpose()?,
        }),
        tags::MODIFY_NAME_RESPONSE => Operation::ModifyNameResponse(LdapResult::read(&mut inside, budget)?),
        tags::COMPARE => Operation::Compare(CompareRequest {
            name: inside.text()?,
            assertion: read_assertion(inside.inside(SEQUENCE)?)?,
        }),
        tags::COMPARE_RESPONSE => Operation::CompareResponse(LdapResult::read(&mut inside, budget)?),
        tags::ABANDON => Operation::Abandon(MessageId::read(contents)?),
        tags::EXTENDED => Operation::Extended(ExtendedRequest {
            name: text(inside.expect(context(0))?)?,
            value: inside.optional(context(1))?.map(<[u8]>::to_vec),
        }),
        tags::EXTENDED_RESPONSE => Operation::ExtendedResponse(ExtendedResponse {
            result: LdapResult::read(&mut inside, budget)?,
            name: inside.optional(context(10))?.map(text).transpose()?,
            value: inside.optional(context(11))?.map(<[u8]>::to_vec),
        }),
        tags::INTERMEDIATE => Operation::Intermediate(IntermediateResponse {
            name: inside.optional(context(0))?.map(text).transpose()?,
            value: inside.optional(context(1))?.map(<[u8]>::to_vec),
        }),
        _ => return Err(Fault::Operation(tag)),
    })
}

fn read_bind(mut inside: Reader<'_>) -> Result<BindRequest, Fault> {
    let version = u8::try_from(inside.number()?).map_err(|_| Fault::Value("the version of LDAP"))?;
    let name = inside.text()?;
    let (tag, contents) = inside.element()?;
    let authentication = if tag == context(0) {
        Authentication::Simple(Secret(contents.to_vec()))
    } else if tag == context_constructed(3) {
        let mut sasl = Reader::new(contents);
        Authentication::Sasl {
            mechanism: sasl.text()?,
            credentials: sasl.optional(OCTET_STRING)?.map(|contents| Secret(contents.to_vec())),
        }
    } else {
        Authentication::Other { tag, value: Secret(contents.to_vec()) }
    };
    Ok(BindRequest { version, name, authentication })
}

fn read_search(mut inside: Reader<'_>, budget: &mut Budget) -> Result<SearchRequest, Fault> {
    let base = inside.text()?;
    let scope = match inside.enumerated()? {
        0 => Scope::Base,
        1 => Scope::OneLevel,
        2 => Scope::Subtree,
        3 => Scope::Subordinates,
        _ => return Err(Fault::Value("the scope of a search")),
    };
    let aliases = match inside.enumerated()? {
        0 => DereferenceAliases::Never,
        1 => DereferenceAliases::InSearching,
        2 => DereferenceAliases::FindingBase,
        3 => DereferenceAliases::Always,
        _ => return Err(Fault::Value("when aliases are followed")),
    };
    Ok(SearchRequest {
        base,
        scope,
        aliases,
        size_limit: inside.number()?,
        time_limit_s: inside.number()?,
        types_only: inside.boolean()?,
        filter: Filter::read(&mut inside, budget)?,
        attributes: inside.inside(SEQUENCE)?.list(budget, Reader::text)?,
    })
}

fn read_entry(mut inside: Reader<'_>, budget: &mut Budget) -> Result<Entry, Fault> {
    let name = inside.text()?;
    let mut list = inside.inside(SEQUENCE)?;
    let mut attributes = Vec::new();
    while !list.is_empty() {
        budget.take_item()?;
        attributes.push(read_attribute(&mut list, budget)?);
    }
    Ok(Entry { name, attributes })
}

fn read_attribute(list: &mut Reader<'_>, budget: &mut Budget) -> Result<Attribute, Fault> {
    let mut inside = list.inside(SEQUENCE)?;
    let name = inside.text()?;
    let values = inside.inside(SET)?.list(budget, Reader::octets)?;
    Ok(Attribute { name, values })
}

fn read_modify(mut inside: Reader<'_>, budget: &mut Budget) -> Result<ModifyRequest, Fault> {
    let name = inside.text()?;
    let mut list = inside.inside(SEQUENCE)?;
    let mut changes = Vec::new();
    while !list.is_empty() {
        budget.take_item()?;
        let mut change = list.inside(SEQUENCE)?;
        let action = match change.enumerated()? {
            0 => ModifyAction::Add,
            1 => ModifyAction::Delete,
            2 => ModifyAction::Replace,
            3 => ModifyAction::Increment,
            _ => return Err(Fault::Value("what is modified")),
        };
        changes.push((action, read_attribute(&mut change, budget)?));
    }
    Ok(ModifyRequest { name, changes })
}

fn read_assertion(mut inside: Reader<'_>) -> Result<Assertion, Fault> {
    Ok(Assertion { attribute: inside.text()?, value: inside.octets()? })
}

/// A boolean with this tag, if it comes.
pub(crate) fn optional_boolean(reader: &mut Reader<'_>, tag: u8) -> Result<bool, Fault> {
    reader.optional(tag)?.map_or(Ok(false), boolean)
}
