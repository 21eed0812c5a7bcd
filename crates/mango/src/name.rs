//! The names that CouchDB gives to indexes without one: the SHA-1 of the request, as an Erlang term.
//!
//! The term is `{Definition, [{ddoc, _}, {def, Definition}, {name, _}, {partitioned, _}, {type, _}, {w, _}]}` in
//! Erlang's external format (version 131), objects as one-tuples of lists of pairs, texts as binaries, atoms in the
//! form that Erlang/OTP writes up to release 25, with which CouchDB 3.4 is built.

use serde_json::{Number, Value};
use sha1::{Digest, Sha1};

const VERSION: u8 = 131;
const FLOAT: u8 = 70;
const SMALL_INTEGER: u8 = 97;
const INTEGER: u8 = 98;
const ATOM: u8 = 100;
const SMALL_TUPLE: u8 = 104;
const NIL: u8 = 106;
const STRING: u8 = 107;
const LIST: u8 = 108;
const BINARY: u8 = 109;
const SMALL_BIG: u8 = 110;

/// What of the request makes the name, besides the definition.
pub(crate) struct Named<'a> {
    pub(crate) design: Option<&'a str>,
    pub(crate) name: Option<&'a str>,
    pub(crate) partitioned: Option<bool>,
    pub(crate) quorum: u64,
}

/// Forty hexadecimal digits.
pub(crate) fn automatic_name(definition: &Value, named: &Named<'_>) -> String {
    let mut term = vec![VERSION, SMALL_TUPLE, 2];
    write_value(&mut term, definition);
    write_length(&mut term, LIST, 6);
    write_option(&mut term, "ddoc", |term| write_text_or(term, named.design, "auto_name"));
    write_option(&mut term, "def", |term| write_value(term, definition));
    write_option(&mut term, "name", |term| write_text_or(term, named.name, "auto_name"));
    write_option(&mut term, "partitioned", |term| match named.partitioned {
        Some(partitioned) => write_value(term, &Value::Bool(partitioned)),
        None => write_atom(term, "db_default"),
    });
    write_option(&mut term, "type", |term| write_binary(term, "json"));
    write_option(&mut term, "w", |term| write_number(term, &Number::from(named.quorum)));
    term.push(NIL);
    Sha1::digest(&term).iter().map(|byte| format!("{byte:02x}")).collect()
}

fn write_option(term: &mut Vec<u8>, name: &str, write: impl FnOnce(&mut Vec<u8>)) {
    term.extend_from_slice(&[SMALL_TUPLE, 2]);
    write_atom(term, name);
    write(term);
}

fn write_text_or(term: &mut Vec<u8>, text: Option<&str>, atom: &str) {
    match text {
        Some(text) => write_binary(term, text),
        None => write_atom(term, atom),
    }
}

fn write_value(term: &mut Vec<u8>, value: &Value) {
    match value {
        Value::Null => write_atom(term, "null"),
        Value::Bool(true) => write_atom(term, "true"),
        Value::Bool(false) => write_atom(term, "false"),
        Value::Number(number) => write_number(term, number),
        Value::String(text) => write_binary(term, text),
        Value::Array(elements) => write_list(term, elements),
        Value::Object(members) => {
            term.extend_from_slice(&[SMALL_TUPLE, 1]);
            if !members.is_empty() {
                write_length(term, LIST, members.len());
            }
            for (name, value) in members {
                term.extend_from_slice(&[SMALL_TUPLE, 2]);
                write_binary(term, name);
                write_value(term, value);
            }
            term.push(NIL);
        }
    }
}

/// Erlang writes a list of bytes as a text.
fn write_list(term: &mut Vec<u8>, elements: &[Value]) {
    let byte = |value: &Value| value.as_u64().and_then(|number| u8::try_from(number).ok());
    let bytes: Option<Vec<u8>> = elements.iter().map(byte).collect();
    match (bytes, u16::try_from(elements.len())) {
        (_, Ok(0)) => {}
        (Some(bytes), Ok(length)) => {
            term.push(STRING);
            term.extend_from_slice(&length.to_be_bytes());
            term.extend_from_slice(&bytes);
            return;
        }
        _ => {
            write_length(term, LIST, elements.len());
            elements.iter().for_each(|element| write_value(term, element));
        }
    }
    term.push(NIL);
}

fn write_number(term: &mut Vec<u8>, number: &Number) {
    let Some(integer) = number.as_i128() else {
        term.push(FLOAT);
        term.extend_from_slice(&number.as_f64().unwrap_or_default().to_be_bytes());
        return;
    };
    if let Ok(byte) = u8::try_from(integer) {
        term.extend_from_slice(&[SMALL_INTEGER, byte]);
    } else if let Ok(integer) = i32::try_from(integer) {
        term.push(INTEGER);
        term.extend_from_slice(&integer.to_be_bytes());
    } else {
        let magnitude = integer.unsigned_abs().to_le_bytes();
        let length = magnitude.iter().rposition(|byte| *byte != 0).map_or(0, |last| last + 1);
        term.push(SMALL_BIG);
        term.push(u8::try_from(length).unwrap_or(u8::MAX));
        term.push(u8::from(integer < 0));
        term.extend(magnitude.iter().take(length));
    }
}

fn write_atom(term: &mut Vec<u8>, name: &str) {
    term.push(ATOM);
    term.extend_from_slice(&u16::try_from(name.len()).unwrap_or(u16::MAX).to_be_bytes());
    term.extend_from_slice(name.as_bytes());
}

fn write_binary(term: &mut Vec<u8>, text: &str) {
    write_length(term, BINARY, text.len());
    term.extend_from_slice(text.as_bytes());
}

fn write_length(term: &mut Vec<u8>, tag: u8, length: usize) {
    term.push(tag);
    term.extend_from_slice(&u32::try_from(length).unwrap_or(u32::MAX).to_be_bytes());
}
