//! What the page makes of a history: sentences, terms, and a strip of time.

use serde_json::{Value, json};

use super::browser::Browser;
use super::told::{line, serve};
use super::{shows, until};

/// What an expression over these elements is, one per line.
fn each(browser: &mut Browser, selector: &str, of: &str) -> Vec<String> {
    let expression = format!("[...document.querySelectorAll('{selector}')].map((e) => {of}).join('\\n')");
    browser.value(&expression).as_str().unwrap().lines().map(str::to_owned).collect()
}

/// An event (its kind, node, term and data), and the words that the page has for it.
type Told = (&'static str, &'static str, u64, Value, &'static str);

fn events_of_leaders() -> Vec<Told> {
    let nobody = json!({});
    vec![
        ("election_started", "alpha", 0, nobody.clone(), "the election began: alpha was the first to stand"),
        ("leader_elected", "alpha", 1, nobody.clone(), "alpha was elected under term 1"),
        (
            "leader_lost",
            "alpha",
            1,
            json!({"reason": "lapsed", "silent_ms": 6012}),
            "alpha lost term 1: silent for its whole ttl (no sign of life for 6.0 s)",
        ),
        (
            "leader_lost",
            "alpha",
            2,
            json!({"reason": "lapsed", "silent_ms": 16662, "ttl_ms": 4000, "reopened": true}),
            "alpha lost term 2: the store was away or the process was held up for longer than its ttl (no sign of \
             life for 16.7 s)",
        ),
        (
            "leader_lost",
            "alpha",
            3,
            json!({"reason": "superseded", "reopened": true}),
            "alpha lost term 3: its process lost the session and opened a new one",
        ),
        (
            "leader_lost",
            "alpha",
            3,
            json!({"reason": "program_failed", "exit_code": 1}),
            "alpha lost term 3: its program exited with code 1",
        ),
        (
            "leader_lost",
            "alpha",
            3,
            json!({"reason": "program_failed", "signal": 9}),
            "alpha lost term 3: its program was killed by signal 9 (SIGKILL)",
        ),
        (
            "leader_lost",
            "alpha",
            3,
            json!({"reason": "process_ended", "witnessed": true}),
            "alpha lost term 3: its process ended; its guardian noticed",
        ),
        (
            "leader_resigned",
            "alpha",
            3,
            json!({"exit_code": 0}),
            "alpha gave up term 3: its program exited with code 0",
        ),
        ("leader_lost", "alpha", 4, json!({"reason": "bad_weather"}), "alpha lost term 4: bad weather"),
        ("leader_resigned", "alpha", 5, nobody.clone(), "alpha gave up term 5"),
        ("leader_resigned", "alpha", 6, json!({"to": "beta"}), "alpha gave up term 6 for beta"),
        (
            "leader_changed",
            "beta",
            7,
            json!({"previous": "alpha", "new": "beta"}),
            "leadership went from alpha to beta",
        ),
        ("transfer_requested", "alpha", 7, nobody.clone(), "alpha was asked to make way"),
        ("transfer_requested", "alpha", 7, json!({"to": "beta"}), "alpha was asked to make way for beta"),
    ]
}

fn other_events() -> Vec<Told> {
    let nobody = json!({});
    vec![
        ("election_deleted", "", 8, nobody.clone(), "the election was deleted"),
        (
            "node_joined",
            "beta",
            0,
            json!({"hostname": "b", "pid": 17, "version": "0.1.0", "address": null}),
            "beta registered on b, process 17, version 0.1.0",
        ),
        ("node_left", "beta", 0, nobody.clone(), "beta left"),
        (
            "node_left",
            "beta",
            0,
            json!({"reason": "superseded", "silent_ms": 7, "ttl_ms": 10_000, "reopened": true}),
            "beta left: its process opened a new session",
        ),
        ("node_expired", "beta", 0, nobody.clone(), "beta was silent for its whole ttl, and was retired"),
        ("node_unhealthy", "beta", 0, json!({"problem": "no <b>"}), "the health check of beta fails: no <b>"),
        ("node_healthy", "beta", 0, nobody.clone(), "the health check of beta passes again"),
        ("cluster_degraded", "beta", 8, json!({"live": 1, "minimum": 2}), "too few nodes: 1 lives, 2 needed"),
        (
            "cluster_recovered",
            "beta",
            8,
            json!({"live": 2, "minimum": 2}),
            "enough nodes again: 2 live, 2 needed",
        ),
        (
            "plan_published",
            "beta",
            8,
            json!({"revision": 3, "assigned": 1, "revoked": 4}),
            "1 partition assigned, 4 revoked (revision 3)",
        ),
        (
            "partition_assigned",
            "beta",
            8,
            json!({"revision": 3, "to": {"beta": {"jobs/a": [0, 1, 2, 5]}, "gamma": {"jobs/a": [3]}}}),
            "given to beta: jobs/a 0–2, 5 · gamma: jobs/a 3",
        ),
        (
            "partition_released",
            "beta",
            8,
            json!({"revision": 4, "released": 2}),
            "beta has stopped its work on 2 partitions",
        ),
        (
            "partition_revoked",
            "beta",
            8,
            json!({"revision": 5, "from": {"beta": {"jobs/a": [7]}}}),
            "to be given up by beta: jobs/a 7",
        ),
        (
            "in_jeopardy",
            "beta",
            8,
            json!({"reason": "clock_jumped"}),
            "beta, term 8, the clock leapt: the machine may have been paused",
        ),
        // Of what no sentence speaks of there is still nothing raw.
        (
            "leader_resigned",
            "beta",
            8,
            json!({"tries": 3, "waited_ms": 1500, "nothing": null}),
            "beta gave up term 8, tries 3, waited 1.5 s",
        ),
    ]
}

#[test]
fn every_event_is_told_in_words() {
    let lines = [events_of_leaders(), other_events()].concat();
    let history = lines
        .iter()
        .map(|(event, node, term, data, _)| line("11:59:00.000", event, node, *term, data.clone()));
    let mut browser = Browser::open(&format!("http://{}/", serve(history.collect())));
    until("all are shown", || {
        (browser.value("document.querySelectorAll('#events tr').length") == lines.len()).then_some(())
    });
    let mut told = each(&mut browser, "#events tr", "e.cells[2].textContent");
    told.reverse();
    assert_eq!(told, lines.iter().map(|(.., words)| *words).collect::<Vec<_>>());
    // What is bad or good is marked so, and not by its colour alone.
    let marks = "e.cells[1].textContent + ' ' + getComputedStyle(e.cells[1], '::before').content.slice(1, 2)";
    let marks = each(&mut browser, "#events tr", marks);
    for mark in ["leader_lost ✕", "leader_elected ✓", "cluster_degraded !", "node_expired ✕"] {
        assert!(marks.contains(&mark.to_owned()), "{mark}: {marks:?}");
    }
    let text = browser.text("main");
    for raw in ["silent_ms", "superseded", "lapsed", "reason ", "{", "null", "undefined"] {
        assert!(!text.contains(raw), "`{raw}` in {text}");
    }
    assert_eq!(browser.complaints, Vec::<String>::new());
    browser.picture("words", 1280, 1000, "light");
}

/// The store was away for longer than the ttl of 4 s, and the same process leads again.
fn outage() -> Value {
    json!({"reason": "lapsed", "silent_ms": 17_776, "ttl_ms": 4_000, "reopened": true})
}

/// Four terms in the four minutes before noon.
fn terms() -> Vec<Value> {
    vec![
        line("11:56:00.000", "election_started", "alpha", 0, json!({})),
        line("11:56:30.000", "leader_elected", "alpha", 1, json!({})),
        line("11:57:40.000", "leader_lost", "alpha", 1, json!({"reason": "lapsed", "silent_ms": 10_000})),
        line("11:57:40.000", "leader_elected", "beta", 2, json!({})),
        line("11:58:40.000", "transfer_requested", "beta", 2, json!({"to": "gamma"})),
        line("11:58:40.000", "leader_resigned", "beta", 2, json!({"to": "gamma"})),
        line("11:58:40.000", "leader_elected", "gamma", 3, json!({})),
        line("11:59:20.000", "leader_lost", "gamma", 3, outage()),
        line("11:59:20.024", "leader_elected", "gamma", 4, json!({})),
    ]
}

#[test]
fn the_strip_of_terms_has_a_legend_and_an_axis_and_starts_with_the_election() {
    let mut browser = Browser::open(&format!("http://{}/", serve(terms())));
    shows(&mut browser, "#terms", |text| text.contains("term 4"));
    assert_eq!(
        each(&mut browser, "#terms li", "e.textContent"),
        [
            "term 4 gamma from 11:59:20.024, leads",
            "nobody led for 13.8 s",
            "term 3 gamma from 11:58:40.000 for 26.2 s, then: the store was away or the process was held up for \
             longer than its ttl",
            "term 2 beta from 11:57:40.000 for 1 min 0 s, then: resigned: asked to make way for gamma",
            "nobody led for at most 10.0 s",
            "term 1 alpha from 11:56:30.000 for 1 min 0 s, then: silent for its whole ttl",
        ]
    );
    assert_eq!(
        each(&mut browser, "#strip span", "e.className + ': ' + e.title"),
        [
            "nothing: before the election began",
            "nobody: nobody led for 30.0 s",
            "term: term 1 alpha",
            "nobody: nobody led for at most 10.0 s",
            "term: term 2 beta",
            "term: term 3 gamma",
            "nobody: nobody led for 13.8 s",
            "term: term 4 gamma",
        ]
    );
    assert_eq!(
        each(&mut browser, "#axis span", "e.textContent"),
        ["5 min ago", "4 min ago", "3 min ago", "2 min ago", "1 min ago", "now"]
    );
    assert_eq!(
        each(&mut browser, "#legend li", "e.textContent"),
        ["alpha led", "beta led", "gamma led", "nobody led", "before the election began"]
    );
    // A bar says whose it is, in the colour of the legend; the parts are next to each other, up to now.
    assert_eq!(each(&mut browser, "#strip .term", "e.textContent"), ["alpha", "beta", "gamma", "gamma"]);
    let colours = "getComputedStyle(e).backgroundColor";
    let legend = each(&mut browser, "#legend .swatch.term", colours);
    assert_eq!(each(&mut browser, "#strip .term", colours)[..3], legend[..]);
    let joined = "[...document.querySelectorAll('#strip span')].every((e) => !e.nextSibling
        ? Math.abs(parseFloat(e.style.left) + parseFloat(e.style.width) - 100) < 1e-3
        : Math.abs(parseFloat(e.style.left) + parseFloat(e.style.width) - parseFloat(e.nextSibling.style.left)) < 1e-3)";
    assert_eq!(browser.value(joined), true);
    assert_eq!(browser.complaints, Vec::<String>::new());
    browser.picture("terms", 1280, 800, "light");
    browser.picture("terms-dark", 1280, 800, "dark");
}

#[test]
fn time_without_an_election_or_beyond_the_history_is_not_time_in_which_nobody_led() {
    let deleted = vec![
        line("11:57:50.000", "election_started", "alpha", 0, json!({})),
        line("11:57:50.000", "leader_elected", "alpha", 1, json!({})),
        line("11:58:20.000", "election_deleted", "", 1, json!({})),
        line("11:58:21.000", "leader_resigned", "alpha", 1, json!({})),
        line("11:59:00.000", "election_started", "gamma", 1, json!({})),
        line("11:59:00.000", "leader_elected", "gamma", 2, json!({})),
    ];
    let forgotten = vec![line("11:58:50.000", "leader_elected", "gamma", 7, json!({}))];
    for (history, parts, legend) in [
        (
            deleted,
            "before the election began,term 1 alpha,there was no such election,term 2 gamma",
            "alpha led,gamma led,nobody led,before the election began,there was no such election",
        ),
        (forgotten, "not in the history,term 7 gamma", "gamma led,nobody led,not in the history"),
    ] {
        let mut browser = Browser::open(&format!("http://{}/", serve(history)));
        shows(&mut browser, "#terms", |text| text.contains("gamma from ") && text.contains(", leads"));
        assert_eq!(each(&mut browser, "#strip span", "e.title").join(","), parts);
        assert_eq!(each(&mut browser, "#legend li", "e.textContent").join(","), legend);
        assert!(!browser.text("#terms").contains("nobody led"), "{}", browser.text("#terms"));
    }
}
