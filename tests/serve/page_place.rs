//! The place of the reader: the match is in view, and the way back leads to where the reader was.

use std::path::Path;

use rusqlite::Connection;
use serde_json::{Value, json};

use crate::browser::{self, Browser};

/// The number of conversations, each with six messages that match twice.
const TALKS: usize = 20;

/// Returns a text of many lines with two matches, of which one is far to the side in code.
fn long_text(kind: usize) -> String {
    let lines = |count: usize| "Some words that are no match at all.\n\n".repeat(count);
    let wide = "x = 1; ".repeat(60);
    match kind {
        0 => format!("{}needle in an answer{}needle", lines(40), lines(60)),
        1 => format!(
            "{}```rust\n{}{wide}needle{wide}\n```\nneedle",
            lines(30),
            "let a = 1;\n".repeat(80)
        ),
        2 => {
            format!("[tool: Bash]\n{}{wide}needle\n{}needle", "ls\n".repeat(90), "ls\n".repeat(90))
        }
        3 => {
            let row = "| some | cells |\n".repeat(120);
            format!(
                "{}\n\n| a | b |\n|---|---|\n{row}| {wide} | needle |\n{row}| needle | end |",
                lines(9)
            )
        }
        4 => format!("[thinking]\n{}needle\n{}needle", lines(50), lines(50)),
        _ => format!("{}{wide}needle\n{}needle", "output\n".repeat(200), "output\n".repeat(300)),
    }
}

fn long_chats(folder: &Path) {
    let connection = Connection::open(folder.join("chats.db")).expect("it can be made");
    let schema = "CREATE TABLE conversations (id TEXT PRIMARY KEY, title TEXT);
        CREATE TABLE messages (id TEXT PRIMARY KEY, conversation_id TEXT, role TEXT,
            content TEXT, create_time);
        BEGIN;";
    connection.execute_batch(schema).expect("the schema is sound");
    for talk in 0..TALKS {
        let sql = "INSERT INTO conversations VALUES ('t' || ?1, 'Talk ' || ?1)";
        connection.execute(sql, [talk as i64]).expect("a new id");
        for kind in 0..6 {
            let role = if kind == 5 { "tool" } else { "assistant" };
            let sql =
                "INSERT INTO messages VALUES (?1, 't' || ?2, ?3, ?4, 1700000000 - ?2 * 86400 + ?5)";
            let id = format!("{talk}-{kind}");
            connection
                .execute(sql, (id, talk as i64, role, long_text(kind), kind as i64))
                .expect("a new id");
        }
    }
    connection.execute_batch("COMMIT").expect("it is sound");
}

/// Waits until the current match is in the window, below what stays at its top and above what stays at its end.
#[track_caller]
fn wait_for_mark(browser: &Browser) {
    browser.wait(
        "(() => {
            const box = document.querySelector('mark.now#hit')?.getBoundingClientRect();
            const seen = box && document.elementFromPoint(box.left + 2, box.top + box.height / 2);
const isAtEnd = scrollY + innerHeight > document.documentElement.scrollHeight - 2;
            const isInMiddle = box && box.top > innerHeight / 5 && box.bottom < innerHeight * .8;
            return seen?.matches('mark.now') && (isInMiddle || isAtEnd);
        })()",
    );
}

#[test]
fn every_opened_match_is_in_the_window() {
    let Some((browser, site)) = browser::start(long_chats) else { return };
    for (width, talks) in [(390, 3), (1024, 3), (1440, 3)] {
        browser.look(width, "light");
        for talk in 0..talks {
            for message in 1..=6 {
                for hit in [1, 2] {
                    let place = format!("/c/t{talk}/{message}?q=needle&hit={hit}#hit");
                    browser.open(&format!("{}{place}", site.address));
                    wait_for_mark(&browser);
                }
            }
        }
    }
    // Nor does it need the script.
    browser.chromium("Emulation.setScriptExecutionDisabled", &json!({"value": true}));
    for message in 1..=6 {
        browser.open(&format!("{}/c/t0/{message}?q=needle#hit", site.address));
        wait_for_mark(&browser);
    }
    browser.assert_sound(&site);
}

#[test]
fn keys_lead_over_matches_and_conversations_and_back() {
    let Some((browser, site)) = browser::start(long_chats) else { return };
    browser.open(&format!("{}/?q=needle", site.address));
    browser.wait("document.querySelectorAll('#list .group').length > 3");
    browser.wait("performance.getEntriesByType('navigation')[0].loadEventEnd > 0");
    browser.run("document.querySelector('#list .group:nth-child(2) .hits a').click()");
    browser.wait("location.pathname === '/c/t1/1' && location.hash === '#hit'");
    browser.run("window.isSamePage = true");
    let steps = [(1, 2), (2, 1), (2, 2), (3, 1)];
    for (n, (message, hit)) in steps.into_iter().enumerate() {
        browser.keys("body", "n");
        let count = format!("Hit {} of 12, message {message} of 6", n + 2);
        browser.wait(&format!(
            "document.querySelector('.hop .count').textContent.startsWith('{count}')"
        ));
        browser.wait(&format!("location.pathname === '/c/t1/{message}'"));
        browser.wait(&format!("(new URLSearchParams(location.search).get('hit') ?? 1) == {hit}"));
        wait_for_mark(&browser);
    }
    browser.keys("body", "N");
    browser.wait("location.pathname === '/c/t1/2' && location.search.includes('hit=')");
    browser.wait("document.querySelector('.hop .count').textContent.startsWith('Hit 4 of 12')");
    assert_eq!(browser.run("return window.isSamePage"), true);
    // The chosen row of the list beside the text is in view.
    let rail =
        "const row = document.querySelector('.where [aria-current]').getBoundingClientRect();
        return row.top > 0 && row.bottom < innerHeight";
    assert_eq!(browser.run(rail), true);
    // The neighbours in the results.
    browser.keys("body", "]");
    browser.wait("location.pathname === '/c/t2/1'");
    wait_for_mark(&browser);
    browser.keys("body", "[");
    browser.wait("location.pathname === '/c/t1/1'");
    browser.keys("body", "[");
    browser.wait(
        "location.pathname === '/c/t0/1' && !document.querySelector('[aria-keyshortcuts=\"[\"]')",
    );
    // Whatever was read, one step back leads to the results.
    browser.run("history.back()");
    browser.wait("location.search === '?q=needle' && document.querySelector('#list')");
    browser.assert_sound(&site);
}

#[test]
fn the_way_back_leads_to_the_chosen_row() {
    let Some((browser, site)) = browser::start(long_chats) else { return };
    for (width, by_key) in [(1440, true), (390, false)] {
        browser.look(width, "light");
        browser.open(&format!("{}/?q=needle", site.address));
        browser.wait("document.querySelector('#hist svg')");
        let rows =
            "[...document.querySelectorAll('#list .hits li')].filter(it => it.checkVisibility())";
        let top = |n: usize| {
            let top = format!("return {rows}[{n}].getBoundingClientRect().top");
            browser.run(&top).as_f64().expect("a number")
        };
        for depth in 1..=10 {
            let n = depth * 5;
            browser.wait("performance.getEntriesByType('navigation')[0].loadEventEnd > 0");
            browser.run(&format!("{rows}[{n}].scrollIntoView({{block: 'center'}})"));
            browser
                .run_until_done("requestAnimationFrame(() => requestAnimationFrame(arguments[0]))");
            browser.run(&format!("window.scrollBy(0, {depth} * 9)"));
            browser
                .run_until_done("requestAnimationFrame(() => requestAnimationFrame(arguments[0]))");
            let before = top(n);
            browser.run(&format!("{rows}[{n}].querySelector('a').focus({{preventScroll: true}})"));
            browser.run(&format!("{rows}[{n}].querySelector('a').click()"));
            browser.wait("location.pathname.startsWith('/c/') && document.querySelector('.hop')");
            match by_key && depth % 2 == 0 {
                true => browser.keys("body", "u"),
                false => drop(browser.run("history.back()")),
            }
            browser.wait("location.pathname === '/' && document.querySelector('#hist svg')");
            browser.wait(&format!("{rows}[{n}].ariaCurrent === 'true'"));
            browser.wait(&format!("{rows}[{n}].contains(document.activeElement)"));
            let after = top(n);
            assert!((after - before).abs() <= 4.0, "row {n}, {width} px: {before}, {after}");
        }
        // The next row follows from there, and a new search begins at its first row.
        if by_key {
            // The key goes to the link that has the focus.
            browser.press("j");
            browser.wait(&format!("{rows}[51].ariaCurrent === 'true'"));
        }
        browser.keys("#q", "\u{e003}");
        browser.wait("location.search === '?q=needl' && document.querySelector('#list .hits li').ariaCurrent");
        assert_eq!(browser.run("return history.state"), Value::Null);
    }
    browser.assert_sound(&site);
}

#[test]
fn a_conversation_is_searched_while_the_text_is_typed() {
    let Some((browser, site)) = browser::start(long_chats) else { return };
    browser.open(&format!("{}/c/t0?q=needle", site.address));
    browser.wait("performance.getEntriesByType('navigation')[0].loadEventEnd > 0");
    browser.run("window.isSamePage = true");
    browser.keys("#within", "output");
    browser.wait("location.search === '?q=needle&find=output'");
    browser.wait("document.querySelector('.hop .count').textContent.startsWith('Hit 1 of 500')");
    wait_for_mark(&browser);
    browser.keys("#within", "\u{e007}");
    browser.wait("document.querySelector('.hop .count').textContent.startsWith('Hit 2 of 500')");
    browser.wait("document.activeElement.id === 'within' && within.value === 'output'");
    browser.keys("#within", "zzz");
    browser
        .wait("document.querySelector('.hop').innerText.includes('No match in this conversation')");
    assert_eq!(browser.run("return window.isSamePage"), true);
    // The code of the new messages can be copied, and the way back leads to the search of all.
    browser.wait("document.querySelectorAll('.code button').length === 1");
    assert_eq!(browser.run("return document.querySelector('[rel=up]').search"), "?q=needle");
    browser.assert_sound(&site);
}

#[test]
fn a_tapped_row_is_where_it_was_on_the_way_back() {
    let Some((browser, site)) = browser::start(long_chats) else { return };
    browser.look(390, "light");
    browser.chromium("Emulation.setTouchEmulationEnabled", &json!({"enabled": true}));
    for row in [0, 1, 2, 7, 20, 45] {
        browser.open(&format!("{}/", site.address));
        browser.keys("#q", "needle");
        browser.wait("document.querySelector('#hist svg') && document.title.startsWith('needle ')");
        let it = format!(
            "document.querySelectorAll('#list .group:nth-child({}) .hits li')[{}]",
            row / 3 + 1,
            row % 3
        );
        if row > 2 {
            browser.run(&format!("{it}.scrollIntoView({{block: 'center'}})"));
        }
        let place = || {
            browser
                .run(&format!("return {it}.getBoundingClientRect().top"))
                .as_f64()
                .expect("a number")
        };
        let before = place();
        for (kind, points) in
            [("touchStart", json!([{"x": 200, "y": before + 12.0}])), ("touchEnd", json!([]))]
        {
            browser.chromium(
                "Input.dispatchTouchEvent",
                &json!({"type": kind, "touchPoints": points}),
            );
        }
        browser.wait("location.pathname.startsWith('/c/') && document.querySelector('.hop')");
        browser.run("history.back()");
        browser.wait("location.pathname === '/' && document.querySelector('#hist svg')");
        browser.wait(&format!("{it}.ariaCurrent === 'true'"));
        let after = place();
        assert!((after - before).abs() <= 6.0, "row {row}: {before}, {after}");
    }
    browser.assert_sound(&site);
}

/// Makes conversations with texts that are wider than any window, deep, or full of matches.
fn wide_chats(folder: &Path) {
    let connection = Connection::open(folder.join("chats.db")).expect("it can be made");
    let schema = "CREATE TABLE conversations (id TEXT PRIMARY KEY, title TEXT);
        CREATE TABLE messages (id TEXT PRIMARY KEY, conversation_id TEXT, role TEXT,
            content TEXT, create_time);
        INSERT INTO conversations VALUES ('w', 'Wide');";
    connection.execute_batch(schema).expect("the schema is sound");
    let list: String = (0..60).map(|level| format!("{}- item\n", "  ".repeat(level))).collect();
    let long = "x=1;".repeat(60_000);
    let texts = [
        ("user", format!("needle https://a.example/{}", "z".repeat(5_000))),
        ("assistant", format!("needle {long}")),
        ("tool", format!("{long} needle {long}")),
        ("assistant", format!("```js\n{long} needle\n```")),
        ("assistant", format!("{}needle", "> ".repeat(5_000))),
        ("assistant", format!("{list}needle")),
        ("assistant", "needle ".repeat(9_000)),
        ("assistant", format!("[thinking]\nneedle {}", "[a](https://b.example/c) ".repeat(4_000))),
        ("assistant", format!("| a | needle |\n|-|-|\n| {} | b |", "c".repeat(3_000))),
        ("user", "end".to_owned()),
    ];
    for (number, (role, text)) in (0..).zip(texts) {
        let sql = "INSERT INTO messages VALUES (?1, 'w', ?2, ?3, 1700000000 + ?1)";
        connection.execute(sql, (number, role, text)).expect("a new id");
    }
}

#[test]
fn no_view_is_wider_than_the_window() {
    let Some((browser, site)) = browser::start(wide_chats) else { return };
    for width in [390, 834, 1280] {
        browser.look(width, "light");
        let messages = (1..=9).map(|number| format!("/c/w/{number}?q=needle"));
        let others = ["/?q=needle", "/c/w", "/c/w/3?q=needle&all=1", "/?q=x%3D1", "/stats"];
        for address in messages.chain(others.map(str::to_owned)) {
            browser.open(&format!("{}{address}", site.address));
            let wide =
                browser.run("return Math.max(document.documentElement.scrollWidth, innerWidth)");
            assert_eq!(wide, width, "{address}");
        }
    }
    browser.assert_sound(&site);
}

#[test]
fn a_step_lays_the_page_out_a_few_times() {
    let Some((browser, site)) = browser::start(long_chats) else { return };
    browser.chromium("Performance.enable", &json!({}));
    browser.open(&format!("{}/c/t0?q=needle", site.address));
    browser.wait("document.querySelector('.hop .count')");
    let mut layouts = 0.0;
    for hit in 1..=11 {
        let before = browser.layouts();
        browser.press("n");
        browser.wait(&format!(
            "document.querySelector('.hop .count').textContent.startsWith('Hit {hit} of 12')"
        ));
        layouts += browser.layouts() - before;
    }
    assert!(layouts <= 25.0, "{layouts}");
    browser.press("n");
    browser.wait("document.querySelector('.hop .count').textContent.startsWith('Hit 12 of 12')");
    browser.press("n");
    browser.wait("document.querySelector('#flash')?.innerText.startsWith('This is the last hit')");
    browser.assert_sound(&site);
}
