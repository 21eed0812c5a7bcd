//! SEARCH, SORT and THREAD (RFC 9051, section 6.4.4; RFC 4731, 5032, 5182, 5256, 5957, 7162, 8474, 8514, 9394).

use crate::argument::{Arguments, astring};
use crate::command::CommandFault;
use crate::date::Date;
use crate::fetch::partial_range;
use crate::flag::Flag;
use crate::set::SequenceSet;
use crate::value::Value;

/// Keys in keys. OR and NOT count, so that a line of them cannot exhaust the stack.
const DEPTH_MAX: usize = 32;

/// A key.
#[derive(Clone, Debug, PartialEq, Eq)]
#[allow(missing_docs, reason = "the names say it")]
pub enum SearchKey {
    All,
    /// Messages with this flag (`true`) or without it: SEEN, UNSEEN, KEYWORD and their kin.
    Flag(Flag, bool),
    New,
    Old,
    Recent,
    Bcc(String),
    Body(String),
    Cc(String),
    From(String),
    Subject(String),
    Text(String),
    To(String),
    /// The name of a header field, and text in it; any text, if it is empty.
    Header(String, String),
    Before(Date),
    On(Date),
    Since(Date),
    SentBefore(Date),
    SentOn(Date),
    SentSince(Date),
    SavedBefore(Date),
    SavedOn(Date),
    SavedSince(Date),
    SaveDateSupported,
    Larger(u64),
    Smaller(u64),
    /// Older than this many seconds (RFC 5032).
    Older(u32),
    Younger(u32),
    Uid(SequenceSet),
    Sequence(SequenceSet),
    /// Changed since, with the entry and its type where they are named (RFC 7162, section 3.1.5).
    ModSeq(Option<(String, String)>, u64),
    EmailId(String),
    ThreadId(String),
    /// Other spellings count as well (RFC 6203).
    Fuzzy(Box<SearchKey>),
    Not(Box<SearchKey>),
    Or(Box<SearchKey>, Box<SearchKey>),
    And(Vec<SearchKey>),
}

/// What SEARCH is to answer (RFC 4731, RFC 5182, RFC 9394).
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[allow(missing_docs, reason = "the names say it")]
pub enum SearchReturn {
    Min,
    Max,
    All,
    Count,
    Save,
    /// Results from and to, counted from the last one where they are negative.
    Partial(i64, i64),
}

/// What is looked for.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct SearchProgram {
    /// `None`: a plain answer. `Some` of nothing stands for ALL.
    pub returns: Option<Vec<SearchReturn>>,
    /// `UTF-8` or `US-ASCII`, where it is named.
    pub charset: Option<String>,
    /// All of these.
    pub keys: Vec<SearchKey>,
}

/// A key of SORT, and whether it is reversed.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[allow(missing_docs, reason = "the names say it")]
pub enum SortKey {
    Arrival,
    Cc,
    Date,
    From,
    Size,
    Subject,
    To,
    DisplayFrom,
    DisplayTo,
}

const SORT_KEYS: [(&str, SortKey); 9] = [
    ("ARRIVAL", SortKey::Arrival),
    ("CC", SortKey::Cc),
    ("DATE", SortKey::Date),
    ("FROM", SortKey::From),
    ("SIZE", SortKey::Size),
    ("SUBJECT", SortKey::Subject),
    ("TO", SortKey::To),
    ("DISPLAYFROM", SortKey::DisplayFrom),
    ("DISPLAYTO", SortKey::DisplayTo),
];

const FLAG_KEYS: [(&str, &str, bool); 10] = [
    ("ANSWERED", "\\Answered", true),
    ("DELETED", "\\Deleted", true),
    ("DRAFT", "\\Draft", true),
    ("FLAGGED", "\\Flagged", true),
    ("SEEN", "\\Seen", true),
    ("UNANSWERED", "\\Answered", false),
    ("UNDELETED", "\\Deleted", false),
    ("UNDRAFT", "\\Draft", false),
    ("UNFLAGGED", "\\Flagged", false),
    ("UNSEEN", "\\Seen", false),
];

type Outcome<T> = Result<T, CommandFault>;

impl SearchProgram {
    /// Reads what follows `SEARCH`.
    pub(crate) fn read(arguments: &mut Arguments<'_>) -> Outcome<Self> {
        let returns = returns(arguments)?;
        let charset = if arguments.take("CHARSET") { Some(charset(arguments)?) } else { None };
        Ok(Self { returns, charset, keys: keys(arguments)? })
    }

    /// Reads what follows the order of SORT or THREAD: a character set, which must be there.
    pub(crate) fn read_with_charset(
        returns: Option<Vec<SearchReturn>>,
        arguments: &mut Arguments<'_>,
    ) -> Outcome<Self> {
        let charset = Some(charset(arguments)?);
        Ok(Self { returns, charset, keys: keys(arguments)? })
    }

    pub(crate) fn write(&self, out: &mut Vec<Value>) {
        write_returns(self.returns.as_deref(), out);
        if let Some(charset) = &self.charset {
            out.extend([Value::atom("CHARSET"), astring(charset)]);
        }
        self.keys.iter().for_each(|key| key.write(out));
    }
}

pub(crate) fn write_returns(returns: Option<&[SearchReturn]>, out: &mut Vec<Value>) {
    let Some(returns) = returns else { return };
    let mut list = Vec::new();
    for option in returns {
        list.push(Value::atom(match option {
            SearchReturn::Min => "MIN",
            SearchReturn::Max => "MAX",
            SearchReturn::All => "ALL",
            SearchReturn::Count => "COUNT",
            SearchReturn::Save => "SAVE",
            SearchReturn::Partial(..) => "PARTIAL",
        }));
        if let SearchReturn::Partial(from, to) = option {
            list.push(Value::atom(format!("{from}:{to}")));
        }
    }
    out.extend([Value::atom("RETURN"), Value::List(list)]);
}

/// `RETURN (..)`, if it is next.
pub(crate) fn returns(arguments: &mut Arguments<'_>) -> Outcome<Option<Vec<SearchReturn>>> {
    if !arguments.take("RETURN") {
        return Ok(None);
    }
    let mut list = arguments.list()?;
    let mut returns = Vec::new();
    while !list.is_empty() {
        let option = match list.word()?.as_str() {
            "MIN" => SearchReturn::Min,
            "MAX" => SearchReturn::Max,
            "ALL" => SearchReturn::All,
            "COUNT" => SearchReturn::Count,
            "SAVE" => SearchReturn::Save,
            "PARTIAL" => {
                let (from, to) = partial_range(&list.atom()?)?;
                SearchReturn::Partial(from, to)
            }
            _ => return Err(CommandFault::Unknown),
        };
        if !returns.contains(&option) {
            returns.push(option);
        }
    }
    Ok(Some(returns))
}

fn charset(arguments: &mut Arguments<'_>) -> Outcome<String> {
    let charset = arguments.text()?.to_ascii_uppercase();
    if charset == "UTF-8" || charset == "US-ASCII" { Ok(charset) } else { Err(CommandFault::Charset) }
}

fn keys(arguments: &mut Arguments<'_>) -> Outcome<Vec<SearchKey>> {
    let mut keys = vec![SearchKey::read(arguments, 0)?];
    while !arguments.is_empty() {
        keys.push(SearchKey::read(arguments, 0)?);
    }
    Ok(keys)
}

impl SearchKey {
    fn read(arguments: &mut Arguments<'_>, depth: usize) -> Outcome<Self> {
        if depth > DEPTH_MAX {
            return Err(CommandFault::TooDeep);
        }
        if arguments.peek().is_some_and(|value| value.list().is_some()) {
            let mut list = arguments.list()?;
            let mut keys = vec![Self::read(&mut list, depth + 1)?];
            while !list.is_empty() {
                keys.push(Self::read(&mut list, depth + 1)?);
            }
            return Ok(Self::And(keys));
        }
        let atom = arguments.atom()?;
        if SequenceSet::is_like(&atom) {
            return SequenceSet::parse(&atom).map(Self::Sequence).map_err(|_| CommandFault::Set);
        }
        let word = atom.to_ascii_uppercase();
        if let Some((_, flag, set)) = FLAG_KEYS.iter().find(|(key, ..)| *key == word) {
            return Flag::new(flag).map(|flag| Self::Flag(flag, *set)).ok_or(CommandFault::Flag);
        }
        let inner = |arguments: &mut Arguments<'_>| Self::read(arguments, depth + 1).map(Box::new);
        match word.as_str() {
            "NOT" => inner(arguments).map(Self::Not),
            "OR" => Ok(Self::Or(inner(arguments)?, inner(arguments)?)),
            "FUZZY" => inner(arguments).map(Self::Fuzzy),
            word => Self::simple(word, arguments),
        }
    }

    fn simple(word: &str, arguments: &mut Arguments<'_>) -> Outcome<Self> {
        Ok(match word {
            "ALL" => Self::All,
            "NEW" => Self::New,
            "OLD" => Self::Old,
            "RECENT" => Self::Recent,
            "KEYWORD" | "UNKEYWORD" => {
                let flag = Flag::new(&arguments.atom()?).ok_or(CommandFault::Flag)?;
                Self::Flag(flag, word == "KEYWORD")
            }
            "BCC" => Self::Bcc(arguments.text()?),
            "BODY" => Self::Body(arguments.text()?),
            "CC" => Self::Cc(arguments.text()?),
            "FROM" => Self::From(arguments.text()?),
            "SUBJECT" => Self::Subject(arguments.text()?),
            "TEXT" => Self::Text(arguments.text()?),
            "TO" => Self::To(arguments.text()?),
            "HEADER" => Self::Header(arguments.text()?, arguments.text()?),
            "BEFORE" => Self::Before(arguments.date()?),
            "ON" => Self::On(arguments.date()?),
            "SINCE" => Self::Since(arguments.date()?),
            "SENTBEFORE" => Self::SentBefore(arguments.date()?),
            "SENTON" => Self::SentOn(arguments.date()?),
            "SENTSINCE" => Self::SentSince(arguments.date()?),
            "SAVEDBEFORE" => Self::SavedBefore(arguments.date()?),
            "SAVEDON" => Self::SavedOn(arguments.date()?),
            "SAVEDSINCE" => Self::SavedSince(arguments.date()?),
            "SAVEDATESUPPORTED" => Self::SaveDateSupported,
            "LARGER" => Self::Larger(arguments.number()?),
            "SMALLER" => Self::Smaller(arguments.number()?),
            "OLDER" => Self::Older(arguments.number32()?),
            "YOUNGER" => Self::Younger(arguments.number32()?),
            "UID" => Self::Uid(arguments.set()?),
            "MODSEQ" => mod_sequence(arguments)?,
            "EMAILID" => Self::EmailId(arguments.text()?),
            "THREADID" => Self::ThreadId(arguments.text()?),
            _ => return Err(CommandFault::Unknown),
        })
    }

    pub(crate) fn write(&self, out: &mut Vec<Value>) {
        fn word(text: impl Into<String>) -> Value {
            Value::atom(text)
        }
        match self {
            Self::All => out.push(word("ALL")),
            Self::New => out.push(word("NEW")),
            Self::Old => out.push(word("OLD")),
            Self::Recent => out.push(word("RECENT")),
            Self::SaveDateSupported => out.push(word("SAVEDATESUPPORTED")),
            Self::Flag(flag, set) => {
                match FLAG_KEYS.iter().find(|(_, name, is_set)| flag.is(name) && set == is_set) {
                    Some((key, ..)) => out.push(word(*key)),
                    None => {
                        out.extend([word(if *set { "KEYWORD" } else { "UNKEYWORD" }), word(flag.as_str())]);
                    }
                }
            }
            Self::Bcc(text) => out.extend([word("BCC"), astring(text)]),
            Self::Body(text) => out.extend([word("BODY"), astring(text)]),
            Self::Cc(text) => out.extend([word("CC"), astring(text)]),
            Self::From(text) => out.extend([word("FROM"), astring(text)]),
            Self::Subject(text) => out.extend([word("SUBJECT"), astring(text)]),
            Self::Text(text) => out.extend([word("TEXT"), astring(text)]),
            Self::To(text) => out.extend([word("TO"), astring(text)]),
            Self::Header(name, text) => out.extend([word("HEADER"), astring(name), astring(text)]),
            Self::Before(date) => out.extend([word("BEFORE"), word(date.to_string())]),
            Self::On(date) => out.extend([word("ON"), word(date.to_string())]),
            Self::Since(date) => out.extend([word("SINCE"), word(date.to_string())]),
            Self::SentBefore(date) => out.extend([word("SENTBEFORE"), word(date.to_string())]),
            Self::SentOn(date) => out.extend([word("SENTON"), word(date.to_string())]),
            Self::SentSince(date) => out.extend([word("SENTSINCE"), word(date.to_string())]),
            Self::SavedBefore(date) => out.extend([word("SAVEDBEFORE"), word(date.to_string())]),
            Self::SavedOn(date) => out.extend([word("SAVEDON"), word(date.to_string())]),
            Self::SavedSince(date) => out.extend([word("SAVEDSINCE"), word(date.to_string())]),
            Self::Larger(bytes) => out.extend([word("LARGER"), word(bytes.to_string())]),
            Self::Smaller(bytes) => out.extend([word("SMALLER"), word(bytes.to_string())]),
            Self::Older(seconds) => out.extend([word("OLDER"), word(seconds.to_string())]),
            Self::Younger(seconds) => out.extend([word("YOUNGER"), word(seconds.to_string())]),
            Self::Uid(set) => out.extend([word("UID"), word(set.to_string())]),
            Self::Sequence(set) => out.push(word(set.to_string())),
            Self::ModSeq(entry, change) => {
                out.push(word("MODSEQ"));
                if let Some((name, kind)) = entry {
                    out.extend([Value::text_of(name), word(kind.as_str())]);
                }
                out.push(word(change.to_string()));
            }
            Self::EmailId(id) => out.extend([word("EMAILID"), astring(id)]),
            Self::ThreadId(id) => out.extend([word("THREADID"), astring(id)]),
            Self::Fuzzy(key) => {
                out.push(word("FUZZY"));
                key.write(out);
            }
            Self::Not(key) => {
                out.push(word("NOT"));
                key.write(out);
            }
            Self::Or(one, other) => {
                out.push(word("OR"));
                one.write(out);
                other.write(out);
            }
            Self::And(keys) => {
                let mut list = Vec::new();
                keys.iter().for_each(|key| key.write(&mut list));
                out.push(Value::List(list));
            }
        }
    }
}

fn mod_sequence(arguments: &mut Arguments<'_>) -> Outcome<SearchKey> {
    if let Some(change) = arguments.peek().and_then(Value::number) {
        arguments.next()?;
        return Ok(SearchKey::ModSeq(None, change));
    }
    let name = arguments.text()?;
    let kind = arguments.word()?.to_ascii_lowercase();
    if !matches!(kind.as_str(), "priv" | "shared" | "all") {
        return Err(CommandFault::Syntax);
    }
    Ok(SearchKey::ModSeq(Some((name, kind)), arguments.number()?))
}

impl SortKey {
    pub(crate) fn read_all(arguments: &mut Arguments<'_>) -> Outcome<Vec<(Self, bool)>> {
        let mut list = arguments.list()?;
        let mut keys = Vec::new();
        while !list.is_empty() {
            let reversed = list.take("REVERSE");
            let word = list.word()?;
            let (_, key) = SORT_KEYS.iter().find(|(name, _)| *name == word).ok_or(CommandFault::Unknown)?;
            if keys.len() >= 32 {
                return Err(CommandFault::TooMany);
            }
            keys.push((*key, reversed));
        }
        if keys.is_empty() { Err(CommandFault::Missing) } else { Ok(keys) }
    }

    pub(crate) fn write_all(keys: &[(Self, bool)]) -> Value {
        let mut list = Vec::new();
        for (key, reversed) in keys {
            if *reversed {
                list.push(Value::atom("REVERSE"));
            }
            let name = SORT_KEYS.iter().find(|(_, known)| known == key).map_or("DATE", |(name, _)| *name);
            list.push(Value::atom(name));
        }
        Value::List(list)
    }
}
