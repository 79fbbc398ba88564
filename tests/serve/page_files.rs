//! Pictures and files of messages on the page: their content types, and the limits of hostile files.

use std::{fs, path::Path, process::Command};

use base64::{Engine, prelude::BASE64_STANDARD};
use serde_json::{Value, json};

use crate::browser::{self, Browser, Site};
use crate::exports::{chat_with_files, zip_of};

/// A red picture of 8 by 6 pixels.
const PNG: &[u8] =
    b"\x89\x50\x4e\x47\x0d\x0a\x1a\x0a\x00\x00\x00\x0d\x49\x48\x44\x52\x00\x00\x00\x08\x00\
    \x00\x00\x06\x08\x02\x00\x00\x00\x71\x67\x48\xac\x00\x00\x00\x11\x49\x44\x41\x54\x78\
    \xda\x63\x38\x21\x27\x87\x15\x31\x0c\xa4\x04\x00\x69\x88\x30\xc1\x19\x6a\x3d\xfc\x00\
    \x00\x00\x00\x49\x45\x4e\x44\xae\x42\x60\x82";

/// A picture by its first bytes, and a page with a script by the rest.
const POLYGLOT: &[u8] = b"GIF89a\x01\0\x01\0\0\0\0;<script>window.hacked=5</script>";

const SVG: &[u8] =
    b"<svg xmlns=\"http://www.w3.org/2000/svg\"><script>window.hacked=6</script></svg>";

/// A name that would end an attribute, a header and a path.
const HOSTILE: &str = "../a\"><img src=x onerror=window.hacked=7>\r\nSet-Cookie: a=b.html";

/// Imports a conversation with a picture, a polyglot, an SVG, a page and a file that is missing later.
fn fill(databases: &Path) {
    let home = databases.parent().expect("a home");
    let listed = json!([
        {"id": "file-poly", "name": "poly.gif", "mime_type": "text/html"},
        {"id": "file-draw", "name": "drawing.svg", "mime_type": "image/png"},
        {"id": "file-page", "name": HOSTILE},
        {"id": "file-lost", "name": "lost.md"},
    ]);
    let chats = Value::from(vec![chat_with_files("aa", &listed)]).to_string();
    let zip = zip_of(&[
        ("conversations.json", chats.as_bytes()),
        ("file_00ff-red.png", PNG),
        ("file-poly.gif", POLYGLOT),
        ("file-draw.svg", SVG),
        ("file-page.html", b"<script>window.hacked=8</script>"),
        ("file-lost.md", b"lost"),
    ]);
    let path = home.join("chatgpt.zip");
    fs::write(&path, zip).expect("it can be written");
    let mut command = Command::new(env!("CARGO_BIN_EXE_verbatim"));
    command.env_clear().env("HOME", home).args(["--no-archive", "--home"]).arg(home);
    let done = command.arg("import").arg(&path).output().expect("the program starts");
    assert!(done.status.success(), "{}", String::from_utf8_lossy(&done.stderr));
    for entry in fs::read_dir(home.join("attachments/files")).expect("a store").flatten() {
        if fs::read(entry.path()).expect("a file") == b"lost" {
            fs::remove_file(entry.path()).expect("it can be removed");
        }
    }
}

/// Returns the addresses of the files in a page: of pictures, and of downloads.
fn addresses(page: &str) -> Vec<String> {
    let parts = page.split('"').filter(|part| part.starts_with("/c/aa/file/"));
    let mut addresses: Vec<String> = parts.map(str::to_owned).collect();
    addresses.dedup();
    addresses
}

#[test]
fn only_pictures_are_shown_and_everything_else_is_a_download() {
    let site = Site::start(fill);
    let token = site.door.split("#token=").nth(1).expect("a token").to_owned();
    let agent: ureq::Agent =
        ureq::Agent::config_builder().http_status_as_error(false).build().into();
    let get = |path: &str| {
        let request = agent.get(format!("{}{path}", site.address));
        request.header("Authorization", format!("Bearer {token}")).call().expect("an answer")
    };
    let page = get("/c/aa").body_mut().read_to_string().expect("a page");
    assert!(page.contains("width=\"240\" height=\"180\"") && page.contains("alt=\"red.png\""));
    assert!(page.contains("lost.md") && page.contains("The copy is missing"), "{page}");
    assert!(!page.contains("<img src=x"), "{page}");
    let addresses = addresses(&page);
    assert_eq!(addresses.len(), 4, "{addresses:?}");
    let mut seen = Vec::new();
    for address in &addresses {
        let mut answer = get(address);
        let header = |name: &str| answer.headers()[name].to_str().expect("text").to_owned();
        assert_eq!(answer.status().as_u16(), 200);
        assert_eq!(header("x-content-type-options"), "nosniff");
        assert!(header("content-security-policy").contains("sandbox"));
        assert!(answer.headers().get("set-cookie").is_none());
        let (media_type, way) = (header("content-type"), header("content-disposition"));
        let name = way.split("''").nth(1).expect("a name").to_owned();
        let way = way.split(';').next().unwrap_or_default().to_owned();
        let content = answer.body_mut().read_to_vec().expect("a content");
        seen.push((media_type, way, content));
        assert!(!name.contains(['/', '"', ' ', '\r']), "{name}");
    }
    let other = "application/octet-stream".to_owned();
    let (inline, attachment) = ("inline".to_owned(), "attachment".to_owned());
    for expected in [
        ("image/png".to_owned(), inline.clone(), PNG.to_vec()),
        ("image/gif".to_owned(), inline, POLYGLOT.to_vec()),
        (other.clone(), attachment.clone(), SVG.to_vec()),
        (other, attachment, b"<script>window.hacked=8</script>".to_vec()),
    ] {
        assert!(seen.contains(&expected), "{expected:?} is not among {seen:?}");
    }
    // Without the token, under another conversation or by another name there is nothing.
    let answer = agent.get(format!("{}{}", site.address, addresses[0])).call().expect("an answer");
    assert_eq!(answer.status().as_u16(), 401);
    for wrong in [
        addresses[0].replace("/aa/", "/bb/"),
        "/c/aa/file/00".to_owned(),
        "/c/aa/file/..%2F..%2Ftoken".to_owned(),
    ] {
        assert_eq!(get(&wrong).status().as_u16(), 404, "{wrong}");
    }
    // Conversations as Markdown or HTML show the names of their files.
    for address in ["/c/aa.md", "/c/aa.html"] {
        let text = get(address).body_mut().read_to_string().expect("a text");
        assert!(
            text.contains("[red.png, image/png, ") && text.contains("verbatim export"),
            "{text}"
        );
        assert!(address.ends_with(".md") || !text.contains("<img"), "{address}: {text}");
    }
}

#[test]
fn a_picture_is_seen_and_no_file_runs() {
    let Some((browser, site)) = browser::start(fill) else { return };
    browser.open(&format!("{}/c/aa", site.address));
    let is_red = "[...document.images].some(it => it.alt === 'red.png' && it.naturalWidth === 8)";
    browser.wait(is_red);
    assert_eq!(
        browser.run("return document.querySelector('.thumb img').getBoundingClientRect().height"),
        180
    );
    // Every file is opened as a separate page: no script in a file runs.
    let links = browser.run("return [...document.querySelectorAll('.files a')].map(it => it.href)");
    for link in links.as_array().expect("links") {
        open_alone(&browser, link.as_str().expect("an address"));
    }
    browser.open(&format!("{}/c/aa", site.address));
    browser.wait(is_red);
    // A polyglot is no complete picture, but the page reports no error.
    browser.assert_sound(&site);
}

fn open_alone(browser: &Browser, address: &str) {
    browser.open(address);
    assert_eq!(browser.run("return window.hacked === undefined"), true, "{address}");
}

#[test]
fn a_missing_picture_of_a_transcript_is_not_to_be_imported_again() {
    let session = "11111111-0000-4000-8000-000000000001";
    let site = Site::start(|databases| {
        let home = databases.parent().expect("a home");
        let data = BASE64_STANDARD.encode(PNG);
        let source = json!({"type": "base64", "media_type": "image/png", "data": data});
        let line = json!({"type": "user", "uuid": "u", "sessionId": session, "cwd": "/shop",
            "timestamp": "2025-10-30T11:00:00Z", "message": {"role": "user", "content": [
                {"type": "text", "text": "Look"}, {"type": "image", "source": source}]}});
        let project = home.join(".claude/projects/shop");
        fs::create_dir_all(&project).expect("it can be made");
        let transcript = project.join(format!("{session}.jsonl"));
        fs::write(transcript, format!("{line}\n")).expect("it can be written");
        let mut command = Command::new(env!("CARGO_BIN_EXE_verbatim"));
        command.env_clear().env("HOME", home).args(["--home"]).arg(home).arg("list");
        assert!(command.output().expect("the program starts").status.success());
        let copies = fs::read_dir(home.join("transcript-files/files")).expect("a store");
        let removed = copies.flatten().map(|copy| fs::remove_file(copy.path()));
        assert_eq!(removed.filter(Result::is_ok).count(), 1);
    });
    let token = site.door.split("#token=").nth(1).expect("a token");
    let request = ureq::get(format!("{}/c/{session}", site.address));
    let request = request.header("Authorization", format!("Bearer {token}"));
    let mut answer = request.call().expect("an answer");
    let page = answer.body_mut().read_to_string().expect("a page");
    assert!(page.contains("The copy is missing. A transcript is read only once"), "{page}");
    assert!(!page.contains("Import the export again"), "{page}");
}
