//! Any bytes as a message: no panic, parts within it, however it comes, and its description can be written.

#![no_main]

use libfuzzer_sys::fuzz_target;
use scrinium_imap_wire::{FetchItem, NameEncoding, Response, WriteOptions, joined};
use scrinium_mailbox::{MapBuilder, MapLimits, MessageText, Outline, OutlineBuilder};

fuzz_target!(|bytes: &[u8]| {
    let Some((piece, message)) = bytes.split_first() else { return };
    let map = MapBuilder::map(message);
    assert_eq!(map.bytes, message.len() as u64);
    for part in &map.parts {
        assert!(part.header.start <= part.header.end && part.header.end == part.body.start);
        assert!(part.body.end <= map.bytes);
    }
    let mut builder = MapBuilder::new(MapLimits::default());
    message.chunks(usize::from(*piece).max(1)).for_each(|piece| builder.push(piece));
    assert_eq!(builder.finish(), map);
    let mut builder = OutlineBuilder::default();
    message.chunks(usize::from(*piece).max(1)).for_each(|piece| builder.push(piece));
    let outline = builder.finish();
    if let Some(stored) = outline.encode() {
        assert_eq!(Outline::decode(&stored).as_ref(), Some(&outline));
    }
    // Whatever lies in a store: nothing, or something that can be described.
    if let Some(outline) = Outline::decode(message) {
        let _ = outline.map.structure(true, true);
    }
    for utf8 in [false, true] {
        let items = vec![
            FetchItem::Envelope(Box::new(map.envelope(utf8))),
            FetchItem::Body(Box::new(map.structure(false, utf8))),
            FetchItem::BodyStructure(Box::new(map.structure(true, utf8))),
        ];
        let options = WriteOptions { utf8, ..WriteOptions::SERVER };
        let line = joined(&Response::Fetch { number: 1, items }.write(NameEncoding::Utf8, options));
        assert!(utf8 || line.is_ascii());
        assert!(std::str::from_utf8(&line).is_ok());
    }
    let text = MessageText { map: &map, source: message };
    let _ = (text.header(), text.body());
});
