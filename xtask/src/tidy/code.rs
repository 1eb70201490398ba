//! Rust source as the rules read it: without comments and strings, so that a word in a sentence
//! is not taken for code.

/// `source` with every comment, string and character literal replaced by spaces; the lines stay
/// where they are.
pub fn without_comments_and_strings(source: &str) -> String {
    let source: Vec<char> = source.chars().collect();
    let mut code = String::with_capacity(source.len());
    let mut at = 0;
    while at < source.len() {
        let length = blank_length(&source, at);
        if length == 0 {
            code.push(source[at]);
            at += 1;
            continue;
        }
        let end = source.len().min(at + length);
        code.extend(source[at..end].iter().map(|&c| if c == '\n' { '\n' } else { ' ' }));
        at = end;
    }
    code
}

/// How many characters from `at` are comment, string or character literal; zero if it is code.
fn blank_length(source: &[char], at: usize) -> usize {
    let next = source.get(at + 1).copied();
    match (source[at], next) {
        ('/', Some('/')) => source[at..].iter().take_while(|&&c| c != '\n').count(),
        ('/', Some('*')) => block_comment(&source[at..]),
        ('"', _) => quoted(&source[at..], '"'),
        ('r', Some('"' | '#')) if !is_inside_word(source, at) => raw_string(&source[at..]),
        ('\'', Some('\\')) => quoted(&source[at..], '\''),
        ('\'', Some(_)) if source.get(at + 2) == Some(&'\'') => 3,
        // Anything else behind a quote is a lifetime or a label.
        _ => 0,
    }
}

fn block_comment(source: &[char]) -> usize {
    let mut depth = 0;
    let mut at = 0;
    while at < source.len() {
        match (source[at], source.get(at + 1)) {
            ('/', Some('*')) => (depth, at) = (depth + 1, at + 2),
            ('*', Some('/')) => (depth, at) = (depth - 1, at + 2),
            _ => at += 1,
        }
        if depth == 0 {
            break;
        }
    }
    at
}

fn quoted(source: &[char], quote: char) -> usize {
    let mut at = 1;
    while at < source.len() && source[at] != quote {
        at += if source[at] == '\\' { 2 } else { 1 };
    }
    at + 1
}

/// The length of `r"…"` or `r#"…"#`; zero for a raw identifier such as `r#type`.
fn raw_string(source: &[char]) -> usize {
    let hashes = source[1..].iter().take_while(|&&c| c == '#').count();
    if source.get(1 + hashes) != Some(&'"') {
        return 0;
    }
    let body = 2 + hashes;
    let closes = |at: &usize| {
        source[*at] == '"' && source[at + 1..].iter().take(hashes).filter(|&&c| c == '#').count() == hashes
    };
    (body..source.len()).find(closes).map_or(source.len(), |at| at + 1 + hashes)
}

/// `br"…"` and `cr"…"` are strings too; the `r` of `for` is not.
fn is_inside_word(source: &[char], at: usize) -> bool {
    let before = |back: usize| at.checked_sub(back).map_or(' ', |at| source[at]);
    match before(1) {
        'b' | 'c' => is_word(before(2)),
        c => is_word(c),
    }
}

fn is_word(c: char) -> bool {
    c.is_alphanumeric() || c == '_'
}

/// Whether `code` has `word` in it, not as a part of a longer name.
///
/// Only those ends of `word` that are letters must stand free: `dbg!` has one, `.await` has one.
pub fn has_word(code: &str, word: &str) -> bool {
    let starts_free = !word.starts_with(is_word);
    let ends_free = !word.ends_with(is_word);
    code.match_indices(word).any(|(at, _)| {
        (starts_free || !code[..at].ends_with(is_word))
            && (ends_free || !code[at + word.len()..].starts_with(is_word))
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn comments_and_strings_turn_into_spaces() {
        let blank = |source: &str| without_comments_and_strings(source);
        assert_eq!(blank("a // b\nc"), "a     \nc");
        assert_eq!(blank("a /* b /* c */ d */ e"), "a                   e");
        assert_eq!(blank(r#"f("x\"y")"#), "f(      )");
        assert_eq!(blank(r##"f(r#"x"y"#, b)"##), "f(        , b)");
        assert_eq!(blank(r#"br"x" "#), "b     ");
        assert_eq!(blank("for\"x\""), "for   ");
        assert_eq!(blank("\"a\nb\"c"), "  \n  c");
    }

    #[test]
    fn lifetimes_and_raw_names_stay_code_but_characters_do_not() {
        let blank = |source: &str| without_comments_and_strings(source);
        assert_eq!(blank("&'a str"), "&'a str");
        assert_eq!(blank("'{' '\\'' 'x"), "         'x");
        assert_eq!(blank("r#type"), "r#type");
    }

    #[test]
    fn an_open_end_is_no_reason_to_panic() {
        for source in ["\"x", "\"x\\", "r#\"x", "/* x", "'", "r", "r#", "'\\"] {
            assert_eq!(without_comments_and_strings(source).chars().count(), source.chars().count());
        }
    }

    #[test]
    fn words_are_found_whole() {
        assert!(has_word("use rand::x", "rand"));
        assert!(!has_word("let operand = brand;", "rand"));
        assert!(has_word("x.await?", ".await"));
        assert!(!has_word("x.awaiting", ".await"));
        assert!(has_word("dbg!(x)", "dbg!"));
    }
}
