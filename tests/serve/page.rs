//! The page in a real browser. Without a browser these tests print that they were left out.

use std::{path::Path, thread, time::Duration};

use rusqlite::Connection;
use serde_json::json;

use crate::browser::{self, Browser, Site};

/// Sets a sentinel wherever it runs.
const HOSTILE: &str = "<script>window.hacked=1</script><img src=x onerror=\"window.hacked=2\">\
    <svg onload=\"window.hacked=3\"></svg> sentinel";

/// Every view.
const VIEWS: [&str; 16] = [
    "/",
    "/?q=bread",
    "/?q=nothing+at+all",
    "/c/c1/2?q=bread",
    "/c/c1",
    "/?q=running",
    "/c/terminal?q=running",
    "/c/branching",
    "/c/arabic",
    "/c/branching/forget",
    "/c/headings",
    "/?q=hay",
    "/c/c1?find=bread&view=text",
    "/stats",
    "/status",
    "/import",
];

/// Returns a browser and a server of chats that the tests know; `None` without a browser.
fn start() -> Option<(Browser, Site)> {
    browser::start(known_chats)
}

/// Makes a database of chats.
pub(crate) fn known_chats(folder: &Path) {
    fill(&Connection::open(folder.join("chats.db")).expect("it can be made"));
}

fn fill(connection: &Connection) {
    let schema = "CREATE TABLE conversations (id TEXT PRIMARY KEY, title TEXT);
        CREATE TABLE messages (id TEXT PRIMARY KEY, conversation_id TEXT, role TEXT,
            content TEXT, create_time);";
    connection.execute_batch(schema).expect("the schema is sound");
    let mut next = 0;
    let mut add = |id: &str, title: &str, messages: &[(&str, &str)]| {
        let sql = "INSERT INTO conversations VALUES (?1, ?2)";
        connection.execute(sql, [id, title]).expect("a new id");
        for (role, content) in messages {
            next += 1;
            let sql =
                "INSERT INTO messages VALUES ('m' || ?1, ?2, ?3, ?4, 1700000000 + ?1 * 86400)";
            connection.execute(sql, (next, id, role, content)).expect("a new id");
        }
    };
    let bread = [
        ("user", "How long does a *sourdough* bread proof?"),
        ("assistant", "Four hours at 24 degrees.\n\n```rust\nlet bread = \"warm\";\n```"),
        ("tool", "oven: 240 degrees\nbread in"),
        ("assistant", "[thinking]\nThe bread is hidden here.\n[tool: Oven]\ncommand: heat"),
        ("assistant", "借用チェッカーと日本語の検索"),
    ];
    add("c1", "Baking bread", &bread);
    let branching = [
        ("user", "Name a colour"),
        ("assistant", "Blue it is"),
        ("user", "Thanks"),
        ("assistant", "Crimson it is"),
        ("user", "Why crimson?"),
        ("user", "Name a mountain"),
    ];
    add("branching", "Colours", &branching);
    let long: Vec<(&str, String)> = (0..300)
        .map(|n| ("user", if n % 60 == 30 { format!("needle {n}") } else { format!("hay {n}") }))
        .collect();
    let long: Vec<(&str, &str)> = long.iter().map(|(role, text)| (*role, text.as_str())).collect();
    add("long", "A long conversation", &long);
    let markdown = format!(
        "[sentinel](javascript:window.hacked=4) ![a](http://evil.example/a.png)\n\n```html\n{HOSTILE}\n```\n\n{HOSTILE}"
    );
    add(HOSTILE, HOSTILE, &[("user", HOSTILE), (HOSTILE, &markdown), ("tool", HOSTILE)]);
    let output = "\x1b[1mrunning\x1b[0m 2 checks\n\x1b[32mgreen\x1b[0m \x1b[33myellow\x1b[0m \x1b[2mdim\x1b[0m";
    let repeated = [("user", "Check it"), ("tool", output), ("tool", output), ("tool", output)];
    add("terminal", "Terminal", &repeated);
    add("..", "Steps", &[("user", "two steps up")]);
    let arabic = "مرحبا `Vec<T>`\n\n```rust\nlet a = 1;\n```\n\n- أولا\n- in English\n\nAn English paragraph.";
    add("arabic", "خطة", &[("assistant", arabic)]);
    let headings = "## A plan\n\n#### A step\n\n# A title\n\n### A part";
    add("headings", "Headings", &[("user", "Plan it"), ("assistant", headings)]);
    // Messages 6 to 11 are in the branching conversation; the last three of them are on other branches.
    let branches = "CREATE TABLE verbatim_branches (message_id TEXT PRIMARY KEY, follows TEXT);
        CREATE TABLE verbatim_messages (message_id TEXT PRIMARY KEY, export_id TEXT, model TEXT);
        INSERT INTO verbatim_branches VALUES ('m9', 'm6'), ('m10', 'm9'), ('m11', '');";
    connection.execute_batch(branches).expect("the tables are new");
}

#[test]
fn from_the_first_letter_to_the_message_and_back() {
    let Some((browser, site)) = start() else { return };
    browser.open(&site.address);
    browser.wait("document.activeElement.id === 'q'");
    browser.keys("#q", "bread");
    browser.wait("document.querySelectorAll('#list .hits li').length === 4");
    browser.wait("location.search === '?q=bread'");
    browser.wait("document.querySelector('#hist svg')");
    // The month of the chosen result has a tick.
    browser.wait("document.querySelector('#hist .here')");
    browser.wait("[...document.querySelectorAll('.facet .n')].some(n => n.textContent === '2')");
    // A filter keeps the text and is in the address.
    browser.run("document.querySelector('[name=role][value=tool]').click()");
    browser.wait("document.querySelectorAll('#list .hits li').length === 1");
    browser.wait("location.search === '?q=bread&role=tool'");
    browser.run("document.querySelector('[name=role][value=tool]').click()");
    browser.wait("document.querySelectorAll('#list .hits li').length === 4");
    // Keys choose a result and show it beside the list.
    browser.run("document.activeElement.blur()");
    browser.keys("body", "jj");
    browser.wait("document.querySelectorAll('#list .hits li')[1].ariaCurrent === 'true'");
    browser
        .wait("document.querySelector('.count').innerText.startsWith('2 of 4 messages in 1 conv')");
    // A screen reader hears the number of results, and the text of the chosen one.
    browser.wait("document.querySelector('#said').innerText === '4 messages in 1 conversation'");
    let script = "const id = document.activeElement.getAttribute('aria-describedby');
        return document.getElementById(id).innerText.includes('warm')";
    assert_eq!(browser.run(script), true);
    browser.wait("document.querySelector('#peek article mark.now')");
    browser.run("document.querySelector('#list [aria-current] a').click()");
    browser.wait("location.pathname === '/c/c1/2' && document.querySelector('#m2 mark.now')");
    browser.wait("document.querySelector('#m2 .s-rust, #m2 .s-source')");
    browser.keys("body", "n");
    browser.wait("location.pathname === '/c/c1/3' && document.querySelector('#m3 details').open");
    browser
        .wait("document.querySelector('#said').innerText.startsWith('Hit 3 of 4, message 3 of 4')");
    // Letters can be switched off as keys.
    browser.click("#all-keys");
    browser.click("#letters");
    browser.keys("#letters", "\u{e00c}");
    browser.keys("body", "n");
    browser.wait("!document.querySelector('dialog').open && location.pathname === '/c/c1/3'");
    browser.click("#all-keys");
    browser.click("#letters");
    browser.keys("#letters", "\u{e00c}");
    browser.keys("body", "n");
    browser.wait("location.pathname === '/c/c1/4'");
    browser.keys("body", "N");
    browser.wait("location.pathname === '/c/c1/3'");
    browser.keys("body", "u");
    browser
        .wait("location.search === '?q=bread' && document.querySelector('#q').value === 'bread'");
    // The way back led to the entry of the results, and not to a new one.
    browser.run("history.forward()");
    browser.wait("location.pathname === '/c/c1/3' && document.querySelector('#m3 mark.now')");
    browser.assert_sound(&site);
}

#[test]
fn a_search_that_takes_long_says_so() {
    let Some((browser, site)) = start() else { return };
    browser.open(&format!("{}/?q=bread", site.address));
    browser.wait("document.querySelector('#hist svg')");
    browser.run("const real = window.fetch; window.fetch = () => new Promise(() => {}); window.go = () => (window.fetch = real)");
    browser.keys("#q", "s");
    browser.wait("document.querySelector('main[aria-busy=true] #list .hits')");
    browser.run("window.go()");
    browser.keys("#q", "\u{e003}");
    browser.wait("document.querySelectorAll('#list .hits li').length === 4 && !document.querySelector('[aria-busy]')");
    browser.assert_sound(&site);
}

#[test]
fn identical_messages_open_and_a_terminal_has_its_colours() {
    let Some((browser, site)) = start() else { return };
    browser.open(&format!("{}/?q=running", site.address));
    browser.wait("document.querySelectorAll('#list .hits > li').length === 1");
    assert_eq!(browser.run("return document.querySelector('.same a').checkVisibility()"), false);
    browser.click(".same summary");
    browser.wait("document.querySelectorAll('.same a').length === 2 && location.pathname === '/'");
    browser.click(".same a");
    browser.wait(
        "location.pathname === '/c/terminal/3' && document.querySelector('#m3 details').open",
    );
    let colour = |selector: &str| {
        browser.run(&format!(
            "return getComputedStyle(document.querySelector('#m3 {selector}')).color"
        ))
    };
    assert_ne!(colour(".t-green"), colour("pre"));
    // What is selected and copied has no control characters.
    let script = "getSelection().selectAllChildren(document.querySelector('#m3 pre'));
        return getSelection().toString()";
    assert_eq!(browser.run(script), "running 2 checks\ngreen yellow dim");
    browser.assert_sound(&site);
}

#[test]
fn nothing_is_searched_in_the_middle_of_a_composition() {
    let Some((browser, site)) = start() else { return };
    browser.open(&site.address);
    browser.wait("document.querySelector('#list .group') && document.activeElement.id === 'q'");
    browser.run(
        "window.asked = []; const real = window.fetch;
         window.fetch = (address, more) => { window.asked.push(String(address)); return real(address, more); }",
    );
    for text in ["n", "に", "にほ", "日本"] {
        let caret = text.chars().count();
        let parameters = json!({"text": text, "selectionStart": caret, "selectionEnd": caret});
        browser.chromium("Input.imeSetComposition", &parameters);
    }
    // Nor does a new message start the search.
    let connection = Connection::open(site.home.path().join("db/chats.db")).expect("it is there");
    let sql = "INSERT INTO messages VALUES ('new', 'c1', 'user', 'something new', 1800000000)";
    connection.execute(sql, []).expect("a new id");
    browser.run("window.pulses = window.asked.length");
    browser.wait("window.asked.slice(window.pulses).filter(it => it === '/pulse').length >= 3");
    let asked = browser.run("return window.asked.filter(it => it.startsWith('/results'))");
    assert_eq!(asked, json!([]), "half of a word was searched for");
    browser.chromium("Input.insertText", &json!({"text": "日本語"}));
    browser.wait("document.querySelectorAll('#list mark').length === 1");
    browser.wait("document.querySelector('#list mark').textContent === '日本語'");
    browser.assert_sound(&site);
}

#[test]
fn no_script_of_a_chat_runs_and_nothing_is_loaded_from_elsewhere() {
    let Some((browser, site)) = start() else { return };
    browser.open(&format!("{}/?q=sentinel", site.address));
    browser.wait("document.querySelectorAll('#list .hits li').length === 3");
    browser.run("document.activeElement.blur()");
    browser.keys("body", "jj");
    browser.wait("document.querySelector('#peek article')");
    browser.assert_sound(&site);
    browser.run("document.querySelector('#list h2 a').click()");
    browser.wait("document.querySelectorAll('article mark').length >= 3");
    browser.run("document.querySelectorAll('details').forEach(fold => fold.open = true)");
    browser.run("document.querySelectorAll('article a').forEach(a => { if (!a.href.startsWith('http')) a.click() })");
    browser.assert_sound(&site);
    for path in ["/stats", "/status", "/import", "/?q=%3Cscript%3Ewindow.hacked=9%3C/script%3E"] {
        browser.open(&format!("{}{path}", site.address));
        browser.wait("document.querySelector('h1')");
        browser.assert_sound(&site);
    }
}

#[test]
fn searching_and_reading_work_without_the_script() {
    let Some((browser, site)) = start() else { return };
    browser.chromium("Emulation.setScriptExecutionDisabled", &json!({"value": true}));
    browser.open(&site.address);
    browser.keys("#q", "needle\n");
    browser.wait("location.search.startsWith('?q=needle')");
    assert_eq!(browser.run("return document.querySelectorAll('#list .hits li').length"), 5);
    browser.click("#list .hits a");
    browser.wait("location.pathname === '/c/long/31'");
    browser.click(".hop [rel=next]");
    browser.wait("location.pathname === '/c/long/91' && document.querySelector('#m91 mark.now')");
    browser.click("[rel=up]");
    browser.wait("location.pathname === '/'");
    browser.assert_sound(&site);
}

#[test]
fn views_fit_a_phone_and_ask_for_little() {
    let Some((browser, site)) = start() else { return };
    let phone = json!({"width": 390, "height": 844, "deviceScaleFactor": 1, "mobile": true});
    browser.chromium("Emulation.setDeviceMetricsOverride", &phone);
    browser.chromium("Emulation.setTouchEmulationEnabled", &json!({"enabled": true}));
    // Neither filters nor buttons push the results and the messages down.
    for (path, first, most) in [
        ("/?q=bread&role=user&from=2023", ".hits li", 200),
        ("/", ".group", 200),
        ("/c/c1", ".msg", 220),
    ] {
        browser.open(&format!("{}{path}", site.address));
        browser.wait(&format!("document.querySelector('{first}')"));
        let top = format!("return document.querySelector('{first}').getBoundingClientRect().top");
        let top = browser.run(&top).as_f64().expect("a number");
        assert!(top <= f64::from(most), "{path}: {top}");
    }
    let script = "return [...document.querySelectorAll('input:not([type=hidden])')]
        .filter(it => !it.matches('[type=checkbox], [type=radio]') && parseFloat(getComputedStyle(it).fontSize) < 16)
        .map(it => it.id)";
    assert_eq!(browser.run(script), json!([]), "a phone zooms into these fields");
    browser.click(".about > summary");
    assert_eq!(browser.run("return document.querySelector('.facts').checkVisibility()"), true);
    browser.chromium("Emulation.setTouchEmulationEnabled", &json!({"enabled": false}));
    // The width of a window of 1,280 pixels at a zoom of 400 %.
    let zoomed = json!({"width": 320, "height": 256, "deviceScaleFactor": 1, "mobile": false});
    browser.chromium("Emulation.setDeviceMetricsOverride", &zoomed);
    for path in [
        "/",
        "/?q=bread&role=user&from=2023-01-01&to=2025-12-31",
        "/?q=nothing+at+all",
        "/c/c1?q=bread",
        "/stats",
        "/status",
        "/import",
    ] {
        browser.open(&format!("{}{path}", site.address));
        browser.wait("document.readyState === 'complete'");
        thread::sleep(Duration::from_millis(200));
        let page = "document.documentElement";
        let cut = browser.run(&format!("return {page}.scrollWidth - {page}.clientWidth"));
        assert_eq!(cut, 0, "{path}: pixels beyond the window");
        let requests = browser.run("return performance.getEntriesByType('resource').length + 1");
        assert!(requests.as_u64().is_some_and(|requests| requests <= 6), "{path}: {requests}");
        browser.assert_sound(&site);
    }
    // Nothing is over the text in so low a window, and nothing is cut on paper. On a phone on its side, only
    // the links to the next match are.
    browser.open(&format!("{}/c/c1/2?q=bread", site.address));
    let style = |selector: &str, name: &str| {
        browser
            .run(&format!("return getComputedStyle(document.querySelector('{selector}')).{name}"))
    };
    assert_eq!([style(".bar", "position"), style(".hop", "position")], ["static", "static"]);
    let sideways = json!({"width": 740, "height": 360, "deviceScaleFactor": 1, "mobile": true});
    browser.chromium("Emulation.setDeviceMetricsOverride", &sideways);
    assert_eq!([style(".bar", "position"), style(".hop", "position")], ["static", "fixed"]);
    browser.chromium("Emulation.setEmulatedMedia", &json!({"media": "print"}));
    assert_eq!([style(".bar", "display"), style(".hop", "display")], ["none", "none"]);
    assert_eq!(style(".code pre", "whiteSpace"), "pre-wrap");
    assert_eq!(style(".within", "display"), "none");
}

#[test]
fn the_filters_of_a_phone_are_a_sheet() {
    let Some((browser, site)) = start() else { return };
    browser.look(390, "light");
    browser.open(&format!("{}/?q=bread", site.address));
    browser.wait("document.querySelector('.go').textContent === 'Show 4 results'");
    let is_open = "document.querySelector('#facets').open";
    browser.click("#facets > summary");
    let script =
        "const box = document.querySelector('#facets').parentElement.getBoundingClientRect();
        return [box.left, box.right, Math.round(box.top), box.bottom].join(' ')";
    assert_eq!(browser.run(script), "0 390 96 900");
    // A filter keeps the sheet open, and the button has the new number.
    browser.click("[name=role][value=tool]");
    browser.wait("document.querySelector('.go').textContent === 'Show 1 result'");
    browser.wait("document.querySelector('#facets > summary').textContent === 'Filters (1)'");
    browser.keys("[name=role][value=tool]", "\u{e00c}");
    browser.wait(&format!("!{is_open} && document.activeElement.matches('#facets > summary')"));
    // New counts may replace both between two steps of a mouse.
    for part in ["#facets > summary", ".go button"] {
        browser.run(&format!("document.querySelector('{part}').click()"));
    }
    browser.wait(&format!("!{is_open} && document.activeElement.matches('#list .hits a')"));
    // The dates are in a fold of their own, which says what is chosen.
    assert_eq!(browser.run("return document.querySelector('#hist').checkVisibility()"), false);
    browser.click("#range");
    browser.click("[data-from='today']");
    browser.wait("document.querySelector('#range').textContent === 'Dates: from today'");
    // A button clears the text; the field keeps the focus.
    browser.click(".clear");
    browser
        .wait("location.search === '?role=tool&from=today' && document.activeElement.id === 'q'");
    assert_eq!(browser.run("return document.querySelector('.clear').checkVisibility()"), false);
    browser.assert_sound(&site);
}

#[test]
fn code_and_english_in_an_arabic_answer_begin_at_the_left() {
    let Some((browser, site)) = start() else { return };
    browser.open(&format!("{}/c/arabic", site.address));
    browser.wait("document.querySelector('.code pre')");
    let script = "const way = part => getComputedStyle(document.querySelector(part)).direction;
        const words = document.createRange();
        const isAtLeft = part => {
            const last = [...document.querySelectorAll(part)].at(-1);
            words.selectNodeContents(last);
            return words.getBoundingClientRect().left - last.getBoundingClientRect().left < 1;
        };
        return [way('.md'), way('.md p code'), way('.code pre'), isAtLeft('.md > p'), isAtLeft('.md li')]";
    // The bullets of the list are at the right, and so are its texts.
    assert_eq!(browser.run(script), json!(["rtl", "ltr", "ltr", true, false]));
    browser.assert_sound(&site);
}

#[test]
fn the_outline_of_what_has_the_focus_is_cut_nowhere() {
    let Some((browser, site)) = start() else { return };
    for path in VIEWS {
        browser.open(&format!("{}{path}", site.address));
        browser.wait("document.readyState === 'complete'");
        browser.wait("!document.querySelector('#list .hits') || document.querySelector('#peek a')");
        let script = "const clips = (box) => getComputedStyle(box).overflowY !== 'visible';
            return [...document.querySelectorAll('.page :is(a, button, input, summary):not([tabindex])')]
                .filter(link => link.checkVisibility() && !link.closest('svg'))
                .filter(link => {
                    let box = link.parentElement;
                    while (box !== document.body && !clips(box)) box = box.parentElement;
                    const [inner, outer] = [link, box].map(it => it.getBoundingClientRect());
                    return Math.min(inner.left - outer.left, outer.right - inner.right) < 3;
                }).map(link => link.outerHTML)";
        assert_eq!(browser.run(script), json!([]), "{path}");
    }
}

#[test]
fn no_view_has_a_barrier() {
    // `npm pack axe-core` gives the file; `.ci/run` puts it there.
    let axe = std::path::Path::new(env!("CARGO_MANIFEST_DIR")).join("target/tools/axe.min.js");
    let Ok(axe) = std::fs::read_to_string(axe) else {
        browser::leave_out("the accessibility of the page: target/tools/axe.min.js is not there");
        return;
    };
    let Some((browser, site)) = start() else { return };
    let mut barriers = Vec::new();
    for (width, theme) in [(390, "light"), (390, "dark"), (1024, "light"), (1024, "dark")] {
        browser.look(width, theme);
        for path in VIEWS {
            browser.open(&format!("{}{path}", site.address));
            browser.wait("document.readyState === 'complete'");
            browser.wait(
                "!document.querySelector('#list .hits') || document.querySelector('#hist svg')",
            );
            browser.run("document.querySelectorAll('details:not(#facets)').forEach(fold => fold.open = true)");
            // What stays in place would cover other links.
            browser.run("scrollTo(0, 0)");
            browser.run(&axe);
            let script = "const done = arguments[0];
                axe.run({rules: {'target-size': {enabled: true}}}).then(found => done(found.violations.map(it =>
                    it.id + ': ' + it.nodes.slice(0, 3).map(node => node.html).join(' '))))";
            for part in ["page", "open sheet"] {
                let found = browser.run_until_done(script);
                if found != json!([]) {
                    barriers.push(format!("{path}, {width} px, {theme}, {part}: {found}"));
                }
                if browser.run("return !document.querySelector('#facets')") == true {
                    break;
                }
                browser.run("document.querySelectorAll('#facets, #facets details').forEach(fold => fold.open = true)");
            }
        }
    }
    assert!(barriers.is_empty(), "{}", barriers.join("\n"));
    browser.assert_sound(&site);
}
