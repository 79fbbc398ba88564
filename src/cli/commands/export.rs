//! `verbatim export`: conversations as Markdown files.

use std::collections::{BTreeMap, HashMap, HashSet};
use std::ffi::OsStr;
use std::fmt::Write as _;
use std::fs;
use std::io::{self, BufRead, BufReader, Read, Seek};
use std::ops::ControlFlow;
use std::path::{Path, PathBuf};
use std::sync::Arc;

use sha2::{Digest, Sha256};
use unicode_normalization::UnicodeNormalization;

use super::filters::{self, FilterArgs, in_working_folder, refused};
use super::show;
use crate::cli::command::{CommandArgs, Facts, Invocation, OutputForm, Reads, Terminal};
use crate::cli::error::{Error, Result, usage};
use crate::cli::settings::environment::Environment;
use crate::cli::terminal::notes;
use crate::cli::terminal::output::{FOUND, NOTHING, complain, confirm_deletion, counted, grouped};
use crate::cli::terminal::progress::Step;
use verbatim_answer::asked::{Asked, filled};
use verbatim_answer::clock::Clock;
use verbatim_answer::conversation::{file_name, provenance};
use verbatim_answer::markdown::add_message;
use verbatim_answer::typed::TypedQuery;
use verbatim_base::call::Call;
use verbatim_base::files;
use verbatim_base::model::{Hit, Provenance};
use verbatim_base::private::{self, FileLock};
use verbatim_engine::{
    About, Attachment, AttachmentFiles, Config, ConversationIds, Engine, ListOptions, Make, Scope,
    Session,
};
use verbatim_text::{date, shell, snippet};

/// The number of conversations whose services are looked up in one step.
const PART: usize = 500;

const MAX_ID: usize = 8;

/// The maximum number of bytes read of a file to find its conversation.
const MAX_START: u64 = 4 << 10;

const MAX_ENDING: usize = 8;

const ATTACHMENTS: &str = "attachments";

/// The file with the hashes of the written files, in the exported folder.
const RECORD: &str = ".verbatim-export.json";

const LOCK: &str = ".verbatim-export.lock";

/// The number of attempts to take the lock, 10 ms apart, before the wait is told.
const ATTEMPTS: u32 = 50;

const NO_YEAR: &str = "undated";

/// Write conversations as Markdown files
///
///     verbatim export ~/Notes/chats
///     verbatim export ~/Notes/work --project parser --since 2025-01
///     verbatim export ~/Notes/rust --search "borrow checker"
///
/// Writes a file for each conversation into a folder for each year: its text in Markdown below a front
/// matter that Obsidian and others read. Filters choose conversations; each is written whole. Run it
/// again to bring the files up to date: a file whose conversation changed is written over, the others
/// stay as they are. Files that you edited stay too, and files that no export wrote. The pictures and
/// attachments that the import kept go to a folder `attachments` beside them, and each message links to
/// its own.
#[derive(Debug, clap::Args)]
#[command(verbatim_doc_comment)]
pub(crate) struct Args {
    /// The folder; it is created if it does not exist
    #[arg(value_name = "FOLDER")]
    target: PathBuf,
    /// Only conversations that contain this text
    #[arg(long, value_name = "TEXT", value_parser = filled)]
    search: Option<String>,
    #[command(flatten)]
    filters: FilterArgs,
}

impl CommandArgs for Args {
    fn facts(&self) -> Facts {
        Facts {
            reads: Reads::EverySource,
            writes: false,
            takes_db: true,
            makes_vectors: false,
            may_be_torn: true,
            waits_for: Some("looking up conversations"),
            form: OutputForm::AsItIs,
        }
    }

    fn run(&self, invocation: Invocation<'_>) -> Result<u8> {
        let Invocation { engine, terminal: Terminal { environment, out }, .. } = invocation;
        let call = Call::default();
        let clock = environment.clock();
        let (mut scope, unknown) = self.filters.scope(engine, clock, &call)?;
        notes::print(&unknown);
        refuse_shared(&self.target, environment, engine.config())?;
        if let Some(text) = &self.search {
            let typed = TypedQuery::read(text, None, engine, clock, &call, in_working_folder)
                .map_err(refused)?;
            let mut asked = Asked { filters: self.filters.within(&[]), ..Asked::of(text) };
            asked.read_as(typed.asked);
            let (found_in, _) = filters::scope(&asked.filters, engine, clock, &call)?;
            scope.conversations = Some(Arc::new(containing(&asked, found_in, engine, &call)?));
        }
        let listed = engine.all_sources().list(&scope, 0..usize::MAX, ListOptions::BRIEF, &call)?;
        notes::print(&listed.notes);
        if listed.abouts.is_empty() {
            complain("no conversation is chosen, so nothing was written");
            return Ok(NOTHING);
        }
        let writes_all = self.search.is_none() && self.filters.is_empty();
        if writes_all && !environment.can_ask && has_other_files(&self.target) {
            return Err(among_others(&self.target));
        }
        if writes_all && environment.can_ask && !was_exported_to(&self.target) {
            let all = counted(listed.abouts.len(), "conversation");
            complain(&self.alternative());
            if !confirm_deletion(&format!(
                "Write all {all} into {}?",
                absolute(&self.target).display()
            ))? {
                complain("nothing was written");
                return Ok(NOTHING);
            }
        }
        private::create_dir_all(&self.target).map_err(|error| failed(&self.target, error))?;
        // Two exports into one folder run one after the other, because the second needs the record that
        // the first writes.
        let lock = self.target.join(LOCK);
        let _lock =
            match FileLock::try_acquire(&lock, ATTEMPTS).map_err(|error| failed(&lock, error))? {
                Some(taken) => taken,
                None => {
                    complain(&format!("waiting for another export into {}", self.target.display()));
                    FileLock::wait(&lock).map_err(|error| failed(&lock, error))?
                }
            };
        let mut files = ExportedFiles::open(&self.target);
        let step = Step::begin(environment, "Exporting");
        let [mut written, mut unchanged, mut kept] = [0_u64; 3];
        let mut attachments = 0;
        let kept_files = AttachmentFiles::from_config(engine.config());
        let mut done = 0;
        for part in listed.abouts.chunks(PART) {
            let services = provenance(engine, part, &call)?;
            for about in part {
                done += 1;
                step.count(done, listed.abouts.len());
                let Some(session) = engine.find(&call).session(about.source, &about.id, false)?
                else {
                    continue;
                };
                let path = files.path_for(about, clock);
                let attached = show::attachments(engine, about.source, &about.id);
                let mut links = Vec::new();
                for link in links_of(&attached, about) {
                    match kept_files.open(link.attachment) {
                        Ok(mut content) => {
                            let target = path.with_file_name(&link.place);
                            files
                                .copy(&mut content, &target, link.attachment.bytes)
                                .map_err(|error| failed(&target, error))?;
                            links.push(link);
                        }
                        Err(error) => complain(&error.to_string()),
                    }
                }
                attachments += links.len();
                let of_service = services.get(&(about.source, about.id.clone()));
                let text = markdown(&session, &links, of_service, clock);
                let text = text.expect("a text can be written");
                match files
                    .write(&path, &about.id, text.as_bytes())
                    .map_err(|error| failed(&path, error))?
                {
                    ExportedFile::Written => written += 1,
                    ExportedFile::Unchanged => unchanged += 1,
                    ExportedFile::Kept => kept += 1,
                }
            }
        }
        step.clear();
        files.save_record().map_err(|error| failed(&self.target.join(RECORD), error))?;
        let all = written + unchanged + kept;
        if let Some(first) = files.kept.first() {
            let all = counted(files.kept.len(), "file");
            let first = first.display();
            complain(&format!(
                "kept as now: {all} that no export wrote, or that changed after the last export, such as {first}; \
             move it away to have it written"
            ));
        }
        let conversations = counted(all, "conversation");
        let folder = self.target.display();
        let written = grouped(written);
        let unchanged = grouped(unchanged);
        writeln!(out, "{conversations} in {folder}: {written} written, {unchanged} unchanged")?;
        if attachments > 0 {
            writeln!(out, "{} with them", counted(attachments, "attachment"))?;
        }
        Ok(if all > 0 { FOUND } else { NOTHING })
    }
}

impl Args {
    /// Returns how to export only some conversations.
    fn alternative(&self) -> String {
        let text = self.target.to_string_lossy();
        let looks_like_words = !self.target.exists() && !text.contains(['/', '\\', '.', '~']);
        let text = if looks_like_words { shell::quoted(&text) } else { "TEXT".to_owned() };
        format!(
            "only those with a text: verbatim export --search {text} FOLDER; filters choose too"
        )
    }
}

fn absolute(path: &Path) -> PathBuf {
    dunce::canonicalize(path)
        .or_else(|_| std::path::absolute(path))
        .unwrap_or_else(|_| path.to_owned())
}

/// Refuses a folder in which the files of an export would lie among others that matter: the root, the folder of the
/// user, and the home of this program.
fn refuse_shared(target: &Path, environment: &Environment, config: &Config) -> Result<()> {
    let target = absolute(target);
    let user = environment.user_folder.as_deref().map(absolute);
    if target.parent().is_none()
        || user.is_some_and(|user| user == target)
        || target == absolute(&config.home)
    {
        return Err(among_others(&target));
    }
    Ok(())
}

fn among_others(target: &Path) -> Error {
    usage(format!(
        "{}: nothing was written, because the files would lie among others; name a folder of its own, such as my-chats",
        target.display()
    ))
}

/// Returns whether a folder has files, and no export into it was made.
fn has_other_files(target: &Path) -> bool {
    !was_exported_to(target) && paths_in(target).next().is_some()
}

fn was_exported_to(target: &Path) -> bool {
    [RECORD, LOCK].iter().any(|name| target.join(name).exists())
}

/// Returns the conversations with a message or a title that matches.
fn containing(
    asked: &Asked,
    scope: Scope,
    engine: &Engine,
    call: &Call,
) -> Result<ConversationIds> {
    let search = asked.search(engine, scope, call)?;
    let mut found = ConversationIds::new();
    let make: Make<'_, _> = &|kind, hit: Hit<'_>| Some((kind, hit.conversation_id.into_owned()));
    search.each(None, make.into(), &mut |(kind, id)| {
        found.entry(kind).or_default().insert(id);
        ControlFlow::Continue(())
    })?;
    Ok(found)
}

struct Link<'a> {
    attachment: &'a Attachment,
    name: String,
    /// The path relative to the folder of the conversation's file, with `/` between its parts.
    place: String,
}

/// Returns links to the attachments of a conversation. Their file names are unique and valid on
/// every system.
fn links_of<'a>(attachments: &'a [Attachment], about: &About) -> Vec<Link<'a>> {
    let mut given = HashSet::new();
    let mut links = Vec::new();
    for attachment in attachments {
        let (stem, ending) = name_of(attachment);
        let mut name = format!("{stem}.{ending}");
        let mut number = 1;
        while !given.insert(name.to_lowercase()) {
            number += 1;
            name = format!("{stem} {number}.{ending}");
        }
        let place = format!("{ATTACHMENTS}/{}/{name}", file_name(&about.id));
        links.push(Link { attachment, name, place });
    }
    links
}

/// Returns the file name of an attachment and its extension. The extension comes from the name in
/// the export, or else from the media type.
fn name_of(attachment: &Attachment) -> (String, String) {
    let name = Path::new(&attachment.name);
    let stem = name.file_stem().map(|stem| stem.to_string_lossy()).unwrap_or_default();
    let given = name.extension().map(|ending| ending.to_string_lossy()).unwrap_or_default();
    let is_plain = !given.is_empty()
        && given.len() <= MAX_ENDING
        && given.bytes().all(|byte| byte.is_ascii_alphanumeric());
    let by_type = attachment.extension();
    match &*given {
        // Claude.ai exports only the text of such a document.
        "pdf" | "docx" | "xlsx" | "pptx" if by_type == "txt" => {
            (file_name(&attachment.name), "txt".into())
        }
        given if is_plain && given != "dat" => (file_name(&stem), given.to_owned()),
        _ => (file_name(&stem), by_type.to_owned()),
    }
}

/// Returns whether two files of the same length have the same content.
fn is_same(one: &mut fs::File, other: &mut fs::File) -> io::Result<bool> {
    let mut one = BufReader::new(one);
    let mut other = BufReader::new(other);
    loop {
        let a = one.fill_buf()?;
        let b = other.fill_buf()?;
        let length = a.len().min(b.len());
        if a[..length] != b[..length] {
            return Ok(false);
        }
        if length == 0 {
            return Ok(true);
        }
        one.consume(length);
        other.consume(length);
    }
}

enum ExportedFile {
    Written,
    Unchanged,
    /// The file stays as it is, because no export wrote it as it is now.
    Kept,
}

struct ExportedFiles {
    folder: PathBuf,
    /// The hashes of the files as exports wrote them, by path relative to the folder.
    written: BTreeMap<String, String>,
    /// The files of earlier exports. The key is a file's first lines, which contain the conversation's id.
    before: HashMap<String, PathBuf>,
    /// The paths that this export has used, as [`same_name`] returns them.
    given: HashSet<String>,
    kept: Vec<PathBuf>,
}

impl ExportedFiles {
    fn open(folder: &Path) -> ExportedFiles {
        // Only folders of years are read, so files that the user moved elsewhere stay as they are.
        let before = paths_in(folder)
            .filter(|year| is_year(year))
            .flat_map(|year| paths_in(&year))
            .filter(|file| file.to_str().is_some_and(|name| name.ends_with(").md")))
            .filter_map(|file| Some((first_lines(&file)?, file)));
        let record = files::read(&folder.join(RECORD)).unwrap_or_default();
        ExportedFiles {
            folder: folder.to_owned(),
            written: serde_json::from_slice(&record).unwrap_or_default(),
            before: before.collect(),
            given: HashSet::new(),
            kept: Vec::new(),
        }
    }

    fn relative(&self, path: &Path) -> String {
        path.strip_prefix(&self.folder).unwrap_or(path).to_string_lossy().into_owned()
    }

    /// Returns whether a file is missing, or is as an export wrote it. If not, notes that the file is kept.
    fn may_write(&mut self, path: &Path) -> bool {
        let may_write = match files::open(path).and_then(hash_of) {
            Ok(now) => self.written.get(&self.relative(path)) == Some(&now),
            // A link to a file that is not there is kept.
            Err(_) => fs::symlink_metadata(path)
                .is_err_and(|error| error.kind() == io::ErrorKind::NotFound),
        };
        if !may_write {
            self.kept.push(path.to_owned());
        }
        may_write
    }

    /// Copies `length` bytes of content to a file, unless the file has this content already, or no export
    /// wrote it.
    fn copy(&mut self, content: &mut fs::File, target: &Path, length: u64) -> io::Result<()> {
        let name = self.relative(target);
        let is_same = fs::metadata(target).is_ok_and(|there| there.len() == length)
            && is_same(content, &mut files::open(target)?)?;
        if is_same && self.written.contains_key(&name) {
            return Ok(());
        }
        content.rewind()?;
        if !is_same {
            if !self.may_write(target) {
                return Ok(());
            }
            if let Some(folder) = target.parent() {
                private::create_dir_all(folder)?;
            }
            io::copy(content, &mut private::replace_file(target)?)?;
            content.rewind()?;
        }
        self.written.insert(name, hash_of(content)?);
        Ok(())
    }

    fn save_record(&self) -> io::Result<()> {
        if self.written.is_empty() {
            return Ok(());
        }
        let record = serde_json::to_vec_pretty(&self.written)?;
        private::write(&self.folder.join(RECORD), &record)
    }

    /// Returns the path of a conversation's file: `YEAR/DATE title (id).md`.
    fn path_for(&mut self, about: &About, clock: Clock) -> PathBuf {
        let day = about.begun.or(about.last).and_then(|time| clock.minute(time));
        let day = day.as_deref().and_then(|minute| minute.split(' ').next());
        let year = day.and_then(|day| day.split('-').next()).unwrap_or(NO_YEAR);
        let start = day.map(|day| format!("{day} ")).unwrap_or_default();
        let start = start + &file_name(&about.title);
        let short = file_name(snippet::cut(&about.id, MAX_ID).unwrap_or(&about.id));
        // Two short ids can be equal: ids of conversations that one agent started have the same
        // beginning, and characters that file names cannot hold are removed.
        let whole = file_name(&about.id);
        let numbered = (2..).map(|number| format!("{whole} {number}"));
        [short, whole.clone()]
            .into_iter()
            .chain(numbered)
            .map(|id| self.folder.join(year).join(format!("{start} ({id}).md")))
            .find(|path| self.given.insert(same_name(path)))
            .expect("numbers do not end")
    }

    /// Writes a file, unless another program or the user wrote the file that is there. If the title changed,
    /// removes the conversation's file with the old name.
    fn write(&mut self, path: &Path, id: &str, text: &[u8]) -> io::Result<ExportedFile> {
        if files::read(path).is_ok_and(|now| now == text) {
            self.written.insert(self.relative(path), hash_of(text)?);
            return Ok(ExportedFile::Unchanged);
        }
        let before = self.before.get(&id_lines(id));
        let before = before.filter(|before| !self.given.contains(&same_name(before))).cloned();
        if !before.iter().map(PathBuf::as_path).chain([path]).all(|file| self.may_write(file)) {
            return Ok(ExportedFile::Kept);
        }
        if let Some(folder) = path.parent() {
            private::create_dir_all(folder)?;
        }
        // The old file is removed first, because on some file systems both names can be the same file.
        if let Some(before) = before {
            fs::remove_file(&before)?;
            self.written.remove(&self.relative(&before));
        }
        private::write(path, text)?;
        self.written.insert(self.relative(path), hash_of(text)?);
        Ok(ExportedFile::Written)
    }
}

/// Returns the paths in a folder; none if it cannot be read.
fn paths_in(folder: &Path) -> impl Iterator<Item = PathBuf> + use<> {
    fs::read_dir(folder).into_iter().flatten().flatten().map(|entry| entry.path())
}

fn is_year(folder: &Path) -> bool {
    let name = folder.file_name().and_then(OsStr::to_str).unwrap_or_default();
    name == NO_YEAR || name.len() == 4 && name.bytes().all(|byte| byte.is_ascii_digit())
}

fn failed(path: &Path, source: io::Error) -> Error {
    Error::Export { path: path.to_owned(), source }
}

fn hash_of(content: impl Read) -> io::Result<String> {
    let mut content = BufReader::new(content);
    let mut hash = Sha256::new();
    while let part @ [_, ..] = content.fill_buf()? {
        hash.update(part);
        let length = part.len();
        content.consume(length);
    }
    Ok(hash.finalize().iter().take(16).map(|byte| format!("{byte:02x}")).collect())
}

/// Returns a path in the form in which paths are compared, because some file systems ignore the case of
/// letters and how they are composed.
fn same_name(path: &Path) -> String {
    path.to_string_lossy().nfc().flat_map(char::to_lowercase).collect()
}

/// Returns a text as a JSON string, which is valid YAML.
fn quoted(text: &str) -> String {
    serde_json::Value::from(text).to_string()
}

/// Returns the first lines of a conversation's file, which contain the id.
fn id_lines(id: &str) -> String {
    format!("---\nid: {}\n", quoted(id))
}

fn first_lines(file: &Path) -> Option<String> {
    let start = files::open(file).ok()?.take(MAX_START);
    let mut lines = BufReader::new(start).lines().map_while(Result::ok);
    Some(format!("{}\n{}\n", lines.next()?, lines.next()?))
}

fn markdown(
    session: &Session,
    links: &[Link<'_>],
    of_service: Option<&Provenance>,
    clock: Clock,
) -> Result<String, std::fmt::Error> {
    let about = &session.about;
    let mut text = id_lines(&about.id);
    writeln!(text, "title: {}", quoted(&about.title))?;
    let service = of_service.map(|it| it.service.as_str()).filter(|service| !service.is_empty());
    writeln!(text, "service: {}", quoted(service.unwrap_or(about.source.name())))?;
    if let Some(link) = of_service.and_then(|it| it.link.as_deref()) {
        writeln!(text, "url: {}", quoted(link))?;
    }
    if let Some(project) = &about.project {
        writeln!(text, "project: {}", quoted(project))?;
    }
    for (key, time) in [("created", about.begun), ("updated", about.last)] {
        if let Some(time) = time.and_then(date::to_iso) {
            writeln!(text, "{key}: {time}")?;
        }
    }
    writeln!(text, "messages: {}\n---", session.turns())?;
    for turn in 0..session.turns() {
        let message = session.message(turn);
        add_message(&mut text, session.line(turn), &message, "", clock);
        for link in links {
            if !link.attachment.is_of(&message.conversation_id, &message.message_id) {
                continue;
            }
            let is_picture = link.attachment.media_type.starts_with("image/");
            let mark = if is_picture { "!" } else { "" };
            writeln!(text, "\n{mark}[{}](<{}>)", link.name, link.place)?;
        }
    }
    Ok(text)
}
