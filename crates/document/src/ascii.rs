//! Collation keys of ASCII text without the collator.
//!
//! In the root locale no ASCII character forms a contraction, all have the common secondary weight, and only capital
//! letters a tertiary weight of their own. The key is then the characters' primary weights, 01, the compressed run
//! of common secondary weights, 01, and the compressed runs of tertiary weights (the compression is ICU's, from
//! `CollationKeys::writeSortKeyUpToQuaternary`). Primary weights are asked of the collator, once.

use scrinium_assertion::never;

use crate::collation::END;

/// What the collator says of each ASCII character; `None` for one without any weight, as most control characters are.
pub(crate) struct AsciiWeights {
    weights: [Option<Weight>; 128],
    /// By primary weight the small and the capital letter; any other character stands as the small one. 0: none.
    characters: Characters,
    /// First bytes of primary weights of two bytes.
    begins_two: [bool; 256],
}

#[derive(Clone, Copy)]
struct Weight {
    primary: [u8; 2],
    length: u8,
    capital: bool,
}

/// Pairs of characters by primary weight: a page for each first byte that occurs, in which the second (0 if there is
/// none) has a place.
struct Characters {
    /// Page 0 is empty.
    pages: Vec<[[u8; 2]; 256]>,
    page_of: [u8; 256],
}

impl Characters {
    fn new() -> Self {
        Self { pages: vec![[[0; 2]; 256]], page_of: [0; 256] }
    }

    fn of(&self, [first, second]: [u8; 2]) -> [u8; 2] {
        let page = self.page_of.get(usize::from(first)).map_or(0, |page| usize::from(*page));
        let pair = self.pages.get(page).and_then(|page| page.get(usize::from(second)));
        pair.copied().unwrap_or_default()
    }

    fn set(&mut self, Weight { primary: [first, second], capital, .. }: Weight, byte: u8) {
        let Some(page) = self.page_of.get_mut(usize::from(first)) else { return };
        if *page == 0 {
            *page = u8::try_from(self.pages.len()).unwrap_or_default();
            self.pages.push([[0; 2]; 256]);
        }
        let page = self.pages.get_mut(usize::from(*page));
        if let Some([small, large]) = page.and_then(|page| page.get_mut(usize::from(second))) {
            *(if capital { large } else { small }) = byte;
        }
    }
}

/// How a run of common weights is written: each full `most` of them as `middle`, the rest up from `low`, or down from
/// `high` if a greater weight follows.
struct Run {
    low: u8,
    middle: u8,
    high: u8,
    most: usize,
}

const SECONDARY: Run = Run { low: 0x05, middle: 0x25, high: 0x45, most: 0x21 };
const TERTIARY: Run = Run { low: 0x05, middle: 0x65, high: 0xc5, most: 0x61 };
const CAPITAL: u8 = 0xdc;
/// Stands between the levels of a key, and nowhere else.
pub(crate) const LEVEL_END: u8 = 1;

impl AsciiWeights {
    /// Asks for the key of each character by itself and of each twice; `None` if one of them is not as described above,
    /// so that every text must go through the collator.
    pub(crate) fn learn(mut key_of: impl FnMut(&str) -> Vec<u8>) -> Option<Self> {
        let mut weights = [None; 128];
        for (byte, weight) in (0u8..).zip(&mut weights) {
            let once = char::from(byte).to_string();
            let key = key_of(&once);
            *weight = match key.as_slice() {
                [LEVEL_END, LEVEL_END] => None,
                [primary @ .., LEVEL_END, 0x05, LEVEL_END, last @ (0x05 | CAPITAL)] => match primary {
                    [first] => Some(Weight { primary: [*first, 0], length: 1, capital: *last == CAPITAL }),
                    [first, second] => {
                        Some(Weight { primary: [*first, *second], length: 2, capital: *last == CAPITAL })
                    }
                    _ => return None,
                },
                _ => return None,
            };
        }
        let learned = Self::with_characters(&weights);
        // Primary weights of some scripts are shortened when they repeat; those of ASCII must not be.
        let twice = |byte: u8| char::from(byte).to_string().repeat(2);
        (0..128).all(|byte| learned.key(&twice(byte)) == key_of(&twice(byte))).then_some(learned)
    }

    fn with_characters(weights: &[Option<Weight>; 128]) -> Self {
        let (mut characters, mut begins_two) = (Characters::new(), [false; 256]);
        for (byte, weight) in (0u8..).zip(weights) {
            let Some(weight) = weight else { continue };
            characters.set(*weight, byte);
            if let (2, Some(begins)) = (weight.length, begins_two.get_mut(usize::from(weight.primary[0]))) {
                *begins = true;
            }
        }
        Self { weights: *weights, characters, begins_two }
    }

    /// Appends the text of ASCII characters whose key this is, up to the zero behind it. `None` if there is none, or if it
    /// is written in another way than here; then nothing was appended.
    pub(crate) fn read(&self, out: &mut Vec<u8>, key: &mut (impl Iterator<Item = u8> + Clone)) -> Option<()> {
        let start = out.len();
        let read = self.read_levels(out, key);
        if read.is_none() {
            out.truncate(start);
        }
        read
    }

    fn read_levels(&self, out: &mut Vec<u8>, key: &mut (impl Iterator<Item = u8> + Clone)) -> Option<()> {
        let start = out.len();
        loop {
            let first = key.next()?;
            if first == LEVEL_END {
                break;
            }
            let two = self.begins_two.get(usize::from(first)).copied()?;
            let second = if two { key.next().filter(|second| *second != END)? } else { 0 };
            let [small, _] = self.characters.of([first, second]);
            out.push(Some(small).filter(|small| *small != 0)?);
        }
        let text = out.get_mut(start..)?;
        let mut is_same = true;
        SECONDARY.write(text.len(), false, |byte| is_same &= key.next() == Some(byte));
        if !is_same || key.next()? != LEVEL_END {
            return None;
        }
        let mut tertiary = key.clone();
        self.read_capitals(text, key)?;
        self.write_tertiary(text, |byte| is_same &= tertiary.next() == Some(byte));
        (is_same && tertiary.next() == Some(END)).then_some(())
    }

    /// Puts capital letters where the tertiary weights say so, up to the zero behind them.
    fn read_capitals(&self, text: &mut [u8], tertiary: &mut impl Iterator<Item = u8>) -> Option<()> {
        let mut place = 0;
        loop {
            let byte = tertiary.next()?;
            if byte == END {
                return Some(());
            } else if byte == CAPITAL {
                let letter = text.get_mut(place)?;
                let weight = self.weights.get(usize::from(*letter)).copied().flatten()?;
                let [_, capital] = self.characters.of(weight.primary);
                *letter = Some(capital).filter(|capital| *capital != 0)?;
                place += 1;
            } else if byte < TERTIARY.middle {
                place += usize::from(byte.checked_sub(TERTIARY.low)?) + 1;
            } else if byte == TERTIARY.middle {
                place += TERTIARY.most;
            } else {
                place += usize::from(TERTIARY.high.checked_sub(byte)?) + 1;
            }
        }
    }

    /// Whether [`read`](Self::read) gives this text for its key.
    pub(crate) fn tells(&self, text: &str) -> bool {
        let tells = |byte: u8| {
            let weight = self.weights.get(usize::from(byte)).copied().flatten();
            weight.is_some_and(|weight| {
                let [small, capital] = self.characters.of(weight.primary);
                small != 0 && byte == if weight.capital { capital } else { small }
            })
        };
        text.bytes().all(tells)
    }

    fn key(&self, text: &str) -> Vec<u8> {
        let mut key = Vec::new();
        self.write(&mut key, text);
        key
    }

    fn of(&self, text: &[u8]) -> impl Iterator<Item = Weight> {
        text.iter().filter_map(|byte| self.weights.get(usize::from(*byte)).copied().flatten())
    }

    /// Appends the key of `text`, which must be ASCII.
    pub(crate) fn write(&self, out: &mut Vec<u8>, text: &str) {
        out.reserve(text.len() * 2 + 8);
        let mut count = 0;
        for weight in self.of(text.as_bytes()) {
            let [first, second] = weight.primary;
            out.push(first);
            if weight.length == 2 {
                out.push(second);
            }
            count += 1;
        }
        out.push(LEVEL_END);
        SECONDARY.write(count, false, |byte| out.push(byte));
        out.push(LEVEL_END);
        self.write_tertiary(text.as_bytes(), |byte| out.push(byte));
    }

    fn write_tertiary(&self, text: &[u8], mut out: impl FnMut(u8)) {
        let mut common = 0;
        for weight in self.of(text) {
            if weight.capital {
                TERTIARY.write(common, true, &mut out);
                out(CAPITAL);
                common = 0;
            } else {
                common += 1;
            }
        }
        TERTIARY.write(common, false, out);
    }
}

impl Run {
    fn write(&self, count: usize, before_greater: bool, mut out: impl FnMut(u8)) {
        let Some(mut rest) = count.checked_sub(1) else { return };
        while rest >= self.most {
            out(self.middle);
            rest -= self.most;
        }
        let rest = u8::try_from(rest).unwrap_or_else(|_| {
            never!("what is left of a run is shorter than its most", "{rest}");
            0
        });
        out(if before_greater { self.high - rest } else { self.low + rest });
    }
}
