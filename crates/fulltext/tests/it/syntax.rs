//! Queries as people write them, against the table of Lucene's meaning.

use scrinium_fulltext::{Query, parse_query};

fn short(query: &Query) -> String {
    let list = |parts: &[Query], word: &str| {
        let parts: Vec<String> = parts.iter().map(short).collect();
        format!("({})", parts.join(word))
    };
    match query {
        Query::All => "*".to_owned(),
        Query::Nothing => "none".to_owned(),
        Query::Word { field, text } => format!("{field}:{text}"),
        Query::Phrase { field, text, slop } => format!("{field}:\"{text}\"~{slop}"),
        Query::Prefix { field, text } => format!("{field}:{text}*"),
        Query::Pattern { field, pattern } => format!("{field}:/{pattern}/"),
        Query::Similar { field, text, distance } => format!("{field}:{text}~{distance}"),
        Query::Exact { field, text } => format!("{field}={text}"),
        Query::Range { field, bounds } => format!("{field}:{:?}..{:?}", bounds.from, bounds.to),
        Query::Exists { field } => format!("{field}:*"),
        Query::And(parts) => list(parts, " & "),
        Query::Or(parts) => list(parts, " | "),
        Query::Not(part) => format!("!{}", short(part)),
        Query::Preferred(part, better) => format!("{} ? {}", short(part), list(better, " | ")),
        Query::Boost(part, times) => format!("{}^{times}", short(part)),
    }
}

fn read(text: &str) -> String {
    parse_query(text, &["d"], false).map_or_else(|error| error.to_string(), |query| short(&query))
}

#[test]
fn queries_mean_what_they_mean_to_lucene() {
    for (text, meaning) in [
        ("", "none"),
        ("a", "d:a"),
        ("a b", "(d:a | d:b)"),
        ("a AND b", "(d:a & d:b)"),
        ("a && b || c", "(d:a & d:b) ? (d:c)"),
        ("+a b", "d:a ? (d:b)"),
        ("a -b", "(d:a & !d:b)"),
        ("a NOT b", "(d:a & !d:b)"),
        ("-b", "!d:b"),
        ("!b", "!d:b"),
        ("(a b) AND c", "((d:a | d:b) & d:c)"),
        ("ANDROID ORDER", "(d:ANDROID | d:ORDER)"),
        ("f:a", "(f:a | f=a)"),
        ("f:(a b)", "((f:a | f=a) | (f:b | f=b))"),
        ("f:\"a b\"", "(f:\"a b\"~0 | f=a b)"),
        ("\"a b\"~3^2.5", "d:\"a b\"~3^2.5"),
        ("a*", "d:a*"),
        ("a*b?", "d:/a*b?/"),
        ("a~ b~1", "(d:a~2 | d:b~1)"),
        ("*:*", "*"),
        ("f:*", "f:*"),
        ("a\\:b\\*", "d:a:b*"),
        ("well-known jane@x.org", "(d:well-known | d:jane@x.org)"),
        ("f:[a TO c}", "f:Included(Text(\"a\"))..Excluded(Text(\"c\"))"),
        ("f:{1 TO *]", "(f:Excluded(Number(1.0))..Unbounded | f:Excluded(Text(\"1\"))..Unbounded)"),
        ("a/b", "d:a/b"),
        ("a AND", "the query is not understood at character 5: something to look for is missing"),
        ("(a", "the query is not understood at character 2: a parenthesis is not closed"),
        ("a)", "the query is not understood at character 1: a parenthesis is closed that was not opened"),
        ("\"a", "the query is not understood at character 2: a quotation mark is not closed"),
        ("OR a", "the query is not understood at character 2: AND or OR has nothing before it"),
        ("f:[1 2]", "the query is not understood at character 5: between the ends of a range stands TO"),
    ] {
        assert_eq!(read(text), meaning, "{text}");
    }
    assert!(read("/a.*/").contains("regular expressions"));
    assert!(read(&"(".repeat(10_000)).contains("too many parentheses"));
    assert!(read(&"a ".repeat(5000)).contains("clauses"));
    assert!(read(&"a".repeat(1 << 20)).contains("bytes"));
    let all = parse_query("a b OR c", &["x", "y"], true).unwrap();
    assert_eq!(short(&all), "(x:a | y:a) ? ((x:b | y:b) | (x:c | y:c))");
}

proptest::proptest! {
    #[test]
    fn no_query_does_harm(text in "[a-c \\\\()\\[\\]{}\"^~*?:+!&|/.0-9-]{0,60}|(AND|OR|NOT|TO|a| |\\(|\\)|\"|\\[|:){0,20}") {
        drop(parse_query(&text, &["d"], true));
    }
}
