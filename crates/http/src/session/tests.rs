//! Names, passwords and tokens come out of headers as they went in, and nothing else does.

#![allow(clippy::unwrap_used, reason = "a test fails by panicking")]

use proptest::prelude::*;

use super::*;

/// Bytes of which some make sense in a header that says who asks.
fn nearly_a_header() -> impl Strategy<Value = Vec<u8>> {
    let piece = prop_oneof![
        prop::sample::select(vec![
            "Basic ",
            "basic",
            "BASIC  ",
            "YTpi",
            "Og==",
            "=",
            ":",
            ";",
            "AuthSession=",
            "__Host-AuthSession=",
            "authsession=",
            " ",
            "\t",
            "\"",
            ",",
            "x=y",
        ])
        .prop_map(|text| text.as_bytes().to_vec()),
        prop::collection::vec(any::<u8>(), 0..6),
    ];
    prop::collection::vec(piece, 0..12).prop_map(|pieces| pieces.concat())
}

proptest! {
    #[test]
    fn basic_gives_the_name_and_the_password_that_went_in(
        name in "[^:]{0,40}",
        password in ".{0,40}",
        scheme in "[Bb][Aa][Ss][Ii][Cc]",
        blanks in " {1,3}",
    ) {
        let text = format!("{scheme}{blanks}{}", STANDARD.encode(format!("{name}:{password}")));
        let value = HeaderValue::try_from(text).unwrap();
        prop_assert_eq!(basic(&value), Some((name, password)));
    }

    #[test]
    fn a_header_that_is_nearly_basic_is_refused_or_read_by_the_rules(bytes in nearly_a_header()) {
        let Ok(value) = HeaderValue::from_bytes(&bytes) else { return Ok(()) };
        let Some((name, password)) = basic(&value) else { return Ok(()) };
        // Whatever is read can be written, as the same credentials.
        prop_assert!(!name.contains(':'));
        let text = value.to_str().unwrap();
        prop_assert!(text.get(..6).is_some_and(|scheme| scheme.eq_ignore_ascii_case("basic ")), "{}", text);
        let decoded = STANDARD.decode(text.get(6..).unwrap_or_default().trim()).unwrap();
        prop_assert_eq!(decoded, format!("{name}:{password}").into_bytes());
    }

    /// However they are spread over headers, the first of the wanted name that says anything counts.
    #[test]
    fn a_cookie_is_found_by_its_whole_name(
        pairs in prop::collection::vec(
            ("(AuthSession|__Host-AuthSession|authsession|xAuthSession|[a-z]{1,8})", "[!#-+./0-9<-Z^-~=-]{0,12}"),
            0..10,
        ),
        cuts in prop::collection::vec(any::<bool>(), 10),
    ) {
        let mut headers = HeaderMap::new();
        let mut line = String::new();
        for ((name, value), cut) in pairs.iter().zip(cuts) {
            line.push_str(if line.is_empty() { "" } else { "; " });
            line.push_str(&format!("{name}={value}"));
            if cut {
                headers.append(COOKIE, HeaderValue::try_from(std::mem::take(&mut line)).unwrap());
            }
        }
        if !line.is_empty() {
            headers.append(COOKIE, HeaderValue::try_from(line).unwrap());
        }
        let expected = |wanted: &str| {
            let mut values = pairs.iter().filter(|(name, value)| name == wanted && !value.is_empty());
            values.next().map(|(_, value)| value.as_str())
        };
        let all: Vec<&str> = [HOST_COOKIE_NAME, COOKIE_NAME].into_iter().filter_map(expected).collect();
        prop_assert_eq!(cookies(&headers).collect::<Vec<_>>(), all);
    }

    #[test]
    fn any_bytes_of_cookies_give_tokens_that_stand_in_them(lines in prop::collection::vec(nearly_a_header(), 0..4)) {
        let mut headers = HeaderMap::new();
        for line in &lines {
            if let Ok(value) = HeaderValue::from_bytes(line) {
                headers.append(COOKIE, value);
            }
        }
        let found: Vec<&str> = cookies(&headers).collect();
        prop_assert!(found.len() <= 2);
        for token in found {
            prop_assert!(!token.is_empty() && !token.contains(';'));
            let stands = |line: &Vec<u8>| String::from_utf8_lossy(line).contains(&format!("AuthSession={token}"));
            prop_assert!(lines.iter().any(stands), "{}", token);
        }
    }
}
