//! Lists of addresses (RFC 5322 §3.4 with the obsolete forms of §4.4), and what people and programs make of them: without
//! commas, without brackets, with commas and dots in names.

use super::charset::CharacterSet;
use super::encoded_words::{self, EncodedWord};
use super::parameters::after_comment;
use crate::address::format_address;
use crate::notes::Notes;

/// This many names without an address before `<` are parts of one name: `Lovelace, Ada, Countess <ada@acme.example>`.
const MOST_COMMAS_IN_NAME: usize = 2;

/// Reads at most `limit` addresses of an unfolded field, each as a memo shows it; 8-bit characters are of the set `raw`.
/// A group's members stand for the group (§3.4); what has neither name nor address is left out.
pub(super) fn read(field: &[u8], raw: CharacterSet, limit: usize, notes: &mut Notes) -> Vec<String> {
    let mut scanner = Scanner { rest: field, ..Scanner::default() };
    while scanner.found.len() <= limit && scanner.step() {}
    scanner.end_of_element(b',');
    scanner.release_names();
    let mut shown = Vec::new();
    for mailbox in scanner.found.into_iter().take(limit) {
        let name = encoded_words::decode(&mailbox.name, raw, notes);
        let address = encoded_words::decode(&mailbox.address, raw, notes);
        let text = format_address(&name, &address);
        if !text.is_empty() {
            shown.push(text);
        }
    }
    shown
}

/// A name and an address as they are written; either may be empty.
#[derive(Debug, Default)]
struct Mailbox {
    name: Vec<u8>,
    address: Vec<u8>,
}

/// A piece of an element: an atom with its dots and at signs, or a quoted string.
#[derive(Debug)]
struct Piece {
    /// Without quotes and backslashes.
    text: Vec<u8>,
    is_quoted: bool,
    /// Whether blanks or a comment stand before it.
    is_apart: bool,
}

#[derive(Default)]
struct Scanner<'a> {
    rest: &'a [u8],
    found: Vec<Mailbox>,
    /// What was read of the element that is under way.
    pieces: Vec<Piece>,
    /// The last comment of that element.
    comment: &'a [u8],
    is_apart: bool,
    /// Whether a piece of the element is of an address.
    has_address: bool,
    /// Names without an address; they may turn out to be the first parts of a name with commas.
    names: Vec<Vec<u8>>,
    has_open_comment: bool,
    has_open_quote: bool,
}

impl<'a> Scanner<'a> {
    /// Reads one piece; `false` at the end.
    fn step(&mut self) -> bool {
        let Some((&byte, after)) = self.rest.split_first() else { return false };
        match byte {
            b'(' => self.comment(),
            b'"' => self.quoted(),
            b'<' => {
                self.rest = after;
                self.bracketed();
            }
            b',' | b';' => {
                self.rest = after;
                self.end_of_element(byte);
            }
            b':' => {
                self.rest = after;
                self.colon();
            }
            b'>' | b')' => {
                self.rest = after;
                self.is_apart = true;
            }
            _ if byte.is_ascii_whitespace() => {
                self.rest = self.rest.trim_ascii_start();
                self.is_apart = true;
            }
            _ => self.atom(),
        }
        true
    }

    /// A comment (§3.2.2) is nobody's address. Where nothing ends it, its parenthesis is passed over alone.
    fn comment(&mut self) {
        let before = self.rest;
        let inside = before.get(1..).unwrap_or_default();
        self.is_apart = true;
        let after = if self.has_open_comment { None } else { after_comment(before) };
        match after {
            Some(after) => {
                // Where the address is not yet there, it says something else than a name.
                let is_open = self.pieces.last().is_none_or(|last| last.text.ends_with(b"@"));
                if self.has_address && !is_open {
                    self.comment =
                        inside.get(..(inside.len() - after.len()).saturating_sub(1)).unwrap_or_default();
                }
                self.rest = after;
            }
            None => {
                self.has_open_comment = true;
                self.rest = inside;
            }
        }
    }

    fn quoted(&mut self) {
        let inside = self.rest.get(1..).unwrap_or_default();
        let mut text = Vec::new();
        let mut rest = inside;
        let mut is_closed = false;
        while let (Some((&byte, after)), false) = (rest.split_first(), self.has_open_quote) {
            rest = after;
            match (byte, after.split_first()) {
                (b'"', _) => {
                    is_closed = true;
                    break;
                }
                (b'\\', Some((&escaped, after))) => {
                    text.push(escaped);
                    rest = after;
                }
                _ => text.push(byte),
            }
        }
        if is_closed {
            self.rest = rest;
            self.push(text, true);
        } else {
            // Nothing ends it, nor any later one; it is passed over.
            self.has_open_quote = true;
            self.rest = inside;
            self.is_apart = true;
        }
    }

    fn push(&mut self, text: Vec<u8>, is_quoted: bool) {
        self.has_address |= !is_quoted && text.contains(&b'@');
        self.pieces.push(Piece { text, is_quoted, is_apart: self.is_apart });
        self.is_apart = false;
    }

    /// Everything up to a character that means something, with encoded words and domain literals whole.
    fn atom(&mut self) {
        let mut end = 0;
        while let Some(&byte) = self.rest.get(end) {
            let ahead = self.rest.get(end..).unwrap_or_default();
            let length = match byte {
                b'=' => EncodedWord::at_start(ahead).map_or(1, |word| word.length),
                b'[' if end > 0 && self.rest.get(end - 1) == Some(&b'@') => domain_literal(ahead),
                b'(' | b'<' | b'>' | b',' | b';' | b':' | b'"' => break,
                _ if byte.is_ascii_whitespace() => break,
                _ => 1,
            };
            end += length;
        }
        let (text, rest) = self.rest.split_at_checked(end.max(1)).unwrap_or((self.rest, &[]));
        self.rest = rest;
        self.push(text.to_vec(), false);
    }

    /// `<address>`: with what was read before as its name. The bracket may be missing at its end.
    fn bracketed(&mut self) {
        while let [b'<' | b' ', after @ ..] = self.rest {
            self.rest = after;
        }
        let is_route = self.rest.first() == Some(&b'@');
        let mut is_quoted = false;
        let mut end = 0;
        while let Some(&byte) = self.rest.get(end) {
            match byte {
                b'\\' if is_quoted => end += 1,
                b'"' => is_quoted = !is_quoted,
                b'>' | b'<' if !is_quoted => break,
                b',' | b';' if !is_quoted && !is_route => break,
                _ => {}
            }
            end += 1;
        }
        let (inside, rest) = self.rest.split_at_checked(end).unwrap_or((self.rest, &[]));
        self.rest = rest.strip_prefix(b">").unwrap_or(rest);
        let address = address_inside(inside);
        let name = self.name();
        if !name.is_empty() || !address.is_empty() {
            self.found.push(Mailbox { name, address });
        }
        self.start_element();
    }

    /// The name of what is in brackets: all pieces before, and names without an address that only commas set apart.
    fn name(&mut self) -> Vec<u8> {
        let mut name = phrase(&self.pieces);
        if name.is_empty() || self.names.len() > MOST_COMMAS_IN_NAME {
            self.release_names();
        }
        for before in self.names.drain(..).rev() {
            name = [before.as_slice(), b", ", name.as_slice()].concat();
        }
        name
    }

    /// Names that no bracket followed are recipients of their own.
    fn release_names(&mut self) {
        self.found.extend(self.names.drain(..).map(|name| Mailbox { name, address: Vec::new() }));
    }

    fn start_element(&mut self) {
        self.pieces.clear();
        self.comment = b"";
        (self.is_apart, self.has_address) = (false, false);
    }

    /// The end of a group's name, which is not kept; or a colon where none should be.
    fn colon(&mut self) {
        if !self.has_address {
            self.release_names();
            self.start_element();
        }
        self.is_apart = true;
    }

    /// The end of an element without brackets: one address or several next to each other, or a name.
    fn end_of_element(&mut self, separator: u8) {
        let pieces = joined(std::mem::take(&mut self.pieces));
        let is_address = |piece: &Piece| !piece.is_quoted && is_address(&piece.text);
        let mut addresses = pieces.iter().filter(|piece| is_address(piece)).count();
        if addresses == 0 {
            let name = phrase(&pieces);
            // A domain without anybody is what mail programs make of an empty group: `Undisclosed-Recipient:@a.example`.
            let is_domain =
                matches!(pieces.as_slice(), [piece] if !piece.is_quoted && piece.text.first() == Some(&b'@'));
            if !name.is_empty() && !is_domain {
                self.names.push(name);
            }
            if separator == b';' || self.names.len() > 10 * MOST_COMMAS_IN_NAME {
                self.release_names();
            }
            self.start_element();
            return;
        }
        self.release_names();
        let mut words: Vec<Piece> = Vec::new();
        for piece in pieces {
            if !is_address(&piece) {
                words.push(piece);
                continue;
            }
            addresses -= 1;
            let mut name = phrase(&words);
            words.clear();
            if name.is_empty() && addresses == 0 {
                // The obsolete place of a name: `ada@acme.example (Ada Lovelace)`.
                name = unescaped(self.comment);
            }
            self.found.push(Mailbox { name, address: piece.text });
        }
        self.start_element();
    }
}

/// Pieces put together that belong to one address though blanks or comments set them apart (§4.4), and quoted local parts.
fn joined(pieces: Vec<Piece>) -> Vec<Piece> {
    if !pieces.iter().any(has_at) {
        return pieces;
    }
    let mut all: Vec<Piece> = Vec::with_capacity(pieces.len());
    let mut joins_next = false;
    for piece in pieces {
        let begins = |byte: u8| !piece.is_quoted && piece.text.first() == Some(&byte);
        let joins = joins_next || begins(b'@') || begins(b'.');
        let ends = |byte: u8| !piece.is_quoted && piece.text.last() == Some(&byte);
        // A dot at the end of a word joins nothing that stands apart: `Dr. ada@acme.example`.
        joins_next = ends(b'@') || (ends(b'.') && piece.text.len() == 1);
        match all.last_mut().filter(|last| joins || (!piece.is_apart && last.text.last() == Some(&b'.'))) {
            Some(last) => {
                if last.is_quoted {
                    last.text = written(last);
                    last.is_quoted = false;
                }
                last.text.extend_from_slice(&written(&piece));
            }
            None => all.push(piece),
        }
    }
    all
}

fn has_at(piece: &Piece) -> bool {
    !piece.is_quoted && piece.text.contains(&b'@')
}

/// A piece as it stands in an address: quoted only where it must be (§3.2.4).
fn written(piece: &Piece) -> Vec<u8> {
    let is_atom = |byte: &u8| {
        byte.is_ascii_alphanumeric() || !byte.is_ascii() || b"!#$%&'*+-/=?^_`{|}~.".contains(byte)
    };
    if !piece.is_quoted || (!piece.text.is_empty() && piece.text.iter().all(is_atom)) {
        return piece.text.clone();
    }
    let mut text = vec![b'"'];
    for &byte in &piece.text {
        if matches!(byte, b'"' | b'\\') {
            text.push(b'\\');
        }
        text.push(byte);
    }
    text.push(b'"');
    text
}

fn is_address(text: &[u8]) -> bool {
    let at = text.iter().rposition(|&byte| byte == b'@');
    at.is_some_and(|at| at > 0) && EncodedWord::at_start(text).is_none_or(|word| word.length < text.len())
}

/// What pieces say as a name.
fn phrase(pieces: &[Piece]) -> Vec<u8> {
    let mut name = Vec::new();
    for piece in pieces {
        if piece.is_apart && !name.is_empty() {
            name.push(b' ');
        }
        name.extend_from_slice(&piece.text);
    }
    name.trim_ascii().to_vec()
}

/// The address between brackets: without route (§4.4), comments and blanks outside of quotes.
fn address_inside(inside: &[u8]) -> Vec<u8> {
    let mut scanner = Scanner { rest: inside, ..Scanner::default() };
    let mut address: Vec<Piece> = Vec::new();
    while let Some(&byte) = scanner.rest.first() {
        match byte {
            b'(' => scanner.comment(),
            b'"' => scanner.quoted(),
            b',' | b':' | b';' | b'<' | b'>' | b')' => {
                scanner.rest = scanner.rest.get(1..).unwrap_or_default();
                scanner.push(vec![byte], false);
            }
            _ if byte.is_ascii_whitespace() => {
                scanner.rest = scanner.rest.trim_ascii_start();
                scanner.is_apart = true;
            }
            _ => scanner.atom(),
        }
        address.append(&mut scanner.pieces);
    }
    let is_address = address.iter().any(has_at);
    let mut text = Vec::new();
    for piece in &address {
        // Blanks next to a dot or an at sign are no part of an address (§4.4); others are part of what stands there.
        let touches = matches!(text.last(), None | Some(b'.' | b'@'))
            || matches!(piece.text.first(), Some(b'.' | b'@'));
        if piece.is_apart && !touches {
            text.push(b' ');
        }
        if is_address {
            text.extend_from_slice(&written(piece));
        } else {
            text.extend_from_slice(&piece.text);
        }
    }
    quoted_where_needed(without_route(&text))
}

/// An address with blanks in its local part is one only in quotes (RFC 5322 §3.4.1).
fn quoted_where_needed(address: &[u8]) -> Vec<u8> {
    let at = address.iter().rposition(|&byte| byte == b'@').unwrap_or(0);
    let (local, domain) = address.split_at_checked(at).unwrap_or((&[], address));
    if local.starts_with(b"\"") || !local.contains(&b' ') {
        return address.to_vec();
    }
    let mut whole = written(&Piece { text: local.to_vec(), is_quoted: true, is_apart: false });
    whole.extend_from_slice(domain);
    whole
}

/// `@a.example,@b.example:ada@acme.example` is `ada@acme.example`, and so is `mailto:ada@acme.example`; an empty group with
/// a host, `undisclosed-recipients:@a.example`, is nobody.
fn without_route(address: &[u8]) -> &[u8] {
    if address.windows(2).any(|pair| pair == b":@")
        && !address.starts_with(b"@")
        && !address.starts_with(b"\"")
    {
        return b"";
    }
    if address.starts_with(b"@") {
        let colon = address.iter().position(|&byte| byte == b':');
        return colon.and_then(|colon| address.get(colon + 1..)).unwrap_or(address);
    }
    match address.split_at_checked(7) {
        Some((scheme, address)) if scheme.eq_ignore_ascii_case(b"mailto:") => address,
        _ => address,
    }
}

/// How long the domain literal (§3.4.1) is that `bytes` begin with.
fn domain_literal(bytes: &[u8]) -> usize {
    let end = bytes.iter().take(256).position(|&byte| byte == b']');
    end.map_or(1, |end| end + 1)
}

/// A comment's text, without the backslashes before its parentheses.
fn unescaped(comment: &[u8]) -> Vec<u8> {
    let mut text = Vec::with_capacity(comment.len());
    let mut escaped = false;
    for &byte in comment {
        if byte == b'\\' && !escaped {
            escaped = true;
        } else {
            text.push(byte);
            escaped = false;
        }
    }
    text.trim_ascii().to_vec()
}

#[cfg(test)]
mod tests {
    use super::super::charset::CharacterSet;
    use super::read;
    use crate::notes::Notes;

    fn check(written: &[u8], addresses: &[&str]) {
        let found = read(written, CharacterSet::Undeclared, 100, &mut Notes::default());
        assert_eq!(found, addresses, "{}", String::from_utf8_lossy(written));
    }

    #[test]
    fn lists_are_read_by_the_rules() {
        check(b"ann@a.example", &["ann@a.example"]);
        check(b"Ann Lee <ann@a.example>, ben@b.example", &["Ann Lee <ann@a.example>", "ben@b.example"]);
        check(b"\"Lee, Ann\" <ann@a.example>", &["\"Lee, Ann\" <ann@a.example>"]);
        check(b"\"ann b\"@example.org", &["\"ann b\"@example.org"]);
        check(
            b"\"ann.b\"@example.org, <\"ben c\"@example.org>",
            &["ann.b@example.org", "\"ben c\"@example.org"],
        );
        check(b"\"a\\\"b\"@example.org", &["\"a\\\"b\"@example.org"]);
        check(
            b"<@x.example,@y.example:ann@a.example>, Ben <@z.example:ben@b.example>",
            &["ann@a.example", "Ben <ben@b.example>"],
        );
        check(
            b"Team: ann@a.example, Ben <ben@b.example>;, cy@c.example",
            &["ann@a.example", "Ben <ben@b.example>", "cy@c.example"],
        );
        check(b"undisclosed-recipients:;", &[]);
        check(b"undisclosed recipients: ;, ,", &[]);
        check(b"ann@[192.0.2.1], ben@[IPv6:2001:db8::1]", &["ann@[192.0.2.1]", "ben@[IPv6:2001:db8::1]"]);
        check(b"=?utf-8?Q?Lee=2C_=C3=84nn?= <ann@a.example>", &["\"Lee, Änn\" <ann@a.example>"]);
        check(b"\"=?utf-8?B?w4Q=?= =?utf-8?B?bm4=?=\" <ann@a.example>", &["Änn <ann@a.example>"]);
        check(
            b"=?utf-8?Q?a=40b?= <ann@a.example>, =?utf-8?Q?c,d?= <e@f.example>",
            &["\"a@b\" <ann@a.example>", "\"c,d\" <e@f.example>"],
        );
        check(b"Undisclosed-Recipient:@a.example", &[]);
        check(b"undisclosed-recipients: @a.example;, <undisclosed-recipients:@a.example>", &[]);
        check(b"<Undisclosed Recipients@a.example>", &["\"Undisclosed Recipients\"@a.example"]);
        check(b"\"@a.example\"", &["@a.example"]);
        check(b"", &[]);
        check(b" , ,, ", &[]);
        check(b"<>, Ann <>", &["Ann"]);
    }

    #[test]
    fn comments_are_nobodys_addresses() {
        check(b"(nobody really)", &[]);
        check(b"(cora@c.example)", &[]);
        check(b"Team:cora@c.example;(that is all)", &["cora@c.example"]);
        check(b"ann@a.example (Ann (the first) Lee)", &["Ann (the first) Lee <ann@a.example>"]);
        check(b"Ann(A nice \\) one) <ann(her account)@a.example(her host)>", &["Ann <ann@a.example>"]);
        check(b"ann(comment)@a.example, (x) ben @ b.example (y)", &["ann@a.example", "y <ben@b.example>"]);
        check(b"ann@a.example (an open one, ben@b.example", &["ann@a.example", "ben@b.example"]);
    }

    #[test]
    fn lists_are_read_as_people_wrote_them() {
        check(
            b"Cora C <cora@c.example> Dan D <dan@d.example>",
            &["Cora C <cora@c.example>", "Dan D <dan@d.example>"],
        );
        check(b"cora@c.example dan@d.example", &["cora@c.example", "dan@d.example"]);
        check(b"<cora@c.example><dan@d.example>", &["cora@c.example", "dan@d.example"]);
        check(b"ann@a.example; Ben <ben@b.example>;", &["ann@a.example", "Ben <ben@b.example>"]);
        check(
            b"Lee, Ann <ann@a.example>, Doe, Ben J., PhD <ben@b.example>",
            &["\"Lee, Ann\" <ann@a.example>", "\"Doe, Ben J., PhD\" <ben@b.example>"],
        );
        check(b"Ann J. Lee <ann@a.example>", &["Ann J. Lee <ann@a.example>"]);
        check(b"Dr. ann@a.example", &["Dr. <ann@a.example>"]);
        check(b"Ann <ann@a.example, Ben <ben@b.example>", &["Ann <ann@a.example>", "Ben <ben@b.example>"]);
        check(b"Ann <ann@a.example", &["Ann <ann@a.example>"]);
        check(b"Ann ann@a.example>", &["Ann <ann@a.example>"]);
        check(b"<<ann@a.example>>", &["ann@a.example"]);
        check(b"< ann@a.example >", &["ann@a.example"]);
        check(b"<mailto:ann@a.example>, mailto:ben@b.example", &["ann@a.example", "ben@b.example"]);
        check(b"ann . lee @ a . example", &["ann.lee@a.example"]);
        check(b"\"Ann <ann@a.example>, ben@b.example", &["Ann <ann@a.example>", "ben@b.example"]);
        check(b"ann@a.example Ben <ben@b.example>", &["\"ann@a.example Ben\" <ben@b.example>"]);
        check(b"nobody at all, ben@b.example", &["nobody at all", "ben@b.example"]);
        check(b"=?utf-8?Q?Ann?=<ann@a.example>", &["Ann <ann@a.example>"]);
        check(
            b"J\xf6rg <j@a.example>, \"J\xc3\xb6rg\" <j@b.example>",
            &["Jörg <j@a.example>", "Jörg <j@b.example>"],
        );
        check(b"[list] Ann <ann@a.example>", &["[list] Ann <ann@a.example>"]);
    }

    #[test]
    fn hostile_lists_take_no_longer_than_their_length() {
        for piece in ["(", "\"", "<", "a@b ", "(a", "a,", ":", "<a@b", "=?", "@[", "\\\""] {
            let list = piece.repeat(100_000 / piece.len());
            read(list.as_bytes(), CharacterSet::Undeclared, 100, &mut Notes::default());
        }
    }
}
