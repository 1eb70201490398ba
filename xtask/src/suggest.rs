//! Which word was meant.

/// The one of `known` that takes the fewest slips of the finger to turn into `typed`.
///
/// Of equals the first wins. `known` is never empty: it is the list of what exists.
pub fn nearest<'a>(typed: &str, known: &[&'a str]) -> &'a str {
    known.iter().copied().min_by_key(|word| slips(typed, word)).expect("the list of known words has entries")
}

/// Letters added, dropped or replaced, and neighbours swapped, between two words.
fn slips(from: &str, to: &str) -> usize {
    let from: Vec<char> = from.chars().collect();
    let to: Vec<char> = to.chars().collect();
    // cost[i][j]: from the first i letters of one to the first j letters of the other.
    let mut cost = vec![vec![0; to.len() + 1]; from.len() + 1];
    for i in 0..=from.len() {
        for j in 0..=to.len() {
            cost[i][j] = match (i, j) {
                (0, _) => j,
                (_, 0) => i,
                _ => {
                    let replaced = cost[i - 1][j - 1] + usize::from(from[i - 1] != to[j - 1]);
                    let mut least = replaced.min(cost[i - 1][j] + 1).min(cost[i][j - 1] + 1);
                    if i > 1 && j > 1 && from[i - 1] == to[j - 2] && from[i - 2] == to[j - 1] {
                        least = least.min(cost[i - 2][j - 2] + 1);
                    }
                    least
                }
            };
        }
    }
    cost[from.len()][to.len()]
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn each_kind_of_slip_counts_once() {
        assert_eq!(slips("test", "test"), 0);
        assert_eq!(slips("tst", "test"), 1);
        assert_eq!(slips("tesst", "test"), 1);
        assert_eq!(slips("tent", "test"), 1);
        assert_eq!(slips("tset", "test"), 1);
        assert_eq!(slips("", "test"), 4);
    }

    #[test]
    fn the_nearest_chore_is_named() {
        let chores = ["test", "sim", "bench", "tidy"];
        assert_eq!(nearest("tets", &chores), "test");
        assert_eq!(nearest("benches", &chores), "bench");
        assert_eq!(nearest("simulate", &chores), "sim");
        assert_eq!(nearest("tity", &chores), "tidy");
    }
}
