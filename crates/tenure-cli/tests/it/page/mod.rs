//! The page of a node, in a real browser.

mod browser;
#[path = "../node/client.rs"]
mod client;
mod crowd;
#[path = "../run/place.rs"]
mod place;
#[path = "../node/stage.rs"]
mod stage;
mod story;
mod told;

use std::sync::atomic::Ordering;

use browser::Browser;
use crowd::Crowd;
use serde_json::json;
use stage::{Stage, TOKEN, until};

/// The store of these tests.
const STORE: place::Kind = place::Kind::Sqlite;

fn shows(browser: &mut Browser, selector: &str, wanted: impl Fn(&str) -> bool) -> String {
    until(&format!("{selector} shows what it should"), || {
        Some(browser.text(selector)).filter(|text| wanted(text))
    })
}

#[test]
fn the_next_leader_is_shown_without_a_reload_although_the_page_came_from_the_one_that_was_killed() {
    let stage = Stage::new();
    // Long enough for a browser to start on a busy machine without costing anybody the lease.
    let mut nodes =
        stage.cluster(&["alpha", "beta", "gamma"], &["--ttl", "6s", "--task-list", "billing/invoices=64"]);
    let mut browser = Browser::open(&format!("http://{}/", nodes[0].address));
    shows(&mut browser, "#leader", |text| text == "alpha");
    shows(&mut browser, "#nodes", |text| ["alpha", "beta", "gamma"].iter().all(|name| text.contains(name)));
    shows(&mut browser, "#events", |text| text.contains("leader_elected"));
    shows(&mut browser, "#partitions", |text| text.starts_with("64 partitions: 0 owned by 0 nodes"));
    browser.value("window.sameDocument = 1");
    assert_eq!(browser.complaints, Vec::<String>::new());
    browser.picture("divided", 1280, 1200, "light");
    browser.picture("phone", 390, 1900, "light");
    nodes[0].child.kill().unwrap();
    let next = shows(&mut browser, "#leader", |text| text == "beta" || text == "gamma");
    shows(&mut browser, "#stale", |text| text.contains("does not answer. Reading from"));
    // Its lease may have lasted for a while: what is said is what it was at most, and why.
    shows(&mut browser, "#terms", |text| {
        text.contains(&next)
            && text.contains("nobody led for at most ")
            && text.contains("then: silent for its whole ttl")
    });
    shows(&mut browser, "#events", |text| text.contains("lost term 1: silent for its whole ttl"));
    shows(&mut browser, "#legend", |text| text.contains("nobody led") && text.contains(&next));
    assert_eq!(browser.value("window.sameDocument"), 1);
    // From another node's page nothing can be changed: the token stays where it was typed.
    assert_eq!(browser.value("document.getElementById('hand').disabled"), true);
    browser.picture("after-failover", 1280, 800, "light");
}

#[test]
fn the_leader_makes_way_when_the_page_asks_with_the_token() {
    let stage = Stage::new();
    let nodes = stage.cluster(&["alpha", "beta"], &[]);
    let mut browser = Browser::open(&format!("http://{}/", nodes[1].address));
    shows(&mut browser, "#leader", |text| text == "alpha");
    let submit = |token: &str| {
        format!(
            "document.getElementById('token').value = '{token}'; document.getElementById('form').requestSubmit()"
        )
    };
    browser.value(&submit("wrong-wrong-wrong-wrong"));
    shows(&mut browser, "#answer", |text| text.contains("not the token"));
    browser.value(&submit(TOKEN));
    shows(&mut browser, "#answer", |text| text.contains("was asked"));
    shows(&mut browser, "#leader", |text| text == "beta");
    shows(&mut browser, "#terms", |text| text.contains("then: resigned: asked to make way"));
}

#[test]
fn a_request_to_hand_over_to_the_leader_is_answered_with_that_it_leads_already() {
    let stage = Stage::new();
    let nodes = stage.cluster(&["alpha", "beta"], &[]);
    let mut browser = Browser::open(&format!("http://{}/", nodes[1].address));
    shows(&mut browser, "#leader", |text| text == "alpha");
    // The page does not offer it; between two looks it may be chosen all the same.
    until("who could take over is offered", || {
        (browser.value("[...document.getElementById('to').options].map((o) => o.value).join()") == ",beta")
            .then_some(())
    });
    browser.value(&format!(
        "document.getElementById('to').add(new Option('alpha')); document.getElementById('to').value = 'alpha';
         document.getElementById('token').value = '{TOKEN}'; document.getElementById('form').requestSubmit()"
    ));
    shows(&mut browser, "#answer", |text| text == "alpha already leads, under term 1");
}

#[test]
fn three_nodes_fit_on_one_screen_and_empty_cards_give_way() {
    let stage = Stage::new();
    let nodes = stage.cluster(&["alpha", "beta", "gamma"], &["--min-nodes", "3"]);
    let mut browser = Browser::open(&format!("http://{}/", nodes[0].address));
    shows(&mut browser, "#events", |text| text.contains("gamma registered on "));
    shows(&mut browser, "#nodes", |text| text.contains("gamma"));
    shows(&mut browser, "#glance", |text| text.contains("healthy"));
    for scheme in ["light", "dark"] {
        browser.picture(scheme, 1280, 800, scheme);
        let high = browser.value("document.documentElement.scrollHeight").as_u64().unwrap();
        assert!(high <= 800, "the page is {high} pixels high");
        let wide = browser.value("document.documentElement.scrollWidth").as_u64().unwrap();
        assert!(wide <= 1280, "the page is {wide} pixels wide");
    }
    // Every card that is left has its place on that screen, and there is room for what has happened.
    let cards = "[...document.querySelectorAll('main > section')].filter((card) => card.offsetHeight > 0)";
    let places =
        browser.value(&format!("{cards}.map((card) => card.querySelector('h2').textContent).join()"));
    assert_eq!(places, "Leader,Terms,Cluster,Nodes,Measured by alpha,Events");
    let within = format!("{cards}.every((card) => card.getBoundingClientRect().bottom <= 800)");
    assert_eq!(browser.value(&within), true);
    let room = browser.value("document.getElementById('events').closest('.scroll').clientHeight");
    assert!(room.as_u64().unwrap() > 150, "{room}");
    // A node that is well says so: in its colour, by a sign, and in a word.
    let states = "[...document.querySelectorAll('#nodes tr')].map(({ cells }) => [cells[0].textContent,
        cells[1].textContent, cells[1].className, getComputedStyle(cells[1], '::before').content[1]].join(' ')).join()";
    assert_eq!(browser.value(states), "alpha leader good ✓,beta live good ✓,gamma live good ✓");
    assert_eq!(browser.value("document.getElementById('filter').offsetHeight"), 0);
    // Another election is worth a card.
    let _other = stage.node("delta", &["--election", "other"]);
    shows(&mut browser, "#elections", |text| text.contains("other: delta leads under term 1"));
    assert_eq!(browser.value("document.getElementById('elections-card').hidden"), false);
    assert_eq!(browser.complaints, Vec::<String>::new());
}

#[test]
fn a_leader_that_has_fallen_silent_is_not_shown_as_leading() {
    let stage = Stage::new();
    // Nobody takes over, so nobody writes down that its term is over.
    let mut alpha = stage.node("alpha", &["--ttl", "4s"]);
    alpha.until_ok("/leader");
    let observer = stage.node("beta", &["--ttl", "4s", "--eligible=false"]);
    let mut browser = Browser::open(&format!("http://{}/", observer.address));
    shows(&mut browser, "#terms", |text| text.contains(" alpha from ") && text.ends_with(", leads"));
    shows(&mut browser, "#leader", |text| text == "alpha");
    alpha.child.kill().unwrap();
    shows(&mut browser, "#leader", |text| text == "nobody leads");
    shows(&mut browser, "#terms", |text| text.starts_with("nobody leads; alpha was last heard of at "));
    until("it is silent, and marked so", || {
        let state = "[...document.querySelectorAll('#nodes td.warn')].map((cell) => cell.textContent).join()";
        (browser.value(state) == "silent").then_some(())
    });
    until("the strip shows that nobody leads", || {
        (browser.value("document.querySelector('#strip').lastElementChild.className") == "nobody")
            .then_some(())
    });
    browser.picture("silent", 1280, 800, "light");
}

#[test]
fn a_node_without_its_store_does_not_say_that_nobody_leads() {
    let stage = Stage::new();
    let node = stage.node("alpha", &["--ttl", "4s"]);
    let mut browser = Browser::open(&format!("http://{}/", node.address));
    shows(&mut browser, "#leader", |text| text == "alpha");
    stage.place().take_away();
    shows(&mut browser, "#leader", |text| text == "not known");
    shows(&mut browser, "#term", |text| {
        text.starts_with("this node does not reach the store; the last known term was ")
    });
    stage.place().bring_back();
    shows(&mut browser, "#leader", |text| text == "alpha");
}

#[test]
fn an_unhealthy_node_is_marked_with_its_problem() {
    let stage = Stage::new();
    let leader = stage.node("alpha", &[]);
    leader.until_ok("/leader");
    let _other = stage.node("beta", &["--health-cmd", "exit 7 #<b id=owned>"]);
    let mut browser = Browser::open(&format!("http://{}/", leader.address));
    let problem = "unhealthy: `exit 7 #<b id=owned>` ended with exit status: 7";
    shows(&mut browser, "#nodes", |text| text.contains(problem));
    shows(&mut browser, "#events", |text| text.contains("node_unhealthy"));
    let marked = "[...document.querySelectorAll('#nodes td.bad')].map((cell) => cell.textContent).join()";
    until("it is marked", || (browser.value(marked) == problem).then_some(()));
    assert_eq!(browser.value("document.querySelectorAll('#owned').length"), 0);
    browser.picture("unhealthy", 1280, 900, "light");
}

#[test]
fn hostile_names_are_text_and_the_content_policy_holds() {
    let stage = Stage::new();
    let hostile = "<img src=x onerror=window.owned=1>";
    let node = stage.node(hostile, &["--label", "x=<script>window.owned=1<script>"]);
    node.until_ok("/leader");
    let mut browser = Browser::open(&format!("http://{}/", node.address));
    shows(&mut browser, "#leader", |text| text == hostile);
    shows(&mut browser, "#nodes", |text| text.contains(hostile));
    shows(&mut browser, "#terms", |text| text.contains(hostile));
    assert_eq!(browser.value("document.querySelectorAll('main img, main script').length"), 0);
    assert_eq!(browser.complaints, Vec::<String>::new());
    browser.picture("hostile", 1280, 900, "light");
    // Whatever should get in some day finds that it may do nothing.
    browser.value(
        "window.refused = []; addEventListener('securitypolicyviolation', e => refused.push(e.effectiveDirective));
         document.body.insertAdjacentHTML('beforeend', '<p onclick=\"window.owned=1\" id=\"in\">x</p>');
         document.getElementById('in').click();
         const s = document.createElement('script'); s.textContent = 'window.owned=1'; document.body.append(s);
         fetch('http://127.0.0.2:9/').catch(() => 0)",
    );
    until("all three are refused", || {
        let refused = browser.value("refused.join()");
        let refused = refused.as_str().unwrap_or_default();
        ["script-src-attr", "script-src-elem", "connect-src"]
            .iter()
            .all(|what| refused.contains(what))
            .then_some(())
    });
    assert!(browser.value("window.owned").is_null());
}

#[test]
fn a_crowd_is_shown_whole_and_the_page_stays_small() {
    let (crowd, address) = Crowd::serve();
    let mut browser = Browser::open(&format!("http://{address}/"));
    // As long as it goes on, it is waited for: a busy machine takes its time for so many.
    let mut known = 0;
    while known < crowd::EVENTS as u64 {
        let more = |id: &u64| *id > known;
        known = until("more events are taken in", || browser.value("lastId").as_u64().filter(more));
    }
    let first = format!("document.querySelector('#events tr')?.dataset.id === '{}'", crowd::EVENTS);
    until("the last of the events is shown", || (browser.value(&first) == true).then_some(()));
    let words = format!(
        "{} partitions: {} owned by {} nodes, {} being given up, {} vacant, in 4 task lists",
        crowd::PARTITIONS,
        crowd::PARTITIONS - crowd::REVOKING - crowd::VACANT,
        crowd::NODES,
        crowd::REVOKING,
        crowd::VACANT,
    );
    shows(&mut browser, "#partitions", |text| text == words);
    shows(&mut browser, "#moves", |text| {
        text.contains("node-000 is giving it up") && text.contains("28 more")
    });
    // A hundred thousand events later, who led is still known, though all of it is long out of the list of events.
    shows(&mut browser, "#terms", |text| {
        text.contains("term 200 ") && text.contains("then: silent for its whole ttl")
    });
    let mut count = |selector: &str| {
        browser.value(&format!("document.querySelectorAll('{selector}').length")).as_u64().unwrap()
    };
    assert_eq!(
        (count("#nodes tr"), count("#events tr"), count("#map canvas")),
        (crowd::NODES as u64, 200, 4)
    );
    // 500 rows of 6 cells, 200 of 3, 500 choices: nothing grows with the partitions, nor with the events.
    assert!(count("#terms li") <= 201 && count("*") < 6500, "{} elements", count("*"));
    assert!(browser.value("events.length").as_u64().unwrap() <= 2000);
    // What is on its way is in the picture: the first cell is half its owner's colour, a vacant one is hollow.
    let painted = |number: usize, part: f64| {
        format!(
            "(() => {{ const map = maps.get('work/list-0'), at = (n) => Math.floor((n + {part}) * map.size);
               const [x, y] = [{number} % map.columns, Math.floor({number} / map.columns)];
               return map.canvas.getContext('2d').getImageData(at(x), at(y), 1, 1).data[3]; }})()"
        )
    };
    assert_eq!([browser.value(&painted(0, 0.3)), browser.value(&painted(0, 0.7))], [255, 0]);
    assert_eq!([browser.value(&painted(50, 0.5)), browser.value(&painted(200, 0.5))], [0, 255]);
    // A keyboard and a screen reader get at every cell.
    browser.value("maps.get('work/list-0').canvas.focus()");
    for (key, told) in
        [("End", "partition 2499: owned by node-499"), ("Home", "partition 0: node-000 is giving it up")]
    {
        browser.call("Input.dispatchKeyEvent", json!({"type": "keyDown", "key": key}));
        let value = browser.value("document.activeElement.getAttribute('aria-valuetext')");
        assert!(value.as_str().unwrap().starts_with(told), "{value}");
    }
    for (name, width, scheme) in
        [("crowd", 1280, "light"), ("crowd-dark", 1280, "dark"), ("crowd-phone", 390, "light")]
    {
        browser.picture(name, width, 2400, scheme);
    }
    // It was asked for at first, and after what may have changed it: not with every one of so many events. How often
    // exactly is a matter of time: on a busy machine the page asks again when an answer takes too long.
    until("nothing is left to ask", || (browser.value("stirred || reading") == false).then_some(()));
    let before = crowd.surveys.load(Ordering::SeqCst);
    assert!(before < crowd::EVENTS / 100, "{before}");
    crowd.settled.store(true, Ordering::SeqCst);
    shows(&mut browser, "#partitions", |text| text.contains("0 being given up"));
    shows(&mut browser, "#moves", |text| text.contains("work/list-0 39: from node-039 to node-040"));
    assert_eq!(browser.complaints, Vec::<String>::new());
}
