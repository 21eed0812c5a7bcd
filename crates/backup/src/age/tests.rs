use std::io::Write;
use std::process::{Command, Stdio};

use proptest::prelude::*;

use super::*;

/// Made by age 1.1.1: `printf 'what a backup holds' | age -r "$RECIPIENT" | base64`.
const BY_AGE: &str = include_str!("tests/by_age.txt");
const IDENTITY: &str = include_str!("tests/identity.txt");

fn seal(content: &[u8], recipient: &Recipient) -> Vec<u8> {
    let mut sealer = Sealer::new(recipient).unwrap();
    sealer.put(content).unwrap();
    sealer.finish().unwrap();
    std::mem::take(sealer.take())
}

fn open(sealed: &[u8], keys: &Identities, step: usize) -> Result<Vec<u8>, CipherError> {
    let mut opener = Opener::new();
    let mut rest = sealed;
    loop {
        let (now, later) = rest.split_at(rest.len().min(step.max(1)));
        rest = later;
        opener.put(now, rest.is_empty(), keys)?;
        if rest.is_empty() {
            return Ok(std::mem::take(opener.take()));
        }
    }
}

fn keys() -> (Recipient, Identities) {
    let identity = Identity::generate().unwrap();
    (identity.recipient(), identity.into())
}

/// Lengths around those of pieces.
fn length() -> impl Strategy<Value = usize> {
    let chunk = CHUNK_BYTES;
    prop_oneof![0_usize..50, chunk - 2..chunk + 3, 2 * chunk - 1..2 * chunk + 2, 0..4 * chunk]
}

proptest! {
    #![proptest_config(ProptestConfig { cases: scrinium_fault::cases(24), failure_persistence: None, ..ProptestConfig::default() })]

    #[test]
    fn what_was_encrypted_is_read_again_and_nothing_else_is(
        length in length(), step in 1_usize..200_000, place in any::<prop::sample::Index>(), bit in 0_u8..8,
    ) {
        let (recipient, keys) = keys();
        let content: Vec<u8> = (0..=250_u8).cycle().take(length).collect();
        let sealed = seal(&content, &recipient);
        prop_assert_eq!(sealed.len() as u64, sealed_bytes(length as u64));
        prop_assert!(open(&sealed, &keys, step) == Ok(content));
        prop_assert_eq!(open(&sealed, &self::keys().1, step).unwrap_err(), CipherError::WrongKey);
        prop_assert!(sealed != seal(&[], &recipient), "each has a key of its own");

        let mut other = sealed.clone();
        let at = place.index(other.len());
        other[at] ^= 1 << bit;
        prop_assert!(open(&other, &keys, step).is_err(), "byte {} of {}", at, other.len());
        prop_assert!(open(&sealed[..at], &keys, step).is_err(), "cut at {} of {}", at, sealed.len());
        let longer = [&sealed[..], b"x"].concat();
        prop_assert!(open(&longer, &keys, step).is_err());
    }

    #[test]
    fn no_bytes_make_the_reader_panic(bytes in prop::collection::vec(any::<u8>(), 0..300), header in any::<bool>()) {
        let head = format!("{VERSION_LINE}\n-> X25519 AAAA\n");
        let bytes = if header { [head.as_bytes(), &bytes].concat() } else { bytes };
        prop_assert!(open(&bytes, &keys().1, 7).is_err());
    }
}

fn identity() -> Identities {
    let dir = tempfile::tempdir().unwrap();
    let file = dir.path().join("key");
    std::fs::write(&file, IDENTITY).unwrap();
    Identities::read(&file).unwrap()
}

#[test]
fn a_file_that_age_has_written_is_read() {
    use base64::Engine;
    let sealed = base64::engine::general_purpose::STANDARD.decode(BY_AGE.replace('\n', "")).unwrap();
    assert_eq!(open(&sealed, &identity(), 50).unwrap(), b"what a backup holds");
}

#[test]
fn keys_are_read_as_they_are_written_and_other_texts_are_none() {
    let identity = Identity::generate().unwrap();
    let text = identity.recipient().to_string();
    assert_eq!(text.parse::<Recipient>().unwrap(), identity.recipient());
    let dir = tempfile::tempdir().unwrap();
    let file = dir.path().join("key");
    std::fs::write(&file, identity.file_text()).unwrap();
    assert_eq!(Identities::read(&file).unwrap().0[0].recipient(), identity.recipient());
    for wrong in [
        "",
        "age1",
        &text[..text.len() - 1],
        &text.replace("age1", "aga1"),
        &text.to_uppercase(),
        &format!("{text} "),
    ] {
        assert!(wrong.parse::<Recipient>().is_err(), "{wrong}");
    }
    for (wrong, told) in [("", "holds no private key"), ("age-encryption.org/v1\n", "decrypt it first")] {
        std::fs::write(&file, wrong).unwrap();
        assert!(Identities::read(&file).unwrap_err().to_string().contains(told));
    }
}

/// Where the program is installed.
#[test]
fn age_reads_what_was_encrypted() {
    if Command::new("age").arg("--version").output().is_err() {
        return scrinium_fault::skip("there is no program `age`: install Debian's package age");
    }
    let dir = tempfile::tempdir().unwrap();
    let file = dir.path().join("key");
    std::fs::write(&file, IDENTITY).unwrap();
    let recipient = identity().0[0].recipient();
    for length in [0, 1, CHUNK_BYTES, CHUNK_BYTES + 1, 3 * CHUNK_BYTES] {
        let content = vec![7; length];
        let mut age = Command::new("age")
            .args(["-d", "-i"])
            .arg(&file)
            .stdin(Stdio::piped())
            .stdout(Stdio::piped())
            .spawn()
            .unwrap();
        let sealed = seal(&content, &recipient);
        let mut input = age.stdin.take().unwrap();
        let writing = std::thread::spawn(move || input.write_all(&sealed));
        let output = age.wait_with_output().unwrap();
        writing.join().unwrap().unwrap();
        assert!(output.status.success() && output.stdout == content, "{length}");
    }
}
