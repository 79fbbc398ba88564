//! The page as a user sees it in Chromium: how long after a key its results are painted, when the first
//! row appears, and which requests the browser sends until then.

use anyhow::{Context, Result};
use serde_json::json;

use super::browser::Browser;

/// Texts that are typed, key by key.
const TYPED: usize = 6;

/// Times that a page is opened.
const VISITS: usize = 10;

/// A measured value and its target.
pub(super) struct SeenRow {
    pub(super) name: &'static str,
    pub(super) target: &'static str,
    /// The measured values, in order.
    pub(super) values: Vec<f64>,
}

/// Puts into `took` the time from each key until its results are painted.
const WATCH_KEYS: &str = "
    window.took = [];
    let begun = null;
    document.querySelector('#q').addEventListener('input', (event) => (begun = event.timeStamp), true);
    new MutationObserver(() => {
        if (begun === null) return;
        const key = begun;
        begun = null;
        requestAnimationFrame(() => {
            const painted = new MessageChannel();
            painted.port1.onmessage = () => window.took.push(performance.now() - key);
            painted.port2.postMessage(0);
        });
    }).observe(document.querySelector('#list').parentElement, { childList: true });";

/// Measures the page at an address; `None` without a browser.
pub(super) fn seen(door: &str, typed: &[String]) -> Result<Option<Vec<SeenRow>>> {
    let Some(browser) = Browser::start() else { return Ok(None) };
    let home = door.split('#').next().context("an address")?;
    browser.open(door);
    browser.wait("document.querySelector('#list')");
    let mut keys = Vec::new();
    for text in typed.iter().take(TYPED) {
        browser.open(home);
        browser.wait("document.activeElement.id === 'q' && document.querySelector('#hist svg')");
        browser.run(WATCH_KEYS);
        for (pressed, key) in text.chars().filter(|key| !key.is_control()).enumerate() {
            browser.chromium("Input.insertText", &json!({ "text": key.to_string() }));
            browser.wait(&format!("window.took.length > {pressed}"));
        }
        let took = browser.run("return window.took");
        keys.extend(took.as_array().into_iter().flatten().filter_map(serde_json::Value::as_f64));
    }
    let (mut rows, mut requests) = (Vec::new(), Vec::new());
    let text = typed.first().map(String::as_str).unwrap_or_default();
    let query: String = text.bytes().map(|byte| format!("%{byte:02X}")).collect();
    for visit in 0..VISITS {
        browser.open(&if visit % 2 == 0 { home.to_owned() } else { format!("{home}?q={query}") });
        browser
            .wait("document.querySelector('#list .group') && document.querySelector('#hist svg')");
        // The rows are in the first answer, so they are there with the first content.
        let first = "return performance.getEntriesByName('first-contentful-paint')[0]?.startTime";
        rows.extend(browser.run(first).as_f64());
        let count = "return performance.getEntriesByType('resource').length + 1";
        requests.extend(browser.run(count).as_f64());
    }
    let row = |name, target, mut values: Vec<f64>| {
        values.sort_by(f64::total_cmp);
        SeenRow { name, target, values }
    };
    Ok(Some(vec![
        row("a key until its results are painted, ms", "50", keys),
        row("a page until its first row is painted, ms", "200", rows),
        row("requests until the page and its counts are there", "6", requests),
    ]))
}
