//! The files of transport rules and of rules for rewriting: a rule a line, `#` begins a remark.

use scrinium_mail_queue::route::{
    Login, RELAY_PORT, Refusal, RelayHost, RewriteTable, TlsRule, Transport, TransportTable,
};
use scrinium_smtp_wire::EnhancedCode;
use thiserror::Error;

/// A longer file is refused.
const FILE_MAX_BYTES: usize = 32 << 20;

/// What is wrong with a file of rules.
#[derive(Clone, Debug, PartialEq, Eq, Error)]
pub enum RuleFileError {
    /// One of its lines.
    #[error("line {line}: {reason}")]
    Line {
        /// From 1.
        line: usize,
        /// What is wrong.
        reason: String,
    },
    /// All of it.
    #[error("the file is longer than {FILE_MAX_BYTES} bytes")]
    TooLong,
}

/// Reads transport rules: what they are for, and the way.
///
/// ```text
/// example.org         smtp tls=verified
/// .lab.example        relay mx.lab.example:25 tls=off
/// old.example         relay smarthost.example login=acme:smarthost tls=verified
/// archive@here.test   lmtp 127.0.0.1:24
/// slow.example        hold until the contract is signed
/// trap.example        refuse 5.7.1 we do not write to this company
/// ```
///
/// # Errors
/// [`RuleFileError`]
pub fn read_transports(text: &str, otherwise: Transport) -> Result<TransportTable, RuleFileError> {
    let mut table = TransportTable::new(otherwise);
    each_rule(text, |pattern, rest| {
        let (way, rest) = first_word(rest);
        let transport = read_transport(way, rest)?;
        table.add(pattern, transport).map_err(|error| error.to_string())
    })?;
    Ok(table)
}

/// Reads rules for rewriting: an address, a domain or a pattern, and what it becomes.
///
/// # Errors
/// [`RuleFileError`]
pub fn read_rewrites(text: &str) -> Result<RewriteTable, RuleFileError> {
    let mut table = RewriteTable::default();
    each_rule(text, |from, to| match first_word(to) {
        (to, "") if !to.is_empty() => table.add(from, to).map_err(|error| error.to_string()),
        _ => Err("a rule is what is rewritten, and what it becomes".to_owned()),
    })?;
    Ok(table)
}

fn each_rule(
    text: &str,
    mut rule: impl FnMut(&str, &str) -> Result<(), String>,
) -> Result<(), RuleFileError> {
    if text.len() > FILE_MAX_BYTES {
        return Err(RuleFileError::TooLong);
    }
    for (number, line) in text.lines().enumerate() {
        let line = line.trim();
        if line.is_empty() || line.starts_with('#') {
            continue;
        }
        let (first, rest) = first_word(line);
        rule(first, rest).map_err(|reason| RuleFileError::Line { line: number + 1, reason })?;
    }
    Ok(())
}

fn first_word(text: &str) -> (&str, &str) {
    let (first, rest) = text.split_once(char::is_whitespace).unwrap_or((text, ""));
    (first, rest.trim())
}

fn read_transport(way: &str, rest: &str) -> Result<Transport, String> {
    match way {
        "smtp" => {
            let mut tls = TlsRule::default();
            for word in rest.split_whitespace() {
                tls = read_tls(word)
                    .ok_or_else(|| format!("{word} is no setting of smtp; tls=required is one"))?;
            }
            Ok(Transport::Exchangers { tls })
        }
        "relay" => read_relay(rest),
        "lmtp" if !rest.is_empty() && !rest.contains(char::is_whitespace) => {
            Ok(Transport::Lmtp { endpoint: rest.to_owned() })
        }
        "lmtp" => Err("lmtp needs a host and a port".to_owned()),
        "local" => Ok(Transport::Local),
        "hold" => Ok(Transport::Hold(rest.to_owned())),
        "refuse" => Ok(Transport::Refuse(read_refusal(rest))),
        _ => Err(format!("{way:?} is no way; there are smtp, relay, lmtp, local, hold and refuse")),
    }
}

fn read_refusal(rest: &str) -> Refusal {
    let given = EnhancedCode::split(rest).filter(|(status, _)| status.class() == 5);
    let (status, reason) = given.unwrap_or((EnhancedCode::new(5, 7, 1), rest));
    Refusal { status, reason: reason.trim().to_owned() }
}

/// How connections must be protected: `tls=off`, `opportunistic`, `required` or `verified`.
fn read_tls(word: &str) -> Option<TlsRule> {
    tls_rule(word.strip_prefix("tls=")?)
}

/// A rule for TLS by its name.
pub(crate) fn tls_rule(name: &str) -> Option<TlsRule> {
    match name {
        "off" => Some(TlsRule::Off),
        "opportunistic" => Some(TlsRule::Opportunistic),
        "required" => Some(TlsRule::Required),
        "verified" => Some(TlsRule::Verified),
        _ => None,
    }
}

fn read_relay(rest: &str) -> Result<Transport, String> {
    let (endpoint, settings) = first_word(rest);
    if endpoint.is_empty() {
        return Err("relay needs a host".to_owned());
    }
    let (host, port) = match endpoint.rsplit_once(':') {
        Some((host, port)) if !host.contains(':') || host.ends_with(']') => {
            let port = port.parse().map_err(|_| format!("{port:?} is no port"))?;
            (host, port)
        }
        _ => (endpoint, RELAY_PORT),
    };
    let mut relay = RelayHost {
        host: host.trim_start_matches('[').trim_end_matches(']').to_owned(),
        port,
        by_mx: false,
        implicit_tls: false,
        login: None,
        allow_plain_login: false,
    };
    let mut tls = TlsRule::default();
    for word in settings.split_whitespace() {
        match word.split_once('=') {
            Some(("login", login)) => {
                let (name, secret) = login.rsplit_once(':').ok_or_else(|| {
                    "a log-in is a name, a colon, and the name under which the password is kept".to_owned()
                })?;
                relay.login = Some(Login { name: name.to_owned(), secret: secret.to_owned() });
            }
            Some(("tls", "implicit")) => (relay.implicit_tls, tls) = (true, TlsRule::Required),
            Some(("tls", name)) => {
                tls = tls_rule(name).ok_or_else(|| {
                    format!("tls={name}: it is off, opportunistic, required, verified or implicit")
                })?;
            }
            None if word == "mx" => relay.by_mx = true,
            None if word == "plain-login" => relay.allow_plain_login = true,
            _ => {
                return Err(format!(
                    "{word} is no setting of relay; there are tls=, login=, mx and plain-login"
                ));
            }
        }
    }
    Ok(Transport::Relay { relay, tls })
}

#[cfg(test)]
mod tests {
    use super::*;
    use scrinium_smtp_wire::Mailbox;

    fn table(text: &str) -> Result<TransportTable, RuleFileError> {
        read_transports(text, Transport::Exchangers { tls: TlsRule::Opportunistic })
    }

    #[test]
    fn rules_are_read_a_line_each() {
        let text = "# ways\n\nexample.org smtp tls=verified\n.lab.example relay [2001:db8::1]:25 tls=off\n\
                    old.example   relay smart.example login=a:b:c tls=implicit mx\nslow.example hold not yet\n\
                    trap.example refuse 5.7.9 no mail to them\na@b.example lmtp 127.0.0.1:24\n";
        let table = table(text).unwrap();
        let find = |address: &str| table.find(&Mailbox::parse(address.as_bytes()).unwrap()).clone();
        assert_eq!(find("x@example.org"), Transport::Exchangers { tls: TlsRule::Verified });
        assert_eq!(find("x@elsewhere.example"), Transport::Exchangers { tls: TlsRule::Opportunistic });
        let Transport::Relay { relay, tls } = find("x@a.lab.example") else { panic!() };
        assert_eq!((relay.host.as_str(), relay.port, tls), ("2001:db8::1", 25, TlsRule::Off));
        let Transport::Relay { relay, tls } = find("x@old.example") else { panic!() };
        assert_eq!((relay.port, relay.by_mx, relay.implicit_tls, tls), (587, true, true, TlsRule::Required));
        assert_eq!(relay.login, Some(Login { name: "a:b".to_owned(), secret: "c".to_owned() }));
        assert_eq!(find("x@slow.example"), Transport::Hold("not yet".to_owned()));
        let Transport::Refuse(refusal) = find("x@trap.example") else { panic!() };
        assert_eq!(
            (refusal.status.to_string().as_str(), refusal.reason.as_str()),
            ("5.7.9", "no mail to them")
        );
        assert_eq!(find("a@b.example"), Transport::Lmtp { endpoint: "127.0.0.1:24".to_owned() });
    }

    #[test]
    fn a_rule_that_is_none_is_told_with_its_line() {
        for (text, line) in [
            ("\nexample.org teleport", 2),
            ("a.example smtp tls=maybe", 1),
            ("a.example relay", 1),
            ("a.example relay x:port", 1),
            ("a.example relay x login=name", 1),
            ("a.example smtp\n# x\na.example smtp", 3),
            ("a*b*c smtp", 1),
        ] {
            let Err(RuleFileError::Line { line: found, .. }) = table(text) else { panic!("{text}") };
            assert_eq!(found, line, "{text}");
        }
        assert!(read_rewrites("old.example new.example\n*@a.example *@b.example").is_ok());
        assert!(read_rewrites("old.example").is_err() && read_rewrites("a b c").is_err());
    }
}
