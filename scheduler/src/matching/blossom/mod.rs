//! Blossom algorithm on integer weights. See `matching` for the method.

mod contract;

/// No vertex, or no node.
const NONE: u32 = u32::MAX;

/// Position of a top-level node relative to the tree.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
enum VertexLabel {
    /// Not in the tree.
    Free,
    /// At an even distance from the root.
    Outer,
    /// At an odd distance, matched to an outer node.
    Inner,
}

/// Edge by its vertices; the first one is on the side of the node that stores it.
type Edge = (u32, u32);

/// Vertex, or odd cycle of nodes contracted to one. The first `n` nodes are the vertices.
#[derive(Clone, Debug)]
struct Node {
    /// Its vertex that is matched outside of it, or unmatched.
    base: u32,
    /// For an inner node: the edge by which the tree reached it, outer vertex first.
    entry: Edge,
    /// All its vertices.
    vertices: Vec<u32>,
    /// Nodes of the cycle, the one with the base first; empty for vertices.
    children: Vec<u32>,
    /// `links[i]` joins `children[i]` with the next one of the cycle, its vertex in `children[i]` first.
    links: Vec<Edge>,
    /// For an outer node: the outer node to which its edge of smallest slack leads.
    nearest: u32,
}

/// State of a matching.
pub(super) struct Blossom<'a> {
    n: usize,
    /// Given weights, multiplied by 4 when used; `n` by `n`, symmetric.
    weights: &'a [i64],
    /// Prices of vertices.
    y: Vec<i64>,
    mate: Vec<u32>,
    nodes: Vec<Node>,
    /// Labels by node; nodes inside of blossoms are free.
    labels: Vec<VertexLabel>,
    /// Prices of blossoms, by node; 0 for vertices.
    z: Vec<i64>,
    /// Blossoms in use, including nested ones.
    used: Vec<u32>,
    /// Unused blossoms.
    unused: Vec<u32>,
    /// Top-level node of every vertex.
    top: Vec<u32>,
    /// For each vertex not in an outer node: the outer vertex with the smallest slack to it, and that slack.
    reached: Vec<(u32, i64)>,
    /// Between outer nodes: the edge of smallest slack, with the vertex of the row's node first.
    between: Vec<Edge>,
    /// Outer top-level nodes.
    outer: Vec<u32>,
    /// Edges of slack 0 found so far: from outer vertices to vertices that are in another node, or were when found.
    /// Prices change only when it is empty.
    tight: Vec<Edge>,
}

/// Computes a minimum-weight perfect matching of a complete graph of `n` vertices, `n` even.
pub(super) fn solve(n: usize, weights: &[i64]) -> Blossom<'_> {
    assert!(n.is_multiple_of(2) && weights.len() == n * n, "{} weights of {n} vertices", weights.len());
    let mut blossom = Blossom::new(n, weights);
    blossom.initialize();
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
            labels: vec![VertexLabel::Free; nodes.len()],
            z: vec![0; nodes.len()],
            nodes,
            top: (0..n as u32).collect(),
            reached: vec![(NONE, 0); n],
            outer: Vec::new(),
            tight: Vec::new(),
        }
    }

    /// Returns the matching.
    pub(super) fn pairs(&self) -> Vec<[usize; 2]> {
        let pair = |vertex: usize| [vertex, self.mate[vertex] as usize];
        (0..self.n).map(pair).filter(|[a, b]| a < b).collect()
    }

    /// Returns the slack of an edge between different top-level nodes.
    fn slack(&self, a: u32, b: u32) -> i64 {
        4 * self.weights[a as usize * self.n + b as usize] - self.y[a as usize] - self.y[b as usize]
    }

    fn slack_of(&self, edge: Edge) -> i64 {
        self.slack(edge.0, edge.1)
    }

    /// Initialises even prices that leave no slack below 0, and matches pairs of slack 0 greedily.
    fn initialize(&mut self) {
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
        self.labels.fill(VertexLabel::Free);
        self.reached.fill((NONE, i64::MAX));
        self.outer.clear();
        self.tight.clear();
        self.become_outer(self.top[root as usize]);
        loop {
            if let Some(edge) = self.tight.pop() {
                match self.label(edge.1) {
                    VertexLabel::Free if !self.reach(edge) => return self.augment(edge),
                    VertexLabel::Outer if self.top[edge.0 as usize] != self.top[edge.1 as usize] => {
                        self.contract(edge);
                    }
                    _ => {}
                }
                continue;
            }
            match self.next_event() {
                TreeEvent::Tight(edge) => self.tight.push(edge),
                TreeEvent::Open(blossom) => self.expand(blossom),
            }
        }
    }

    /// Returns the label of the top-level node of a vertex.
    fn label(&self, vertex: u32) -> VertexLabel {
        self.labels[self.top[vertex as usize] as usize]
    }

    /// Returns the event that needs the smallest change of prices, after that change.
    fn next_event(&mut self) -> TreeEvent {
        let mut least = (i64::MAX, None);
        let mut consider = |change: i64, event: TreeEvent| {
            if change < least.0 {
                least = (change, Some(event));
            }
        };
        for (vertex, &(from, slack)) in (0..).zip(&self.reached) {
            if self.label(vertex) == VertexLabel::Free {
                consider(slack, TreeEvent::Tight((from, vertex)));
            }
        }
        for &node in &self.outer {
            let nearest = self.nodes[node as usize].nearest;
            if nearest != NONE {
                let edge = self.between(node, nearest);
                consider(self.slack_of(edge) / 2, TreeEvent::Tight(edge));
            }
        }
        for &blossom in &self.used {
            if self.labels[blossom as usize] == VertexLabel::Inner {
                consider(self.z[blossom as usize] / 2, TreeEvent::Open(blossom));
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
                VertexLabel::Outer => self.y[vertex] += change,
                VertexLabel::Inner => self.y[vertex] -= change,
                VertexLabel::Free => self.reached[vertex].1 -= change,
            }
        }
        for &blossom in &self.used {
            match self.labels[blossom as usize] {
                VertexLabel::Outer => self.z[blossom as usize] += 2 * change,
                VertexLabel::Inner => self.z[blossom as usize] -= 2 * change,
                VertexLabel::Free => {}
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

    /// Updates the best edges of two outer nodes with the edge between them.
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

    /// Adds an outer node to the tree and scans from all its vertices.
    fn become_outer(&mut self, node: u32) {
        self.enter_outer(node);
        for place in 0..self.nodes[node as usize].vertices.len() {
            self.scan(node, self.nodes[node as usize].vertices[place]);
        }
    }

    fn enter_outer(&mut self, node: u32) {
        self.labels[node as usize] = VertexLabel::Outer;
        self.nodes[node as usize].nearest = NONE;
        for place in 0..self.outer.len() {
            self.set_between(node, self.outer[place], (NONE, NONE));
        }
        self.outer.push(node);
    }

    /// Scans all vertices from a vertex of an outer node.
    fn scan(&mut self, node: u32, from: u32) {
        for to in 0..self.n as u32 {
            let other = self.top[to as usize];
            if other == node {
                continue;
            }
            let slack = self.slack(from, to);
            let label = self.labels[other as usize];
            if label == VertexLabel::Outer {
                self.offer_between(node, other, (from, to));
            } else if slack < self.reached[to as usize].1 {
                self.reached[to as usize] = (from, slack);
            }
            if slack == 0 && label != VertexLabel::Inner {
                self.tight.push((from, to));
            }
        }
    }

    /// Adds the node that an edge leads to to the tree, with its matched node. Returns false if it is not matched.
    fn reach(&mut self, edge: Edge) -> bool {
        let node = self.top[edge.1 as usize];
        let mate = self.mate[self.nodes[node as usize].base as usize];
        if mate == NONE {
            return false;
        }
        self.labels[node as usize] = VertexLabel::Inner;
        self.nodes[node as usize].entry = edge;
        self.become_outer(self.top[mate as usize]);
        true
    }
}

/// Next event of the tree.
#[derive(Clone, Copy, Debug)]
enum TreeEvent {
    /// This edge from an outer vertex to a free or outer one has slack 0.
    Tight(Edge),
    /// This inner blossom is expanded.
    Open(u32),
}

#[cfg(test)]
impl Blossom<'_> {
    /// Checks prices and matching against each other, which proves that the weight is minimal. Returns that weight.
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
            // Prices of blossoms increase the weight of inner edges: a perfect matching has at most (size - 1) / 2 of
            // them.
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
