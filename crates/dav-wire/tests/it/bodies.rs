//! Bodies in XML: what is written is read back, and nothing but XML within its limits is taken.

use proptest::collection::vec;
use proptest::option;
use proptest::prelude::*;
use scrinium_dav_wire::multistatus::{Multistatus, PropertyStatus, ResourceResponse};
use scrinium_dav_wire::report::{
    AddressData, CalendarData, ExpandedProperty, PropertySearch, Report, Requested, Selection,
};
use scrinium_dav_wire::request::{
    AccessEntry, AccessList, BodyError, MakeCollection, Principal, PropFind, PropertyChange, PropertyUpdate,
};
use scrinium_dav_wire::value::DateTime;
use scrinium_dav_wire::xml::{Element, Name, XmlError, XmlLimits};
use scrinium_dav_wire::{
    APPLE, CALDAV, CARDDAV, ComponentFilter, ComponentSelection, ContactFilter, DAV, PropertyFilter,
    TextMatch, TimeRange,
};

fn limits() -> XmlLimits {
    XmlLimits::default()
}

fn name() -> impl Strategy<Value = Name> {
    let namespaces = vec![DAV, CALDAV, CARDDAV, APPLE, "", "urn:x:<&\">"];
    (prop::sample::select(namespaces), "[a-z][a-z0-9.-]{0,6}")
        .prop_map(|(namespace, local)| Name::new(namespace, &local))
}

fn text() -> impl Strategy<Value = String> {
    "[ -~é😀\n\r\t]{0,12}"
}

fn element() -> impl Strategy<Value = Element> {
    let leaf = (name(), text(), option::of(text())).prop_map(|(name, text, attribute)| {
        let element = Element::named(&name).with_text(&text);
        attribute.iter().fold(element, |element, value| element.with_attribute("a", value))
    });
    leaf.prop_recursive(3, 12, 3, |inner| {
        (name(), vec(inner, 1..3)).prop_map(|(name, children)| Element::named(&name).with_all(children))
    })
}

fn names() -> impl Strategy<Value = Vec<Name>> {
    vec(name(), 0..4)
}

fn range() -> impl Strategy<Value = TimeRange> {
    let time = |text: &str| Some(DateTime::parse(text).unwrap());
    let (early, late) = (time("20260101T000000Z"), time("20261231T235959Z"));
    prop::sample::select(vec![
        TimeRange { start: early, end: late },
        TimeRange { start: early, end: None },
        TimeRange { start: None, end: late },
    ])
}

fn word() -> impl Strategy<Value = String> {
    "[A-Z-]{1,8}"
}

fn property_filter(times: bool) -> impl Strategy<Value = PropertyFilter> {
    let found = || {
        (text(), option::of(Just("i;octet".to_owned())), any::<bool>(), option::of(Just("equals".to_owned())))
            .prop_map(|(text, collation, negate, match_type)| TextMatch {
                text,
                collation,
                negate,
                match_type,
            })
    };
    let parameter = (word(), vec(found(), 0..2)).prop_map(|(name, texts)| PropertyFilter {
        name,
        texts,
        ..PropertyFilter::default()
    });
    (word(), any::<(bool, bool)>(), option::of(range()), vec(found(), 0..3), vec(parameter, 0..2)).prop_map(
        move |(name, (is_not_defined, all_of), time_range, texts, parameters)| PropertyFilter {
            name,
            is_not_defined,
            all_of,
            time_range: time_range.filter(|_| times),
            texts,
            parameters,
        },
    )
}

fn component_filter() -> impl Strategy<Value = ComponentFilter> {
    let leaf = (word(), any::<bool>(), option::of(range()), vec(property_filter(true), 0..2)).prop_map(
        |(name, is_not_defined, time_range, properties)| ComponentFilter {
            name,
            is_not_defined,
            time_range,
            properties,
            components: vec![],
        },
    );
    leaf.prop_recursive(2, 4, 2, |inner| {
        (word(), vec(inner, 1..3)).prop_map(|(name, components)| ComponentFilter {
            name,
            components,
            ..ComponentFilter::default()
        })
    })
}

fn selection() -> impl Strategy<Value = Selection> {
    let data = prop_oneof![
        name().prop_filter("another", |name| !name.local.ends_with("-data")).prop_map(Requested::Property),
        (option::of(range()), option::of(range()), any::<bool>()).prop_map(|(expand, limit, parts)| {
            let event = ComponentSelection { name: "VEVENT".to_owned(), properties: None, components: None };
            let components = ComponentSelection {
                name: "VCALENDAR".to_owned(),
                properties: Some(vec![("VERSION".to_owned(), parts)]),
                components: Some(vec![event]),
            };
            Requested::CalendarData(CalendarData {
                components: parts.then_some(components),
                expand,
                limit_recurrence_set: limit,
                limit_free_busy_set: limit,
            })
        }),
        option::of(vec(word(), 1..3)).prop_map(|properties| {
            Requested::AddressData(AddressData {
                version: properties.as_ref().map(|_| "4.0".to_owned()),
                properties,
            })
        }),
    ];
    prop_oneof![Just(Selection::All), Just(Selection::Names), vec(data, 0..4).prop_map(Selection::Properties)]
}

fn hrefs() -> impl Strategy<Value = Vec<String>> {
    vec("/[a-z%0-9&]{1,9}", 0..4)
}

fn report() -> impl Strategy<Value = Report> {
    let search = (names(), text()).prop_map(|(properties, text)| PropertySearch {
        properties,
        text,
        match_type: Some("contains".to_owned()),
    });
    let expanded = vec((name(), name()), 0..3).prop_map(|pairs| {
        let inner = |name| vec![ExpandedProperty { name, properties: vec![] }];
        let outer =
            pairs.into_iter().map(|(name, other)| ExpandedProperty { name, properties: inner(other) });
        Report::ExpandProperty(outer.collect())
    });
    prop_oneof![
        (selection(), component_filter(), option::of(text()), option::of(Just("Europe/Berlin".to_owned())))
            .prop_map(|(selection, filter, time_zone, time_zone_id)| Report::CalendarQuery {
                selection,
                filter,
                time_zone,
                time_zone_id
            }),
        (selection(), hrefs()).prop_map(|(selection, hrefs)| Report::CalendarMultiget { selection, hrefs }),
        (selection(), hrefs())
            .prop_map(|(selection, hrefs)| Report::AddressbookMultiget { selection, hrefs }),
        range().prop_map(Report::FreeBusyQuery),
        (option::of("urn:[a-z]{1,9}"), any::<bool>(), option::of(1_u64..99), selection()).prop_map(
            |(token, infinite, limit, selection)| Report::SyncCollection {
                token,
                infinite,
                limit,
                selection
            }
        ),
        (selection(), any::<bool>(), vec(property_filter(false), 0..3), option::of(1_u64..99)).prop_map(
            |(selection, all_of, properties, limit)| Report::AddressbookQuery {
                selection,
                filter: ContactFilter { all_of, properties },
                limit
            }
        ),
        (vec(search, 1..3), any::<(bool, bool)>(), names()).prop_map(
            |(searches, (any_of, apply), properties)| {
                Report::PrincipalPropertySearch {
                    any_of,
                    searches,
                    properties,
                    apply_to_principal_collection_set: apply,
                }
            }
        ),
        Just(Report::PrincipalSearchPropertySet),
        (option::of(name()), names())
            .prop_map(|(property, properties)| Report::PrincipalMatch { property, properties }),
        names().prop_map(Report::AclPrincipalPropSet),
        expanded,
    ]
}

fn multistatus() -> impl Strategy<Value = Multistatus> {
    let part = (prop::sample::select(vec![200_u16, 403, 404, 424]), vec(element(), 0..3), any::<bool>())
        .prop_map(|(status, properties, error)| PropertyStatus {
            status,
            properties,
            error: error.then(|| Element::new(DAV, "error").with(Element::new(DAV, "valid-sync-token"))),
        });
    let response =
        (vec("/[a-z%0-9]{0,9}", 1..3), option::of(Just(507_u16)), vec(part, 0..3), option::of("[a-z]{1,9}"))
            .prop_map(|(hrefs, status, properties, description)| ResourceResponse {
                hrefs,
                status,
                properties,
                error: None,
                description,
            });
    (vec(response, 0..3), option::of("urn:[a-z]{1,9}"))
        .prop_map(|(responses, sync_token)| Multistatus { responses, sync_token })
}

proptest! {
    #[test]
    fn trees_are_read_back(element in element()) {
        prop_assert_eq!(Element::parse(element.write().as_bytes(), limits()), Ok(element));
    }

    #[test]
    fn reports_are_read_back(report in report()) {
        let body = report.element().write();
        prop_assert_eq!(Report::parse(body.as_bytes(), limits()), Ok(report), "{}", body);
    }

    #[test]
    fn answers_are_read_back(answer in multistatus()) {
        prop_assert_eq!(Multistatus::parse(answer.element().write().as_bytes(), limits()), Ok(answer));
    }

    #[test]
    fn requests_are_read_back(names in vec(name(), 1..4), properties in vec(element(), 1..3), calendar in any::<bool>(), flags in any::<(bool, bool, bool)>()) {
        for find in [PropFind::Names, PropFind::All(names.clone()), PropFind::All(vec![]), PropFind::Properties(names.clone())] {
            prop_assert_eq!(PropFind::parse(find.element().write().as_bytes(), limits()), Ok(find));
        }
        let sets = properties.iter().cloned().map(PropertyChange::Set);
        let update = PropertyUpdate(sets.chain(names.iter().cloned().map(PropertyChange::Remove)).collect());
        prop_assert_eq!(PropertyUpdate::parse(update.element().write().as_bytes(), limits()), Ok(update));
        let made = MakeCollection { calendar, properties };
        prop_assert_eq!(MakeCollection::parse(made.element().write().as_bytes(), calendar, limits()), Ok(made));
        let (invert, grant, protected) = flags;
        let entries = [
            Principal::All, Principal::Authenticated, Principal::Unauthenticated, Principal::Itself,
            Principal::Href("/dav/principals/ada/".to_owned()), Principal::Property(names[0].clone()),
        ].map(|principal| AccessEntry {
            principal, invert, grant, protected, privileges: names.clone(), inherited: protected.then(|| "/dav/".to_owned()),
        });
        let list = AccessList(entries.to_vec());
        prop_assert_eq!(AccessList::parse(list.element().write().as_bytes(), limits()), Ok(list));
    }

    #[test]
    fn any_bytes_are_a_body_or_an_error(bytes in vec(prop::sample::select(b"<>/a:=\"'&;#x1! [](){}?-\n\xc3\xa9CDATA".to_vec()), 0..80)) {
        if let Ok(element) = Element::parse(&bytes, limits()) {
            prop_assert_eq!(Element::parse(element.write().as_bytes(), limits()), Ok(element));
        }
    }

    #[test]
    fn a_body_with_another_byte_is_read_or_an_error(report in report(), at in any::<prop::sample::Index>(), byte in prop::sample::select(b"<>/a:=\"'&;#! \0\xff".to_vec())) {
        let mut body = report.element().write().into_bytes();
        let at = at.index(body.len());
        body[at] = byte;
        if let Ok(read) = Report::parse(&body, limits()) {
            prop_assert!(Report::parse(read.element().write().as_bytes(), limits()).is_ok());
        }
        let _ = (Multistatus::parse(&body, limits()), PropFind::parse(&body, limits()));
    }
}

#[test]
fn entities_and_what_goes_beyond_a_limit_are_refused() {
    let small = XmlLimits { bytes: 200, depth: 3, elements: 5, attributes: 2 };
    for (body, why) in [
        ("<!DOCTYPE a [<!ENTITY b \"c\">]><a>&b;</a>", XmlError::DocumentType),
        ("<a>&b;</a>", XmlError::Entity),
        ("<a b=\"&c;\"/>", XmlError::Entity),
        ("<a>&#0;</a>", XmlError::Entity),
        ("<x:a/>", XmlError::Prefix),
        ("<a><a><a><a/></a></a></a>", XmlError::TooDeep(3)),
        ("<a><b/><b/><b/><b/><b/></a>", XmlError::TooManyElements(5)),
        ("<a b='1' c='2' d='3'/>", XmlError::TooManyAttributes(2)),
        ("<a/><b/>", XmlError::Root),
        ("<a>", XmlError::Root),
        ("text", XmlError::Root),
        ("", XmlError::Root),
    ] {
        assert_eq!(Element::parse(body.as_bytes(), small), Err(why), "{body}");
    }
    assert_eq!(Element::parse(&[b' '; 201], small), Err(XmlError::TooLong(200)));
    assert_eq!(Element::parse(b"<a>\xff</a>", small), Err(XmlError::NotText));
    assert!(matches!(Element::parse(b"<a></b>", small), Err(XmlError::Malformed(_))));
}

#[test]
fn a_query_of_a_client_with_prefixes_of_its_own() {
    let body = b"<?xml version=\"1.0\"?>\n<cal:calendar-query xmlns=\"DAV:\" xmlns:cal=\"urn:ietf:params:xml:ns:caldav\" xmlns:q=\"urn:q\"><prop><getetag/><cal:calendar-data/></prop><!-- all --><q:unknown><q:more/></q:unknown><cal:filter><cal:comp-filter name=\"VCALENDAR\"><cal:comp-filter name=\"VEVENT\"><cal:time-range start=\"20260101T000000Z\"/><cal:prop-filter name=\"SUMMARY\"><cal:text-match negate-condition=\"yes\"><![CDATA[a<b]]>&amp;&#99;</cal:text-match></cal:prop-filter></cal:comp-filter></cal:comp-filter></cal:filter></cal:calendar-query>";
    let Ok(Report::CalendarQuery { selection: Selection::Properties(all), filter, .. }) =
        Report::parse(body, limits())
    else {
        panic!("no query")
    };
    assert_eq!(all[0], Requested::Property(Name::new(DAV, "getetag")));
    assert_eq!(all[1], Requested::CalendarData(CalendarData::default()));
    let event = &filter.components[0];
    assert_eq!((filter.name.as_str(), event.name.as_str()), ("VCALENDAR", "VEVENT"));
    let found = &event.properties[0].texts[0];
    assert_eq!((found.text.as_str(), found.negate), ("a<b&c", true));
}

#[test]
fn wrong_bodies_say_why() {
    let report = |inside: &str| {
        Report::parse(
            format!("<C:free-busy-query xmlns:C=\"{CALDAV}\">{inside}</C:free-busy-query>").as_bytes(),
            limits(),
        )
    };
    assert_eq!(report(""), Err(BodyError::Missing("time-range")));
    for range in
        ["", "start='20260101'", "start='20260101T000000'", "start='20260102T000000Z' end='20260101T000000Z'"]
    {
        assert_eq!(
            report(&format!("<C:time-range {range}/>")),
            Err(BodyError::Value("time-range")),
            "{range}"
        );
    }
    assert_eq!(PropFind::parse(b"<propfind/>", limits()), Err(BodyError::Root));
    assert_eq!(PropFind::parse(b"<propfind xmlns='DAV:'/>", limits()), Err(BodyError::Missing("prop")));
    assert_eq!(PropFind::parse(b" ", limits()), Ok(PropFind::All(vec![])));
    assert_eq!(
        PropertyUpdate::parse(b"<propertyupdate xmlns='DAV:'/>", limits()),
        Err(BodyError::Missing("prop"))
    );
    let many = format!(
        "<C:calendar-multiget xmlns:C='{CALDAV}' xmlns='DAV:'>{}</C:calendar-multiget>",
        "<href/>".repeat(10_001)
    );
    assert_eq!(Report::parse(many.as_bytes(), limits()), Err(BodyError::Value("number of hrefs")));
}

#[test]
fn what_xml_cannot_hold_is_left_out() {
    let element = Element::new(DAV, "a").with_text("be\u{7}ll\u{fffe}").with_attribute("b", "c\u{0}");
    let read = Element::parse(element.write().as_bytes(), limits()).unwrap();
    assert_eq!((read.text().as_str(), read.attribute("b")), ("bell", Some("c")));
}
