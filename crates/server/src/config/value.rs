//! Values of configuration keys: their types, how they are read and how they are written.

use std::fmt;
use std::path::PathBuf;
use std::time::Duration;

use super::units::{Share, parse_bytes, parse_duration, print_bytes, print_duration};

/// The most items a list may have, and the most letters a text.
const LIST_LIMIT: usize = 256;
const TEXT_LIMIT: usize = 4096;

/// Looks at a text and says what is wrong with it.
pub(super) type Check = fn(&str) -> Result<(), String>;

/// What may stand in a key.
#[derive(Clone, Copy, Debug)]
#[allow(missing_docs, reason = "bounds are inclusive and named after what they bound")]
pub enum Kind {
    /// `true` or `false`.
    Boolean,
    /// A whole number.
    Integer { min: usize, max: usize },
    /// A number of bytes, with or without unit.
    Bytes { min: u64, max: u64 },
    /// A number of bytes, or a percentage of the memory that the server may use.
    Memory { min: u64 },
    /// A time with its unit.
    Duration { min: Duration, max: Duration },
    /// `HOST:PORT` of where to listen, several where wished.
    Addresses { at_least: usize },
    /// A file or folder.
    Path,
    /// One of a few words.
    Choice { options: &'static [&'static str] },
    /// Any text that passes the check; `form` says in words what that is.
    Text { form: &'static str, check: Check },
    /// A list of such texts.
    TextList { form: &'static str, check: Check },
}

/// The value of a key.
#[derive(Clone, Debug, PartialEq, Eq)]
#[allow(missing_docs, reason = "named as the kinds are")]
pub enum Value {
    Boolean(bool),
    Integer(usize),
    Bytes(u64),
    Memory(Share),
    Duration(Duration),
    Addresses(Vec<Address>),
    Path(PathBuf),
    Text(String),
    TextList(Vec<String>),
}

/// Where a port listens.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub struct Address {
    /// A name or an address; one of IPv6 without its brackets.
    pub host: String,
    /// The port; 0 takes a free one.
    pub port: u16,
}

impl Address {
    /// Parses `HOST:PORT` or `[IPV6]:PORT`.
    ///
    /// # Errors
    /// Says what is wrong with the text.
    pub fn parse(text: &str) -> Result<Self, String> {
        let wrong = || format!("{text:?} is no address: write it like \"127.0.0.1:5984\" or \"[::1]:5984\"");
        let (host, port) = text.trim().rsplit_once(':').ok_or_else(wrong)?;
        let port = port.parse().map_err(|_| wrong())?;
        let bracketed = host.strip_prefix('[').and_then(|host| host.strip_suffix(']'));
        let host = match bracketed {
            Some(host) => host.parse::<std::net::Ipv6Addr>().map(|_| host).map_err(|_| wrong())?,
            None => host,
        };
        let legal = |letter: char| letter.is_ascii_alphanumeric() || ".-".contains(letter);
        if host.is_empty() || (bracketed.is_none() && !host.chars().all(legal)) {
            return Err(wrong());
        }
        Ok(Self { host: host.to_owned(), port })
    }
}

impl fmt::Display for Address {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Self { host, port } = self;
        if host.contains(':') {
            write!(formatter, "[{host}]:{port}")
        } else {
            write!(formatter, "{host}:{port}")
        }
    }
}

impl Kind {
    /// Reads a value as it is written in the environment or on the console; items of a list are separated
    /// by commas.
    ///
    /// # Errors
    /// Says what is wrong with the text.
    pub fn parse_text(&self, text: &str) -> Result<Value, String> {
        let text = text.trim();
        match self {
            Self::Boolean => match text.to_ascii_lowercase().as_str() {
                "true" | "on" | "yes" | "1" => Ok(Value::Boolean(true)),
                "false" | "off" | "no" | "0" => Ok(Value::Boolean(false)),
                _ => Err(format!("{text:?} is neither true nor false")),
            },
            Self::Integer { .. } => {
                let number = text.replace('_', "").parse();
                self.bounded(Value::Integer(number.map_err(|_| format!("{text:?} is no whole number"))?))
            }
            Self::Bytes { .. } => self.bounded(Value::Bytes(parse_bytes(text)?)),
            Self::Memory { .. } => self.bounded(Value::Memory(Share::parse(text)?)),
            Self::Duration { .. } => self.bounded(Value::Duration(parse_duration(text)?)),
            Self::Addresses { .. } | Self::TextList { .. } => {
                self.parse_list(text.split(',').map(str::trim).filter(|item| !item.is_empty()))
            }
            Self::Path | Self::Choice { .. } | Self::Text { .. } => self.checked_text(text),
        }
    }

    /// Reads a value of a TOML file.
    ///
    /// # Errors
    /// Says what is wrong with the value.
    pub fn parse_toml(&self, item: &toml_edit::Value) -> Result<Value, String> {
        use toml_edit::Value as Toml;
        match (self, item) {
            (Self::Boolean, Toml::Boolean(value)) => Ok(Value::Boolean(*value.value())),
            (Self::Integer { .. } | Self::Bytes { .. } | Self::Memory { .. }, Toml::Integer(value)) => {
                let number = *value.value();
                if number < 0 {
                    return Err(format!("{number} is negative"));
                }
                self.parse_text(&number.to_string())
            }
            (Self::Bytes { .. } | Self::Memory { .. } | Self::Duration { .. }, Toml::String(value)) => {
                self.parse_text(value.value())
            }
            (Self::Path | Self::Choice { .. } | Self::Text { .. }, Toml::String(value)) => {
                self.checked_text(value.value())
            }
            (Self::Addresses { .. } | Self::TextList { .. }, Toml::String(value)) => {
                self.parse_list(std::iter::once(value.value().as_str()))
            }
            (Self::Addresses { .. } | Self::TextList { .. }, Toml::Array(array)) => {
                let items: Option<Vec<&str>> = array.iter().map(Toml::as_str).collect();
                self.parse_list(items.ok_or("each item of the list must be a text in quotes")?.into_iter())
            }
            _ => Err(format!("a value of type {} cannot stand here: it takes {self}", item.type_name())),
        }
    }

    fn parse_list<'a>(&self, items: impl Iterator<Item = &'a str>) -> Result<Value, String> {
        let items: Vec<&str> = items.take(LIST_LIMIT + 1).collect();
        if items.len() > LIST_LIMIT {
            return Err(format!("the list has more than {LIST_LIMIT} items"));
        }
        match self {
            Self::Addresses { at_least } if items.len() < *at_least => {
                Err("at least one address is needed".to_owned())
            }
            Self::Addresses { .. } => {
                items.into_iter().map(Address::parse).collect::<Result<_, _>>().map(Value::Addresses)
            }
            Self::TextList { check, .. } => {
                let checked = items.into_iter().map(|item| check(item).map(|()| item.to_owned()));
                checked.collect::<Result<_, _>>().map(Value::TextList)
            }
            _ => Err("this is no list".to_owned()),
        }
    }

    fn checked_text(&self, text: &str) -> Result<Value, String> {
        if text.len() > TEXT_LIMIT || text.chars().any(char::is_control) {
            return Err(format!("it must be one line of at most {TEXT_LIMIT} bytes"));
        }
        match self {
            Self::Path if text.is_empty() => Err("a path is needed".to_owned()),
            Self::Path => Ok(Value::Path(PathBuf::from(text))),
            Self::Choice { options } if !options.contains(&text) => {
                Err(format!("{text:?} is not one of {}", options.join(", ")))
            }
            Self::Text { check, .. } => check(text).map(|()| Value::Text(text.to_owned())),
            _ => Ok(Value::Text(text.to_owned())),
        }
    }

    fn bounded(&self, value: Value) -> Result<Value, String> {
        let within = match (self, &value) {
            (Self::Integer { min, max }, Value::Integer(number)) => (min..=max).contains(&number),
            (Self::Bytes { min, max }, Value::Bytes(bytes)) => (min..=max).contains(&bytes),
            (Self::Memory { min }, Value::Memory(Share::Bytes(bytes))) => bytes >= min,
            (Self::Memory { .. }, Value::Memory(Share::Percent(percent))) => (1..=100).contains(percent),
            (Self::Duration { min, max }, Value::Duration(time)) => (min..=max).contains(&time),
            _ => true,
        };
        if within { Ok(value) } else { Err(format!("{value} is out of bounds: it takes {self}")) }
    }
}

/// What a key takes, in words: `a whole number, 1 to 100`.
impl fmt::Display for Kind {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Boolean => formatter.write_str("true or false"),
            Self::Integer { min, max } => write!(formatter, "a whole number, {min} to {max}"),
            Self::Bytes { min, max } => {
                write!(formatter, "a size, {} to {}", print_bytes(*min), print_bytes(*max))
            }
            Self::Memory { min } => {
                write!(formatter, "a size of at least {}, or 1 % to 100 % of the memory", print_bytes(*min))
            }
            Self::Duration { min, max } => {
                write!(formatter, "a time, {} to {}", print_duration(*min), print_duration(*max))
            }
            Self::Addresses { .. } => formatter.write_str("a list of addresses, HOST:PORT"),
            Self::Path => formatter.write_str("a path"),
            Self::Choice { options } => write!(formatter, "one of {}", options.join(", ")),
            Self::Text { form, .. } => formatter.write_str(form),
            Self::TextList { form, .. } => write!(formatter, "a list, each {form}"),
        }
    }
}

impl Value {
    /// The value as it stands in the configuration file.
    #[must_use]
    pub fn to_toml(&self) -> toml_edit::Value {
        match self {
            Self::Boolean(value) => (*value).into(),
            Self::Integer(value) => i64::try_from(*value).unwrap_or(i64::MAX).into(),
            Self::Addresses(items) => items.iter().map(ToString::to_string).collect(),
            Self::TextList(items) => items.iter().map(String::as_str).collect(),
            _ => self.to_string().into(),
        }
    }

    /// The value in JSON: sizes as numbers of bytes, times as seconds, the rest as written in the file.
    #[must_use]
    pub fn to_json(&self) -> serde_json::Value {
        match self {
            Self::Boolean(value) => (*value).into(),
            Self::Integer(value) => (*value).into(),
            Self::Bytes(bytes) | Self::Memory(Share::Bytes(bytes)) => (*bytes).into(),
            Self::Duration(time) => time.as_secs_f64().into(),
            Self::Addresses(items) => items.iter().map(ToString::to_string).collect(),
            Self::TextList(items) => items.iter().map(String::as_str).collect(),
            _ => self.to_string().into(),
        }
    }
}

/// The value as it is written in the environment and on the console.
impl fmt::Display for Value {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Boolean(value) => write!(formatter, "{value}"),
            Self::Integer(value) => write!(formatter, "{value}"),
            Self::Bytes(bytes) => formatter.write_str(&print_bytes(*bytes)),
            Self::Memory(share) => write!(formatter, "{share}"),
            Self::Duration(time) => formatter.write_str(&print_duration(*time)),
            Self::Path(path) => write!(formatter, "{}", path.display()),
            Self::Text(text) => formatter.write_str(text),
            Self::TextList(items) => formatter.write_str(&items.join(",")),
            Self::Addresses(items) => {
                let items: Vec<String> = items.iter().map(ToString::to_string).collect();
                formatter.write_str(&items.join(","))
            }
        }
    }
}
