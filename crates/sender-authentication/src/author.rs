//! Author domains (RFC 9989 §3.2.2, §5.3.1): whom a message claims to be from.

use crate::head::Head;
use crate::name::DomainName;

/// Bytes of one From field that are looked at.
const FIELD_BYTES_MAX: usize = 64 << 10;

/// Different domains that are told apart; a message has one.
const DOMAINS_MAX: usize = 8;

/// Comments in comments (RFC 5322 §3.2.2 sets no limit).
const COMMENT_DEPTH_MAX: usize = 32;

/// What is wrong with who a message is from.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
pub enum AuthorFault {
    /// RFC 5322 §3.6: there is exactly one From field.
    #[error("there is no From field")]
    Absent,
    /// RFC 5322 §3.6: there is exactly one From field.
    #[error("there are several From fields")]
    SeveralFields,
    /// RFC 9989 §5.3.1: no domain can be taken out of it.
    #[error("the From field has no address with a domain")]
    NoDomain,
    /// RFC 5322 §3.4: readers may see different addresses in it.
    #[error("the From field is not a list of addresses")]
    Malformed,
    /// RFC 9989 §5.3.1, §11.5: several addresses of different domains.
    #[error("the From field has addresses of several domains")]
    SeveralDomains,
}

/// The domains that a message claims to be from.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Authors {
    /// Each domain once, in the order of the addresses; all of them, in all From fields.
    pub domains: Vec<DomainName>,
    /// Why there is no single author domain, or no safe one.
    pub fault: Option<AuthorFault>,
}

impl Authors {
    /// Finds the domains in all From fields of a head.
    #[must_use]
    pub fn of(head: &Head<'_>) -> Self {
        let mut found = Found::default();
        let mut fields = 0_usize;
        for field in head.named("From") {
            fields += 1;
            let value = field.value.get(..FIELD_BYTES_MAX).unwrap_or(field.value);
            let text = std::str::from_utf8(value).ok().filter(|text| text.len() == field.value.len());
            found.is_malformed |= !text.is_some_and(|text| found.read(text));
            if found.is_malformed {
                found.search(&String::from_utf8_lossy(value));
            }
        }
        let fault = match (fields, found.domains.len()) {
            (0, _) => Some(AuthorFault::Absent),
            (2.., _) => Some(AuthorFault::SeveralFields),
            _ if found.is_malformed => Some(AuthorFault::Malformed),
            (_, 0) => Some(AuthorFault::NoDomain),
            (_, 1) => None,
            _ => Some(AuthorFault::SeveralDomains),
        };
        Self { domains: found.domains, fault }
    }

    /// The one domain of a message that is as it should be.
    #[must_use]
    pub fn single(&self) -> Option<&DomainName> {
        self.domains.first().filter(|_| self.fault.is_none())
    }
}

#[derive(Default)]
struct Found {
    domains: Vec<DomainName>,
    is_malformed: bool,
}

/// A piece of a field; comments and white space are left out.
#[derive(Clone, Debug, PartialEq, Eq)]
enum Token<'a> {
    Atom(&'a str),
    Quoted,
    Literal,
    Sign(char),
}

impl Found {
    /// Reads a field; `false` if it is no list of addresses.
    fn read(&mut self, text: &str) -> bool {
        let Some(tokens) = tokens(text) else { return false };
        // RFC 5322 §3.4: a group is a name, a colon, addresses and a semicolon. Its name is no address.
        let mut start = 0;
        let (mut is_in_angle, mut is_in_group) = (false, false);
        for (place, token) in tokens.iter().enumerate() {
            let piece = || tokens.get(start..place).unwrap_or_default();
            match token {
                Token::Sign('<') if is_in_angle => self.is_malformed = true,
                Token::Sign('<') => is_in_angle = true,
                Token::Sign('>') => is_in_angle = false,
                Token::Sign(':') if !is_in_angle => {
                    let is_name = |token: &Token| matches!(token, Token::Atom(_) | Token::Quoted);
                    self.is_malformed |= is_in_group || piece().is_empty() || !piece().iter().all(is_name);
                    is_in_group = true;
                    start = place + 1;
                }
                Token::Sign(',') if !is_in_angle => {
                    self.mailbox(piece());
                    start = place + 1;
                }
                Token::Sign(';') if !is_in_angle => {
                    self.is_malformed |= !is_in_group;
                    self.mailbox(piece());
                    is_in_group = false;
                    start = place + 1;
                }
                _ => {}
            }
        }
        self.is_malformed |= is_in_angle || is_in_group;
        self.mailbox(tokens.get(start..).unwrap_or_default());
        !self.is_malformed
    }

    /// Finds everything that a reader of a field that cannot be read may take for the domain of an address.
    fn search(&mut self, text: &str) {
        for piece in text.split('@').skip(1) {
            let ends = |letter: char| {
                letter.is_ascii() && !letter.is_ascii_alphanumeric() && !"-._".contains(letter)
            };
            let end = piece.find(ends).unwrap_or(piece.len());
            let name = DomainName::parse(piece.get(..end).unwrap_or_default());
            let is_new = |name: &DomainName| name.labels() > 1 && !self.domains.contains(name);
            if let Some(name) = name.filter(is_new)
                && self.domains.len() < DOMAINS_MAX
            {
                self.domains.push(name);
            }
        }
    }

    /// One mailbox: an address, or a name with an address in angles. Every address that anybody might see in it counts.
    fn mailbox(&mut self, tokens: &[Token<'_>]) {
        let Some(first) = tokens.iter().position(|token| *token == Token::Sign('<')) else {
            // RFC 5322 §4.4: elements of a list may be empty.
            if !tokens.is_empty() {
                self.address(tokens);
            }
            return;
        };
        let after = tokens.get(first + 1..).unwrap_or_default();
        let mut pieces = after.split(|token| *token == Token::Sign('>'));
        self.route_address(pieces.next().unwrap_or_default());
        for rest in pieces.filter(|rest| !rest.is_empty()) {
            self.is_malformed = true;
            let from = rest.iter().position(|token| *token == Token::Sign('<')).map_or(0, |place| place + 1);
            self.route_address(rest.get(from..).unwrap_or_default());
        }
    }

    /// What stands between angles, which may begin with a route (RFC 5322 §4.4).
    fn route_address(&mut self, tokens: &[Token<'_>]) {
        let is_route = tokens.first() == Some(&Token::Sign('@'));
        let colon = tokens.iter().position(|token| *token == Token::Sign(':')).filter(|_| is_route);
        self.address(colon.map_or(tokens, |colon| tokens.get(colon + 1..).unwrap_or_default()));
    }

    fn address(&mut self, tokens: &[Token<'_>]) {
        let mut halves = tokens.rsplitn(2, |token| *token == Token::Sign('@'));
        let (domain, local) = (halves.next().unwrap_or_default(), halves.next());
        let is_local = |token: &Token| matches!(token, Token::Atom(_) | Token::Quoted | Token::Sign('.'));
        let is_whole = local.is_some_and(|local| !local.is_empty() && local.iter().all(is_local));
        self.is_malformed |= !is_whole;
        if local.is_none() {
            return;
        }
        let mut name = String::new();
        let mut wants_dot = false;
        for token in domain {
            match token {
                Token::Atom(atom) if !wants_dot => name.push_str(atom),
                Token::Sign('.') if wants_dot => name.push('.'),
                // An address of a network is no domain of an author.
                Token::Literal => return,
                _ => self.is_malformed = true,
            }
            wants_dot = matches!(token, Token::Atom(_));
        }
        match DomainName::parse(&name) {
            Some(name) if self.domains.contains(&name) => {}
            Some(name) if self.domains.len() < DOMAINS_MAX => self.domains.push(name),
            _ => self.is_malformed = true,
        }
    }
}

/// The pieces of a field; `None` where something is not closed, or stands where nothing may.
fn tokens(text: &str) -> Option<Vec<Token<'_>>> {
    let mut tokens = Vec::new();
    let mut rest = text;
    while let Some(first) = rest.chars().next() {
        let after = rest.get(first.len_utf8()..)?;
        rest = match first {
            ' ' | '\t' | '\r' | '\n' => after,
            '(' => comment_end(after)?,
            '"' => {
                tokens.push(Token::Quoted);
                quoted_end(after, '"')?
            }
            '[' => {
                tokens.push(Token::Literal);
                quoted_end(after, ']')?
            }
            '<' | '>' | ':' | ';' | ',' | '@' | '.' => {
                tokens.push(Token::Sign(first));
                after
            }
            first if first.is_control() || matches!(first, ')' | ']' | '\\') => return None,
            _ => {
                let ends = |letter: char| {
                    letter.is_control() || letter.is_ascii_whitespace() || "()<>[]:;@\\,.\"".contains(letter)
                };
                let end = rest.find(ends).unwrap_or(rest.len());
                tokens.push(Token::Atom(rest.get(..end)?));
                rest.get(end..)?
            }
        };
    }
    Some(tokens)
}

/// What follows a quoted string or a literal, whose beginning has been read.
fn quoted_end(text: &str, end: char) -> Option<&str> {
    let mut letters = text.char_indices();
    while let Some((place, letter)) = letters.next() {
        match letter {
            '\\' => _ = letters.next()?,
            letter if letter == end => return text.get(place + letter.len_utf8()..),
            _ => {}
        }
    }
    None
}

/// What follows a comment, whose parenthesis has been read.
fn comment_end(text: &str) -> Option<&str> {
    let mut depth = 1_usize;
    let mut letters = text.char_indices();
    while let Some((place, letter)) = letters.next() {
        match letter {
            '\\' => _ = letters.next()?,
            '(' if depth == COMMENT_DEPTH_MAX => return None,
            '(' => depth += 1,
            ')' => depth -= 1,
            _ => {}
        }
        if depth == 0 {
            return text.get(place + 1..);
        }
    }
    None
}
