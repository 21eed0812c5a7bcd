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
        "BEGIN:VCARD\r\n", "END:VCARD\n", "end:vcard\r\n", "A:b\r\n", " folded\r\n", "\tmore\n", "\r\n", "N;ENCODING=QUOTED-PRINTABLE:=C3=\r\n", "N;X=\"a:b\",c;Y=^'^n^^^z:v\n",
        "item1.TEL;HOME:1\r\n", "A:", "\u{e9}\r\n", "X;\r\n", "BEGIN:V", ":\r\n", "A;B=\"c:d\r\n",
    ]), 0..12)) {
        let bytes: Vec<u8> = lines.concat().into_bytes();
        if let Ok(all) = Component::parse_all(&bytes, limits()) {
            let written: Vec<u8> = all.iter().flat_map(Component::to_bytes).collect();
            // Nothing but empty lines is no component.
            let expected = if all.is_empty() { String::new() } else { lines.concat() };
            prop_assert_eq!(String::from_utf8(written).unwrap(), expected);
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
    assert_eq!(parse("BEGIN:A\nX:\0\nEND:A\n"), Err(ContentError::NotText(2)));
    assert_eq!(parse("BEGIN:A\nX:a\rEND:A\nEND:A\n"), Err(ContentError::NotText(2)));
    assert_eq!(parse("BEGIN:A\nno value\nEND:A\n"), Err(ContentError::Malformed(2)));
}

#[test]
fn a_million_lines_are_refused_before_they_are_kept() {
    let text = format!("BEGIN:VCALENDAR\n{}END:VCALENDAR\n", "A:1\n".repeat(1_000_000));
    assert_eq!(Component::parse(text.as_bytes(), limits()), Err(ContentError::TooManyLines(200_000)));
    let deep = "BEGIN:A\n".repeat(1_000_000);
    assert_eq!(Component::parse(deep.as_bytes(), limits()), Err(ContentError::TooDeep(16)));
    assert_eq!(Component::parse_file(deep.as_bytes(), limits()), Err(ContentError::TooDeep(16)));
    let breaks = format!("BEGIN:A\nN;QUOTED-PRINTABLE:{}\nEND:A\n", "=\n".repeat(1_000_000));
    assert!(Component::parse(breaks.as_bytes(), limits()).is_ok());
}

#[test]
fn control_characters_come_back_and_are_never_written() {
    let text = "BEGIN:VEVENT\r\nSUMMARY;X=1:a\u{b}b\u{7}\r\nEND:VEVENT\r\n";
    let mut event = Component::parse(text.as_bytes(), limits()).unwrap();
    assert_eq!(event.to_bytes(), text.as_bytes());
    assert!(event.lines_mut().next().unwrap().set_parameter("X", Some("2")));
    assert_eq!(event.to_bytes(), b"BEGIN:VEVENT\r\nSUMMARY;X=2:ab\r\nEND:VEVENT\r\n");
}

#[test]
fn what_is_set_to_the_same_keeps_its_bytes() {
    let mut calendar = Component::parse(EVENT.as_bytes(), limits()).unwrap();
    for event in calendar.components_mut() {
        let attendee = ContentLine::new(
            "ATTENDEE",
            vec![Parameter::new("CN", "Ada, L"), Parameter::new("PARTSTAT", "NEEDS-ACTION")],
            "mailto:ada@a.test",
        );
        event.replace("attendee", vec![attendee.unwrap()]);
        let summary = event.lines_mut().find(|line| line.name() == "SUMMARY").unwrap();
        assert!(summary.set_value("A long talk\\, and more"));
    }
    assert_eq!(calendar.to_bytes(), EVENT.as_bytes());
    for event in calendar.components_mut() {
        let line = |name: &str| ContentLine::new(name, vec![], "1").unwrap();
        event.replace("ATTENDEE", vec![line("ATTENDEE"), line("ATTENDEE")]);
        event.replace("NEW", vec![line("NEW")]);
        event.remove("summary");
    }
    let expected = EVENT
        .replace(
            "ATTENDEE;CN=\"Ada, L\";PARTSTAT=NEEDS\r\n -ACTION:mailto:ada@a.test",
            "ATTENDEE:1\r\nATTENDEE:1",
        )
        .replace("SUMMARY:A long tal\r\n k\\, and more\r\n", "")
        .replace("A=^^:;:,\r\n", "A=^^:;:,\r\nNEW:1\r\n");
    assert_eq!(String::from_utf8(calendar.to_bytes()).unwrap(), expected);
}

#[test]
fn old_cards_are_read_and_one_line_of_them_is_changed() {
    let text = b"\xef\xbb\xbf\r\nBEGIN:VCARD\r\nVERSION:2.1\r\nN;CHARSET=UTF-8;ENCODING=QUOTED-PRINTABLE:M=C3=\r\n=BCller;J=C3=B6rg\r\nTEL;HOME;VOICE:+1\r\nPHOTO;JPEG;BASE64:\r\n AAAA\r\n BBBB\r\n\r\nitem1.NOTE;QUOTED-PRINTABLE:a=0D=0A=\r\n b\r\nEND:VCARD\r\n";
    let mut card = Component::parse(text, limits()).unwrap();
    assert_eq!(card.to_bytes(), text);
    let name = card.line("N").unwrap();
    assert_eq!((name.value(), &*name.decoded_value()), ("M=C3=BCller;J=C3=B6rg", "M\u{fc}ller;J\u{f6}rg"));
    assert_eq!(card.line("TEL").unwrap().parameters().len(), 2);
    assert_eq!(card.line("PHOTO").unwrap().value(), "AAAABBBB");
    assert_eq!(card.line("PHOTO").unwrap().parameter("ENCODING"), Some("BASE64"));
    let note = card.lines_mut().find(|line| line.group() == Some("item1")).unwrap();
    assert_eq!(note.decoded_value(), "a\r\n b");
    assert!(note.set_value(&"=C3=BC".repeat(20)));
    let written = String::from_utf8(card.to_bytes()).unwrap();
    assert!(written.lines().all(|line| line.len() <= 75), "{written}");
    assert_eq!(Component::parse(written.as_bytes(), limits()), Ok(card));
}

#[test]
fn a_file_with_faults_is_read_as_far_as_it_goes() {
    let text = b"stray\nBEGIN:VCALENDAR\nBEGIN:VEVENT\nSUMMARY:caf\xe9\nNOTE;CHARSET=ISO-8859-5:\xb1\nDESCRIPTION:one\ntwo, raw\nX;CN=\"open:1\nEND:VTODO\nDTSTART;:20260101\nEND:VCALENDAR\nBEGIN:VCALENDAR";
    let (all, notes) = Component::parse_file(text, limits()).unwrap();
    let written: Vec<u8> = all.iter().flat_map(Component::to_bytes).collect();
    // All but what is outside of a component, and with the ends that were missing.
    let expected = String::from_utf8_lossy(text.get(6..).unwrap())
        .replace("20260101\n", "20260101\nEND:VEVENT\r\n")
        + "\r\nEND:VCALENDAR\r\n";
    assert_eq!(String::from_utf8_lossy(&written), expected);
    let event = all.first().unwrap().components().next().unwrap();
    assert_eq!(event.line("SUMMARY").unwrap().value(), "caf\u{e9}");
    assert_eq!(event.line("NOTE").unwrap().value(), "\u{411}");
    assert_eq!(event.line("DTSTART").unwrap().value(), "20260101");
    assert_eq!(event.lines().filter(|line| line.name().is_empty()).count(), 3);
    use ContentError::{Malformed, NotText, Open, Unexpected};
    let expected = [
        Malformed(1),
        NotText(4),
        NotText(5),
        Malformed(7),
        Malformed(8),
        Unexpected(9),
        Unexpected(9),
        Unexpected(11),
        Open,
    ];
    assert_eq!(notes, expected);
}
