//! Commands: what each does, and when it is refused.

use scrinium_pop3_wire::{Capability, Command, Mechanism};

use crate::messages::{Listing, Work};
use crate::session::ServerSession;

impl ServerSession {
    pub(crate) fn command(&mut self, command: Command) {
        match command {
            Command::Capabilities => self.capabilities(),
            Command::Quit => self.quit(),
            command if self.maildrop.is_some() => self.transaction(&command),
            command => self.authorization(&command),
        }
    }

    /// RFC 1939, section 4.
    fn authorization(&mut self, command: &Command) {
        match command {
            Command::User(name) => self.user(name.as_str()),
            Command::Pass(password) => self.pass(password.as_str()),
            Command::Auth(mechanism, initial) => self.authenticate(mechanism, initial.as_ref()),
            Command::AuthMechanisms => {
                self.ok("Ways to log in");
                for mechanism in self.mechanisms() {
                    self.line(mechanism.name());
                }
                self.line(".");
            }
            Command::StartTls => self.start_tls(),
            Command::Utf8 => {
                self.utf8 = true;
                self.ok("UTF-8");
            }
            Command::Apop(..) | Command::Language(_) => self.error(None, "The command is not known here"),
            _ => self.error(None, "Log in first"),
        }
    }

    /// RFC 1939, section 5.
    fn transaction(&mut self, command: &Command) {
        match command {
            Command::Stat => {
                let Some(maildrop) = &self.maildrop else { return };
                let marked = u32::try_from(maildrop.marked.count()).unwrap_or(maildrop.count);
                let count = maildrop.count.saturating_sub(marked);
                let text = format!("{count} {}", maildrop.bytes.saturating_sub(maildrop.marked_bytes));
                self.ok(&text);
            }
            Command::List(None) => self.begin(Work::list(Listing::Sizes)),
            Command::List(Some(number)) => self.one(Work::entry(Listing::Sizes, number.get())),
            Command::UniqueIds(None) => self.begin(Work::list(Listing::UniqueIds)),
            Command::UniqueIds(Some(number)) => self.one(Work::entry(Listing::UniqueIds, number.get())),
            Command::Retrieve(number) => self.one(Work::text(number.get(), None)),
            Command::Top(number, lines) => self.one(Work::text(number.get(), Some(*lines))),
            Command::Delete(number) => self.one(Work::mark(number.get())),
            Command::Noop => self.ok("Done"),
            Command::Reset => {
                if let Some(maildrop) = &mut self.maildrop {
                    maildrop.marked = scrinium_mailbox::NumberSet::default();
                    maildrop.marked_bytes = 0;
                }
                self.ok("Nothing is marked");
            }
            _ => self.error(None, "You have logged in already"),
        }
    }

    fn one(&mut self, work: Work) {
        match work.number().map(|number| self.is_there(number)) {
            Some(false) => self.error(None, "There is no such message"),
            _ => self.begin(work),
        }
    }

    fn is_there(&self, number: u32) -> bool {
        let maildrop = self.maildrop.as_ref();
        maildrop.is_some_and(|maildrop| number <= maildrop.count && !maildrop.marked.contains(number))
    }

    fn begin(&mut self, work: Work) {
        self.work = Some(Box::new(work));
    }

    fn quit(&mut self) {
        let marked = self.maildrop.as_ref().map(|maildrop| maildrop.marked.clone());
        match marked.filter(|marked| !marked.is_empty()) {
            // RFC 1939, section 6: the answer comes when they are gone.
            Some(marked) => self.begin(Work::delete(marked)),
            None => {
                self.ok("Goodbye");
                self.end_silently();
            }
        }
    }

    pub(crate) fn line(&mut self, line: &str) {
        self.output.extend_from_slice(line.as_bytes());
        self.output.extend_from_slice(b"\r\n");
    }

    /// RFC 2449, section 5.
    fn capabilities(&mut self) {
        let is_in = self.maildrop.is_some();
        let mut list = vec![
            Capability::Top,
            Capability::UniqueIds,
            Capability::ResponseCodes,
            Capability::AuthResponseCode,
            Capability::Pipelining,
            Capability::Utf8(false),
        ];
        if self.encryption.is_none() && self.options.has_certificate && !is_in {
            list.push(Capability::StartTls);
        }
        let mechanisms = self.mechanisms();
        if mechanisms.contains(&scrinium_credentials::sasl::SaslMechanism::Plain) {
            list.push(Capability::User);
        }
        if !mechanisms.is_empty() {
            let names = mechanisms.iter().filter_map(|known| Mechanism::parse(known.name().as_bytes()).ok());
            list.push(Capability::Sasl(names.collect()));
        }
        self.ok("What there is");
        for capability in list {
            let line = capability.line();
            self.line(&line);
        }
        self.line(".");
    }
}
