//! What a server offers: the lines of CAPA (RFC 2449, section 6).

use scrinium_line_wire::Mechanism;

/// How long messages stay.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Expire {
    /// Until they are deleted.
    Never,
    /// This many days, and whether that differs between people.
    Days(u32, bool),
}

/// How long a client waits before it logs in again.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct LoginDelay {
    /// Seconds from one log-in to the next.
    pub seconds: u32,
    /// Whether that differs between people.
    pub by_user: bool,
}

/// Something that a server can do.
#[derive(Clone, Debug, PartialEq, Eq)]
#[allow(missing_docs, reason = "the names say it")]
pub enum Capability {
    Top,
    User,
    Sasl(Vec<Mechanism>),
    ResponseCodes,
    /// AUTH-RESP-CODE (RFC 3206).
    AuthResponseCode,
    LoginDelay(LoginDelay),
    Pipelining,
    Expire(Expire),
    UniqueIds,
    StartTls,
    /// UTF8, and whether names of users may go beyond ASCII (RFC 6856).
    Utf8(bool),
    Language,
    Implementation(String),
    /// The keyword in capitals, and what follows it.
    Other(String, String),
}

impl Capability {
    /// Reads a line, without its end and with its dot taken away; `None` if it has no keyword, or its parameters are
    /// wrong.
    #[must_use]
    pub fn parse(line: &[u8]) -> Option<Self> {
        let line = String::from_utf8_lossy(line);
        let line = line.trim();
        let (keyword, rest) = line.split_once(' ').unwrap_or((line, ""));
        let rest = rest.trim();
        let words: Vec<&str> = rest.split_ascii_whitespace().take(64).collect();
        Some(match (keyword.to_ascii_uppercase().as_str(), words.as_slice()) {
            ("", _) => return None,
            ("TOP", []) => Self::Top,
            ("USER", []) => Self::User,
            ("SASL", names) => {
                Self::Sasl(names.iter().filter_map(|name| Mechanism::parse(name.as_bytes()).ok()).collect())
            }
            ("RESP-CODES", []) => Self::ResponseCodes,
            ("AUTH-RESP-CODE", []) => Self::AuthResponseCode,
            ("LOGIN-DELAY", [seconds, more @ ..]) => {
                Self::LoginDelay(LoginDelay { seconds: seconds.parse().ok()?, by_user: by_user(more) })
            }
            ("PIPELINING", []) => Self::Pipelining,
            ("EXPIRE", ["NEVER", ..]) => Self::Expire(Expire::Never),
            ("EXPIRE", [days, more @ ..]) => Self::Expire(Expire::Days(days.parse().ok()?, by_user(more))),
            ("UIDL", []) => Self::UniqueIds,
            ("STLS", []) => Self::StartTls,
            ("UTF8", more) => Self::Utf8(by_user(more)),
            ("LANG", []) => Self::Language,
            ("IMPLEMENTATION", [_, ..]) => Self::Implementation(rest.to_owned()),
            (keyword, _) => Self::Other(keyword.to_owned(), rest.to_owned()),
        })
    }

    /// The line that says it, without its end.
    #[must_use]
    pub fn line(&self) -> String {
        let user = |by_user: bool| if by_user { " USER" } else { "" };
        let line = match self {
            Self::Top => "TOP".to_owned(),
            Self::User => "USER".to_owned(),
            Self::Sasl(mechanisms) => {
                let names = mechanisms.iter().map(|mechanism| format!(" {mechanism}"));
                format!("SASL{}", names.collect::<String>())
            }
            Self::ResponseCodes => "RESP-CODES".to_owned(),
            Self::AuthResponseCode => "AUTH-RESP-CODE".to_owned(),
            Self::LoginDelay(delay) => format!("LOGIN-DELAY {}{}", delay.seconds, user(delay.by_user)),
            Self::Pipelining => "PIPELINING".to_owned(),
            Self::Expire(Expire::Never) => "EXPIRE NEVER".to_owned(),
            Self::Expire(Expire::Days(days, by_user)) => format!("EXPIRE {days}{}", user(*by_user)),
            Self::UniqueIds => "UIDL".to_owned(),
            Self::StartTls => "STLS".to_owned(),
            Self::Utf8(by_user) => format!("UTF8{}", user(*by_user)),
            Self::Language => "LANG".to_owned(),
            Self::Implementation(text) => format!("IMPLEMENTATION {text}"),
            Self::Other(keyword, rest) if rest.is_empty() => keyword.clone(),
            Self::Other(keyword, rest) => format!("{keyword} {rest}"),
        };
        line.replace(|character: char| character.is_control(), " ")
    }
}

fn by_user(words: &[&str]) -> bool {
    words.first().is_some_and(|word| word.eq_ignore_ascii_case("USER"))
}
