//! Changes while a user looks at the page, in a real browser.

use std::time::{Duration, Instant};

use rusqlite::Connection;
use serde_json::{Value, json};

use crate::{browser, page::known_chats};

/// An export with a prompt that was edited, and a title of its own.
const EXPORT: &str = r#"[{"uuid": "aaaa1111", "name": "Sourdough", "current_leaf_message_uuid": "m3",
    "chat_messages": [
        {"uuid": "m1", "sender": "human", "created_at": "2025-01-03T10:00:00Z", "text": "How long does rye proof?"},
        {"uuid": "m2", "sender": "human", "created_at": "2025-01-03T10:01:00Z", "text": "How long does spelt proof?"},
        {"uuid": "m3", "sender": "assistant", "created_at": "2025-01-03T10:02:00Z", "text": "Four *hours*.",
         "parent_message_uuid": "m2"}]}]"#;

/// Drops a file on the page, as the browser does.
fn drop_file(name: &str, content: &str) -> String {
    let (name, content) = (Value::from(name), Value::from(content));
    format!(
        "const files = new DataTransfer();
         files.items.add(new File([{content}], {name}));
         for (const kind of ['dragover', 'drop'])
             window.dispatchEvent(new DragEvent(kind, {{dataTransfer: files, bubbles: true, cancelable: true}}))"
    )
}

#[test]
fn an_export_is_dropped_read_copied_and_forgotten() {
    let Some((browser, mut site)) = browser::start(|_| {}) else { return };
    browser.wait("document.querySelector('#drop')");
    browser.run("document.querySelector('#branches').checked = true");
    browser.run(&drop_file("no.zip", "no zip at all"));
    browser.wait("document.querySelector('#progress .warn')");
    site.end();
    browser.run(&drop_file("conversations.json", EXPORT));
    browser.wait("document.querySelector('#progress').innerText.includes('import the file again')");
    site.start_again();
    browser.wait("!document.querySelector('#gone')");
    browser.forget_console();
    browser.run(&drop_file("conversations.json", EXPORT));
    browser.wait("document.querySelector('#progress').innerText.includes(', 3 messages')");
    browser.click("#progress a");
    browser.wait("document.querySelector('#list .group')");
    browser.keys("#q", "spelt");
    browser.wait("document.querySelectorAll('#list .hits li').length === 1");
    browser.run("document.querySelector('#list .hits a').click()");
    browser.wait("location.pathname.startsWith('/c/aaaa1111/')");
    assert_eq!(
        browser.run("return document.querySelector('.msg .branch span').innerText"),
        "2 of 2"
    );
    // Markdown and the address are copied.
    let wanted = json!({"permissions": ["clipboardReadWrite", "clipboardSanitizedWrite"]});
    browser.chromium("Browser.grantPermissions", &wanted);
    let copied =
        "const done = arguments[0]; navigator.clipboard.readText().then(done, it => done('' + it))";
    browser.click_in_fold("[data-copy=text]");
    browser.wait("document.querySelector('#flash')?.innerText === 'Copied'");
    let text = browser.run_until_done(copied);
    let text = text.as_str().unwrap_or_default();
    assert!(text.starts_with("# Sourdough\n") && text.contains("Four *hours*."), "{text}");
    assert!(text.contains("another version\n\nHow long does rye proof?"), "{text}");
    browser.wait("!document.querySelector('#flash')");
    browser.click_in_fold("[data-copy=address]");
    browser.wait("document.querySelector('#flash')?.innerText === 'Copied'");
    let address = browser.run_until_done(copied);
    assert_eq!(address, format!("{}/c/aaaa1111", site.address));
    // The conversation is forgotten only after a yes.
    browser.run("document.querySelector('a[href$=\"/forget\"]').click()");
    browser.wait("document.querySelector('h1').innerText.startsWith('Forget')");
    browser.run("history.back()");
    browser.wait("document.querySelector('#m3, #m1')");
    browser.open(&format!("{}/c/aaaa1111/forget", site.address));
    browser.click(".danger");
    browser.wait("document.querySelector('h1').innerText.includes('is forgotten')");
    browser.wait("document.querySelector('main').innerText.includes('3 messages removed')");
    browser.open(&format!("{}/?q=spelt", site.address));
    browser.wait("document.querySelector('.nothing, .drop')");
    browser.assert_sound(&site);
    browser.open(&format!("{}/c/aaaa1111", site.address));
    browser.wait("document.querySelector('h1').innerText === 'Nothing is here'");
    // Forgotten conversations stay forgotten.
    browser.open(&format!("{}/import", site.address));
    browser.run(&drop_file("conversations.json", EXPORT));
    browser.wait("document.querySelector('#progress').innerText.includes('that you forgot')");
}

#[test]
fn only_the_page_itself_can_forget() {
    let site = browser::Site::start(known_chats);
    let token = site.door.split("#token=").nth(1).expect("a token");
    let agent: ureq::Agent =
        ureq::Agent::config_builder().http_status_as_error(false).build().into();
    let address = format!("{}/c/c1/forget", site.address);
    let post = |header: &str, value: &str, site: &str| {
        let post = agent.post(&address).header(header, value).header("Sec-Fetch-Site", site);
        post.send_empty().expect("an answer").status().as_u16()
    };
    assert_eq!(post("X-Nothing", "", "same-origin"), 401);
    assert_eq!(post("Authorization", &format!("Bearer {token}"), "cross-site"), 403);
    // Another program made this database: it is only read.
    let answer =
        agent.post(&address).header("Authorization", format!("Bearer {token}")).send_empty();
    let mut answer = answer.expect("an answer");
    assert_eq!(answer.status().as_u16(), 409);
    let page = answer.body_mut().read_to_string().expect("a page");
    assert!(page.contains("This was not done") && page.contains("chats.db"), "{page}");
    let connection = Connection::open(site.home.path().join("db/chats.db")).expect("it is there");
    let left: i64 = connection
        .query_row("SELECT count(*) FROM messages WHERE conversation_id = 'c1'", [], |row| {
            row.get(0)
        })
        .expect("a number");
    assert_eq!(left, 5);
}

#[test]
fn branches_are_switched_and_found() {
    let Some((browser, site)) = browser::start(known_chats) else { return };
    let shown = "return [...document.querySelectorAll('.thread .msg')].map(it => it.id).join(' ')";
    browser.open(&format!("{}/c/branching", site.address));
    assert_eq!(browser.run(shown), "m1 m2 m3");
    assert_eq!(browser.run("return document.querySelectorAll('.thread .branch').length"), 2);
    browser.click("#m2 [aria-label='Next version']");
    browser.wait("location.pathname === '/c/branching/4' && document.querySelector('#m4')");
    assert_eq!(browser.run(shown), "m1 m4 m5");
    browser.click("#m4 [aria-label='Previous version']");
    browser.wait("location.pathname === '/c/branching/2'");
    assert_eq!(browser.run(shown), "m1 m2 m3");
    browser.click("#m1 [aria-label='Next version']");
    browser.wait("location.pathname === '/c/branching/6'");
    assert_eq!(browser.run(shown), "m6");
    // A match on another branch opens there.
    browser.open(&format!("{}/?q=crimson", site.address));
    browser.wait("document.querySelectorAll('#list .hits li').length === 2");
    browser.run("document.querySelectorAll('#list .hits a')[1].click()");
    browser
        .wait("location.pathname === '/c/branching/5' && document.querySelector('#m5 mark.now')");
    browser.keys("body", "N");
    browser
        .wait("location.pathname === '/c/branching/4' && document.querySelector('#m4 mark.now')");
    browser.assert_sound(&site);
}

#[test]
fn what_is_new_is_shown_in_every_tab_without_a_reload() {
    let Some((browser, site)) = browser::start(known_chats) else { return };
    let tabs = browser.windows(2);
    browser.go_to_window(&tabs[0]);
    browser.open(&format!("{}/c/c1", site.address));
    browser.run("window.isSamePage = true");
    browser.go_to_window(&tabs[1]);
    browser.open(&format!("{}/?q=warm+evening", site.address));
    browser.wait("document.querySelector('.nothing')");
    browser.run("window.isSamePage = true");
    let connection = Connection::open(site.home.path().join("db/chats.db")).expect("it is there");
    let sql =
        "INSERT INTO messages VALUES ('new', 'c1', 'assistant', 'A warm evening', 1800000000)";
    connection.execute(sql, []).expect("a new id");
    browser.wait("document.querySelectorAll('#list .hits li').length === 1 && window.isSamePage");
    browser.go_to_window(&tabs[0]);
    browser.wait(
        "document.querySelector('#m6')?.innerText.includes('A warm evening') && window.isSamePage",
    );
    browser.wait("document.querySelector('.facts').innerText.includes('6')");
    // The last message grows while it is written.
    connection
        .execute("UPDATE messages SET content = content || ' in June' WHERE id = 'new'", [])
        .expect("it is there");
    browser
        .wait("document.querySelector('#m6')?.innerText.includes('in June') && window.isSamePage");
    // A star too.
    browser.click_in_fold(".acts form button");
    browser.go_to_window(&tabs[1]);
    browser.wait("document.querySelector('#facets [name=starred]') && window.isSamePage");
    browser.assert_sound(&site);
}

#[test]
fn what_the_reader_opened_selected_or_chose_stays() {
    let Some((browser, site)) = browser::start(known_chats) else { return };
    let connection = Connection::open(site.home.path().join("db/chats.db")).expect("it is there");
    let execute = |sql: &str| connection.execute(sql, []).expect("it is sound");
    execute("INSERT INTO messages VALUES ('new', 'c1', 'assistant', 'A warm evening', 1800000000)");
    browser.open(&format!("{}/c/c1", site.address));
    // A fold that was opened, code that was scrolled to, and a text that was selected.
    browser.click(".run > summary");
    browser.run(
        "document.querySelector('.code pre').focus();
         window.seen = document.activeElement;
         getSelection().selectAllChildren(document.querySelector('#m6 p'))",
    );
    execute("UPDATE messages SET content = content || ' in June' WHERE id = 'new'");
    execute("INSERT INTO messages VALUES ('next', 'c1', 'user', 'And a *cold* day', 1800000001)");
    browser.wait("document.querySelector('#m7 em') && document.querySelector('.run').open");
    assert_eq!(browser.run("return getSelection().toString()"), "A warm evening");
    assert_eq!(browser.run("return document.activeElement === window.seen"), true);
    browser
        .run("getSelection().removeAllRanges(); document.querySelector('.run > summary').click()");
    execute("UPDATE messages SET content = content || ' and July' WHERE id = 'new'");
    browser.wait("document.querySelector('#m6').innerText.includes('in June and July')");
    assert_eq!(browser.run("return document.querySelector('.run').open"), false);
    // The same in results: the chosen row, its focus, and the filter that has the focus.
    browser.open(&format!("{}/?q=e", site.address));
    browser.wait("document.querySelector('#hist svg') && document.querySelector('.more summary')");
    browser.click(".more summary");
    browser.run("document.querySelector('.more li .no').focus()");
    browser
        .chromium("Input.dispatchKeyEvent", &json!({"type": "keyDown", "key": "j", "text": "j"}));
    browser.wait("document.querySelector('#list [aria-current] .no') === document.activeElement");
    browser.run("window.row = document.querySelector('#list [aria-current]')");
    execute("INSERT INTO messages VALUES ('last', 'branching', 'user', 'One more', 1800000002)");
    browser.wait("document.querySelector('#list').textContent.includes('One more')");
    browser.wait("window.row === document.querySelector('#list [aria-current]')");
    browser.wait("window.row.contains(document.activeElement) && window.row.checkVisibility()");
    browser.run("document.querySelector('[name=role][value=user]').focus()");
    browser.run("document.querySelector('#hist svg').dataset.old = ''");
    browser.run("document.activeElement.click()");
    browser.wait("document.querySelector('#hist svg:not([data-old])')");
    browser.wait("document.activeElement.value === 'user' && document.activeElement.checked");
    browser.assert_sound(&site);
}

#[test]
fn a_text_that_is_too_long_is_called_so() {
    let Some((browser, site)) = browser::start(known_chats) else { return };
    browser.open(&site.address);
    let paste = |letters: usize| {
        browser.run(&format!(
            "document.querySelector('#q').value = 'a'.repeat({letters});
             document.querySelector('#q').dispatchEvent(new InputEvent('input', {{bubbles: true}}))"
        ));
    };
    paste(70_000);
    let words = "document.querySelector('#count .warn')?.innerText";
    browser.wait(&format!("{words}.includes('70,000 letters, at most about 30,000.')"));
    browser.forget_console();
    paste(30_000);
    browser.wait("document.querySelector('#count .nothing')");
    browser.assert_sound(&site);
}

#[test]
fn the_text_of_a_result_is_selected_copied_and_opened() {
    let Some((browser, site)) = browser::start(known_chats) else { return };
    let wanted = json!({"permissions": ["clipboardReadWrite", "clipboardSanitizedWrite"]});
    browser.chromium("Browser.grantPermissions", &wanted);
    browser.open(&format!("{}/?q=warm", site.address));
    browser.wait("document.querySelector('#hist svg')");
    let place = |x: u32| {
        let script = format!(
            "const words = document.querySelector('.hits .text').getBoundingClientRect();
             return [words.left + {x}, words.top + 8]"
        );
        browser.run(&script)
    };
    let mouse = |kind: &str, at: &Value, button: &str, modifiers: u32| {
        let parameters = json!({"type": kind, "x": at[0], "y": at[1], "button": button,
            "buttons": if button == "left" { 1 } else { 4 }, "clickCount": 1, "modifiers": modifiers});
        browser.chromium("Input.dispatchMouseEvent", &parameters);
    };
    mouse("mousePressed", &place(2), "left", 0);
    mouse("mouseMoved", &place(90), "left", 0);
    mouse("mouseReleased", &place(90), "left", 0);
    assert_ne!(browser.run("return getSelection().toString()"), "");
    assert_eq!(browser.run("return location.pathname"), "/");
    browser.keys("body", "y");
    browser.wait("document.querySelector('#flash')?.innerText === 'Copied'");
    let copied =
        "const done = arguments[0]; navigator.clipboard.readText().then(done, it => done('' + it))";
    let text = "Four hours at 24 degrees.\n\n```rust\nlet bread = \"warm\";\n```";
    assert_eq!(browser.run_until_done(copied), text);
    // The whole row acts as its link, in a new window too.
    let click = |button: &str, modifiers: u32| {
        mouse("mousePressed", &place(90), button, modifiers);
        mouse("mouseReleased", &place(90), button, modifiers);
    };
    let before = browser.windows(1).len();
    for (n, (button, modifiers)) in [("middle", 0), ("left", 2)].into_iter().enumerate() {
        click(button, modifiers);
        let end = Instant::now() + Duration::from_secs(9);
        while browser.windows(1).len() < before + n + 1 {
            assert!(Instant::now() < end, "{button}, {modifiers}: no window was opened");
        }
    }
    assert_eq!(browser.run("return location.pathname"), "/");
    click("left", 0);
    browser.wait("location.pathname === '/c/c1/2' && document.querySelector('#m2 mark.now')");
    browser.keys("body", "y");
    browser.wait("document.querySelector('#flash')?.innerText === 'Copied'");
    assert_eq!(browser.run_until_done(copied), text);
    browser.assert_sound(&site);
}

#[test]
fn a_server_that_comes_back_is_used_again() {
    let Some((browser, mut site)) = browser::start(known_chats) else { return };
    browser.open(&format!("{}/?q=bread", site.address));
    browser.wait("document.querySelectorAll('#list .hits li').length === 4");
    site.end();
    browser.wait("document.querySelector('#gone')?.innerText.includes('does not answer')");
    browser.keys("#q", "x");
    browser.wait("location.search === '?q=breadx'");
    // One note says so, and the results of the text before are pale.
    let pale = "getComputedStyle(document.querySelector('#list')).opacity === '0.5'";
    browser.wait(&format!("{pale} && document.querySelectorAll('#list .hits li').length === 4"));
    assert_eq!(browser.run("return document.querySelectorAll('.warn').length"), 0);
    site.start_again();
    browser.wait("!document.querySelector('#gone') && document.querySelector('.nothing')");
    browser.keys("#q", "\u{e003}");
    browser.wait("document.querySelectorAll('#list .hits li').length === 4");
    browser.forget_console();
    browser.run("document.querySelector('#list .hits a').click()");
    browser.wait("location.pathname === '/c/c1/1'");
    browser.assert_sound(&site);
}

#[test]
fn the_timeline_sets_the_dates_by_pointer_and_by_keys() {
    let Some((browser, site)) = browser::start(known_chats) else { return };
    browser.open(&format!("{}/?q=needle", site.address));
    browser.wait("document.querySelectorAll('#hist [data-month]').length > 5");
    let place = |month: usize| {
        let script = format!(
            "const box = document.querySelectorAll('#hist [data-month]')[{month}].getBoundingClientRect();
             return [box.left + box.width / 2, document.querySelector('#hist svg').getBoundingClientRect().top + 20]"
        );
        browser.run(&script)
    };
    let mouse = |kind: &str, at: &Value| {
        let parameters = json!({"type": kind, "x": at[0], "y": at[1], "button": "left", "buttons": 1, "clickCount": 1});
        browser.chromium("Input.dispatchMouseEvent", &parameters);
    };
    let (from, to) = (place(3), place(1));
    mouse("mousePressed", &from);
    mouse("mouseMoved", &to);
    mouse("mouseReleased", &to);
    let months =
        "return [...document.querySelectorAll('#hist [data-month]')].map(it => it.dataset.month)";
    let months = browser.run(months);
    let month = |n: usize| months[n].as_str().expect("a month").to_owned();
    browser.wait(&format!("location.search === '?q=needle&from={}&to={}'", month(1), month(3)));
    browser.wait("document.querySelector('#hist .brush') && document.querySelector('#hist input')");
    let dates = browser
        .run("return [document.querySelector('#from').value, document.querySelector('#to').value]");
    assert_eq!(dates, json!([month(1), month(3)]));
    // The ends move by keys, and keep the focus. New counts draw the timeline again.
    browser.run("document.querySelector('#hist svg').dataset.old = ''");
    browser.keys("#hist input[aria-label='Last month']", "\u{e014}");
    browser.wait(&format!("location.search === '?q=needle&from={}&to={}'", month(1), month(4)));
    browser.wait("document.querySelector('#hist svg:not([data-old])')");
    browser.wait("document.activeElement.ariaLabel === 'Last month'");
    // The key goes to the element that has the focus, because another drawing may replace a chosen element.
    for kind in ["rawKeyDown", "keyUp"] {
        let key = json!({"type": kind, "key": "ArrowLeft", "code": "ArrowLeft", "windowsVirtualKeyCode": 37});
        browser.chromium("Input.dispatchKeyEvent", &key);
    }
    browser.wait(&format!("location.search === '?q=needle&from={}&to={}'", month(1), month(3)));
    browser.assert_sound(&site);
}

#[test]
fn a_permalink_opens_alone_and_the_back_button_returns() {
    let Some((browser, site)) = browser::start(known_chats) else { return };
    browser.open(&format!("{}/c/long/91?q=needle#m91", site.address));
    browser.wait("document.querySelector('#m91 mark.now')");
    browser.wait("document.querySelector('#m91').getBoundingClientRect().top < innerHeight");
    // Browsers take the id of this conversation for a step within a path.
    browser.open(&format!("{}/?q=two+steps", site.address));
    browser.run("document.querySelector('#list .hits a').click()");
    browser.wait("document.querySelector('h1').innerText === 'Steps' && document.querySelector('#m1 mark.now')");
    browser.open(&format!("{}/?q=needle&role=user", site.address));
    browser.wait("document.querySelectorAll('#list .hits li').length === 5");
    // A click of a script before the end of the load event replaces the page in the history.
    browser.wait("performance.getEntriesByType('navigation')[0].loadEventEnd > 0");
    browser.run("document.querySelectorAll('#list .hits a')[2].click()");
    browser.wait("document.querySelector('.msg mark.now') && location.hash");
    browser.run("history.back()");
    browser.wait("location.search === '?q=needle&role=user'");
    browser.wait("document.querySelector('[name=role][value=user]').checked && document.querySelector('#list .hits')");
    // Each filter is a step back, and a step forward.
    browser.click_in_fold("[data-from='52w']");
    browser.wait("location.search.endsWith('from=52w') && document.querySelector('.nothing')");
    browser.run("history.back()");
    browser.wait("!document.querySelector('#from').value && document.querySelectorAll('#list .hits li').length === 5");
    browser.run("history.forward()");
    browser.wait(
        "document.querySelector('#from').value === '52w' && document.querySelector('.nothing')",
    );
    browser.assert_sound(&site);
}
