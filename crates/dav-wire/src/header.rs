//! Headers of WebDAV (RFC 4918, section 10), conditions (RFC 9110, section 13.1), preferences (RFC 7240, RFC 8144), and
//! the paths of resources.

use std::fmt;

use percent_encoding::{AsciiSet, NON_ALPHANUMERIC, percent_decode, percent_encode};

/// Conditions and tags of one header.
const CONDITIONS_MAX: usize = 256;

/// How deep a request goes.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[allow(missing_docs, reason = "the names say it")]
pub enum Depth {
    Zero,
    One,
    Infinity,
}

impl Depth {
    /// Reads the header.
    #[must_use]
    pub fn parse(text: &str) -> Option<Self> {
        match text.trim() {
            "0" => Some(Self::Zero),
            "1" => Some(Self::One),
            text if text.eq_ignore_ascii_case("infinity") => Some(Self::Infinity),
            _ => None,
        }
    }
}

impl fmt::Display for Depth {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        formatter.write_str(match self {
            Self::Zero => "0",
            Self::One => "1",
            Self::Infinity => "infinity",
        })
    }
}

/// Reads Overwrite; without the header it is `true`.
#[must_use]
pub fn parse_overwrite(text: &str) -> Option<bool> {
    match text.trim() {
        "T" | "t" => Some(true),
        "F" | "f" => Some(false),
        _ => None,
    }
}

/// How long a lock is to last.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[allow(missing_docs, reason = "the names say it")]
pub enum Timeout {
    Infinite,
    Seconds(u32),
}

/// Reads Timeout: what the client would like, best first. What is not known is passed over.
#[must_use]
pub fn parse_timeout(text: &str) -> Vec<Timeout> {
    let one = |text: &str| {
        let text = text.trim();
        if text.eq_ignore_ascii_case("infinite") {
            return Some(Timeout::Infinite);
        }
        let (name, seconds) = text.split_once('-')?;
        name.eq_ignore_ascii_case("second").then(|| seconds.parse().ok().map(Timeout::Seconds)).flatten()
    };
    text.split(',').take(CONDITIONS_MAX).filter_map(one).collect()
}

/// The tag of a version.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct EntityTag {
    /// `W/`: it does not say that the bytes are the same.
    pub weak: bool,
    /// What stands between the quotation marks.
    pub tag: String,
}

impl EntityTag {
    fn read(text: &str) -> Option<(Self, &str)> {
        let (weak, rest) = match text.strip_prefix("W/") {
            Some(rest) => (true, rest),
            None => (false, text),
        };
        let (tag, rest) = rest.strip_prefix('"')?.split_once('"')?;
        let valid = tag.chars().all(|letter| letter > ' ' && letter != '\u{7f}');
        valid.then(|| (Self { weak, tag: tag.to_owned() }, rest))
    }
}

impl fmt::Display for EntityTag {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(formatter, "{}\"{}\"", if self.weak { "W/" } else { "" }, self.tag)
    }
}

/// If-Match, If-None-Match and If-Schedule-Tag-Match.
#[derive(Clone, Debug, PartialEq, Eq)]
#[allow(missing_docs, reason = "the names say it")]
pub enum TagCondition {
    Any,
    Tags(Vec<EntityTag>),
}

impl TagCondition {
    /// Reads the header.
    #[must_use]
    pub fn parse(text: &str) -> Option<Self> {
        let mut rest = text.trim();
        if rest == "*" {
            return Some(Self::Any);
        }
        let mut tags = Vec::new();
        loop {
            let (tag, after) = EntityTag::read(rest)?;
            tags.push(tag);
            rest = after.trim_start();
            if rest.is_empty() {
                return Some(Self::Tags(tags));
            }
            rest = rest.strip_prefix(',')?.trim_start();
            if tags.len() >= CONDITIONS_MAX {
                return None;
            }
        }
    }
}

impl fmt::Display for TagCondition {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Any => formatter.write_str("*"),
            Self::Tags(tags) => {
                let tags: Vec<String> = tags.iter().map(EntityTag::to_string).collect();
                formatter.write_str(&tags.join(", "))
            }
        }
    }
}

/// What has to be so.
#[derive(Clone, Debug, PartialEq, Eq)]
#[allow(missing_docs, reason = "the names say it")]
pub enum StateCondition {
    /// A lock with this token is held.
    Token(String),
    /// The version has this tag.
    Tag(EntityTag),
}

/// Conditions that all have to be so; the first of each pair says that it must not.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ConditionList {
    /// The resource; nothing is that of the request.
    pub resource: Option<String>,
    /// Negated or not, and what.
    pub conditions: Vec<(bool, StateCondition)>,
}

/// The header If: one of the lists has to be so (RFC 4918, section 10.4).
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct IfHeader(pub Vec<ConditionList>);

impl IfHeader {
    /// Reads the header.
    #[must_use]
    pub fn parse(text: &str) -> Option<Self> {
        let mut lists = Vec::new();
        let mut resource = None;
        let mut total = 0;
        let mut rest = text.trim();
        while !rest.is_empty() {
            if let Some(tagged) = rest.strip_prefix('<') {
                let (address, after) = tagged.split_once('>')?;
                resource = Some(address.to_owned());
                rest = after.trim_start();
            }
            let mut inside = rest.strip_prefix('(')?.trim_start();
            let mut conditions = Vec::new();
            loop {
                if let Some(after) = inside.strip_prefix(')') {
                    rest = after.trim_start();
                    break;
                }
                let (negated, after) = match inside.get(..3).filter(|word| word.eq_ignore_ascii_case("not")) {
                    Some(_) => (true, inside.get(3..)?.trim_start()),
                    None => (false, inside),
                };
                let (condition, after) = condition(after)?;
                conditions.push((negated, condition));
                inside = after.trim_start();
                total += 1;
                if total > CONDITIONS_MAX {
                    return None;
                }
            }
            if conditions.is_empty() {
                return None;
            }
            lists.push(ConditionList { resource: resource.clone(), conditions });
        }
        (!lists.is_empty()).then_some(Self(lists))
    }
}

fn condition(text: &str) -> Option<(StateCondition, &str)> {
    if let Some(token) = text.strip_prefix('<') {
        let (token, after) = token.split_once('>')?;
        return Some((StateCondition::Token(token.to_owned()), after));
    }
    let (tag, after) = EntityTag::read(text.strip_prefix('[')?)?;
    Some((StateCondition::Tag(tag), after.strip_prefix(']')?))
}

impl fmt::Display for IfHeader {
    fn fmt(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        for (index, list) in self.0.iter().enumerate() {
            if index > 0 {
                out.write_str(" ")?;
            }
            if let Some(resource) = &list.resource {
                write!(out, "<{resource}> ")?;
            }
            out.write_str("(")?;
            for (index, (negated, condition)) in list.conditions.iter().enumerate() {
                let space = if index == 0 { "" } else { " " };
                let not = if *negated { "Not " } else { "" };
                match condition {
                    StateCondition::Token(token) => write!(out, "{space}{not}<{token}>")?,
                    StateCondition::Tag(tag) => write!(out, "{space}{not}[{tag}]")?,
                }
            }
            out.write_str(")")?;
        }
        Ok(())
    }
}

/// Reads Lock-Token: `<urn:uuid:..>`.
#[must_use]
pub fn parse_lock_token(text: &str) -> Option<&str> {
    let token = text.trim().strip_prefix('<')?.strip_suffix('>')?;
    (!token.is_empty() && !token.contains(['<', '>'])).then_some(token)
}

/// What a client would like (RFC 8144).
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
#[allow(missing_docs, reason = "the names say it")]
pub struct Preferences {
    pub return_minimal: bool,
    pub return_representation: bool,
    pub depth_noroot: bool,
}

impl Preferences {
    /// Reads Prefer; what is not known is passed over.
    #[must_use]
    pub fn parse(text: &str) -> Self {
        let mut preferences = Self::default();
        for word in text.split([',', ';']).take(CONDITIONS_MAX) {
            match word.trim().to_ascii_lowercase().replace('"', "").as_str() {
                "return=minimal" => preferences.return_minimal = true,
                "return=representation" => preferences.return_representation = true,
                "depth-noroot" => preferences.depth_noroot = true,
                _ => {}
            }
        }
        preferences
    }
}

/// The path of Destination, which is an address or a path, still encoded; and the host, if it is an address.
#[must_use]
pub fn parse_destination(text: &str) -> Option<(Option<&str>, &str)> {
    let text = text.trim();
    if text.starts_with('/') && !text.starts_with("//") {
        return Some((None, text));
    }
    let (scheme, rest) = text.split_once("://")?;
    if !scheme.eq_ignore_ascii_case("http") && !scheme.eq_ignore_ascii_case("https") {
        return None;
    }
    let (host, path) = rest.split_at(rest.find('/').unwrap_or(rest.len()));
    (!host.is_empty()).then_some((Some(host), if path.is_empty() { "/" } else { path }))
}

/// What stands in a segment of a path as it is (RFC 3986, section 3.3).
const SEGMENT: &AsciiSet = &NON_ALPHANUMERIC
    .remove(b'-')
    .remove(b'.')
    .remove(b'_')
    .remove(b'~')
    .remove(b'!')
    .remove(b'$')
    .remove(b'\'')
    .remove(b'(')
    .remove(b')')
    .remove(b'*')
    .remove(b'+')
    .remove(b',')
    .remove(b';')
    .remove(b'=')
    .remove(b':')
    .remove(b'@');

/// The segments of a path, each decoded once: a name may hold a slash, and is never a path. `None` if the path does not
/// begin with a slash, a percent sign has no two digits behind it, or a segment is `.` or `..`. An empty segment at the
/// end, that of a collection, is left out.
#[must_use]
pub fn path_segments(path: &str) -> Option<Vec<Vec<u8>>> {
    let path = path.split(['?', '#']).next()?.strip_prefix('/')?;
    let path = path.strip_suffix('/').unwrap_or(path);
    if path.is_empty() {
        return Some(Vec::new());
    }
    let segment = |segment: &str| {
        let bytes = segment.as_bytes();
        let valid = bytes.iter().enumerate().filter(|(_, byte)| **byte == b'%').all(|(at, _)| {
            bytes.get(at + 1..at + 3).is_some_and(|digits| digits.iter().all(u8::is_ascii_hexdigit))
        });
        let decoded: Vec<u8> = percent_decode(bytes).collect();
        (valid && !matches!(decoded.as_slice(), b"" | b"." | b"..")).then_some(decoded)
    };
    path.split('/').map(segment).collect()
}

/// A name as a segment of a path, in its one spelling.
#[must_use]
pub fn encode_segment(name: &[u8]) -> String {
    percent_encode(name, SEGMENT).to_string()
}
