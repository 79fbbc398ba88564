//! `verbatim demo`: shows the program on sample chats.

use std::{
    io::{self, Write},
    ops::ControlFlow,
    path::{Path, PathBuf},
};

use serde_json::json;

use super::{
    error::Result,
    import as import_command,
    output::{FOUND, clock, harmless, json_line},
};
use crate::{
    engine::{
        Branches, Config, Engine,
        import::{self, Report},
    },
    model::{Hit, Request, Stop},
    private,
    text::shell::quoted,
};

/// Try it on a small sample of chats that comes with the program
///
/// Imports two sample exports (ChatGPT and Claude.ai, in seven languages), searches them, and prints
/// the lines to paste into an AI client's configuration. Everything it writes is in the folder demo/
/// of the home folder, apart from your own chats; you can delete that folder at any time.
#[derive(Debug, clap::Args)]
#[command(verbatim_doc_comment)]
pub(super) struct Args {
    /// Print one JSON object: database, exports, conversations, messages
    #[arg(long)]
    json: bool,
}

/// The sample exports: file name and content.
const EXPORTS: [(&str, &str); 2] = [
    ("chatgpt.json", include_str!("demo/chatgpt.json")),
    ("claude.json", include_str!("demo/claude.json")),
];

/// Texts that the demo searches for.
const QUERIES: [&str; 5] = ["borrow", "posting list", "京都", "падеж", "🍵"];

/// Imports and searches the sample. `program` is the command for the client's configuration.
pub(super) fn run(args: &Args, home: &Path, program: &Path, out: &mut dyn Write) -> Result<u8> {
    let home = home.join("demo");
    let config = Config { home: home.clone(), ..Config::default() };
    let database = config.db_folder().join("verbatim.db");
    let exports = write_exports(&home.join("exports"))
        .map_err(|(path, source)| import_command::Error::Sample { path, source })?;
    let report = import::import(&exports, &database, Branches::Shown, &|_| {})
        .map_err(import_command::Error::from)?;
    if args.json {
        let (conversations, messages) = (report.tally.conversations, report.tally.messages);
        let counts = json!({
            "database": database, "exports": exports, "conversations": conversations, "messages": messages,
        });
        json_line(out, &counts)?;
        return Ok(FOUND);
    }
    introduce(&exports, &report, &database, out)?;
    let engine = Engine::new(config);
    for query in QUERIES {
        search(&engine, query, out)?;
    }
    explain(program, &database, out)?;
    Ok(FOUND)
}

/// Writes the sample exports to a folder; the error names the file.
fn write_exports(folder: &Path) -> Result<Vec<PathBuf>, (PathBuf, io::Error)> {
    private::create_dir_all(folder).map_err(|error| (folder.to_owned(), error))?;
    let write = |(name, content): (&str, &str)| {
        let path = folder.join(name);
        match private::write(&path, content.as_bytes()) {
            Ok(()) => Ok(path),
            Err(error) => Err((path, error)),
        }
    };
    EXPORTS.into_iter().map(write).collect()
}

fn introduce(
    exports: &[PathBuf],
    report: &Report,
    database: &Path,
    out: &mut dyn Write,
) -> io::Result<()> {
    writeln!(out, "Two sample exports, as ChatGPT and Claude.ai send them:")?;
    for export in exports {
        writeln!(out, "  {}", export.display())?;
    }
    writeln!(out, "\nverbatim import:")?;
    import_command::write_report(report, out)?;
    writeln!(out, "Database: {}", database.display())
}

fn search(engine: &Engine, query: &str, out: &mut dyn Write) -> Result<()> {
    writeln!(out, "\nverbatim search {query:?}")?;
    let request = Request { text: query.to_owned(), limit: Some(3), ..Request::default() };
    let mut written = Ok(());
    engine.exact(&request, &Stop::never(), &mut |hit| {
        written = write_hit(&hit, query, out);
        if written.is_ok() { ControlFlow::Continue(()) } else { ControlFlow::Break(()) }
    })?;
    Ok(written?)
}

/// Writes a hit's date, role and title, and its first matching line.
fn write_hit(hit: &Hit, query: &str, out: &mut dyn Write) -> io::Result<()> {
    writeln!(out, "  {}  {}  {}", clock(hit), hit.role, harmless(&hit.title))?;
    let matches = |line: &&str| line.to_ascii_lowercase().contains(&query.to_ascii_lowercase());
    match hit.content.lines().find(matches) {
        Some(line) => writeln!(out, "    {}", harmless(line)),
        None => writeln!(out, "    (in the title)"),
    }
}

/// Writes the next steps: a client's configuration, and the user's own chats.
fn explain(program: &Path, database: &Path, out: &mut dyn Write) -> io::Result<()> {
    let path = quoted(&database.to_string_lossy());
    writeln!(out, "\nTo search the sample yourself: verbatim search --db {path} borrow")?;
    // The macro `json!` would sort the keys, so the text is formatted here.
    let [program, database] =
        [program, database].map(|path| serde_json::Value::from(path.to_string_lossy()));
    let server = format!(
        r#"{{
  "mcpServers": {{
    "verbatim": {{
      "command": {program},
      "args": ["serve", "--db", {database}]
    }}
  }}
}}"#
    );
    writeln!(
        out,
        "\nTo let an AI client search these chats, paste this into its MCP configuration:\n"
    )?;
    writeln!(out, "{server}")?;
    writeln!(
        out,
        "\nYour own chats: `verbatim import`, and then `verbatim connect` for your AI client."
    )
}
