//! What is wrong with a script is said where it is, in words.

use scrinium_sieve::{Limits, Script};

/// Scripts that are put together wrongly, and what is said of them.
const STRUCTURE: &[(&str, &str)] = &[
    ("keep", "line 1, column 5: the end of the script stands where \";\" or a block is expected"),
    ("keep;\n  frob;", "line 2, column 3: there is no command \"frob\""),
    ("if frob { }", "line 1, column 4: there is no test \"frob\""),
    (
        "fileinto \"A\";",
        "line 1, column 1: \"fileinto\" needs: require \"fileinto\"; at the beginning of the script",
    ),
    ("require \"x-frob\";", "line 1, column 9: this server does not know the extension \"x-frob\""),
    ("keep; require \"fileinto\";", "line 1, column 7: \"require\" can only stand before all other commands"),
    (
        "if true { require \"fileinto\"; }",
        "line 1, column 11: \"require\" can only stand before all other commands",
    ),
    ("keep \"x\";", "line 1, column 6: \"keep\" cannot have the string \"x\" here"),
    ("keep :frob;", "line 1, column 6: \"keep\" has no argument \":frob\""),
    ("redirect;", "line 1, column 1: \"redirect\" lacks an address"),
    ("redirect 5;", "line 1, column 10: the number 5 stands where an address, a string is expected"),
    (
        "redirect [\"a@b.example\"];",
        "line 1, column 10: a list of strings stands where an address, a string is expected",
    ),
    ("redirect \"ada\";", "line 1, column 10: \"ada\" is not an address such as ada@example.org"),
    ("else { }", "line 1, column 1: \"else\" must follow the block of \"if\" or \"elsif\""),
    (
        "if true {} else {} else {}",
        "line 1, column 20: \"else\" must follow the block of \"if\" or \"elsif\"",
    ),
    (
        "if true {} keep; elsif true {}",
        "line 1, column 18: \"elsif\" must follow the block of \"if\" or \"elsif\"",
    ),
    ("if true;", "line 1, column 1: \"if\" lacks its block"),
    ("if { }", "line 1, column 1: \"if\" lacks a test"),
    (
        "if (true, false) { }",
        "line 1, column 11: \"if\" cannot have a second test without \"allof\" or \"anyof\" here",
    ),
    ("keep { }", "line 1, column 1: \"keep\" cannot have a block here"),
    ("if allof true { }", ""),
    ("if allof { }", "line 1, column 4: \"allof\" lacks tests"),
    ("keep true;", "line 1, column 6: \"keep\" cannot have a test here"),
    ("if size 5 { }", "line 1, column 4: \"size\" lacks \":over\" or \":under\""),
    (
        "if size :over :under 5 { }",
        "line 1, column 15: \":under\" cannot stand together with what is written before it",
    ),
    ("if size :over 99999999999G { }", "line 1, column 15: the number is too large"),
    ("if size :over 5T { }", "line 1, column 16: the character 'T' cannot stand here"),
    ("if header \"a\" { }", "line 1, column 4: \"header\" lacks what to look for"),
    (
        "if header :is :contains \"a\" \"b\" { }",
        "line 1, column 15: \":contains\" cannot stand together with what is written before it",
    ),
    (
        "if header :regex \"a\" \"b\" { }",
        "line 1, column 11: \":regex\" needs: require \"regex\"; at the beginning of the script",
    ),
    (
        "if header :comparator \"i;frob\" \"a\" \"b\" { }",
        "line 1, column 23: this server does not know the extension \"comparator-i;frob\"",
    ),
    (
        "if address \"subject\" \"b\" { }",
        "line 1, column 12: \"subject\" is not a field of addresses; use \"header\" for others",
    ),
    (
        "if header [\"a\" \"b\"] \"c\" { }",
        "line 1, column 16: the string \"b\" stands where \",\" or \"]\" is expected",
    ),
    ("if header [] \"c\" { }", "line 1, column 12: \"]\" stands where a string of the list is expected"),
];

/// Scripts with wrong texts and values.
const VALUES: &[(&str, &str)] = &[
    (
        "keep;\nredirect \"ada",
        "line 2, column 10: a string begins here and has no end; close it with a quotation mark",
    ),
    (
        "require \"reject\"; reject text:\nfoo\n",
        "line 1, column 26: a text begins here and has no end; end it with a line of one dot",
    ),
    ("keep; /* never", "line 1, column 7: a comment begins here and has no end; close it with */"),
    ("keep; é", "line 1, column 7: the character 'é' cannot stand here"),
    (
        "if true { keep;",
        "line 1, column 16: the end of the script stands where a command or \"}\" is expected",
    ),
    ("keep; }", "line 1, column 7: \"}\" stands where a command is expected"),
    ("require \"variables\"; set \"1a\" \"x\";", "line 1, column 26: \"1a\" is not the name of a variable"),
    (
        "require \"variables\"; set \"a\" \"${b.c}\";",
        "line 1, column 30: ${b.c} is not a variable that this script can have",
    ),
    (
        "require \"variables\"; set \"a\" \"${99}\";",
        "line 1, column 30: ${99} is not a variable that this script can have",
    ),
    (
        "require \"variables\"; set :lower :upper \"a\" \"b\";",
        "line 1, column 33: \":upper\" cannot stand together with what is written before it",
    ),
    (
        "require \"regex\"; if header :regex \"a\" \"(\" { }",
        "line 1, column 39: the regular expression is not valid: unclosed group",
    ),
    (
        "require [\"regex\", \"comparator-i;ascii-numeric\"]; if header :comparator \"i;ascii-numeric\" :contains \"a\" \"b\" { }",
        "line 1, column 90: the comparator \"i;ascii-numeric\" cannot be used with \":contains\"",
    ),
    (
        "require \"date\"; if date \"date\" \"century\" \"21\" { }",
        "line 1, column 32: \"century\" is not one of year, month, day, date, julian, hour, minute, second, time, iso8601, std11, zone, weekday",
    ),
    (
        "require \"encoded-character\"; if header \"a\" \"${unicode: d800}\" { }",
        "line 1, column 44: ${unicode: d800} is not a character of Unicode",
    ),
    (
        "require \"enotify\"; notify \"tel:5\";",
        "line 1, column 27: \"tel:5\" is not a way to notify such as \"mailto:ada@example.org\"",
    ),
    (
        "require [\"vacation\", \"imap4flags\"]; vacation :flags \"a\" \"b\";",
        "line 1, column 46: \"vacation\" has no argument \":flags\"",
    ),
    (
        "require [\"include\", \"variables\"]; include \"${x}\";",
        "line 1, column 43: \"${x}\" is not the name of a script, without variables",
    ),
    ("require \"index\"; if header :last \"a\" \"b\" { }", "line 1, column 28: \":last\" lacks \":index\""),
];

#[test]
fn errors_say_where_and_what() {
    for (script, expected) in STRUCTURE.iter().chain(VALUES) {
        let found = Script::compile(script.as_bytes(), &Limits::default());
        let found = found.map_or_else(|error| error.to_string(), |_| String::new());
        assert_eq!(found, *expected, "{script}");
    }
}

#[test]
fn what_is_not_text_is_no_script() {
    for (script, expected) in [
        (b"keep;\n\xff".as_slice(), "line 2, column 1: the script is not plain UTF-8 text"),
        (b"keep\0;", "line 1, column 5: the script is not plain UTF-8 text"),
    ] {
        let error = Script::compile(script, &Limits::default()).unwrap_err().to_string();
        assert!(error.starts_with(expected), "{error}");
    }
    assert!(Script::compile(b"\xef\xbb\xbfkeep;", &Limits::default()).is_ok());
}

#[test]
fn every_extension_can_be_required() {
    for extension in scrinium_sieve::Extension::all() {
        let script = format!("require \"{}\";", extension.name());
        let script = Script::compile(script.as_bytes(), &Limits::default()).unwrap();
        assert!(script.extensions().any(|found| found == extension));
    }
}
