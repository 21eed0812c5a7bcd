//! Any bytes as a body in XML and as a calendar: no panic, and what is read is written so that it is read again.

#![no_main]

use libfuzzer_sys::fuzz_target;
use scrinium_dav_wire::content::{Component, ContentLimits};
use scrinium_dav_wire::multistatus::Multistatus;
use scrinium_dav_wire::recurrence::RecurrenceRule;
use scrinium_dav_wire::report::Report;
use scrinium_dav_wire::xml::{Element, XmlLimits};

fuzz_target!(|bytes: &[u8]| {
    let limits = XmlLimits::default();
    if let Ok(element) = Element::parse(bytes, limits) {
        assert_eq!(Element::parse(element.write().as_bytes(), limits), Ok(element));
    }
    let _ = (Report::parse(bytes, limits), Multistatus::parse(bytes, limits));
    if let Ok(component) = Component::parse(bytes, ContentLimits::default()) {
        let again = Component::parse(&component.to_bytes(), ContentLimits::default());
        assert_eq!(again, Ok(component));
    }
    if let Ok((all, _)) = Component::parse_file(bytes, ContentLimits::default()) {
        for component in all {
            assert!(component.lines().all(|line| line.decoded_value().len() <= 4 * bytes.len()));
            let again = Component::parse_file(&component.to_bytes(), ContentLimits::default());
            assert_eq!(again.map(|(all, _)| all.len()), Ok(1));
        }
    }
    if let Some(rule) = std::str::from_utf8(bytes).ok().and_then(|text| RecurrenceRule::parse(text).ok()) {
        assert_eq!(RecurrenceRule::parse(&rule.to_string()), Ok(rule));
    }
});
