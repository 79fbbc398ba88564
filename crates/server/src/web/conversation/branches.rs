//! The branches of a conversation: edited prompts and regenerated answers.

use std::collections::{HashMap, HashSet};

use verbatim_engine::Session;

/// The messages on one path through a conversation, by their turns.
pub(super) struct Path {
    turns: Vec<usize>,
    /// The place of each turn in `turns`; `None` for a turn that is on another branch or left out.
    places: Vec<Option<usize>>,
    tree: Option<BranchTree>,
}

struct BranchTree {
    /// The turn before each turn.
    before: Vec<Option<usize>>,
    /// The next turns after each turn, oldest first. The turns after `None` begin the conversation.
    after: HashMap<Option<usize>, Vec<usize>>,
    is_shown: Vec<bool>,
}

impl Path {
    /// Returns the path through a turn, or the path that the service shows. `follows` maps each
    /// message on another branch to the message before it.
    pub(super) fn through(
        session: &Session,
        follows: &HashMap<String, String>,
        turn: Option<usize>,
    ) -> Path {
        let tree = (!follows.is_empty()).then(|| BranchTree::new(session, follows));
        let turns = match &tree {
            None => (0..session.turns()).collect(),
            Some(tree) => tree.through(turn),
        };
        let mut path = Path { turns, places: vec![None; session.turns()], tree };
        path.retain(|_| true);
        path
    }

    pub(super) fn turns(&self) -> &[usize] {
        &self.turns
    }

    pub(super) fn retain(&mut self, is_kept: impl Fn(usize) -> bool) {
        self.turns.retain(|turn| is_kept(*turn));
        self.places.fill(None);
        for (place, turn) in self.turns.iter().enumerate() {
            self.places[*turn] = Some(place);
        }
    }

    /// Returns the place of a turn; `None` if the turn is on another branch or left out.
    pub(super) fn place(&self, turn: usize) -> Option<usize> {
        self.places.get(turn).copied().flatten()
    }

    /// Returns the versions of a turn, including the turn itself, oldest first.
    pub(super) fn versions(&self, turn: usize) -> &[usize] {
        let versions = self.tree.as_ref().and_then(|tree| tree.after.get(&tree.before[turn]));
        versions.map(Vec::as_slice).unwrap_or_default()
    }

    pub(super) fn branches(&self) -> usize {
        let Some(tree) = &self.tree else { return 1 };
        (0..tree.before.len()).filter(|turn| !tree.after.contains_key(&Some(*turn))).count()
    }
}

impl BranchTree {
    fn new(session: &Session, follows: &HashMap<String, String>) -> BranchTree {
        let all = session.turns();
        let messages: Vec<_> = (0..all)
            .map(|turn| {
                let message = session.message(turn);
                (message.message_id.into_owned(), message.time)
            })
            .collect();
        let turns: HashMap<&str, usize> =
            messages.iter().enumerate().map(|(turn, (id, _))| (id.as_str(), turn)).collect();
        let mut before = Vec::new();
        let mut is_shown = vec![false; all];
        let mut last = None;
        for (turn, (id, _)) in messages.iter().enumerate() {
            match follows.get(id) {
                Some(id) => before.push(turns.get(id.as_str()).copied()),
                None => {
                    before.push(last);
                    is_shown[turn] = true;
                    last = Some(turn);
                }
            }
        }
        let mut after: HashMap<Option<usize>, Vec<usize>> = HashMap::new();
        for (turn, before) in before.iter().enumerate() {
            after.entry(*before).or_default().push(turn);
        }
        for turns in after.values_mut() {
            turns.sort_by_key(|turn| (messages[*turn].1, *turn));
        }
        BranchTree { before, after, is_shown }
    }

    /// Returns the path through a turn. After the turn, the path follows the branch that the
    /// service shows, or else the newest version.
    fn through(&self, turn: Option<usize>) -> Vec<usize> {
        let mut seen = HashSet::new();
        let up = std::iter::successors(turn, |turn| self.before[*turn]);
        let mut path: Vec<usize> = up.take_while(|turn| seen.insert(*turn)).collect();
        path.reverse();
        while let Some(next) = self.after.get(&path.last().copied()) {
            let next = next.iter().find(|turn| self.is_shown[**turn]).or(next.last());
            let Some(next) = next.copied().filter(|next| seen.insert(*next)) else { break };
            path.push(next);
        }
        path
    }
}
