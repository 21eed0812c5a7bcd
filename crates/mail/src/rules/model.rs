//! Rules as they are written down, and what they make of a memo.

use std::sync::Arc;

use jiff::Timestamp;
use jiff::tz::TimeZone;
use scrinium_catalog::{is_mail_file, is_mailbox, is_own_database, validate_name};
use scrinium_clock::Clock;
use scrinium_database::Edit;
use scrinium_database::folder::name::validate as validate_folder;
use scrinium_directory::{DIRECTORY_DATABASE, Person};
use scrinium_formula::{AttachmentInfo, Environment, Fields, Formula, Text, Value as FormulaValue};
use scrinium_sieve::{HeaderEdit, Notification, VacationReply};
use scrinium_smtp_wire::Mailbox;
use serde::{Deserialize, Serialize};
use serde_json::{Map, Value};
use thiserror::Error;

use crate::envelope::EnvelopeItems;
use crate::inbox::{INBOX, JUNK, into_folder};
use crate::memo::field;
use crate::outgoing::OUTGOING_DATABASE;

/// A set has at most this many rules.
const RULES_MAX: usize = 100;

/// A rule has at most this many actions.
const ACTIONS_MAX: usize = 10;

/// A set forwards to at most this many addresses.
const FORWARDS_MAX: usize = 5;

/// A formula has at most this many bytes.
const FORMULA_MAX_BYTES: usize = 4096;

/// Names of rules, and texts for senders and administrators, have at most this many bytes.
const TEXT_MAX_BYTES: usize = 200;

/// Steps that all formulas of a set take together for one message: as many as one formula alone may take.
const STEPS_MAX: u32 = scrinium_formula::MAX_STEPS;

/// A set of rules as its owner writes it.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
struct WrittenSet {
    #[serde(default)]
    rules: Vec<WrittenRule>,
}

#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
struct WrittenRule {
    name: String,
    /// A formula; the rule applies to messages that it selects.
    when: String,
    actions: Vec<Action>,
    /// Whether rules after this one are not looked at where it applies.
    #[serde(default)]
    stop: bool,
}

/// What a rule does.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
enum Action {
    /// Into this folder instead of the Inbox.
    Move(String),
    /// Into this folder as well.
    Copy(String),
    /// To this address as well.
    Forward(String),
    /// Not taken; the sender hears this.
    Reject(String),
    /// Kept back in the mail.box, for this reason.
    Hold(String),
    /// With these flags: `read`, `flagged`, or keywords.
    Mark(Vec<String>),
    /// Into this database as well.
    Journal(String),
}

/// Rules, compiled.
#[derive(Debug)]
pub struct RuleSet {
    written: WrittenSet,
    formulas: Vec<Formula>,
}

/// Why rules are none.
#[derive(Clone, Debug, PartialEq, Eq, Error)]
pub enum RuleSetError {
    /// They have another form.
    #[error(
        "rules have the form {{\"rules\": [{{\"name\": …, \"when\": FORMULA, \"actions\": [{{\"move\": FOLDER}}, …], \"stop\": true}}]}}: {0}"
    )]
    Form(String),
    /// One of them cannot be obeyed.
    #[error("the rule {rule:?}: {reason}")]
    Rule {
        /// Its name.
        rule: String,
        /// Why, and what would be right.
        reason: String,
    },
}

/// What a set of rules makes of one memo.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(crate) struct Verdict {
    /// The folder that it comes into, where that is not the Inbox.
    pub(crate) folder: Option<String>,
    /// Further folders.
    pub(crate) copies: Vec<String>,
    /// Addresses that get it too.
    pub(crate) forwards: Vec<String>,
    /// Its sender hears this, and nobody gets it.
    pub(crate) reject: Option<String>,
    /// Why it is kept back.
    pub(crate) hold: Option<String>,
    /// Flags as the field `$Flags` has them.
    pub(crate) flags: Vec<String>,
    /// Its recipient has read it.
    pub(crate) is_read: bool,
    /// Databases that get it too.
    pub(crate) journals: Vec<String>,
    /// Automatic replies to its sender.
    pub(crate) replies: Vec<VacationReply>,
    /// Notices of it to others.
    pub(crate) notices: Vec<Notification>,
    /// Changes of its head, in all copies.
    pub(crate) header_edits: Vec<HeaderEdit>,
    /// The router has to look at it: what comes straight has no id by which it could be remembered.
    pub(crate) waits: bool,
    /// Its recipient does not keep it.
    pub(crate) is_discarded: bool,
}

impl Verdict {
    /// Whether all of it can be done as the memo is put into mail files.
    pub(crate) fn is_direct(&self) -> bool {
        let sends = !(self.forwards.is_empty() && self.replies.is_empty() && self.notices.is_empty());
        !sends
            && !self.waits
            && self.header_edits.is_empty()
            && self.hold.is_none()
            && self.journals.is_empty()
    }
}

/// A memo as formulas see it.
struct MemoFields<'m>(&'m Map<String, Value>);

impl Fields for MemoFields<'_> {
    fn field(&self, name: &str) -> Option<FormulaValue> {
        let exact = self.0.get(name);
        let found = exact.or_else(|| {
            let wanted = name.to_lowercase();
            self.0.iter().find(|(name, _)| name.to_lowercase() == wanted).map(|(_, value)| value)
        });
        found.and_then(FormulaValue::from_json)
    }

    fn id(&self) -> &str {
        self.0.get("_id").and_then(Value::as_str).unwrap_or_default()
    }

    fn field_names(&self) -> Option<Vec<Text>> {
        Some(self.0.keys().map(|name| Text::new(name.as_str())).collect())
    }

    fn attachments(&self) -> Vec<AttachmentInfo> {
        let list = |name: &str| self.0.get(name).and_then(Value::as_array).into_iter().flatten();
        let sizes = list(field::FILE_SIZES).map(|size| size.as_u64().unwrap_or(0));
        let names = list(field::FILE_NAMES).filter_map(Value::as_str);
        names.zip(sizes).map(|(name, length)| AttachmentInfo { name: name.to_owned(), length }).collect()
    }

    fn size_bytes(&self) -> u64 {
        self.0.get(field::SIZE).and_then(Value::as_u64).unwrap_or(0)
    }
}

impl RuleSet {
    /// Reads rules: those of the server may hold and journal, a person's may not.
    ///
    /// # Errors
    /// [`RuleSetError`], in words for the one who has written them.
    pub fn read(value: &Value, is_servers: bool) -> Result<Self, RuleSetError> {
        if !value.is_object() {
            return Err(RuleSetError::Form("they are no object".to_owned()));
        }
        let written: WrittenSet =
            serde_json::from_value(value.clone()).map_err(|error| RuleSetError::Form(error.to_string()))?;
        if written.rules.len() > RULES_MAX {
            return Err(RuleSetError::Form(format!("at most {RULES_MAX} rules")));
        }
        let mut formulas = Vec::with_capacity(written.rules.len());
        let mut forwards = 0;
        for rule in &written.rules {
            let wrong = |reason: String| RuleSetError::Rule { rule: shown(&rule.name), reason };
            formulas.push(rule.compile(is_servers).map_err(wrong)?);
            forwards += rule.actions.iter().filter(|action| matches!(action, Action::Forward(_))).count();
            if forwards > FORWARDS_MAX {
                return Err(wrong(format!("rules forward to at most {FORWARDS_MAX} addresses")));
            }
        }
        Ok(Self { written, formulas })
    }

    /// As they were written.
    #[must_use]
    pub fn to_value(&self) -> Value {
        serde_json::to_value(&self.written).unwrap_or_default()
    }

    /// Whether there are none.
    #[must_use]
    pub fn is_empty(&self) -> bool {
        self.formulas.is_empty()
    }

    /// What they make of a memo. A formula that fails, and one for which no steps are left, does not apply.
    pub(crate) fn judge(&self, memo: &Map<String, Value>, clock: &Clock) -> Verdict {
        let mut verdict = Verdict::default();
        let now = i64::try_from(clock.now_ms()).ok().and_then(|now| Timestamp::from_millisecond(now).ok());
        let environment = Environment::new(now.unwrap_or_default(), TimeZone::UTC);
        let (fields, mut steps) = (MemoFields(memo), STEPS_MAX);
        for (rule, formula) in self.written.rules.iter().zip(&self.formulas) {
            match formula.selects_within(&fields, &environment, &mut steps) {
                Ok(false) => continue,
                Ok(true) => rule.actions.iter().for_each(|action| verdict.add(action)),
                Err(error) => {
                    tracing::info!(rule = %rule.name, %error, "a mail rule does not apply");
                    continue;
                }
            }
            if rule.stop {
                break;
            }
        }
        verdict
    }
}

impl Verdict {
    /// This one of a person, after that of the server, which holds where this one says nothing else.
    pub(crate) fn after(mut self, servers: &Self) -> Self {
        self.folder = self.folder.or_else(|| servers.folder.clone());
        self.is_read |= servers.is_read;
        for (own, theirs) in [(&mut self.copies, &servers.copies), (&mut self.flags, &servers.flags)] {
            for text in theirs {
                if !own.contains(text) {
                    own.push(text.clone());
                }
            }
        }
        self
    }

    /// The server's verdict on a memo whose author nobody vouches for: its place is not the Inbox, unless rules say another.
    pub(crate) fn aside(mut self, envelope: &EnvelopeItems) -> Self {
        if self.folder.is_none() && envelope.is_suspect() {
            self.folder = Some(JUNK.to_owned());
        }
        self
    }

    /// Flags a memo that is to be delivered.
    pub(crate) fn flag(&self, memo: &mut Map<String, Value>) {
        if !self.flags.is_empty() {
            memo.insert(field::FLAGS.to_owned(), Value::from(self.flags.clone()));
        }
    }

    /// Puts a memo where it belongs in a person's mail file.
    pub(crate) fn place(&self, edit: &mut Edit, person: &Person) {
        edit.folders = into_folder(self.folder.as_deref().unwrap_or(INBOX));
        for folder in &self.copies {
            if Some(folder) != self.folder.as_ref() {
                edit.folders.extend(into_folder(folder));
            }
        }
        if self.is_read {
            edit.read_by = Some(Arc::from(person.short_name.as_str()));
        }
    }

    fn add(&mut self, action: &Action) {
        let once = |list: &mut Vec<String>, text: &String| {
            if !list.contains(text) {
                list.push(text.clone());
            }
        };
        match action {
            Action::Move(folder) => self.folder = Some(folder.clone()),
            Action::Copy(folder) => once(&mut self.copies, folder),
            Action::Forward(address) => once(&mut self.forwards, address),
            Action::Reject(text) => drop(self.reject.get_or_insert_with(|| text.clone())),
            Action::Hold(reason) => drop(self.hold.get_or_insert_with(|| reason.clone())),
            Action::Journal(database) => once(&mut self.journals, database),
            Action::Mark(flags) => {
                for flag in flags {
                    match flag.as_str() {
                        "read" => self.is_read = true,
                        "flagged" => once(&mut self.flags, &"\\Flagged".to_owned()),
                        _ => once(&mut self.flags, flag),
                    }
                }
            }
        }
    }
}

impl WrittenRule {
    fn compile(&self, is_servers: bool) -> Result<Formula, String> {
        check_text("its name", &self.name)?;
        if self.actions.is_empty() || self.actions.len() > ACTIONS_MAX {
            return Err(format!("it has 1 to {ACTIONS_MAX} actions"));
        }
        self.actions.iter().try_for_each(|action| action.check(is_servers))?;
        if self.when.len() > FORMULA_MAX_BYTES {
            return Err(format!("its formula has at most {FORMULA_MAX_BYTES} bytes"));
        }
        Formula::compile(&self.when).map_err(|error| format!("its formula: {error}"))
    }
}

impl Action {
    fn check(&self, is_servers: bool) -> Result<(), String> {
        match self {
            Self::Move(folder) | Self::Copy(folder) => {
                validate_folder(folder).map_err(|error| error.to_string())
            }
            Self::Forward(address) => match Mailbox::parse(address.as_bytes()) {
                Ok(_) => Ok(()),
                Err(_) => Err(format!("{:?} is no address to forward to", shown(address))),
            },
            Self::Reject(text) if text.is_ascii() => check_text("what the sender hears", text),
            Self::Reject(_) => Err("what the sender hears is written in ASCII".to_owned()),
            Self::Mark(flags) => {
                let is_keyword = |flag: &String| {
                    !flag.is_empty()
                        && flag.len() <= 64
                        && flag.bytes().all(|byte| byte.is_ascii_alphanumeric() || b"$_-.".contains(&byte))
                };
                let are_sound = flags.len() <= ACTIONS_MAX && flags.iter().all(is_keyword);
                if are_sound { Ok(()) } else { Err("marks are `read`, `flagged` or keywords".to_owned()) }
            }
            Self::Hold(_) | Self::Journal(_) if !is_servers => {
                Err("only rules of the server hold messages and journal them".to_owned())
            }
            Self::Hold(reason) => check_text("the reason of holding", reason),
            Self::Journal(name) => {
                let is_kept = is_mail_file(name)
                    || is_mailbox(name)
                    || is_own_database(name)
                    || [DIRECTORY_DATABASE, OUTGOING_DATABASE].contains(&name.as_str());
                if is_kept || validate_name(name).is_err() || name.starts_with('_') {
                    return Err(format!("{:?} cannot be a database for a journal", shown(name)));
                }
                Ok(())
            }
        }
    }
}

fn check_text(what: &str, text: &str) -> Result<(), String> {
    let is_sound =
        !text.trim().is_empty() && text.len() <= TEXT_MAX_BYTES && !text.chars().any(char::is_control);
    if is_sound { Ok(()) } else { Err(format!("{what} has 1 to {TEXT_MAX_BYTES} bytes on one line")) }
}

fn shown(text: &str) -> String {
    text.chars().filter(|one| !one.is_control()).take(60).collect()
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    fn memo(value: Value) -> Map<String, Value> {
        let Value::Object(memo) = value else { panic!("an object") };
        memo
    }

    #[allow(clippy::needless_pass_by_value, reason = "as `json!` makes them")]
    fn rules(rules: Value) -> Result<RuleSet, RuleSetError> {
        RuleSet::read(&json!({"rules": rules}), true)
    }

    #[test]
    fn rules_apply_in_their_order_until_one_stops() {
        let set = rules(json!([
            {"name": "lists", "when": "@Contains(Subject; \"[list]\")", "actions": [{"move": "Lists"}, {"mark": ["read", "work"]}]},
            {"name": "large", "when": "$Size > 1000", "actions": [{"copy": "Large"}, {"forward": "bob@far.example"}], "stop": true},
            {"name": "never", "when": "1", "actions": [{"reject": "No."}]},
        ]))
        .unwrap();
        let clock = Clock::default();
        let verdict = set.judge(&memo(json!({"Subject": "[list] x", "$Size": 2000})), &clock);
        assert_eq!(verdict.folder.as_deref(), Some("Lists"));
        assert_eq!(
            (verdict.copies, verdict.forwards),
            (vec!["Large".to_owned()], vec!["bob@far.example".to_owned()])
        );
        assert_eq!((verdict.is_read, verdict.flags, verdict.reject), (true, vec!["work".to_owned()], None));
        let verdict = set.judge(&memo(json!({"Subject": "other"})), &clock);
        assert_eq!((verdict.folder, verdict.reject.as_deref()), (None, Some("No.")));
    }

    #[test]
    fn what_cannot_be_obeyed_is_refused() {
        let with = |action: Value| json!([{"name": "n", "when": "1", "actions": [action]}]);
        for wrong in [
            with(json!({"move": ""})),
            with(json!({"move": "a\\"})),
            with(json!({"forward": "nobody"})),
            with(json!({"forward": "a@b\r\nRCPT TO:<c@d>"})),
            with(json!({"reject": "two\r\n250 lines"})),
            with(json!({"reject": "größe"})),
            with(json!({"journal": "mail/ada"})),
            with(json!({"journal": "directory"})),
            with(json!({"journal": "_users"})),
            with(json!({"mark": ["\\Deleted"]})),
            with(json!({"run": "rm"})),
            json!([{"name": "n", "when": "@Nothing(", "actions": [{"copy": "A"}]}]),
            json!([{"name": "n", "when": "1", "actions": []}]),
            json!([{"name": "", "when": "1", "actions": [{"copy": "A"}]}]),
            json!([{"name": "n", "when": "x".repeat(5000), "actions": [{"copy": "A"}]}]),
            Value::Array(vec![with(json!({"copy": "A"}))[0].clone(); 101]),
            Value::Array(vec![with(json!({"forward": "a@b.example"}))[0].clone(); 6]),
        ] {
            assert!(rules(wrong.clone()).is_err(), "{wrong}");
        }
        for servers in [json!({"hold": "looked at"}), json!({"journal": "journal"})] {
            let set = json!({"rules": with(servers)});
            assert!(RuleSet::read(&set, true).is_ok());
            assert!(RuleSet::read(&set, false).is_err(), "of a person");
        }
    }

    #[test]
    fn all_rules_together_take_no_more_steps_than_one_formula_may() {
        let rule =
            |when: &str, folder: &str| json!({"name": "n", "when": when, "actions": [{"copy": folder}]});
        let endless = "n := 0; @While(1; n := n + 1); 1";
        let set = rules(json!([
            rule("1", "A"),
            rule(endless, "B"),
            rule("n := 0; @While(n < 9; n := n + 1); 1", "C")
        ]));
        // The second one fails, and has left no steps to the third.
        let verdict = set.unwrap().judge(&Map::new(), &Clock::default());
        assert_eq!(verdict.copies, ["A"]);
    }
}
