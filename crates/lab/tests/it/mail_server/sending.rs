//! SMTP (RFC 5321) and LMTP (RFC 2033), as far as the laboratory speaks them.

use std::sync::Arc;

use base64::Engine;
use base64::engine::general_purpose::STANDARD;

use super::{Line, PASSWORD, Security};

pub(super) async fn serve(mut line: Line, speaks_of_each: bool) {
    let _ = line.say("220 mail.invalid Fake ready\r\n").await;
    let mut recipients: Vec<String> = Vec::new();
    while let Some(heard) = line.hear().await {
        let word = heard.split([' ', ':']).next().unwrap_or_default().to_ascii_uppercase();
        let answer = match word.as_str() {
            "EHLO" | "LHLO" if !line.is_open() => "250-mail.invalid\r\n250 STARTTLS\r\n".to_owned(),
            "EHLO" | "LHLO" => "250-mail.invalid\r\n250-PIPELINING\r\n250 AUTH LOGIN PLAIN\r\n".to_owned(),
            "STARTTLS" if line.shared.security == Security::ByCommand && !line.encrypted => {
                let _ = line.say("220 go on\r\n").await;
                let Some(encrypted) = line.encrypt().await else { return };
                line = encrypted;
                continue;
            }
            _ if !line.is_open() => "530 STARTTLS comes first\r\n".to_owned(),
            "AUTH" => if may_enter(&heard) { "235 come in\r\n" } else { "535 no\r\n" }.to_owned(),
            "MAIL" => "250 a sender\r\n".to_owned(),
            "RCPT" => {
                recipients.push(heard.trim_start_matches("RCPT TO:<").trim_end_matches('>').to_owned());
                "250 a recipient\r\n".to_owned()
            }
            "DATA" => {
                let Some(()) = line.say("354 go on\r\n").await else { return };
                let Some(text) = message(&mut line).await else { return };
                let mut state = line.shared.state.lock();
                let text = Arc::new(text);
                for recipient in &recipients {
                    state.deliver(recipient, &text, line.shared.faults);
                }
                let replies = if speaks_of_each { recipients.len() } else { 1 };
                recipients.clear();
                "250 taken\r\n".repeat(replies)
            }
            "QUIT" => return,
            _ => "500 what?\r\n".to_owned(),
        };
        let Some(()) = line.say(answer).await else { return };
    }
}

fn may_enter(heard: &str) -> bool {
    let token = heard.rsplit(' ').next().unwrap_or_default();
    let words = STANDARD.decode(token).unwrap_or_default();
    let mut words = words.split(|byte| *byte == 0).skip(1);
    words.next().is_some_and(|name| !name.is_empty()) && words.next() == Some(PASSWORD.as_bytes())
}

async fn message(line: &mut Line) -> Option<Vec<u8>> {
    let mut text = Vec::new();
    loop {
        let heard = line.hear().await?;
        if heard == "." {
            return Some(text);
        }
        text.extend_from_slice(heard.strip_prefix('.').unwrap_or(&heard).as_bytes());
        text.extend_from_slice(b"\r\n");
    }
}
