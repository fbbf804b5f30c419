"""A policy that is learned: proximal policy optimisation (Schulman et al., 2017) on the simulator, with numpy alone.

    python3 ppo.py train        trains for 20 minutes and writes ppo.npz beside this file
    gristmill lab compare mixed.toml --policy fifo,gristmill,program:path=ppo.py

A small network gives each job a score, the same network for every job. An order is drawn by scores with Gumbel noise, whose
probability is that of Plackett and Luce; without noise, the largest score is first.
"""
import pathlib
import sys
import time

import numpy as np

from gristmill.gym import FEATURES, OrderJobs, features
from gristmill.policy import decide

WEIGHTS = pathlib.Path(__file__).resolve().parent / "ppo.npz"
MINUTES = 20.0
HIDDEN, JOBS_MAX, EPISODES, PASSES = 32, 12, 8, 4
CLIP, DISCOUNT, TRACE, RATE, ENTROPY = 0.2, 0.999, 0.95, 3e-3, 1e-3


def new_weights(random):
    """Weights whose scores differ little, so that the first orders are drawn almost evenly."""
    def layer(size):
        return random.normal(0.0, size[0] ** -0.5, size)
    return {"a": layer((FEATURES, HIDDEN)), "b": np.zeros(HIDDEN), "c": 0.1 * layer((HIDDEN, 1)),
            "d": layer((FEATURES, HIDDEN)), "e": np.zeros(HIDDEN), "f": 0.1 * layer((HIDDEN, 1)), "g": np.zeros(1)}


def forward(w, x, present):
    """Returns the scores of jobs, the value of the state, and both hidden layers; `x` is states by jobs by features."""
    hidden, other = np.tanh(x @ w["a"] + w["b"]), np.tanh(x @ w["d"] + w["e"]) * present[..., None]
    return (hidden @ w["c"])[..., 0], (other @ w["f"])[..., 0].sum(1) + w["g"], hidden, other


def log_chance(scores, orders, counts):
    """Returns the logarithm of the probability of each order, and its gradient by the scores."""
    rows, total, gradient = np.arange(len(scores)), np.zeros(len(scores)), np.zeros_like(scores)
    left = np.arange(scores.shape[1])[None, :] < counts[:, None]
    for place in range(scores.shape[1]):
        more = place + 1 < counts
        masked = np.where(left, scores, -np.inf)
        top = np.where(more, masked.max(1, initial=-1e9), 0.0)
        parts = np.where(left, np.exp(scores - top[:, None]), 0.0)
        chosen = orders[:, place]
        sums = np.maximum(parts.sum(1), 1e-30)
        total += np.where(more, scores[rows, chosen] - top - np.log(sums), 0.0)
        gradient -= np.where(more[:, None], parts / sums[:, None], 0.0)
        gradient[rows, chosen] += more
        left[rows, chosen] = False
    return total, gradient


def episode(env, w, random, seed):
    """Plays one episode; returns its states, orders and rewards."""
    state, info = env.reset(seed=seed)
    steps, ended = [], False
    while not ended:
        count = info["jobs"]
        scores, value, _, _ = forward(w, state[None], np.arange(JOBS_MAX)[None] < count)
        noisy = scores[0] + random.gumbel(size=JOBS_MAX)
        noisy[count:] = -np.inf
        order = np.argsort(-noisy, kind="stable")
        chance, _ = log_chance(scores, order[None], np.array([count]))
        after, reward, ended, _, info = env.step(np.where(np.isfinite(noisy), noisy, -1e6))
        steps.append((state, order, count, chance[0], value[0], reward))
        state = after
    return [np.array(column) for column in zip(*steps)]


def advantages(rewards, values):
    """Generalised advantage estimation."""
    found, last = np.zeros(len(rewards)), 0.0
    after = np.append(values[1:], 0.0)
    for place in reversed(range(len(rewards))):
        last = rewards[place] + DISCOUNT * after[place] - values[place] + DISCOUNT * TRACE * last
        found[place] = last
    return found


def gradients(w, batch):
    """Returns the gradient of PPO's loss by each weight."""
    states, orders, counts, old, gains, returns = batch
    present = np.arange(JOBS_MAX)[None] < counts[:, None]
    scores, values, hidden, other = forward(w, states, present)
    chance, by_score = log_chance(scores, orders, counts)
    ratio = np.exp(np.clip(chance - old, -20, 20))
    active = np.where(gains > 0, ratio < 1 + CLIP, ratio > 1 - CLIP)
    # More probable orders are less random: the entropy is that of the drawn orders.
    pull = (active * ratio * gains - ENTROPY * chance) / len(states)
    on_scores = -(pull[:, None] * by_score)[..., None]
    on_value = ((values - returns) / len(states))[:, None, None] * present[..., None]
    on_hidden = on_scores @ w["c"].T * (1 - hidden**2)
    on_other = on_value @ w["f"].T * (1 - other**2) * present[..., None]
    return {"a": np.einsum("sjf,sjh->fh", states, on_hidden), "b": on_hidden.sum((0, 1)),
            "c": np.einsum("sjh,sjo->ho", hidden, on_scores), "d": np.einsum("sjf,sjh->fh", states, on_other),
            "e": on_other.sum((0, 1)), "f": np.einsum("sjh,sjo->ho", other, on_value), "g": ((values - returns) / len(states)).sum(keepdims=True)}


def train(minutes):
    """Trains on mixes of short and long jobs at several loads, and writes the weights after each round."""
    random = np.random.default_rng(1)
    w, started, rounds = new_weights(random), time.monotonic(), 0
    moments = {name: (np.zeros_like(x), np.zeros_like(x)) for name, x in w.items()}
    envs = [OrderJobs(f"mix:load={load},jobs=30", JOBS_MAX, workers=4, slots=2) for load in (0.7, 0.9)]
    updates, scale = 0, None
    while time.monotonic() - started < 60 * minutes:
        played = [episode(envs[place % 2], w, random, 1 + rounds * EPISODES // 2 + place // 2) for place in range(EPISODES)]
        flow = -np.mean([steps[5].sum() for steps in played]) / 30
        scale = scale or np.mean([np.abs(steps[5]).mean() for steps in played]) * 30
        columns = []
        for states, orders, counts, old, values, rewards in played:
            gains = advantages(rewards / scale, values)
            columns.append((states, orders, counts, old, gains, gains + values))
        states, orders, counts, old, gains, returns = (np.concatenate(column) for column in zip(*columns))
        gains = (gains - gains.mean()) / (gains.std() + 1e-8)
        for _ in range(PASSES):
            for part in np.array_split(random.permutation(len(states)), max(1, len(states) // 512)):
                found = gradients(w, [column[part] for column in (states, orders, counts, old, gains, returns)])
                updates += 1
                for name, gradient in found.items():
                    first, second = (0.9 * moments[name][0] + 0.1 * gradient, 0.999 * moments[name][1] + 0.001 * gradient**2)
                    moments[name] = first, second
                    w[name] = w[name] - RATE * (first / (1 - 0.9**updates)) / (np.sqrt(second / (1 - 0.999**updates)) + 1e-8)
        rounds += 1
        np.savez(WEIGHTS, **w)
        print(f"{time.monotonic() - started:6.0f} s: round {rounds}, mean flow time {flow:.2f} s", flush=True)


def main():
    if sys.argv[1:2] == ["train"]:
        train(float(sys.argv[2]) if sys.argv[2:] else MINUTES)
        return
    w = dict(np.load(WEIGHTS))

    def policy(jobs, now):
        scores = np.tanh(features(jobs, now) @ w["a"] + w["b"]) @ w["c"]
        return [jobs[place] for place in np.argsort(-scores[:, 0], kind="stable")]
    decide(policy)


if __name__ == "__main__":
    main()
