"""Rounds priced once on a grid of batch and context, then looked up.

A study asks for the same few thousand prices millions of times. Rows are exact for every batch up
to :data:`_EXACT_ROWS` and 2% apart above, with both sides of the CUDA-graph limit as rows of their
own; between contexts 15% apart and between rows the price is interpolated linearly.
"""

import math

import numpy as np
import numpy.typing as npt

from simulator.costs.generation import GenerationCosts
from simulator.costs.layers import FloatArray

_EXACT_ROWS = 256
_ROW_RATIO = 1.02
_CONTEXT_RATIO = 1.15


class RoundTable:
    """Looked-up prices of rounds without prompts; prompts are priced exactly.

    Parameters
    ----------
    costs
        What prices a round.
    max_sequences
        Largest batch that will be asked for [1].
    max_context_tokens
        Largest context that will be asked for [tokens].
    """

    def __init__(
        self, costs: GenerationCosts, max_sequences: int, max_context_tokens: float
    ) -> None:
        self.costs = costs
        self._rows = _row_grid(costs, max_sequences)
        self._contexts = _context_grid(max_context_tokens)
        sequences, contexts = np.meshgrid(self._rows, self._contexts, indexing="ij")
        flat = costs.round_cost(sequences.ravel(), contexts.ravel())
        self._total_s = flat.total_s.reshape(sequences.shape)
        self._draft_s = flat.draft_s.reshape(sequences.shape)
        self._software_s = flat.software_s.reshape(sequences.shape)

    def round_s(self, sequences: FloatArray, context_tokens: FloatArray) -> FloatArray:
        """Seconds of a round with these sequences and mean context, arrays ``(n,)`` [s]."""
        return self._look_up(self._total_s, sequences, context_tokens)

    def draft_and_software_s(
        self, sequences: FloatArray, context_tokens: FloatArray
    ) -> tuple[FloatArray, FloatArray]:
        """Parts of :meth:`round_s` spent on drafting and on engine software [s]."""
        return (
            self._look_up(self._draft_s, sequences, context_tokens),
            self._look_up(self._software_s, sequences, context_tokens),
        )

    def _look_up(
        self, table: FloatArray, sequences: FloatArray, context_tokens: FloatArray
    ) -> FloatArray:
        row, row_share = _locate(self._rows, sequences)
        column, column_share = _locate(self._contexts, context_tokens)
        below = table[row, column] * (1 - column_share) + table[row, column + 1] * column_share
        above = (
            table[row + 1, column] * (1 - column_share) + table[row + 1, column + 1] * column_share
        )
        found: FloatArray = below * (1 - row_share) + above * row_share
        return found


def _locate(grid: FloatArray, values: FloatArray) -> tuple[npt.NDArray[np.intp], FloatArray]:
    """Interval of the grid that holds each value, and how far into it the value lies [1]."""
    index = np.clip(np.searchsorted(grid, values, side="right") - 1, 0, grid.size - 2)
    share = (values - grid[index]) / (grid[index + 1] - grid[index])
    return index, np.clip(share, 0.0, 1.0)


def _row_grid(costs: GenerationCosts, max_sequences: int) -> FloatArray:
    last = max(max_sequences, 2)
    rows = np.arange(0, min(last, _EXACT_ROWS) + 1, dtype=np.float64)
    if last > _EXACT_ROWS:
        count = math.ceil(math.log(last / _EXACT_ROWS) / math.log(_ROW_RATIO)) + 1
        rows = np.concatenate([rows, np.geomspace(_EXACT_ROWS, last, count).round()])
    shares = costs.target.parallelism.data * costs.target.parallelism.pipeline
    limit = math.floor(costs.captured_tokens * shares / costs.query_tokens)
    edges = [edge for edge in (limit, limit + 1) if 0 < edge <= last]
    return np.unique(np.concatenate([rows, edges]))


def _context_grid(max_context_tokens: float) -> FloatArray:
    last = max(max_context_tokens, 2.0)
    count = math.ceil(math.log(last) / math.log(_CONTEXT_RATIO)) + 1
    return np.concatenate([[0.0], np.geomspace(1.0, last, count)])
