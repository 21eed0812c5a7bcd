//! Addresses of a header (RFC 5322, section 3.4, with the obsolete forms of section 4.4), as ENVELOPE has them.

use scrinium_imap_wire::Address;

use crate::field::tidied;

/// Addresses of one field; what follows is left out.
const ADDRESSES_MAX: usize = 10_000;

/// Comments in comments.
const COMMENT_DEPTH_MAX: usize = 64;

/// A piece of the field between its separators.
#[derive(Clone, Debug, PartialEq, Eq)]
enum Token {
    /// An atom or a quoted string, unescaped; whether it was quoted.
    Word(Vec<u8>, bool),
    /// `.`
    Dot,
    /// `@`
    At,
    /// `<`, `>`, `:`, `;`, `,`
    Sign(u8),
    /// A comment.
    Comment(Vec<u8>),
}

struct Tokens<'a> {
    rest: &'a [u8],
}

impl Iterator for Tokens<'_> {
    type Item = Token;

    fn next(&mut self) -> Option<Token> {
        self.rest = self.rest.trim_ascii_start();
        let (first, after) = self.rest.split_first()?;
        Some(match first {
            b'.' => self.sign(after, Token::Dot),
            b'@' => self.sign(after, Token::At),
            b'<' | b'>' | b':' | b';' | b',' => self.sign(after, Token::Sign(*first)),
            b'"' => self.quoted(after),
            b'(' => self.comment(after),
            b'[' => self.literal(),
            _ => self.atom(),
        })
    }
}

impl<'a> Tokens<'a> {
    fn sign(&mut self, after: &'a [u8], token: Token) -> Token {
        self.rest = after;
        token
    }

    fn quoted(&mut self, text: &'a [u8]) -> Token {
        let (mut word, mut at) = (Vec::new(), 0);
        while let Some(byte) = text.get(at) {
            at += 1;
            match byte {
                b'"' => break,
                b'\\' => {
                    word.extend(text.get(at));
                    at += 1;
                }
                byte => word.push(*byte),
            }
        }
        self.rest = text.get(at..).unwrap_or_default();
        Token::Word(word, true)
    }

    fn comment(&mut self, text: &'a [u8]) -> Token {
        let (mut comment, mut at, mut depth) = (Vec::new(), 0, 1_usize);
        while let Some(byte) = text.get(at) {
            at += 1;
            match byte {
                b'(' if depth < COMMENT_DEPTH_MAX => depth += 1,
                b')' => depth -= 1,
                b'\\' => {
                    comment.extend(text.get(at));
                    at += 1;
                    continue;
                }
                _ => {}
            }
            if depth == 0 {
                break;
            }
            comment.push(*byte);
        }
        self.rest = text.get(at..).unwrap_or_default();
        Token::Comment(comment)
    }

    /// `[192.0.2.1]`
    fn literal(&mut self) -> Token {
        let end = self.rest.iter().position(|byte| *byte == b']').map_or(self.rest.len(), |end| end + 1);
        let (word, rest) = self.rest.split_at(end);
        self.rest = rest;
        Token::Word(word.to_vec(), false)
    }

    fn atom(&mut self) -> Token {
        let is_end = |byte: &u8| byte.is_ascii_whitespace() || b".@<>:;,\"([".contains(byte);
        // An unexpected byte such as `]` is a word by itself, so that there is always progress.
        let end = self.rest.iter().position(is_end).unwrap_or(self.rest.len()).max(1);
        let (word, rest) = self.rest.split_at(end);
        self.rest = rest;
        Token::Word(word.to_vec(), false)
    }
}

/// Reads the value of a field, unfolded.
pub(crate) fn addresses(value: &[u8]) -> Vec<Address> {
    let mut reader =
        Reader { tokens: Tokens { rest: value }.peekable(), addresses: Vec::new(), in_group: false };
    while reader.addresses.len() < ADDRESSES_MAX && reader.next().is_some() {}
    if reader.in_group {
        reader.addresses.push(Address::default());
    }
    reader.addresses
}

struct Reader<'a> {
    tokens: std::iter::Peekable<Tokens<'a>>,
    addresses: Vec<Address>,
    in_group: bool,
}

impl Reader<'_> {
    /// Reads up to the next comma, colon or semicolon.
    fn next(&mut self) -> Option<()> {
        self.tokens.peek()?;
        let mut tokens = Vec::new();
        loop {
            match self.tokens.next() {
                Some(Token::Sign(b'<')) => {
                    self.angle(&tokens);
                    return Some(());
                }
                Some(Token::Sign(b':')) if !self.in_group => {
                    self.in_group = true;
                    let name = phrase(&tokens);
                    self.addresses.push(Address { mailbox: Some(name), ..Address::default() });
                    return Some(());
                }
                Some(Token::Sign(sign @ (b',' | b';'))) => {
                    self.plain(&tokens);
                    if sign == b';' && std::mem::take(&mut self.in_group) {
                        self.addresses.push(Address::default());
                    }
                    return Some(());
                }
                Some(Token::Sign(_)) => {}
                Some(token) => tokens.push(token),
                None => {
                    self.plain(&tokens);
                    return Some(());
                }
            }
        }
    }

    /// `name <@route,@route:mailbox@host>`
    fn angle(&mut self, before: &[Token]) {
        let mut tokens = Vec::new();
        let mut route = None;
        loop {
            match self.tokens.next() {
                Some(Token::Sign(b':')) if route.is_none() => {
                    route = Some(joined(&std::mem::take(&mut tokens)));
                }
                // A route has commas.
                Some(Token::Sign(b',')) if tokens.first() == Some(&Token::At) => {
                    tokens.push(Token::Word(b",".to_vec(), false));
                }
                Some(Token::Sign(b'>')) | None => break,
                Some(Token::Sign(_)) => {}
                Some(token) => tokens.push(token),
            }
        }
        let (mailbox, host) = split(&tokens);
        let name = phrase(before);
        let name = (!name.is_empty()).then_some(name).or_else(|| comment(before));
        self.addresses.push(Address { name, route, mailbox: Some(mailbox), host: Some(host) });
        // What stands behind belongs to nobody.
        while self.tokens.next_if(|token| !matches!(token, Token::Sign(b',' | b';'))).is_some() {}
        match self.tokens.next() {
            Some(Token::Sign(b';')) if std::mem::take(&mut self.in_group) => {
                self.addresses.push(Address::default());
            }
            _ => {}
        }
    }

    /// `mailbox@host (name)`
    fn plain(&mut self, tokens: &[Token]) {
        let is_comment = |token: &Token| matches!(token, Token::Comment(_));
        if tokens.iter().all(is_comment) {
            return;
        }
        let name = comment(tokens);
        let words: Vec<Token> = tokens.iter().filter(|token| !is_comment(token)).cloned().collect();
        let (mailbox, host) = split(&words);
        self.addresses.push(Address { name, route: None, mailbox: Some(mailbox), host: Some(host) });
    }
}

/// What stands before and behind the last `@`. Without one there is a mailbox alone, and its host is missing.
fn split(tokens: &[Token]) -> (Vec<u8>, Vec<u8>) {
    let at = tokens.iter().rposition(|token| *token == Token::At);
    match at {
        Some(at) => {
            let (mailbox, host) = tokens.split_at(at);
            (joined(mailbox), joined(host.get(1..).unwrap_or_default()))
        }
        None => (joined(tokens), Vec::new()),
    }
}

fn joined(tokens: &[Token]) -> Vec<u8> {
    let mut text = Vec::new();
    let mut was_word = false;
    for token in tokens {
        match token {
            Token::Word(word, _) => {
                if was_word && word != b"," && !text.ends_with(b",") {
                    text.push(b' ');
                }
                text.extend_from_slice(word);
            }
            Token::Dot => text.push(b'.'),
            Token::At => text.push(b'@'),
            Token::Sign(_) | Token::Comment(_) => {}
        }
        was_word = matches!(token, Token::Word(..));
    }
    text
}

/// A display name: words with a space between them, and dots where they stand, which the obsolete form allows.
fn phrase(tokens: &[Token]) -> Vec<u8> {
    let mut text = Vec::new();
    let mut glue = true;
    for token in tokens {
        match token {
            Token::Word(word, _) => {
                if !glue {
                    text.push(b' ');
                }
                text.extend_from_slice(word);
                glue = false;
            }
            Token::Dot => text.push(b'.'),
            Token::At => {
                text.push(b'@');
                glue = true;
            }
            Token::Sign(_) | Token::Comment(_) => {}
        }
    }
    tidied(&text)
}

fn comment(tokens: &[Token]) -> Option<Vec<u8>> {
    tokens.iter().rev().find_map(|token| match token {
        Token::Comment(text) if !text.trim_ascii().is_empty() => Some(tidied(text)),
        _ => None,
    })
}
