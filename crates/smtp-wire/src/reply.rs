//! Replies (RFC 5321, section 4.2), with enhanced status codes (RFC 2034, RFC 3463).

use std::fmt;

use thiserror::Error;

/// A status code of RFC 3463: its class (2, 4 or 5), subject and detail.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub struct EnhancedCode {
    class: u8,
    subject: u16,
    detail: u16,
}

impl EnhancedCode {
    /// A class other than 2, 4 and 5 becomes 5; subject and detail have at most three digits.
    #[must_use]
    pub const fn new(class: u8, subject: u16, detail: u16) -> Self {
        let class = if class == 2 || class == 4 { class } else { 5 };
        let subject = if subject > 999 { 999 } else { subject };
        let detail = if detail > 999 { 999 } else { detail };
        Self { class, subject, detail }
    }

    /// 2, 4 or 5.
    #[must_use]
    pub const fn class(&self) -> u8 {
        self.class
    }

    /// The second number.
    #[must_use]
    pub const fn subject(&self) -> u16 {
        self.subject
    }

    /// The third number.
    #[must_use]
    pub const fn detail(&self) -> u16 {
        self.detail
    }

    /// The code that a line of text begins with, and the text behind it.
    #[must_use]
    pub fn split(text: &str) -> Option<(Self, &str)> {
        let (code, rest) = text.split_once(' ').unwrap_or((text, ""));
        let mut numbers = code.split('.');
        let mut number = || {
            let digits = numbers.next()?;
            let valid = (1..=3).contains(&digits.len()) && digits.bytes().all(|digit| digit.is_ascii_digit());
            if valid { digits.parse::<u16>().ok() } else { None }
        };
        let (class, subject, detail) = (number()?, number()?, number()?);
        let class = u8::try_from(class).ok().filter(|class| matches!(class, 2 | 4 | 5))?;
        numbers.next().is_none().then_some((Self { class, subject, detail }, rest))
    }
}

impl fmt::Display for EnhancedCode {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(formatter, "{}.{}.{}", self.class, self.subject, self.detail)
    }
}

/// A longer line of a reply is broken when it is written (RFC 5321, section 4.5.3.1.5).
const LINE_MAX_BYTES: usize = 506;

/// A reply: its code, and the lines of its text, of which there is at least one.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Reply {
    code: u16,
    lines: Vec<String>,
}

impl Reply {
    /// A reply with this text, whose lines become lines of the reply. What cannot stand there becomes a space, and
    /// a code out of 200 to 599 becomes 554.
    #[must_use]
    pub fn new(code: u16, text: &str) -> Self {
        Self::from_lines(code, text.lines())
    }

    /// A reply of these lines.
    #[must_use]
    pub fn from_lines<'a>(code: u16, lines: impl IntoIterator<Item = &'a str>) -> Self {
        let code = if (200..600).contains(&code) { code } else { 554 };
        let mut lines: Vec<String> = lines.into_iter().map(line_text).collect();
        if lines.is_empty() {
            lines.push(String::new());
        }
        Self { code, lines }
    }

    /// The same with an enhanced status code at the beginning of each line (RFC 2034, section 4).
    #[must_use]
    pub fn with_enhanced(code: u16, enhanced: EnhancedCode, text: &str) -> Self {
        let mut lines: Vec<String> = text.lines().map(|line| format!("{enhanced} {line}")).collect();
        if lines.is_empty() {
            lines.push(enhanced.to_string());
        }
        Self::from_lines(code, lines.iter().map(String::as_str))
    }

    /// From 200 to 599.
    #[must_use]
    pub fn code(&self) -> u16 {
        self.code
    }

    /// The text as it came, with enhanced status codes.
    #[must_use]
    pub fn lines(&self) -> &[String] {
        &self.lines
    }

    /// The enhanced status code, if the server sends one.
    #[must_use]
    pub fn enhanced(&self) -> Option<EnhancedCode> {
        let (code, _) = EnhancedCode::split(self.lines.first()?)?;
        (u16::from(code.class) == self.code / 100).then_some(code)
    }

    /// The text in one line, without enhanced status codes.
    #[must_use]
    pub fn text(&self) -> String {
        let enhanced = self.enhanced();
        let text = |line: &String| match EnhancedCode::split(line) {
            Some((code, rest)) if enhanced == Some(code) => rest.to_owned(),
            _ => line.clone(),
        };
        self.lines.iter().map(text).collect::<Vec<_>>().join(" ")
    }

    /// 2xx: done.
    #[must_use]
    pub fn is_success(&self) -> bool {
        self.code / 100 == 2
    }

    /// 4xx: may be tried again.
    #[must_use]
    pub fn is_transient(&self) -> bool {
        self.code / 100 == 4
    }

    /// 5xx: fails again.
    #[must_use]
    pub fn is_permanent(&self) -> bool {
        self.code / 100 == 5
    }

    /// Appends all lines.
    pub fn write(&self, out: &mut Vec<u8>) {
        let last = self.lines.len().saturating_sub(1);
        for (index, line) in self.lines.iter().enumerate() {
            let separator = if index == last { ' ' } else { '-' };
            out.extend_from_slice(format!("{}{separator}{line}\r\n", self.code).as_bytes());
        }
    }
}

/// A line of a reply: no control characters, and no longer than a client must take.
fn line_text(line: &str) -> String {
    let mut text = String::with_capacity(line.len().min(LINE_MAX_BYTES));
    for character in line.chars() {
        if text.len() + character.len_utf8() > LINE_MAX_BYTES {
            break;
        }
        text.push(if character.is_control() { ' ' } else { character });
    }
    text
}

/// Limits of a reply that is read.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct ReplyLimits {
    /// Lines of one reply.
    pub lines: usize,
    /// All of its text.
    pub text_bytes: usize,
}

impl Default for ReplyLimits {
    fn default() -> Self {
        Self { lines: 128, text_bytes: 1 << 20 }
    }
}

/// Why lines are no reply.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Error)]
pub enum ReplyError {
    /// A line does not begin with a code and a space or hyphen, or has another code than the one before.
    #[error("no reply of SMTP")]
    Malformed,
    /// More lines than the limit.
    #[error("a reply of more than {0} lines")]
    TooManyLines(usize),
    /// More text than the limit.
    #[error("a reply of more than {0} bytes")]
    TooLong(usize),
}

/// Puts the lines of a reply together.
#[derive(Clone, Debug, Default)]
pub struct ReplyReader {
    limits: ReplyLimits,
    code: Option<u16>,
    lines: Vec<String>,
    text_bytes: usize,
}

impl ReplyReader {
    /// Nothing has arrived yet.
    #[must_use]
    pub fn new(limits: ReplyLimits) -> Self {
        Self { limits, ..Self::default() }
    }

    /// Takes the next line, without its end; gives the reply when it is whole. The next line then begins another one.
    ///
    /// # Errors
    /// [`ReplyError`]; the connection cannot be used any more.
    pub fn line(&mut self, line: &[u8]) -> Result<Option<Reply>, ReplyError> {
        let (code, rest) = line.split_at_checked(3).ok_or(ReplyError::Malformed)?;
        let code = code_of(code).ok_or(ReplyError::Malformed)?;
        if *self.code.get_or_insert(code) != code {
            return Err(ReplyError::Malformed);
        }
        let (is_last, text) = match rest.split_first() {
            None => (true, rest),
            Some((b' ', text)) => (true, text),
            Some((b'-', text)) => (false, text),
            Some(_) => return Err(ReplyError::Malformed),
        };
        self.text_bytes = self.text_bytes.saturating_add(text.len());
        if self.text_bytes > self.limits.text_bytes {
            return Err(ReplyError::TooLong(self.limits.text_bytes));
        }
        if self.lines.len() >= self.limits.lines {
            return Err(ReplyError::TooManyLines(self.limits.lines));
        }
        self.lines.push(String::from_utf8_lossy(text).into_owned());
        if !is_last {
            return Ok(None);
        }
        self.code = None;
        self.text_bytes = 0;
        Ok(Some(Reply { code, lines: std::mem::take(&mut self.lines) }))
    }
}

fn code_of(digits: &[u8]) -> Option<u16> {
    let valid = digits.iter().all(u8::is_ascii_digit);
    let code = if valid { std::str::from_utf8(digits).ok()?.parse().ok() } else { None };
    code.filter(|code| (200..600).contains(code))
}
