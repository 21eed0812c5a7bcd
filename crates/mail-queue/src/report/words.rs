//! What people read: why a message did not arrive, and what they can do.

use crate::message::Language;
use crate::notice::NoticeKind;
use crate::outcome::{Cause, Ending, Outcome};

/// Why, in one sentence.
#[must_use]
pub fn explain(outcome: &Outcome, language: Language) -> String {
    let host = outcome.host.as_deref();
    let text = match language {
        Language::English => english(outcome.cause, outcome.ending),
        Language::German => german(outcome.cause, outcome.ending),
    };
    let server = match (host, language) {
        (Some(host), _) => host,
        (None, Language::English) => "the recipient's server",
        (None, Language::German) => "der Server des Empfängers",
    };
    let mut sentence = text.replace("{server}", server);
    if let Some(first) = sentence.chars().next().filter(|_| host.is_none()) {
        sentence.replace_range(..first.len_utf8(), &first.to_uppercase().to_string());
    }
    sentence
}

fn english(cause: Cause, ending: Ending) -> &'static str {
    match (cause, ending) {
        (Cause::Accepted, _) => "{server} has taken the message.",
        (Cause::RecipientRefused, Ending::Failed) => {
            "{server} does not know or does not accept the recipient."
        }
        (Cause::RecipientRefused, _) => "{server} does not accept the recipient at the moment.",
        (Cause::SenderRefused, _) => "{server} does not accept the sender.",
        (Cause::MessageRefused, Ending::Failed) => "{server} refused the message.",
        (Cause::MessageRefused, _) => "{server} did not take the message at the moment.",
        (Cause::MailboxFull, _) => "the recipient's mailbox is full, says {server}.",
        (Cause::Throttled, _) => "{server} asks to try later.",
        (Cause::GreetingRefused, _) => "{server} does not take mail from this server.",
        (Cause::ConnectionRefused, _) => "{server} refuses connections.",
        (Cause::ConnectionTimedOut, _) => "{server} does not answer.",
        (Cause::NetworkUnreachable, _) => "{server} cannot be reached.",
        (Cause::ClosedInSession, _) => "{server} broke the connection off.",
        (Cause::TimedOutInSession, _) => "{server} stopped answering.",
        (Cause::ProtocolBroken, _) => "{server} answers in a way that is not SMTP.",
        (Cause::AnswerLost, _) => {
            "the message was sent to {server}, but its answer was lost. It may have arrived."
        }
        (Cause::TlsUnavailable, _) => "{server} offers no encryption, which is required.",
        (Cause::TlsFailed, _) => "an encrypted connection with {server} could not be made.",
        (Cause::LoginFailed, _) => "{server} does not let this server log in.",
        (Cause::NoSuchDomain, _) => "the recipient's domain does not exist.",
        (Cause::NullMx, _) => "the recipient's domain takes no mail.",
        (Cause::NoHosts, _) => "the recipient's domain has no mail server that can be found.",
        (Cause::LookupFailed, _) => "the mail server of the recipient's domain could not be looked up.",
        (Cause::PolicyMismatch, _) => "the mail servers of the recipient's domain contradict its policy.",
        (Cause::MailLoop, _) => "the message goes round in a circle.",
        (Cause::Utf8Unsupported, _) => "{server} does not support international addresses.",
        (Cause::RuleRefused, _) => "a rule of this server refuses the message.",
        (Cause::Expired, _) => "the message could not be delivered in time and is given up.",
        (Cause::ServerStopped, _) => {
            "this server was stopped during the attempt. The message may have arrived."
        }
        (Cause::Deleted, _) => "an administrator removed the message from the queue.",
    }
}

fn german(cause: Cause, ending: Ending) -> &'static str {
    match (cause, ending) {
        (Cause::Accepted, _) => "{server} hat die Nachricht angenommen.",
        (Cause::RecipientRefused, Ending::Failed) => {
            "{server} kennt den Empfänger nicht oder nimmt für ihn nichts an."
        }
        (Cause::RecipientRefused, _) => "{server} nimmt für den Empfänger zurzeit nichts an.",
        (Cause::SenderRefused, _) => "{server} nimmt vom Absender nichts an.",
        (Cause::MessageRefused, Ending::Failed) => "{server} hat die Nachricht abgelehnt.",
        (Cause::MessageRefused, _) => "{server} hat die Nachricht vorerst nicht angenommen.",
        (Cause::MailboxFull, _) => "das Postfach des Empfängers ist voll, meldet {server}.",
        (Cause::Throttled, _) => "{server} bittet um einen späteren Versuch.",
        (Cause::GreetingRefused, _) => "{server} nimmt von diesem Server keine Nachrichten an.",
        (Cause::ConnectionRefused, _) => "{server} lehnt Verbindungen ab.",
        (Cause::ConnectionTimedOut, _) => "{server} antwortet nicht.",
        (Cause::NetworkUnreachable, _) => "{server} ist nicht erreichbar.",
        (Cause::ClosedInSession, _) => "{server} hat die Verbindung abgebrochen.",
        (Cause::TimedOutInSession, _) => "{server} antwortet nicht mehr.",
        (Cause::ProtocolBroken, _) => "{server} antwortet anders, als SMTP es vorsieht.",
        (Cause::AnswerLost, _) => {
            "die Nachricht ging an {server}, aber die Antwort ging verloren. Vielleicht ist sie angekommen."
        }
        (Cause::TlsUnavailable, _) => "{server} bietet keine Verschlüsselung an, die aber verlangt wird.",
        (Cause::TlsFailed, _) => "eine verschlüsselte Verbindung mit {server} kam nicht zustande.",
        (Cause::LoginFailed, _) => "{server} lässt diesen Server sich nicht anmelden.",
        (Cause::NoSuchDomain, _) => "die Domain des Empfängers gibt es nicht.",
        (Cause::NullMx, _) => "die Domain des Empfängers nimmt keine Nachrichten an.",
        (Cause::NoHosts, _) => "für die Domain des Empfängers ist kein Mailserver zu finden.",
        (Cause::LookupFailed, _) => "der Mailserver für die Domain des Empfängers ließ sich nicht ermitteln.",
        (Cause::PolicyMismatch, _) => "die Mailserver der Domain widersprechen deren eigener Vorgabe.",
        (Cause::MailLoop, _) => "die Nachricht läuft im Kreis.",
        (Cause::Utf8Unsupported, _) => "{server} unterstützt keine internationalen Adressen.",
        (Cause::RuleRefused, _) => "eine Regel dieses Servers lehnt die Nachricht ab.",
        (Cause::Expired, _) => "die Nachricht ließ sich nicht rechtzeitig zustellen und wird aufgegeben.",
        (Cause::ServerStopped, _) => {
            "dieser Server wurde während des Versuchs beendet. Vielleicht ist die Nachricht angekommen."
        }
        (Cause::Deleted, _) => "ein Administrator hat die Nachricht aus der Warteschlange entfernt.",
    }
}

/// What the sender can do.
#[must_use]
pub fn advice(cause: Cause, language: Language) -> &'static str {
    let (english, german) = match cause {
        Cause::RecipientRefused | Cause::NoSuchDomain | Cause::NullMx | Cause::NoHosts => (
            "Check the address for mistakes, or ask the recipient in another way.",
            "Bitte prüfen Sie die Adresse auf Fehler, oder fragen Sie den Empfänger auf anderem Weg.",
        ),
        Cause::MailboxFull => (
            "Let the recipient know in another way, and send the message again later.",
            "Bitte geben Sie dem Empfänger auf anderem Weg Bescheid, und senden Sie die Nachricht später erneut.",
        ),
        Cause::MessageRefused | Cause::SenderRefused | Cause::RuleRefused | Cause::Utf8Unsupported => (
            "The server's answer below says what it does not accept. Change that, or ask your administrator.",
            "Die Antwort des Servers unten nennt den Grund. Ändern Sie die Nachricht, oder fragen Sie Ihren Administrator.",
        ),
        Cause::AnswerLost | Cause::ServerStopped => (
            "Ask the recipient whether the message arrived before you send it again.",
            "Bitte fragen Sie den Empfänger, ob die Nachricht ankam, bevor Sie sie erneut senden.",
        ),
        Cause::Deleted => {
            ("Ask your administrator for the reason.", "Bitte fragen Sie Ihren Administrator nach dem Grund.")
        }
        _ => (
            "Send the message again later. If that fails, forward this notice to your administrator.",
            "Bitte senden Sie die Nachricht später erneut. Hilft das nicht, leiten Sie diese Meldung an Ihren Administrator weiter.",
        ),
    };
    match language {
        Language::English => english,
        Language::German => german,
    }
}

/// The subject, and the sentence that a notice begins with.
pub(super) fn opening(kind: NoticeKind, language: Language) -> (&'static str, &'static str) {
    match (language, kind) {
        (Language::English, NoticeKind::Failure) => (
            "Your message was not delivered",
            "Your message did not reach the recipients below. It is not tried again.",
        ),
        (Language::English, NoticeKind::Delay) => (
            "Your message is delayed",
            "Your message has not reached the recipients below yet. It is still being tried; you need do nothing.",
        ),
        (Language::English, NoticeKind::Success) => {
            ("Your message was delivered", "Your message was delivered to the recipients below.")
        }
        (Language::English, NoticeKind::Relayed) => (
            "Your message was passed on",
            "Your message was passed on to a server that sends no confirmations. You will hear of it only if it fails.",
        ),
        (Language::German, NoticeKind::Failure) => (
            "Ihre Nachricht wurde nicht zugestellt",
            "Ihre Nachricht hat die folgenden Empfänger nicht erreicht. Es wird nicht weiter versucht.",
        ),
        (Language::German, NoticeKind::Delay) => (
            "Ihre Nachricht verspätet sich",
            "Ihre Nachricht hat die folgenden Empfänger noch nicht erreicht. Es wird weiter versucht; Sie brauchen nichts zu tun.",
        ),
        (Language::German, NoticeKind::Success) => {
            ("Ihre Nachricht wurde zugestellt", "Ihre Nachricht wurde den folgenden Empfängern zugestellt.")
        }
        (Language::German, NoticeKind::Relayed) => (
            "Ihre Nachricht wurde weitergegeben",
            "Ihre Nachricht ging an einen Server, der keine Bestätigungen sendet. Sie hören nur noch von ihr, wenn sie scheitert.",
        ),
    }
}

/// Words in front of a fact.
pub(super) struct Labels {
    pub(super) answer: &'static str,
    pub(super) sent: &'static str,
    pub(super) until: &'static str,
    pub(super) reporter: &'static str,
    pub(super) more: &'static str,
}

pub(super) fn labels(language: Language) -> Labels {
    match language {
        Language::English => Labels {
            answer: "The answer was",
            sent: "Your message was accepted",
            until: "It is tried until",
            reporter: "This notice comes from the mail server",
            more: "and {count} more, who are listed in the attached report",
        },
        Language::German => Labels {
            answer: "Die Antwort war",
            sent: "Ihre Nachricht wurde angenommen",
            until: "Versucht wird es bis",
            reporter: "Diese Meldung kommt vom Mailserver",
            more: "und {count} weitere, die der angehängte Bericht nennt",
        },
    }
}
