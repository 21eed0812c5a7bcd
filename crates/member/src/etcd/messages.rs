//! The messages of etcd's interface (`etcdserverpb`, version 3) that are used, with the fields that are used, under the numbers
//! that its definitions give them. What else a message holds is skipped when it is read.

use bytes::Bytes;

use super::protobuf::{Value, Writer, fields};

/// Alarms.
pub(super) const NO_SPACE: u64 = 1;
pub(super) const CORRUPT: u64 = 2;

/// What is asked.
pub(super) trait Question {
    fn write(&self, writer: &mut Writer);

    fn encode(&self) -> Bytes {
        let mut writer = Writer::default();
        self.write(&mut writer);
        writer.finish()
    }
}

/// What is answered.
pub(super) trait Answer: Default {
    fn take(&mut self, field: u64, value: Value) -> Result<(), &'static str>;

    fn decode(message: Bytes) -> Result<Self, &'static str> {
        let mut answer = Self::default();
        for read in fields(message) {
            let (field, value) = read?;
            answer.take(field, value)?;
        }
        Ok(answer)
    }
}

/// A question without content, or an answer of which nothing is used.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(super) struct Nothing;

impl Question for Nothing {
    fn write(&self, _: &mut Writer) {}
}

impl Answer for Nothing {
    fn take(&mut self, _: u64, _: Value) -> Result<(), &'static str> {
        Ok(())
    }
}

#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(super) struct Header {
    pub(super) cluster_id: u64,
    pub(super) member_id: u64,
    pub(super) revision: u64,
}

impl Answer for Header {
    fn take(&mut self, field: u64, value: Value) -> Result<(), &'static str> {
        match field {
            1 => self.cluster_id = value.number()?,
            2 => self.member_id = value.number()?,
            3 => self.revision = value.number()?,
            _ => {}
        }
        Ok(())
    }
}

#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(super) struct KeyValue {
    pub(super) key: Bytes,
    pub(super) mod_revision: u64,
    pub(super) value: Bytes,
}

impl Answer for KeyValue {
    fn take(&mut self, field: u64, value: Value) -> Result<(), &'static str> {
        match field {
            1 => self.key = value.bytes()?,
            3 => self.mod_revision = value.number()?,
            5 => self.value = value.bytes()?,
            _ => {}
        }
        Ok(())
    }
}

/// The answer to one operation of a transaction.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) enum Response {
    Range(Vec<KeyValue>),
    Put,
    Delete,
}

#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(super) struct TxnResponse {
    pub(super) header: Option<Header>,
    pub(super) succeeded: bool,
    pub(super) responses: Vec<Response>,
}

impl Answer for TxnResponse {
    fn take(&mut self, field: u64, value: Value) -> Result<(), &'static str> {
        match field {
            1 => self.header = Some(Header::decode(value.bytes()?)?),
            2 => self.succeeded = value.number()? != 0,
            3 => self.responses.push(response(value.bytes()?)?),
            _ => {}
        }
        Ok(())
    }
}

fn response(message: Bytes) -> Result<Response, &'static str> {
    let mut found = None;
    for read in fields(message) {
        found = match read? {
            (1, value) => Some(Response::Range(Range::decode(value.bytes()?)?.0)),
            (2, _) => Some(Response::Put),
            (3, _) => Some(Response::Delete),
            _ => found,
        };
    }
    found.ok_or("a part of an answer is of no known kind")
}

#[derive(Default)]
struct Range(Vec<KeyValue>);

impl Answer for Range {
    fn take(&mut self, field: u64, value: Value) -> Result<(), &'static str> {
        if field == 2 {
            self.0.push(KeyValue::decode(value.bytes()?)?);
        }
        Ok(())
    }
}

pub(super) struct CompactionRequest {
    pub(super) revision: u64,
}

impl Question for CompactionRequest {
    fn write(&self, writer: &mut Writer) {
        writer.number(1, self.revision);
    }
}

pub(super) struct WatchRequest {
    pub(super) from: Bytes,
    pub(super) to: Bytes,
}

impl Question for WatchRequest {
    fn write(&self, writer: &mut Writer) {
        writer.message(1, |create| {
            create.bytes(1, &self.from);
            create.bytes(2, &self.to);
            // Large answers come in pieces.
            create.number(8, 1);
        });
    }
}

/// Without the events: they only wake.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(super) struct WatchResponse {
    pub(super) canceled: bool,
    pub(super) cancel_reason: String,
}

impl Answer for WatchResponse {
    fn take(&mut self, field: u64, value: Value) -> Result<(), &'static str> {
        match field {
            4 => self.canceled = value.number()? != 0,
            6 => self.cancel_reason = value.text()?,
            _ => {}
        }
        Ok(())
    }
}

#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(super) struct StatusResponse {
    pub(super) header: Header,
    pub(super) version: String,
    pub(super) db_bytes: u64,
    pub(super) db_used_bytes: u64,
    pub(super) is_learner: bool,
    pub(super) quota_bytes: u64,
}

impl Answer for StatusResponse {
    fn take(&mut self, field: u64, value: Value) -> Result<(), &'static str> {
        match field {
            1 => self.header = Header::decode(value.bytes()?)?,
            2 => self.version = value.text()?,
            3 => self.db_bytes = value.number()?,
            9 => self.db_used_bytes = value.number()?,
            10 => self.is_learner = value.number()? != 0,
            12 => self.quota_bytes = value.number()?,
            _ => {}
        }
        Ok(())
    }
}

/// The kinds of alarms that there are.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(super) struct AlarmResponse {
    pub(super) alarms: Vec<u64>,
}

impl Answer for AlarmResponse {
    fn take(&mut self, field: u64, value: Value) -> Result<(), &'static str> {
        if field == 2 {
            for read in fields(value.bytes()?) {
                if let (2, alarm) = read? {
                    self.alarms.push(alarm.number()?);
                }
            }
        }
        Ok(())
    }
}

#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(super) struct AuthStatusResponse {
    pub(super) enabled: bool,
}

impl Answer for AuthStatusResponse {
    fn take(&mut self, field: u64, value: Value) -> Result<(), &'static str> {
        if field == 2 {
            self.enabled = value.number()? != 0;
        }
        Ok(())
    }
}

/// How many servers take part in decisions.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(super) struct MemberListResponse {
    pub(super) voters: usize,
}

impl Answer for MemberListResponse {
    fn take(&mut self, field: u64, value: Value) -> Result<(), &'static str> {
        if field == 2 {
            let mut is_learner = false;
            for read in fields(value.bytes()?) {
                if let (5, value) = read? {
                    is_learner = value.number()? != 0;
                }
            }
            self.voters += usize::from(!is_learner);
        }
        Ok(())
    }
}
