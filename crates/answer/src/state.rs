//! The state of each source and of the home in sentences: `verbatim status` and the page show all of them, and
//! `verbatim doctor` those with a verdict.

use std::fmt;
use std::time::{SystemTime, UNIX_EPOCH};

use super::hint::{Remedy, remedy};
use verbatim_engine::{
    Config, Error, FallbackReason, Finding, IndexNeed, SourceKind, SourceStatus, Status,
    StoreAddress, Verdict,
};
use verbatim_text::amount::{bytes, counted};
use verbatim_text::shell::quoted;

/// What a source holds. If it cannot be read, the text is the error, which begins with the path.
const HOLDS: &str = "holds";

/// A fact about a source or the home. Its text form is one line: the fact, and the command that changes it.
#[derive(Clone, Debug)]
pub struct Fact {
    /// What it is about, in one or two words.
    pub about: &'static str,
    /// The fact.
    pub text: String,
    /// The verdict of the doctor; `None` if the doctor does not report the fact.
    pub verdict: Option<Verdict>,
    /// The command that changes it.
    pub remedy: Option<Remedy>,
}

impl Fact {
    fn new(about: &'static str, text: impl Into<String>) -> Fact {
        Fact { about, text: text.into(), verdict: None, remedy: None }
    }

    fn note(about: &'static str, text: impl Into<String>) -> Fact {
        Fact::new(about, text).judged(Verdict::Note)
    }

    fn judged(self, verdict: Verdict) -> Fact {
        Fact { verdict: Some(verdict), ..self }
    }

    fn remedied(self, command: impl Into<String>, effect: &'static str) -> Fact {
        Fact { remedy: Some(Remedy { command: command.into(), effect }), ..self }
    }

    /// Returns the finding of the doctor about a source, or about the home.
    pub fn finding(self, source: Option<&SourceStatus>) -> Option<Finding> {
        let Fact { about, text, verdict, remedy } = self;
        let address = source.map(|source| source.database.to_string());
        let what =
            if source.is_some() && about != HOLDS { format!("{about}: {text}") } else { text };
        Some(Finding {
            verdict: verdict?,
            about: address.unwrap_or_else(|| about.to_owned()),
            what,
            mend: remedy.map(|remedy| remedy.command),
        })
    }
}

impl fmt::Display for Fact {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.text)?;
        match &self.remedy {
            Some(remedy) if !remedy.effect.is_empty() => write!(f, "; {remedy}"),
            _ => Ok(()),
        }
    }
}

/// Returns the facts about a source. `named` is the flag, variable or key that names the database, if that is
/// known.
pub fn of_source(source: &SourceStatus, named: Option<&str>, config: &Config) -> Vec<Fact> {
    let mut facts = Vec::new();
    if source.source == SourceKind::Export.name() {
        add_choice(&mut facts, source, named, config);
    } else {
        facts.push(Fact::new("chosen", "kept by verbatim"));
    }
    facts.push(contents(source));
    if source.kept > 0 {
        let kept = counted(source.kept, "conversation");
        facts.push(Fact::new(
            "kept",
            format!("{kept} whose transcripts were deleted, cut or moved"),
        ));
    }
    facts.extend(source.unread_parts.iter().map(|what| Fact::note("not read", what)));
    if let StoreAddress::Cluster(_) = source.database {
        facts.push(Fact::new("searched", "by the cluster, whose index the imports write"));
        return facts;
    }
    let mut size = bytes(source.bytes);
    if let Some(changed) = source.changed {
        size += &format!(", changed {} ago", ago(changed));
    }
    facts.push(Fact::new("size", size));
    match &source.by_like {
        // No index helps a database that cannot be read.
        _ if source.error.is_some() => {}
        None => {
            let text = "by its index, which is current";
            facts.push(Fact::new("searched", text).judged(Verdict::Well));
        }
        Some(why) => facts.push(without_index(source, why)),
    }
    if let Some(snapshot) = &source.generation {
        let with = if snapshot.derived.is_empty() { "" } else { ", with " };
        let derived = snapshot.derived.join(" and ");
        facts.push(Fact::new("index", format!("{}{with}{derived}", bytes(snapshot.bytes))));
        let meaning = snapshot.meaning.as_ref().filter(|meaning| !meaning.is_complete());
        facts.extend(meaning.map(|meaning| Fact::new("meaning", meaning.to_string())));
    }
    if let Some(last) = &source.refreshed {
        let cpu = last.cpu.map(|cpu| format!(", {cpu:.1} s of CPU time")).unwrap_or_default();
        let text = format!(
            "{} ago, {} {} in {:.1} s{cpu}",
            ago(last.at),
            last.what,
            counted(last.messages, "message"),
            last.took,
        );
        facts.push(Fact::new("last refresh", text));
    }
    if let Some(activity) = &source.at_work {
        let text = match activity.process {
            0 => "a process refreshes the index".to_owned(),
            process => {
                let time = ago(activity.since);
                format!("process {process} has been refreshing the index for {time}")
            }
        };
        facts.push(Fact::note("at work", text));
    }
    facts
}

/// Returns the facts about the home, and about what is not searched.
pub fn of_home(status: &Status, config: &Config) -> Vec<Fact> {
    let mut facts = Vec::new();
    match config.export_store() {
        Ok(_) => {}
        Err(Error::NoDatabase { folder }) => {
            let mut text = format!("none is imported yet into {}", folder.display());
            if !status.sources.is_empty() {
                text += "; transcripts and threads are searched";
            }
            let effect = "reads an export; --db or CONVERSATION_DB names a database";
            facts.push(Fact::note("export", text).remedied("verbatim import", effect));
        }
        Err(error) => {
            let fact = Fact::new("export", error.to_string()).judged(Verdict::Wrong);
            let effect = "reads an export; --db or CONVERSATION_DB names another database";
            facts.push(fact.remedied("verbatim import EXPORT", effect));
        }
    }
    if !status.exclude.is_empty() {
        let mut counts = Vec::new();
        for SourceStatus { source, excluded, .. } in &status.sources {
            match excluded {
                _ if *source == SourceKind::Threads.name() => {}
                Ok(excluded) => {
                    counts.push(format!("{} of the {source}", counted(*excluded, "conversation")));
                }
                Err(error) => counts.push(format!("an unknown number of the {source}: {error}")),
            }
        }
        let text = format!("{}; in no answer: {}", status.exclude.join(", "), counts.join(", "));
        facts.push(Fact::note("excluded", text));
    }
    match &status.forgotten {
        Ok(0) => {}
        Ok(forgotten) => {
            let fact = Fact::new("forgotten", counted(*forgotten, "conversation"));
            facts.push(fact.remedied("verbatim forget --list", "lists them"));
        }
        Err(error) => facts.push(Fact::new("forgotten", format!("unknown: {error}"))),
    }
    for path in &status.not_imported {
        let path = path.display().to_string();
        let command = format!("verbatim import {}", quoted(&path));
        facts.push(Fact::note("not imported", path).remedied(command, "brings it in"));
    }
    facts.push(Fact::new("home", status.home.display().to_string()));
    facts.push(Fact::new("indexes", status.index.display().to_string()));
    facts
}

/// Adds why the database of the export was chosen, and the databases that were not.
fn add_choice(facts: &mut Vec<Fact>, source: &SourceStatus, named: Option<&str>, config: &Config) {
    if let Some(named) = named {
        facts.push(Fact::new("chosen", format!("named by {named}")));
        return;
    }
    if config.db.is_some() {
        facts.push(Fact::new("chosen", "named when the program was started"));
        return;
    }
    let folder = source.database.path().and_then(|path| path.parent()).unwrap_or(&config.home);
    let passed_over = config.passed_over();
    let mut text = match passed_over.iter().filter(|(_, is_canonical)| *is_canonical).count() {
        0 => format!("the only database with chats in {}", folder.display()),
        others => format!("newer than {} in {}", counted(others, "other"), folder.display()),
    };
    if config.local_folder().is_some() {
        text.push_str(
            ", the db/ of the working folder, which is only read; imports and indexes go to the home",
        );
    }
    facts.push(Fact::new("chosen", text));
    for (path, is_canonical) in passed_over {
        let path = path.display().to_string();
        facts.push(if is_canonical {
            let command = format!("verbatim search --db {} TEXT", quoted(&path));
            Fact::note("not searched", path).remedied(command, "")
        } else {
            Fact::new("not searched", format!("{path}, which holds no chats"))
        });
    }
}

fn contents(source: &SourceStatus) -> Fact {
    let mut fact = if let Some(error) = &source.error {
        let remedy = source.mend.map(|mend| Remedy { command: mend.to_owned(), effect: "" });
        Fact { remedy, ..Fact::new(HOLDS, error).judged(Verdict::Wrong) }
    } else if let Some(messages) = source.messages {
        let messages = counted(messages, "message");
        let conversations = counted(source.conversations.unwrap_or_default(), "conversation");
        Fact::new(HOLDS, format!("{messages} in {conversations}")).judged(Verdict::Well)
    } else {
        Fact::new(HOLDS, "not counted: that takes long without a current index")
    };
    if let (Some(first), Some(last)) = (&source.first, &source.last) {
        fact.text += &format!(", {} to {}", day(first), day(last));
    }
    fact
}

/// Returns the day of a time in ISO 8601.
fn day(time: &str) -> &str {
    time.split('T').next().unwrap_or_default()
}

fn without_index(source: &SourceStatus, why: &FallbackReason) -> Fact {
    let slowly = Fact::note("searched", format!("slowly, because {why}"));
    if source.at_work.is_some() {
        return slowly;
    }
    let kind = SourceKind::ALL.into_iter().find(|kind| kind.name() == source.source);
    match kind.map(|kind| IndexNeed::new(kind, source.bytes, why)) {
        Some(IndexNeed::Small) => Fact::new(
            "searched",
            "without an index, which so few need only for --mode both; the first such search builds it",
        ),
        Some(IndexNeed::BySearch) => {
            Fact { text: slowly.text + "; the next search brings the index up to date", ..slowly }
        }
        _ if matches!(why, FallbackReason::Unreadable(_)) => {
            Fact { remedy: remedy(why), ..slowly.judged(Verdict::Wrong) }
        }
        _ => Fact { remedy: remedy(why), ..slowly },
    }
}

/// Returns how long ago a time is, which is in seconds since 1970, in one unit: `3 hours`.
fn ago(time: u64) -> String {
    let now = SystemTime::now().duration_since(UNIX_EPOCH).unwrap_or_default();
    let seconds = now.as_secs().saturating_sub(time);
    match seconds {
        0..120 => counted(seconds, "second"),
        120..7_200 => counted(seconds / 60, "minute"),
        7_200..172_800 => counted(seconds / 3_600, "hour"),
        _ => counted(seconds / 86_400, "day"),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::test_export::TestExport;
    use verbatim_base::call::Call;

    fn fact(export: &TestExport, about: &str) -> (Fact, Option<Finding>) {
        let status = verbatim_engine::status(export.engine.all_sources(), &Call::default());
        let source = &status.sources[0];
        let facts = of_source(source, Some("--db"), export.engine.config());
        let fact = facts.into_iter().find(|fact| fact.about == about).unwrap();
        (fact.clone(), fact.finding(Some(source)))
    }

    #[test]
    fn facts_with_a_verdict_are_findings() {
        let export = TestExport::of(&["red", "green"]);
        let (chosen, finding) = fact(&export, "chosen");
        assert_eq!((chosen.to_string().as_str(), finding), ("named by --db", None));
        let (searched, finding) = fact(&export, "searched");
        let text = "slowly, because there is no index of this database";
        assert_eq!(searched.to_string(), format!("{text}; `verbatim reindex` builds it"));
        let finding = finding.unwrap();
        assert_eq!(
            (finding.verdict, finding.mend.as_deref()),
            (Verdict::Note, Some("verbatim reindex"))
        );
        assert_eq!(finding.what, format!("searched: {text}"));
        let (holds, finding) = fact(&export, HOLDS);
        let finding = finding.unwrap();
        assert!(holds.text.starts_with("2 messages in 2 conversations, 2023-"), "{holds}");
        assert_eq!((finding.verdict, finding.what), (Verdict::Well, holds.text));
        let (searched, finding) = fact(&TestExport::indexed(&["red"]), "searched");
        assert_eq!(searched.text, "by its index, which is current");
        assert_eq!(finding.unwrap().verdict, Verdict::Well);
    }
}
