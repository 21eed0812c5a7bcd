//! Headers and paths.

use proptest::collection::vec;
use proptest::option;
use proptest::prelude::*;
use scrinium_dav_wire::header::{
    ConditionList, Depth, EntityTag, IfHeader, Preferences, StateCondition, TagCondition, Timeout,
    encode_segment, parse_destination, parse_lock_token, parse_overwrite, parse_timeout, path_segments,
};

fn tag() -> impl Strategy<Value = EntityTag> {
    (any::<bool>(), "[!#-~é]{0,9}").prop_map(|(weak, tag)| EntityTag { weak, tag })
}

fn if_header() -> impl Strategy<Value = IfHeader> {
    let condition = prop_oneof![
        "urn:[a-z0-9:-]{1,9}".prop_map(StateCondition::Token),
        tag().prop_map(StateCondition::Tag),
    ];
    let conditions = vec((any::<bool>(), condition), 1..3);
    (vec(conditions, 1..3), option::of("/[a-z]{1,5}")).prop_map(|(lists, resource)| {
        let list = |conditions| ConditionList { resource: resource.clone(), conditions };
        IfHeader(lists.into_iter().map(list).collect())
    })
}

proptest! {
    #[test]
    fn conditions_are_read_back(header in if_header(), tags in vec(tag(), 1..4)) {
        prop_assert_eq!(IfHeader::parse(&header.to_string()), Some(header));
        let tags = TagCondition::Tags(tags);
        prop_assert_eq!(TagCondition::parse(&tags.to_string()), Some(tags));
    }

    #[test]
    fn a_name_is_a_segment_whatever_its_bytes(names in vec(vec(any::<u8>(), 1..9), 1..4)) {
        let path: String = names.iter().map(|name| format!("/{}", encode_segment(name))).collect();
        let dots = names.iter().any(|name| matches!(name.as_slice(), b"." | b".."));
        prop_assert_eq!(path_segments(&path), if dots { None } else { Some(names) });
    }

    #[test]
    fn any_text_is_a_header_or_none(text in "[(<>)\\[\\]\"*,;:/% a-zNW-]{0,30}") {
        let _ = (IfHeader::parse(&text), TagCondition::parse(&text), path_segments(&text), parse_destination(&text));
        let _ = (Depth::parse(&text), parse_timeout(&text), parse_lock_token(&text), Preferences::parse(&text));
    }
}

#[test]
fn headers_mean_what_they_say() {
    assert_eq!(Depth::parse(" Infinity "), Some(Depth::Infinity));
    assert_eq!((Depth::parse("2"), parse_overwrite("F"), parse_overwrite("no")), (None, Some(false), None));
    assert_eq!(
        parse_timeout("Infinite, Second-4100000000, x"),
        [Timeout::Infinite, Timeout::Seconds(4_100_000_000)]
    );
    assert_eq!(parse_lock_token("<urn:uuid:1>"), Some("urn:uuid:1"));
    assert_eq!(TagCondition::parse("*"), Some(TagCondition::Any));
    for wrong in ["", "abc", "\"a\" \"b\"", "\"a\",", "\"a"] {
        assert_eq!(TagCondition::parse(wrong), None, "{wrong}");
    }
    let header = IfHeader::parse("</a> (<urn:x> [W/\"1\"]) (NOT <DAV:no-lock>)").unwrap();
    assert_eq!(header.0[1].resource.as_deref(), Some("/a"));
    assert_eq!(header.0[1].conditions, [(true, StateCondition::Token("DAV:no-lock".to_owned()))]);
    for wrong in ["", "()", "(<a>", "<a>", "(a)", "([x])"] {
        assert_eq!(IfHeader::parse(wrong), None, "{wrong}");
    }
    let preferences = Preferences::parse("return=\"minimal\", depth-noroot; x");
    assert!(preferences.return_minimal && preferences.depth_noroot && !preferences.return_representation);
    assert_eq!(parse_destination("https://a.test:8443/b%20c"), Some((Some("a.test:8443"), "/b%20c")));
    assert_eq!(
        (parse_destination("//a/b"), parse_destination("ftp://a/b"), parse_destination("b")),
        (None, None, None)
    );
}

#[test]
fn a_path_is_split_before_it_is_decoded() {
    assert_eq!(path_segments("/a%2Fb/c%40d/"), Some(vec![b"a/b".to_vec(), b"c@d".to_vec()]));
    assert_eq!(path_segments("/a@b?c#d"), Some(vec![b"a@b".to_vec()]));
    assert_eq!(path_segments("/"), Some(vec![]));
    for wrong in ["", "a", "/%2e%2E/x", "/./x", "/a//b", "/a%2", "/a%zz"] {
        assert_eq!(path_segments(wrong), None, "{wrong}");
    }
}
