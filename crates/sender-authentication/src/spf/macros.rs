//! Macros in SPF records (RFC 7208 §7).

/// Bytes of a text after its macros are replaced; DNS names are cut to 253 afterwards.
const EXPANDED_BYTES_MAX: usize = 4 << 10;

/// Bytes of a name (RFC 7208 §7.3).
const NAME_BYTES_MAX: usize = 253;

/// What a macro stands for.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Letter {
    Sender,
    LocalPart,
    SenderDomain,
    Domain,
    Address,
    Name,
    Version,
    Helo,
    ReadableAddress,
    Receiver,
    Time,
}

#[derive(Clone, Debug, PartialEq, Eq)]
enum Piece {
    Text(String),
    Macro { letter: Letter, keep: Option<u8>, is_reversed: bool, delimiters: String, is_escaped: bool },
}

/// A text with macros.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct MacroText {
    pieces: Vec<Piece>,
}

impl MacroText {
    /// Reads a macro-string (RFC 7208 §7.1).
    pub(crate) fn parse(text: &str) -> Option<Self> {
        let mut pieces = Vec::new();
        let mut plain = String::new();
        let mut rest = text;
        while let Some(first) = rest.chars().next() {
            let after = rest.get(first.len_utf8()..)?;
            if first != '%' {
                if !first.is_ascii_graphic() {
                    return None;
                }
                plain.push(first);
                rest = after;
                continue;
            }
            let sign = after.chars().next()?;
            rest = after.get(sign.len_utf8()..)?;
            match sign {
                '%' => plain.push('%'),
                '_' => plain.push(' '),
                '-' => plain.push_str("%20"),
                '{' => {
                    let (inside, behind) = rest.split_once('}')?;
                    if !plain.is_empty() {
                        pieces.push(Piece::Text(std::mem::take(&mut plain)));
                    }
                    pieces.push(macro_piece(inside)?);
                    rest = behind;
                }
                _ => return None,
            }
        }
        if !plain.is_empty() {
            pieces.push(Piece::Text(plain));
        }
        Some(Self { pieces })
    }

    /// Reads a domain-spec (RFC 7208 §7.1): it ends with a macro, or with a label that is not all digits. Macros of explanations
    /// are not allowed in it.
    pub(crate) fn domain(text: &str) -> Option<Self> {
        let parsed = Self::parse(text)?;
        let is_end = match parsed.pieces.last()? {
            Piece::Macro { .. } => true,
            Piece::Text(_) => {
                let text = text.strip_suffix('.').unwrap_or(text);
                let (_, label) = text.rsplit_once('.')?;
                let ends = |label: &str| label.starts_with('-') || label.ends_with('-');
                let is_label = label.bytes().all(|byte| byte.is_ascii_alphanumeric() || byte == b'-');
                // A percent sign at the end is an escape, such as %%.
                !label.is_empty()
                    && is_label
                    && !ends(label)
                    && !label.bytes().all(|byte| byte.is_ascii_digit())
            }
        };
        let explains = |piece: &Piece| {
            let Piece::Macro { letter, .. } = piece else { return false };
            matches!(letter, Letter::ReadableAddress | Letter::Receiver | Letter::Time)
        };
        (is_end && !parsed.pieces.iter().any(explains)).then_some(parsed)
    }

    /// Whether it needs the name of the sender's address.
    pub(crate) fn needs_name(&self) -> bool {
        let is_name = |piece: &Piece| matches!(piece, Piece::Macro { letter: Letter::Name, .. });
        self.pieces.iter().any(is_name)
    }

    /// The text with its macros replaced; `None` if it becomes too long.
    pub(crate) fn expand(&self, value: impl Fn(Letter) -> String) -> Option<String> {
        let mut out = String::new();
        for piece in &self.pieces {
            match piece {
                Piece::Text(text) => out.push_str(text),
                Piece::Macro { letter, keep, is_reversed, delimiters, is_escaped } => {
                    let value = value(*letter);
                    let mut parts: Vec<&str> =
                        value.split(|letter: char| delimiters.contains(letter)).collect();
                    if *is_reversed {
                        parts.reverse();
                    }
                    let from = keep.map_or(0, |keep| parts.len().saturating_sub(usize::from(keep)));
                    let value = parts.get(from..).unwrap_or_default().join(".");
                    out.push_str(&if *is_escaped { escaped(&value) } else { value });
                }
            }
            if out.len() > EXPANDED_BYTES_MAX {
                return None;
            }
        }
        Some(out)
    }

    /// The name that it becomes: of one that is too long, labels are left out from the left (RFC 7208 §7.3).
    pub(crate) fn expand_name(&self, value: impl Fn(Letter) -> String) -> Option<String> {
        let mut name = self.expand(value)?;
        while name.len() > NAME_BYTES_MAX {
            let dot = name.find('.')?;
            name.drain(..=dot);
        }
        Some(name)
    }
}

/// `letter [digits] ["r"] *delimiter`
fn macro_piece(text: &str) -> Option<Piece> {
    let mut letters = text.chars();
    let first = letters.next()?;
    let letter = match first.to_ascii_lowercase() {
        's' => Letter::Sender,
        'l' => Letter::LocalPart,
        'o' => Letter::SenderDomain,
        'd' => Letter::Domain,
        'i' => Letter::Address,
        'p' => Letter::Name,
        'v' => Letter::Version,
        'h' => Letter::Helo,
        'c' => Letter::ReadableAddress,
        'r' => Letter::Receiver,
        't' => Letter::Time,
        _ => return None,
    };
    let rest = letters.as_str();
    let digits_end = rest.find(|letter: char| !letter.is_ascii_digit()).unwrap_or(rest.len());
    let (digits, rest) = rest.split_at_checked(digits_end)?;
    let keep = match digits {
        "" => None,
        // RFC 7208 §7.3: 128 labels are always enough, zero is an error.
        digits if digits.len() <= 6 => match digits.parse::<u32>().ok()? {
            0 => return None,
            number => Some(u8::try_from(number.min(128)).unwrap_or(128)),
        },
        _ => return None,
    };
    let (is_reversed, rest) = match rest.strip_prefix(['r', 'R']) {
        Some(rest) => (true, rest),
        None => (false, rest),
    };
    if !rest.chars().all(|letter| ".-+,/_=".contains(letter)) {
        return None;
    }
    let delimiters = if rest.is_empty() { ".".to_owned() } else { rest.to_owned() };
    Some(Piece::Macro { letter, keep, is_reversed, delimiters, is_escaped: first.is_ascii_uppercase() })
}

/// RFC 7208 §7.3: what RFC 3986 does not leave as it is becomes `%` and two digits.
fn escaped(text: &str) -> String {
    use std::fmt::Write as _;
    let mut out = String::with_capacity(text.len());
    for byte in text.bytes() {
        if byte.is_ascii_alphanumeric() || b"-._~".contains(&byte) {
            out.push(char::from(byte));
        } else {
            _ = write!(out, "%{byte:02X}");
        }
    }
    out
}
