//! Words near one another.

/// Whether one place can be taken of each list so that the words stand as in the phrase, moved by at most `slop` places in all
/// together. Each list ascends, and each word's own place within the phrase has been taken off.
pub(crate) fn fits(lists: &[Vec<i64>], slop: u32) -> bool {
    let mut at = vec![0_usize; lists.len()];
    loop {
        let mut least: Option<(i64, usize)> = None;
        let mut greatest = i64::MIN;
        for (number, (list, at)) in lists.iter().zip(&at).enumerate() {
            let Some(place) = list.get(*at).copied() else { return false };
            greatest = greatest.max(place);
            if least.is_none_or(|(other, _)| place < other) {
                least = Some((place, number));
            }
        }
        let Some((place, number)) = least else { return false };
        if greatest.saturating_sub(place) <= i64::from(slop) {
            return true;
        }
        if let Some(at) = at.get_mut(number) {
            *at += 1;
        }
    }
}

#[cfg(test)]
mod tests {
    use super::fits;

    proptest::proptest! {
        #[test]
        fn it_finds_what_trying_all_finds(
            lists in proptest::collection::vec(proptest::collection::btree_set(-2_i64..30, 0..6), 1..4),
            slop in 0_u32..6,
        ) {
            let lists: Vec<Vec<i64>> = lists.into_iter().map(|list| list.into_iter().collect()).collect();
            let mut choices: Vec<(i64, i64)> = vec![(i64::MAX, i64::MIN)];
            for list in &lists {
                choices = choices
                    .iter()
                    .flat_map(|(least, greatest)| list.iter().map(move |place| (*least.min(place), *greatest.max(place))))
                    .collect();
            }
            let is_near = choices.iter().any(|(least, greatest)| greatest - least <= i64::from(slop));
            proptest::prop_assert_eq!(fits(&lists, slop), is_near);
        }
    }
}
