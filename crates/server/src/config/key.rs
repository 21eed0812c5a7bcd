//! What is known of one key, and the macro that turns the table of keys into a list and a typed struct.

use std::path::PathBuf;
use std::time::Duration;

use super::units::Share;
use super::value::{Address, Kind, Value};

/// Whether a key's new value is used at once.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Change {
    /// It is used at once when `set config` sets it.
    Running,
    /// It is used from the next start on.
    Restart,
    /// It is used from the next start on, and the console does not set it: it says where the process reads and writes,
    /// whom it listens to, or who is let in. So who has an administrator's password has no more of the machine than the
    /// server's data.
    File,
}

/// One line of the table of keys.
#[derive(Clone, Copy, Debug)]
pub struct Key {
    /// `section.key`.
    pub name: &'static str,
    /// What it takes.
    pub kind: Kind,
    /// The default, as it is written in the environment.
    pub default: &'static str,
    /// Whether a new value is used at once.
    pub change: Change,
    /// The setting of Domino that does the same, if there is one.
    pub domino: Option<&'static str>,
    /// Help as it stands in the table, line by line.
    pub(super) help_lines: &'static str,
}

impl Key {
    /// The part after the dot.
    #[must_use]
    pub fn short_name(&self) -> &'static str {
        self.name.split_once('.').map_or(self.name, |(_, key)| key)
    }

    /// What it is for, in one paragraph.
    #[must_use]
    pub fn help(&self) -> String {
        paragraph(self.help_lines)
    }

    /// The default as a value.
    ///
    /// # Errors
    /// Says what is wrong with the table; a test reads every default.
    pub fn default_value(&self) -> Result<Value, String> {
        self.kind.parse_text(self.default)
    }
}

/// One section of the table.
#[derive(Clone, Copy, Debug)]
pub struct Section {
    /// The part before the dot.
    pub name: &'static str,
    /// Its keys, in the order in which they are shown.
    pub keys: &'static [Key],
    pub(super) help_lines: &'static str,
}

impl Section {
    /// What it is for, in one paragraph.
    #[must_use]
    pub fn help(&self) -> String {
        paragraph(self.help_lines)
    }
}

fn paragraph(lines: &str) -> String {
    lines.lines().map(str::trim).collect::<Vec<_>>().join(" ").trim().to_owned()
}

/// The type that a key's value has in the settings.
pub(super) trait Setting {
    /// A value of another kind cannot come here, since values are read by the key's own kind; the type's
    /// empty value stands for it.
    fn from_value(value: Option<Value>) -> Self;
}

macro_rules! setting {
    ($($kind:ident => $type:ty, $empty:expr;)*) => {
        $(impl Setting for $type {
            fn from_value(value: Option<Value>) -> Self {
                match value { Some(Value::$kind(value)) => value, _ => $empty }
            }
        })*
    };
}

setting! {
    Boolean => bool, false;
    Integer => usize, 0;
    Bytes => u64, 0;
    Memory => Share, Share::Bytes(0);
    Duration => Duration, Duration::ZERO;
    Addresses => Vec<Address>, Vec::new();
    Path => PathBuf, PathBuf::new();
    Text => String, String::new();
    TextList => Vec<String>, Vec::new();
}

/// The Rust type of a kind.
macro_rules! type_of {
    (Boolean) => { bool };
    (Integer) => { usize };
    (Bytes) => { u64 };
    (Memory) => { $crate::config::Share };
    (Duration) => { ::std::time::Duration };
    (Addresses) => { ::std::vec::Vec<$crate::config::Address> };
    (Path) => { ::std::path::PathBuf };
    (Choice) => { ::std::string::String };
    (Text) => { ::std::string::String };
    (TextList) => { ::std::vec::Vec<::std::string::String> };
}

macro_rules! domino_name {
    () => {
        None
    };
    ($name:literal) => {
        Some($name)
    };
}

/// Turns the table into `SECTIONS`, a struct for each section, and `Settings` that holds them all; what is named first,
/// if anything is, is filled in by somebody else.
macro_rules! configuration {
    ($([$extra:ident: $extra_type:ty, $extra_help:literal])? $(
        $(#[doc = $section_help:literal])*
        $section:ident as $type:ident {
            $(
                $(#[doc = $help:literal])*
                $key:ident: $kind:ident $({ $($bounds:tt)* })? = $default:literal, $change:ident
                $(, domino $domino:literal)?;
            )*
        }
    )*) => {
        /// Every section with its keys, in the order in which they are shown.
        pub const SECTIONS: &[Section] = &[$(Section {
            name: stringify!($section),
            help_lines: concat!($($section_help, "\n"),*),
            keys: &[$(Key {
                name: concat!(stringify!($section), ".", stringify!($key)),
                kind: Kind::$kind $({ $($bounds)* })?,
                default: $default,
                change: Change::$change,
                domino: domino_name!($($domino)?),
                help_lines: concat!($($help, "\n"),*),
            }),*],
        }),*];

        $(
            $(#[doc = $section_help])*
            #[derive(Clone, Debug, PartialEq, Eq)]
            pub struct $type {
                $($(#[doc = $help])* pub $key: type_of!($kind),)*
            }
        )*

        /// The values of all keys.
        #[derive(Clone, Debug, PartialEq, Eq)]
        pub struct Settings {
            $($(#[doc = $section_help])* pub $section: $type,)*
            $(#[doc = $extra_help] pub $extra: $extra_type,)?
        }

        impl Settings {
            /// Collects the settings from the values that `value` gives by name.
            pub(super) fn collect(mut value: impl FnMut(&str) -> Option<Value>) -> Self {
                Self {
                    $($section: $type {
                        $($key: Setting::from_value(value(
                            concat!(stringify!($section), ".", stringify!($key))
                        )),)*
                    },)*
                    $($extra: <$extra_type>::default(),)?
                }
            }
        }
    };
}

pub(super) use {configuration, domino_name, type_of};
