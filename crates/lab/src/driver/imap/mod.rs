//! A person's mailbox by IMAP (RFC 3501, with RFC 4315 where the server has it). Each method is one request.

mod client;

use std::collections::BTreeSet;
use std::sync::Arc;
use std::time::Duration;

use scrinium_imap_wire::{
    AppendMessage, Command, FetchAttribute, FetchModifiers, Flag, ListCommand, MailboxName, MessageData,
    ResponseCode, Section, SectionText, SelectParameters, SequenceSet, SetNumber, StoreAction, Value,
};
use scrinium_lab_script::MailEntry;

use self::client::{Client, Untagged, name_of};
use super::endpoint::{Endpoint, Security};
use super::failure::{Failure, FailureKind};
use super::letter::{Letter, Scan};
use super::mail::{Account, MailOptions, in_time};

/// One user's connection to an IMAP server.
pub struct ImapSession {
    endpoint: Arc<Endpoint>,
    options: Arc<MailOptions>,
    account: Account,
    client: Option<Box<Client>>,
    /// Differs from server to server, and when a mailbox was made again.
    validity: Option<u32>,
    /// Messages of the page in sight, oldest first.
    page: Vec<u32>,
    /// Those of them that nobody has read.
    unseen: BTreeSet<u32>,
    at: Option<usize>,
    /// The highest number of a message that was seen.
    seen: u32,
}

/// Every response of one `FETCH`, for one message.
struct Fetched<'a> {
    number: u64,
    items: &'a [Value],
}

impl Fetched<'_> {
    fn item(&self, name: &str) -> Option<&Value> {
        let mut items = self.items.chunks_exact(2);
        items.find_map(|pair| match pair {
            [key, value] if key.is(name) => Some(value),
            _ => None,
        })
    }

    fn has_flag(&self, flag: &str) -> bool {
        self.item("FLAGS").and_then(Value::list).unwrap_or_default().iter().any(|known| known.is(flag))
    }

    fn uid(&self) -> Option<u32> {
        self.item("UID").and_then(Value::number).and_then(|uid| u32::try_from(uid).ok())
    }
}

impl ImapSession {
    /// Somebody's connection to that port of this machine, in the clear.
    ///
    /// # Errors
    /// None but for a port that is no number.
    pub(crate) fn to_port(
        port: u16,
        (login, password): (&str, &str),
        time_out: Duration,
    ) -> Result<Self, String> {
        let no_tls = || Err("this connection is not encrypted".to_owned());
        let endpoint = Endpoint::parse(&format!("imap://127.0.0.1:{port}"), "imap", (port, port), no_tls)?;
        let options = MailOptions { time_out, domain: String::new(), login_name: String::new() };
        let account = Account { login: login.to_owned(), password: password.to_owned() };
        Ok(Self::new(Arc::new(endpoint), Arc::new(options), account))
    }

    pub(super) fn new(endpoint: Arc<Endpoint>, options: Arc<MailOptions>, account: Account) -> Self {
        Self {
            endpoint,
            options,
            account,
            client: None,
            validity: None,
            page: Vec::new(),
            unseen: BTreeSet::new(),
            at: None,
            seen: 0,
        }
    }

    /// The message of the page that a command is about; none on an empty page, or if all have been read.
    pub fn choose(&mut self, entry: MailEntry) -> Option<u32> {
        match entry {
            MailEntry::Current => self.turn(false),
            MailEntry::Next => self.turn(true),
            MailEntry::First => {
                self.at = None;
                self.turn(false)
            }
            MailEntry::NextUnseen => {
                // If all have been read, this goes round once and ends where it began.
                (0..self.page.len()).find_map(|_| self.turn(true).filter(|uid| self.unseen.contains(uid)))
            }
        }
    }

    /// Forgets the page in sight.
    fn leave_page(&mut self) {
        self.page = Vec::new();
        self.unseen = BTreeSet::new();
        self.at = None;
    }

    /// The message of the page to be opened next; the first one again after the last.
    pub fn turn(&mut self, next: bool) -> Option<u32> {
        let last = self.page.len().checked_sub(1)?;
        let at = match self.at {
            None => 0,
            Some(at) if next && at < last => at + 1,
            Some(_) if next => 0,
            Some(at) => at.min(last),
        };
        self.at = Some(at);
        self.page.get(at).copied()
    }

    /// The messages of the page in sight, oldest first.
    #[must_use]
    pub fn page(&self) -> &[u32] {
        &self.page
    }

    /// Whether there is a connection, logged in.
    #[must_use]
    pub fn is_open(&self) -> bool {
        self.client.is_some()
    }

    /// Drops the connection.
    pub fn close(&mut self) {
        self.client = None;
        self.leave_page();
    }

    /// Closes the open mailbox; what is marked as deleted there goes (RFC 3501, section 6.4.2).
    ///
    /// # Errors
    /// [`Failure`]
    pub async fn close_mailbox(&mut self) -> Result<(), Failure> {
        self.ask(&Command::Close, None).await?;
        self.leave_page();
        Ok(())
    }

    /// Logs out, and drops the connection.
    ///
    /// # Errors
    /// [`Failure`]; a server that ends the connection without a BYE answers wrongly (RFC 3501, section 6.1.3).
    pub async fn log_out(&mut self) -> Result<(), Failure> {
        let Some(mut client) = self.client.take() else {
            return Err(Failure::new(FailureKind::Connection, "not logged in: ImailLogin comes first"));
        };
        self.close();
        in_time(self.options.time_out, "LOGOUT", client.log_out()).await
    }

    /// Connects and logs in; gives the text of the server's greeting.
    ///
    /// # Errors
    /// No connection, no time left, or the server refuses the name or the password.
    pub async fn log_in(&mut self) -> Result<String, Failure> {
        self.close();
        let login = async {
            let (mut client, greeting) = Client::greeted(self.endpoint.connect().await?).await?;
            if self.endpoint.security == Security::StartTls {
                client.command(&Command::StartTls).await?;
                // What was said before counts no longer.
                client = Client::encrypted(self.endpoint.encrypt(client.into_wire()).await?);
            }
            let (name, password) = (self.account.login.clone(), self.account.password.clone());
            let login = Command::Login { name, password: password.clone().into_bytes() };
            client
                .command(&login)
                .await
                .map_err(|failure| Failure::new(failure.kind, failure.detail.replace(&password, "***")))?;
            if client.capabilities.is_empty() {
                client.command(&Command::Capability).await?;
            }
            Ok((client, greeting))
        };
        let (client, greeting) = in_time(self.options.time_out, "LOGIN", login).await?;
        self.client = Some(Box::new(client));
        Ok(greeting)
    }

    /// Sends one command. A connection that failed is not used again.
    async fn ask(&mut self, command: &Command, body: Option<&mut Scan>) -> Result<Vec<Untagged>, Failure> {
        let Some(client) = &mut self.client else {
            return Err(Failure::new(FailureKind::Connection, "not logged in: ImailLogin comes first"));
        };
        let name = name_of(command);
        let asked = match body {
            None => in_time(self.options.time_out, &name, client.command(command)).await,
            Some(scan) => {
                let mut sink = |bytes: &[u8]| scan.feed(bytes);
                in_time(self.options.time_out, &name, client.command_with(command, None, &mut sink)).await
            }
        };
        if asked.as_ref().is_err_and(|failure| failure.kind != FailureKind::Refused) {
            self.close();
        }
        asked
    }

    /// Asks what the server can do.
    ///
    /// # Errors
    /// [`Failure`]; a server that does not say `IMAP4rev1` or `IMAP4rev2` answers wrongly.
    pub async fn capability(&mut self) -> Result<(), Failure> {
        let responses = self.ask(&Command::Capability, None).await?;
        let said = responses.iter().any(|response| {
            matches!(response, Untagged::Named(word, values) if word == "CAPABILITY"
                && values.iter().any(|value| value.is("IMAP4rev1") || value.is("IMAP4rev2")))
        });
        if said {
            Ok(())
        } else {
            Err(Failure::wrong("CAPABILITY: there is no IMAP4rev1 or IMAP4rev2 in the answer"))
        }
    }

    /// The server's greeting; and what it calls itself, and its version (RFC 2971), if it tells.
    pub(super) async fn describe(&self) -> Result<(String, Option<(String, String)>), Failure> {
        let ask = async {
            let (mut client, greeting) = Client::greeted(self.endpoint.connect().await?).await?;
            let responses = client.command(&Command::Id(Vec::new())).await.unwrap_or_default();
            Ok((greeting, Self::identity(&responses)))
        };
        in_time(self.options.time_out, "the greeting", ask).await
    }

    fn identity(responses: &[Untagged]) -> Option<(String, String)> {
        let fields = responses.iter().find_map(|response| match response {
            Untagged::Named(word, values) if word == "ID" => values.first()?.list(),
            _ => None,
        })?;
        let field = |name: &str| {
            let mut pairs = fields.chunks_exact(2);
            pairs.find_map(|pair| match pair {
                [key, value] if key.text()?.eq_ignore_ascii_case(name) => value.text(),
                _ => None,
            })
        };
        Some((field("name")?, field("version").unwrap_or_default()))
    }

    /// Lists the mailboxes; gives how many there are.
    ///
    /// # Errors
    /// [`Failure`]; there is always an INBOX.
    pub async fn list(&mut self) -> Result<usize, Failure> {
        let responses = self.ask(&Command::List(ListCommand::plain("", "*")), None).await?;
        let names: Vec<String> = responses
            .iter()
            .filter_map(|response| match response {
                Untagged::Named(word, values) if word == "LIST" => values.get(2)?.text(),
                _ => None,
            })
            .collect();
        let has_inbox = names.iter().any(|name| name.eq_ignore_ascii_case("INBOX"));
        if has_inbox { Ok(names.len()) } else { Err(Failure::wrong("LIST: there is no INBOX in the answer")) }
    }

    /// Opens a mailbox; gives how many messages it has.
    ///
    /// # Errors
    /// [`Failure`]; an answer without the number of messages or the mailbox's validity is a wrong one, and so is
    /// another validity than before.
    pub async fn select(&mut self, mailbox: &str) -> Result<u64, Failure> {
        let name = MailboxName::new(mailbox)
            .ok_or_else(|| Failure::wrong(format!("SELECT: no name of a mailbox: {mailbox}")))?;
        let parameters = SelectParameters::default();
        let command = Command::Select { mailbox: name, parameters, read_only: false };
        let responses = self.ask(&command, None).await?;
        let exists = responses.iter().rev().find_map(|response| match response {
            Untagged::Numbered(number, word, _) if word == "EXISTS" => Some(*number),
            _ => None,
        });
        let exists = exists.ok_or_else(|| Failure::wrong("SELECT: no EXISTS in the answer"))?;
        let validity = code(&responses, |code| match code {
            ResponseCode::UidValidity(validity) => Some(*validity),
            _ => None,
        })
        .ok_or_else(|| Failure::wrong("SELECT: no UIDVALIDITY in the answer"))?;
        if self.validity.replace(validity).is_some_and(|before| before != validity) {
            return Err(Failure::wrong(format!("SELECT: UIDVALIDITY is {validity} and was another before")));
        }
        let next = code(&responses, |code| match code {
            ResponseCode::UidNext(next) => Some(*next),
            _ => None,
        });
        self.seen = next.map_or(0, |next| next.saturating_sub(1));
        self.leave_page();
        Ok(exists)
    }

    /// Reads what a list of messages shows of the last `count`; gives how many came.
    ///
    /// # Errors
    /// [`Failure`]; each message of the page comes once, with a size, in the order of their numbers.
    pub async fn last_entries(&mut self, count: u64) -> Result<usize, Failure> {
        let exists = self.client.as_ref().map_or(0, |client| client.exists);
        if exists == 0 && self.client.is_some() {
            // There is nothing to ask for; a client asks whether this is still so.
            self.ask(&Command::Noop, None).await?;
            self.leave_page();
            return Ok(0);
        }
        let first = exists.saturating_sub(count.saturating_sub(1)).max(1);
        let command = fetch(false, number(first), number(exists), entry_attributes());
        let responses = self.ask(&command, None).await?;
        let (mut uids, mut unseen) = (Vec::new(), BTreeSet::new());
        let asked_for = fetches(&responses).filter(|fetched| fetched.item("RFC822.SIZE").is_some());
        for (wanted, fetched) in (first..).zip(asked_for) {
            let uid = fetched.uid().ok_or_else(|| Failure::wrong("FETCH: a message without a UID"))?;
            let sized = fetched.item("RFC822.SIZE").and_then(Value::number).is_some_and(|size| size > 0);
            let headed = fetched.items.iter().any(|item| {
                item.text().is_some_and(|name| name.to_ascii_uppercase().starts_with("BODY[HEADER.FIELDS"))
            });
            let rising = uids.last().is_none_or(|last| *last < uid);
            if fetched.number != wanted || !sized || !headed || !rising {
                return Err(Failure::wrong(format!(
                    "FETCH: message {wanted} was answered with {} of UID {uid}",
                    fetched.number
                )));
            }
            uids.push(uid);
            if !fetched.has_flag("\\Seen") {
                unseen.insert(uid);
            }
        }
        if uids.len() as u64 != exists + 1 - first {
            return Err(Failure::wrong(format!(
                "FETCH {first}:{exists} was answered with {} messages",
                uids.len()
            )));
        }
        (self.page, self.unseen) = (uids, unseen);
        self.at = None;
        Ok(self.page.len())
    }

    /// Reads a message whole, which marks it as read.
    ///
    /// # Errors
    /// [`Failure`]; the message must be the one that was asked for, as long as the server says, and what its digest
    /// says if it is one of the laboratory's.
    pub async fn fetch(&mut self, uid: u32) -> Result<Scan, Failure> {
        let scan = self.read(uid, false).await?;
        scan.check().map_err(|why| Failure::wrong(format!("UID FETCH {uid}: {why}")))?;
        self.unseen.remove(&uid);
        Ok(scan)
    }

    /// Reads a message whole and leaves it as it is; whether it is what was sent is for the caller to judge.
    pub(super) async fn peek(&mut self, uid: u32) -> Result<Scan, Failure> {
        self.read(uid, true).await
    }

    async fn read(&mut self, uid: u32, peek: bool) -> Result<Scan, Failure> {
        let mut scan = Scan::new();
        let whole = FetchAttribute::BodySection { peek, section: Section::default(), partial: None };
        let attributes = vec![FetchAttribute::Uid, FetchAttribute::Rfc822Size, whole];
        let responses = self
            .ask(&fetch(true, SetNumber::Number(uid), SetNumber::Number(uid), attributes), Some(&mut scan))
            .await?;
        let mut with_body = fetches(&responses).filter(|fetched| fetched.item("BODY[]").is_some());
        let fetched = with_body
            .next()
            .ok_or_else(|| Failure::new(FailureKind::Missing, format!("UID FETCH {uid}: no message came")))?;
        if with_body.next().is_some() {
            return Err(Failure::wrong(format!("UID FETCH {uid}: the message came twice")));
        }
        if fetched.uid() != Some(uid) {
            return Err(Failure::wrong(format!(
                "UID FETCH {uid}: the message of UID {:?} came",
                fetched.uid()
            )));
        }
        if let Some(Value::Text(short)) = fetched.item("BODY[]") {
            scan.feed(short);
        }
        let size = fetched.item("RFC822.SIZE").and_then(Value::number);
        if size != Some(scan.bytes()) {
            return Err(Failure::wrong(format!(
                "UID FETCH {uid}: {} bytes came, and the size is {size:?}",
                scan.bytes()
            )));
        }
        scan.finish();
        self.seen = self.seen.max(uid);
        Ok(scan)
    }

    /// Asks for messages that came after those that were seen; gives their numbers.
    ///
    /// # Errors
    /// [`Failure`]
    pub async fn new_messages(&mut self) -> Result<Vec<u32>, Failure> {
        let from = self.seen.saturating_add(1);
        let attributes = vec![FetchAttribute::Uid, FetchAttribute::Flags];
        let new = fetch(true, SetNumber::Number(from), SetNumber::Last, attributes);
        let responses = self.ask(&new, None).await?;
        // `*` is the last message, also where it is an old one.
        let mut uids: Vec<u32> =
            fetches(&responses).filter_map(|fetched| fetched.uid()).filter(|uid| *uid >= from).collect();
        uids.sort_unstable();
        uids.dedup();
        self.seen = uids.last().copied().unwrap_or(self.seen);
        Ok(uids)
    }

    /// Marks messages as deleted.
    ///
    /// # Errors
    /// [`Failure`]
    pub async fn mark_deleted(&mut self, uid: u32) -> Result<(), Failure> {
        self.mark(uid, "\\Deleted").await
    }

    /// Marks a message as read.
    ///
    /// # Errors
    /// [`Failure`]
    pub async fn mark_seen(&mut self, uid: u32) -> Result<(), Failure> {
        self.mark(uid, "\\Seen").await?;
        self.unseen.remove(&uid);
        Ok(())
    }

    async fn mark(&mut self, uid: u32, flag: &str) -> Result<(), Failure> {
        let command = Command::Store {
            uid: true,
            set: SequenceSet::from(uid),
            unchanged_since: None,
            action: StoreAction::Add,
            silent: false,
            flags: Flag::new(flag).into_iter().collect(),
        };
        let responses = self.ask(&command, None).await?;
        let marked = fetches(&responses).any(|fetched| fetched.uid() == Some(uid) && fetched.has_flag(flag));
        if marked {
            Ok(())
        } else {
            Err(Failure::wrong(format!("UID STORE {uid}: the answer does not say {flag}")))
        }
    }

    /// Removes a message that is marked as deleted.
    ///
    /// # Errors
    /// [`Failure`]; exactly one message must go.
    pub async fn expunge(&mut self, uid: u32) -> Result<(), Failure> {
        let has_uids = self.client.as_ref().is_some_and(|client| client.can("UIDPLUS"));
        let command = if has_uids { Command::UidExpunge(SequenceSet::from(uid)) } else { Command::Expunge };
        let responses = self.ask(&command, None).await?;
        let gone = responses.iter().filter(|response| match response {
            Untagged::Numbered(_, word, _) => word == "EXPUNGE",
            Untagged::Named(word, _) => word == "VANISHED",
            Untagged::Status(..) => false,
        });
        let gone = gone.count();
        if gone != 1 {
            return Err(Failure::wrong(format!("{command:?}: {gone} messages went, and one was to")));
        }
        self.page.retain(|shown| *shown != uid);
        // What comes next is what stood behind the one that went.
        self.at = self.at.and_then(|at| at.checked_sub(1));
        Ok(())
    }

    /// Puts a message into the inbox.
    pub(super) async fn append(&mut self, letter: &Letter) -> Result<(), Failure> {
        let Some(client) = &mut self.client else {
            return Err(Failure::new(FailureKind::Connection, "not logged in"));
        };
        let mut nothing = |_: &[u8]| {};
        let data = MessageData::Streamed(letter.text.len() as u64, false);
        let message = AppendMessage { flags: Vec::new(), date: None, utf8: false, data };
        let command = Command::Append { mailbox: MailboxName::inbox(), messages: vec![message] };
        let asked = client.command_with(&command, Some(&letter.text), &mut nothing);
        in_time(self.options.time_out, "APPEND INBOX", asked).await.map(|_| ())
    }

    /// The number of the last message that was there when the mailbox was opened.
    pub(super) fn last_seen(&self) -> u32 {
        self.seen
    }

    pub(crate) fn see(&mut self, uid: u32) {
        self.seen = uid;
    }
}

fn fetches(responses: &[Untagged]) -> impl Iterator<Item = Fetched<'_>> {
    responses.iter().filter_map(|response| match response {
        Untagged::Numbered(number, word, values) if word == "FETCH" => {
            Some(Fetched { number: *number, items: values.first()?.list()? })
        }
        _ => None,
    })
}

/// The number of a response code: `OK [UIDNEXT 12] ..`.
fn code(responses: &[Untagged], number: impl Fn(&ResponseCode) -> Option<u32>) -> Option<u32> {
    responses.iter().find_map(|response| match response {
        Untagged::Status(status, text) if status == "OK" => {
            let (code, _) = ResponseCode::split(text.as_bytes());
            number(&code?)
        }
        _ => None,
    })
}

fn fetch(uid: bool, from: SetNumber, to: SetNumber, attributes: Vec<FetchAttribute>) -> Command {
    let set = SequenceSet::range(from, to);
    Command::Fetch { uid, set, attributes, modifiers: FetchModifiers::default() }
}

/// A number of a message; none is as great as the last one may be.
fn number(number: u64) -> SetNumber {
    SetNumber::Number(u32::try_from(number).unwrap_or(u32::MAX))
}

/// What a list of messages shows.
fn entry_attributes() -> Vec<FetchAttribute> {
    let names = ["DATE", "FROM", "SUBJECT"].map(str::to_owned).to_vec();
    let section = Section { part: Vec::new(), text: Some(SectionText::HeaderFields(names, false)) };
    vec![
        FetchAttribute::Uid,
        FetchAttribute::Flags,
        FetchAttribute::InternalDate,
        FetchAttribute::Rfc822Size,
        FetchAttribute::BodySection { peek: true, section, partial: None },
    ]
}
