//! The file `.mh_sequences` of a folder that MH keeps: which of its numbered messages are unread, flagged or answered.

use std::collections::HashMap;
use std::path::Path;

use super::state::MessageState;

/// A longer file does not count.
const LONGEST_BYTES: u64 = 4 << 20;

/// The sequences of one folder.
pub(super) struct Sequences(HashMap<String, Vec<(u64, u64)>>);

impl Sequences {
    /// Reads those of a folder; `None` where MH keeps none.
    pub(super) fn of(folder: &Path) -> Option<Self> {
        let path = folder.join(".mh_sequences");
        let is_short =
            std::fs::metadata(&path).is_ok_and(|file| file.is_file() && file.len() <= LONGEST_BYTES);
        // One that cannot be read, or is no text, says no more than none.
        is_short.then(|| std::fs::read_to_string(&path).ok().map(|text| Self::read(&text))).flatten()
    }

    fn read(text: &str) -> Self {
        let range = |word: &str| {
            let (first, last) = word.split_once('-').unwrap_or((word, word));
            Some((first.parse().ok()?, last.parse().ok()?))
        };
        let lines = text.lines().filter_map(|line| line.split_once(':'));
        Self(
            lines
                .map(|(name, list)| {
                    (name.trim().to_owned(), list.split_whitespace().filter_map(range).collect())
                })
                .collect(),
        )
    }

    /// What they say of the message in the file of this name.
    pub(super) fn state_of(&self, name: &str) -> MessageState {
        let number: Option<u64> = name.parse().ok();
        let is_in = |sequence: &str| {
            let ranges = self.0.get(sequence).map_or(&[][..], Vec::as_slice);
            number.is_some_and(|number| ranges.iter().any(|(first, last)| (*first..=*last).contains(&number)))
        };
        MessageState {
            read: number.is_some() && !is_in("unseen"),
            answered: is_in("replied"),
            forwarded: is_in("forwarded"),
            flagged: is_in("flagged"),
            ..MessageState::default()
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn sequences_of_mh_say_what_is_unread() {
        let sequences = Sequences::read("cur: 4\nunseen: 2 7-9\nflagged: 3\n");
        let unread: Vec<u64> =
            (1..=10).filter(|number| !sequences.state_of(&number.to_string()).read).collect();
        assert_eq!(unread, [2, 7, 8, 9]);
        assert!(sequences.state_of("3").flagged);
    }
}
