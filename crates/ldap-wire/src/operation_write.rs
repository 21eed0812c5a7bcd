//! Operations written.

use crate::ber::{
    ENUMERATED, INTEGER, OCTET_STRING, SEQUENCE, SET, Writer, boolean_octet, context, context_constructed,
};
use crate::entry::{Attribute, Entry};
use crate::operation::{
    Assertion, Authentication, BindRequest, DereferenceAliases, ModifyAction, ModifyRequest, Operation,
    Scope, SearchRequest,
};
use crate::operation_read::tags;
use crate::result::LdapResult;

pub(crate) fn write(operation: &Operation, writer: &mut Writer) {
    match operation {
        Operation::Bind(request) => write_bind(request, writer),
        Operation::BindResponse(response) => writer.nested(tags::BIND_RESPONSE, |inside| {
            response.result.write(inside);
            inside.optional(context(7), response.server_credentials.as_deref());
        }),
        Operation::Unbind => writer.element(tags::UNBIND, &[]),
        Operation::Search(request) => write_search(request, writer),
        Operation::SearchEntry(entry) => write_entry(tags::SEARCH_ENTRY, entry, writer),
        Operation::SearchReference(urls) => {
            writer.nested(tags::SEARCH_REFERENCE, |inside| urls.iter().for_each(|url| inside.text(url)));
        }
        Operation::SearchDone(result) => write_result(tags::SEARCH_DONE, result, writer),
        Operation::Modify(request) => write_modify(request, writer),
        Operation::ModifyResponse(result) => write_result(tags::MODIFY_RESPONSE, result, writer),
        Operation::Add(entry) => write_entry(tags::ADD, entry, writer),
        Operation::AddResponse(result) => write_result(tags::ADD_RESPONSE, result, writer),
        Operation::Delete(name) => writer.element(tags::DELETE, name.as_bytes()),
        Operation::DeleteResponse(result) => write_result(tags::DELETE_RESPONSE, result, writer),
        Operation::ModifyName(request) => writer.nested(tags::MODIFY_NAME, |inside| {
            inside.text(&request.name);
            inside.text(&request.new_rdn);
            inside.boolean(request.delete_old_rdn);
            inside.optional(context(0), request.new_superior.as_deref().map(str::as_bytes));
        }),
        Operation::ModifyNameResponse(result) => write_result(tags::MODIFY_NAME_RESPONSE, result, writer),
        Operation::Compare(request) => writer.nested(tags::COMPARE, |inside| {
            inside.text(&request.name);
            inside.nested(SEQUENCE, |inside| write_assertion(&request.assertion, inside));
        }),
        Operation::CompareResponse(result) => write_result(tags::COMPARE_RESPONSE, result, writer),
        Operation::Abandon(id) => writer.integer(tags::ABANDON, i64::from(id.number())),
        Operation::Extended(request) => writer.nested(tags::EXTENDED, |inside| {
            inside.element(context(0), request.name.as_bytes());
            inside.optional(context(1), request.value.as_deref());
        }),
        Operation::ExtendedResponse(response) => writer.nested(tags::EXTENDED_RESPONSE, |inside| {
            response.result.write(inside);
            inside.optional(context(10), response.name.as_deref().map(str::as_bytes));
            inside.optional(context(11), response.value.as_deref());
        }),
        Operation::Intermediate(response) => writer.nested(tags::INTERMEDIATE, |inside| {
            inside.optional(context(0), response.name.as_deref().map(str::as_bytes));
            inside.optional(context(1), response.value.as_deref());
        }),
    }
}

fn write_result(tag: u8, result: &LdapResult, writer: &mut Writer) {
    writer.nested(tag, |inside| result.write(inside));
}

fn write_bind(request: &BindRequest, writer: &mut Writer) {
    writer.nested(tags::BIND, |inside| {
        inside.integer(INTEGER, i64::from(request.version));
        inside.text(&request.name);
        match &request.authentication {
            Authentication::Simple(password) => inside.element(context(0), &password.0),
            Authentication::Sasl { mechanism, credentials } => {
                inside.nested(context_constructed(3), |inside| {
                    inside.text(mechanism);
                    inside.optional(OCTET_STRING, credentials.as_ref().map(|secret| secret.0.as_slice()));
                });
            }
            Authentication::Other { tag, value } => inside.element(*tag, &value.0),
        }
    });
}

fn write_search(request: &SearchRequest, writer: &mut Writer) {
    let scope = match request.scope {
        Scope::Base => 0,
        Scope::OneLevel => 1,
        Scope::Subtree => 2,
        Scope::Subordinates => 3,
    };
    let aliases = match request.aliases {
        DereferenceAliases::Never => 0,
        DereferenceAliases::InSearching => 1,
        DereferenceAliases::FindingBase => 2,
        DereferenceAliases::Always => 3,
    };
    writer.nested(tags::SEARCH, |inside| {
        inside.text(&request.base);
        inside.integer(ENUMERATED, scope);
        inside.integer(ENUMERATED, aliases);
        inside.integer(INTEGER, i64::from(request.size_limit));
        inside.integer(INTEGER, i64::from(request.time_limit_s));
        inside.boolean(request.types_only);
        request.filter.write(inside);
        inside.nested(SEQUENCE, |inside| request.attributes.iter().for_each(|name| inside.text(name)));
    });
}

fn write_entry(tag: u8, entry: &Entry, writer: &mut Writer) {
    writer.nested(tag, |inside| {
        inside.text(&entry.name);
        inside.nested(SEQUENCE, |list| entry.attributes.iter().for_each(|one| write_attribute(one, list)));
    });
}

fn write_attribute(attribute: &Attribute, writer: &mut Writer) {
    writer.nested(SEQUENCE, |inside| {
        inside.text(&attribute.name);
        inside.nested(SET, |values| attribute.values.iter().for_each(|value| values.octets(value)));
    });
}

fn write_modify(request: &ModifyRequest, writer: &mut Writer) {
    writer.nested(tags::MODIFY, |inside| {
        inside.text(&request.name);
        inside.nested(SEQUENCE, |list| {
            for (action, attribute) in &request.changes {
                let number = match action {
                    ModifyAction::Add => 0,
                    ModifyAction::Delete => 1,
                    ModifyAction::Replace => 2,
                    ModifyAction::Increment => 3,
                };
                list.nested(SEQUENCE, |change| {
                    change.integer(ENUMERATED, number);
                    write_attribute(attribute, change);
                });
            }
        });
    });
}

fn write_assertion(assertion: &Assertion, writer: &mut Writer) {
    writer.text(&assertion.attribute);
    writer.octets(&assertion.value);
}

/// TRUE with this tag, and nothing for FALSE, which is the default wherever this is used.
pub(crate) fn write_true(writer: &mut Writer, tag: u8, value: bool) {
    if value {
        writer.element(tag, boolean_octet(true));
    }
}
