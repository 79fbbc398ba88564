//! `verbatim demo`: shows the program on sample chats.

use super::import::error::Error as ImportError;
use super::import::write_report;
use super::{indexing, search};
use crate::cli::command::{CommandArgs, Facts, Invocation, Terminal};
use crate::cli::error::Result;
use crate::cli::settings::engine_config;
use crate::cli::terminal::output::FOUND;
use crate::cli::terminal::wrap::wrapped;
use verbatim_base::{call::Call, private};
use verbatim_engine::{Branches, Config, Engine, ImportOptions};

/// Try it on a small sample of chats that comes with the program
///
/// Imports two sample exports (ChatGPT and Claude.ai, in seven languages), searches them, and prints
/// the lines to paste into an AI client's configuration. Everything it writes is in the folder demo/
/// of the home folder, apart from your own chats; you can delete that folder at any time.
///
///     verbatim demo
#[derive(Debug, clap::Args)]
#[command(verbatim_doc_comment)]
pub(crate) struct Args {}

/// The sample exports: file name and content.
const EXPORTS: [(&str, &str); 2] = [
    ("chatgpt.json", include_str!("demo/chatgpt.json")),
    ("claude.json", include_str!("demo/claude.json")),
];

const QUERIES: [&str; 5] = ["borrow", "posting list", "京都", "падеж", "🍵"];

impl CommandArgs for Args {
    fn facts(&self) -> Facts {
        Facts { takes_db: false, ..Facts::INDEXES }
    }

    fn run(&self, invocation: Invocation<'_>) -> Result<u8> {
        let Invocation { engine, terminal: Terminal { environment, out }, .. } = invocation;
        let home = engine.config().home.join("demo");
        let config = Config { home: home.clone(), ..Config::default() };
        let database = config.db_folder().join("verbatim.db");
        let folder = home.join("exports");
        private::create_dir_all(&folder)
            .map_err(|source| ImportError::Sample { path: folder.clone(), source })?;
        let exports = EXPORTS.map(|(name, _)| folder.join(name));
        for (path, (_, content)) in exports.iter().zip(EXPORTS) {
            private::write(path, content.as_bytes())
                .map_err(|source| ImportError::Sample { path: path.clone(), source })?;
        }
        let engine = Engine::new(config);
        let options = ImportOptions {
            branches: Branches::Shown,
            resources: indexing::resources(environment),
            on_wait: None,
        };
        let imported = engine
            .import(&exports, options, &Call::default(), &|_| {})
            .map_err(ImportError::from)?;
        writeln!(out, "Two sample exports, as ChatGPT and Claude.ai send them:")?;
        for export in exports {
            writeln!(out, "  {}", engine_config::short(&export, environment))?;
        }
        writeln!(out, "\nverbatim import:")?;
        write_report(&imported.report, false, None, out)?;
        writeln!(out, "Database: {}", engine_config::short(&database, environment))?;
        for query in QUERIES {
            writeln!(out, "\nverbatim search {query:?}")?;
            search::show_few(query, &engine, Terminal { environment, out })?;
        }
        let path = engine_config::pasted(&database, environment);
        writeln!(out, "\nTo search the sample yourself: verbatim search --db {path} borrow")?;
        let paste =
            "To let an AI client search these chats, paste this into its MCP configuration:";
        writeln!(out, "\n{paste}\n")?;
        // The macro `json!` would sort the keys, so the text is formatted here.
        let [program, database] = [&environment.program, &database]
            .map(|path| serde_json::Value::from(path.to_string_lossy()));
        writeln!(
            out,
            r#"{{
  "mcpServers": {{
    "verbatim": {{
      "command": {program},
      "args": ["serve", "--db", {database}]
    }}
  }}
}}"#
        )?;
        let next =
            "Your own chats: `verbatim import`, and then `verbatim connect` for your AI client.";
        writeln!(out, "\n{}", wrapped(next, environment.columns, 2))?;
        Ok(FOUND)
    }
}
