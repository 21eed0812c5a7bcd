//! DNS: what the checks of senders ask.

use std::net::IpAddr;

use hickory_resolver::proto::rr::{Name, RData, Record, RecordType};
use scrinium_sender_authentication::{Answer, Question};

use crate::resolve::{Dns, Nothing, RECORDS_MAX, nothing_there, whole_name};

/// Bytes of all strings of one TXT record that are looked at.
const TEXT_BYTES_MAX: usize = 16 << 10;

impl Dns {
    /// Answers a question about a sender. It takes no longer than two tries.
    pub async fn answer(&self, question: &Question) -> Answer {
        let (name, kind) = match question {
            Question::Texts(name) => (whole_name(name.as_str()), RecordType::TXT),
            Question::Addresses4(name) => (whole_name(name.as_str()), RecordType::A),
            Question::Addresses6(name) => (whole_name(name.as_str()), RecordType::AAAA),
            Question::MailHosts(name) => (whole_name(name.as_str()), RecordType::MX),
            Question::Names(address) => (Some(Name::from(*address)), RecordType::PTR),
        };
        // DNS cannot hold such a name.
        let Some(name) = name else { return Answer::NoSuchName };
        match self.resolver.lookup(name, kind).await {
            Ok(found) => answer_of(kind, found.answers()),
            Err(error) => match nothing_there(&error) {
                Some(Nothing::Name) => Answer::NoSuchName,
                Some(Nothing::Records) => Answer::NoRecords,
                None => Answer::Failed,
            },
        }
    }
}

/// What DNS says of a service (RFC 2782): priorities, weights, ports and hosts.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum ServiceAnswer {
    /// Where it is: priority, weight, port and host of each record.
    Records(Vec<(u16, u16, u16, String)>),
    /// There are none.
    Absent,
    /// DNS did not answer.
    Failed,
}

impl Dns {
    /// The SRV records of a name. It takes no longer than two tries.
    pub async fn services(&self, name: &str) -> ServiceAnswer {
        let Some(name) = whole_name(name) else { return ServiceAnswer::Absent };
        match self.resolver.lookup(name, RecordType::SRV).await {
            Ok(found) => {
                let record = |data: &RData| match data {
                    RData::SRV(srv) => Some((srv.priority, srv.weight, srv.port, srv.target.to_ascii())),
                    _ => None,
                };
                let records = found.answers().iter().take(RECORDS_MAX).map(|answer| &answer.data);
                ServiceAnswer::Records(records.filter_map(record).collect())
            }
            Err(error) if nothing_there(&error).is_some() => ServiceAnswer::Absent,
            Err(_) => ServiceAnswer::Failed,
        }
    }
}

fn answer_of(kind: RecordType, records: &[Record]) -> Answer {
    let data = || records.iter().take(RECORDS_MAX).map(|record| &record.data);
    match kind {
        RecordType::TXT => {
            let texts: Vec<Vec<u8>> = data().filter_map(text).collect();
            if texts.is_empty() { Answer::NoRecords } else { Answer::Texts(texts) }
        }
        RecordType::MX => {
            let host = |data: &RData| match data {
                RData::MX(mx) => Some((mx.preference, mx.exchange.to_ascii())),
                _ => None,
            };
            let hosts: Vec<(u16, String)> = data().filter_map(host).collect();
            if hosts.is_empty() { Answer::NoRecords } else { Answer::MailHosts(hosts) }
        }
        RecordType::PTR => {
            let name = |data: &RData| match data {
                RData::PTR(name) => Some(name.to_ascii()),
                _ => None,
            };
            let names: Vec<String> = data().filter_map(name).collect();
            if names.is_empty() { Answer::NoRecords } else { Answer::Names(names) }
        }
        _ => {
            let addresses: Vec<IpAddr> = data().filter_map(RData::ip_addr).collect();
            if addresses.is_empty() { Answer::NoRecords } else { Answer::Addresses(addresses) }
        }
    }
}

/// The strings of a record, one behind the other (RFC 7208 §3.3, RFC 6376 §3.6.2.2).
fn text(data: &RData) -> Option<Vec<u8>> {
    let RData::TXT(text) = data else { return None };
    let mut whole = Vec::new();
    for string in &text.txt_data {
        let room = TEXT_BYTES_MAX.saturating_sub(whole.len());
        whole.extend_from_slice(string.get(..room).unwrap_or(string));
    }
    Some(whole)
}
