//! The page in a real browser, Chromium through WebDriver. Without both these tests say that they
//! were left out.

use std::{
    io::{BufRead, BufReader},
    process::{Child, Command, Stdio},
    thread,
    time::{Duration, Instant},
};

use rusqlite::Connection;
use serde_json::{Value, json};
use tempfile::TempDir;

/// Sets a sentinel wherever it runs.
const HOSTILE: &str = "<script>window.hacked=1</script><img src=x onerror=\"window.hacked=2\">\
    <svg onload=\"window.hacked=3\"></svg> sentinel";

/// Every view.
const VIEWS: [&str; 8] = [
    "/",
    "/?q=bread",
    "/?q=nothing+at+all",
    "/c/c1/2?q=bread",
    "/c/c1",
    "/stats",
    "/status",
    "/import",
];

/// The name by which WebDriver's answers give elements.
const ELEMENT: &str = "element-6066-11e4-a52e-4f735466cecf";

/// How long something may take to show.
const PATIENCE: Duration = Duration::from_secs(20);

/// Chats that the tests know, and a server of the page.
struct Site {
    _home: TempDir,
    server: Child,
    address: String,
    /// The address that lets a browser in.
    door: String,
}

impl Site {
    fn start() -> Site {
        let home = tempfile::tempdir().expect("folders can be made");
        std::fs::create_dir(home.path().join("db")).expect("folders can be made");
        fill(&Connection::open(home.path().join("db/chats.db")).expect("it can be made"));
        let mut server = Command::new(env!("CARGO_BIN_EXE_verbatim"))
            .arg("--home")
            .arg(home.path())
            .args(["web", "--no-open", "127.0.0.1:0"])
            .env("HOME", home.path())
            .stdout(Stdio::piped())
            .stderr(Stdio::null())
            .spawn()
            .expect("the program starts");
        let mut door = String::new();
        let output = server.stdout.take().expect("it is piped");
        BufReader::new(output).read_line(&mut door).expect("it prints its address");
        let door = door.trim().to_owned();
        let address = door.split("/#").next().unwrap_or_default().to_owned();
        Site { _home: home, server, address, door }
    }
}

impl Drop for Site {
    fn drop(&mut self) {
        let _ = (self.server.kill(), self.server.wait());
    }
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
    let long: Vec<(&str, String)> = (0..300)
        .map(|n| ("user", if n % 60 == 30 { format!("needle {n}") } else { format!("hay {n}") }))
        .collect();
    let long: Vec<(&str, &str)> = long.iter().map(|(role, text)| (*role, text.as_str())).collect();
    add("long", "A long conversation", &long);
    let markdown = format!(
        "[sentinel](javascript:window.hacked=4) ![a](http://evil.example/a.png)\n\n```html\n{HOSTILE}\n```\n\n{HOSTILE}"
    );
    add(HOSTILE, HOSTILE, &[("user", HOSTILE), (HOSTILE, &markdown), ("tool", HOSTILE)]);
}

/// A browser with a profile of its own.
struct Browser {
    driver: Child,
    session: String,
    _profile: TempDir,
}

impl Browser {
    /// Starts a browser; `None` if there is none on this computer.
    fn start() -> Option<Browser> {
        let mut driver = Command::new("chromedriver")
            .args(["--port=0"])
            .stdout(Stdio::piped())
            .stderr(Stdio::null())
            .spawn()
            .ok()?;
        let output = driver.stdout.take().expect("it is piped");
        let mut lines = BufReader::new(output).lines().map_while(Result::ok);
        let port = lines.find_map(|line| {
            let (_, port) = line.split_once("started successfully on port ")?;
            port.trim_end_matches('.').parse::<u16>().ok()
        });
        thread::spawn(move || lines.for_each(drop));
        let profile = tempfile::tempdir().expect("folders can be made");
        let arguments = [
            "--headless",
            "--no-sandbox",
            "--disable-gpu",
            "--no-first-run",
            "--disable-dev-shm-usage",
            "--disable-background-networking",
            "--disable-component-update",
            "--disable-sync",
            "--window-size=1600,1000",
            &format!("--user-data-dir={}", profile.path().display()),
        ];
        let wanted = json!({"capabilities": {"alwaysMatch": {
            "goog:chromeOptions": {"args": arguments},
            "goog:loggingPrefs": {"browser": "ALL", "performance": "ALL"},
        }}});
        let base = format!("http://127.0.0.1:{}", port?);
        let started = call("POST", &format!("{base}/session"), &wanted);
        let Some(id) = started["sessionId"].as_str() else {
            let _ = (driver.kill(), driver.wait());
            return None;
        };
        Some(Browser { driver, session: format!("{base}/session/{id}"), _profile: profile })
    }

    fn post(&self, path: &str, body: &Value) -> Value {
        call("POST", &format!("{}/{path}", self.session), body)
    }

    fn open(&self, address: &str) {
        self.post("url", &json!({ "url": address }));
    }

    /// Returns what a script returns.
    fn run(&self, script: &str) -> Value {
        self.post("execute/sync", &json!({"script": script, "args": []}))
    }

    /// Waits until a script returns true.
    #[track_caller]
    fn wait(&self, condition: &str) {
        let end = Instant::now() + PATIENCE;
        while self.run(&format!("return !!({condition})")) != true {
            let page = || self.run("return document.body.innerText.slice(0, 2000) + location.href");
            assert!(Instant::now() < end, "{condition} never came: {}", page());
            thread::sleep(Duration::from_millis(20));
        }
    }

    fn keys(&self, selector: &str, keys: &str) {
        let found = self.post("element", &json!({"using": "css selector", "value": selector}));
        let id =
            found[ELEMENT].as_str().unwrap_or_else(|| panic!("{selector}: {found}")).to_owned();
        self.post(&format!("element/{id}/value"), &json!({ "text": keys }));
    }

    fn click(&self, selector: &str) {
        let found = self.post("element", &json!({"using": "css selector", "value": selector}));
        let id =
            found[ELEMENT].as_str().unwrap_or_else(|| panic!("{selector}: {found}")).to_owned();
        self.post(&format!("element/{id}/click"), &json!({}));
    }

    /// Calls a method of Chromium's own protocol.
    fn chromium(&self, method: &str, parameters: &Value) {
        self.post("goog/cdp/execute", &json!({"cmd": method, "params": parameters}));
    }

    /// Fails if anything was wrong: an error in the console, a script of a message that ran, a request
    /// to another host.
    #[track_caller]
    fn assert_sound(&self, site: &Site) {
        assert_eq!(self.run("return window.hacked === undefined"), true, "a message's script ran");
        let errors = self.post("se/log", &json!({"type": "browser"}));
        let errors: Vec<&Value> = errors.as_array().into_iter().flatten().collect();
        assert!(errors.is_empty(), "{errors:?}");
        let events = self.post("se/log", &json!({"type": "performance"}));
        for event in events.as_array().into_iter().flatten() {
            let event: Value =
                serde_json::from_str(event["message"].as_str().unwrap_or("{}")).expect("JSON");
            if event["message"]["method"] == "Network.requestWillBeSent" {
                let url = event["message"]["params"]["request"]["url"].as_str().unwrap_or("");
                // Chromium asks itself for the page of a new tab.
                let inner = ["data:", "chrome:", "about:"];
                let is_ours = url.starts_with(&site.address)
                    || inner.iter().any(|start| url.starts_with(start));
                assert!(is_ours, "a request to {url}");
            }
        }
    }
}

impl Drop for Browser {
    fn drop(&mut self) {
        call("DELETE", &self.session, &Value::Null);
        let _ = (self.driver.kill(), self.driver.wait());
    }
}

/// Calls WebDriver; returns the value of its answer, an error's too.
fn call(method: &str, address: &str, body: &Value) -> Value {
    let agent: ureq::Agent =
        ureq::Agent::config_builder().http_status_as_error(false).build().into();
    let answer = match method {
        "DELETE" => agent.delete(address).call(),
        _ => agent.post(address).content_type("application/json").send(body.to_string()),
    };
    let text = answer.ok().and_then(|mut answer| answer.body_mut().read_to_string().ok());
    let answer: Value = serde_json::from_str(&text.unwrap_or_default()).unwrap_or_default();
    answer["value"].clone()
}

/// Returns a browser and a server; `None` without a browser.
fn start() -> Option<(Browser, Site)> {
    let browser = Browser::start();
    if browser.is_none() {
        eprintln!("left out: chromium or chromedriver is not installed");
    }
    let (browser, site) = (browser?, Site::start());
    browser.open(&site.door);
    browser.wait("document.querySelector('#q')");
    // The page that asks for the token was refused once, which the console says.
    browser.post("se/log", &json!({"type": "browser"}));
    Some((browser, site))
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
    browser.wait("document.querySelector('#peek article mark.now')");
    browser.run("document.querySelector('#list [aria-current] a').click()");
    browser.wait("location.pathname === '/c/c1/2' && document.querySelector('#m2 mark.now')");
    browser.wait("document.querySelector('#m2 .s-rust, #m2 .s-source')");
    browser.keys("body", "n");
    browser.wait("location.pathname === '/c/c1/3' && document.querySelector('#m3 details').open");
    browser.keys("body", "n");
    browser.wait("location.pathname === '/c/c1/4'");
    browser.keys("body", "N");
    browser.wait("location.pathname === '/c/c1/3'");
    browser.keys("body", "u");
    browser
        .wait("location.search === '?q=bread' && document.querySelector('#q').value === 'bread'");
    browser.run("history.back()");
    browser.wait("location.pathname === '/c/c1/3' && document.querySelector('#m3 mark.now')");
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
    thread::sleep(Duration::from_millis(300));
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
    for path in
        ["/", "/?q=bread", "/?q=nothing+at+all", "/c/c1?q=bread", "/stats", "/status", "/import"]
    {
        browser.open(&format!("{}{path}", site.address));
        browser.wait("document.readyState === 'complete'");
        thread::sleep(Duration::from_millis(200));
        let width = browser.run("return document.documentElement.scrollWidth");
        assert!(width.as_u64().is_some_and(|width| width <= 390), "{path} is {width} px wide");
        let requests = browser.run("return performance.getEntriesByType('resource').length + 1");
        assert!(requests.as_u64().is_some_and(|requests| requests <= 6), "{path}: {requests}");
        browser.assert_sound(&site);
    }
}

#[test]
fn no_view_has_a_barrier() {
    // `npm pack axe-core` has it; `.ci/run` puts it there.
    let axe = std::path::Path::new(env!("CARGO_MANIFEST_DIR")).join("target/tools/axe.min.js");
    let Ok(axe) = std::fs::read_to_string(axe) else {
        eprintln!("left out: target/tools/axe.min.js is not there");
        return;
    };
    let Some((browser, site)) = start() else { return };
    for theme in ["light", "dark"] {
        let features = json!([{"name": "prefers-color-scheme", "value": theme}]);
        browser.chromium("Emulation.setEmulatedMedia", &json!({ "features": features }));
        for path in VIEWS {
            browser.open(&format!("{}{path}", site.address));
            browser.wait("document.readyState === 'complete'");
            thread::sleep(Duration::from_millis(300));
            browser.run("document.querySelectorAll('details').forEach(fold => fold.open = true)");
            browser.run(&axe);
            let script = "const done = arguments[0];
                axe.run().then(found => done(found.violations.map(it =>
                    it.id + ': ' + it.nodes.slice(0, 3).map(node => node.html).join(' '))))";
            let found = browser.post("execute/async", &json!({"script": script, "args": []}));
            assert_eq!(found, json!([]), "{path}, {theme}");
        }
    }
}
