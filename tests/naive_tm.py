"""The Tsetlin Machine said slowly: a plain NumPy twin of laconic.tsetlin, patch by patch and literal by literal.

It draws from the same random streams in the same order, so that kernels and twin must agree bit for bit.
"""

import numpy as np

from laconic.tsetlin import balance

WORD = (1 << 64) - 1


class Stream:
    """Eight xoroshiro128 generators side by side, and a splitmix64 for single numbers."""

    def __init__(self, seed):
        self.low, self.high, self.counter = seed[:8].copy(), seed[8:16].copy(), int(seed[16])

    def vectors(self):
        """Two vectors of 64 random bytes."""

        def rotate(x, k):
            return (x << np.uint64(k)) | (x >> np.uint64(64 - k))

        pair, mixed = (self.low + self.high, self.low - self.high), self.high ^ self.low
        self.low, self.high = rotate(self.low, 24) ^ mixed ^ (mixed << np.uint64(16)), rotate(mixed, 37)
        return pair

    def number(self):
        self.counter = (self.counter + 0x9E3779B97F4A7C15) & WORD
        z = ((self.counter ^ (self.counter >> 30)) * 0xBF58476D1CE4E5B9) & WORD
        z = ((z ^ (z >> 27)) * 0x94D049BB133111EB) & WORD
        return z ^ (z >> 31)


def patch_literals(shape, image):
    """[patch, literal] features of each patch, then their negations."""
    image = image.reshape(shape.height, shape.width, shape.layers).astype(bool)
    patches = []
    for row in range(shape.n_rows):
        for column in range(shape.n_columns):
            pixels = image[row : row + shape.patch_height, column : column + shape.patch_width].ravel()
            position = np.concatenate([row > np.arange(shape.n_rows - 1), column > np.arange(shape.n_columns - 1)])
            patches.append(np.concatenate([pixels, position]))
    features = np.array(patches)
    return np.concatenate([features, ~features], axis=1)


def matches(includes, literals):
    """[clause, patch] whether all included literals hold."""
    return ~np.any(includes[:, None, :] & ~literals[None, :, :], axis=2)


def judge(machine, includes, literals):
    """[clause] how strongly it votes in training, weights apart; [clause, patch] those that feedback may look at."""
    if machine.fuzzy is None:
        matched = matches(includes, literals)
        return matched.any(axis=1).astype(int), matched
    failing = count_failing(includes, literals)
    fewest = failing.min(axis=1, keepdims=True)
    top = np.minimum(machine.fuzzy.failures, np.maximum(includes.sum(axis=1), 1))
    return np.maximum(top - fewest[:, 0], 0), failing == fewest


def count_failing(includes, literals):
    """[clause, patch] of the included literals."""
    return (includes[:, None, :] & ~literals[None, :, :]).sum(axis=2)


def train_bank(machine, bank, weights, x, events, stream):
    """Events (sample, row raised or -1, row lowered or -1) on one bank; changes machine.states[bank] and weights.

    Returns (sample, row, its votes) for everything raised or lowered.
    """
    shape, limit = machine.shape, machine.threshold
    slots, n_clauses = shape.literal_slots, machine.n_clauses
    states = machine.states[bank][:, slots].astype(int)
    seen = []
    rate = 256.0 / machine.specificity
    whole, fraction = int(rate), int((rate - int(rate)) * 4294967296.0)

    def noise():
        vectors = [vector for _ in range(0, shape.n_words, 2) for vector in stream.vectors()]
        return np.concatenate(vectors).view(np.uint8)[slots].astype(int)

    for sample, raised, lowered in events:
        literals = patch_literals(shape, x[sample])
        strengths, matched = judge(machine, states >= 128, literals)
        fired = strengths > 0
        votes = {row: signs(machine, weights[row]) @ strengths for row in (raised, lowered) if row >= 0}
        for row, is_target in ((raised, True), (lowered, False)):
            if row < 0:
                continue
            clamped = max(-limit, min(limit, int(votes[row])))
            seen.append((sample, row, clamped))
            chance = ((limit - clamped if is_target else limit + clamped) * 65536) // (2 * limit)
            if chance == 0:
                continue
            for block in range(0, n_clauses, 32):
                selected = stream.vectors()[0].view(np.uint16) < chance
                clauses = [c for c in range(block, min(n_clauses, block + 32)) if selected[c - block]]
                supports = signs(machine, weights[row], of_zero=1) > 0
                agrees = supports == is_target
                for c in [c for c in clauses if agrees[c] and not fired[c]]:
                    dice = stream.number()
                    bound = whole + ((dice & 0xFFFFFFFF) < fraction)
                    if bound > 0:
                        states[c] -= noise() < bound
                        states[c] = states[c].clip(0, 255)
                for c in [c for c in clauses if fired[c]]:
                    dice = stream.number()
                    patches = np.flatnonzero(matched[c])
                    patch = literals[patches[((dice >> 32) * len(patches)) >> 32]]
                    if agrees[c] and machine.fuzzy is not None:
                        bound = whole + ((dice & 0xFFFFFFFF) < fraction)
                        included = states[c] >= 128
                        true = patch & (included.sum() < machine.fuzzy.literals)
                        states[c] += true if machine.boost else true & (noise() >= bound)
                        states[c] -= ~patch & ~included
                    elif agrees[c]:
                        bound = whole + ((dice & 0xFFFFFFFF) < fraction)
                        forgotten = noise() < bound
                        states[c] += patch if machine.boost else patch & ~forgotten
                        states[c] = states[c].clip(0, 255) - (forgotten & ~patch)
                    else:
                        states[c] += ~patch & (states[c] < 128)
                    states[c] = states[c].clip(0, 255)
                    if machine.coalesced:
                        weights[row, c] += 1 if is_target else -1
                    elif agrees[c]:
                        weights[row, c] += 1
                    elif weights[row, c] > 1:
                        weights[row, c] -= 1
    machine.states[bank][:, slots] = states
    return seen


def signs(machine, weights, of_zero=0):
    """Signed votes of clauses; multi-class: odd ones speak against. of_zero: what a zero weight counts as."""
    if machine.coalesced:
        return np.where(weights == 0, of_zero, weights)
    return np.where(np.arange(len(weights)) % 2, -1, 1) * np.maximum(weights, of_zero)


def fit(machine, x, y, rng, epochs=1, negatives=None):
    """As laconic.tsetlin.fit, on raw 0/1 samples."""
    classes = sorted(range(machine.n_classes) if negatives is None else set(negatives))
    seeds = rng.integers(0, 1 << 64, (len(machine.states), 17), dtype=np.uint64)
    streams = [Stream(seed) for seed in seeds]
    balanced = machine.rivalry is not None and len(classes) > 1
    period = max(1, balance.EVENTS_PER_LOOK // max(1, 2 * len(y)))
    for epoch in range(epochs):
        if epoch % period == 0:
            known = machine.rivalry.copy() if balanced else None
        order = rng.permutation(len(y))
        target = [int(y[sample]) for sample in order]
        other = [-1] * len(y)
        if balanced:
            dice = rng.random(len(y))
            other = [draw_rival(machine.threshold, known[t], t, classes, d) for t, d in zip(target, dice, strict=True)]
        elif len(classes) > 1:
            drawn = rng.integers(0, len(classes) - 1, len(y), dtype=np.int32)
            other = [[c for c in classes if c != t][k] for t, k in zip(target, drawn, strict=True)]
        everything = list(zip(order, target, other, strict=True))
        if machine.coalesced:
            seen = train_bank(machine, 0, machine.weights, x, everything, streams[0])
        else:
            seen = []
            for k in range(machine.n_classes):
                events = [(i, t, o) for i, t, o in everything if k in (t, o)]
                if balanced:
                    events = with_turns_at_the_end(events, k)
                events = [(i, 0 if t == k else -1, 0 if o == k else -1) for i, t, o in events]
                votes = train_bank(machine, k, machine.weights[k : k + 1], x, events, streams[k])
                seen += [(i, k, vote) for i, _, vote in votes]
        if balanced and (epoch % period == period - 1 or epoch == epochs - 1):
            for pair in {(y[i], k) for i, k, _ in seen}:
                machine.rivalry[pair] = np.mean([vote for i, k, vote in seen if (y[i], k) == pair])


def draw_rival(threshold, votes, label, classes, dice):
    """Of `classes`, never its own: three in four by their chance of feedback, one in four evenly."""
    rivals = [c for c in classes if c != label]
    chances = [1 + int((threshold + np.nan_to_num(votes[c])) * 65536 / (2 * threshold)) for c in rivals]
    parts = [sum(chances) + 3 * len(rivals) * chance for chance in chances]
    left = int(dice * sum(parts))
    for rival, part in zip(rivals, parts, strict=True):
        left -= part
        if left < 0:
            return rival
    raise AssertionError


def with_turns_at_the_end(events, k):
    """The last 16 that raise and the last 16 that lower class k take turns at the end, a lower being the very last."""
    raises, lowers = ([e for e in events if e[at] == k] for at in (1, 2))
    n_turns = min(16, len(raises), len(lowers))
    if n_turns == 0:
        return events
    turns = [event for pair in zip(raises[-n_turns:], lowers[-n_turns:], strict=True) for event in pair]
    return [event for event in events if event not in turns] + turns


def clause_counts(machine, x):
    """[sample, bank, clause] patches on which it holds, or votes; empty clauses are silent."""
    includes = machine.states[:, :, machine.shape.literal_slots] >= 128
    counts = []
    for image in x:
        literals = patch_literals(machine.shape, image)
        if machine.fuzzy is None:
            holds = np.array([matches(bank, literals) for bank in includes])
        else:
            top = np.minimum(machine.fuzzy.failures, includes.sum(axis=2, keepdims=True))
            holds = np.array([count_failing(bank, literals) for bank in includes]) < top
        counts.append(holds.sum(axis=2) * includes.any(axis=2))
    return np.array(counts)


def clause_outputs(machine, x):
    return clause_counts(machine, x) > 0


def clause_votes(machine, x):
    """[sample, bank, clause] how strongly it votes, weights apart."""
    if machine.fuzzy is None:
        return clause_outputs(machine, x).astype(int)
    includes = machine.states[:, :, machine.shape.literal_slots] >= 128
    seen = [[judge(machine, bank, patch_literals(machine.shape, image))[0] for bank in includes] for image in x]
    return np.array(seen) * includes.any(axis=2)


def class_sums(machine, x):
    votes = np.stack([signs(machine, row) for row in machine.weights])
    strengths = clause_votes(machine, x)
    sums = strengths[:, 0] @ votes.T if machine.coalesced else (strengths * votes).sum(axis=2)
    return sums if machine.rivalry is None else sums + biases(machine)


def biases(machine):
    """What moves the middle between a class's mean votes on its own and on other samples to zero."""
    found = []
    for k in range(machine.n_classes):
        own = machine.rivalry[k, k]
        others = [vote for label, vote in enumerate(machine.rivalry[:, k]) if label != k and not np.isnan(vote)]
        found.append(0 if np.isnan(own) or not others else -int(np.rint((own + sum(others) / len(others)) / 2)))
    return np.array(found)
