//! How tightly operators bind, and in which order they are applied.

use crate::support::{check, value_of};
use proptest::prelude::*;

#[test]
fn the_table_of_precedence() {
    check(&[
        // Subscripts bind tighter than everything.
        (r#"x := "a":"b":"c"; x[2] + "!""#, r#""b!""#),
        ("x := 1:2:3; -x[2]", "-2"),
        ("x := 4:5; 1:x[2]", "1:5"),
        (r#"@Explode("a b")[2]"#, r#""b""#),
        ("(1:2:3)[1 + 2]", "3"),
        ("x := 1:2; y := 2:1; x[y[1]]", "2"),
        // The list operator binds tighter than a sign.
        ("-1:2", "(-1):(-2)"),
        ("1:(-2):3", "1:(-2):3"),
        ("1:-2", "1:(-2)"),
        ("1:2:-3:4", "1:2:(-3):(-4)"),
        ("- -2", "2"),
        ("+1:2", "1:2"),
        ("2 - -1", "3"),
        // A sign binds tighter than multiplication, that tighter than addition.
        ("-2 * 3 + 10", "4"),
        ("2 + 3 * 4", "14"),
        ("2 * 3 + 4", "10"),
        ("1:2 * 3", "3:6"),
        ("1 + 1:2", "2:3"),
        ("2 *+ 3 * 4", "14"),
        // From left to right within a level.
        ("100 / 10 / 5", "2"),
        ("12 / 2 * 3", "18"),
        ("10 - 3 - 2", "5"),
        ("10 - 3 + 2", "9"),
        // Addition binds tighter than comparisons, those tighter than logic.
        ("1 + 1 = 2", "1"),
        ("3 > 2 = 1", "1"),
        ("1 = 1 & 2 = 2", "1"),
        ("2 < 1 + 2", "1"),
        // NOT, AND and OR are one level.
        ("1 | 1 & 0", "0"),
        ("0 & 0 | 1", "1"),
        ("!0 & 0", "0"),
        ("!1 | 1", "1"),
        ("!1 = 2", "1"),
        ("!(1 = 1)", "0"),
        ("!!3", "1"),
        ("1 & !0", "1"),
        ("1 = !0", "1"),
        // Without blanks, the longest operator is taken.
        ("1:2**3:4", "3:4:6:8"),
        ("5*-3", "2"),
        ("5 * -3", "-15"),
        ("1=!2", "1"),
    ]);
}

/// An expression of small numbers, as text with as few parentheses as the table allows, and with one pair
/// around each operation.
#[derive(Clone, Debug)]
struct Written {
    plain: String,
    full: String,
    level: u8,
}

fn expressions() -> impl Strategy<Value = Written> {
    let number = (0_u8..6).prop_map(|number| Written {
        plain: number.to_string(),
        full: number.to_string(),
        level: 0,
    });
    number.prop_recursive(6, 40, 2, |inside| {
        let operators = prop_oneof![
            Just((":", 2)),
            Just(("*", 4)),
            Just(("**", 4)),
            Just(("+", 5)),
            Just(("-", 5)),
            Just(("*+", 5)),
            Just(("*-", 5)),
            Just(("=", 6)),
            Just(("<>", 6)),
            Just(("<", 6)),
            Just((">=", 6)),
            Just(("*=", 6)),
            Just(("*<", 6)),
            Just(("&", 7)),
            Just(("|", 7)),
        ];
        let binary =
            (inside.clone(), operators, inside.clone()).prop_map(|(left, (operator, level), right)| {
                let plain_left = wrapped(&left, left.level > level);
                let plain_right = wrapped(&right, right.level >= level);
                Written {
                    plain: format!("{plain_left} {operator} {plain_right}"),
                    full: format!("({}) {operator} ({})", left.full, right.full),
                    level,
                }
            });
        let prefix =
            (prop_oneof![Just(("-", 3)), Just(("!", 7))], inside).prop_map(|((operator, level), operand)| {
                let plain = wrapped(&operand, operand.level >= level);
                Written {
                    plain: format!("{operator}{plain}"),
                    full: format!("{operator}({})", operand.full),
                    level,
                }
            });
        prop_oneof![4 => binary, 1 => prefix]
    })
}

fn wrapped(expression: &Written, needed: bool) -> String {
    if needed { format!("({})", expression.plain) } else { expression.plain.clone() }
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 2000, ..ProptestConfig::default() })]

    #[test]
    fn parentheses_that_the_table_implies_change_nothing(written in expressions()) {
        let (plain, full) = (value_of(&written.plain), value_of(&written.full));
        // Errors name their places, which differ.
        let same = plain == full || plain.is_error() && full.is_error();
        prop_assert!(same, "{} came to {plain:?}, {} to {full:?}", written.plain, written.full);
    }
}
