//! Heads of messages.

use scrinium_ldap_wire::{Fault, FrameError, MessageReader};

#[test]
fn a_length_is_refused_before_its_bytes_come() {
    let mut reader = MessageReader::new(1000);
    let error = reader.read(&[0x30, 0x84, 0x7f, 0xff, 0xff, 0xff]).unwrap_err();
    assert_eq!(error, FrameError::TooLong { announced_bytes: 0x7fff_ffff + 6, limit_bytes: 1000 });
    for (head, expected) in [
        (&b"GET / HTTP/1.1"[..], FrameError::Start(b'G')),
        (&[0x16, 0x03, 0x01], FrameError::Start(0x16)),
        (&[0x30, 0x80], FrameError::Length(Fault::IndefiniteLength)),
        (&[0x30, 0x89], FrameError::Length(Fault::LongLength)),
        (&[0x30, 0xff], FrameError::Length(Fault::LongLength)),
    ] {
        assert_eq!(MessageReader::new(1000).read(head), Err(expected));
    }
    let most = [0x30, 0x88, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff];
    assert!(matches!(MessageReader::new(usize::MAX - 1).read(&most), Err(FrameError::TooLong { .. })));
}

#[test]
fn a_length_may_have_zeros_before_it() {
    let message = [0x30, 0x84, 0, 0, 0, 5, 0x02, 0x01, 0x07, 0x42, 0x00];
    let mut reader = MessageReader::new(11);
    let (taken, found) = reader.read(&message).unwrap();
    assert_eq!((taken, found.as_deref()), (11, Some(message.as_slice())));
    assert!(matches!(MessageReader::new(10).read(&message), Err(FrameError::TooLong { .. })));
}
