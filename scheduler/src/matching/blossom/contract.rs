//! Contraction and expansion of odd cycles, and augmentation of the matching along a path.

use super::{Blossom, Edge, NONE, VertexLabel};

impl Blossom<'_> {
    /// Returns the path from an outer node to the next outer node above it. It consists of the matched edge
    /// to the inner node above, that node, its entry to the outer node above, and that node. Each edge has
    /// the lower vertex first. `None` at the root.
    pub(super) fn above(&self, outer: u32) -> Option<(Edge, u32, Edge, u32)> {
        let base = self.nodes[outer as usize].base;
        let mate = self.mate[base as usize];
        if mate == NONE {
            return None;
        }
        let inner = self.top[mate as usize];
        let (up, down) = self.nodes[inner as usize].entry;
        Some(((base, mate), inner, (down, up), self.top[up as usize]))
    }

    /// Returns nodes and edges from an outer node to the root: `nodes[i]` and `nodes[i + 1]` are joined by `edges[i]`.
    pub(super) fn path(&self, from: u32) -> (Vec<u32>, Vec<Edge>) {
        let (mut nodes, mut edges) = (vec![from], Vec::new());
        let mut at = from;
        while let Some((matched, inner, entry, outer)) = self.above(at) {
            nodes.extend([inner, outer]);
            edges.extend([matched, entry]);
            at = outer;
        }
        (nodes, edges)
    }

    /// Contracts the cycle closed by this edge of slack 0 between outer nodes to a blossom.
    pub(super) fn contract(&mut self, edge: Edge) {
        let (mut left, mut left_edges) = self.path(self.top[edge.0 as usize]);
        let (mut right, mut right_edges) = self.path(self.top[edge.1 as usize]);
        // Both paths end at the root; their common part above the first common node is removed.
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

    pub(super) fn fill_blossom(&mut self, blossom: u32, children: Vec<u32>, links: Vec<Edge>) {
        debug_assert!(children.len() == links.len() && children.len() % 2 == 1, "blossom of {children:?}");
        let of = |child: &u32| self.nodes[*child as usize].vertices.iter().copied();
        let vertices: Vec<u32> = children.iter().flat_map(of).collect();
        for &vertex in &vertices {
            self.top[vertex as usize] = blossom;
        }
        let base = self.nodes[children[0] as usize].base;
        let (were_outer, were_inner): (Vec<u32>, Vec<u32>) =
            children.iter().partition(|&&child| self.labels[child as usize] == VertexLabel::Outer);
        self.outer.retain(|node| !were_outer.contains(node));
        for &child in &children {
            self.labels[child as usize] = VertexLabel::Free;
        }
        self.z[blossom as usize] = 0;
        self.used.push(blossom);
        let node = &mut self.nodes[blossom as usize];
        (node.base, node.vertices, node.children, node.links) = (base, vertices, children, links);
        self.enter_outer(blossom);
        // The blossom inherits the known edges of its outer children.
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

    /// As [`Self::offer_between`], where the other node's nearest may already be the new blossom.
    pub(super) fn inherit(&mut self, blossom: u32, other: u32, edge: Edge) {
        let known = self.between(blossom, other);
        if known.0 == NONE || self.slack_of(edge) < self.slack_of(known) {
            self.set_between(blossom, other, edge);
        }
        let nearest = self.nodes[blossom as usize].nearest;
        if nearest == NONE || self.slack_of(edge) < self.slack_of(self.between(blossom, nearest)) {
            self.nodes[blossom as usize].nearest = other;
        }
    }

    /// Expands an inner blossom of price 0: the even path from its entry to its base stays in the tree.
    pub(super) fn expand(&mut self, blossom: u32) {
        let z = self.z[blossom as usize];
        debug_assert!(z == 0, "blossom of price {z} taken apart");
        let node = &mut self.nodes[blossom as usize];
        let entry = node.entry;
        let children = std::mem::take(&mut node.children);
        let links = std::mem::take(&mut node.links);
        node.vertices.clear();
        self.labels[blossom as usize] = VertexLabel::Free;
        self.used.retain(|&other| other != blossom);
        self.unused.push(blossom);
        for &child in &children {
            for place in 0..self.nodes[child as usize].vertices.len() {
                self.top[self.nodes[child as usize].vertices[place] as usize] = child;
            }
            self.labels[child as usize] = VertexLabel::Free;
        }
        let reached = self.top[entry.1 as usize];
        let count = children.len();
        let mut at = children.iter().position(|&child| child == reached).expect("the entry leads to a child");
        let backward = at.is_multiple_of(2);
        let mut entry = entry;
        let mut now_outer = Vec::new();
        loop {
            let child = children[at] as usize;
            self.labels[child] = VertexLabel::Inner;
            self.nodes[child].entry = entry;
            if at == 0 {
                break;
            }
            // The next child is matched to this one and outer; the edge after it enters the child behind it.
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

    /// Augments the matching along this edge to an unmatched node and up to the root, which adds one pair.
    pub(super) fn augment(&mut self, edge: Edge) {
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

    /// Rematches inside a node so that this vertex is the unmatched one.
    pub(super) fn rebase(&mut self, node: u32, vertex: u32) {
        if node == vertex {
            return;
        }
        let inside = |blossom: &Self, child: u32| blossom.nodes[child as usize].vertices.contains(&vertex);
        let children = std::mem::take(&mut self.nodes[node as usize].children);
        let links = std::mem::take(&mut self.nodes[node as usize].links);
        let count = children.len();
        let at = (0..count).find(|&at| inside(self, children[at])).expect("the vertex is in the node");
        // Children 1 and 2, 3 and 4, ... were matched. Those on the even path from here to the old base change mates.
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
