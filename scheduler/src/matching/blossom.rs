//! The algorithm itself, on whole weights. See `matching` for the method.
//!
//! Not here: weights that are not whole.

/// No vertex, or no node.
const NONE: u32 = u32::MAX;

/// What a top-level node is to the tree.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
enum Label {
    /// Not in the tree.
    Free,
    /// At an even distance from the root: reaches out.
    Outer,
    /// At an odd distance, matched to an outer node.
    Inner,
}

/// An edge by its vertices, the first one on the side of whoever stores it.
type Edge = (u32, u32);

/// A vertex, or an odd cycle of nodes contracted to one. The first `n` nodes are the vertices.
#[derive(Clone, Debug)]
struct Node {
    /// The vertex in it that is matched outside of it, or that is not matched.
    base: u32,
    /// Of an inner node: the edge by which the tree reached it, outer vertex first.
    entry: Edge,
    /// All vertices in it.
    vertices: Vec<u32>,
    /// The cycle, that with the base first; empty for vertices.
    children: Vec<u32>,
    /// `links[i]` joins `children[i]` with the next one of the cycle, its vertex in `children[i]` first.
    links: Vec<Edge>,
    /// Of an outer node: the outer node that its least slack to another one leads to.
    nearest: u32,
}

/// A solved or half-solved matching.
pub(super) struct Blossom<'a> {
    n: usize,
    /// Given weights, times 4 when used; `n` by `n`, symmetric.
    weights: &'a [i64],
    /// Prices of vertices.
    y: Vec<i64>,
    mate: Vec<u32>,
    nodes: Vec<Node>,
    /// By node; nodes inside of blossoms are free.
    labels: Vec<Label>,
    /// Prices of blossoms, by node; 0 for vertices.
    z: Vec<i64>,
    /// Blossoms that stand for something, nested ones too.
    used: Vec<u32>,
    /// Blossoms that stand for nothing at present.
    unused: Vec<u32>,
    /// Top-level node of every vertex.
    top: Vec<u32>,
    /// Of every vertex not in an outer node: the outer vertex with the least slack to it, and that slack.
    reached: Vec<(u32, i64)>,
    /// Between outer nodes: their edge of least slack, with the vertex of the row's node first.
    between: Vec<Edge>,
    /// Outer top-level nodes.
    outer: Vec<u32>,
    /// Edges of slack 0 that were found on the way: from outer vertices to others that are not in the same node, or
    /// were not when they were found. No price changes before it is empty.
    tight: Vec<Edge>,
}

/// A minimum-weight perfect matching of a complete graph of `n` vertices, `n` even.
pub(super) fn solve(n: usize, weights: &[i64]) -> Blossom<'_> {
    assert!(n.is_multiple_of(2) && weights.len() == n * n, "{} weights of {n} vertices", weights.len());
    let mut blossom = Blossom::new(n, weights);
    blossom.begin();
    for root in 0..n {
        if blossom.mate[root] == NONE {
            blossom.grow_from(root as u32);
        }
    }
    blossom
}

impl<'a> Blossom<'a> {
    fn new(n: usize, weights: &'a [i64]) -> Self {
        let node = |vertices: Vec<u32>, base: u32| Node {
            base,
            entry: (NONE, NONE),
            vertices,
            children: Vec::new(),
            links: Vec::new(),
            nearest: NONE,
        };
        let mut nodes: Vec<Node> = (0..n as u32).map(|vertex| node(vec![vertex], vertex)).collect();
        // Blossoms are disjoint or nested and have at least three children, so there are at most n / 2.
        nodes.extend((0..n / 2).map(|_| node(Vec::new(), NONE)));
        Self {
            n,
            weights,
            y: vec![0; n],
            mate: vec![NONE; n],
            unused: (n as u32..nodes.len() as u32).rev().collect(),
            used: Vec::new(),
            between: vec![(NONE, NONE); nodes.len() * nodes.len()],
            labels: vec![Label::Free; nodes.len()],
            z: vec![0; nodes.len()],
            nodes,
            top: (0..n as u32).collect(),
            reached: vec![(NONE, 0); n],
            outer: Vec::new(),
            tight: Vec::new(),
        }
    }

    /// The matching.
    pub(super) fn pairs(&self) -> Vec<[usize; 2]> {
        let pair = |vertex: usize| [vertex, self.mate[vertex] as usize];
        (0..self.n).map(pair).filter(|[a, b]| a < b).collect()
    }

    /// Slack of an edge between different top-level nodes.
    fn slack(&self, a: u32, b: u32) -> i64 {
        4 * self.weights[a as usize * self.n + b as usize] - self.y[a as usize] - self.y[b as usize]
    }

    fn slack_of(&self, edge: Edge) -> i64 {
        self.slack(edge.0, edge.1)
    }

    /// Even prices that leave no slack below 0, and pairs of slack 0 as they come.
    fn begin(&mut self) {
        let others = |vertex: usize| (0..self.n).filter(move |&other| other != vertex);
        for vertex in 0..self.n {
            let least = others(vertex).map(|other| self.weights[vertex * self.n + other]).min();
            self.y[vertex] = 2 * least.expect("at least two vertices");
        }
        for vertex in 0..self.n as u32 {
            let nearest = (0..self.n as u32).filter(|&other| other != vertex);
            let slack = nearest.clone().map(|other| self.slack(vertex, other)).min();
            self.y[vertex as usize] += slack.expect("at least two vertices");
            let mate = nearest
                .clone()
                .find(|&other| self.mate[other as usize] == NONE && self.slack(vertex, other) == 0);
            if let (NONE, Some(other)) = (self.mate[vertex as usize], mate) {
                self.mate[vertex as usize] = other;
                self.mate[other as usize] = vertex;
            }
        }
    }

    /// Grows a tree from an unmatched vertex until it adds a pair.
    fn grow_from(&mut self, root: u32) {
        self.labels.fill(Label::Free);
        self.reached.fill((NONE, i64::MAX));
        self.outer.clear();
        self.tight.clear();
        self.become_outer(self.top[root as usize]);
        loop {
            if let Some(edge) = self.tight.pop() {
                match self.label(edge.1) {
                    Label::Free if !self.reach(edge) => return self.augment(edge),
                    Label::Outer if self.top[edge.0 as usize] != self.top[edge.1 as usize] => {
                        self.contract(edge);
                    }
                    _ => {}
                }
                continue;
            }
            match self.next_event() {
                Event::Tight(edge) => self.tight.push(edge),
                Event::Open(blossom) => self.expand(blossom),
            }
        }
    }

    /// Label of the top-level node of a vertex.
    fn label(&self, vertex: u32) -> Label {
        self.labels[self.top[vertex as usize] as usize]
    }

    /// The event that needs the least change of prices, after that change.
    fn next_event(&mut self) -> Event {
        let mut least = (i64::MAX, None);
        let mut consider = |change: i64, event: Event| {
            if change < least.0 {
                least = (change, Some(event));
            }
        };
        for (vertex, &(from, slack)) in (0..).zip(&self.reached) {
            if self.label(vertex) == Label::Free {
                consider(slack, Event::Tight((from, vertex)));
            }
        }
        for &node in &self.outer {
            let nearest = self.nodes[node as usize].nearest;
            if nearest != NONE {
                let edge = self.between(node, nearest);
                consider(self.slack_of(edge) / 2, Event::Tight(edge));
            }
        }
        for &blossom in &self.used {
            if self.labels[blossom as usize] == Label::Inner {
                consider(self.z[blossom as usize] / 2, Event::Open(blossom));
            }
        }
        let (change, event) = least;
        self.change_prices(change);
        event.expect("in a complete graph there is an unmatched vertex to reach")
    }

    fn change_prices(&mut self, change: i64) {
        debug_assert!(0 <= change, "prices change by {change}");
        if change == 0 {
            return;
        }
        for vertex in 0..self.n {
            match self.labels[self.top[vertex] as usize] {
                Label::Outer => self.y[vertex] += change,
                Label::Inner => self.y[vertex] -= change,
                Label::Free => self.reached[vertex].1 -= change,
            }
        }
        for &blossom in &self.used {
            match self.labels[blossom as usize] {
                Label::Outer => self.z[blossom as usize] += 2 * change,
                Label::Inner => self.z[blossom as usize] -= 2 * change,
                Label::Free => {}
            }
        }
    }

    fn between(&self, a: u32, b: u32) -> Edge {
        self.between[a as usize * self.nodes.len() + b as usize]
    }

    fn set_between(&mut self, a: u32, b: u32, edge: Edge) {
        let width = self.nodes.len();
        self.between[a as usize * width + b as usize] = edge;
        self.between[b as usize * width + a as usize] = (edge.1, edge.0);
    }

    /// Takes the edge between two outer nodes into account for both, if it is better than theirs.
    fn offer_between(&mut self, a: u32, b: u32, edge: Edge) {
        let slack = self.slack_of(edge);
        let known = self.between(a, b);
        if known.0 == NONE || slack < self.slack_of(known) {
            self.set_between(a, b, edge);
        }
        for (node, other) in [(a, b), (b, a)] {
            let nearest = self.nodes[node as usize].nearest;
            if nearest == NONE || slack < self.slack_of(self.between(node, nearest)) {
                self.nodes[node as usize].nearest = other;
            }
        }
    }

    /// Adds an outer node to the tree: it reaches out from all its vertices.
    fn become_outer(&mut self, node: u32) {
        self.enter_outer(node);
        for place in 0..self.nodes[node as usize].vertices.len() {
            self.scan(node, self.nodes[node as usize].vertices[place]);
        }
    }

    fn enter_outer(&mut self, node: u32) {
        self.labels[node as usize] = Label::Outer;
        self.nodes[node as usize].nearest = NONE;
        for place in 0..self.outer.len() {
            self.set_between(node, self.outer[place], (NONE, NONE));
        }
        self.outer.push(node);
    }

    /// Looks from a vertex of an outer node at all others.
    fn scan(&mut self, node: u32, from: u32) {
        for to in 0..self.n as u32 {
            let other = self.top[to as usize];
            if other == node {
                continue;
            }
            let slack = self.slack(from, to);
            let label = self.labels[other as usize];
            if label == Label::Outer {
                self.offer_between(node, other, (from, to));
            } else if slack < self.reached[to as usize].1 {
                self.reached[to as usize] = (from, slack);
            }
            if slack == 0 && label != Label::Inner {
                self.tight.push((from, to));
            }
        }
    }

    /// Takes the node that an edge leads to into the tree, with the node it is matched to. False if it is not matched.
    fn reach(&mut self, edge: Edge) -> bool {
        let node = self.top[edge.1 as usize];
        let mate = self.mate[self.nodes[node as usize].base as usize];
        if mate == NONE {
            return false;
        }
        self.labels[node as usize] = Label::Inner;
        self.nodes[node as usize].entry = edge;
        self.become_outer(self.top[mate as usize]);
        true
    }

    /// The way from an outer node up to the root: matched edge to the inner node above, its entry to the outer node
    /// above that; each edge with the lower vertex first. `None` at the root.
    fn above(&self, outer: u32) -> Option<(Edge, u32, Edge, u32)> {
        let base = self.nodes[outer as usize].base;
        let mate = self.mate[base as usize];
        if mate == NONE {
            return None;
        }
        let inner = self.top[mate as usize];
        let (up, down) = self.nodes[inner as usize].entry;
        Some(((base, mate), inner, (down, up), self.top[up as usize]))
    }

    /// Nodes and edges from an outer node up to the root: `nodes[i]` and `nodes[i + 1]` are joined by `edges[i]`.
    fn path(&self, from: u32) -> (Vec<u32>, Vec<Edge>) {
        let (mut nodes, mut edges) = (vec![from], Vec::new());
        let mut at = from;
        while let Some((matched, inner, entry, outer)) = self.above(at) {
            nodes.extend([inner, outer]);
            edges.extend([matched, entry]);
            at = outer;
        }
        (nodes, edges)
    }

    /// Makes a blossom of the cycle that this edge of slack 0 between outer nodes closes.
    fn contract(&mut self, edge: Edge) {
        let (mut left, mut left_edges) = self.path(self.top[edge.0 as usize]);
        let (mut right, mut right_edges) = self.path(self.top[edge.1 as usize]);
        // Both end at the root; what they share above the first common node goes.
        while 1 < left.len() && 1 < right.len() && left[left.len() - 2] == right[right.len() - 2] {
            left.pop();
            right.pop();
            left_edges.pop();
            right_edges.pop();
        }
        right.pop();
        // From the common node down to the edge, over it, and up again.
        let mut children: Vec<u32> = left.into_iter().rev().collect();
        let mut links: Vec<Edge> = left_edges.into_iter().rev().map(|(down, up)| (up, down)).collect();
        links.push(edge);
        children.extend(right);
        links.extend(right_edges);
        let blossom = self.unused.pop().expect("there are never more than n / 2 blossoms");
        self.fill_blossom(blossom, children, links);
    }

    fn fill_blossom(&mut self, blossom: u32, children: Vec<u32>, links: Vec<Edge>) {
        debug_assert!(children.len() == links.len() && children.len() % 2 == 1, "blossom of {children:?}");
        let of = |child: &u32| self.nodes[*child as usize].vertices.iter().copied();
        let vertices: Vec<u32> = children.iter().flat_map(of).collect();
        for &vertex in &vertices {
            self.top[vertex as usize] = blossom;
        }
        let base = self.nodes[children[0] as usize].base;
        let (were_outer, were_inner): (Vec<u32>, Vec<u32>) =
            children.iter().partition(|&&child| self.labels[child as usize] == Label::Outer);
        self.outer.retain(|node| !were_outer.contains(node));
        for &child in &children {
            self.labels[child as usize] = Label::Free;
        }
        self.z[blossom as usize] = 0;
        self.used.push(blossom);
        let node = &mut self.nodes[blossom as usize];
        (node.base, node.vertices, node.children, node.links) = (base, vertices, children, links);
        self.enter_outer(blossom);
        // What outer children know of other outer nodes is the blossom's now.
        for place in 0..self.outer.len() - 1 {
            let other = self.outer[place];
            if were_outer.contains(&self.nodes[other as usize].nearest) {
                self.nodes[other as usize].nearest = blossom;
            }
            for &child in &were_outer {
                let edge = self.between(child, other);
                if edge.0 != NONE {
                    self.inherit(blossom, other, edge);
                }
            }
        }
        for child in were_inner {
            for place in 0..self.nodes[child as usize].vertices.len() {
                self.scan(blossom, self.nodes[child as usize].vertices[place]);
            }
        }
    }

    /// As [`Self::offer_between`], where the other node's nearest may be the new blossom already.
    fn inherit(&mut self, blossom: u32, other: u32, edge: Edge) {
        let known = self.between(blossom, other);
        if known.0 == NONE || self.slack_of(edge) < self.slack_of(known) {
            self.set_between(blossom, other, edge);
        }
        let nearest = self.nodes[blossom as usize].nearest;
        if nearest == NONE || self.slack_of(edge) < self.slack_of(self.between(blossom, nearest)) {
            self.nodes[blossom as usize].nearest = other;
        }
    }

    /// Takes an inner blossom of price 0 apart: the shorter even way from its entry to its base stays in the tree.
    fn expand(&mut self, blossom: u32) {
        let z = self.z[blossom as usize];
        debug_assert!(z == 0, "blossom of price {z} taken apart");
        let node = &mut self.nodes[blossom as usize];
        let entry = node.entry;
        let children = std::mem::take(&mut node.children);
        let links = std::mem::take(&mut node.links);
        node.vertices.clear();
        self.labels[blossom as usize] = Label::Free;
        self.used.retain(|&other| other != blossom);
        self.unused.push(blossom);
        for &child in &children {
            for place in 0..self.nodes[child as usize].vertices.len() {
                self.top[self.nodes[child as usize].vertices[place] as usize] = child;
            }
            self.labels[child as usize] = Label::Free;
        }
        let reached = self.top[entry.1 as usize];
        let count = children.len();
        let mut at = children.iter().position(|&child| child == reached).expect("the entry leads to a child");
        let backward = at.is_multiple_of(2);
        let mut entry = entry;
        let mut now_outer = Vec::new();
        loop {
            let child = children[at] as usize;
            self.labels[child] = Label::Inner;
            self.nodes[child].entry = entry;
            if at == 0 {
                break;
            }
            // The next child is matched to this one and outer; the edge after it enters the one behind.
            let (next, after, link) = if backward {
                let (to, from) = links[at - 2];
                (at - 1, at - 2, (from, to))
            } else {
                (at + 1, (at + 2) % count, links[at + 1])
            };
            now_outer.push(children[next]);
            entry = link;
            at = after;
        }
        for node in now_outer {
            self.become_outer(node);
        }
    }

    /// Matches along this edge to an unmatched node and up to the root, which adds one pair.
    fn augment(&mut self, edge: Edge) {
        let (mut up, mut down) = edge;
        loop {
            let above = self.above(self.top[up as usize]);
            self.rebase(self.top[down as usize], down);
            self.rebase(self.top[up as usize], up);
            self.mate[down as usize] = up;
            self.mate[up as usize] = down;
            let Some((_, _, entry, _)) = above else { return };
            (down, up) = entry;
        }
    }

    /// Matches inside a node so that this vertex is the one left over.
    fn rebase(&mut self, node: u32, vertex: u32) {
        if node == vertex {
            return;
        }
        let inside = |blossom: &Self, child: u32| blossom.nodes[child as usize].vertices.contains(&vertex);
        let children = std::mem::take(&mut self.nodes[node as usize].children);
        let links = std::mem::take(&mut self.nodes[node as usize].links);
        let count = children.len();
        let at = (0..count).find(|&at| inside(self, children[at])).expect("the vertex is in the node");
        // Children 1 and 2, 3 and 4, ... were matched. Those on the even way from here to the old base change mates.
        let changed: Vec<usize> = if at.is_multiple_of(2) {
            (0..at).step_by(2).collect()
        } else {
            (at + 1..count).step_by(2).collect()
        };
        for place in changed {
            let (a, b) = links[place];
            self.rebase(children[place], a);
            self.rebase(children[(place + 1) % count], b);
            self.mate[a as usize] = b;
            self.mate[b as usize] = a;
        }
        self.rebase(children[at], vertex);
        let node = &mut self.nodes[node as usize];
        (node.children, node.links) = (children, links);
        node.children.rotate_left(at);
        node.links.rotate_left(at);
        node.base = vertex;
    }
}

/// What happens next to the tree.
#[derive(Clone, Copy, Debug)]
enum Event {
    /// This edge from an outer vertex to a free or outer one has slack 0.
    Tight(Edge),
    /// This inner blossom is taken apart.
    Open(u32),
}

#[cfg(test)]
impl Blossom<'_> {
    /// Checks prices and matching for each other, which proves that the weight is smallest; gives that weight.
    pub(super) fn proven_weight(&self) -> i64 {
        let n = self.n;
        // Prices of blossoms by the pairs of vertices in them.
        let mut inside = vec![0_i64; n * n];
        let mut bound: i64 = self.y.iter().sum();
        for (place, node) in self.nodes.iter().enumerate().skip(n) {
            let z = self.z[place];
            assert!(0 <= z, "blossom {place} has price {z}");
            if node.vertices.is_empty() {
                continue;
            }
            // Prices of blossoms make inner edges dearer: a perfect matching has at most (size - 1) / 2 of them.
            bound -= z * ((node.vertices.len() as i64 - 1) / 2);
            for &a in &node.vertices {
                for &b in &node.vertices {
                    inside[a as usize * n + b as usize] += z;
                }
            }
        }
        let mut sum = 0;
        for a in 0..n {
            for b in 0..n {
                let slack = 4 * self.weights[a * n + b] - self.y[a] - self.y[b] + inside[a * n + b];
                assert!(a == b || 0 <= slack, "edge {a}-{b} has slack {slack}");
                if self.mate[a] as usize == b {
                    assert_eq!(slack, 0, "pair {a}-{b}");
                    assert_eq!(self.mate[b] as usize, a);
                    sum += 2 * self.weights[a * n + b];
                }
            }
        }
        assert_eq!(sum, bound, "weight and bound");
        sum / 4
    }
}
