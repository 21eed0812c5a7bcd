//! What is written is read back equal, in pieces of any size, with literals sent at once or waited for.

use proptest::collection::vec;
use proptest::prelude::*;
use scrinium_imap_wire::{
    CommandOptions, NameEncoding, Next, Response, SequenceSet, Speaker, TaggedCommand, ValueLimits,
    WriteOptions, joined,
};

use crate::arbitrary::{command, frames, response, set, tag};

fn names() -> impl Strategy<Value = NameEncoding> {
    prop::sample::select(vec![NameEncoding::Utf7, NameEncoding::Utf8])
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(512))]

    #[test]
    fn commands(
        commands in vec((tag(), command()), 1..3),
        names in names(),
        unasked_bytes in prop::sample::select(vec![0, 5, u64::MAX]),
        piece in 1_usize..60,
    ) {
        let options = WriteOptions { unasked_bytes, utf8: names == NameEncoding::Utf8, ..WriteOptions::CLIENT };
        let mut sent = Vec::new();
        for (tag, command) in &commands {
            let segments = command.write(tag, names, options);
            let (last, before) = segments.split_last().unwrap();
            prop_assert_eq!(last.next, Next::End);
            let announces = before.iter().all(|segment| {
                segment.next == Next::Continuation && segment.bytes.ends_with(b"}\r\n")
            });
            prop_assert!(announces);
            if unasked_bytes == u64::MAX {
                prop_assert!(before.is_empty());
            }
            sent.extend(joined(&segments));
        }
        let options = CommandOptions { names, limits: ValueLimits::default() };
        let read: Vec<_> = frames(&sent, piece, Speaker::Client)
            .iter()
            .map(|parts| TaggedCommand::parse(parts, options))
            .collect();
        let expected: Vec<_> =
            commands.into_iter().map(|(tag, command)| Ok(TaggedCommand { tag, command })).collect();
        prop_assert_eq!(read, expected);
    }

    #[test]
    fn responses(responses in vec(response(), 1..3), names in names(), piece in 1_usize..60) {
        let options = WriteOptions { utf8: names == NameEncoding::Utf8, ..WriteOptions::SERVER };
        let mut sent = Vec::new();
        for response in &responses {
            let segments = response.write(names, options);
            prop_assert_eq!(segments.len(), 1, "a response goes out at once");
            sent.extend(joined(&segments));
        }
        let read: Vec<_> = frames(&sent, piece, Speaker::Server)
            .iter()
            .map(|parts| Response::parse(parts, names, ValueLimits::default()))
            .collect();
        prop_assert_eq!(read, responses.into_iter().map(Ok).collect::<Vec<_>>());
    }

    #[test]
    fn sets(set in set()) {
        prop_assert_eq!(SequenceSet::parse(&set.to_string()), Ok(set));
    }

    #[test]
    fn a_set_holds_what_its_ranges_hold(ranges in vec((1_u32..40, 1_u32..40), 1..5), last in 0_u32..50, star in 1_u32..40) {
        let mut text: Vec<String> = ranges.iter().map(|(from, to)| format!("{from}:{to}")).collect();
        text.push(format!("{star}:*"));
        let resolved = SequenceSet::parse(&text.join(",")).unwrap().resolve(last);
        for number in 1..60 {
            let within = |from: u32, to: u32| (from.min(to)..=from.max(to)).contains(&number);
            let expected = ranges.iter().any(|(from, to)| within(*from, *to)) || within(star, last);
            let found = resolved.iter().any(|(from, to)| (*from..=*to).contains(&number));
            prop_assert_eq!(found, expected, "{} of {:?}", number, resolved);
        }
        prop_assert!(resolved.windows(2).all(|pair| pair[0].1 < pair[1].0));
    }

    #[test]
    fn numbers_become_a_set_of_them(numbers in vec(1_u32..60, 1..30)) {
        let set = SequenceSet::of_numbers(numbers.iter().copied()).unwrap();
        let mut expected = numbers;
        expected.sort_unstable();
        expected.dedup();
        let held: Vec<u32> = set.resolve(99).into_iter().flat_map(|(from, to)| from..=to).collect();
        prop_assert_eq!(held, expected);
    }
}
