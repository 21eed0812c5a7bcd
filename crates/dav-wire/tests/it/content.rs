//! Calendars and cards: byte for byte, line by line.

use proptest::collection::vec;
use proptest::option;
use proptest::prelude::*;
use scrinium_dav_wire::Parameter;
use scrinium_dav_wire::content::{Component, ContentError, ContentItem, ContentLimits, ContentLine};

fn limits() -> ContentLimits {
    ContentLimits::default()
}

fn line() -> impl Strategy<Value = ContentLine> {
    let value = || "[ -~é😀\n\t]{0,20}";
    let parameter = ("[A-Z-]{1,8}", vec(value(), 1..3)).prop_map(|(name, values)| Parameter { name, values });
    let text = "[ -~é😀\t]{0,200}";
    ("[A-Z]{1,9}-X", vec(parameter, 0..3), text, option::of("[a-z0-9]{1,5}")).prop_map(
        |(name, parameters, value, group)| {
            let line = ContentLine::new(&name, parameters, &value).unwrap();
            match group {
                Some(group) => line.in_group(&group).unwrap(),
                None => line,
            }
        },
    )
}

fn component() -> impl Strategy<Value = Component> {
    let of = |items: Vec<ContentItem>| {
        let mut component = Component::new("VEVENT").unwrap();
        component.items = items;
        component
    };
    let leaf = vec(line().prop_map(ContentItem::Line), 0..4).prop_map(of);
    leaf.prop_recursive(2, 6, 3, move |inner| {
        let item = prop_oneof![line().prop_map(ContentItem::Line), inner.prop_map(ContentItem::Component)];
        vec(item, 1..4).prop_map(of)
    })
}

proptest! {
    #[test]
    fn what_is_written_is_read_back_and_written_alike(component in component()) {
        let bytes = component.to_bytes();
        let read = Component::parse(&bytes, limits()).unwrap();
        prop_assert_eq!(&read, &component);
        prop_assert_eq!(&read.to_bytes(), &bytes);
        let text = String::from_utf8(bytes).unwrap();
        prop_assert!(text.split("\r\n").all(|line| line.len() <= 75), "{}", text);
    }

    #[test]
    fn any_bytes_come_back_or_are_an_error(lines in vec(prop::sample::select(vec![
        "BEGIN:VCARD\r\n", "END:VCARD\n", "end:vcard\r\n", "A:b\r\n", " folded\r\n", "\tmore\n", "\r\n", "N;X=\"a:b\",c;Y=^'^n^^^z:v\n",
        "item1.TEL;HOME:1\r\n", "A:", "\u{e9}\r\n", "X;\r\n", "BEGIN:V", ":\r\n", "A;B=\"c:d\r\n",
    ]), 0..12)) {
        let bytes: Vec<u8> = lines.concat().into_bytes();
        if let Ok(all) = Component::parse_all(&bytes, limits()) {
            let written: Vec<u8> = all.iter().flat_map(Component::to_bytes).collect();
            // Empty lines before the first component belong to nothing.
            let (written, came) = (String::from_utf8(written).unwrap(), lines.concat());
            prop_assert_eq!(written, came.trim_start_matches("\r\n"));
        }
    }

    #[test]
    fn a_fold_anywhere_changes_nothing(component in component(), at in any::<prop::sample::Index>()) {
        let mut bytes = component.to_bytes();
        let at = at.index(bytes.len());
        // Not between CR and LF, nor at the beginning of a line.
        if at > 0 && !matches!(bytes[at], b'\n' | b'\r' | b' ') && bytes[at - 1] != b'\n' && bytes[at - 1] != b'\r' {
            bytes.splice(at..at, *b"\r\n\t");
            let read = Component::parse(&bytes, limits()).unwrap();
            prop_assert_eq!(&read, &component);
            prop_assert_eq!(read.to_bytes(), bytes);
        }
    }
}

const EVENT: &str = "BEGIN:VCALENDAR\r\nVERSION:2.0\r\nBEGIN:VEVENT\r\nUID:1@a.test\nATTENDEE;CN=\"Ada, L\";PARTSTAT=NEEDS\r\n -ACTION:mailto:ada@a.test\r\nSUMMARY:A long tal\r\n k\\, and more\r\nX-ODD;A=^^:;:,\r\nEND:VEVENT\r\n\r\nEND:VCALENDAR\r\n";

#[test]
fn one_line_is_changed_and_the_others_stay() {
    let mut calendar = Component::parse(EVENT.as_bytes(), limits()).unwrap();
    assert_eq!(calendar.to_bytes(), EVENT.as_bytes());
    let Some(ContentItem::Component(event)) = calendar.items.get_mut(1) else { panic!("no event") };
    assert_eq!(event.line("summary").unwrap().value(), "A long talk\\, and more");
    let Some(ContentItem::Line(attendee)) = event.items.get_mut(1) else { panic!("no attendee") };
    assert_eq!(
        (attendee.parameter("cn"), attendee.parameter("PARTSTAT")),
        (Some("Ada, L"), Some("NEEDS-ACTION"))
    );
    assert!(attendee.set_parameter("PARTSTAT", Some("ACCEPTED")));
    let expected = EVENT.replace("NEEDS\r\n -ACTION", "ACCEPTED");
    assert_eq!(String::from_utf8(calendar.to_bytes()).unwrap(), expected);
}

#[test]
fn nothing_that_is_made_can_end_its_line() {
    assert_eq!(ContentLine::new("A", vec![], "b\r\nEND:VEVENT"), None);
    assert_eq!(ContentLine::new("A:B", vec![], "c"), None);
    assert_eq!(ContentLine::new("BEGIN", vec![], "VEVENT"), None);
    assert_eq!(ContentLine::new("A", vec![Parameter::new("B\r\n", "c")], "d"), None);
    let mut line = ContentLine::new("A", vec![Parameter::new("B", "c\r\nd\"e^")], "f").unwrap();
    assert!(!line.set_value("\n") && !line.set_parameter("X:", Some("y")));
    let mut out = Vec::new();
    line.write(&mut out);
    assert_eq!(String::from_utf8(out).unwrap(), "A;B=c^nd^'e^^:f\r\n");
}

#[test]
fn what_goes_beyond_a_limit_is_refused() {
    let small = ContentLimits { bytes: 300, depth: 2, lines: 6, line_bytes: 40, parameters: 2 };
    let parse = |text: &str| Component::parse(text.as_bytes(), small);
    let long = format!("BEGIN:A\r\nX:{}\r\nEND:A\r\n", "y".repeat(50));
    assert_eq!(parse(&long), Err(ContentError::LineTooLong(2)));
    assert_eq!(parse("BEGIN:A\nBEGIN:A\nBEGIN:A\n"), Err(ContentError::TooDeep(2)));
    assert_eq!(parse(&format!("BEGIN:A\n{}END:A\n", "X:1\n".repeat(9))), Err(ContentError::TooManyLines(6)));
    assert_eq!(parse("BEGIN:A\nX;A=1;B=2;C=3:4\nEND:A\n"), Err(ContentError::TooManyParameters(2)));
    assert_eq!(parse("BEGIN:A\nX;A=1,2,3:4\nEND:A\n"), Err(ContentError::TooManyParameters(2)));
    assert_eq!(parse(&" ".repeat(301)), Err(ContentError::TooLong(300)));
    assert_eq!(parse("BEGIN:A\nEND:B\n"), Err(ContentError::Unexpected(2)));
    assert_eq!(parse("X:1\n"), Err(ContentError::Unexpected(1)));
    assert_eq!(parse("BEGIN:A\n"), Err(ContentError::Open));
    assert_eq!(parse(""), Err(ContentError::Open));
    assert_eq!(parse("BEGIN:A\nX:\u{7}\nEND:A\n"), Err(ContentError::NotText(2)));
    assert_eq!(parse("BEGIN:A\nno value\nEND:A\n"), Err(ContentError::Malformed(2)));
}
