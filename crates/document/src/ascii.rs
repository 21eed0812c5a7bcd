//! Collation keys of ASCII text without the collator.
//!
//! In the root locale no ASCII character forms a contraction, all have the common secondary weight, and only capital
//! letters a tertiary weight of their own. The key is then the characters' primary weights, 01, the compressed run
//! of common secondary weights, 01, and the compressed runs of tertiary weights (the compression is ICU's, from
//! `CollationKeys::writeSortKeyUpToQuaternary`). Primary weights are asked of the collator, once.

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

    /// A text that has this key, if there is one of ASCII characters that have weights.
    pub(crate) fn read(&self, key: &[u8]) -> Option<String> {
        let mut levels = key.splitn(3, |byte| *byte == LEVEL_END);
        let (primary, _secondary, tertiary) = (levels.next()?, levels.next()?, levels.next()?);
        let mut text = Vec::with_capacity(primary.len());
        let mut rest = primary.iter();
        while let Some(first) = rest.next() {
            let two = self.begins_two.get(usize::from(*first)).copied()?;
            let second = if two { *rest.next()? } else { 0 };
            text.push(self.characters.of([*first, second]));
        }
        let capitals = capitals(tertiary)?;
        let mut next = capitals.iter().peekable();
        let characters =
            text.iter().enumerate().map(
                |(place, [small, capital])| {
                    if next.next_if_eq(&&place).is_some() { *capital } else { *small }
                },
            );
        let text: Vec<u8> = characters.collect();
        if text.contains(&0) { None } else { String::from_utf8(text).ok() }
    }

    /// Whether [`read`](Self::read) gives this text for its key.
    pub(crate) fn tells(&self, text: &str) -> bool {
        let tells = |byte: u8| {
            let weight = self.weights.get(usize::from(byte)).copied().flatten();
            weight.is_some_and(|weight| {
                let [small, capital] = self.characters.of(weight.primary);
                byte == if weight.capital { capital } else { small }
            })
        };
        text.bytes().all(tells)
    }

    fn key(&self, text: &str) -> Vec<u8> {
        let mut key = Vec::new();
        self.write(&mut key, text);
        key
    }

    fn of(&self, text: &str) -> impl Iterator<Item = Weight> {
        text.bytes().filter_map(|byte| self.weights.get(usize::from(byte)).copied().flatten())
    }

    /// Appends the key of `text`, which must be ASCII.
    pub(crate) fn write(&self, out: &mut Vec<u8>, text: &str) {
        out.reserve(text.len() * 2 + 8);
        let (mut count, mut capitals) = (0, 0);
        for weight in self.of(text) {
            let [first, second] = weight.primary;
            out.push(first);
            if weight.length == 2 {
                out.push(second);
            }
            count += 1;
            capitals += usize::from(weight.capital);
        }
        out.push(LEVEL_END);
        SECONDARY.write(out, count, false);
        out.push(LEVEL_END);
        let mut common = count;
        if capitals > 0 {
            common = 0;
            for weight in self.of(text) {
                if weight.capital {
                    TERTIARY.write(out, common, true);
                    out.push(CAPITAL);
                    common = 0;
                } else {
                    common += 1;
                }
            }
        }
        TERTIARY.write(out, common, false);
    }
}

/// Which characters are capital letters.
fn capitals(tertiary: &[u8]) -> Option<Vec<usize>> {
    let (mut capitals, mut place) = (Vec::new(), 0);
    for byte in tertiary {
        if *byte == CAPITAL {
            capitals.push(place);
            place += 1;
        } else if *byte < TERTIARY.middle {
            place += usize::from(byte.checked_sub(TERTIARY.low)?) + 1;
        } else if *byte == TERTIARY.middle {
            place += TERTIARY.most;
        } else {
            place += usize::from(TERTIARY.high.checked_sub(*byte)?) + 1;
        }
    }
    Some(capitals)
}

impl Run {
    fn write(&self, out: &mut Vec<u8>, count: usize, before_greater: bool) {
        let Some(mut rest) = count.checked_sub(1) else { return };
        while rest >= self.most {
            out.push(self.middle);
            rest -= self.most;
        }
        let rest = u8::try_from(rest).unwrap_or_default();
        out.push(if before_greater { self.high - rest } else { self.low + rest });
    }
}
