//! Any bytes as a line of a client and of a server: no panic, and what is read is written so that it is read again.

#![no_main]

use libfuzzer_sys::fuzz_target;
use scrinium_pop3_wire::{Capability, Command, Response, parse_list_entry, parse_unique_id_entry};

fuzz_target!(|line: &[u8]| {
    if let Ok(command) = Command::parse(line) {
        let mut sent = Vec::new();
        command.write(&mut sent);
        let again = sent.strip_suffix(b"\r\n").map(Command::parse);
        assert_eq!(again, Some(Ok(command)));
    }
    let _ = (Response::parse(line), Capability::parse(line), parse_list_entry(line), parse_unique_id_entry(line));
});
