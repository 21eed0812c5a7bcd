//! IMAP (RFC 3501, with UIDPLUS) and POP3 (RFC 1939), as far as the laboratory speaks them.

use std::sync::Arc;

use super::{Line, PASSWORD, Security, Stored};

/// What one connection knows of the open mailbox: numbers stay as they are until it learns others.
#[derive(Default)]
struct Open {
    name: String,
    uids: Vec<u32>,
}

pub(super) async fn imap(mut line: Line) {
    let _ = line.say("* OK Fake ready\r\n").await;
    let mut open = Open::default();
    while let Some(heard) = line.hear().await {
        let mut words = heard.splitn(3, ' ');
        let (tag, word) = (words.next().unwrap_or_default(), words.next().unwrap_or_default());
        let rest = words.next().unwrap_or_default();
        let ok = |text: &str| format!("{text}{tag} OK done\r\n").into_bytes();
        let no = |text: &str| format!("{tag} NO {text}\r\n").into_bytes();
        let answer = match word {
            "STARTTLS" if line.shared.security == Security::ByCommand && !line.encrypted => {
                let _ = line.say(ok("")).await;
                let Some(encrypted) = line.encrypt().await else { return };
                line = encrypted;
                continue;
            }
            _ if !line.is_open() => no("[PRIVACYREQUIRED] STARTTLS comes first"),
            "LOGIN" if rest.ends_with(&format!(" \"{PASSWORD}\"")) => {
                open.name = rest.split('"').nth(1).unwrap_or_default().to_owned();
                line.shared.state.lock().logins += 1;
                ok("* CAPABILITY IMAP4rev1 UIDPLUS\r\n")
            }
            "LOGIN" => no("[AUTHENTICATIONFAILED] not you"),
            "CAPABILITY" => ok("* CAPABILITY IMAP4rev1 UIDPLUS\r\n"),
            _ if open.name.is_empty() => no("who are you?"),
            "LIST" => ok("* LIST () \"/\" INBOX\r\n"),
            "SELECT" => ok(&select(&line, &mut open)),
            "APPEND" => match append(&mut line, &open, rest).await {
                Some(()) => ok(""),
                None => return,
            },
            "NOOP" => ok(&news(&line, &mut open)),
            "CLOSE" => {
                open.uids.clear();
                ok("")
            }
            "LOGOUT" => {
                let _ = line.say(ok("* BYE see you\r\n")).await;
                return;
            }
            "FETCH" => ok(&(page(&line, &open, rest) + &news(&line, &mut open))),
            "UID" => {
                let news = news(&line, &mut open);
                let mut answer = news.into_bytes();
                answer.extend(by_uid(&line, &mut open, rest));
                answer.extend(ok(""));
                answer
            }
            _ => format!("{tag} BAD what?\r\n").into_bytes(),
        };
        let Some(()) = line.say(answer).await else { return };
    }
}

fn messages(line: &Line, name: &str) -> Vec<Stored> {
    line.shared.state.lock().mailboxes.get(name).cloned().unwrap_or_default()
}

fn select(line: &Line, open: &mut Open) -> String {
    open.uids = messages(line, &open.name).iter().map(|message| message.uid).collect();
    let next = line.shared.state.lock().uid + 1;
    format!("* {} EXISTS\r\n* OK [UIDVALIDITY 7] fine\r\n* OK [UIDNEXT {next}] fine\r\n", open.uids.len())
}

/// Messages that have come meanwhile.
fn news(line: &Line, open: &mut Open) -> String {
    let last = open.uids.last().copied().unwrap_or(0);
    let before = open.uids.len();
    let all = messages(line, &open.name);
    open.uids.extend(all.iter().map(|message| message.uid).filter(|uid| *uid > last));
    if open.uids.len() == before { String::new() } else { format!("* {} EXISTS\r\n", open.uids.len()) }
}

async fn append(line: &mut Line, open: &Open, rest: &str) -> Option<()> {
    let length = rest.rsplit('{').next()?.trim_end_matches('}').parse().ok()?;
    line.say("+ go on\r\n").await?;
    let text = line.hear_bytes(length).await?;
    line.hear().await?;
    line.shared.state.lock().store(&open.name, Arc::new(text));
    Some(())
}

/// What a list of messages shows: `FETCH 1:30 (..)`.
fn page(line: &Line, open: &Open, rest: &str) -> String {
    let range = rest.split(' ').next().unwrap_or_default();
    let (first, last) = range.split_once(':').unwrap_or((range, range));
    let (first, last): (usize, usize) = (first.parse().unwrap(), last.parse().unwrap());
    let all = messages(line, &open.name);
    line.shared.state.lock().pages += 1;
    let row = |number: usize| {
        let uid = open.uids.get(number - 1)?;
        let message = all.iter().find(|message| message.uid == *uid);
        let size = message.map_or(1, |message| message.text.len());
        let flags = if message.is_some_and(|message| message.seen) { "\\Seen" } else { "" };
        Some(format!(
            "* {number} FETCH (UID {uid} FLAGS ({flags}) INTERNALDATE \"x\" RFC822.SIZE {size} BODY[HEADER.FIELDS (DATE FROM SUBJECT)] {{2}}\r\n\r\n)\r\n"
        ))
    };
    (first..=last).filter_map(row).collect()
}

/// `UID FETCH`, `UID STORE` and `UID EXPUNGE`.
fn by_uid(line: &Line, open: &mut Open, rest: &str) -> Vec<u8> {
    let mut words = rest.split(' ');
    let (word, range) = (words.next().unwrap_or_default(), words.next().unwrap_or_default());
    let from: u32 = range.split(':').next().unwrap_or_default().parse().unwrap_or(0);
    let number = |uid: u32| open.uids.iter().position(|known| *known == uid).map_or(0, |at| at + 1);
    let mut answer = Vec::new();
    let mut state = line.shared.state.lock();
    let mailbox = state.mailboxes.entry(open.name.clone()).or_default();
    match word {
        "FETCH" if range.ends_with('*') => {
            for message in mailbox.iter().filter(|message| message.uid >= from) {
                let text = format!("* {} FETCH (UID {} FLAGS ())\r\n", number(message.uid), message.uid);
                answer.extend(text.into_bytes());
            }
        }
        "FETCH" => {
            for message in mailbox.iter().filter(|message| message.uid == from) {
                let (number, size) = (number(from), message.text.len());
                let head = format!("* {number} FETCH (UID {from} RFC822.SIZE {size} BODY[] {{{size}}}\r\n");
                answer.extend(head.into_bytes());
                answer.extend_from_slice(&message.text);
                answer.extend_from_slice(b")\r\n");
            }
        }
        "STORE" => {
            let flag = rest.rsplit('(').next().unwrap_or_default().trim_end_matches(')');
            for message in mailbox.iter_mut().filter(|message| message.uid == from) {
                message.deleted |= flag == "\\Deleted";
                message.seen |= flag == "\\Seen";
                let text = format!("* {} FETCH (UID {from} FLAGS ({flag}))\r\n", number(from));
                answer.extend(text.into_bytes());
            }
        }
        _ => {
            let before = mailbox.len();
            mailbox.retain(|message| message.uid != from || !message.deleted);
            if mailbox.len() < before {
                answer.extend(format!("* {} EXPUNGE\r\n", number(from)).into_bytes());
                open.uids.retain(|uid| *uid != from);
            }
        }
    }
    answer
}

pub(super) async fn pop3(mut line: Line) {
    let _ = line.say("+OK Fake ready\r\n").await;
    let (mut name, mut listed, mut gone) = (String::new(), Vec::new(), Vec::new());
    while let Some(heard) = line.hear().await {
        let (word, rest) = heard.split_once(' ').unwrap_or((&heard, ""));
        let message = rest.parse().ok().and_then(|number: usize| listed.get(number.wrapping_sub(1)));
        let answer = match (word, message) {
            ("STLS", _) if line.shared.security == Security::ByCommand && !line.encrypted => {
                let _ = line.say("+OK go on\r\n").await;
                let Some(encrypted) = line.encrypt().await else { return };
                line = encrypted;
                continue;
            }
            ("QUIT", _) => {
                if let Some(mailbox) = line.shared.state.lock().mailboxes.get_mut(&name) {
                    mailbox.retain(|message| !gone.contains(&message.uid));
                }
                let _ = line.say("+OK\r\n").await;
                return;
            }
            _ if !line.is_open() => "-ERR STLS comes first\r\n".to_owned(),
            ("USER", _) => {
                rest.clone_into(&mut name);
                "+OK\r\n".to_owned()
            }
            ("PASS", _) if rest == PASSWORD => {
                listed = messages(&line, &name);
                "+OK\r\n".to_owned()
            }
            ("LIST", _) => {
                let rows = listed.iter().zip(1..).map(|(message, number): (&Stored, usize)| {
                    format!("{number} {}\r\n", message.text.len())
                });
                format!("+OK\r\n{}.\r\n", rows.collect::<String>())
            }
            ("RETR", Some(message)) => {
                let text = String::from_utf8_lossy(&message.text).replace("\r\n.", "\r\n..");
                format!("+OK\r\n{text}.\r\n")
            }
            ("DELE", Some(message)) => {
                gone.push(message.uid);
                "+OK\r\n".to_owned()
            }
            _ => "-ERR no\r\n".to_owned(),
        };
        let Some(()) = line.say(answer).await else { return };
    }
}
