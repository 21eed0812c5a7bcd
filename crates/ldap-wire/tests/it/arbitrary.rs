//! Messages and what they are made of, of all kinds.

use proptest::collection::vec;
use proptest::option;
use proptest::prelude::*;
use scrinium_ldap_wire::{
    Assertion, Attribute, Authentication, BindRequest, BindResponse, CompareRequest, Control,
    DereferenceAliases, DistinguishedName, Entry, ExtendedRequest, ExtendedResponse, Extensible, Filter,
    Identifier, IntermediateResponse, LdapResult, Message, MessageId, ModifyAction, ModifyNameRequest,
    ModifyRequest, Operation, RelativeName, ResultCode, Scope, SearchRequest, Secret, Subject, Substrings,
};

pub(crate) fn identifier() -> impl Strategy<Value = Identifier> {
    prop_oneof!["[a-zA-Z]{1,8}(;lang-[a-z]{2})?", "[0-2](\\.[0-9]{1,4}){1,5}"]
        .prop_map(|text| Identifier::parse(&text).unwrap())
}

fn rule() -> impl Strategy<Value = Identifier> {
    identifier().prop_filter("`dn` means something else", |rule| !rule.as_str().eq_ignore_ascii_case("dn"))
}

/// Values that would end something early, and any others.
pub(crate) fn value() -> impl Strategy<Value = Vec<u8>> {
    prop_oneof![
        "[ a-z*()\\\\,+\"#;<>=\0é]{0,12}".prop_map(String::into_bytes),
        vec(any::<u8>(), 0..20),
        vec(any::<u8>(), 120..140),
        vec(any::<u8>(), 250..260),
    ]
}

fn text() -> impl Strategy<Value = String> {
    prop_oneof!["[ -~é]{0,20}", any::<String>()]
}

fn subject() -> impl Strategy<Value = Subject> {
    prop_oneof![
        identifier().prop_map(Subject::Attribute),
        rule().prop_map(Subject::Rule),
        (identifier(), rule()).prop_map(|(attribute, rule)| Subject::Both { attribute, rule }),
    ]
}

pub(crate) fn filter() -> impl Strategy<Value = Filter> {
    let leaf = prop_oneof![
        (identifier(), value()).prop_map(|(attribute, value)| Filter::Equal(attribute, value)),
        (identifier(), option::of(value()), vec(value(), 0..3), option::of(value())).prop_map(
            |(attribute, initial, middle, last)| Substrings::filter(attribute, initial, middle, last)
        ),
        (identifier(), value()).prop_map(|(attribute, value)| Filter::GreaterOrEqual(attribute, value)),
        (identifier(), value()).prop_map(|(attribute, value)| Filter::LessOrEqual(attribute, value)),
        identifier().prop_map(Filter::Present),
        (identifier(), value()).prop_map(|(attribute, value)| Filter::Approximate(attribute, value)),
        (subject(), value(), any::<bool>()).prop_map(|(subject, value, with_name)| Filter::Extensible(
            Extensible { subject, value, with_name }
        )),
    ];
    leaf.prop_recursive(5, 30, 4, |inside| {
        prop_oneof![
            vec(inside.clone(), 0..4).prop_map(Filter::And),
            vec(inside.clone(), 0..4).prop_map(Filter::Or),
            inside.prop_map(|filter| Filter::Not(Box::new(filter))),
        ]
    })
}

pub(crate) fn name() -> impl Strategy<Value = DistinguishedName> {
    let attribute = prop_oneof!["[a-zA-Z][a-zA-Z-]{0,7}", "[0-2](\\.[0-9]{1,4}){1,5}"]
        .prop_map(|text| Identifier::parse(&text).unwrap());
    let part = vec((attribute, value()), 1..3).prop_map(|values| {
        let mut values = values.into_iter();
        let (attribute, value) = values.next().unwrap();
        values.fold(RelativeName::new(attribute, &value), |part, (attribute, value)| {
            part.and(attribute, &value)
        })
    });
    vec(part, 0..4).prop_map(|parts| DistinguishedName { parts })
}

fn result() -> impl Strategy<Value = LdapResult> {
    (0..=i32::MAX as u32, text(), text(), vec(text(), 0..3)).prop_map(
        |(code, matched_name, message, referrals)| LdapResult {
            code: ResultCode::from_number(code).unwrap(),
            matched_name,
            message,
            referrals,
        },
    )
}

fn attribute() -> impl Strategy<Value = Attribute> {
    (text(), vec(value(), 0..4)).prop_map(|(name, values)| Attribute { name, values })
}

fn entry() -> impl Strategy<Value = Entry> {
    (text(), vec(attribute(), 0..4)).prop_map(|(name, attributes)| Entry { name, attributes })
}

fn secret() -> impl Strategy<Value = Secret> {
    value().prop_map(Secret)
}

fn id() -> impl Strategy<Value = MessageId> {
    prop_oneof![1..300_u32, 1..=i32::MAX as u32].prop_map(|number| MessageId::from_number(number).unwrap())
}

fn bind() -> impl Strategy<Value = Operation> {
    let authentication = prop_oneof![
        secret().prop_map(Authentication::Simple),
        ("[A-Z0-9-]{1,12}", option::of(secret()))
            .prop_map(|(mechanism, credentials)| Authentication::Sasl { mechanism, credentials }),
        secret().prop_map(|value| Authentication::Other { tag: 0x89, value }),
    ];
    (any::<u8>(), text(), authentication).prop_map(|(version, name, authentication)| {
        Operation::Bind(BindRequest { version, name, authentication })
    })
}

fn search() -> impl Strategy<Value = Operation> {
    let scope = prop::sample::select(vec![Scope::Base, Scope::OneLevel, Scope::Subtree, Scope::Subordinates]);
    let aliases = prop::sample::select(vec![
        DereferenceAliases::Never,
        DereferenceAliases::InSearching,
        DereferenceAliases::FindingBase,
        DereferenceAliases::Always,
    ]);
    let limits = (0..=i32::MAX as u32, 0..=i32::MAX as u32, any::<bool>());
    (text(), scope, aliases, limits, filter(), vec(text(), 0..4)).prop_map(
        |(base, scope, aliases, (size_limit, time_limit_s, types_only), filter, attributes)| {
            Operation::Search(SearchRequest {
                base,
                scope,
                aliases,
                size_limit,
                time_limit_s,
                types_only,
                filter,
                attributes,
            })
        },
    )
}

fn modify() -> impl Strategy<Value = Operation> {
    let action = prop::sample::select(vec![
        ModifyAction::Add,
        ModifyAction::Delete,
        ModifyAction::Replace,
        ModifyAction::Increment,
    ]);
    (text(), vec((action, attribute()), 0..4))
        .prop_map(|(name, changes)| Operation::Modify(ModifyRequest { name, changes }))
}

fn request() -> impl Strategy<Value = Operation> {
    prop_oneof![
        bind(),
        Just(Operation::Unbind),
        search(),
        modify(),
        entry().prop_map(Operation::Add),
        text().prop_map(Operation::Delete),
        (text(), text(), any::<bool>(), option::of(text())).prop_map(
            |(name, new_rdn, delete_old_rdn, new_superior)| Operation::ModifyName(ModifyNameRequest {
                name,
                new_rdn,
                delete_old_rdn,
                new_superior,
            })
        ),
        (text(), text(), value()).prop_map(|(name, attribute, value)| Operation::Compare(CompareRequest {
            name,
            assertion: Assertion { attribute, value },
        })),
        id().prop_map(Operation::Abandon),
        (text(), option::of(value()))
            .prop_map(|(name, value)| Operation::Extended(ExtendedRequest { name, value })),
    ]
}

fn response() -> impl Strategy<Value = Operation> {
    prop_oneof![
        (result(), option::of(value())).prop_map(|(result, server_credentials)| Operation::BindResponse(
            BindResponse { result, server_credentials }
        )),
        entry().prop_map(Operation::SearchEntry),
        vec(text(), 0..3).prop_map(Operation::SearchReference),
        result().prop_map(Operation::SearchDone),
        result().prop_map(Operation::ModifyResponse),
        result().prop_map(Operation::AddResponse),
        result().prop_map(Operation::DeleteResponse),
        result().prop_map(Operation::ModifyNameResponse),
        result().prop_map(Operation::CompareResponse),
        (result(), option::of(text()), option::of(value())).prop_map(|(result, name, value)| {
            Operation::ExtendedResponse(ExtendedResponse { result, name, value })
        }),
        (option::of(text()), option::of(value()))
            .prop_map(|(name, value)| Operation::Intermediate(IntermediateResponse { name, value })),
    ]
}

pub(crate) fn message() -> impl Strategy<Value = Message> {
    let control = (text(), any::<bool>(), option::of(value()))
        .prop_map(|(oid, is_critical, value)| Control { oid, is_critical, value });
    (id(), prop_oneof![request(), response()], vec(control, 0..3))
        .prop_map(|(id, operation, controls)| Message { id, operation, controls })
}
