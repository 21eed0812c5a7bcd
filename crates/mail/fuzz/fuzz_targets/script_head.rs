//! Any bytes as the head of a message that a script looks at: fields lie in it one after the other, and its end is found alike wherever
//! the pieces end in which it is read.

#![no_main]

#[path = "../../src/sieve"]
mod sieve {
    mod head;

    pub fn fields(head: &[u8]) -> Vec<(std::ops::Range<usize>, std::ops::Range<usize>)> {
        head::fields_of(head)
    }

    pub fn end(head: &[u8], from: usize) -> Option<(usize, usize)> {
        head::end_of_head(head, from)
    }
}

use libfuzzer_sys::fuzz_target;

fuzz_target!(|bytes: &[u8]| {
    let whole = sieve::end(bytes, 0);
    let (mut read, mut found) = (0, None);
    while found.is_none() && read < bytes.len() {
        let looked_at = read.saturating_sub(3);
        read = (read + 7).min(bytes.len());
        found = sieve::end(&bytes[..read], looked_at);
    }
    assert_eq!(found, whole);
    let head = &bytes[..whole.map_or(bytes.len(), |(end, _)| end)];
    let mut last = 0;
    for (name, value) in sieve::fields(head) {
        assert!(last <= name.start && name.start <= name.end && name.end < value.start);
        assert!(value.start <= value.end && value.end <= head.len());
        assert!(!head[name.clone()].contains(&b':') && !head[name].contains(&b'\n'));
        last = value.end;
    }
});
