//! Nodes that are killed: answers stay right, or are errors.

use std::hash::{DefaultHasher, Hash, Hasher};
use std::sync::atomic::{AtomicBool, Ordering::SeqCst};
use std::thread;

use serde_json::Value;
use verbatim_base::call::Call;
use verbatim_base::model::{Hit, Request};
use verbatim_engine::{Rendered, SearchPlan};

use crate::database::{Database, Message, Schema};
use crate::nodes::{Killing, Nodes, nodes};
use crate::relay::{Moment, Relays};
use crate::upkeep::{CONVERSATIONS, Scene, TURNS, printed};
use crate::{import, new_name, reader};

const MESSAGES: usize = 1_500;

fn database(word: &str) -> Database {
    let message = |n: usize| Message {
        conversation: n % 3,
        time: n % 13,
        position: Some(n as i64),
        ..Message::stored(format!("the {word} {n}").as_str())
    };
    let messages: Vec<Message> = (0..MESSAGES).map(message).collect();
    Database::of(Schema::Typed, &["a".into(), "b".into(), "c".into()], &messages)
}

/// Returns how many messages have a text; `None` for an error.
fn found(nodes: &Nodes, index: &str, text: &str) -> Option<usize> {
    let request = Request { text: text.to_owned(), ..Request::default() };
    let mut count = 0;
    let mut sink = Rendered::new(
        |_: Hit<'_>| Some(()),
        |()| {
            count += 1;
            std::ops::ControlFlow::Continue(())
        },
    );
    let outcome = reader(nodes, index).search(&request, &Call::default(), &mut sink);
    outcome.is_ok_and(|plan| matches!(plan, SearchPlan::ByCluster { .. })).then_some(count)
}

#[test]
#[ignore = "nodes that come back can take minutes"]
fn killed_nodes_lose_nothing() {
    let Some(nodes) = nodes().filter(|nodes| nodes.is_ours()) else { return };
    let _killing = Killing::begin();
    let index = new_name();
    let (first, second) = (database("thing"), database("other"));
    import(nodes, &first.path(), &index);
    nodes.wait("wait_for_status=green");
    // Kills the node during a search, and then searches without the node.
    thread::scope(|scope| {
        scope.spawn(|| nodes.kill(2));
        for _ in 0..20 {
            let count = found(nodes, &index, "thing");
            assert!(count.is_none_or(|count| count == MESSAGES), "{count:?}");
        }
    });
    assert_eq!(found(nodes, &index, "thing"), Some(MESSAGES));
    nodes.revive(2);
    nodes.wait("wait_for_nodes=3&wait_for_status=green");
    // The node is killed during an import.
    thread::scope(|scope| {
        scope.spawn(|| {
            thread::sleep(std::time::Duration::from_millis(400));
            nodes.kill(1);
        });
        import(nodes, &second.path(), &index);
    });
    assert_eq!(found(nodes, &index, "other"), Some(MESSAGES));
    nodes.revive(1);
    nodes.wait("wait_for_nodes=3&wait_for_status=green");
    assert_eq!(found(nodes, &index, "other"), Some(MESSAGES));
    nodes.remove(&index);
}

/// How often a node is killed at a random request of each command.
const MOMENTS: usize = 3;

/// A command whose effect must be seen completely or not at all.
struct Change {
    words: &'static [&'static str],
    /// The numbers of messages before and after the command.
    states: [usize; 2],
}

const FORGET: Change = Change {
    words: &["forget", "--yes", "conversation-3"],
    states: [CONVERSATIONS * TURNS, (CONVERSATIONS - 1) * TURNS],
};

const REINDEX: Change =
    Change { words: &["reindex", "--full"], states: [CONVERSATIONS * TURNS; 2] };

/// Runs a command, and kills a node at a given request. Meanwhile, searches must find all messages of one
/// state, or fail. After an error, the next call must succeed. Returns the number of requests.
#[track_caller]
fn check(nodes: &'static Nodes, change: &Change, moment: &Moment) -> usize {
    let scene = Scene::of(nodes, None);
    nodes.wait("wait_for_status=green");
    let relays = Relays::start(nodes, moment.clone());
    let is_over = AtomicBool::new(false);
    let output = thread::scope(|scope| {
        scope.spawn(|| {
            while !is_over.load(SeqCst) {
                let count = found(nodes, &scene.index, "the thing");
                let is_whole = count.is_none_or(|count| change.states.contains(&count));
                assert!(is_whole, "{moment:?}: {count:?} messages");
            }
        });
        let output = scene.run_on(&relays.address(&scene.index), change.words);
        is_over.store(true, SeqCst);
        output
    });
    let said = String::from_utf8_lossy(&output.stderr).into_owned();
    assert!(output.status.success() || said.contains("do it again"), "{moment:?}: {said}");
    let [_, after] = change.states;
    if output.status.success() {
        assert_eq!(found(nodes, &scene.index, "the thing"), Some(after), "{moment:?}");
    }
    if relays.was_killed() {
        nodes.revive(moment.node);
        nodes.wait("wait_for_nodes=3");
    }
    printed(&scene.run(change.words));
    assert_eq!(found(nodes, &scene.index, "the thing"), Some(after), "{moment:?}");
    if change.words == FORGET.words {
        assert_eq!(found(nodes, &scene.index, "wallaby3"), Some(0), "{moment:?}");
        let left = scene.generations(&format!("{}-v*", scene.index));
        assert_eq!(left, scene.generations(&scene.index), "{moment:?}: the states before");
        nodes.wait("wait_for_status=green");
        let stats = nodes.ask("GET", &format!("{}/_stats/docs", scene.index), None);
        let deleted = stats.map(|stats| stats["_all"]["total"]["docs"]["deleted"].clone());
        assert_eq!(deleted, Some(Value::from(0)), "{moment:?}");
    }
    relays.asked()
}

/// Kills nodes at random requests of a command; `VERBATIM_SEED` chooses others.
fn check_at_random(change: &Change) {
    let Some(nodes) = nodes().filter(|nodes| nodes.is_ours()) else { return };
    let _killing = Killing::begin();
    let never = Moment { number: usize::MAX, path: "", node: 0, is_after: false };
    let requests = check(nodes, change, &never);
    for round in 0..MOMENTS {
        let mut hasher = DefaultHasher::new();
        (std::env::var("VERBATIM_SEED").ok(), change.words, round).hash(&mut hasher);
        let random = hasher.finish() as usize;
        let number = random % requests + 1;
        let (node, is_after) = (random / 1_000 % 3, (random >> 20) & 1 == 1);
        check(nodes, change, &Moment { number, node, is_after, ..never });
    }
}

#[test]
#[ignore = "nodes that come back can take minutes"]
fn a_conversation_is_forgotten_whole_or_not_at_all() {
    check_at_random(&FORGET);
}

#[test]
#[ignore = "nodes that come back can take minutes"]
fn an_index_is_written_anew_whole_or_not_at_all() {
    check_at_random(&REINDEX);
}

#[test]
#[ignore = "nodes that come back can take minutes"]
fn the_alias_moves_or_stays() {
    let Some(nodes) = nodes().filter(|nodes| nodes.is_ours()) else { return };
    let _killing = Killing::begin();
    for (change, is_after) in [(&FORGET, true), (&FORGET, false), (&REINDEX, true)] {
        // The search goes to this node.
        check(nodes, change, &Moment { number: 1, path: "/_aliases", node: 0, is_after });
    }
}
