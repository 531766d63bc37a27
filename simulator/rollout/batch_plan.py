"""How the running batch of a replica evolves, counted in iterations.

With continuous batching, what happens next depends on the batch alone: the next completion,
admission, preemption or prefill chunk is known in *iterations* before any of them is priced.
So the whole future of a replica, until somebody outside interferes, is planned in integers; the
costs then turn it into seconds in one vectorised call. Between two changes the batch is fixed and
every context grows linearly, which is all that a price needs to know.

Left out: KV blocks (memory is counted in tokens) and prefix memory shared inside a group.
"""

import math
from collections import deque
from collections.abc import Iterable
from dataclasses import dataclass, replace
from heapq import heappop, heappush

import numpy as np
import numpy.typing as npt

from simulator.errors import InfeasibleError
from simulator.rollout.batch import BatchPlan, BatchState
from simulator.rollout.sequence import BatchLimits, Sequence

FloatArray = npt.NDArray[np.float64]
IntArray = npt.NDArray[np.int64]

_ADMISSION_RESERVE = 0.01
"""Share of KV memory that admission leaves free, as vLLM's watermark does; prevents thrashing."""


def plan_batch(state: BatchState, limits: BatchLimits, until: int | None = None) -> BatchPlan:
    """Plan the batch until it is empty, or for ``until`` iterations; ``state`` is not changed.

    Raises
    ------
    InfeasibleError
        If a sequence does not fit into the KV cache even when it is alone.
    """
    planner = _Planner(state, limits, until)
    planner.run()
    return planner.plan()


@dataclass(slots=True)
class _Decoding:
    """A decoding sequence: when its decoding (re)started, and when it will end."""

    sequence: Sequence
    start: int
    finish: int
    is_gone: bool = False
    """Completed, or thrown out of memory: its place in the heap is stale."""

    def context(self, now: int) -> float:
        return self.sequence.context_tokens + (now - self.start) * self.sequence.tokens_per_round

    def at(self, now: int, prefill_tokens: int) -> Sequence:
        """The sequence as it stands at ``now``."""
        sequence = self.sequence
        return Sequence(
            rollout=sequence.rollout,
            batch=sequence.batch,
            prefill_tokens=prefill_tokens,
            context_tokens=self.context(now),
            rounds_left=self.finish - now,
            tokens_per_round=sequence.tokens_per_round,
            has_started=True,
        )


@dataclass(slots=True)
class _Prefilling:
    """A sequence whose prompt is being computed."""

    sequence: Sequence
    tokens_left: int

    def at_now(self) -> Sequence:
        return replace(self.sequence, prefill_tokens=self.tokens_left, has_started=True)


class _Planner:
    """The event loop in iteration space."""

    def __init__(self, state: BatchState, limits: BatchLimits, until: int | None) -> None:
        self.waiting = deque(state.waiting)
        self.limits = limits
        self.until = until
        self.now = 0
        self.heap: list[tuple[int, int, _Decoding]] = []
        self.stack: list[_Decoding] = []
        self.decoding = 0
        self.prefilling: deque[_Prefilling] = deque()
        self.kv_tokens = 0.0
        self.kv_growth = 0.0
        self.preemptions = 0
        self.next_drain_check = 0
        self.segments: list[tuple[int, int, float, float, int, float, int]] = []
        self.completed: list[Sequence] = []
        self.completed_after: list[int] = []
        self.admitted: list[Sequence] = []
        self.admitted_before: list[int] = []
        for sequence in state.running:
            self.kv_tokens += sequence.context_tokens
            if sequence.prefill_tokens > 0:
                self.prefilling.append(_Prefilling(sequence, sequence.prefill_tokens))
            else:
                self._start_decoding(sequence)
        self.heap.sort()

    # -- state changes ---------------------------------------------------------------------

    def _start_decoding(self, sequence: Sequence) -> None:
        finish = self.now + sequence.rounds_left
        entry = _Decoding(sequence, self.now, finish)
        # The position on the stack makes every key unique and keeps the order of admission.
        heappush(self.heap, (finish, len(self.stack), entry))
        self.stack.append(entry)
        self.decoding += 1
        self.kv_growth += sequence.tokens_per_round

    def _admit(self) -> None:
        limit = self.limits.kv_tokens * (1.0 - _ADMISSION_RESERVE)
        while self.waiting and self.decoding + len(self.prefilling) < self.limits.max_sequences:
            sequence = self.waiting[0]
            is_alone = not self.decoding and not self.prefilling
            if self.kv_tokens + sequence.context_tokens > limit and not is_alone:
                return
            if sequence.context_tokens > self.limits.kv_tokens:
                raise InfeasibleError(
                    f"a sequence of {sequence.context_tokens:.0f} tokens does not fit into a KV "
                    f"cache of {self.limits.kv_tokens:.0f} tokens"
                )
            self.waiting.popleft()
            self.prefilling.append(_Prefilling(sequence, sequence.prefill_tokens))
            self.kv_tokens += sequence.context_tokens
            if not sequence.has_started:
                self.admitted.append(sequence)
                self.admitted_before.append(len(self.segments))

    def _preempt_latest(self) -> None:
        """Throw out the sequence admitted last; it will be recomputed from its tokens."""
        if self.decoding == 1:
            raise InfeasibleError(
                f"one sequence outgrows a KV cache of {self.limits.kv_tokens:.0f} tokens"
            )
        entry = next(entry for entry in reversed(self.stack) if not entry.is_gone)
        context = self._release(entry)
        self.waiting.appendleft(entry.at(self.now, prefill_tokens=max(round(context) - 1, 1)))
        self.preemptions += 1

    def _finish_due(self) -> None:
        while self.heap and (self.heap[0][0] <= self.now or self.heap[0][2].is_gone):
            entry = heappop(self.heap)[2]
            if not entry.is_gone:
                self._release(entry)
                self._complete(entry.sequence)

    def _release(self, entry: _Decoding) -> float:
        """Free the memory of a sequence that stops decoding; returns its context [tokens]."""
        entry.is_gone = True
        context = entry.context(self.now)
        self.decoding -= 1
        self.kv_tokens -= context
        self.kv_growth -= entry.sequence.tokens_per_round
        return context

    def _complete(self, sequence: Sequence) -> None:
        self.completed.append(sequence)
        self.completed_after.append(len(self.segments) - 1)

    # -- the loop --------------------------------------------------------------------------

    def run(self) -> None:
        """Advance from change to change until nothing is left or the iterations are up."""
        while self.until is None or self.now < self.until:
            self._admit()
            if not self.decoding and not self.prefilling:
                break
            if self._prefill_budget() > 0:
                self._prefill_iteration()
            elif self._can_drain():
                self._drain()
            else:
                self._decode_segment()

    def _prefill_budget(self) -> int:
        if not self.prefilling:
            return 0
        budget = self.limits.max_batched_tokens - self.decoding * self.limits.query_tokens
        return budget if self.decoding else max(budget, 1)

    def _prefill_iteration(self) -> None:
        """One iteration that decodes what runs and computes prompts up to the token budget."""
        budget = self._prefill_budget()
        tokens, attended = 0, 0.0
        ready: list[Sequence] = []
        while self.prefilling and tokens < budget:
            entry = self.prefilling[0]
            chunk = min(entry.tokens_left, budget - tokens)
            # The context counts the token that the prefill gives, which it does not attend to.
            last = entry.sequence.context_tokens - 1.0 - entry.tokens_left + chunk
            attended += chunk * (last - (chunk - 1) / 2.0)
            entry.tokens_left -= chunk
            tokens += chunk
            if entry.tokens_left == 0:
                ready.append(self.prefilling.popleft().sequence)
        ready_tokens = sum(sequence.context_tokens for sequence in ready)
        self._advance(1, tokens, attended, ready_tokens)
        for sequence in ready:
            if sequence.rounds_left > 0:
                self._start_decoding(sequence)
            else:
                self.kv_tokens -= sequence.context_tokens
                self._complete(sequence)

    def _decode_segment(self) -> None:
        """Iterations until the next completion or until memory is full."""
        iterations = self.heap[0][0] - self.now
        room = self.limits.kv_tokens - self.kv_tokens
        if self.kv_growth > 0 and iterations * self.kv_growth > room:
            iterations = int(room // self.kv_growth)
            if iterations <= 0:
                self._preempt_latest()
                return
        self._advance(iterations, 0, 0.0, 0.0)

    def _advance(
        self, iterations: int, prefill_tokens: int, attended: float, ready_tokens: float
    ) -> None:
        """Let ``iterations`` pass in which neither the batch nor its prompts change."""
        if self.until is not None:
            iterations = min(iterations, self.until - self.now)
        count = self.decoding
        held = ready_tokens + sum(entry.sequence.context_tokens for entry in self.prefilling)
        context = (self.kv_tokens - held) / count if count else 0.0
        growth = self.kv_growth / count if count else 0.0
        self.segments.append(
            (
                iterations,
                count,
                context + growth * (iterations - 1) / 2.0,
                growth * math.sqrt((iterations**2 - 1) / 12.0),
                prefill_tokens,
                attended,
                len(self.waiting),
            )
        )
        self.now += iterations
        self.kv_tokens += self.kv_growth * iterations
        self._finish_due()

    # -- a batch that nothing queues for ---------------------------------------------------

    def _can_drain(self) -> bool:
        """Whether the rest of the batch fits into memory to its end, so that arrays suffice."""
        if self.waiting or self.prefilling or len(self.completed) < self.next_drain_check:
            return False
        finish, context, growth = self._sorted_batch()
        start = np.concatenate([[self.now], finish[:-1]])
        suffix_context = _suffix_sum(context)
        suffix_growth = _suffix_sum(growth)
        peak = suffix_context + suffix_growth * (finish - self.now)
        fits = bool(np.all(peak[finish > start] <= self.limits.kv_tokens))
        if not fits:
            self.next_drain_check = len(self.completed) + 1 + self.decoding // 16
        return fits

    def _sorted_batch(self) -> tuple[IntArray, FloatArray, FloatArray]:
        """Finish, context and growth of the decoding sequences in order of completion."""
        self.heap = sorted(item for item in self.heap if not item[2].is_gone)
        entries = [entry for _, _, entry in self.heap]
        finish = np.asarray([entry.finish for entry in entries], dtype=np.int64)
        context = np.asarray([entry.context(self.now) for entry in entries])
        growth = np.asarray([entry.sequence.tokens_per_round for entry in entries])
        return finish, context, growth

    def _drain(self) -> None:
        """Run the batch to its end (or to ``until``) with one sort and cumulative sums."""
        finish, context, growth = self._sorted_batch()
        count = finish.size
        end = finish if self.until is None else np.minimum(finish, self.until)
        start = np.concatenate([[self.now], end[:-1]])
        iterations = end - start
        sequences = np.arange(count, 0, -1)
        mean_growth = _suffix_sum(growth) / sequences
        mean_context = _suffix_sum(context) / sequences + mean_growth * (start - self.now)
        kept = iterations > 0
        base = len(self.segments)
        self._extend_segments(
            iterations[kept],
            sequences[kept],
            (mean_context + mean_growth * (iterations - 1) / 2.0)[kept],
            (mean_growth * np.sqrt(np.maximum(iterations**2 - 1, 0) / 12.0))[kept],
        )
        segment_of = base + np.cumsum(kept) - 1
        is_done = finish <= (finish[-1] if self.until is None else self.until)
        done = int(np.count_nonzero(is_done))
        for _, _, entry in self.heap[:done]:
            entry.is_gone = True
            self.completed.append(entry.sequence)
        self.completed_after.extend(segment_of[:done].tolist())
        self.decoding -= done
        self.now = int(end[-1])

    def _extend_segments(
        self,
        iterations: IntArray,
        sequences: IntArray,
        context: FloatArray,
        spread: FloatArray,
    ) -> None:
        self.segments.extend(
            zip(
                iterations.tolist(),
                sequences.tolist(),
                context.tolist(),
                spread.tolist(),
                [0] * iterations.size,
                [0.0] * iterations.size,
                [0] * iterations.size,
                strict=True,
            )
        )

    # -- results ---------------------------------------------------------------------------

    def _end_state(self) -> BatchState:
        running = [
            entry.at(self.now, prefill_tokens=0) for entry in self.stack if not entry.is_gone
        ]
        running += [entry.at_now() for entry in self.prefilling]
        return BatchState(running=running, waiting=self.waiting)

    def plan(self) -> BatchPlan:
        columns = list(zip(*self.segments, strict=True)) if self.segments else [()] * 7
        return BatchPlan(
            iterations=_integers(columns[0]),
            sequences=_integers(columns[1]),
            context_tokens=np.asarray(columns[2], dtype=np.float64),
            context_spread=np.asarray(columns[3], dtype=np.float64),
            prefill_tokens=_integers(columns[4]),
            prefill_context=np.asarray(columns[5], dtype=np.float64),
            waiting=_integers(columns[6]),
            completed=self.completed,
            completed_after=_integers(self.completed_after),
            admitted=self.admitted,
            admitted_before=_integers(self.admitted_before),
            preemptions=self.preemptions,
            end=self._end_state(),
        )


def _integers(values: Iterable[int]) -> IntArray:
    return np.fromiter(values, dtype=np.int64)


def _suffix_sum(values: FloatArray) -> FloatArray:
    """Sum of each element and all after it, shape of ``values``."""
    total: FloatArray = np.cumsum(values[::-1])[::-1]
    return total
