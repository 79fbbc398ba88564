//! The server over HTTP, driven and attacked over raw sockets: who is let in, what a client can take
//! of the server's time and memory, and whether the answers are those of SQLite.

use std::io::{BufRead, BufReader, Read, Write};
use std::net::{Shutdown, TcpListener, TcpStream};
use std::path::Path;
use std::process::{Command, Stdio};
use std::time::{Duration, Instant};
use std::{fs, thread};

use rusqlite::Connection;
use serde_json::{Value, json};

use crate::user::Said;
use crate::{
    corpus::{SCHEMA, database, folder_with},
    http_server::{ACCEPT, Answered, HttpServer, JSON, PATIENCE, REDS, call, colours, read_answer},
    mcp::{large, slow},
    program::{Place, Server as StdioServer},
};

const NEWEST: &str = "2026-07-28";

/// Returns a request of the newest revision, which repeats the data that older revisions send once.
fn newest(mut message: Value) -> Value {
    message["params"]["_meta"] = json!({
        "io.modelcontextprotocol/protocolVersion": NEWEST,
        "io.modelcontextprotocol/clientInfo": {"name": "test", "version": "1"},
        "io.modelcontextprotocol/clientCapabilities": {},
    });
    message
}

#[test]
fn without_the_token_nothing_is_reached() {
    let server = HttpServer::start(colours, &["--page"]);
    let right = server.bearer();
    let twice = format!("{right}\r\n{right}");
    let longer = format!("{right}0");
    let cookie = format!("Cookie: verbatim_{}={}", server.address.port(), server.token);
    let basic = format!("Authorization: Basic {}", server.token);
    let wrong = [
        "X-Nothing: 1",
        "Authorization: Bearer",
        "Authorization: Bearer ",
        "Authorization: Bearer x",
        &longer,
        &twice,
        &cookie,
        &basic,
    ];
    let paths = "/ /mcp /search?q=red /c/conv-0001 //mcp /mcp/ /./mcp /x/../mcp /%6dcp /MCP /healthz/ \
        /healthz/../mcp /healthz%2f..%2fmcp /login /mcp?x=/healthz /mcp;/healthz /static/../../token \
        /%2e%2e/token /mcp%00 *";
    for path in paths.split(' ') {
        for header in wrong {
            for method in ["GET", "POST", "PUT", "DELETE", "OPTIONS", "TRACE"] {
                if (method, path) == ("POST", "/login") {
                    continue;
                }
                let answer = server.ask(&format!("{method} {path}"), &[header], "");
                assert!(
                    [400, 401].contains(&answer.status),
                    "{method} {path} {header}: {answer:?}"
                );
                assert!(!answer.body.contains("red"), "{answer:?}");
            }
        }
    }
    assert_eq!(server.ask("GET /healthz", &[], "").status, 200);
    assert_eq!(server.call("conversation_search", &json!({"query": "red"})), REDS);
    // A thread of its own writes it.
    let until = Instant::now() + PATIENCE;
    while !server.log().contains("POST mcp 200 ") && Instant::now() < until {
        thread::sleep(Duration::from_millis(10));
    }
    let log = server.log();
    assert!(!log.contains(&server.token) && !log.contains("q=red"), "{log}");
    assert!(log.contains("POST mcp 200 ") && log.contains("GET page 401 "), "{log}");
}

#[test]
fn pages_of_others_are_refused() {
    let server = HttpServer::start(colours, &["--page", "--host", "chats.example.org"]);
    let (bearer, port) = (server.bearer(), server.address.port());
    let get = |headers: &[&str]| {
        let headers = [&[bearer.as_str()], headers].concat();
        server.ask("GET /search?q=red", &headers, "").status
    };
    for host in "localhost LOCALHOST:8377 127.0.0.1:1 [::1]:8377 chats.example.org".split(' ') {
        assert_eq!(get(&[&format!("Host: {host}")]), 200, "{host}");
    }
    let foreign = "evil.example evil.example:8377 127.0.0.1.evil.example localhost.evil.example \
        192.168.1.7 localhost@evil.example evil.example@localhost 2130706433";
    for host in foreign.split(' ') {
        assert_eq!(get(&[&format!("Host: {host}")]), 403, "{host}");
    }
    for host in ["Host: ", "Host: a b", "Host: localhost\r\nHost: localhost"] {
        assert_eq!(get(&[host]), 400, "{host}");
    }
    let absolute = server.ask("GET http://evil.example/search?q=red", &[&bearer], "");
    assert_eq!(absolute.status, 403, "{absolute:?}");
    let none = server.raw(format!("GET /search?q=red HTTP/1.0\r\n{bearer}\r\n\r\n").as_bytes());
    assert_eq!(none.status, 400, "{none:?}");
    let ours = format!("Origin: http://{}", server.address);
    assert_eq!(get(&[&ours, "Sec-Fetch-Site: same-origin"]), 200);
    for origin in
        ["http://evil.example", "null", "http://localhost", "", "file://", "https://127.0.0.1"]
    {
        assert_eq!(get(&[&format!("Origin: {origin}")]), 403, "{origin}");
    }
    assert_eq!(
        get(&[&format!("Origin: http://127.0.0.1:{}", port ^ 1)]),
        403,
        "another user's page"
    );
    for site in ["cross-site", "same-site", "", "other"] {
        assert_eq!(get(&[&format!("Sec-Fetch-Site: {site}")]), 403, "{site}");
    }
    assert_eq!(get(&["Sec-Fetch-Site: none"]), 200);
    // A visitor who follows a link from another site gets a page with a link, and no chat.
    let visit = ["Sec-Fetch-Site: cross-site", "Sec-Fetch-Mode: navigate", "Accept: text/html"];
    let page = server.ask("GET /c/1?q=%22%3Cscript%3E", &visit, "");
    assert_eq!(page.status, 403);
    assert!(page.body.contains("href=\"/c/1?q=%22%3Cscript%3E\""), "{page:?}");
    let csp = page.header("content-security-policy").unwrap();
    assert!(
        csp.starts_with("default-src 'none'") && csp.contains("frame-ancestors 'none'"),
        "{csp}"
    );
    assert!(!csp.contains("unsafe"), "{csp}");
    for (name, value) in [
        ("x-content-type-options", "nosniff"),
        ("referrer-policy", "no-referrer"),
        ("cache-control", "no-store"),
    ] {
        assert_eq!(page.header(name), Some(value));
    }
    assert_eq!(page.header("access-control-allow-origin"), None);
}

#[test]
fn the_form_gives_a_cookie_that_opens_the_page_only() {
    let server = HttpServer::start(colours, &["--page"]);
    let html = "Accept: text/html";
    let form = server.ask("GET /c/conv-0001?q=red", &[html], "");
    assert_eq!(form.status, 401);
    assert!(form.body.contains("<form method=\"post\" action=\"/login\">"), "{form:?}");
    let next = "name=\"next\" value=\"/c/conv-0001?q=red\"";
    assert!(form.body.contains(next), "without a script too, the token opens this page: {form:?}");
    assert!(!form.body.contains("style=") && !form.body.contains("<style"), "no inline style");
    for path in ["/login.js", "/login.css"] {
        assert_eq!(server.ask(&format!("GET {path}"), &[], "").status, 200);
    }
    let kind = "Content-Type: application/x-www-form-urlencoded";
    let page = ["Origin: null", "Sec-Fetch-Site: same-origin", kind];
    let post = |token: &str, next: &str, headers: &[&str]| {
        server.ask("POST /login", headers, &format!("token={token}&next={next}"))
    };
    let wrong = post("0000", "/c/conv-0001?q=red", &page);
    assert_eq!((wrong.status, wrong.header("set-cookie")), (401, None));
    assert!(wrong.body.contains(next), "nor does a wrong token lose the page: {wrong:?}");
    assert_eq!(post(&server.token, "/", &["Origin: null", kind]).status, 403, "from another page");
    assert_eq!(post(&"0".repeat(5000), "/", &page).status, 413);
    for (next, to) in [
        ("/c/1", "/c/1"),
        ("//evil.example", "/"),
        ("https://evil.example", "/"),
        ("%2F%5Cevil", "/"),
    ] {
        assert_eq!(post(&server.token, next, &page).header("location"), Some(to), "{next}");
    }
    let right = post(&server.token, "/", &page);
    assert_eq!(right.status, 303);
    let set = right.header("set-cookie").unwrap();
    assert!(set.contains("; HttpOnly; SameSite=Strict") && !set.contains(&server.token), "{set}");
    let cookie = format!("Cookie: other=1; {}", set.split(';').next().unwrap());
    let of = |line: &str, headers: &[&str]| {
        let headers = [&[cookie.as_str()], headers].concat();
        server.ask(line, &headers, "").status
    };
    assert_eq!(of("GET /", &[html]), 200);
    for path in ["/?q=%00", "/stats?q=%00", "/search?q=%00"] {
        assert_eq!(of(&format!("GET {path}"), &[html]), 400, "no text has NUL: {path}");
    }
    assert_eq!(of("GET /search?q=red", &["Accept: application/json"]), 200);
    for path in ["POST /mcp", "GET /mcp"] {
        assert_eq!(of(path, &[]), 401, "{path}");
    }
    assert_eq!(of("POST /import", &[]), 403, "a change that no page of ours asks for");
    assert_ne!(of("POST /import", &[&format!("Origin: http://{}", server.address)]), 403);
    let bad = format!("{cookie}0");
    assert_eq!(server.ask("GET /", &[&bad, html], "").status, 401);
}

#[test]
fn the_answers_are_those_of_stdio_and_of_sqlite() {
    let fill = |db: &Path| {
        let connection = Connection::open(db).unwrap();
        connection.execute_batch(SCHEMA).unwrap();
        connection
            .execute_batch(
                "INSERT INTO conversations VALUES ('conv-0001', '1', '1', 'Numbers');
                 WITH RECURSIVE n(i) AS (SELECT 0 UNION ALL SELECT i + 1 FROM n WHERE i < 999)
                 INSERT INTO messages SELECT 'm' || i, 'conv-0001', 'user', 'number ' || (i * 7919), 1700000000 + i,
                 NULL, i FROM n",
            )
            .unwrap();
    };
    let server = HttpServer::start(fill, &[]);
    let oracle = |digits: usize| -> Vec<String> {
        let connection = Connection::open(&server.place.db).unwrap();
        let mut statement = connection
            .prepare("SELECT content FROM messages WHERE content LIKE '%' || ?1 || '%' ORDER BY position DESC LIMIT 50")
            .unwrap();
        let rows = statement.query_map([digits.to_string()], |row| row.get(0)).unwrap();
        rows.map(Result::unwrap).collect()
    };
    let mut stdio =
        StdioServer::start(&mut server.place.command(&["serve", "--no-watch", "--no-archive"]));
    let queries: Vec<(Value, Vec<String>, String)> = (0..12)
        .map(|n| {
            let digits = 13 * n + 5;
            let query = json!({"query": digits.to_string(), "limit": 50});
            let text = stdio.call("conversation_search", &query);
            (query, oracle(digits), text)
        })
        .collect();
    thread::scope(|scope| {
        for client in 0..16 {
            let (server, queries) = (&server, &queries);
            scope.spawn(move || {
                for turn in 0..25 {
                    let (query, expected, text) = &queries[(client + turn) % queries.len()];
                    let given = server.call("conversation_search", query);
                    assert_eq!(&given, text);
                    let found: Vec<&str> =
                        given.lines().filter(|line| line.starts_with("number ")).collect();
                    assert_eq!(&found, expected);
                }
            });
        }
    });
    let search = |query: &str| server.ask(&format!("GET /search?{query}"), &[&server.bearer()], "");
    let found = search("q=number+7919&limit=1");
    assert_eq!(found.header("content-type"), Some("application/x-ndjson; charset=utf-8"));
    let lines = |answer: &Answered| -> Vec<Value> {
        answer.body.lines().map(|line| serde_json::from_str(line).unwrap()).collect()
    };
    let line = &lines(&found)[0];
    assert!(line["content"].as_str().unwrap().starts_with("number 7919"), "{line}");
    // The last line says that the limit left out messages; without omissions it is absent.
    let words = ["search", "--json", "-n", "1", "number 7919"];
    let printed = server.place.command(&words).output().unwrap().stdout;
    let why = json!(["these are the 1 newest messages; limit=0 gives all"]);
    let rest = format!("{}\n", json!({"complete": true, "more": true, "notes": why}));
    let printed = String::from_utf8(printed).unwrap();
    assert_eq!(search("q=number+7919&limit=1").body, printed + &rest);
    let all = lines(&search("q=number+7919&limit=0"));
    assert!(all.len() > 2 && all.iter().all(|line| line["content"].is_string()), "{all:?}");
    assert_eq!(lines(&search(&format!("q=number+7919&limit={}", all.len()))), all);
    let cut = lines(&search(&format!("q=number+7919&limit={}", all.len() - 1)));
    assert_eq!(cut[..all.len() - 1], all[..all.len() - 1]);
    assert_eq!(cut[all.len() - 1]["more"], true);
    let best = lines(&search("q=number&mode=words&limit=3"));
    assert_eq!((best.len(), &best[3]["more"]), (4, &json!(true)), "{best:?}");
    for (query, why) in [
        ("", "q, the text to find, is missing"),
        ("q=x&colour=1", "there is no parameter \"colour\", only q, "),
        ("q=x&json=1", "there is no parameter \"json\""),
        ("q=x&q=y", "q is given twice"),
        ("q=x&fold=maybe", "fold is true or false, not \"maybe\""),
        ("q=x&limit=1&limit=2", "limit is given twice"),
        ("q=x&limit=many", "limit is a number, not \"many\""),
        ("q=x&since=then", "since: \"then\" is not a date"),
        ("q=%00", "NUL"),
        ("q=%28a&regex=1", "unclosed group"),
        ("q=%CC%81&fold=1", "nothing but accents"),
    ] {
        let refused = server.ask(&format!("GET /search?{query}"), &[&server.bearer()], "");
        assert_eq!(refused.status, 400, "{refused:?}");
        assert!(refused.body.contains(why), "{refused:?}");
    }
}

#[test]
fn clients_that_take_json_alone_get_json() {
    let server = HttpServer::start(colours, &[]);
    let mut red = newest(call(4, "conversation_search", &json!({"query": "red"})));
    // Both ask for messages before the answer, for which JSON has no place.
    red["params"]["_meta"]["progressToken"] = json!(1);
    red["params"]["_meta"]["io.modelcontextprotocol/logLevel"] = json!("debug");
    let version = [
        "MCP-Protocol-Version: 2026-07-28",
        "Mcp-Method: tools/call",
        "Mcp-Name: conversation_search",
    ];
    let (bearer, red) = (server.bearer(), red.to_string());
    let ask = |more: &[&str]| {
        let headers = [&[bearer.as_str(), JSON], &version[..], more].concat();
        server.ask("POST /mcp", &headers, &red)
    };
    for accept in [
        &[][..],
        &["Accept: */*"],
        &["Accept: application/json"],
        &["Accept: text/html, Application/*;q=0.9"],
        &["Accept: text/html", "Accept: */*;q=0.8"],
        &["Accept: */*", "Content-Encoding: identity"],
    ] {
        let answer = ask(accept);
        assert_eq!(
            answer.header("content-type"),
            Some("application/json"),
            "{accept:?} {answer:?}"
        );
        assert_eq!(answer.json()["result"]["content"][0]["text"], REDS, "{accept:?}");
    }
    for accept in ["Accept: text/event-stream, */*", ACCEPT] {
        let answer = ask(&[accept]);
        assert_eq!(answer.header("content-type"), Some("text/event-stream"), "{answer:?}");
        assert!(answer.body.contains("conversation_search: "), "a log message: {answer:?}");
    }
    for accept in ["Accept: text/event-stream", "Accept: text/html"] {
        let refused = ask(&[accept]);
        assert_eq!(refused.status, 406, "{accept}");
        assert!(refused.body.contains("Accept must name application/json"), "{refused:?}");
    }
    let headers = [&[bearer.as_str(), JSON], &version[..], &["Accept: */*"]].concat();
    let slashed = server.ask("POST /mcp/", &headers, &red);
    assert_eq!(slashed.json()["result"]["content"][0]["text"], REDS, "{slashed:?}");
    assert_eq!(server.ask("POST /mcp/", &headers[1..], &red).status, 401);
    let packed = ask(&[ACCEPT, "Content-Encoding: gzip"]);
    assert_eq!((packed.status, packed.header("accept-encoding")), (415, Some("identity")));
    assert!(packed.body.contains("Content-Encoding"), "{packed:?}");
}

#[test]
fn revisions_batches_and_what_is_no_message() {
    let server = HttpServer::start(colours, &[]);
    for revision in ["2024-11-05", "2025-03-26", "2025-06-18", "2025-11-25"] {
        let hello = json!({"jsonrpc": "2.0", "id": 1, "method": "initialize", "params": {"protocolVersion": revision,
            "capabilities": {}, "clientInfo": {"name": "test", "version": "1"}}});
        let answer = server.mcp(&[], &hello);
        assert_eq!(answer.header("mcp-session-id"), None);
        let begun = answer.json();
        assert_eq!(begun["result"]["protocolVersion"], revision);
        assert_eq!(
            begun["result"]["capabilities"]["logging"],
            Value::Null,
            "there is no session for it"
        );
        let note = json!({"jsonrpc": "2.0", "method": "notifications/initialized"});
        let version = format!("MCP-Protocol-Version: {revision}");
        assert_eq!(server.mcp(&[&version], &note).status, 202);
        let listed =
            server.mcp(&[&version], &json!({"jsonrpc": "2.0", "id": 2, "method": "tools/list"}));
        assert_eq!(listed.json()["result"]["tools"].as_array().unwrap().len(), 5);
        let red = call(3, "conversation_search", &json!({"query": "red"}));
        assert_eq!(server.mcp(&[&version], &red).json()["result"]["content"][0]["text"], REDS);
    }
    let red = newest(call(4, "conversation_search", &json!({"query": "red"})));
    let headers = [
        "MCP-Protocol-Version: 2026-07-28",
        "Mcp-Method: tools/call",
        "Mcp-Name: conversation_search",
    ];
    assert_eq!(server.mcp(&headers, &red).json()["result"]["content"][0]["text"], REDS);
    for wrong in [
        ["MCP-Protocol-Version: 2025-06-18", headers[1], headers[2]],
        [headers[0], "Mcp-Method: tools/list", headers[2]],
        [headers[0], headers[1], "Mcp-Name: search"],
    ] {
        let refused = server.mcp(&wrong, &red);
        assert_eq!(refused.status, 400, "{refused:?}");
        assert_eq!(refused.json()["error"]["code"], -32020, "{refused:?}");
    }
    let discover =
        newest(json!({"jsonrpc": "2.0", "id": 5, "method": "server/discover", "params": {}}));
    let found = server.mcp(&[headers[0], "Mcp-Method: server/discover"], &discover).json();
    assert!(found["result"]["supportedVersions"].to_string().contains(NEWEST), "{found}");
    // Methods that the revision has removed are not found, whatever their parameters.
    for method in ["initialize", "ping", "logging/setLevel", "resources/subscribe"] {
        let asked = newest(json!({"jsonrpc": "2.0", "id": 6, "method": method, "params": {}}));
        let refused = server.mcp(&[headers[0], &format!("Mcp-Method: {method}")], &asked);
        let code = refused.json()["error"]["code"].clone();
        assert_eq!((refused.status, code), (404, json!(-32601)), "{refused:?}");
    }
    for method in ["GET", "DELETE", "PUT"] {
        let refused = server.ask(&format!("{method} /mcp"), &[&server.bearer(), ACCEPT], "");
        assert_eq!((refused.status, refused.header("allow")), (405, Some("POST")), "{method}");
    }
    let ping = |id: i64| json!({"jsonrpc": "2.0", "id": id, "method": "ping"});
    let note = json!({"jsonrpc": "2.0", "method": "notifications/colours"});
    let batch = json!([
        call(7, "conversation_search", &json!({"query": "red"})),
        ping(8),
        note,
        9,
        [ping(1)]
    ]);
    let answers = server.mcp(&[], &batch).json();
    let mut codes: Vec<String> = answers
        .as_array()
        .unwrap()
        .iter()
        .map(|answer| format!("{} {}", answer["id"], answer["error"]["code"]))
        .collect();
    codes.sort();
    assert_eq!(codes, ["7 null", "8 null", "null -32600", "null -32600"]);
    let many = Value::Array((0..101).map(ping).collect());
    for (headers, batch) in [
        (&[][..], json!([])),
        (&[][..], many),
        (&["MCP-Protocol-Version: 2025-06-18"], json!([ping(1)])),
    ] {
        assert_eq!(server.mcp(headers, &batch).status, 400);
    }
    assert_eq!(server.mcp(&[], &json!([note])).status, 202);
    let raw = |body: &str| server.ask("POST /mcp", &[&server.bearer(), JSON, ACCEPT], body);
    for (body, code) in [("{bad", -32700), ("", -32600), ("5", -32600), ("{}", -32600)] {
        let refused = raw(body);
        assert_eq!(refused.status, 400, "{body}");
        assert_eq!(refused.json()["error"]["code"], json!(code), "{body}");
    }
    let lone = r#"{"jsonrpc":"2.0","id":11,"method":"tools/call","params":{"name":"conversation_search","arguments":{"query":"red \ud83d"}}}"#;
    assert_eq!(raw(lone).status, 200);
    assert!(raw(&"x".repeat((4 << 20) + 1)).status == 413);
    let text = format!(
        "POST /mcp HTTP/1.1\r\nHost: localhost\r\n{}\r\n{JSON}\r\n{ACCEPT}\r\nContent-Length: 50\r\n\r\n{{}}",
        server.bearer()
    );
    let mut cut = server.connect();
    cut.write_all(text.as_bytes()).unwrap();
    cut.shutdown(Shutdown::Write).unwrap();
    assert!([0, 400].contains(&read_answer(&mut BufReader::new(cut)).status));
}

#[test]
fn a_client_that_is_slow_or_greedy_takes_nothing_from_others() {
    let server = HttpServer::start(colours, &[]);
    let mut held: Vec<TcpStream> = Vec::new();
    let half = format!("POST /mcp HTTP/1.1\r\nHost: {}\r\n", server.address);
    let slow_body =
        format!("{half}{}\r\n{JSON}\r\n{ACCEPT}\r\nContent-Length: 100\r\n\r\n{{", server.bearer());
    let begun = Instant::now();
    for number in 0..300 {
        let mut stream = server.connect();
        let start = [&[][..], half.as_bytes(), slow_body.as_bytes()][number % 3];
        stream.write_all(start).unwrap();
        held.push(stream);
    }
    assert_eq!(server.call("conversation_search", &json!({"query": "red"})), REDS);
    // A client that does not send its headers loses its connection.
    let mut silent = held.swap_remove(1);
    let mut rest = Vec::new();
    let _ = silent.read_to_end(&mut rest);
    let took = begun.elapsed();
    assert!(took < Duration::from_secs(40), "{took:?}");
    assert!(
        rest.is_empty() || rest.starts_with(b"HTTP/1.1 408"),
        "{}",
        String::from_utf8_lossy(&rest)
    );
    drop(held);
    let big = format!("{half}X: {}\r\n\r\n", "x".repeat(100_000));
    assert!([0, 431].contains(&server.raw(big.as_bytes()).status));
    let many = format!("{half}{}\r\n", "X: 1\r\n".repeat(200));
    assert!([0, 431].contains(&server.raw(many.as_bytes()).status));
    let declared = format!(
        "{half}{}\r\n{JSON}\r\n{ACCEPT}\r\nContent-Length: 99999999999\r\n\r\n",
        server.bearer()
    );
    let mut stream = server.connect();
    stream.write_all(declared.as_bytes()).unwrap();
    let chunk = vec![b' '; 1 << 20];
    // The server does not read the body to its end.
    let sent = (0..64).take_while(|_| stream.write_all(&chunk).is_ok()).count();
    assert!(sent < 64, "{sent} MiB were taken");
    assert_eq!(server.call("conversation_search", &json!({"query": "red"})), REDS);
}

/// A client may start a server and never read its standard error.
#[test]
fn a_log_that_nobody_reads_holds_nobody_up() {
    let first = HttpServer::start(colours, &[]);
    let socket = first.place.home.join("s");
    let words = ["serve", "--socket", socket.to_str().unwrap(), "--no-archive", "--no-watch"];
    let mut command = first.place.command(&words);
    let mut child = command.stderr(std::process::Stdio::piped()).spawn().unwrap();
    let until = Instant::now() + PATIENCE;
    let connect = || std::os::unix::net::UnixStream::connect(&socket);
    while connect().is_err() {
        assert!(Instant::now() < until, "the server does not start");
        thread::sleep(Duration::from_millis(20));
    }
    let request = b"GET /healthz HTTP/1.1\r\nHost: localhost\r\n\r\n";
    let mut stream = connect().unwrap();
    stream.set_read_timeout(Some(PATIENCE)).unwrap();
    let mut answers = BufReader::new(stream.try_clone().unwrap());
    // A pipe holds 64 KiB, which is about 2,000 lines.
    for number in 0..5_000 {
        stream.write_all(request).unwrap();
        let status = read_answer(&mut answers).status;
        assert_eq!(status, 200, "request {number}");
    }
    let id = rustix::process::Pid::from_child(&child);
    rustix::process::kill_process(id, rustix::process::Signal::TERM).unwrap();
    assert!(child.wait().unwrap().success());
}

#[test]
fn requests_cannot_be_smuggled() {
    let server = HttpServer::start(colours, &[]);
    let inner =
        format!("GET /search?q=red HTTP/1.1\r\nHost: localhost\r\n{}\r\n\r\n", server.bearer());
    let host = format!("Host: {}", server.address);
    let chunked = format!("0\r\n\r\n{inner}");
    let length = chunked.len();
    for headers in [
        format!("{host}\r\nContent-Length: {length}\r\nTransfer-Encoding: chunked"),
        format!("{host}\r\nTransfer-Encoding: chunked\r\nContent-Length: {length}"),
        format!("{host}\r\nTransfer-Encoding: xchunked\r\nContent-Length: {length}"),
        format!("{host}\r\nTransfer-Encoding : chunked\r\nContent-Length: {length}"),
        format!("{host}\r\nTransfer-Encoding: chunked\r\nTransfer-Encoding: identity"),
        format!("{host}\r\nContent-Length: 0\r\nContent-Length: {length}"),
        format!("{host}\r\nContent-Length: +0"),
        format!("{host}\r\nContent-Length: 0x10"),
        format!("{host}\r\nX: a\n{host}"),
        format!("{host}\r\n Transfer-Encoding: chunked"),
    ] {
        let mut stream = server.connect();
        stream
            .write_all(format!("POST /mcp HTTP/1.1\r\n{headers}\r\n\r\n{chunked}").as_bytes())
            .unwrap();
        stream.shutdown(Shutdown::Write).unwrap();
        let mut all = String::new();
        let _ = stream.read_to_string(&mut all);
        let first = all.lines().next().unwrap_or_default().to_owned();
        assert!(!all.contains("200 OK"), "{headers}: {all}");
        assert!(
            first.is_empty() || first.contains(" 400 ") || first.contains(" 401 "),
            "{headers}: {all}"
        );
    }
}

#[test]
fn a_call_ends_when_its_client_goes_or_the_server_stops() {
    let mut server = HttpServer::start(large, &[]);
    let message = call(1, "conversation_search", &slow()).to_string();
    let request = format!(
        "POST /mcp HTTP/1.1\r\nHost: localhost\r\n{}\r\n{JSON}\r\n{ACCEPT}\r\nContent-Length: {}\r\n\r\n{message}",
        server.bearer(),
        message.len()
    );
    // The test gives up more calls than can run at the same time.
    for _ in 0..12 {
        let mut stream = server.connect();
        stream.write_all(request.as_bytes()).unwrap();
        thread::sleep(Duration::from_millis(50));
    }
    let begun = Instant::now();
    let found = server.call("manage_conversation", &json!({"command": "list"}));
    assert!(begun.elapsed() < PATIENCE / 2, "{found}");
    // Calls whose answers are already streams are given up in the same way.
    let mut told = call(2, "conversation_search", &slow());
    told["params"]["_meta"] = json!({"progressToken": 1});
    let told = told.to_string();
    let head = request.split("Content-Length").next().unwrap();
    let streams: Vec<TcpStream> = (0..8)
        .map(|_| {
            let mut stream = server.connect();
            write!(stream, "{head}Content-Length: {}\r\n\r\n{told}", told.len()).unwrap();
            stream
        })
        .collect();
    let mut first = BufReader::new(&streams[0]).lines().map_while(Result::ok);
    assert!(first.any(|line| line.contains("notifications/progress")), "{}", server.log());
    drop(streams);
    let begun = Instant::now();
    let found = server.call("manage_conversation", &json!({"command": "list"}));
    assert!(begun.elapsed() < PATIENCE / 2, "{found}");
    // One call is running when the server is asked to stop.
    let mut stream = server.connect();
    stream.write_all(request.as_bytes()).unwrap();
    thread::sleep(Duration::from_millis(300));
    let begun = Instant::now();
    let id = server.child.id().to_string();
    assert!(Command::new("kill").args(["-TERM", &id]).status().unwrap().success());
    assert!(server.child.wait().unwrap().success(), "{}", server.log());
    assert!(begun.elapsed() < Duration::from_secs(30), "{:?}", begun.elapsed());
}

/// `verbatim web` and `/search` follow the configuration file and the environment.
#[test]
fn the_page_is_served_with_the_settings() {
    let (folder, place) = Place::temporary();
    colours(&place.db);
    let (settings, door) = (folder.path().join("config.toml"), folder.path().join("door"));
    fs::write(&settings, "tools = [\"conversation_search\"]\nwatch = false\n").unwrap();
    let mut command = place.command(&["web", "--no-open", "--no-archive", "127.0.0.1:0"]);
    command.env("VERBATIM_CONFIG", &settings).stdout(fs::File::create(&door).unwrap());
    let log = folder.path().join("log");
    let child = command.stderr(fs::File::create(&log).unwrap()).spawn().unwrap();
    let until = Instant::now() + PATIENCE;
    let (address, token) = loop {
        let text = fs::read_to_string(&door).unwrap();
        if let Some((address, token)) = text.trim().split_once("/#token=") {
            let address = address.strip_prefix("http://").unwrap().parse().unwrap();
            break (address, token.to_owned());
        }
        assert!(Instant::now() < until, "{}", fs::read_to_string(&log).unwrap());
        thread::sleep(Duration::from_millis(20));
    };
    let server = HttpServer { child, address, token, place, log, folder: Some(folder) };
    let listed = server.mcp(&[], &json!({"jsonrpc": "2.0", "id": 2, "method": "tools/list"}));
    assert_eq!(listed.json()["result"]["tools"].as_array().unwrap().len(), 1);
    assert!(server.call("conversation_search", &json!({"query": "dark"})).contains("dark red"));
    let search = |query: &str| {
        let answer = server.ask(&format!("GET /search?{query}"), &[&server.bearer()], "");
        assert_eq!(answer.status, 200, "{answer:?}");
        answer.body
    };
    assert!(search("q=dark").contains("dark red"));
    assert!(search("q=dark&mode=words").contains("dark red"));
    let none = server.ask("GET /search?q=dark&role=nobody", &[&server.bearer()], "");
    assert!(none.status == 400 && none.body.contains("known: user"), "{none:?}");
    // A second command opens the page that runs. Another program's port is no place for a server.
    let port = server.address.port().to_string();
    for command in [&["web", "--no-open"][..], &["web", "--no-open", &port]] {
        let again = server.place.command(command).output().unwrap();
        let printed = String::from_utf8(again.stdout).unwrap();
        assert_eq!(printed, format!("http://{}/#token={}\n", server.address, server.token));
        let errors = String::from_utf8(again.stderr).unwrap();
        assert!(errors.contains("the page runs already"), "{errors}");
    }
    let other = TcpListener::bind("127.0.0.1:0").unwrap();
    let free = other.local_addr().unwrap().port().to_string();
    for command in
        [&["web", "--no-open", &free][..], &["serve", "--http", &free], &["serve", "--http", &port]]
    {
        let taken = server.place.command(command).output().unwrap();
        let errors = String::from_utf8(taken.stderr).unwrap();
        assert!(
            errors.contains("another program listens on") && errors.contains("--http "),
            "{errors}"
        );
    }
    assert!(!server.place.index.exists(), "nothing is watched");
}

#[cfg(unix)]
#[test]
fn the_rights_of_a_unix_socket_decide() {
    use std::os::unix::{fs::PermissionsExt, net::UnixStream};
    let (_folder, path) = folder_with("socket");
    let flag = path.to_str().unwrap();
    for attempt in 0..2 {
        // The socket of a killed server is replaced. A program that does not ask for HTML gets JSON.
        let server = HttpServer::start(colours, &["--socket", flag, "--page"]);
        assert_eq!(fs::metadata(&path).unwrap().permissions().mode() & 0o777, 0o600, "{attempt}");
        let mut stream = UnixStream::connect(&path).unwrap();
        let request = "GET /search?q=green HTTP/1.1\r\nHost: anything\r\nConnection: close\r\n\r\n";
        stream.write_all(request.as_bytes()).unwrap();
        let answer = read_answer(&mut BufReader::new(stream));
        assert_eq!(answer.json()["content"], "green");
        assert_eq!(server.ask("GET /search?q=green", &[], "").status, 401);
        let second =
            server.place.command(&["serve", "--socket", flag, "--no-watch"]).output().unwrap();
        let errors = String::from_utf8(second.stderr).unwrap();
        assert!(errors.contains("cannot listen on"), "{errors}");
    }
    let mut server = HttpServer::start(colours, &["--socket", flag]);
    // The server answers, so it also handles signals.
    assert_eq!(server.ask("GET /healthz", &[], "").status, 200);
    let id = server.child.id().to_string();
    assert!(Command::new("kill").args(["-TERM", &id]).status().unwrap().success());
    assert!(server.child.wait().unwrap().success() && !path.exists(), "{}", server.log());
    // A server that ends leaves the socket of another server alone.
    let mut first = HttpServer::start(colours, &["--socket", flag]);
    fs::remove_file(&path).unwrap();
    let _second = HttpServer::start(colours, &["--socket", flag]);
    assert_eq!(first.ask("GET /healthz", &[], "").status, 200);
    let id = first.child.id().to_string();
    assert!(Command::new("kill").args(["-TERM", &id]).status().unwrap().success());
    assert!(first.child.wait().unwrap().success() && path.exists(), "{}", first.log());
}

#[test]
fn tokens_of_the_user_and_none() {
    let own = "a-token-of-the-users-own-42";
    let (_folder, file) = folder_with("secret");
    fs::write(&file, format!("{own}\n")).unwrap();
    use std::os::unix::fs::PermissionsExt;
    let set = |mode| fs::set_permissions(&file, fs::Permissions::from_mode(mode)).unwrap();
    set(0o600);
    let server = HttpServer::start(colours, &["--token-file", file.to_str().unwrap()]);
    assert!(server.log().contains("the token is in ") && !server.log().contains("--token`"));
    assert_eq!(server.token, "", "none is made");
    let bearer = format!("authorization: BEARER {own}");
    assert_eq!(server.ask("GET /search?q=green", &[&bearer], "").status, 200);
    let command = |words: &[&str]| {
        let mut command = std::process::Command::new(env!("CARGO_BIN_EXE_verbatim"));
        command.env_clear().args(words).arg("--home").arg(&server.place.home);
        Said::of(command.env("VERBATIM_TOKEN", own))
    };
    assert_eq!(command(&["status", "--token"]).out, format!("{own}\n"));
    fs::write(&file, "short").unwrap();
    let weak = ["serve", "--http", "0", "--token-file", file.to_str().unwrap()];
    command(&weak).ends(2).warns("at least 22 characters");
    set(0o604);
    command(&weak).warns("other users may read");
    let open = command(&["serve", "--http", "0.0.0.0:0", "--no-token"]);
    open.ends(2).warns("so it needs a token");
    for flags in [
        &["serve", "--page"][..],
        &["serve", "--no-token"],
        &["serve", "--host", "chats.example.org"],
        &["serve", "--token-file", "x"],
        &["serve", "--socket", "s", "--token-file", "x"],
        &["serve", "--http", "--token-file", "x", "--no-token"],
    ] {
        command(flags).ends(2);
    }
    let open = HttpServer::start(colours, &["--no-token"]);
    assert!(open.log().contains("every user of this computer can read your chats"));
    assert!(!open.log().contains("--token`"), "there is none");
    assert_eq!(open.ask("GET /search?q=green", &[], "").status, 200);
    assert_eq!(open.ask("GET /search?q=green", &["Host: evil.example"], "").status, 403);
    assert_eq!(open.ask("GET /search?q=green", &["Origin: http://evil.example"], "").status, 403);
}

#[test]
fn chatgpt_gets_the_two_tools_that_it_knows() {
    let fill = |db: &Path| {
        let connection =
            database(db, &["The lighthouse keeper counts gulls.", "Twelve gulls today."]);
        let long = "A long day at sea. ".repeat(2_000);
        connection
            .execute_batch("INSERT INTO conversations VALUES ('conv-0002', '1', '1', 'The voyage')")
            .unwrap();
        for at in 0..40 {
            connection
                .execute(
                    "INSERT INTO messages VALUES (?1, 'conv-0002', 'user', ?2, '1700000000', NULL, ?3)",
                    (format!("v{at}"), format!("{long} Leg {at}."), at),
                )
                .unwrap();
        }
    };
    let server = HttpServer::start(fill, &["--page"]);
    let agent = "User-Agent: openai-mcp/1.0.0";
    let list = json!({"jsonrpc": "2.0", "id": 1, "method": "tools/list"});
    let tools = server.mcp(&[agent], &list).json()["result"]["tools"].clone();
    let schema = |name: &str| {
        json!({"type": "object", "properties": {name: {"type": "string"}}, "required": [name],
            "additionalProperties": false})
    };
    let listed: Vec<_> = tools
        .as_array()
        .unwrap()
        .iter()
        .map(|tool| (&tool["name"], &tool["inputSchema"]))
        .collect();
    assert_eq!(listed, [(&json!("search"), &schema("query")), (&json!("fetch"), &schema("id"))]);
    assert!(
        tools.as_array().unwrap().iter().all(|tool| tool["annotations"]["readOnlyHint"] == true)
    );
    let ask = |tool: &str, arguments: Value| {
        let answer = server.mcp(&[agent], &call(1, tool, &arguments)).json();
        assert_eq!(answer["result"]["content"].as_array().unwrap().len(), 1, "{answer}");
        answer["result"]["content"][0]["text"].as_str().unwrap().to_owned()
    };
    let json =
        |text: &str| serde_json::from_str::<Value>(text).unwrap_or_else(|_| panic!("{text}"));
    let found = json(&ask("search", json!({"query": "gulls"})));
    let url = format!("http://{}/c/conv-0001", server.address);
    let first = &found["results"][0];
    assert_eq!((&first["title"], &first["url"]), (&json!("Colours"), &json!(url)), "{found}");
    assert_eq!(first.as_object().unwrap().len(), 3);
    let document = json(&ask("fetch", json!({"id": first["id"]})));
    assert!(document["text"].as_str().unwrap().contains("> Twelve gulls today."), "{document}");
    assert_eq!((&document["id"], &document["url"]), (&first["id"], &json!(url)));
    // A long conversation is read by the ids that continue it, without a gap.
    let (mut id, mut whole) = ("conv-0002".to_owned(), String::new());
    for _ in 0..100 {
        let text = json(&ask("fetch", json!({"id": id})))["text"].as_str().unwrap().to_owned();
        whole.push_str(&text);
        match text.split_once("Next: id ") {
            Some((_, next)) => id = next.split(".*").next().unwrap().to_owned(),
            None => break,
        }
    }
    for at in 0..40 {
        assert!(whole.contains(&format!(" Leg {at}.")), "leg {at}");
    }
    assert!(ask("fetch", json!({"id": "nowhere-at-all"})).contains("there is no conversation"));
    assert!(ask("search", json!({"query": ""})).contains("query is required"));
    assert!(ask("search", json!({"query": "x", "limit": 5})).contains("has no argument"));
    // Other clients get the usual tools, and `--tools` decides for all clients.
    assert_eq!(server.mcp(&[], &list).json()["result"]["tools"].as_array().unwrap().len(), 5);
    let info = json!({"name": "openai-mcp", "version": "1.0.0"});
    let hello = json!({"jsonrpc": "2.0", "id": 1, "method": "initialize",
        "params": {"protocolVersion": "2025-06-18", "capabilities": {}, "clientInfo": info}});
    let names = |flags: &[&str]| -> Vec<String> {
        let words = [&["serve", "--no-watch", "--no-archive"], flags].concat();
        let mut child = server.place.command(&words).stdin(Stdio::piped()).spawn().unwrap();
        let mut input = child.stdin.take().unwrap();
        let begun = json!({"jsonrpc": "2.0", "method": "notifications/initialized"});
        writeln!(input, "{hello}\n{begun}\n{list}").unwrap();
        let mut lines = BufReader::new(child.stdout.take().unwrap()).lines();
        let listed: Value = serde_json::from_str(&lines.nth(1).unwrap().unwrap()).unwrap();
        drop(input);
        child.wait().unwrap();
        let tools = listed["result"]["tools"].as_array().unwrap().iter();
        tools.map(|tool| tool["name"].as_str().unwrap().to_owned()).collect()
    };
    assert_eq!(names(&[]), ["search", "fetch"]);
    assert_eq!(names(&["--tools", "chatgpt"]), ["search", "fetch"]);
    assert_eq!(
        names(&["--tools", "agent"]),
        ["query_conversations", "search", "read", "manage_conversation"]
    );
    let both = server.place.command(&["serve", "--tools", "chatgpt,read"]).output().unwrap();
    assert!(String::from_utf8(both.stderr).unwrap().contains("chatgpt cannot be combined"));
}
