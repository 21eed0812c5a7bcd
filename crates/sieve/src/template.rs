//! Strings with variables in them (RFC 5229, section 3) and encoded characters (RFC 5228, section 2.4.2.4).

/// A variable, whose name is in lower case.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) enum VariableName {
    /// Of the script itself, or what `global` names.
    Own(String),
    /// `global.name` (RFC 6609, section 3.4.2).
    Global(String),
}

#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) enum Piece {
    Text(String),
    Variable(VariableName),
    /// `${1}`
    Capture(usize),
}

/// A string whose variables are put in when it is used.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(crate) struct Template {
    pub(crate) pieces: Vec<Piece>,
}

impl Template {
    pub(crate) fn plain(text: &str) -> Self {
        Self { pieces: vec![Piece::Text(text.to_owned())] }
    }

    /// The text, if it has no variables.
    pub(crate) fn constant(&self) -> Option<&str> {
        match self.pieces.as_slice() {
            [] => Some(""),
            [Piece::Text(text)] => Some(text),
            _ => None,
        }
    }

    /// Reads `${name}` in a text. What looks nearly like it stays as it is (RFC 5229, section 3).
    ///
    /// # Errors
    /// What is wrong with a variable: the number is too large, or its namespace is unknown.
    pub(crate) fn parse(text: &str, has_global: bool) -> Result<Self, String> {
        let mut pieces = Vec::new();
        let mut plain = String::new();
        let mut rest = text;
        while let Some(start) = rest.find("${") {
            let (before, from) = rest.split_at(start);
            plain.push_str(before);
            let found = from.get(2..).and_then(|inner| inner.split_once('}'));
            let piece = match found {
                Some((name, _)) => variable(name, has_global)?,
                None => None,
            };
            match (piece, found) {
                (Some(piece), Some((_, after))) => {
                    if !plain.is_empty() {
                        pieces.push(Piece::Text(std::mem::take(&mut plain)));
                    }
                    pieces.push(piece);
                    rest = after;
                }
                _ => {
                    plain.push_str("${");
                    rest = from.get(2..).unwrap_or_default();
                }
            }
        }
        plain.push_str(rest);
        if !plain.is_empty() {
            pieces.push(Piece::Text(plain));
        }
        Ok(Self { pieces })
    }
}

/// `${32}` is the last one.
pub(crate) const CAPTURES_MAX: usize = 32;

fn variable(name: &str, has_global: bool) -> Result<Option<Piece>, String> {
    if !name.is_empty() && name.bytes().all(|byte| byte.is_ascii_digit()) {
        let number = name.parse().ok().filter(|number: &usize| *number <= CAPTURES_MAX);
        return match number {
            Some(number) => Ok(Some(Piece::Capture(number))),
            None => Err(format!("${{{name}}}")),
        };
    }
    if is_identifier(name) {
        return Ok(Some(Piece::Variable(VariableName::Own(name.to_ascii_lowercase()))));
    }
    let Some((namespace, inner)) = name.split_once('.') else { return Ok(None) };
    if !is_identifier(namespace) || !inner.split('.').all(is_identifier) {
        return Ok(None);
    }
    if has_global && namespace.eq_ignore_ascii_case("global") && is_identifier(inner) {
        return Ok(Some(Piece::Variable(VariableName::Global(inner.to_ascii_lowercase()))));
    }
    Err(format!("${{{name}}}"))
}

/// Longest name of a variable; RFC 5229 (section 6) asks for 32 characters.
const NAME_MAX_BYTES: usize = 64;

pub(crate) fn is_identifier(name: &str) -> bool {
    let mut characters = name.chars();
    let first = characters.next().is_some_and(|c| c.is_ascii_alphabetic() || c == '_');
    first && name.len() <= NAME_MAX_BYTES && characters.all(|c| c.is_ascii_alphanumeric() || c == '_')
}

/// The name of a variable as `set` and `global` have it.
pub(crate) fn variable_name(name: &str, has_global: bool) -> Option<VariableName> {
    match variable(name, has_global) {
        Ok(Some(Piece::Variable(name))) => Some(name),
        _ => None,
    }
}

/// Puts encoded characters in. What is nearly one stays as it is.
///
/// # Errors
/// The expression that is no character.
pub(crate) fn decode_characters(text: &str) -> Result<String, String> {
    let mut out: Vec<u8> = Vec::with_capacity(text.len());
    let mut rest = text;
    while let Some(start) = rest.find("${") {
        let (before, from) = rest.split_at(start);
        out.extend_from_slice(before.as_bytes());
        let found = from.get(2..).and_then(|inner| inner.split_once('}'));
        match found.map(|(inner, after)| (encoded(inner), inner, after)) {
            Some((Some(Ok(bytes)), _, after)) => {
                out.extend_from_slice(&bytes);
                rest = after;
            }
            Some((Some(Err(())), inner, _)) => return Err(format!("${{{inner}}}")),
            _ => {
                out.extend_from_slice(b"${");
                rest = from.get(2..).unwrap_or_default();
            }
        }
    }
    out.extend_from_slice(rest.as_bytes());
    String::from_utf8(out).ok().filter(|text| !text.contains('\0')).ok_or_else(|| text.to_owned())
}

/// The bytes of `hex: 24 24` or `unicode: 40`; `None` if it is not of this form.
fn encoded(inner: &str) -> Option<Result<Vec<u8>, ()>> {
    let (kind, list) = inner.split_once(':')?;
    let is_unicode = kind.eq_ignore_ascii_case("unicode");
    if !is_unicode && !kind.eq_ignore_ascii_case("hex") {
        return None;
    }
    let mut bytes = Vec::new();
    let blank = |c: char| matches!(c, ' ' | '\t' | '\r' | '\n');
    let words = || list.split(blank).filter(|word| !word.is_empty());
    if words().next().is_none() || !list.chars().all(|c| blank(c) || c.is_ascii_hexdigit()) {
        return None;
    }
    for word in words() {
        if is_unicode {
            let number = u32::from_str_radix(word.trim_start_matches('0'), 16);
            match number.ok().and_then(char::from_u32) {
                Some(character) => bytes.extend_from_slice(character.encode_utf8(&mut [0; 4]).as_bytes()),
                None => return Some(Err(())),
            }
        } else if word.len() <= 2 {
            bytes.push(u8::from_str_radix(word, 16).ok()?);
        } else {
            return None;
        }
    }
    Some(Ok(bytes))
}
