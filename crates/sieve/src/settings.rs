//! Scripts of simple settings: replies while somebody is away, forwarding, and rules that move messages. A page of settings
//! makes a script of them, and reads them back from it.

mod read;

use std::fmt::Write as _;

use jiff::civil::Date;
use thiserror::Error;

use crate::action::{is_field_name, is_mailbox_name};
use crate::address::single;
use crate::limits::Limits;

/// A day of the calendar.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub struct CalendarDay(Date);

impl CalendarDay {
    /// A day of the years 0 to 9999; `None` if there is no such day.
    #[must_use]
    pub fn new(year: i16, month: i8, day: i8) -> Option<Self> {
        Date::new(year, month, day).ok().filter(|date| date.year() >= 0).map(Self)
    }

    /// Year, month and day.
    #[must_use]
    pub fn parts(&self) -> (i16, i8, i8) {
        (self.0.year(), self.0.month(), self.0.day())
    }

    /// `2026-11-26`
    fn text(self) -> String {
        let (year, month, day) = self.parts();
        format!("{year:04}-{month:02}-{day:02}")
    }

    fn parse(text: &str) -> Option<Self> {
        let mut parts = text.splitn(3, '-');
        let day =
            Self::new(parts.next()?.parse().ok()?, parts.next()?.parse().ok()?, parts.next()?.parse().ok()?)?;
        (day.text() == text).then_some(day)
    }
}

/// Replies while somebody is away.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Absence {
    /// The first day, in the owner's zone; at once if there is none.
    pub first_day: Option<CalendarDay>,
    /// The last day; until it is switched off if there is none.
    pub last_day: Option<CalendarDay>,
    /// One line; the message's own behind `Auto:` if there is none.
    pub subject: Option<String>,
    /// The reply; its lines end with `\n`.
    pub text: String,
    /// Days until the same sender gets another reply: 1 to 90.
    pub days: u32,
    /// Further addresses of the owner's that may be written to.
    pub addresses: Vec<String>,
}

/// Where messages are forwarded to.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Forwarding {
    /// 1 to 5 addresses.
    pub addresses: Vec<String>,
    /// They stay here as well, and the rules are applied to them.
    pub keeps_copy: bool,
}

/// What a rule looks at.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum RuleField {
    /// The sender in the header, with the name.
    Sender,
    /// The recipients in `To` and `Cc`, with their names.
    Recipients,
    /// The subject.
    Subject,
    /// Another field, by its name.
    Other(String),
}

/// A condition of a rule.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct RuleCondition {
    /// What it looks at.
    pub field: RuleField,
    /// The field is equal to the text; otherwise it contains it. In both cases, letters may be small or large.
    pub is_whole: bool,
    /// The text: one line, not empty.
    pub text: String,
}

/// A rule that moves messages into a mailbox.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct MoveRule {
    /// What people call it: one line, at most 100 characters.
    pub name: String,
    /// All conditions must hold; otherwise any of them.
    pub needs_all: bool,
    /// 1 to 20 conditions.
    pub conditions: Vec<RuleCondition>,
    /// The mailbox.
    pub mailbox: String,
}

/// What a page of settings shows. The first rule that applies is the only one that does.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Settings {
    /// Replies while somebody is away.
    pub absence: Option<Absence>,
    /// Where messages are forwarded to.
    pub forwarding: Option<Forwarding>,
    /// At most 100 rules, the first ones first.
    pub rules: Vec<MoveRule>,
}

/// Why settings cannot be made into a script.
#[derive(Clone, Debug, PartialEq, Eq, Error)]
pub enum SettingsError {
    /// Not an address.
    #[error("{0:?} is not an address such as ada@example.org")]
    Address(String),
    /// No address, or more than five.
    #[error("messages can be forwarded to one to {0} addresses")]
    Forwarding(usize),
    /// Not the name of a mailbox.
    #[error("{0:?} cannot be the name of a mailbox")]
    Mailbox(String),
    /// Not the name of a field.
    #[error("{0:?} cannot be the name of a header field")]
    Field(String),
    /// Empty, longer than a line may be, or with characters that no line has.
    #[error("{0:?} is not one line of text")]
    Line(String),
    /// A reply that is empty, too long, or has characters that no text has.
    #[error("the reply is empty, is longer than {0} bytes, or has characters that cannot be sent")]
    Reply(usize),
    /// Not 1 to 90 days.
    #[error("a reply can be sent again after 1 to 90 days")]
    Days,
    /// The last day is before the first.
    #[error("the last day is before the first one")]
    DaysOrder,
    /// More of something than fits into a script.
    #[error("there are no more than {limit} {what}")]
    TooMany {
        /// What there is too much of.
        what: &'static str,
        /// The limit.
        limit: usize,
    },
    /// A rule without a condition.
    #[error("the rule {0:?} has no condition")]
    NoCondition(String),
}

const RULES_MAX: usize = 100;
const CONDITIONS_MAX: usize = 20;
const ADDRESSES_MAX: usize = 50;
const REPLY_MAX_BYTES: usize = 16 * 1024;
const LINE_MAX_CHARACTERS: usize = 250;
const RULE_NAME_MAX_CHARACTERS: usize = 100;

/// How such a script begins.
const HEAD: &str = "# Made from settings. What is changed here by hand is not shown among them any more.\n";

/// How the line before a rule begins.
const RULE: &str = "# Rule: ";

impl Settings {
    /// The script. It can always be compiled with the usual limits.
    ///
    /// # Errors
    /// The first of the settings that cannot be.
    pub fn to_script(&self) -> Result<String, SettingsError> {
        self.check()?;
        let mut script = HEAD.to_owned();
        let extensions = self.extensions();
        if !extensions.is_empty() {
            line(&mut script, format_args!("require {};", list(&extensions)));
        }
        if let Some(absence) = &self.absence {
            write_absence(absence, &mut script);
        }
        if let Some(Forwarding { addresses, keeps_copy }) = &self.forwarding {
            let tag = if *keeps_copy { ":copy " } else { "" };
            for address in addresses {
                line(&mut script, format_args!("redirect {tag}{};", quoted(address)));
            }
            if !keeps_copy {
                line(&mut script, format_args!("stop;"));
            }
        }
        for rule in &self.rules {
            write_rule(rule, &mut script);
        }
        Ok(script)
    }

    /// Reads the settings of a script that [`to_script`](Self::to_script) made; `None` if a person wrote or changed it,
    /// so that saving settings would lose something.
    #[must_use]
    pub fn read(script: &str) -> Option<Self> {
        let script = script.replace("\r\n", "\n");
        let found = read::settings(&script, &Limits::default())?;
        (found.to_script().ok()? == script).then_some(found)
    }

    fn extensions(&self) -> Vec<&'static str> {
        let mut extensions = Vec::new();
        if let Some(absence) = &self.absence {
            extensions.push("vacation");
            if absence.first_day.is_some() || absence.last_day.is_some() {
                extensions.extend(["date", "relational"]);
            }
        }
        if self.forwarding.as_ref().is_some_and(|forwarding| forwarding.keeps_copy) {
            extensions.push("copy");
        }
        if !self.rules.is_empty() {
            extensions.push("fileinto");
        }
        extensions
    }

    fn check(&self) -> Result<(), SettingsError> {
        if let Some(absence) = &self.absence {
            check_absence(absence)?;
        }
        if let Some(forwarding) = &self.forwarding {
            let limit = Limits::default().redirects;
            if forwarding.addresses.is_empty() || forwarding.addresses.len() > limit {
                return Err(SettingsError::Forwarding(limit));
            }
            forwarding.addresses.iter().try_for_each(|address| check_address(address))?;
        }
        if self.rules.len() > RULES_MAX {
            return Err(SettingsError::TooMany { what: "rules", limit: RULES_MAX });
        }
        self.rules.iter().try_for_each(check_rule)
    }
}

fn check_absence(absence: &Absence) -> Result<(), SettingsError> {
    let Absence { first_day, last_day, subject, text, days, addresses } = absence;
    let is_text = |c: char| !c.is_control() || matches!(c, '\n' | '\t');
    if text.trim().is_empty() || text.len() > REPLY_MAX_BYTES || !text.chars().all(is_text) {
        return Err(SettingsError::Reply(REPLY_MAX_BYTES));
    }
    if !(1..=90).contains(days) {
        return Err(SettingsError::Days);
    }
    if matches!((first_day, last_day), (Some(first), Some(last)) if last < first) {
        return Err(SettingsError::DaysOrder);
    }
    if addresses.len() > ADDRESSES_MAX {
        return Err(SettingsError::TooMany { what: "addresses", limit: ADDRESSES_MAX });
    }
    addresses.iter().try_for_each(|address| check_address(address))?;
    subject.iter().try_for_each(|subject| check_line(subject, LINE_MAX_CHARACTERS))
}

fn check_rule(rule: &MoveRule) -> Result<(), SettingsError> {
    check_line(&rule.name, RULE_NAME_MAX_CHARACTERS)?;
    if !is_mailbox_name(&rule.mailbox) {
        return Err(SettingsError::Mailbox(rule.mailbox.clone()));
    }
    if rule.conditions.is_empty() {
        return Err(SettingsError::NoCondition(rule.name.clone()));
    }
    if rule.conditions.len() > CONDITIONS_MAX {
        return Err(SettingsError::TooMany { what: "conditions of a rule", limit: CONDITIONS_MAX });
    }
    for condition in &rule.conditions {
        check_line(&condition.text, LINE_MAX_CHARACTERS)?;
        match &condition.field {
            // Those that have a name of their own here are read back by it.
            field @ RuleField::Other(name) if !is_field_name(name) || read::field_of(name) != *field => {
                return Err(SettingsError::Field(name.clone()));
            }
            _ => {}
        }
    }
    Ok(())
}

fn check_address(address: &str) -> Result<(), SettingsError> {
    if single(address).as_deref() == Some(address) {
        return Ok(());
    }
    Err(SettingsError::Address(address.to_owned()))
}

fn check_line(text: &str, most_characters: usize) -> Result<(), SettingsError> {
    let is_line = !text.trim().is_empty()
        && text.trim() == text
        && text.chars().count() <= most_characters
        && !text.chars().any(char::is_control);
    if is_line { Ok(()) } else { Err(SettingsError::Line(text.to_owned())) }
}

fn line(script: &mut String, text: std::fmt::Arguments<'_>) {
    // Writing into a string cannot fail.
    let _ = writeln!(script, "{text}");
}

/// A string of Sieve: what a person wrote cannot end it (RFC 5228, section 2.4.2).
fn quoted(text: &str) -> String {
    format!("\"{}\"", text.replace('\\', "\\\\").replace('"', "\\\""))
}

fn list<T: AsRef<str>>(texts: &[T]) -> String {
    let texts: Vec<String> = texts.iter().map(|text| quoted(text.as_ref())).collect();
    format!("[{}]", texts.join(", "))
}

fn write_absence(absence: &Absence, script: &mut String) {
    let Absence { first_day, last_day, subject, text, days, addresses } = absence;
    let mut vacation = format!("vacation :days {days}");
    if let Some(subject) = subject {
        vacation.push_str(&format!(" :subject {}", quoted(subject)));
    }
    if !addresses.is_empty() {
        vacation.push_str(&format!(" :addresses {}", list(addresses)));
    }
    vacation.push_str(&format!(" {};", quoted(text)));
    let test = |relation: &str, day: &CalendarDay| {
        format!("currentdate :value {} \"date\" {}", quoted(relation), quoted(&day.text()))
    };
    let first = first_day.iter().map(|day| test("ge", day));
    let tests: Vec<String> = first.chain(last_day.iter().map(|day| test("le", day))).collect();
    if tests.is_empty() {
        line(script, format_args!("{vacation}"));
    } else {
        line(script, format_args!("if allof ({}) {{ {vacation} }}", tests.join(", ")));
    }
}

fn write_rule(rule: &MoveRule, script: &mut String) {
    let tests: Vec<String> = rule
        .conditions
        .iter()
        .map(|RuleCondition { field, is_whole, text }| {
            let kind = if *is_whole { ":is" } else { ":contains" };
            let field = match field {
                RuleField::Sender => quoted("from"),
                RuleField::Recipients => list(&["to", "cc"]),
                RuleField::Subject => quoted("subject"),
                RuleField::Other(name) => quoted(name),
            };
            format!("header {kind} {field} {}", quoted(text))
        })
        .collect();
    let test = if rule.needs_all { "allof" } else { "anyof" };
    line(script, format_args!("{RULE}{}", rule.name));
    let mailbox = quoted(&rule.mailbox);
    line(script, format_args!("if {test} ({}) {{ fileinto {mailbox}; stop; }}", tests.join(", ")));
}
