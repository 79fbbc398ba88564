//! The cost of a refresh beside that of a build, and the speed of the refreshed index beside a new one.

use std::{env, fmt::Write, fs, path::Path, process::Command};

use anyhow::Result;
use rusqlite::Connection;

use crate::haystack::Source;
use crate::measure::Cost;
use crate::ours::Ours;
use crate::race::{Racer, heat};
use crate::report::{self, Machine};
use crate::stage::{self, Stage};
use crate::{classes, say};

/// The share of new messages, and of changed messages, as a divisor.
const ONE_IN: usize = 200;

/// Measures and returns the report.
pub(crate) fn measure(work: &Path, messages: usize, seconds: f64) -> Result<String> {
    let original = Stage::generate(work, messages)?;
    let database = work.join(format!("refresh-{messages}.db"));
    let (refreshed, anew) = (database.with_extension("refreshed"), database.with_extension("anew"));
    fs::copy(original.database(), &database)?;
    for folder in [&refreshed, &anew] {
        if folder.exists() {
            fs::remove_dir_all(folder)?;
        }
    }
    let child = |work: &str, index: &Path, threads: usize| -> Result<Cost> {
        let mut command = Command::new(env::current_exe()?);
        stage::answer(command.arg(work).args([&database, index]).arg(threads.to_string()))
    };
    say(format_args!("building"));
    let built = child("build-ours", &refreshed, 1)?;
    say(format_args!("changing one message in {ONE_IN} and adding as many"));
    change(&database)?;
    say(format_args!("refreshing"));
    let refresh = child("refresh-ours", &refreshed, 1)?;
    child("build-ours", &anew, 2)?;

    let source = Source::read(&database)?;
    let sides: [Box<dyn Racer>; 2] =
        [Box::new(Ours::open(&database, &anew)), Box::new(Ours::open(&database, &refreshed))];
    let mut rows = String::new();
    let mut ratios = Vec::new();
    for class in classes::sample(&source) {
        let figures = heat(&class, &sides, seconds)?.figures;
        let [Some(anew), Some(refreshed)] = &figures[..] else { continue };
        let ratio = refreshed.median / anew.median;
        ratios.push(ratio);
        say(format_args!("{}: {ratio:.2}", class.name));
        writeln!(
            rows,
            "| {} | {} | {} | {ratio:.2} |",
            class.name,
            report::time(anew.median),
            report::time(refreshed.median)
        )?;
    }
    let worst = ratios.iter().copied().fold(0.0, f64::max);
    let median = crate::measure::median(ratios);
    Ok(format!(
        "# A refreshed index beside one built anew\n\n\
         {messages} generated messages; then one in {ONE_IN} got another text and as many were added. {}.\n\
         `cargo bench --bench search -- --refresh --messages {messages}` measures it again.\n\n\
         A build may take {} MiB of memory and 128 MiB beside it.\n\n\
         | | CPU | wall | memory |\n|---|--:|--:|--:|\n\
         | build, one thread | {:.1} s | {:.1} s | {} MiB |\n\
         | refresh, one thread | {:.2} s | {:.2} s | {} MiB |\n\
         | share | {:.1} % | {:.1} % | |\n\n\
         | query class | built anew | refreshed | ratio |\n|---|--:|--:|--:|\n{rows}\n\
         Ratios: median {median:.2}, worst {worst:.2}.\n",
        Machine::this(),
        crate::ours::MEMORY >> 20,
        built.cpu,
        built.wall,
        built.peak_anonymous.unwrap_or_default() / 1024,
        refresh.cpu,
        refresh.wall,
        refresh.peak_anonymous.unwrap_or_default() / 1024,
        100.0 * refresh.cpu / built.cpu,
        100.0 * refresh.wall / built.wall,
    ))
}

/// Changes a share of the messages and adds as many.
fn change(database: &Path) -> Result<()> {
    let mut connection = Connection::open(database)?;
    let transaction = connection.transaction()?;
    let one_in = ONE_IN as i64;
    transaction.execute(
        "UPDATE messages SET content = content || ' (edited)' WHERE rowid % ?1 = 7",
        [one_in],
    )?;
    transaction.execute(
        "INSERT INTO messages (id, conversation_id, role, content, create_time, update_time, position)
         SELECT 'added-' || id, conversation_id, role, 'again: ' || content,
                create_time + 1, update_time, position
         FROM messages WHERE rowid % ?1 = 11",
        [one_in],
    )?;
    transaction.commit()?;
    Ok(())
}
