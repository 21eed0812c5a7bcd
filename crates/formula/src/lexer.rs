//! The text of a formula, cut into tokens.

use crate::error::{FormulaError, FormulaErrorKind};
use crate::syntax::{Binary, Operator};
use crate::written::Written;

/// One token and the byte where it begins.
#[derive(Clone, Debug, PartialEq)]
pub(crate) struct Token {
    pub(crate) kind: TokenKind,
    pub(crate) at: usize,
}

#[derive(Clone, Debug, PartialEq)]
pub(crate) enum TokenKind {
    Text(String),
    Number(f64),
    Time(Written),
    /// `[CN]`, without its brackets.
    Keyword(String),
    /// The name of a field or a temporary variable.
    Name(String),
    /// `@If`, with its `@`.
    Function(String),
    Reserved(Reserved),
    Binary(Binary),
    /// `!` as NOT.
    Not,
    Assign,
    Open,
    Close,
    /// `[` behind a value.
    OpenSubscript,
    CloseSubscript,
    Semicolon,
    End,
}

/// Words that begin a statement, and can therefore not name a field.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
pub(crate) enum Reserved {
    Field,
    Default,
    Select,
    Remark,
    Environment,
}

impl Reserved {
    fn from_word(word: &str) -> Option<Self> {
        const WORDS: [(&str, Reserved); 5] = [
            ("FIELD", Reserved::Field),
            ("DEFAULT", Reserved::Default),
            ("SELECT", Reserved::Select),
            ("REM", Reserved::Remark),
            ("ENVIRONMENT", Reserved::Environment),
        ];
        WORDS.iter().find(|(name, _)| name.eq_ignore_ascii_case(word)).map(|(_, reserved)| *reserved)
    }

    pub(crate) const fn word(self) -> &'static str {
        match self {
            Self::Field => "FIELD",
            Self::Default => "DEFAULT",
            Self::Select => "SELECT",
            Self::Remark => "REM",
            Self::Environment => "ENVIRONMENT",
        }
    }
}

/// Longest match first.
const OPERATORS: [(&str, Binary); 30] = [
    ("*!=", Binary::permuted(Operator::NotEqual)),
    ("*<>", Binary::permuted(Operator::NotEqual)),
    ("*><", Binary::permuted(Operator::NotEqual)),
    ("*=!", Binary::permuted(Operator::NotEqual)),
    ("*<=", Binary::permuted(Operator::LessOrEqual)),
    ("*>=", Binary::permuted(Operator::GreaterOrEqual)),
    ("**", Binary::permuted(Operator::Multiply)),
    ("*/", Binary::permuted(Operator::Divide)),
    ("*+", Binary::permuted(Operator::Add)),
    ("*-", Binary::permuted(Operator::Subtract)),
    ("*=", Binary::permuted(Operator::Equal)),
    ("*<", Binary::permuted(Operator::Less)),
    ("*>", Binary::permuted(Operator::Greater)),
    ("<=", Binary::pairwise(Operator::LessOrEqual)),
    (">=", Binary::pairwise(Operator::GreaterOrEqual)),
    ("<>", Binary::pairwise(Operator::NotEqual)),
    ("><", Binary::pairwise(Operator::NotEqual)),
    ("!=", Binary::pairwise(Operator::NotEqual)),
    ("=!", Binary::pairwise(Operator::NotEqual)),
    ("=<", Binary::pairwise(Operator::LessOrEqual)),
    ("*", Binary::pairwise(Operator::Multiply)),
    ("/", Binary::pairwise(Operator::Divide)),
    ("+", Binary::pairwise(Operator::Add)),
    ("-", Binary::pairwise(Operator::Subtract)),
    ("=", Binary::pairwise(Operator::Equal)),
    ("<", Binary::pairwise(Operator::Less)),
    (">", Binary::pairwise(Operator::Greater)),
    (":", Binary::pairwise(Operator::List)),
    ("&", Binary::pairwise(Operator::And)),
    ("|", Binary::pairwise(Operator::Or)),
];

/// Cuts a formula into tokens, the last of which is `End`.
pub(crate) fn tokens(source: &str) -> Result<Vec<Token>, FormulaError> {
    let mut lexer = Lexer { source, at: 0, after_value: false };
    let mut tokens = Vec::new();
    loop {
        let token = lexer.next()?;
        lexer.after_value = ends_value(&token.kind);
        let ended = token.kind == TokenKind::End;
        tokens.push(token);
        if ended {
            return Ok(tokens);
        }
    }
}

/// Whether a `[` behind this token is a subscript rather than a constant.
const fn ends_value(kind: &TokenKind) -> bool {
    matches!(
        kind,
        TokenKind::Text(_)
            | TokenKind::Number(_)
            | TokenKind::Time(_)
            | TokenKind::Keyword(_)
            | TokenKind::Name(_)
            | TokenKind::Function(_)
            | TokenKind::Close
            | TokenKind::CloseSubscript
    )
}

struct Lexer<'s> {
    source: &'s str,
    at: usize,
    after_value: bool,
}

impl<'s> Lexer<'s> {
    fn rest(&self) -> &'s str {
        self.source.get(self.at..).unwrap_or("")
    }

    fn next(&mut self) -> Result<Token, FormulaError> {
        let rest = self.rest();
        let blank = rest.len() - rest.trim_start().len();
        self.at += blank;
        let at = self.at;
        let rest = self.rest();
        let Some(first) = rest.chars().next() else { return Ok(Token { kind: TokenKind::End, at }) };
        let kind = match first {
            '"' => self.quoted()?,
            '{' => self.braced()?,
            '[' if !self.after_value => self.bracketed()?,
            '[' => self.symbol(1, TokenKind::OpenSubscript),
            ']' => self.symbol(1, TokenKind::CloseSubscript),
            '(' => self.symbol(1, TokenKind::Open),
            ')' => self.symbol(1, TokenKind::Close),
            ';' => self.symbol(1, TokenKind::Semicolon),
            '@' => self.function()?,
            _ if first.is_ascii_digit() => self.number()?,
            '.' => self.number()?,
            _ if starts_name(first) => self.name(),
            _ => self.operator(first)?,
        };
        Ok(Token { kind, at })
    }

    fn symbol(&mut self, length: usize, kind: TokenKind) -> TokenKind {
        self.at += length;
        kind
    }

    fn operator(&mut self, first: char) -> Result<TokenKind, FormulaError> {
        let rest = self.rest();
        if rest.starts_with(":=") {
            return Ok(self.symbol(2, TokenKind::Assign));
        }
        if let Some((symbol, binary)) = OPERATORS.iter().find(|(symbol, _)| rest.starts_with(symbol)) {
            return Ok(self.symbol(symbol.len(), TokenKind::Binary(*binary)));
        }
        if first == '!' {
            return Ok(self.symbol(1, TokenKind::Not));
        }
        let advice = match first {
            ',' => "arguments are separated by semicolons, the elements of a list by colons",
            '\'' => "texts stand in double quotes or in braces",
            '}' => "a text in braces begins with {",
            _ => "remove it, or put it into a text in double quotes",
        };
        Err(self.error(self.at, format!("'{first}' has no meaning here"), advice))
    }

    fn quoted(&mut self) -> Result<TokenKind, FormulaError> {
        let mut text = String::new();
        let mut characters = self.rest().char_indices().skip(1);
        while let Some((place, character)) = characters.next() {
            match character {
                '"' => return Ok(self.symbol(place + 1, TokenKind::Text(text))),
                '\\' => {
                    let Some((_, escaped)) = characters.next() else { break };
                    text.push(escaped);
                }
                _ => text.push(character),
            }
        }
        Err(self.error(
            self.at,
            "this text is not closed",
            "add the closing \"; a \" inside it is written \\\"",
        ))
    }

    fn braced(&mut self) -> Result<TokenKind, FormulaError> {
        let inside = self.rest().get(1..).unwrap_or("");
        let Some(length) = inside.find('}') else {
            return Err(self.error(self.at, "this text is not closed", "add the closing }"));
        };
        let text = inside.get(..length).unwrap_or("").to_owned();
        Ok(self.symbol(length + 2, TokenKind::Text(text)))
    }

    /// A date constant or a keyword.
    fn bracketed(&mut self) -> Result<TokenKind, FormulaError> {
        let inside = self.rest().get(1..).unwrap_or("");
        let Some(length) = inside.find(']') else {
            return Err(self.error(self.at, "this constant is not closed", "add the closing ]"));
        };
        let content = inside.get(..length).unwrap_or("").trim();
        let kind = if is_keyword(content) {
            TokenKind::Keyword(content.to_owned())
        } else if let Some(time) = Written::read(content) {
            if let Some(Err(fault)) = time.fixed() {
                let advice = "write a range as [2026-11-21 - 2026-11-23], the earlier end first";
                return Err(self.error(
                    self.at,
                    format!("'[{content}]' is no range: {}", fault.message()),
                    advice,
                ));
            }
            TokenKind::Time(time)
        } else {
            return Err(self.error(
                self.at,
                format!("'[{content}]' is neither a date nor a keyword"),
                "write a date as [2026-11-21], [11/21/2026] or [2026-11-21 10:00], a range as \
                 [2026-11-21 - 2026-11-23], a keyword as [CN]",
            ));
        };
        Ok(self.symbol(length + 2, kind))
    }

    fn function(&mut self) -> Result<TokenKind, FormulaError> {
        let rest = self.rest();
        let length = 1 + word_length(rest.get(1..).unwrap_or(""));
        if length == 1 {
            return Err(self.error(self.at, "'@' is not followed by a name", "write for example @Now"));
        }
        let name = rest.get(..length).unwrap_or("").to_owned();
        Ok(self.symbol(length, TokenKind::Function(name)))
    }

    fn name(&mut self) -> TokenKind {
        let rest = self.rest();
        let length = word_length(rest);
        let word = rest.get(..length).unwrap_or("");
        let kind =
            Reserved::from_word(word).map_or_else(|| TokenKind::Name(word.to_owned()), TokenKind::Reserved);
        self.symbol(length, kind)
    }

    fn number(&mut self) -> Result<TokenKind, FormulaError> {
        let rest = self.rest();
        let digits = |from: usize| {
            let tail = rest.get(from..).unwrap_or("");
            from + tail.find(|character: char| !character.is_ascii_digit()).unwrap_or(tail.len())
        };
        let starts =
            |place: usize, what: &[char]| rest.get(place..).is_some_and(|tail| tail.starts_with(what));
        let mut end = digits(0);
        if starts(end, &['.']) {
            end = digits(end + 1);
        }
        if starts(end, &['e', 'E']) {
            let sign = usize::from(starts(end + 1, &['+', '-']));
            let exponent = digits(end + 1 + sign);
            if exponent > end + 1 + sign {
                end = exponent;
            }
        }
        let text = rest.get(..end).unwrap_or("");
        match text.parse::<f64>() {
            Ok(number) if number.is_finite() => Ok(self.symbol(end, TokenKind::Number(number))),
            Ok(_) => Err(self.error(self.at, "this number is too large", "the largest is about 1.7E308")),
            Err(_) => Err(self.error(self.at, format!("'{text}' is not a number"), "write for example 0.5")),
        }
    }

    fn error(&self, at: usize, message: impl Into<String>, advice: &str) -> FormulaError {
        error_at(self.source, at, FormulaErrorKind::Syntax, message, advice)
    }
}

fn starts_name(character: char) -> bool {
    character.is_alphabetic() || matches!(character, '_' | '$')
}

fn word_length(text: &str) -> usize {
    text.find(|character: char| !(character.is_alphanumeric() || matches!(character, '_' | '$')))
        .unwrap_or(text.len())
}

fn is_keyword(content: &str) -> bool {
    content.starts_with(|first: char| first.is_ascii_alphabetic())
        && content.bytes().all(|byte| byte.is_ascii_alphanumeric() || byte == b'_')
}

/// Line and column, counted from 1, of a byte of the source; columns are characters.
pub(crate) fn position(source: &str, at: usize) -> (u32, u32) {
    let before = source.get(..at).unwrap_or(source);
    let line_start = before.rfind('\n').map_or(0, |place| place + 1);
    let line = before.bytes().filter(|byte| *byte == b'\n').count() + 1;
    let column = before.get(line_start..).unwrap_or("").chars().count() + 1;
    (u32::try_from(line).unwrap_or(u32::MAX), u32::try_from(column).unwrap_or(u32::MAX))
}

pub(crate) fn error_at(
    source: &str,
    at: usize,
    kind: FormulaErrorKind,
    message: impl Into<String>,
    advice: impl Into<String>,
) -> FormulaError {
    let (line, column) = position(source, at);
    FormulaError { kind, message: message.into(), line, column, advice: advice.into() }
}
