//! `verbatim service`: lets the system start the HTTP server, and restart the server after it ends.

use std::{
    io::{self, Write},
    path::{Path, PathBuf},
    process::Command,
};

use serde::Serialize;

use super::{
    connect::{self, Result, confirm_change, server_places},
    environment::{Environment, Terminal},
    listen::{self, ADDRESS},
    output::{FOUND, NOTHING, complain, harmless, json_line},
};
use verbatim_base::private;
use verbatim_engine::Config;

const UNIT: &str = "verbatim.service";
const LABEL: &str = "io.github.verbatim-search";

/// Let the system run the server over HTTP, from each login on
///
///     verbatim service install --page
///     verbatim service remove
///
/// Writes a unit of systemd for your user, or a file of launchd on macOS: shows it first, and makes it
/// after a yes. AI clients reach the server with `verbatim connect CLIENT --http`.
#[derive(Debug, clap::Args)]
#[command(verbatim_doc_comment)]
pub(super) struct ServiceArgs {
    #[command(subcommand)]
    action: ServiceAction,
    /// Print one JSON object: file, text, change, done
    #[arg(long, global = true)]
    json: bool,
}

impl ServiceArgs {
    /// Returns whether the service gets the paths that the server uses.
    pub(super) fn passes_places_on(&self) -> bool {
        matches!(self.action, ServiceAction::Install { .. })
    }
}

#[derive(Debug, clap::Subcommand)]
enum ServiceAction {
    /// Make the service and start it
    ///
    ///     verbatim service install
    ///     verbatim service install 9000 --page
    #[command(verbatim_doc_comment)]
    Install {
        /// Listen here: a port, a host, or both
        #[arg(value_name = "ADDRESS", default_value = ADDRESS)]
        address: String,
        /// Serve the page for browsers too
        #[arg(long)]
        page: bool,
        /// Do not ask
        #[arg(long, short)]
        yes: bool,
        /// Only show the file
        #[arg(long, conflicts_with = "yes")]
        print: bool,
    },
    /// Stop the service and remove it
    ///
    ///     verbatim service remove
    #[command(verbatim_doc_comment)]
    Remove {
        /// Do not ask
        #[arg(long, short)]
        yes: bool,
    },
}

/// The sandbox of the server, as far as systemd can apply it without root.
const SANDBOX: &str = "\
NoNewPrivileges=true
LockPersonality=true
MemoryDenyWriteExecute=true
RestrictAddressFamilies=AF_INET AF_INET6 AF_NETLINK AF_UNIX
RestrictNamespaces=true
RestrictRealtime=true
RestrictSUIDSGID=true
SystemCallArchitectures=native
SystemCallErrorNumber=EPERM
SystemCallFilter=@system-service
";

struct Manager {
    path: PathBuf,
    start: Vec<Vec<String>>,
    stop: Vec<Vec<String>>,
}

/// The outcome of a command, as `--json` prints it.
#[derive(Serialize)]
struct ServiceOutcome {
    file: PathBuf,
    /// The text of the file that `install` makes.
    text: Option<String>,
    /// `made`, `removed`, `shown`, `refused` or `none`.
    change: &'static str,
    /// Whether the service was started or stopped; `None` if this was not tried.
    done: Option<bool>,
}

pub(super) fn run(args: &ServiceArgs, config: &Config, terminal: Terminal<'_>) -> Result<u8> {
    let Terminal { environment, out } = terminal;
    let mut nowhere = io::sink();
    let to_person: &mut dyn Write = if args.json { &mut nowhere } else { &mut *out };
    let manager = manager(environment)?;
    let (text, (change, done)) = match &args.action {
        ServiceAction::Install { address, page, yes, print } => {
            listen::parse_address(address)
                .map_err(|problem| io::Error::new(io::ErrorKind::InvalidInput, problem))?;
            let mut words = ["serve", "--http", address].map(str::to_owned).to_vec();
            words.extend(page.then(|| "--page".to_owned()));
            words.extend(server_places(config, environment)?);
            let text = match cfg!(target_os = "macos") {
                true => launchd(&environment.program, &words),
                false => systemd(&environment.program, &words),
            };
            let terminal = Terminal { environment, out: to_person };
            let changed = install(&manager, &text, [*yes, *print], terminal)?;
            (Some(text), changed)
        }
        ServiceAction::Remove { yes } => {
            (None, remove(&manager, *yes, Terminal { environment, out: to_person })?)
        }
    };
    if args.json {
        json_line(out, &ServiceOutcome { file: manager.path, text, change, done })?;
    }
    Ok(if change == "refused" || done == Some(false) { NOTHING } else { FOUND })
}

/// Makes the file of the service and starts the service. Returns the change, and whether the service runs.
fn install(
    manager: &Manager,
    text: &str,
    [yes, print]: [bool; 2],
    terminal: Terminal<'_>,
) -> Result<(&'static str, Option<bool>)> {
    let Terminal { environment, out } = terminal;
    let failed = |source| connect::Error::File { path: manager.path.clone(), source };
    if print {
        // Only the text of the file is printed, so that the user can save the output as that file.
        write!(out, "{}", harmless(text))?;
        return Ok(("shown", None));
    }
    writeln!(out, "{}", harmless(&manager.path.display().to_string()))?;
    for line in text.lines() {
        writeln!(out, "  + {}", harmless(line))?;
    }
    if !confirm_change(yes, "Make this file and start the service?", environment, out)? {
        return Ok(("refused", None));
    }
    if let Some(folder) = manager.path.parent() {
        private::create_dir_all(folder).map_err(failed)?;
    }
    private::write(&manager.path, text.as_bytes()).map_err(failed)?;
    let is_started = all_run(&manager.start);
    let runs = if is_started { ", and the service runs" } else { "" };
    writeln!(out, "The file is made{runs}.")?;
    Ok(("made", Some(is_started)))
}

/// Stops the service and removes its file. Returns the change, and whether the service was stopped.
fn remove(
    manager: &Manager,
    yes: bool,
    terminal: Terminal<'_>,
) -> Result<(&'static str, Option<bool>)> {
    let Terminal { environment, out } = terminal;
    if !manager.path.exists() {
        writeln!(out, "No service of Verbatim is installed.")?;
        return Ok(("none", None));
    }
    writeln!(out, "  - {}", harmless(&manager.path.display().to_string()))?;
    if !confirm_change(yes, "Stop the service and remove this file?", environment, out)? {
        return Ok(("refused", None));
    }
    let is_stopped = all_run(&manager.stop);
    let failed = |source| connect::Error::File { path: manager.path.clone(), source };
    std::fs::remove_file(&manager.path).map_err(failed)?;
    let what = match is_stopped {
        true => "The service is removed.",
        false => "The file is removed, but the service could not be stopped and may still run.",
    };
    writeln!(out, "{what}")?;
    Ok(("removed", Some(is_stopped)))
}

fn manager(environment: &Environment) -> Result<Manager> {
    let words = |text: &str| text.split(' ').map(str::to_owned).collect::<Vec<_>>();
    let folder = |folder: &Option<PathBuf>| {
        folder.clone().ok_or_else(|| connect::Error::NoFolder("service".to_owned()))
    };
    if cfg!(windows) {
        let problem = "Windows has no services for a single user; put `verbatim serve --http` \
                       into the task scheduler";
        return Err(io::Error::new(io::ErrorKind::Unsupported, problem).into());
    }
    if cfg!(target_os = "macos") {
        let path =
            folder(&environment.user_folder)?.join(format!("Library/LaunchAgents/{LABEL}.plist"));
        let with_path = |command: &str| {
            let mut command = words(command);
            command.push(path.to_string_lossy().into_owned());
            vec![command]
        };
        let (start, stop) = (with_path("launchctl load -w"), with_path("launchctl unload -w"));
        return Ok(Manager { path, start, stop });
    }
    let path = folder(&environment.config_folder)?.join("systemd/user").join(UNIT);
    let systemctl = |what: &str| words(&format!("systemctl --user {what}"));
    let enable = systemctl(&format!("enable --now {UNIT}"));
    let disable = systemctl(&format!("disable --now {UNIT}"));
    Ok(Manager { path, start: vec![systemctl("daemon-reload"), enable], stop: vec![disable] })
}

/// Runs commands until one fails, and reports the failure. Returns whether all succeeded.
fn all_run(commands: &[Vec<String>]) -> bool {
    commands.iter().all(|words| {
        let ran = Command::new(&words[0]).args(&words[1..]).status();
        let is_done = ran.as_ref().is_ok_and(std::process::ExitStatus::success);
        if !is_done {
            let why = ran.map_or_else(|error| error.to_string(), |status| status.to_string());
            complain(&format!("`{}` failed ({why}); run it yourself", words.join(" ")));
        }
        is_done
    })
}

fn systemd(program: &Path, words: &[String]) -> String {
    // Even inside quotes, systemd replaces `%` and `$`, and treats a backslash as an escape.
    let quoted = |word: &str| {
        let escaped = word.replace('\\', "\\\\").replace('"', "\\\"");
        format!("\"{}\"", escaped.replace('%', "%%").replace('$', "$$"))
    };
    let program = program.to_string_lossy();
    let command: Vec<String> =
        std::iter::once(&*program).chain(words.iter().map(String::as_str)).map(quoted).collect();
    format!(
        "[Unit]\nDescription=Verbatim: search over your AI chats\n\n[Service]\nExecStart={}\n\
         Restart=on-failure\nUMask=0077\n{SANDBOX}\n[Install]\nWantedBy=default.target\n",
        command.join(" ")
    )
}

fn launchd(program: &Path, words: &[String]) -> String {
    let escaped = |word: &str| word.replace('&', "&amp;").replace('<', "&lt;").replace('>', "&gt;");
    let program = program.to_string_lossy();
    let all = std::iter::once(&*program).chain(words.iter().map(String::as_str));
    let arguments: Vec<String> =
        all.map(|word| format!("    <string>{}</string>\n", escaped(word))).collect();
    format!(
        "<?xml version=\"1.0\" encoding=\"UTF-8\"?>\n\
         <!DOCTYPE plist PUBLIC \"-//Apple//DTD PLIST 1.0//EN\" \
         \"http://www.apple.com/DTDs/PropertyList-1.0.dtd\">\n\
         <plist version=\"1.0\">\n<dict>\n  <key>Label</key>\n  <string>{LABEL}</string>\n  \
         <key>ProgramArguments</key>\n  <array>\n{}  </array>\n  <key>RunAtLoad</key>\n  <true/>\n  \
         <key>KeepAlive</key>\n  <true/>\n</dict>\n</plist>\n",
        arguments.concat()
    )
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn words_stay_words() {
        let words = ["serve", "--home", "/a b/50% \"$HOME\"\\"].map(str::to_owned);
        let unit = systemd(Path::new("/bin/verbatim"), &words);
        let line = r#"ExecStart="/bin/verbatim" "serve" "--home" "/a b/50%% \"$$HOME\"\\""#;
        assert!(unit.lines().any(|it| it == line), "{unit}");
        let file = launchd(Path::new("/bin/verbatim"), &["<&>".to_owned()]);
        assert!(
            file.contains("<string>/bin/verbatim</string>\n    <string>&lt;&amp;&gt;</string>"),
            "{file}"
        );
    }
}
