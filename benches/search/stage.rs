//! The databases and indexes of a run, in the work folder: generated, copied, built in child processes, kept.

use std::io::{BufRead, BufReader};
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};
use std::time::{Instant, UNIX_EPOCH};
use std::{env, fs};

use anyhow::{Context, Result, bail};
use rusqlite::{Connection, OpenFlags};
use serde::{Deserialize, Serialize, de::DeserializeOwned};

use crate::classes::Literal;
use crate::measure::{Cost, median};
use crate::ours::Ours;
use crate::race::Racer;
use crate::sqlite::Baseline;
use crate::{corpus, say};

/// The number of process starts that measure the time to the first answer.
const STARTS: usize = 9;

/// One database, with the index of each side.
pub(crate) struct Stage {
    database: PathBuf,
}

/// The index of one side.
#[derive(Clone, Debug, Serialize, Deserialize)]
pub(crate) struct Built {
    #[serde(skip)]
    pub(crate) database: PathBuf,
    pub(crate) threads: usize,
    pub(crate) build: Cost,
    /// The cost of optimizing the index, if the side has this step.
    pub(crate) optimize: Cost,
    /// Bytes on disk beyond the database itself.
    pub(crate) disk: u64,
    /// The version of SQLite that built it.
    sqlite: String,
}

impl Stage {
    /// Makes the corpus of `messages` messages, unless it exists.
    pub(crate) fn generate(work: &Path, messages: usize) -> Result<Stage> {
        say(format_args!("generating {messages} messages"));
        Ok(Stage { database: corpus::database(work, messages)? })
    }

    /// Copies the database at `path`, unless there is a copy of its present state.
    pub(crate) fn copy(work: &Path, path: &Path) -> Result<Stage> {
        let state = fs::metadata(path).with_context(|| path.display().to_string())?;
        let stem = path.file_stem().unwrap_or_default().to_string_lossy();
        let changed = state.modified()?.duration_since(UNIX_EPOCH)?.as_nanos();
        let database = work.join(format!("copy-{stem}-{}-{changed}.db", state.len()));
        if !database.exists() {
            say(format_args!("copying {}", path.display()));
            let unfinished = database.with_extension("unfinished");
            let _ = fs::remove_file(&unfinished);
            let original = Connection::open_with_flags(path, OpenFlags::SQLITE_OPEN_READ_ONLY)?;
            original.execute("VACUUM INTO ?1", [unfinished.to_string_lossy()])?;
            fs::rename(&unfinished, &database)?;
        }
        Ok(Stage { database })
    }

    pub(crate) fn database(&self) -> &Path {
        &self.database
    }

    /// Builds the indexes of `baseline` on its own copy, unless an earlier run did so.
    pub(crate) fn baseline(&self, baseline: Baseline, rebuild: bool) -> Result<Built> {
        let copy = match baseline {
            Baseline::Like => self.database.clone(),
            Baseline::TimeIndex => self.database.with_extension("time-index.db"),
            Baseline::Fts5 => self.database.with_extension("fts5.db"),
            Baseline::Fts5Tuned => self.database.with_extension("fts5-tuned.db"),
        };
        let figures = copy.with_extension("json");
        if !rebuild
            && let Ok(json) = fs::read_to_string(&figures)
            && let Ok(built) = serde_json::from_str::<Built>(&json)
            && built.sqlite == rusqlite::version()
            && copy.exists()
        {
            return Ok(Built { database: copy, ..built });
        }
        let _ = fs::remove_file(&figures);
        let (mut build, mut optimize) = (Cost::default(), Cost::default());
        if baseline != Baseline::Like {
            say(format_args!("building {baseline:?}"));
            fs::copy(&self.database, &copy)?;
            let name = clap::ValueEnum::to_possible_value(&baseline).expect("none is skipped");
            let child = |work: &str| -> Result<Cost> {
                let args = [work.as_ref(), name.get_name().as_ref(), copy.as_os_str()];
                answer(Command::new(env::current_exe()?).args(args))
            };
            build = child("build-baseline")?;
            optimize = child("optimize-baseline")?;
        }
        let disk = fs::metadata(&copy)?.len().saturating_sub(fs::metadata(&self.database)?.len());
        let sqlite = rusqlite::version().to_owned();
        let built = Built { database: copy, threads: 1, build, optimize, disk, sqlite };
        fs::write(&figures, serde_json::to_string(&built)?)?;
        Ok(built)
    }

    fn index(&self) -> PathBuf {
        self.database.with_extension("index")
    }

    /// Builds our index with one thread, then with two; the last one stays.
    pub(crate) fn ours(&self) -> Result<Vec<Built>> {
        let index = self.index();
        let mut built = Vec::new();
        for threads in [1, 2] {
            say(format_args!("building ours, threads: {threads}"));
            if index.exists() {
                fs::remove_dir_all(&index)?;
            }
            let build = answer(
                Command::new(env::current_exe()?)
                    .arg("build-ours")
                    .args([&self.database, &index])
                    .arg(threads.to_string()),
            )?;
            built.push(Built {
                database: self.database.clone(),
                threads,
                build,
                optimize: Cost::default(),
                disk: size(&index)?,
                sqlite: rusqlite::version().to_owned(),
            });
        }
        Ok(built)
    }

    pub(crate) fn open_ours(&self) -> Box<dyn Racer> {
        Box::new(Ours::open(&self.database, &self.index()))
    }

    /// Returns the median seconds from starting a process that gives one answer to its end, over different literals.
    pub(crate) fn first_answer(&self, literals: &[&Literal]) -> Result<f64> {
        let mut seconds = Vec::new();
        for literal in literals.iter().step_by(literals.len().div_ceil(STARTS).max(1)) {
            let mut command = Command::new(env::current_exe()?);
            command.arg("first").args([&self.database, &self.index()]);
            command.arg("--").arg(&literal.text);
            let start = Instant::now();
            let _: usize = answer(&mut command)?;
            seconds.push(start.elapsed().as_secs_f64());
        }
        Ok(median(seconds))
    }

    /// Returns the anonymous memory of a process that has answered `literals`, in KiB.
    pub(crate) fn serving(&self, literals: &[&Literal]) -> Result<Option<u64>> {
        let file = self.database.with_extension("literals.json");
        fs::write(&file, serde_json::to_string(literals)?)?;
        let mut command = Command::new(env::current_exe()?);
        answer(command.arg("serve").args([&self.database, &self.index(), &file]))
    }
}

/// Runs a child of this program to its end and returns the one line it answers with.
pub(crate) fn answer<T: DeserializeOwned>(command: &mut Command) -> Result<T> {
    let mut child = command.stdout(Stdio::piped()).spawn()?;
    let mut line = String::new();
    let stdout = child.stdout.take().expect("stdout is piped");
    BufReader::new(stdout).read_line(&mut line)?;
    let status = child.wait()?;
    if !status.success() {
        bail!("{command:?} ended with {status}");
    }
    Ok(serde_json::from_str(&line)?)
}

/// Returns the bytes of all files in a folder.
fn size(folder: &Path) -> Result<u64> {
    let mut bytes = 0;
    for entry in fs::read_dir(folder)? {
        let entry = entry?;
        let kind = entry.metadata()?;
        bytes += if kind.is_dir() { size(&entry.path())? } else { kind.len() };
    }
    Ok(bytes)
}
