//! The command `verbatim eval`.

mod beam;
mod corpus;
mod error;
mod figures;
mod lines;
mod locomo;
mod longmemeval;
mod published;

use std::{
    collections::HashMap,
    io::Write,
    path::{Path, PathBuf},
    sync::Arc,
    time::{Duration, Instant},
};

use serde_json::{Value, json};

pub(super) use self::error::Error;
use self::{
    corpus::{Corpus, EvalQuery, EvalSet},
    figures::{Figures, QuestionFigures},
};
use super::{
    environment::Terminal,
    output::{FOUND, counted},
    progress::Step,
};
use verbatim_base::{model::Stop, private};
use verbatim_engine::{
    self as engine, Branches, Config, Decisions, Engine, Mode, Provider, Question, Ranker, Reindex,
    Resources, Scope, SourceKind, StoreAddress,
    import::{Target, import_until},
};

/// Measure ranked search on questions with known answers
///
/// Reads messages and questions whose answers are known, ranks the messages for every question in
/// every mode, and prints the share of the answers among the first 5 and 10 (recall), how near the top
/// they are (MRR, nDCG), and the time per question. In brackets are the ends between which 95 % of the
/// means are if the questions are drawn again. Vectors are those of the model that your searches ask.
/// Does not read your own chats, and keeps nothing.
///
/// Each line of CORPUS is a message: {"id", "conversation", "speaker", "text", "time"}. The messages of
/// a conversation are in order. Each line of QUERIES is a question: {"qid", "text", "conversation",
/// "relevant": [ids]}. A question with a conversation is ranked within that conversation.
///
/// Published sets need no CORPUS: a file of LongMemEval or LoCoMo, or a folder of BEAM or REALTALK.
///
/// With --db and the address of an index in a cluster, the messages are ranked there: they are imported
/// into it and stay there. An index that has other messages is left alone.
///
///     verbatim eval questions.jsonl --corpus messages.jsonl
///     verbatim eval locomo10.json
#[derive(Debug, clap::Args)]
#[command(verbatim_doc_comment)]
pub(super) struct Args {
    /// The questions, one JSON object per line; or a published set
    queries: PathBuf,
    /// The messages, one JSON object per line
    #[arg(long, value_name = "FILE")]
    corpus: Option<PathBuf>,
    /// Print one JSON object: {"modes": {"text": {"recall_at_5", …}, "vector": …, "both": …}}
    #[arg(long)]
    json: bool,
    /// Rank every question over all conversations
    #[arg(long)]
    across: bool,
}

const MODES: [(&str, Mode); 3] =
    [("text", Mode::Text), ("vector", Mode::Vector), ("both", Mode::Both)];

/// The shares of vectors in mode `both` that are compared for a provider, in percent.
const SHARES: [u8; 5] = [10, 30, 50, 70, 90];

const DEPTH: usize = 10;

pub(super) fn run(args: &Args, config: &Config, terminal: Terminal<'_>) -> Result<u8, Error> {
    let Terminal { environment, out } = terminal;
    let EvalSet { mut corpus, mut queries } = match &args.corpus {
        Some(messages) => lines::read(&args.queries, messages)?,
        None => published::read(&args.queries)?,
    };
    queries.retain(|query| !query.relevant.is_empty());
    if queries.is_empty() {
        let what = "no question names its relevant messages";
        return Err(Error::Empty { path: args.queries.clone(), what });
    }
    corpus.limit_roles();
    let folder = private::temporary_dir().map_err(Error::Temporary)?;
    let engine = match &config.db {
        Some(address @ StoreAddress::Cluster(_)) => {
            prepare_in(address, &corpus, folder.path(), config)?
        }
        Some(StoreAddress::Database(_)) | None => prepare(&corpus, folder.path(), config)?,
    };
    let evaluation = Evaluation { engine, corpus, queries, is_across: args.across };
    let mut modes = Vec::new();
    for (name, mode) in MODES {
        let step = Step::begin(environment, name);
        modes.push((name, evaluation.figures(RankedWay { name, mode, share: None }, &step)?));
        step.clear();
    }
    let mut shares = Vec::new();
    // The share for the models of the program is known.
    for share in SHARES.into_iter().filter(|_| matches!(config.embeddings, Provider::Remote(_))) {
        let step = Step::begin(environment, &format!("both, {share} % by vectors"));
        let measured = RankedWay { name: "both", mode: Mode::Both, share: Some(share) };
        shares.push((share, evaluation.figures(measured, &step)?));
        step.clear();
    }
    let measured = EvalResult { embedding: evaluation.embedding(), modes, shares };
    match args.json {
        true => writeln!(out, "{}", measured.json())?,
        false => evaluation.write_table(out, &measured)?,
    }
    Ok(FOUND)
}

struct EvalResult {
    embedding: Embedding,
    modes: Vec<(&'static str, Figures)>,
    /// The figures of mode `both` by the share of vectors in percent; empty for the models of the program.
    shares: Vec<(u8, Figures)>,
}

#[derive(Clone, Copy)]
struct RankedWay {
    name: &'static str,
    mode: Mode,
    /// The share of vectors in percent; `None` for that of the searches.
    share: Option<u8>,
}

struct Embedding {
    model: String,
    /// The share of the messages that have a vector, from 0 to 1.
    share: f64,
    /// The share of vectors in mode `both`, if the words of the best messages cover a question.
    weight: f32,
}

impl EvalResult {
    fn json(&self) -> Value {
        let modes = self.modes.iter().map(|(name, figures)| (*name, json!(figures)));
        let shares = self.shares.iter().map(|(share, figures)| {
            let (recall, mrr) = (figures.recall_at_10, figures.mrr_at_10);
            json!({"vector_share": f64::from(*share) / 100.0, "recall_at_10": recall, "mrr_at_10": mrr})
        });
        json!({
            "modes": modes.collect::<Value>(),
            "shares": shares.collect::<Value>(),
            "model": self.embedding.model,
            "embedded": self.embedding.share,
            "vector_share": (f64::from(self.embedding.weight) * 100.0).round() / 100.0,
        })
    }
}

struct Evaluation {
    engine: Engine,
    corpus: Corpus,
    queries: Vec<EvalQuery>,
    /// Whether every question is ranked over all conversations.
    is_across: bool,
}

impl Evaluation {
    fn figures(&self, measured: RankedWay, step: &Step) -> Result<Figures, Error> {
        // The first question opens the index, so its time does not count.
        self.rank(&self.queries[0], measured)?;
        let mut questions = Vec::new();
        let mut took = Duration::ZERO;
        for query in &self.queries {
            let start = Instant::now();
            let found = self.rank(query, measured)?;
            took += start.elapsed();
            let found: Vec<&str> = found.iter().filter_map(|id| self.corpus.id(id)).collect();
            questions.push(QuestionFigures::of_ranking(&found, &query.relevant));
            step.count(questions.len(), self.queries.len());
        }
        Ok(Figures::mean_of(&questions, took.as_secs_f64() * 1e3 / questions.len() as f64))
    }

    /// Returns the ids of the best messages for a question. It is an error if the mode cannot be measured,
    /// such as by vectors if a provider stops to answer.
    fn rank(&self, query: &EvalQuery, measured: RankedWay) -> Result<Vec<String>, Error> {
        let RankedWay { name, mode, share } = measured;
        let question = Question {
            concepts: vec![query.text.clone()],
            mode,
            scope: self.scope(query),
            limit: DEPTH,
            ..Question::default()
        };
        let stop = Stop::never();
        let mut ranker = Ranker::new(self.engine.all_sources(), &question, &stop);
        if let Some(share) = share {
            ranker = ranker.with_vector_share(share);
        }
        let (ids, notes) = ranker.message_ids()?;
        match notes.iter().find(|note| note.is_gap()) {
            None => Ok(ids),
            Some(gap) => Err(Error::Incomplete { mode: name, reason: gap.to_string() }),
        }
    }

    /// Returns the conversations that are ranked for a question: all, if the corpus has none of those that
    /// the question names.
    fn scope(&self, query: &EvalQuery) -> Scope {
        let names = query.conversations.iter().filter(|_| !self.is_across);
        let mut ids: Vec<String> =
            names.filter_map(|name| self.corpus.conversation(name)).collect();
        match ids.len() {
            0 => Scope::default(),
            1 => Scope { conversation: ids.pop(), ..Scope::default() },
            _ => {
                let ids = HashMap::from([(SourceKind::Export, ids.into_iter().collect())]);
                Scope { conversations: Some(Arc::new(ids)), ..Scope::default() }
            }
        }
    }

    fn embedding(&self) -> Embedding {
        let sources = self.engine.sources();
        let known = sources.first().map(|source| engine::embedded(source, &Stop::never()));
        let (model, count) = known.unwrap_or_default();
        let share = count as f64 / self.corpus.messages() as f64;
        let weight = self.engine.all_sources().vector_share();
        Embedding { model: model.to_owned(), share, weight }
    }

    fn write_table(&self, out: &mut dyn Write, measured: &EvalResult) -> std::io::Result<()> {
        let EvalResult { embedding: Embedding { model, share, weight }, modes, shares } = measured;
        writeln!(
            out,
            "{} over {} of {}{}\nvectors of {model}: {:.1} % of the messages; their share in both: {weight:.2}\n",
            counted(self.queries.len() as u64, "question"),
            counted(self.corpus.messages() as u64, "message"),
            counted(self.corpus.conversations() as u64, "conversation"),
            if self.is_across { ", all in one" } else { "" },
            share * 100.0
        )?;
        writeln!(
            out,
            "mode    recall@5  recall@10 [95 %]          MRR@10 [95 %]          nDCG@10  ms/query"
        )?;
        for (name, figures) in modes {
            let ends = |[low, high]: [f64; 2]| format!("[{low:.3}, {high:.3}]");
            writeln!(
                out,
                "{name:<8}{:>8.3}{:>11.3} {}{:>8.3} {}{:>9.3}{:>10.2}",
                figures.recall_at_5,
                figures.recall_at_10,
                ends(figures.recall_at_10_interval),
                figures.mrr_at_10,
                ends(figures.mrr_at_10_interval),
                figures.ndcg_at_10,
                figures.ms_per_query
            )?;
        }
        let best = shares.iter().max_by(|(_, a), (_, b)| a.mrr_at_10.total_cmp(&b.mrr_at_10));
        let Some((best, _)) = best else { return Ok(()) };
        writeln!(out, "\nshare of vectors in both:  recall@10  MRR@10")?;
        for (share, figures) in shares {
            let (recall, mrr) = (figures.recall_at_10, figures.mrr_at_10);
            writeln!(out, "{:>24.2}{recall:>12.3}{mrr:>8.3}", f64::from(*share) / 100.0)?;
        }
        let best = f64::from(*best) / 100.0;
        writeln!(
            out,
            "{best:.2} has the best MRR@10; in the configuration file: vector-share = {best}"
        )
    }
}

/// Stores and indexes the messages in a folder, with the vectors of the configured provider.
fn prepare(corpus: &Corpus, folder: &Path, config: &Config) -> Result<Engine, Error> {
    let database = folder.join("corpus.db");
    corpus.write(&database)?;
    let engine = Engine::new(Config {
        db: Some(database.into()),
        home: folder.to_owned(),
        embeddings: config.embeddings.clone(),
        vector_share: config.vector_share,
        ..Config::default()
    });
    let threads = std::thread::available_parallelism().map_or(1, usize::from);
    let resources = Resources { memory: 512 << 20, threads };
    let never = Stop::never();
    engine.upkeep().reindex(Reindex { resources, full: false }, &never, &mut |_| ())?;
    for source in engine.sources() {
        source.enrich(resources, &never, &mut |_, _| ())?;
        source.encode(resources.threads, &never, &|_| ())?;
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
    let decisions = Decisions::default();
    let target = Target::new(config, address, &decisions);
    import_until(&[database], &target, Branches::Shown, &stop, &|_| {})?;
    Ok(engine)
}
