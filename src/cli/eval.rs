//! The command `verbatim eval`.

mod corpus;
mod error;

use std::{
    collections::HashSet,
    io::Write,
    path::{Path, PathBuf},
    time::{Duration, Instant},
};

use serde::Serialize;
use serde_json::{Value, json};

use self::corpus::{Corpus, EvalQuery};
pub(super) use self::error::Error;
use super::{environment::Terminal, output::FOUND, progress::Step};
use verbatim_base::{model::Stop, private};
use verbatim_engine::{
    self as engine, Branches, Config, Engine, Mode, Question, Ranker, Reindex, Resources, Scope,
    StoreAddress, Withheld,
    import::{Target, import_until},
};

/// Measure ranked search on questions with known answers
///
/// Reads messages and questions whose answers are known, ranks the messages for every question in
/// every mode, and prints the share of the answers among the first 5 and 10 (recall), how near the top
/// they are (MRR, nDCG), and the time per question. Does not read your own chats, and keeps nothing.
///
/// Each line of CORPUS is a message: {"id", "conversation", "speaker", "text", "time"}. The messages of
/// a conversation are in order. Each line of QUERIES is a question: {"qid", "text", "conversation",
/// "relevant": [ids]}. A question with a conversation is ranked within that conversation.
///
/// With --db and the address of an index in a cluster, the messages are ranked there: they are imported
/// into it and stay there. An index that has other messages is left alone.
///
///     verbatim eval questions.jsonl --corpus messages.jsonl
#[derive(Debug, clap::Args)]
#[command(verbatim_doc_comment)]
pub(super) struct Args {
    /// The questions, one JSON object per line
    queries: PathBuf,
    /// The messages, one JSON object per line
    #[arg(long, value_name = "FILE")]
    corpus: PathBuf,
    /// Print one JSON object: {"modes": {"text": {"recall_at_5", …}, "vector": …, "both": …}}
    #[arg(long)]
    json: bool,
    /// Rank every question over all conversations
    #[arg(long)]
    across: bool,
}

const MODES: [(&str, Mode); 3] =
    [("text", Mode::Text), ("vector", Mode::Vector), ("both", Mode::Both)];

/// The number of messages ranked for a question.
const DEPTH: usize = 10;

#[derive(Clone, Copy, Debug, Default, Serialize)]
struct Figures {
    recall_at_5: f64,
    recall_at_10: f64,
    mrr_at_10: f64,
    ndcg_at_10: f64,
    ms_per_query: f64,
}

pub(super) fn run(args: &Args, config: &Config, terminal: Terminal<'_>) -> Result<u8, Error> {
    let Terminal { environment, out } = terminal;
    let queries = corpus::queries(&args.queries)?;
    let corpus = corpus::read(&args.corpus)?;
    let folder = private::temporary_dir().map_err(Error::Temporary)?;
    let engine = match &config.db {
        Some(address @ StoreAddress::Cluster(_)) => {
            prepare_in(address, &corpus, folder.path(), config)?
        }
        Some(StoreAddress::Database(_)) | None => prepare(&corpus, folder.path())?,
    };
    let count = queries.iter().filter(|query| !query.relevant.is_empty()).count();
    if count == 0 {
        let what = "no question names its relevant messages";
        return Err(Error::Empty { path: args.queries.clone(), what });
    }
    let evaluation = Evaluation { engine, corpus, queries, count, is_across: args.across };
    let mut modes = Vec::new();
    for (name, mode) in MODES {
        let step = Step::begin(environment, name);
        modes.push((name, evaluation.figures(mode, &step)?));
        step.clear();
    }
    if args.json {
        let modes = modes.iter().map(|(name, figures)| (*name, json!(figures)));
        writeln!(out, "{}", json!({ "modes": modes.collect::<Value>() }))?;
    } else {
        evaluation.write_table(out, &modes)?;
    }
    Ok(FOUND)
}

/// The questions of an evaluation, and the engine that answers them.
struct Evaluation {
    engine: Engine,
    corpus: Corpus,
    queries: Vec<EvalQuery>,
    /// The number of questions with known answers.
    count: usize,
    /// Whether every question is ranked over all conversations.
    is_across: bool,
}

impl Evaluation {
    /// Returns the figures of a mode: the means over all questions with known answers.
    fn figures(&self, mode: Mode, step: &Step) -> Result<Figures, Error> {
        // The first question opens the index, so its time does not count.
        self.rank(&self.queries[0], mode)?;
        let mut sum = Figures::default();
        let mut took = Duration::ZERO;
        let known = self.queries.iter().filter(|query| !query.relevant.is_empty());
        for (done, query) in (1..).zip(known) {
            let start = Instant::now();
            let found = self.rank(query, mode)?;
            took += start.elapsed();
            let found: Vec<&str> = found.iter().filter_map(|id| self.corpus.id(id)).collect();
            add(&mut sum, &found, &query.relevant);
            step.count(done, self.count);
        }
        let count = self.count as f64;
        Ok(Figures {
            recall_at_5: sum.recall_at_5 / count,
            recall_at_10: sum.recall_at_10 / count,
            mrr_at_10: sum.mrr_at_10 / count,
            ndcg_at_10: sum.ndcg_at_10 / count,
            ms_per_query: took.as_secs_f64() * 1e3 / count,
        })
    }

    /// Returns the ids of the best messages for a question.
    fn rank(&self, query: &EvalQuery, mode: Mode) -> Result<Vec<String>, Error> {
        let conversation = query.conversation.as_ref().filter(|_| !self.is_across);
        let question = Question {
            concepts: vec![query.text.clone()],
            mode,
            scope: Scope {
                // If the corpus does not contain the conversation, all conversations are searched.
                conversation: conversation.and_then(|name| self.corpus.conversation(name)),
                ..Scope::default()
            },
            limit: DEPTH,
            ..Question::default()
        };
        Ok(Ranker::new(self.engine.all_sources(), &question, &Stop::never()).message_ids()?)
    }

    fn write_table(&self, out: &mut dyn Write, modes: &[(&str, Figures)]) -> std::io::Result<()> {
        writeln!(
            out,
            "{} questions over {} messages of {} conversations{}\n",
            self.count,
            self.corpus.messages(),
            self.corpus.conversations(),
            if self.is_across { ", all in one" } else { "" }
        )?;
        writeln!(out, "mode    recall@5  recall@10  MRR@10  nDCG@10  ms/query")?;
        for (name, figures) in modes {
            writeln!(
                out,
                "{name:<8}{:>8.3}{:>11.3}{:>8.3}{:>9.3}{:>10.2}",
                figures.recall_at_5,
                figures.recall_at_10,
                figures.mrr_at_10,
                figures.ndcg_at_10,
                figures.ms_per_query
            )?;
        }
        Ok(())
    }
}

/// Stores and indexes the messages in a folder.
fn prepare(corpus: &Corpus, folder: &Path) -> Result<Engine, Error> {
    let database = folder.join("corpus.db");
    corpus.write(&database)?;
    let engine = Engine::new(Config {
        db: Some(database.into()),
        home: folder.to_owned(),
        ..Config::default()
    });
    let threads = std::thread::available_parallelism().map_or(1, usize::from);
    let resources = Resources { memory: 512 << 20, threads };
    let never = Stop::never();
    engine.upkeep().reindex(Reindex { resources, full: false }, &never, &mut |_| ())?;
    for source in engine.sources() {
        source.enrich(resources, &never, &mut |_, _| ())?;
    }
    Ok(engine)
}

/// Imports the messages into an index of a cluster, unless the index has other messages.
fn prepare_in(
    address: &StoreAddress,
    corpus: &Corpus,
    folder: &Path,
    config: &Config,
) -> Result<Engine, Error> {
    let stop = Stop::never();
    let engine = Engine::new(Config { home: folder.to_owned(), ..config.clone() });
    for source in engine.sources() {
        let (messages, _) = engine::indexed(&source, &stop);
        if messages > 0 && messages != corpus.messages() as u64 {
            return Err(Error::InUse { address: source.address(), messages });
        }
    }
    let database = folder.join("corpus.db");
    corpus.write(&database)?;
    let withheld = Withheld::default();
    let target = Target::new(config, address, &withheld);
    import_until(&[database], &target, Branches::Shown, &stop, &|_| {})?;
    Ok(engine)
}

/// Adds the figures of one question to `sum`. `found` is the ranking of messages, best first.
fn add(sum: &mut Figures, found: &[&str], relevant: &HashSet<String>) {
    let is_relevant: Vec<bool> = found.iter().map(|id| relevant.contains(*id)).collect();
    let count = relevant.len() as f64;
    let hits = |most: usize| is_relevant.iter().take(most).filter(|hit| **hit).count() as f64;
    sum.recall_at_5 += hits(5) / count;
    sum.recall_at_10 += hits(10) / count;
    let first = is_relevant.iter().take(10).position(|hit| *hit);
    sum.mrr_at_10 += first.map_or(0.0, |place| 1.0 / (place + 1) as f64);
    let gain = |place: usize| 1.0 / ((place + 2) as f64).log2();
    let ideal: f64 = (0..relevant.len().min(10)).map(gain).sum();
    let places = (0..is_relevant.len().min(10)).filter(|place| is_relevant[*place]);
    sum.ndcg_at_10 += places.map(gain).sum::<f64>() / ideal;
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn figures_are_those_of_the_definitions() {
        let relevant: HashSet<String> = ["a", "b"].map(str::to_owned).into();
        let mut sum = Figures::default();
        add(&mut sum, &["x", "a", "y", "z", "w", "b"], &relevant);
        assert!((sum.recall_at_5 - 0.5).abs() < 1e-9 && (sum.recall_at_10 - 1.0).abs() < 1e-9);
        assert!((sum.mrr_at_10 - 0.5).abs() < 1e-9);
        let ideal = 1.0 + 1.0 / 3f64.log2();
        let expected = (1.0 / 3f64.log2() + 1.0 / 7f64.log2()) / ideal;
        assert!((sum.ndcg_at_10 - expected).abs() < 1e-9);
        add(&mut sum, &[], &relevant);
        assert!((sum.recall_at_10 - 1.0).abs() < 1e-9);
    }
}
