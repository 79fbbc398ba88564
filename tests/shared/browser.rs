//! Drives a real browser, Chromium through WebDriver, and a server of the page.

use std::io::{BufRead, BufReader, Write};
use std::path::Path;
use std::process::{Child, Command, Stdio};
use std::sync::Once;
use std::thread;
use std::time::{Duration, Instant};

use serde_json::{Value, json};
use tempfile::TempDir;

/// The key of element ids in WebDriver's answers.
const ELEMENT: &str = "element-6066-11e4-a52e-4f735466cecf";

/// How long something may take to show.
const PATIENCE: Duration = Duration::from_secs(20);

/// A home with chats, and a server of the page.
pub(crate) struct Site {
    pub(crate) home: TempDir,
    server: Child,
    pub(crate) address: String,
    /// The address that lets a browser in.
    pub(crate) door: String,
}

impl Site {
    /// Starts a server of a new home, in which `fill` makes the databases.
    pub(crate) fn start(fill: impl FnOnce(&Path)) -> Site {
        let home = tempfile::tempdir().expect("folders can be made");
        std::fs::create_dir(home.path().join("db")).expect("folders can be made");
        fill(&home.path().join("db"));
        let (server, door) = serve(home.path(), "127.0.0.1:0");
        let address = door.split("/#").next().unwrap_or_default().to_owned();
        Site { home, server, address, door }
    }

    /// Ends the server, as a crash does.
    pub(crate) fn end(&mut self) {
        let _ = (self.server.kill(), self.server.wait());
    }

    /// Starts the server again at the same address.
    pub(crate) fn start_again(&mut self) {
        let address = self.address.trim_start_matches("http://").to_owned();
        (self.server, self.door) = serve(self.home.path(), &address);
    }
}

/// Starts a server; returns it with the address that lets a browser in.
fn serve(home: &Path, address: &str) -> (Child, String) {
    let mut server = Command::new(env!("CARGO_BIN_EXE_verbatim"))
        .arg("--home")
        .arg(home)
        .args(["web", "--no-open", address])
        .env("HOME", home)
        .stdout(Stdio::piped())
        .stderr(Stdio::null())
        .spawn()
        .expect("the program starts");
    let mut door = String::new();
    let output = server.stdout.take().expect("it is piped");
    BufReader::new(output).read_line(&mut door).expect("it prints its address");
    (server, door.trim().to_owned())
}

impl Drop for Site {
    fn drop(&mut self) {
        self.end();
    }
}

/// A browser with a profile of its own.
pub(crate) struct Browser {
    driver: Child,
    session: String,
    _profile: TempDir,
}

impl Browser {
    /// Starts a browser; `None` if there is none on this computer.
    pub(crate) fn start() -> Option<Browser> {
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

    pub(crate) fn post(&self, path: &str, body: &Value) -> Value {
        call("POST", &format!("{}/{path}", self.session), body)
    }

    pub(crate) fn open(&self, address: &str) {
        self.post("url", &json!({ "url": address }));
    }

    /// Returns the result of a script.
    pub(crate) fn run(&self, script: &str) -> Value {
        self.post("execute/sync", &json!({"script": script, "args": []}))
    }

    /// Waits until a script returns true.
    #[track_caller]
    pub(crate) fn wait(&self, condition: &str) {
        let end = Instant::now() + PATIENCE;
        while self.run(&format!("return !!({condition})")) != true {
            let page = || self.run("return document.body.innerText.slice(0, 2000) + location.href");
            assert!(Instant::now() < end, "{condition} never came: {}", page());
            thread::sleep(Duration::from_millis(20));
        }
    }

    pub(crate) fn keys(&self, selector: &str, keys: &str) {
        let found = self.post("element", &json!({"using": "css selector", "value": selector}));
        let id =
            found[ELEMENT].as_str().unwrap_or_else(|| panic!("{selector}: {found}")).to_owned();
        self.post(&format!("element/{id}/value"), &json!({ "text": keys }));
    }

    /// Returns the value that a script passes to its callback.
    pub(crate) fn run_until_done(&self, script: &str) -> Value {
        self.post("execute/async", &json!({"script": script, "args": []}))
    }

    pub(crate) fn click(&self, selector: &str) {
        let found = self.post("element", &json!({"using": "css selector", "value": selector}));
        let id =
            found[ELEMENT].as_str().unwrap_or_else(|| panic!("{selector}: {found}")).to_owned();
        self.post(&format!("element/{id}/click"), &json!({}));
    }

    /// Clicks what a wide window shows although its fold is closed. WebDriver takes it for hidden.
    pub(crate) fn click_in_fold(&self, selector: &str) {
        self.wait(&format!("document.querySelector(`{selector}`).checkVisibility()"));
        self.run(&format!("document.querySelector(`{selector}`).click()"));
    }

    /// Calls a method of Chromium's own protocol; returns its answer.
    pub(crate) fn chromium(&self, method: &str, parameters: &Value) -> Value {
        self.post("goog/cdp/execute", &json!({"cmd": method, "params": parameters}))
    }

    /// Returns the number of times that Chromium has laid out the page.
    pub(crate) fn layouts(&self) -> f64 {
        let answer = self.chromium("Performance.getMetrics", &json!({}));
        let mut metrics = answer["metrics"].as_array().into_iter().flatten();
        let layouts = metrics.find(|metric| metric["name"] == "LayoutCount");
        layouts.and_then(|metric| metric["value"].as_f64()).expect("Chromium counts layouts")
    }

    /// Presses a key where the focus is.
    pub(crate) fn press(&self, key: &str) {
        let down = json!({"type": "keyDown", "key": key, "text": key});
        self.chromium("Input.dispatchKeyEvent", &down);
    }

    /// Returns the names of the windows, and makes one more if there are too few.
    pub(crate) fn windows(&self, wanted: usize) -> Vec<String> {
        while self.get("window/handles").as_array().map_or(0, Vec::len) < wanted {
            self.post("window/new", &json!({"type": "tab"}));
        }
        serde_json::from_value(self.get("window/handles")).expect("names")
    }

    pub(crate) fn go_to_window(&self, name: &str) {
        self.post("window", &json!({ "handle": name }));
    }

    fn get(&self, path: &str) -> Value {
        call("GET", &format!("{}/{path}", self.session), &Value::Null)
    }

    /// Returns a picture of the window, as a PNG in base 64.
    pub(crate) fn picture(&self) -> String {
        self.get("screenshot").as_str().expect("a picture").to_owned()
    }

    /// Clears the console, for example of the error of a request that the server did not answer. Chromium may write
    /// it a moment after the page has shown it.
    pub(crate) fn forget_console(&self) {
        for _ in 0..40 {
            let errors = self.post("se/log", &json!({"type": "browser"}));
            if errors.as_array().is_some_and(|errors| !errors.is_empty()) {
                return;
            }
            thread::sleep(Duration::from_millis(50));
        }
    }

    /// Shows pages at the width of a screen, in a theme.
    pub(crate) fn look(&self, width: u32, theme: &str) {
        let screen =
            json!({"width": width, "height": 900, "deviceScaleFactor": 1, "mobile": width < 500});
        self.chromium("Emulation.setDeviceMetricsOverride", &screen);
        let features = json!([{"name": "prefers-color-scheme", "value": theme}]);
        self.chromium("Emulation.setEmulatedMedia", &json!({ "features": features }));
    }

    /// Fails if anything was wrong: an error in the console, a script of a message that ran, a request
    /// to another host.
    #[track_caller]
    pub(crate) fn assert_sound(&self, site: &Site) {
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
        "GET" => agent.get(address).call(),
        _ => agent.post(address).content_type("application/json").send(body.to_string()),
    };
    let text = answer.ok().and_then(|mut answer| answer.body_mut().read_to_string().ok());
    let answer: Value = serde_json::from_str(&text.unwrap_or_default()).unwrap_or_default();
    answer["value"].clone()
}

/// Prints once that tests are left out. Fails where the tests are required, because the programs that
/// they need should be installed.
pub(crate) fn leave_out(what: &str) {
    static SAID: Once = Once::new();
    let must_run = std::env::var_os("VERBATIM_NEEDS_BROWSER").is_some();
    assert!(!must_run, "not tested: {what}");
    // `eprintln!` would print for failed tests only.
    SAID.call_once(|| drop(writeln!(std::io::stderr(), "\nLEFT OUT: tests of {what}")));
}

/// Returns a browser that is let in, and a server; `None` without a browser.
pub(crate) fn start(fill: impl FnOnce(&Path)) -> Option<(Browser, Site)> {
    let browser = Browser::start();
    if browser.is_none() {
        leave_out("the page in a browser: chromium or chromedriver is not installed");
    }
    let (browser, site) = (browser?, Site::start(fill));
    // The address with the token works on the login form, and nobody sees the token afterwards.
    for address in [&site.address, &site.door, &site.door] {
        browser.open(address);
    }
    browser.wait("document.querySelector('#q') && !location.hash");
    // The page that asks for the token was refused once, so the console has an error.
    browser.forget_console();
    Some((browser, site))
}
