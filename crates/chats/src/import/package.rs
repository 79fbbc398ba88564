//! The JSON files of an export: in a zip, in a folder, or a single one.
//!
//! Zips inside a zip are unpacked to unnamed temporary files and read from there.
//!
//! Invariant: no other files are written, and no files outside the given path are read.

use std::collections::{BTreeMap, BTreeSet, HashMap};
use std::fs::{self, File};
use std::io::{self, BufReader, Read, Seek, SeekFrom};
use std::path::{Path, PathBuf};

use zip::ZipArchive;
use zip::read::read_zipfile_from_stream;
use zip::result::{ZipError, ZipResult};

use crate::import::formats::searched_formats;
use crate::import::json::{Raw, Value};
use crate::import::repeats::ReadingOrder;
use crate::import::{Error, compressed, foreign, results};
use verbatim_base::files;

/// The maximum ratio of unpacked size to zip size. Texts reach 3 to 20; a file of zeros reaches 1030.
const RATIO: u64 = 400;

/// A zip that unpacks to at most this size is accepted, whatever its ratio.
const HARMLESS: u64 = 16 << 20;

const MAX_INNER_ZIPS: usize = 16;

/// The files in which an export lists its files, and their maximum length in bytes.
const MANIFESTS: [&str; 2] = ["export_manifest.json", "manifest.json"];
const LONGEST_MANIFEST: u64 = 16 << 20;

/// The file in which ChatGPT lists the names that attached files had.
const NAMES_OF_ATTACHED: &str = "conversation_asset_file_names.json";

/// The beginning of the names of the files or folders into which services divide the conversations, and the
/// number of digits that follow.
const PART: &str = "conversations-";
const PART_DIGITS: usize = 3;

/// The endings of the names of other files that may have chats, and the maximum number of such files.
const PAGES: [&str; 2] = ["html", "htm"];
const TEXTS_AND_DATABASES: [&str; 6] = ["md", "db", "vscdb", "sqlite", "sqlite3", "zstd"];
const MAX_OTHERS: usize = 100;

/// The characters between folders in names.
const SEPARATORS: [char; 2] = ['/', '\\'];

/// The minimum length of an id to search in file names. Shorter ids would match by chance.
const MIN_ID: usize = 8;

/// The number of bytes at the beginning of a database that are searched for its tables.
const START_OF_DATABASE: u64 = 64 << 10;

const MAX_FOLDER_DEPTH: usize = 12;

const NO_CONVERSATION: &str = "it holds no conversation";

#[derive(Debug, Default)]
pub(super) struct Package {
    zips: Vec<ZipArchive<File>>,
    files: Vec<PackagedFile>,
    /// The other files, and all that are named as attachments: attachments of messages, and additions of the
    /// service.
    others: Vec<OtherFile>,
    refused: Vec<String>,
    unopened: Vec<usize>,
    kind: &'static str,
    /// The length of the zip, and the unpacked size of the files to read; both 0 if the export is not a zip.
    length: u64,
    unpacked: u64,
}

#[derive(Debug)]
pub(super) struct PackagedFile {
    pub(super) name: String,
    pub(super) size: u64,
    location: Location,
}

/// A file of an export that may be an attachment of a message.
#[derive(Debug)]
struct OtherFile {
    name: String,
    location: Location,
}

/// A file that a message names, found in an export.
pub struct FoundFile {
    /// The name without its folders.
    pub name: String,
    /// The unpacked size in bytes that the zip claims.
    pub size: u64,
    location: Location,
}

#[derive(Clone, Debug)]
enum Location {
    Path(PathBuf),
    /// The number of a zip, and of an entry in it.
    Entry(usize, usize),
}

type InnerZip = (usize, String, u64);

impl Package {
    /// Lists the JSON files of the zip, the folder or the file at `path`. `with_inner` tells whether to open zips
    /// inside a zip.
    pub(super) fn open(path: &Path, with_inner: bool) -> Result<Package, Error> {
        let metadata = fs::metadata(path).map_err(open_error(path))?;
        if metadata.is_dir() {
            let mut package = Package::empty("the folder");
            let root = dunce::canonicalize(path).map_err(open_error(path))?;
            package.walk(&root, &root, MAX_FOLDER_DEPTH).map_err(open_error(path))?;
            package.sort();
            package.name_missing_parts();
            return Ok(package);
        }
        if !metadata.is_file() {
            let reason = "it is not a file; save the export as a file and import that";
            return Err(open_error(path)(io::Error::other(reason)));
        }
        let file = files::open(path).map_err(open_error(path))?;
        let mut magic = Vec::new();
        (&file).take(4).read_to_end(&mut magic).map_err(open_error(path))?;
        if matches!(magic[..], [b'P', b'K', 3, 4] | [b'P', b'K', 5, 6]) {
            return Package::open_zip(path, file, with_inner);
        }
        let kind = match &magic[..] {
            b"SQLi" => {
                (&file)
                    .take(START_OF_DATABASE)
                    .read_to_end(&mut magic)
                    .map_err(open_error(path))?;
                if foreign::has_tables(&magic, &["conversations", "messages"]) {
                    "it is a database; search it with --db"
                } else {
                    "it is a database of another program, which has no table of conversations"
                }
            }
            [] => "it is empty",
            [0x1F, 0x8B, ..]
            | [b'B', b'Z', b'h', _]
            | [0xFD, b'7', b'z', b'X']
            | [b'7', b'z', ..]
            | b"Rar!" => "it is packed; unpack it, and import what is in it",
            _ => NO_CONVERSATION,
        };
        let name = path.file_name().unwrap_or_default().to_string_lossy().into_owned();
        let location = Location::Path(path.to_owned());
        let files = vec![PackagedFile { name, size: metadata.len(), location }];
        Ok(Package { files, ..Package::empty(kind) })
    }

    fn empty(kind: &'static str) -> Package {
        Package { kind, ..Package::default() }
    }

    fn open_zip(path: &Path, file: File, with_inner: bool) -> Result<Package, Error> {
        let length = file.metadata().map_err(open_error(path))?.len();
        let mut zip = ZipArchive::new(file).map_err(zip_error(path))?;
        let directory = files::open(path).map_err(open_error(path))?;
        let mut refused =
            repeated_names(directory, zip.central_directory_start()).map_err(open_error(path))?;
        let mut package = Package::empty("the zip");
        let inner = package.list(&mut zip, "").map_err(zip_error(path))?;
        refused.append(&mut package.refused);
        package.refused = refused;
        package.zips.push(zip);
        if with_inner {
            package.open_inner(inner, length);
        } else {
            package.unopened = inner.into_iter().map(|(at, _, _)| at).collect();
        }
        let unpacked = total_size(&package.files);
        if is_bomb(unpacked, length) {
            return Err(Error::Bomb { path: path.to_owned(), unpacked, ratio: RATIO });
        }
        (package.length, package.unpacked) = (length, unpacked);
        package.sort();
        package.name_missing_parts();
        Ok(package)
    }

    /// Adds the JSON files of the next zip. `inside` is the path of a zip that is inside another zip. Returns
    /// the zips inside this zip.
    fn list(&mut self, zip: &mut ZipArchive<File>, inside: &str) -> ZipResult<Vec<InnerZip>> {
        let mut inner = Vec::new();
        for at in 0..zip.len() {
            let entry = zip.by_index_raw(at)?;
            let name = format!("{inside}{}", entry.name());
            // A zip with such a name is an attachment of a message.
            let is_zip = is_zip(&name) && !is_of_message(&last_part(&name));
            if leads_out(entry.name()) {
                self.refused.push(format!("{name}: refused: its name leads out of the zip"));
            } else if entry.is_dir() {
            } else if !(is_part_of_export(&name) || is_zip) {
                if !entry.is_symlink() && !entry.encrypted() {
                    let location = Location::Entry(self.zips.len(), at);
                    self.others.push(OtherFile { name: last_part(&name), location });
                }
            } else if entry.is_symlink() {
                self.refused.push(format!("{name}: refused: it is a symbolic link"));
            } else if entry.encrypted() {
                self.refused
                    .push(format!("{name}: refused: it is encrypted; unpack the zip first"));
            } else if is_zip {
                inner.push((at, name, entry.size()));
            } else {
                let location = Location::Entry(self.zips.len(), at);
                self.add_attached(&name, &location);
                self.files.push(PackagedFile { name, size: entry.size(), location });
            }
        }
        Ok(inner)
    }

    /// Adds the JSON files of the zips in the first zip. Refuses zips that cannot be read.
    fn open_inner(&mut self, inner: Vec<InnerZip>, length: u64) {
        if let Some(more) = inner.len().checked_sub(MAX_INNER_ZIPS).filter(|more| *more > 0) {
            self.refused.push(format!("{more} more zips in the zip were not read"));
        }
        for (at, name, size) in inner.into_iter().take(MAX_INNER_ZIPS) {
            let files = self.files.len();
            let others = self.others.len();
            if let Err(reason) = self.open_one(at, &name, size, length) {
                self.files.truncate(files);
                self.others.truncate(others);
                self.refused.push(format!("{name}: {reason}"));
            }
        }
    }

    /// Adds the JSON files of one zip in the first zip. `length` is the length of the first zip.
    fn open_one(&mut self, at: usize, name: &str, size: u64, length: u64) -> Result<(), String> {
        refuse_bomb(size, length)?;
        let before = self.files.len();
        let deeper = self.unpack_inner(at, name, size);
        let (zip, deeper) = deeper.map_err(|error| format!("cannot be read: {error}"))?;
        refuse_bomb(total_size(&self.files[before..]), size)?;
        self.zips.push(zip);
        self.refused.extend(
            deeper
                .into_iter()
                .map(|(_, name, _)| format!("{name}: a zip that is nested so deeply is not read")),
        );
        Ok(())
    }

    /// Unpacks a zip in the first zip to a temporary file, and lists it.
    fn unpack_inner(
        &mut self,
        at: usize,
        name: &str,
        size: u64,
    ) -> io::Result<(ZipArchive<File>, Vec<InnerZip>)> {
        let entry = self.zips[0].by_index(at)?;
        let mut file = tempfile::tempfile()?;
        io::copy(&mut BoundedReader { inner: entry, left: size }, &mut file)?;
        let mut zip =
            ZipArchive::new(file).map_err(|error| io::Error::other(zip_error_reason(&error)))?;
        let deeper = self.list(&mut zip, &format!("{name}/"))?;
        Ok((zip, deeper))
    }

    pub(super) fn has_unopened(&self) -> bool {
        !self.unopened.is_empty()
    }

    /// Calls `look` with the JSON files of zips that were not opened; returns its first result. `look` gets
    /// only the part of a file in the first `most` bytes of the zip. Writes no files.
    pub(super) fn look_inside<T>(
        &mut self,
        most: u64,
        look: &dyn Fn(&[u8]) -> Option<T>,
    ) -> Option<T> {
        let zip = self.zips.first_mut()?;
        self.unopened.iter().take(MAX_INNER_ZIPS).find_map(|at| {
            let mut stream = zip.by_index(*at).ok()?.take(most);
            // The loop ends at the first file that is incomplete.
            while let Ok(Some(entry)) = read_zipfile_from_stream(&mut stream) {
                let is_wanted = is_part_of_export(entry.name());
                let mut start = Vec::new();
                let is_whole = entry.take(most).read_to_end(&mut start).is_ok();
                let found = Some(start).filter(|_| is_wanted).and_then(|start| look(&start));
                if found.is_some() || !is_whole {
                    return found;
                }
            }
            None
        })
    }

    /// Adds the JSON files below `folder`.
    fn walk(&mut self, root: &Path, folder: &Path, depth: usize) -> io::Result<()> {
        for entry in fs::read_dir(folder)? {
            let entry = entry?;
            let path = entry.path();
            let name = path.strip_prefix(root).unwrap_or(&path).to_string_lossy().into_owned();
            let mut kind = entry.file_type()?;
            if kind.is_symlink() {
                // Links are followed only to files below the folder of the export.
                match dunce::canonicalize(&path) {
                    Ok(target) if target.starts_with(root) && target.is_file() => {
                        kind = target.metadata()?.file_type();
                    }
                    _ => {
                        if is_part_of_export(&name) {
                            self.refused.push(format!("{name}: refused: it is a symbolic link that leads out of the folder"));
                        }
                        continue;
                    }
                }
            }
            if kind.is_dir() {
                let walked = match depth {
                    0 => Err(io::Error::other("folders that are nested so deeply are not read")),
                    _ => self.walk(root, &path, depth - 1),
                };
                if let Err(error) = walked {
                    self.refused.push(format!("{name}: {error}"));
                }
            } else if kind.is_file() && is_part_of_export(&name) {
                let size = fs::metadata(&path).map_or(0, |metadata| metadata.len());
                let location = Location::Path(path);
                self.add_attached(&name, &location);
                self.files.push(PackagedFile { name, size, location });
            } else if kind.is_file() {
                let location = Location::Path(path);
                self.others.push(OtherFile { name: last_part(&name), location });
            }
        }
        Ok(())
    }

    /// Adds a JSON file to the other files too if it may be an attachment of a message.
    fn add_attached(&mut self, name: &str, location: &Location) {
        let name = last_part(name);
        if is_of_message(&name) {
            self.others.push(OtherFile { name, location: location.clone() });
        }
    }

    /// Sorts the files by name; numbers in names sort by value. Transcripts come last, in their
    /// [`ReadingOrder`].
    fn sort(&mut self) {
        let keys: Vec<_> = (0..self.files.len())
            .map(|at| {
                let name = self.files[at].name.clone();
                let size = self.files[at].size;
                if !compressed::is_named_as_transcript(Path::new(&name)) {
                    return (number_aware(&name), None);
                }
                let content = self.reader(at).ok();
                (Vec::new(), Some(ReadingOrder::new(Path::new(&name), size, content)))
            })
            .collect();
        let mut keyed: Vec<_> = keys.into_iter().zip(std::mem::take(&mut self.files)).collect();
        keyed.sort_by(|((name, order), _), ((other_name, other), _)| {
            order.cmp(other).then_with(|| name.cmp(other_name))
        });
        self.files = keyed.into_iter().map(|(_, file)| file).collect();
        self.others.sort_by(|a, b| a.name.cmp(&b.name));
    }

    /// Reports the files of conversations that are missing: those between numbered ones, such as
    /// `conversations-001.json` or `conversations-001/conversations.json`, and those that the export lists.
    /// Services count from 0.
    fn name_missing_parts(&mut self) {
        let mut missing = self.listed_but_missing();
        let refused = self.refused.iter().filter_map(|line| Some(line.split_once(": ")?.0));
        let names = self.files.iter().map(|file| file.name.as_str());
        missing.extend(missing_between(names.chain(refused)));
        self.refused.extend(missing.into_iter().map(|name| {
            format!("{name}: this part of the export is missing; ask for the export again")
        }));
    }

    /// Returns the files of conversations that are in a list of the export's files, but not in the export.
    fn listed_but_missing(&mut self) -> BTreeSet<String> {
        let mut missing = BTreeSet::new();
        for at in 0..self.files.len() {
            let manifest = self.files[at].name.clone();
            let mut bytes = Vec::new();
            let name = last_part(&manifest);
            let is_read = MANIFESTS.contains(&&*name)
                && self.files[at].size <= LONGEST_MANIFEST
                && self.reader(at).is_ok_and(|mut it| it.read_to_end(&mut bytes).is_ok());
            let Some(list) = Raw::new(&bytes).value().ok().filter(|_| is_read) else { continue };
            let mut paths = Vec::new();
            paths_in(&list, &mut paths);
            let folder = &manifest[..manifest.len() - name.len()];
            for path in paths {
                if is_named_as_conversations(path)
                    && !self.files.iter().any(|file| is_at(&file.name, path))
                {
                    missing.insert(format!("{folder}{path}"));
                }
            }
        }
        missing
    }

    pub(super) fn has_others(&self) -> bool {
        !self.others.is_empty()
    }

    /// Returns the files without JSON in which programs keep chats: web pages, databases, plain texts. `with_pages`
    /// tells whether to return web pages.
    pub(super) fn others_with_chats(&mut self, with_pages: bool) -> Vec<FoundFile> {
        let pages: &[&str] = if with_pages { &PAGES } else { &[] };
        let names = self.others.iter().enumerate().filter(|(_, file)| {
            let path = Path::new(&file.name);
            (ends_with(path, &TEXTS_AND_DATABASES) || ends_with(path, pages))
                && !is_of_message(&file.name)
        });
        let places: Vec<usize> = names.map(|(at, _)| at).take(MAX_OTHERS).collect();
        places.into_iter().map(|at| self.found(at)).collect()
    }

    /// Returns the names that attached files had, by their names in the export, as far as the export lists
    /// them.
    pub(super) fn names_of_attached(&mut self) -> HashMap<String, String> {
        let mut names = HashMap::new();
        for at in 0..self.files.len() {
            let mut bytes = Vec::new();
            let is_read = last_part(&self.files[at].name) == NAMES_OF_ATTACHED
                && self.files[at].size <= LONGEST_MANIFEST
                && self.reader(at).is_ok_and(|mut it| it.read_to_end(&mut bytes).is_ok());
            let fields = Raw::new(&bytes).fields_until_damage().0.into_iter().filter(|_| is_read);
            names.extend(fields.filter_map(|(name, raw)| {
                Some((last_part(&name), raw.string().filter(|it| !it.is_empty())?.into_owned()))
            }));
        }
        names
    }

    /// Returns the attached file whose name begins with an id.
    pub(super) fn find(&mut self, id: &str) -> Option<FoundFile> {
        if id.len() < MIN_ID {
            return None;
        }
        let first = self.others.partition_point(|file| file.name.as_str() < id);
        let mut begin = self.others[first..].iter().take_while(|file| file.name.starts_with(id));
        let found = begin
            .position(|file| !file.name[id.len()..].starts_with(|c: char| c.is_alphanumeric()))?;
        Some(self.found(first + found))
    }

    /// Returns the attached file with a name.
    pub(super) fn find_named(&mut self, name: &str) -> Option<FoundFile> {
        let at = self.others.binary_search_by(|file| file.name.as_str().cmp(name)).ok()?;
        Some(self.found(at))
    }

    /// Returns one of the other files, with its size.
    fn found(&mut self, at: usize) -> FoundFile {
        let OtherFile { name, location } = &self.others[at];
        let size = match location {
            Location::Path(path) => fs::metadata(path).map_or(0, |metadata| metadata.len()),
            Location::Entry(zip, entry) => {
                self.zips[*zip].by_index_raw(*entry).map_or(0, |entry| entry.size())
            }
        };
        FoundFile { name: name.clone(), size, location: location.clone() }
    }

    /// Opens a file that was found. The error is a sentence about the file. Refuses the file if the zip would
    /// unpack to a size far beyond that of any export.
    pub(super) fn open_found(&mut self, file: &FoundFile) -> Result<Box<dyn Read + '_>, String> {
        if let Location::Entry(..) = file.location {
            let unpacked = self.unpacked.saturating_add(file.size);
            if is_bomb(unpacked, self.length) {
                return Err(format!(
                    "with it the zip unpacks to more than {RATIO} times its size, which no export does"
                ));
            }
            self.unpacked = unpacked;
        }
        self.open_at(&file.location, file.size)
    }

    pub(super) fn files(&self) -> &[PackagedFile] {
        &self.files
    }

    /// Returns a sentence about each file that was refused.
    pub(super) fn refused(&self) -> &[String] {
        &self.refused
    }

    /// Describes the files of a path that is not an export.
    pub(super) fn describe(&self) -> String {
        let names: Vec<&str> = self.files.iter().take(5).map(|file| file.name.as_str()).collect();
        let mut found = match (self.kind, names.len()) {
            ("the zip" | "the folder", 0) => {
                format!("{} holds no .json or .jsonl file that can be read", self.kind)
            }
            ("the zip" | "the folder", _) => {
                format!("no conversation in {}; {}", names.join(", "), searched_formats())
            }
            (NO_CONVERSATION, _) => format!("{NO_CONVERSATION}; {}", searched_formats()),
            (kind, _) => kind.to_owned(),
        };
        for refused in self.refused.iter().take(3) {
            found = format!("{found}; {refused}");
        }
        found
    }

    /// Opens a file, after a check that it can be read to its end. A zip has the checksum of each file behind
    /// the file, so without the check damaged text could replace text that is stored. The error is a sentence
    /// about the file.
    pub(super) fn checked_reader(&mut self, at: usize) -> Result<Box<dyn Read + '_>, String> {
        if matches!(self.files[at].location, Location::Entry(..)) {
            io::copy(&mut self.reader(at)?, &mut io::sink()).map_err(|error| {
                format!(
                    "nothing of it was imported, because it is damaged: {error}; download the zip \
                     again, or unpack it and import the folder"
                )
            })?;
        }
        self.reader(at)
    }

    /// Opens a file; the error is a sentence about the file.
    pub(super) fn reader(&mut self, at: usize) -> Result<Box<dyn Read + '_>, String> {
        let file = &self.files[at];
        let location = file.location.clone();
        let size = file.size;
        let is_compressed = compressed::plain(Path::new(&file.name)).is_some();
        let input = self.open_at(&location, size)?;
        Ok(if is_compressed { Box::new(compressed::unpacked(input)) } else { input })
    }

    /// Opens the file at a location. Reading fails if a file in a zip is longer than `size`.
    fn open_at(&mut self, location: &Location, size: u64) -> Result<Box<dyn Read + '_>, String> {
        Ok(match location {
            Location::Entry(zip, entry) => {
                let entry = self.zips[*zip].by_index(*entry).map_err(|error| {
                    let hint = match error {
                        ZipError::UnsupportedArchive(_)
                        | ZipError::CompressionMethodNotSupported(_) => {
                            "; unpack the zip, and import the folder"
                        }
                        _ => "",
                    };
                    format!("{error}{hint}")
                })?;
                Box::new(BoundedReader { inner: entry, left: size })
            }
            Location::Path(path) => Box::new(files::open(path).map_err(|error| error.to_string())?),
        })
    }
}

fn open_error(path: &Path) -> impl FnOnce(io::Error) -> Error + '_ {
    |source| Error::Open { path: path.to_owned(), source }
}

fn zip_error(path: &Path) -> impl FnOnce(ZipError) -> Error + '_ {
    |error| Error::Zip { path: path.to_owned(), reason: zip_error_reason(&error) }
}

/// A reader that fails if a file is longer than the zip says.
struct BoundedReader<R> {
    inner: R,
    left: u64,
}

impl<R: Read> Read for BoundedReader<R> {
    fn read(&mut self, buffer: &mut [u8]) -> io::Result<usize> {
        let read = self.inner.read(buffer)?;
        match self.left.checked_sub(read as u64) {
            Some(left) => self.left = left,
            None => return Err(io::Error::other("it unpacks to more than the zip says; refused")),
        }
        Ok(read)
    }
}

/// Returns the reason why a zip cannot be read, in the user's words.
fn zip_error_reason(error: &ZipError) -> String {
    match error {
        // The directory is at the end of a zip, so a zip that is cut off has none, or a part of it.
        ZipError::InvalidArchive(what)
            if ["EOCD", "Unexpected end"].iter().any(|it| what.contains(it)) =>
        {
            "it is no whole zip, for example because its download was cut off; download it again"
                .to_owned()
        }
        error => format!("{error}; if its download was cut off, download it again"),
    }
}

/// Returns a sentence about each name that several JSON files of a zip share. `ZipArchive` keeps only the
/// last entry of a name, so this function reads the zip's directory itself. The directory begins at `start`.
fn repeated_names(zip: File, start: u64) -> io::Result<Vec<String>> {
    /// The first bytes of an entry of the directory.
    const ENTRY: &[u8] = b"PK\x01\x02";
    /// The length of an entry's fixed part, and the offsets in this part of three lengths: of the name, of
    /// the extra field and of the comment.
    const FIXED: u64 = 46;
    const LENGTHS: [usize; 3] = [28, 30, 32];
    let mut directory = BufReader::new(zip);
    directory.seek(SeekFrom::Start(start))?;
    let mut names: BTreeMap<Vec<u8>, u64> = BTreeMap::new();
    let mut fixed = Vec::new();
    while directory.by_ref().take(FIXED).read_to_end(&mut fixed)? as u64 == FIXED
        && fixed.starts_with(ENTRY)
    {
        let [name, extra, comment] =
            LENGTHS.map(|at| usize::from(u16::from_le_bytes([fixed[at], fixed[at + 1]])));
        let mut bytes = vec![0; name];
        directory.read_exact(&mut bytes)?;
        directory.seek_relative((extra + comment) as i64)?;
        *names.entry(bytes).or_default() += 1;
        fixed.clear();
    }
    let repeated = names.iter().filter(|(_, count)| **count > 1);
    let repeated = repeated.map(|(name, count)| (String::from_utf8_lossy(name), count));
    Ok(repeated
        .filter(|(name, _)| is_part_of_export(name))
        .map(|(name, count)| {
            format!("{name}: {count} files of this name are in the zip; only the last was read")
        })
        .collect())
}

fn leads_out(name: &str) -> bool {
    let drive = name.as_bytes().get(1) == Some(&b':');
    drive || name.starts_with(SEPARATORS) || name.split(SEPARATORS).any(|part| part == "..")
}

fn is_bomb(unpacked: u64, length: u64) -> bool {
    unpacked > HARMLESS && unpacked > length.saturating_mul(RATIO)
}

fn refuse_bomb(unpacked: u64, length: u64) -> Result<(), String> {
    if !is_bomb(unpacked, length) {
        return Ok(());
    }
    let megabytes = unpacked / 1_000_000;
    Err(format!(
        "refused: unpacks to {megabytes} MB, more than {RATIO} times its size, which no export does"
    ))
}

/// Returns whether the name of a file ends with one of these extensions, in either case.
fn ends_with(path: &Path, extensions: &[&str]) -> bool {
    path.extension()
        .is_some_and(|it| extensions.iter().any(|extension| it.eq_ignore_ascii_case(extension)))
}

fn total_size(files: &[PackagedFile]) -> u64 {
    files.iter().fold(0, |sum, file| sum.saturating_add(file.size))
}

/// Returns whether a file has a name that ChatGPT gives to attachments.
fn is_of_message(name: &str) -> bool {
    name.starts_with("file-") || name.starts_with("file_")
}

pub(super) fn is_zip(name: &str) -> bool {
    ends_with(Path::new(name), &["zip"])
}

fn last_part(name: &str) -> String {
    name.rsplit(SEPARATORS).next().unwrap_or_default().to_owned()
}

fn is_part_of_export(name: &str) -> bool {
    let path = Path::new(name);
    let is_one = compressed::is_named_as_transcript(path) || is_json(path);
    // macOS stores metadata in a separate file with the same suffix.
    let is_beside = name.split('/').any(|part| part.starts_with("._") || part == "__MACOSX");
    is_one && !is_beside && !name.split(SEPARATORS).any(|part| part == results::FOLDER)
}

/// Returns a phrase for the part of Claude.ai's export that a file belongs to, if imports leave the part out.
pub(super) fn part_left_out(name: &str) -> Option<&'static str> {
    let mut folders = name.split(SEPARATORS).rev();
    if folders.next() == Some("login_history.json") {
        return Some("the account's users and login history of Claude.ai");
    }
    let is_frame = folders.any(|folder| folder == "frames");
    is_frame.then_some("artifacts of Claude.ai as web pages (frames)")
}

/// Returns whether services give this name to a file of conversations, such as `conversations-001.json`.
pub(super) fn is_named_as_conversations(name: &str) -> bool {
    last_part(name).starts_with("conversations") && is_json(Path::new(name))
}

pub(super) fn is_json(path: &Path) -> bool {
    ends_with(path, &["json"])
}

/// Returns the names of the parts that are missing between numbered parts of the conversations.
pub(super) fn missing_between<'n>(names: impl Iterator<Item = &'n str>) -> Vec<String> {
    let mut parts: BTreeMap<[&str; 2], BTreeSet<u32>> = BTreeMap::new();
    for (around, number) in names.filter_map(numbered_part) {
        parts.entry(around).or_default().insert(number);
    }
    let mut missing = Vec::new();
    for ([before, after], numbers) in parts {
        // A single part may be one that the user took out of its folder.
        let last = numbers.last().copied().filter(|_| numbers.len() > 1).unwrap_or_default();
        let lost = (0..last).filter(|number| !numbers.contains(number));
        missing.extend(lost.map(|number| format!("{before}{PART}{number:03}{after}")));
    }
    missing
}

/// Returns the number of a part of the conversations, and the name around [`PART`] and the number. A part may be
/// a zip or a file in a zip; browsers add a number to a name that is there already.
fn numbered_part(name: &str) -> Option<([&str; 2], u32)> {
    let (before, rest) = name.split_at(name.find(PART)?);
    let digits = rest.get(PART.len()..PART.len() + PART_DIGITS)?;
    let after = &rest[PART.len() + PART_DIGITS..];
    let is_numbered = after.starts_with(" (") && after.ends_with(").zip");
    let inner = after.strip_prefix(".zip").filter(|it| it.is_empty() || it.starts_with(SEPARATORS));
    let is_zip = is_numbered || inner.is_some();
    let is_file = after == ".json" || after.starts_with(SEPARATORS);
    let is_part = (before.is_empty() || before.ends_with(SEPARATORS))
        && (is_zip || is_file && is_named_as_conversations(name));
    let after = if is_zip { ".zip" } else { after };
    digits.parse().ok().filter(|_| is_part).map(|number| ([before, after], number))
}

/// Adds the values of all fields `path`. Recursion is safe, because the depth of a [`Value`] is bounded.
fn paths_in<'v>(value: &'v Value, paths: &mut Vec<&'v str>) {
    match value {
        Value::Object(fields) => {
            paths.extend(Some(value.str("path")).filter(|path| !path.is_empty()));
            fields.iter().for_each(|(_, value)| paths_in(value, paths));
        }
        Value::Array(items) => items.iter().for_each(|item| paths_in(item, paths)),
        _ => {}
    }
}

fn is_at(name: &str, path: &str) -> bool {
    let name = name.replace('\\', "/");
    name.strip_suffix(path).is_some_and(|before| before.is_empty() || before.ends_with('/'))
}

/// Returns a sort key that puts `part-2` before `part-10`.
fn number_aware(name: &str) -> Vec<(String, u64)> {
    let mut key = Vec::new();
    let mut rest = name;
    while !rest.is_empty() {
        let text = rest.find(|c: char| c.is_ascii_digit()).unwrap_or(rest.len());
        let (before, after) = rest.split_at(text);
        let digits = after.find(|c: char| !c.is_ascii_digit()).unwrap_or(after.len());
        key.push((before.to_owned(), after[..digits].parse().unwrap_or(0)));
        rest = &after[digits..];
    }
    key
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn numbered_files_in_order() {
        let mut names = [
            "c/conversations-10.json",
            "c/conversations-2.json",
            "a.json",
            "c/conversations-000.json",
        ];
        names.sort_by_cached_key(|name| number_aware(name));
        assert_eq!(
            names,
            [
                "a.json",
                "c/conversations-000.json",
                "c/conversations-2.json",
                "c/conversations-10.json"
            ]
        );
    }

    #[test]
    fn names_that_lead_out() {
        for name in
            ["../a.json", "a/../../b.json", "/etc/a.json", "C:\\a.json", "..\\a.json", "\\a.json"]
        {
            assert!(leads_out(name), "{name}");
        }
        for name in ["a.json", "folder/a..b.json", "..a/b.json"] {
            assert!(!leads_out(name), "{name}");
        }
    }
}
